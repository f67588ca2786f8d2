/** The filter of a grid: rows, what is sent for each, and whether that is exact. */

import { useEffect, useId, useState } from "preact/hooks";
import type { FilterDraft, GridController } from "../grid/controller.ts";
import { type FilterRow, type Query, queryOf } from "../state/query.ts";
import type { Column, Explained, OpenConnection, QueryList, SavedQuery } from "../messages.ts";
import { remedy } from "../state/store.ts";
import { Badge, Button, CopyCommand, ErrorBox, asFailure } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { openMenu } from "../ui/menu.tsx";
import { copyText, toast } from "../ui/toasts.tsx";
import { type Failure, call } from "../wire/client.ts";
import { type Filled, complete, filled, filterOf, inputs, joinList, splitList, textsOf, withOperator } from "../grid/filter_rows.ts";

/** How a query can be named: `@NAME` is one word in a terminal. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function FilterEditor({ grid, open, close }: { grid: GridController; open: OpenConnection; close: () => void }) {
  const query = grid.query.value;
  const columns = grid.columns.value;
  const filterable = columns.filter((column) => column.operators?.length);
  const raw = open.capabilities.includes("raw-filter");
  const rows = grid.filter.value?.rows ?? (query.filters.length ? query.filters : [fresh(filterable)]);
  const match = grid.filter.value?.match ?? query.match;
  const write = (part: Partial<FilterDraft>) => {
    grid.filter.value = { rows, match, ...part };
  };
  const setRows = (rows: readonly FilterRow[]) => write({ rows });
  const half = rows.some((row) => filled(row) === "half");
  const [naming, setNaming] = useState(false);
  const explanation = useExplanation(grid, rows, match);
  const change = (at: number, row: FilterRow) => setRows(rows.map((one, index) => (index === at ? row : one)));
  const ask = (part: Partial<Query>) => {
    const query = grid.query.peek();
    grid.apply({ ...query, residual: grid.waiting.peek()?.residual ?? query.residual, ...part });
  };
  const use = ({ rows }: SavedQuery) => {
    const saved = queryOf(rows);
    write({ rows: saved.filters.length ? saved.filters : [fresh(filterable)], match: saved.match });
    grid.apply(saved);
  };
  const apply = () => half || ask({ filters: rows.filter(complete), match });
  const clear = () => {
    const before = { rows, match };
    const waiting = grid.waiting.peek();
    write({ rows: [fresh(filterable)], match: "all" });
    const back = () => {
      grid.filter.value = before;
      if (waiting) grid.waiting.value = waiting;
      else ask({ filters: before.rows.filter(complete), match: before.match });
    };
    if (rows.some(complete)) toast("The filter is cleared.", "plain", { label: "Undo", run: back });
    const { sort, span, tenant } = grid.query.peek();
    grid.apply({ ...queryOf({ object: grid.object }), sort, span, tenant }); // what only a saved query sets ends, too
  };
  return (
    <>
    <form
      class="filter"
      aria-label="Filter"
      onSubmit={(event) => (event.preventDefault(), apply())}
      onKeyDown={(event) => event.key === "Escape" && close()}
    >
      {rows.map((row, at) => (
        <Line
          key={at}
          row={row}
          number={at}
          columns={filterable}
          raw={raw}
          explanation={explanation}
          change={(next) => change(at, next)}
          remove={() => setRows(rows.length > 1 ? rows.filter((_, index) => index !== at) : [fresh(filterable)])}
          fix={(failure) => failure.remedy && void remedy(failure.remedy, apply)}
        />
      ))}
      <div class="filter-actions">
        <Button icon="add" label="Row" tone="quiet" onClick={() => setRows([...rows, fresh(filterable)])} />
        {raw && <Button label="Raw text" tone="quiet" onClick={() => setRows([...rows, RAW])} />}
        <label class="inline">
          <span>Match</span>
          <select value={match} onChange={(event) => write({ match: event.currentTarget.value as "all" | "any" })}>
            <option value="all">all rows</option>
            <option value="any">any row</option>
          </select>
        </label>
        <span class="grow" />
        <Button label="Saved" tone="quiet" onClick={(event) => void saved(event, grid, () => setNaming(true), use)} />
        {explanation.explained && <Equivalent explained={explanation.explained} />}
        <Button label="Clear" onClick={clear} />
        <Button label="Apply" tone="primary" submit disabled={half} onClick={() => {}} />
      </div>
      {explanation.failure && explanation.failure.row === null && <ErrorBox error={explanation.failure} />}
    </form>
    {naming && <NameQuery grid={grid} filters={rows.filter(complete)} match={match} close={() => setNaming(false)} />}
    </>
  );
}

const RAW: FilterRow = { type: "raw", text: "" };

function fresh(columns: readonly Column[]): FilterRow {
  const first = columns[0];
  return first ? filterOf(first.name, first.operators?.[0] ?? "=") : RAW;
}

interface Explanation {
  readonly explained: Explained | null;
  readonly failure: Failure | null;
  /** Numbers of the rows that were explained. */
  readonly numbers: readonly number[];
}

