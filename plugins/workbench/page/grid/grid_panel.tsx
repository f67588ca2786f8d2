/** Rows of one object: tools, filter, notes, the grid, and a pane for whole values. */

import type { ComponentType } from "preact";
import { useSignalEffect } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Change, type RowDraft, changesOf, isTouched } from "../state/change_list.ts";
import type { Column, OpenConnection, RowSelection, TimeColumn } from "../messages.ts";
import { go, rename, step, write } from "../state/route.ts";
import { remedy } from "../state/store.ts";
import { Button, Blank, ErrorBox, asFailure } from "../ui/controls.tsx";
import { duration, whole } from "../ui/figures.ts";
import { isFocusFree } from "../ui/focus.ts";
import { offer, openMenu } from "../ui/menu.tsx";
import { toast } from "../ui/toasts.tsx";
import { MoreTools, Seldom, Toolbar } from "../ui/toolbar.tsx";
import { call } from "../wire/client.ts";
import { type CellEditor, editCell } from "./cell_editor.ts";
import { textOf, typed } from "../wire/cells.ts";
import { canCopy, copying } from "../state/object_menu.ts";
import { ColumnsPanel } from "./columns_panel.tsx";
import { GridController } from "./controller.ts";
import type { RowHeight } from "./geometry.ts";
import { cellItems, columnItems, showSimilar, whyNoEdit } from "./cell_items.ts";
import { isCopied } from "./clipboard.ts";
import { readTable } from "./copy_formats.ts";
import type { Pasted } from "./pasting.ts";
import { type Origin, type Query, sameRows } from "../state/query.ts";
import { HEAD, type Place, Selection } from "./selection.ts";
import { NotesLine } from "./notes_line.tsx";
import { Refreshing } from "./refreshing.tsx";
import { type PaneTab, type RowEditor, SidePane, beginRow } from "./side_pane.tsx";
import { Scope } from "./scope.tsx";
import { type ChartChoice, useChartChoice } from "./time_columns.ts";

/** Views that build on the grid and lie beside it; the page as a whole gives them. */
export interface Panels {
  readonly Filter: ComponentType<{ grid: GridController; open: OpenConnection; close: () => void }>;
  readonly Strip: ComponentType<{ grid: GridController; show: (column: string) => void }>;
  readonly Glance: ComponentType<{ grid: GridController; column: string; close: () => void }>;
  readonly Chart: ComponentType<{ grid: GridController; choice: ChartChoice; time: TimeColumn | null }>;
  readonly Changes: ComponentType<{ open: OpenConnection; object: string; applied: (changes: readonly Change[]) => void }>;
  readonly RowEditor: RowEditor;
  readonly Refused: ComponentType<{ pasted: Pasted; paste: () => void; close: () => void }>;
  readonly NewRow: ComponentType<{ grid: GridController; close: () => void }>;
  readonly Export: ComponentType<{
    open: OpenConnection;
    query: Query;
    columns: readonly Column[];
    shown: readonly string[];
    close: () => void;
  }>;
}

