/** The pane beside the grid: the whole value of a cell, or the whole row. */

import type { ComponentType } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type RowDraft, changesOf, isTouched } from "../state/change_list.ts";
import type { Cell, GridRow } from "../messages.ts";
import { Badge, Button, ErrorBox, Tabs, Waiting, asFailure, lazily } from "../ui/controls.tsx";
import { barsOf } from "../wire/bars_of_numbers.ts";
import { fileSize } from "../ui/figures.ts";
import { JsonEditor } from "../ui/json_editor.tsx";
import { JsonFault, lineAt, oneLine, pretty, readJson } from "../ui/json_text.ts";
import { JsonTree } from "../ui/json_tree.tsx";
import { copyText, toast } from "../ui/toasts.tsx";
import { call } from "../wire/client.ts";
import { isCut, isVector, show, tagOf, textOf, typed, vector } from "../wire/cells.ts";
import type { GridController } from "./controller.ts";
import { cellFrom } from "./json_cells.ts";

/** What the pane shows. */
export type PaneTab = "value" | "row" | "compare";

const TABS: readonly PaneTab[] = ["value", "row", "compare"];
const TITLES = { value: "Value", row: "Row", compare: "Compare" };
const Compared = lazily(async () => (await import("./compared.tsx")).Compared);

/** The editor of a row. */
export type RowEditor = ComponentType<{ grid: GridController; draft: RowDraft }>;

export function SidePane({ grid, tab, choose, close, writable, Editor }: {
  grid: GridController;
  tab: PaneTab;
  choose: (tab: PaneTab) => void;
  close: () => void;
  writable: boolean;
  Editor: RowEditor;
}) {
  const list = changesOf(grid.connection);
  const draft = list.rowDrafts.value.get(grid.object);
  grid.version.value;
  const place = grid.selection.value.active;
  const area = grid.selection.value.rectangle(1);
  const found = grid.at({ row: Math.max(0, place.row), column: place.column });
  const begun = draft?.row;
  useEffect(() => {
    if (begun) choose("row");
  }, [begun]);
  useEffect(() => {
    // the pane goes with the cursor, unless something is written in it
    if (draft && !isTouched(draft) && found && found.row.key !== draft.row.key) list.write(grid.object, null);
  }, [found?.row.key]);
  return (
    <aside class="pane" aria-label="Side pane" onKeyDown={(event) => event.key === "Escape" && close()}>
      <div class="pane-head">
        <Tabs label="What the pane shows" names={TABS} titles={TITLES} chosen={tab} choose={choose} panel="pane" />
        <Button icon="close" label="Close the pane" bare tone="quiet" onClick={close} />
      </div>
      <div id="pane" role="tabpanel" aria-label={TITLES[tab]} class="pane-panel">
        {draft && tab === "row" ? (
          <Editor key={`${draft.kind}/${draft.row.key}`} grid={grid} draft={draft} />
        ) : tab === "compare" ? (
          area && area.bottom > area.top ? <Compared grid={grid} top={area.top} bottom={area.bottom} />
            : <p class="muted pad">Select two rows: one with a click, the other with Shift and a click, or with Shift and the arrows. Of more rows, the first and the last are compared.</p>
        ) : !found ? (
          <p class="muted pad">Select a cell to see its whole value.</p>
        ) : tab === "value" ? (
          <Value key={`${found.row.key}/${found.column.name}/${place.row}`} grid={grid} found={found} writable={writable} />
        ) : (
          <WholeRow grid={grid} row={Math.max(0, place.row)} writable={writable} />
        )}
      </div>
    </aside>
  );
}

/** Begin to write a row in the pane; false, and a message, if that cannot be. */
export async function beginRow(grid: GridController, row: GridRow, kind: RowDraft["kind"]): Promise<boolean> {
  try {
    return await (await import("./row_writing.ts")).writeRow(grid, row, kind);
  } catch (error) {
    toast(asFailure(error).message, "bad");
    return false;
  }
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
  const json = tagOf(cell) === "json";
  const fault = json && draft !== null ? faultOf(draft) : null;
  const save = () => {
    if (draft !== null && draft !== begin) {
      const node = json && !fault ? readJson(draft) : null;
      const same = node && oneLine(node) === oneLine(readJson(text));
      const after = node ? cellFrom(node, column) : typed(withBreaksOf(text, draft), column, cell);
      if (!same) changesOf(grid.connection).edit(grid.object, row, column.name, found.cell, after);
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
        <>
          {isVector(column) && json && <Vector text={text} />}
          <Whole cell={cell} name={column.name} />
        </>
      ) : (
        <div class={json ? "pane-edit code" : "pane-edit"}>
          {json ? (
            <JsonEditor
              label={`New value of ${column.name}`}
              text={draft}
              marks={fault ? { changed: [], faults: [fault.at] } : NO_MARKS}
              commands={{ changed: setDraft, done: () => void (fault || save()), cancel: drop }}
            />
          ) : (
            <textarea
              aria-label={`New value of ${column.name}`}
              value={draft}
              spellcheck={false}
              onInput={(event) => setDraft(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.isComposing) return;
                if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
                if (event.key !== "Escape") return;
                event.stopPropagation(); // it ends the writing, not the pane
                drop();
              }}
            />
          )}
          <div class="actions">
            {fault && <span class="field-error grow" role="status">line {lineAt(draft, fault.at)}: {fault.message}</span>}
            <Button label="Cancel" title="Cancel (Esc)" onClick={drop} />
            <Button label="Change" tone="primary" title="Ctrl+Enter" disabled={!!fault} onClick={save} />
          </div>
        </div>
      )}
    </div>
  );
}

const NO_MARKS = { changed: [], faults: [] };

/** Why a text is no JSON; null if it is. */
function faultOf(text: string): JsonFault | null {
  try {
    readJson(text);
    return null;
  } catch (error) {
    if (error instanceof JsonFault) return error;
    throw error;
  }
}

/** A text with the line breaks of another: fields know only one kind. */
function withBreaksOf(text: string, written: string): string {
  const other = text.includes("\r\n") && !/(^|[^\r])\n/.test(text);
  return other ? written.replaceAll("\n", "\r\n") : written;
}

const PANE_BARS = 128;

/** What a vector looks like, above its numbers; nothing for several vectors, or none. */
function Vector({ text }: { text: string }) {
  const drawn = useMemo(() => barsOf(text, PANE_BARS), [text]);
  if (!drawn) return null;
  const { name } = vector(text);
  return (
    <figure class="vector-figure">
      <svg class="bars" role="img" aria-label={name} viewBox={`0 0 ${PANE_BARS} 2`} preserveAspectRatio="none">
        <path d={drawn.path} />
      </svg>
      <figcaption class="muted">{`${name?.replace("vector of ", "")}, from ${short(drawn.least)} to ${short(drawn.most)}`}</figcaption>
    </figure>
  );
}

function short(number: number): string {
  return String(+number.toPrecision(4));
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

function WholeRow({ grid, row, writable }: { grid: GridController; row: number; writable: boolean }) {
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
      <div class="row-tools">
        <input
          type="search"
          placeholder="Search names and values"
          aria-label="Search names and values of the row"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
        {writable && found.key !== null && (
          <Button icon="edit" label="Edit the row as JSON" title="Edit the row as JSON (Shift+Enter)" bare tone="quiet" onClick={() => void beginRow(grid, found, "update")} />
        )}
      </div>
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
