/** The filter of a grid: a line of pills, and a field to type the next one. */

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { GridController } from "../grid/controller.ts";
import { complete } from "../grid/filter_rows.ts";
import { type Entry, NO_ENTRY, entryOf, lineOf, rowsWith, signOf, valuesOf } from "../grid/filter_entry.ts";
import { type FilterRow, type Query, queryOf } from "../state/query.ts";
import type { Explained, OpenConnection, SavedQuery } from "../messages.ts";
import { remedy } from "../state/store.ts";
import { Button, ErrorBox } from "../ui/controls.tsx";
import { Icon } from "../ui/icons.tsx";
import { openMenu } from "../ui/menu.tsx";
import { copyText, toast } from "../ui/toasts.tsx";
import type { Failure } from "../wire/client.ts";
import { show } from "../wire/cells.ts";
import { EntryField } from "./entry_field.tsx";
import { type Explanation, Meaning, Refused, clauseOf, refusalOf, useExplanation } from "./meaning.tsx";
import { NameQuery, openSaved } from "./saved_queries.tsx";

export function FilterBar({ grid, open, close }: { grid: GridController; open: OpenConnection; close: () => void }) {
  const query = grid.query.value;
  const draft = grid.filter.value;
  const rows = draft?.rows ?? query.filters;
  const match = draft?.match ?? query.match;
  const typed = grid.entry.value;
  const entry = typed.at !== null && typed.at >= rows.length ? NO_ENTRY : typed;
  const known = grid.columns.value;
  const columns = useMemo(() => grid.ordered.filter((column) => column.operators?.length), [known]);
  const waits = grid.waiting.value !== null;
  const unsent = waits || JSON.stringify([rows.filter(complete), match]) !== JSON.stringify([query.filters, query.match]);
  const [naming, setNaming] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const explanation = useExplanation(grid, rowsWith(rows, entry), match);

  const ask = (part: Partial<Query>) => {
    const query = grid.query.peek();
    grid.apply({ ...query, residual: grid.waiting.peek()?.residual ?? query.residual, ...part });
  };
  /** Show other pills, and their rows unless an address waits to be applied. */
  const put = (rows: readonly FilterRow[], all = match) => {
    grid.filter.value = { rows, match: all };
    if (!waits) ask({ filters: rows.filter(complete), match: all });
  };
  const apply = () => ask({ filters: rows.filter(complete), match });
  const use = ({ rows }: SavedQuery) => {
    grid.filter.value = null;
    grid.entry.value = NO_ENTRY;
    grid.apply(queryOf(rows));
  };
  const clear = () => {
    const before = { rows, match };
    const waiting = grid.waiting.peek();
    grid.filter.value = null;
    grid.entry.value = NO_ENTRY;
    const back = () => {
      grid.filter.value = before;
      if (waiting) grid.waiting.value = waiting;
      else ask({ filters: before.rows.filter(complete), match: before.match });
    };
    if (rows.length) toast("The filter is cleared.", "plain", { label: "Undo", run: back });
    const { sort, span, tenant } = grid.query.peek();
    grid.apply({ ...queryOf({ object: grid.object }), sort, span, tenant }); // what only a saved query sets ends, too
  };
  const edit = (at: number) => {
    grid.entry.value = entryOf(rows[at], at);
    grid.called.value = true;
  };
  const remove = (at: number) => {
    // at once, so that no key is lost: the pill that follows takes the place of this one
    (at < rows.length - 1 ? pills()[at] : field())?.focus();
    put(rows.filter((_, number) => number !== at));
    if (entry.at !== null) grid.entry.value = NO_ENTRY;
    const next = at < rows.length - 1 ? at : -1;
    requestAnimationFrame(() => {
      if (document.activeElement === document.body) (next < 0 ? field() : pills()[next])?.focus();
    });
  };
  const pills = () => [...(form.current?.querySelectorAll<HTMLElement>(".pill-text") ?? [])];
  const field = () => form.current?.querySelector<HTMLElement>("[role=combobox]");
  const commit = (entry: Entry) => {
    grid.entry.value = NO_ENTRY;
    grid.called.value = true;
    put(rowsWith(rows, entry));
  };
  const leave = () => {
    if (entry.at !== null) {
      grid.entry.value = NO_ENTRY;
      grid.called.value = true;
      return;
    }
    close();
    grid.view.focus();
  };
  const walk = (event: KeyboardEvent, at: number) => {
    const all = [...pills(), field()];
    const here = all.indexOf(event.currentTarget as HTMLElement);
    const to = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) all[Math.max(0, to)]?.focus();
    else if (event.key === "Delete" || event.key === "Backspace") remove(at);
    else if (event.key === "Escape") field()?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const fix = (failure: Failure) => failure.remedy && void remedy(failure.remedy, apply);
  const writes = (
    <EntryField
      key="entry"
      grid={grid}
      entry={entry}
      rows={rows}
      columns={columns}
      raw={open.capabilities.includes("raw-filter")}
      summarizes={open.hooks.includes("summarize_column") && !waits}
      explanation={explanation}
      put={(next) => (grid.entry.value = next)}
      commit={commit}
      last={(editing) => {
        const before = entry.at ?? rows.length;
        if (before > 0) editing ? edit(before - 1) : pills().at(before - 1)?.focus();
      }}
      leave={leave}
      fix={fix}
    />
  );
  const refused = rows.flatMap((row, at) => {
    const failure = at === entry.at ? null : refusalOf(explanation, at);
    return failure ? [{ failure, name: lineOf(row) }] : [];
  });
  return (
    <>
      <form class="filter" aria-label="Filter" ref={form} onSubmit={(event) => event.preventDefault()}>
        <div class="pills">
          {rows.map((row, at) =>
            at === entry.at ? (
              writes
            ) : (
              <Pill
                key={at}
                row={row}
                number={at}
                joined={at ? match : ""}
                unsent={unsent}
                explanation={explanation}
                edit={() => edit(at)}
                remove={() => remove(at)}
                walk={(event) => walk(event, at)}
              />
            ),
          )}
          {entry.at === null && writes}
        </div>
        <div class="filter-actions">
          {(rows.length > 1 || match === "any") && (
            <Button
              label={match === "all" ? "Match all" : "Match any"}
              title={match === "all" ? "Rows for which all of these hold; press for any of them" : "Rows for which any of these holds; press for all of them"}
              tone="quiet"
              onClick={() => put(rows, match === "all" ? "any" : "all")}
            />
          )}
          <Button label="Saved" tone="quiet" onClick={(event) => void openSaved(event, grid, () => setNaming(true), use)} />
          {explanation.explained && <Equivalent explained={explanation.explained} />}
          {(rows.length > 0 || query.residual !== null) && <Button label="Clear" tone="quiet" onClick={clear} />}
          {unsent && <Button label="Apply" tone="primary" onClick={apply} />}
        </div>
        {refused.map(({ failure, name }) => (
          <Refused key={name} failure={failure} name={name} fix={fix} />
        ))}
        {explanation.failure && explanation.failure.row === null && <ErrorBox error={explanation.failure} />}
      </form>
      {naming && <NameQuery grid={grid} filters={rows.filter(complete)} match={match} close={() => setNaming(false)} />}
    </>
  );
}