export function GridPanel({ open, rows, near, panels }: {
  open: OpenConnection;
  rows: RowSelection;
  near: Origin | null;
  panels: Panels;
}) {
  const { connection } = open;
  const { object } = rows;
  const host = useRef<HTMLDivElement>(null);
  const [pane, setPane] = useState<"" | "value" | "columns">(() => (changesOf(connection).rowDrafts.peek().has(object) ? "value" : ""));
  const [tab, setTab] = useState<PaneTab>(pane ? "row" : "value");
  const seen = useRef<PaneTab | "">("");
  seen.current = pane === "value" ? tab : "";
  const show = (shown: PaneTab) => (setPane("value"), setTab(shown));
  const turn = (to: "value" | "columns") => setPane((shown) => (shown === to ? "" : (setTab("value"), to)));
  const [filtering, setFiltering] = useState(false);
  const [adding, setAdding] = useState(false);
  const [exporting, setExporting] = useState(false);
  const [refused, setRefused] = useState<Pasted | null>(null);
  const [glancing, setGlancing] = useState(false);
  const [glanced, setGlanced] = useState("");
  const [time, setTime] = useState<TimeColumn | null>(null);
  const [tenants, setTenants] = useState(false);
  const summarizes = open.hooks.includes("summarize_column");
  const writable = open.hooks.includes("plan_change") && open.hooks.includes("apply_change");
  const writeAt = (made: GridController, place: Place, kind: RowDraft["kind"]) => {
    const row = made.rows.row(place.row);
    if (!row) toast("This row is still loading.");
    else void beginRow(made, row, kind).then((begun) => begun && show("row"));
  };
  const finds = open.hooks.includes("similar_rows");
  const ofColumn = (made: GridController, column: string) =>
    columnItems(made, column, () => setFiltering(true), summarizes && !made.near.peek() ? setGlanced : null);
  const ofCell = (made: GridController, place: Place) =>
    cellItems(made, place, writable, finds, {
      openPane: () => show("value"),
      compare: () => show("compare"),
      write: (kind) => writeAt(made, place, kind),
      edit: () => void edit(made, place, null),
    });
  const grid = useMemo(() => {
    const made: GridController = new GridController(connection, rows, near, {
      columnMenu: (column, anchor) => openMenu(`Column ${column}`, ofColumn(made, column), anchor),
      cellMenu: (place, anchor) => openMenu("Cell", ofCell(made, place), anchor),
      similar: finds ? (place) => showSimilar(made, place) : undefined,
      edit: (place, text) => writable && (edit(made, place, text), true),
      paste: writable ? (place, text, table) => paste(made, place, text, table, setRefused) : undefined,
      compose: writable ? (place) => edit(made, place, "", true) : undefined,
      openPane: () => {
        const area = made.selection.peek().rectangle(1);
        if (area && area.bottom > area.top && seen.current !== "compare") show("compare");
        else turn("value");
      },
      editRow: writable ? (place) => writeAt(made, place, "update") : undefined,
    });
    made.start(); // before anything is drawn: the server works meanwhile
    return made;
  }, [connection, object]);
  useEffect(() => {
    if (!sameRows(rows, near, grid.waiting.peek() ?? grid.query.peek(), grid.near.peek())) grid.visit(rows, near);
  }, [rows, near]);
  const waits = grid.waiting.value !== null;
  useSignalEffect(() => {
    const shown = { view: "rows" as const, connection, rows: grid.waiting.value ?? grid.query.value, near: grid.near.value };
    if (grid.query.value === grid.addressed) rename(shown);
    else step(shown);
  });
  useLayoutEffect(() => {
    host.current?.append(grid.view.element);
    if (isFocusFree()) grid.view.focus(); // the arrows go through the rows at once
    return () => grid.close();
  }, [grid]);
  useEffect(() => {
    const { view } = grid;
    return offer(() => {
      const { active } = view.selection;
      const name = view.names[active.column];
      return [
        ...(active.row === HEAD ? [] : [{ kind: "cell", items: ofCell(grid, active) }]),
        ...(name === undefined ? [] : [{ kind: `column ${name}`, items: ofColumn(grid, name) }]),
      ];
    });
  }, [grid]);
  const arrived = grid.columns.value.length > 0 || grid.status.value.failed !== null;
  useEffect(() => {
    // only the columns that tell time, and whether there are tenants, are asked for here: the rows come first
    const able = open.capabilities.includes("tenants");
    if (!arrived || !(able || open.capabilities.includes("time-range"))) return;
    const know = (column: TimeColumn | null, apart: boolean) => (setTime(column), setTenants(able && apart));
    call("describe", { connection, object }).then(
      (described) => know(described.time ?? null, described.tenants ?? true),
      () => know(null, true), // the grid says why the object cannot be read
    );
  }, [connection, object, arrived]);
  useEffect(() => {
    if (!pane) return;
    // the pane takes room from the grid: the cell that it tells of stays in view
    const reveal = new ResizeObserver(() => grid.view.select(grid.view.selection, false));
    reveal.observe(grid.view.element);
    return () => reveal.disconnect();
  }, [grid, pane]);
  const ask = (part: Partial<Query>) => grid.ask({ ...grid.query.peek(), ...part });
  const status = grid.status.value;
  const query = grid.query.value;
  /** The rows drawn are those of the question before. */
  const stale = status.loading && !grid.rows.columns.length && grid.columns.value.length > 0;
  const empty = status.failed !== null && !grid.rows.columns.length;
  const { before } = grid;
  const pills = (grid.filter.value?.rows ?? query.filters).length;
  const filterShown = filtering || waits || pills > 0;
  const clear = () => {
    grid.filter.value = null;
    ask({ filters: [] });
  };
  const closePane = () => {
    setPane("");
    grid.view.focus();
    const draft = changesOf(connection).rowDrafts.peek().get(object);
    if (draft && isTouched(draft)) toast("The row that is being written is kept.", "plain", { label: "Go on", run: () => show("row") });
  };
  const chart = useChartChoice(connection, object, grid.columns.value);
  const charted = summarizes && !grid.near.value && chart.all.length > 0;
  const none = !status.loading && status.failed === null && status.total === 0;
  return (
    <div class="grid-panel">
      <Toolbar label="Grid tools">
        <h1 class="grow" title={object}>{object}</h1>
        <Button
          icon="filter"
          label={query.filters.length ? `Filter (${query.filters.length})` : "Filter"}
          pressed={filterShown}
          onClick={() => {
            if (filtering && !pills) return setFiltering(false);
            setFiltering(true);
            grid.called.value = true;
          }}
        />
        {grid.near.value && (
          <Button
            icon="close"
            label={`similar to ${grid.nearId.value || "a row"}`}
            title="Show all rows"
            onClick={() => go({ view: "rows", connection, rows: query })}
          />
        )}
        <Scope tenants={tenants} time={time} range={status.time} query={query} ask={ask} />
        <span class="joined">
          <Button icon="refresh" label="Refresh" bare busy={status.loading} onClick={() => ask({})} />
          <Refreshing grid={grid} />
        </span>
        <Seldom>
          {charted && <Button icon="chart" label="Over time" bare="widest" pressed={!!chart.column} onClick={chart.flip} />}
          {summarizes && !grid.near.value && (
            <Button icon="bars" label="At a glance" bare="widest" pressed={glancing} onClick={() => setGlancing(!glancing)} />
          )}
        </Seldom>
        <Button icon="columns" label="Columns" bare="wide" pressed={pane === "columns"} onClick={() => turn("columns")} />
        <Seldom>
          <Button icon="rows" label="Row height" bare="widest" onClick={(event) => heightMenu(grid, event.currentTarget as Element)} />
          <Button icon="pane" label="Side pane" bare="widest" pressed={pane === "value"} onClick={() => turn("value")} />
        </Seldom>
        {writable && <Button icon="add" label="New row" bare="wide" onClick={() => setAdding(true)} />}
        {open.hooks.includes("export_rows") && !grid.near.value && (
          <Button icon="export" label="Export" bare="wide" onClick={() => setExporting(true)} />
        )}
        <Seldom>
          {canCopy(open) && !grid.near.value && (
            <Button icon="copy" label="Copy to a connection" bare onClick={() => (copying.value = { connection, rows: grid.shown })} />
          )}
          {open.hooks.includes("plan_change") && !grid.near.value && (
            <Button icon="import" label="Import" bare="wide" onClick={() => go({ view: "import", connection: open.connection, object: rows.object })} />
          )}
          <a class="button plain bare" href={write({ view: "structure", connection, object })} aria-label="Structure" title="Structure">
            <StructureIcon />
          </a>
        </Seldom>
        <MoreTools />
      </Toolbar>
      {waits && (
        <p class="banner warn" role="status">
          The filter of this address is not sent until you apply it; the rows below are not filtered.
        </p>
      )}
      {filterShown && <panels.Filter grid={grid} open={open} close={() => setFiltering(false)} />}
      {status.failed !== null && (
        <ErrorBox
          error={status.failed}
          retry={() => grid.retry()}
          act={(wanted) => void remedy(wanted, () => grid.retry())}
        >
          {empty && before && <Button label="Show the rows before" icon="back" tone="primary" onClick={() => grid.ask(before.query, before.near)} />}
        </ErrorBox>
      )}
      <div class={pane ? "grid-and-pane with-pane" : "grid-and-pane"}>
        <div class="grid-column">
          {charted && chart.column && !empty && <panels.Chart grid={grid} choice={chart} time={time} />}
          {glancing && !grid.near.value && <panels.Strip grid={grid} show={setGlanced} />}
          <div class={stale ? "grid-host stale" : "grid-host"} aria-busy={stale} ref={host}>
            {empty && (
              <Blank icon="warning" title="These rows could not be read">
                {before && <p>The rows shown before belong to another question.</p>}
              </Blank>
            )}
            {none && (
              <Blank icon="table" title={query.filters.length ? "No row matches the filter" : grid.near.value ? "No row is similar" : "There are no rows"}>
                {query.filters.length > 0 && <Button label="Clear the filter" onClick={clear} />}
              </Blank>
            )}
          </div>
        </div>
        {pane === "value" && <SidePane grid={grid} tab={tab} choose={setTab} close={closePane} writable={writable} Editor={panels.RowEditor} />}
        {pane === "columns" && <ColumnsPanel grid={grid} close={closePane} />}
      </div>
      <panels.Changes open={open} object={object} applied={(changes) => void grid.sent(changes)} />
      <StatusLine grid={grid} open={open} />
      {glanced && <panels.Glance grid={grid} column={glanced} close={() => setGlanced("")} />}
      {adding && <panels.NewRow grid={grid} close={() => setAdding(false)} />}
      {refused && <panels.Refused pasted={refused} paste={() => grid.put(refused.edits)} close={() => setRefused(null)} />}
      {exporting && (
        <panels.Export
          open={open}
          query={grid.shown}
          columns={grid.columns.value}
          shown={grid.view.names}
          close={() => setExporting(false)}
        />
      )}
    </div>
  );
}

