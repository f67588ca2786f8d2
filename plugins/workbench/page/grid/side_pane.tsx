/** The pane beside the grid: the whole value of a cell, or the whole row. */

import { useEffect, useRef, useState } from "preact/hooks";
import { changesOf } from "../state/change_list.ts";
import type { Cell } from "../messages.ts";
import { Badge, Button, ErrorBox, Tabs, Waiting } from "../ui/controls.tsx";
import { fileSize } from "../ui/figures.ts";
import { pretty } from "../ui/json_text.ts";
import { JsonTree } from "../ui/json_tree.tsx";
import { copyText, toast } from "../ui/toasts.tsx";
import { call } from "../wire/client.ts";
import { isCut, show, tagOf, textOf, typed } from "../wire/cells.ts";
import type { GridController } from "./controller.ts";

const TABS = ["value", "row"] as const;
const TITLES = { value: "Value", row: "Row" };

export function SidePane({ grid, close, writable }: { grid: GridController; close: () => void; writable: boolean }) {
  const [tab, setTab] = useState<"value" | "row">("value");
  grid.version.value;
  const place = grid.selection.value.active;
  const found = grid.at({ row: Math.max(0, place.row), column: place.column });
  return (
    <aside class="pane" aria-label="Side pane" onKeyDown={(event) => event.key === "Escape" && close()}>
      <div class="pane-head">
        <Tabs label="What the pane shows" names={TABS} titles={TITLES} chosen={tab} choose={setTab} panel="pane" />
        <Button icon="close" label="Close the pane" bare tone="quiet" onClick={close} />
      </div>
      <div id="pane" role="tabpanel" aria-label={TITLES[tab]} class="pane-panel">
        {!found ? (
          <p class="muted pad">Select a cell to see its whole value.</p>
        ) : tab === "value" ? (
          <Value key={`${found.row.key}/${found.column.name}/${place.row}`} grid={grid} found={found} writable={writable} />
        ) : (
          <WholeRow grid={grid} row={Math.max(0, place.row)} />
        )}
      </div>
    </aside>
  );
}

type Found = NonNullable<ReturnType<GridController["at"]>>;

/** A cell, fetched whole if only its beginning is on the page. */
function Value({ grid, found, writable }: { grid: GridController; found: Found; writable: boolean }) {
  const { row, column } = found;
  const [fetched, setFetched] = useState<Cell | undefined>(undefined);
  const [failed, setFailed] = useState<unknown>(null);
  const [draft, setDraft] = useState<string | null>(null);
  const cut = isCut(found.cell);
  const load = () => {
    if (!cut || row.key === null) return;
    setFailed(null);
    call("cell", { connection: grid.connection, key: row.key, column: column.name }).then(
      ({ cell }) => setFetched(cell),
      (error: unknown) => setFailed(error),
    );
  };
  useEffect(load, [row.key, column.name]);
  const cell = cut && fetched !== undefined ? fetched : found.cell;
  const text = textOf(cell) ?? "";
  const editable =
    writable && row.key !== null && !isCut(cell) && !column.reasons?.edit && (column.written ?? "always") === "always";
  const begin = tagOf(cell) === "json" ? pretty(text) : text;
  const save = () => {
    if (draft !== null && draft !== begin) {
      const after = typed(withBreaksOf(text, draft), column);
      changesOf(grid.connection).edit(grid.object, row, column.name, found.cell, after);
    }
    setDraft(null);
  };
  // another cell, another view: what is written is kept as a change, as in a cell, and Ctrl+Z takes it back
  const leave = useRef(save);
  leave.current = save;
  useEffect(() => () => leave.current(), []);
  const drop = () => {
    const written = draft;
    setDraft(null);
    if (written === null || written === begin) return;
    toast("What was written is dropped.", "plain", { label: "Undo", run: () => setDraft(written) });
  };
  return (
    <div class="pane-body">
      <div class="pane-title">
        <strong>{column.name}</strong>
        <Badge>{column.type}</Badge>
        <span class="muted grow">{fileSize(new Blob([text]).size)}</span>
        <Button icon="copy" label="Copy the value" bare tone="quiet" onClick={() => void copyText(text)} />
        {editable && (
          <Button
            icon="edit"
            label="Edit the value"
            bare
            tone="quiet"
            pressed={draft !== null}
            onClick={() => (draft === null ? setDraft(begin) : drop())}
          />
        )}
      </div>
      {cut && fetched === undefined && failed === null && <Waiting what="Fetching the whole value …" />}
      {failed !== null && <ErrorBox error={failed} retry={load} />}
      {draft === null ? (
        <Whole cell={cell} name={column.name} />
      ) : (
        <div class="pane-edit">
          <textarea
            aria-label={`New value of ${column.name}`}
            value={draft}
            spellcheck={false}
            onInput={(event) => setDraft(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== "Escape" || event.isComposing) return;
              event.stopPropagation(); // it ends the writing, not the pane
              drop();
            }}
          />
          <div class="actions">
            <Button label="Cancel" onClick={drop} />
            <Button label="Change" tone="primary" onClick={save} />
          </div>
        </div>
      )}
    </div>
  );
}

/** A text with the line breaks of another: fields know only one kind. */
function withBreaksOf(text: string, written: string): string {
  const other = text.includes("\r\n") && !/(^|[^\r])\n/.test(text);
  return other ? written.replaceAll("\n", "\r\n") : written;
}

/** One value, laid out by what it is. */
export function Whole({ cell, name }: { cell: Cell; name: string }) {
  const tag = tagOf(cell);
  if (tag === "json") return <JsonTree text={textOf(cell) ?? ""} label={`Value of ${name}`} />;
  const { text, tone } = show(cell);
  if (tag === "null" || tag === "missing" || tone === "empty") {
    return <p class={`cell-word ${tone}`}>{tone === "missing" ? "missing: the row has no such value" : text}</p>;
  }
  return (
    <pre class="value-text" tabIndex={0} aria-label={`Value of ${name}`}>
      {textOf(cell)}
    </pre>
  );
}

function WholeRow({ grid, row }: { grid: GridController; row: number }) {
  const [words, setWords] = useState("");
  const found = grid.rows.row(row);
  if (!found) return <p class="muted pad">The row is loading.</p>;
  const asked = words.toLowerCase();
  const columns = grid.columns.value.filter(
    ({ name }) =>
      !asked ||
      name.toLowerCase().includes(asked) ||
      (textOf(grid.rows.cellOf(found, name)) ?? "").toLowerCase().includes(asked),
  );
  return (
    <div class="pane-body">
      <input
        type="search"
        class="row-search"
        placeholder="Search names and values"
        aria-label="Search names and values of the row"
        value={words}
        onInput={(event) => setWords(event.currentTarget.value)}
      />
      <dl class="row-list">
        {columns.map(({ name }) => {
          const cell = grid.rows.cellOf(found, name);
          const { text, tone } = show(cell);
          return (
            <div key={name}>
              <dt>{name}</dt>
              <dd class={tone}>{text}</dd>
            </div>
          );
        })}
      </dl>
    </div>
  );
}