/** Ask what would be sent, a moment after the last change. */
function useExplanation(grid: GridController, rows: readonly FilterRow[], match: "all" | "any"): Explanation {
  const query = grid.query.value;
  const waits = grid.waiting.value !== null; // a driver may send a row to the server in order to explain it
  const [found, setFound] = useState<Explanation>({ explained: null, failure: null, numbers: [] });
  useEffect(() => {
    if (waits) return;
    const numbers = rows.flatMap((row, at) => (complete(row) ? [at] : []));
    const stop = new AbortController();
    const filters = numbers.map((at) => rows[at]);
    const timer = setTimeout(async () => {
      try {
        const asked = { connection: grid.connection, rows: { ...query, filters, match } };
        setFound({ explained: await call("explain", asked, stop.signal), failure: null, numbers });
      } catch (error) {
        if (!stop.signal.aborted) setFound({ explained: null, failure: asFailure(error), numbers });
      }
    }, 250);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [JSON.stringify([rows, query]), match, waits]);
  return found;
}

interface LineProps {
  readonly row: FilterRow;
  readonly number: number;
  readonly columns: readonly Column[];
  readonly raw: boolean;
  readonly explanation: Explanation;
  readonly change: (row: FilterRow) => void;
  readonly remove: () => void;
  readonly fix: (failure: Failure) => void;
}

function Line({ row, number, columns, raw, explanation, change, remove, fix }: LineProps) {
  const column = row.type === "raw" ? undefined : columns.find((one) => one.name === row.column);
  const place = `row ${number + 1}`;
  const pick = (name: string) => {
    const next = columns.find((one) => one.name === name);
    const [text = null] = textsOf(row);
    if (!next) return change({ type: "raw", text: text ?? "" });
    const before = row.type === "raw" ? filterOf(name, "=", text) : { ...row, column: name };
    const op = next.operators?.find((one) => one === before.op) ?? next.operators?.[0] ?? "=";
    change(withOperator(before, op));
  };
  const nested = (column?.arrays?.length ?? 0) > 0;
  return (
    <div class="filter-row" role="group" aria-label={`Filter ${place}`}>
      <select aria-label={`Column of ${place}`} value={row.type === "raw" ? "" : row.column} onChange={(event) => pick(event.currentTarget.value)}>
        {columns.map(({ name }) => (
          <option key={name} value={name}>{name}</option>
        ))}
        {raw && <option value="">raw text</option>}
      </select>
      {row.type === "filter" ? (
        <select
          aria-label={`Operator of ${place}`}
          value={row.op}
          onChange={(event) => change(withOperator(row, event.currentTarget.value))}
        >
          {column?.operators?.map((op) => (
            <option key={op} value={op}>{op}</option>
          ))}
        </select>
      ) : (
        <span class="muted">in the server's own syntax</span>
      )}
      <Values row={row} place={place} change={change} />
      {nested && row.type === "filter" && (
        <input
          class="group"
          placeholder="same element"
          aria-label={`Element group of ${place}`}
          title="Rows of the same group must hold for the same element of the array"
          value={row.group ?? ""}
          onInput={(event) => change({ ...row, group: event.currentTarget.value || null })}
        />
      )}
      <Button icon="close" label={`Remove ${place}`} bare tone="quiet" onClick={remove} />
      <Meaning number={number} filled={filled(row)} explanation={explanation} fix={fix} />
    </div>
  );
}

function Values({ row, place, change }: { row: FilterRow; place: string; change: (row: FilterRow) => void }) {
  const kind = row.type === "raw" ? "one" : inputs(row.op);
  const [typed, setTyped] = useState<string | null>(null);
  const texts = textsOf(row);
  const write = (text: string) => change(row.type === "raw" ? { ...row, text } : { ...row, value: text || null });
  const writeAll = (value: string[]) => row.type === "filter" && change({ ...row, value });
  if (kind === "none") return <span class="value" />;
  if (kind === "two") {
    const [low = "", high = ""] = texts;
    return (
      <span class="value two">
        <input aria-label={`From, ${place}`} value={low} onInput={(event) => writeAll([event.currentTarget.value, high])} />
        <span class="muted">to</span>
        <input aria-label={`To, ${place}`} value={high} onInput={(event) => writeAll([low, event.currentTarget.value])} />
      </span>
    );
  }
  if (kind === "list") {
    return (
      <input
        class="value"
        aria-label={`Values of ${place}`}
        placeholder="values, separated by commas"
        value={typed ?? joinList(texts)}
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          writeAll(splitList(event.currentTarget.value));
        }}
        onBlur={() => setTyped(null)}
      />
    );
  }
  return (
    <input
      class="value"
      aria-label={`Value of ${place}`}
      value={texts[0] ?? ""}
      placeholder={texts[0] === "" ? "the empty text" : "value"}
      spellcheck={false}
      onInput={(event) => write(event.currentTarget.value)}
    />
  );
}