function StructureIcon() {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d="M3 3h4v3H3zM9 10h4v3H9zM5 6v5.500h4" />
    </svg>
  );
}

/** Where the cursor is, how many rows there are, and how long the last page took. */
function StatusLine({ grid, open }: { grid: GridController; open: OpenConnection }) {
  const [counted, setCounted] = useState("");
  const { total, exact, seconds, walking, loading, failed } = grid.status.value;
  const selection = grid.selection.value;
  useSignalEffect(() => {
    grid.query.value;
    setCounted("");
  });
  const count = async () => {
    try {
      const { connection, shown } = grid;
      const query = grid.query.peek();
      const answer = await call("count", { connection, rows: { ...shown, sort: [] } });
      if (grid.query.peek() !== query) return; // other rows are shown by now
      setCounted(whole(answer.rows));
      for (const note of answer.notes) toast(note.reason);
    } catch (error) {
      toast(asFailure(error).message, "bad");
    }
  };
  const area = selection.rectangle(grid.columns.value.length);
  grid.version.value; // edits, too
  const here = selection.active.row === HEAD ? undefined : grid.at(selection.active);
  const why = here ? grid.rows.misfitOf(here.row, here.column.name) : "";
  const size = area && !selection.single ? `${whole(area.bottom - area.top + 1)} × ${area.right - area.left + 1} cells` : "";
  return (
    <div class="status-line">
      <span>
        {counted ? `${counted} rows` : total === null ? "" : `${grid.near.value ? "the nearest " : exact ? "" : "at least "}${whole(total)} rows`}
      </span>
      {open.hooks.includes("count_rows") && !counted && !loading && failed === null && (total === null || !exact) && (
        <Button icon="sum" label="Count exactly" tone="quiet" onClick={() => void count()} />
      )}
      <span class="place">{size || (area ? `row ${whole(area.top + 1)}` : "")}</span>
      {why && <span class="field-error" role="status">{here?.column.name} {why}</span>}
      <NotesLine notes={grid.status.value.notes} />
      {walking !== null && <span role="status">passing row {whole(walking)} …</span>}
      {loading ? <Loading stop={() => grid.stop()} /> : <span class="muted">{seconds ? duration(seconds) : ""}</span>}
    </div>
  );
}