function Pill({ row, number, joined, unsent, explanation, edit, remove, walk }: {
  row: FilterRow;
  number: number;
  /** How it is joined to the pill before; empty for the first. */
  joined: "" | "all" | "any";
  unsent: boolean;
  explanation: Explanation;
  edit: () => void;
  remove: () => void;
  walk: (event: KeyboardEvent) => void;
}) {
  const box = useRef<HTMLSpanElement>(null);
  const floating = useRef<HTMLDivElement>(null);
  const [near, setNear] = useState(false);
  const clause = clauseOf(explanation, number);
  const refused = refusalOf(explanation, number);
  const state = refused ? " refused" : !complete(row) || unsent ? " unsent" : "";
  const group = row.type === "filter" ? row.group : null;
  useLayoutEffect(() => {
    const at = box.current?.getBoundingClientRect();
    const tip = floating.current;
    if (!at || !tip) return;
    tip.style.left = `${Math.max(8, Math.min(at.left, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${at.bottom + 4}px`;
  });
  const said = clause ? `${clause.exact ? "exact" : "approximate"}: ${clause.clause} ${clause.approximations.join(" ")}` : "";
  return (
    <span class="pill-joined">
      {joined && <span class="pill-join">{joined === "any" ? "or" : "and"}</span>}
      <span
        class={`pill${state}`}
        role="group"
        aria-label={`Filter ${number + 1}`}
        ref={box}
        onPointerEnter={(event) => event.pointerType === "mouse" && setNear(true)}
        onPointerLeave={() => setNear(false)}
        onFocusIn={() => setNear(true)}
        onFocusOut={() => setNear(false)}
      >
        <button type="button" class="pill-text" tabIndex={-1} aria-description={said} onClick={edit} onKeyDown={walk}>
          {row.type === "raw" ? <span class="muted">raw</span> : <span class="pill-column">{show(row.column).text}</span>}
          {row.type === "filter" && <span class="pill-sign">{signOf(row.op)}</span>}
          <span class="pill-value">{show(valuesOf(row)).text}</span>
          {group && <span class="badge" title="Holds for the same element of the array as the others with this number">same element {group}</span>}
          {!complete(row) && <span class="muted">no value: left out</span>}
          {clause && !clause.exact && <span class="pill-about" title="approximate">≈</span>}
        </button>
        <button type="button" class="pill-remove" tabIndex={-1} aria-label={`Remove filter ${number + 1}`} onClick={remove}>
          <Icon name="close" />
        </button>
        {near && clause && (
          <div class="pill-tip" role="tooltip" ref={floating}>
            <Meaning explanation={explanation} number={number} />
          </div>
        )}
      </span>
    </span>
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