/** What is sent for a row, or why it cannot run. */
function Meaning({ number, filled, explanation, fix }: {
  number: number;
  filled: Filled;
  explanation: Explanation;
  fix: (failure: Failure) => void;
}) {
  const id = useId();
  const { explained, failure, numbers } = explanation;
  const at = numbers.indexOf(number);
  if (filled === "half") return <div class="meaning refused" role="alert"><span>Fill in both values, or none.</span></div>;
  if (filled === "nothing") return <div class="meaning"><span class="muted">No value yet: this row is left out.</span></div>;
  if (failure && failure.row !== null && failure.row === at) {
    return (
      <div class="meaning refused" role="alert">
        <span>{failure.message}</span>
        {failure.hint && <span class="muted">{failure.hint}</span>}
        {failure.remedy &&
          (failure.remedy.action === "command" ? (
            <CopyCommand command={failure.remedy.target} label={failure.remedy.label} />
          ) : (
            <Button label={failure.remedy.label} onClick={() => fix(failure)} />
          ))}
      </div>
    );
  }
  const row = explained?.rows.find((one) => one.row === at);
  if (!row || at < 0) return <div class="meaning" />;
  const exact = row.exact ?? true;
  return (
    <div class="meaning" id={id}>
      <Badge tone={exact ? "good" : "warn"}>{exact ? "exact" : "approximate"}</Badge>
      <code title={row.clause}>{row.clause}</code>
      {row.approximations?.map((text) => (
        <span class="muted" key={text}>{text}</span>
      ))}
    </div>
  );
}