/** Seconds after which waiting is a matter of its own. */
const PATIENCE = 3;

/** Rows are awaited; after a while for how long, and a way not to. */
function Loading({ stop }: { stop: () => void }) {
  const [waited, setWaited] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setWaited((before) => before + 1), 1_000);
    return () => clearInterval(timer);
  }, []);
  if (waited < PATIENCE) return <span class="muted">loading …</span>;
  return (
    <>
      <Button label="Stop waiting" tone="quiet" onClick={stop} />
      <span class="muted">waiting for {waited} s …</span>
    </>
  );
}

const HEIGHTS: readonly (readonly [RowHeight, string])[] = [
  ["compact", "Compact rows"],
  ["normal", "Normal rows"],
  ["tall", "Tall rows: three lines"],
];

function heightMenu(grid: GridController, button: Element): void {
  const { rows = "normal" } = grid.arrangement.peek();
  openMenu(
    "Row height",
    HEIGHTS.map(([height, label]) => ({ label, checked: height === rows, run: () => grid.heighten(height) })),
    (button.checkVisibility() ? button : (document.activeElement ?? button)).getBoundingClientRect(), // or in a menu
  );
}

/** Edit a cell in place; null if it has said why that cannot be. */
function edit(
  grid: GridController,
  place: Place,
  text: string | null,
  composing = false,
): CellEditor | null {
  const why = whyNoEdit(grid, place);
  const found = grid.at(place);
  if (why || !found) {
    toast(why);
    return null;
  }
  const { row, column, cell: before } = found;
  const old = textOf(before) ?? "";
  if (text === null && /[\n\r]/.test(old)) {
    toast("This value has several lines: edit it in the side pane.");
    return null;
  }
  const begin = { text: text ?? old, typed: text !== null, composing };
  return editCell(() => grid.view.where(place), `New value of ${column.name}`, begin, (edited) => {
    if (edited && (edited.text !== old || (textOf(before) === null && edited.text !== ""))) {
      changesOf(grid.connection).edit(grid.object, row, column.name, before, typed(edited.text, column, before, grid.rows.likeOf(column.name)));
    }
    const next = edited?.next ?? "stay";
    if (next === "stay") return edited ? undefined : grid.view.focus();
    const to = { row: place.row + (next === "down" ? 1 : 0), column: place.column + STEPS[next] };
    const inside = to.row < grid.rows.count && to.column >= 0 && to.column < grid.view.names.length;
    grid.view.select(new Selection(inside ? to : place));
  });
}

const STEPS = { down: 0, right: 1, left: -1 };

/** Columns whose values may have several lines. */
const LONG = new Set(["text", "json", "other"]);

/**
 * Begin to edit with a text from the clipboard. A table changes the cells from the active one on, and a single value
 * all that are selected; several lines are one text if a text can stand there and no table was copied.
 */
function paste(grid: GridController, place: Place, text: string, copiedTable: boolean, review: (pasted: Pasted) => void): void {
  const one = text.replace(/\r?\n$/, "");
  const selection = grid.selection.peek();
  const area = selection.rectangle(grid.view.names.length);
  const lines = /[\n\r]/.test(one);
  const table = one.includes("\t") || (lines && (copiedTable || isCopied(text) || !selection.single || !LONG.has(grid.at(place)?.column.kind ?? "")));
  if (table) void grid.fill(place, readTable(text), review);
  else if (selection.single || !area) edit(grid, place, one);
  else {
    const line = new Array<string>(area.right - area.left + 1).fill(one);
    const down = Math.min(area.bottom, grid.rows.count - 1) - area.top + 1;
    void grid.fill({ row: area.top, column: area.left }, new Array<string[]>(down).fill(line), review);
  }
}