function Equivalent({ explained }: { explained: Explained }) {
  return (
    <Button
      icon="copy"
      label="As code"
      tone="quiet"
      onClick={(event) =>
        openMenu(
          "As code",
          [
            {
              label: "Copy as command",
              disabled: !explained.command, // no command can hold a null character
              run: () => void copyText(explained.command, "Copied the command"),
            },
            { label: "Copy as Python", run: () => void copyText(explained.python, "Copied the Python code") },
          ],
          (event.currentTarget as Element).getBoundingClientRect(),
        )
      }
    />
  );
}

/** The saved queries of the connection; null if they cannot be read, which is said. */
async function savedQueries({ connection }: GridController): Promise<QueryList | null> {
  try {
    return await call("queries", { connection });
  } catch (error) {
    toast(asFailure(error).message, "bad");
    return null;
  }
}

/** Open the menu of the queries that are saved for this object, and of those that cannot be used, which say why. */
async function saved(event: MouseEvent, grid: GridController, name: () => void, use: (query: SavedQuery) => void): Promise<void> {
  const anchor = (event.currentTarget as Element).getBoundingClientRect();
  const list = await savedQueries(grid);
  if (!list) return;
  const queries = list.queries.filter(({ rows }) => rows.object === grid.object);
  const own = queries.filter(({ shared }) => !shared);
  const choose = () =>
    openMenu("Forget a query", own.map((query) => ({ label: query.name, run: () => void forget(grid, query) })), anchor);
  openMenu(
    "Saved queries",
    [
      { label: "Save these rows", icon: "add", run: name },
      "line",
      ...queries.map((query) => ({ label: query.name, icon: "filter" as const, run: () => use(query) })),
      ...Object.entries(list.unusable).map(([query, reason]) => (
        { label: `${query} cannot be used …`, run: () => toast(reason, "bad") }
      )),
      ...(own.length ? [{ label: "Forget a query …", icon: "remove" as const, run: choose }] : []),
    ],
    anchor,
  );
}

async function forget({ connection }: GridController, { name, rows }: SavedQuery): Promise<void> {
  const again = () => void saving(call("queries/save", { connection, name, rows }));
  if (await saving(call("queries/remove", { connection, name }))) {
    toast(`The query ${name} is forgotten.`, "plain", { label: "Undo", run: again });
  }
}

/** Whether a change of the saved queries succeeded; a failure is said. */
async function saving(change: Promise<unknown>): Promise<boolean> {
  try {
    await change;
    return true;
  } catch (error) {
    toast(asFailure(error).message, "bad");
    return false;
  }
}

function NameQuery({ grid, filters, match, close }: {
  grid: GridController;
  filters: readonly FilterRow[];
  match: "all" | "any";
  close: () => void;
}) {
  const [name, setName] = useState("");
  const [taken, setTaken] = useState<ReadonlySet<string>>(new Set());
  const { connection } = grid;
  useEffect(() => {
    call("queries", { connection }).then(
      ({ queries }) => setTaken(new Set(queries.flatMap((query) => (query.shared ? [] : [query.name])))),
      () => {}, // saving says what is wrong
    );
  }, [connection]);
  const replace = taken.has(name);
  const named = NAME.test(name);
  const save = async () => {
    const rows = { ...grid.query.peek(), filters, match };
    if (!(await saving(call("queries/save", { connection, name, rows, replace })))) return;
    toast(`The query ${name} is saved.`, "good");
    close();
  };
  return (
    <Dialog
      title="Save these rows"
      onClose={close}
      footer={
        <>
          <Button label="Cancel" onClick={close} />
          <Button label={replace ? "Replace" : "Save"} tone="primary" disabled={!named} onClick={() => void save()} />
        </>
      }
    >
      <label class="field">
        <span>Name</span>
        <input value={name} maxLength={64} autocomplete="off" onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      {name && !named ? (
        <p class="field-error" role="alert">A name has letters, digits, dots, hyphens and underscores.</p>
      ) : (
        <p class="muted">In a terminal: dragoman page {connection} @{name || "NAME"}</p>
      )}
    </Dialog>
  );
}
