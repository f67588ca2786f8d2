/** What can be done with a cell, a row or a column: their menus show it, and the palette finds it. */

import { type RowDraft, changesOf, whyNoChange } from "../state/change_list.ts";
import type { Cell, Column, Filter, GridRow } from "../messages.ts";
import { go } from "../state/route.ts";
import { asFailure } from "../ui/controls.tsx";
import { type MenuItem, openMenu } from "../ui/menu.tsx";
import { toast } from "../ui/toasts.tsx";
import { isCut } from "../wire/cells.ts";
import { copyArea } from "./clipboard.ts";
import type { GridController } from "./controller.ts";
import { rowForCell, rowForRange } from "./filter_rows.ts";
import type { Place, Rectangle } from "./selection.ts";

type Offered = MenuItem | "line";

/** What can be done with a column. */
export function columnItems(
  grid: GridController,
  name: string,
  filter: () => void,
  glance: ((column: string) => void) | null,
): readonly Offered[] {
  const column = grid.column(name);
  if (!column) return [];
  const pinned = grid.view.pinned.has(name);
  const cannot = { disabled: !column.sortable, hint: column.reasons?.sort };
  return [
    { label: "Sort ascending", run: () => grid.sort(name, false, false), ...cannot },
    { label: "Sort descending", run: () => grid.sort(name, false, true), ...cannot },
    { label: "Add to the sort", run: () => grid.sort(name, true), ...cannot },
    "line",
    {
      label: "Filter by this column",
      icon: "filter",
      disabled: !column.operators?.length,
      hint: column.reasons?.filter,
      run: () => {
        filter();
        grid.writeFilter(name);
      },
    },
    ...(glance ? [{ label: "At a glance", icon: "bars" as const, run: () => glance(name) }] : []),
    { label: pinned ? "Unpin" : "Pin to the left", run: () => grid.pin(name, !pinned) },
    { label: "Fit to the content", run: () => grid.fit(name) },
    { label: "Move left", run: () => grid.view.shift(name, -1) },
    { label: "Move right", run: () => grid.view.shift(name, 1) },
    { label: "Hide", run: () => grid.hide([name], true) },
  ];
}

/** What keeps the rows in a range: that of the selected cells of a column, or from or up to the value of one. */
function ranges(grid: GridController, column: Column, cell: Cell, area: Rectangle): MenuItem[] {
  const item = (label: string, row: Filter | null): MenuItem[] => (row ? [{ label, disabled: grid.widens, hint: hintOf(grid), run: () => grid.narrow([row]) }] : []);
  if (area.left !== area.right) return [];
  if (area.top === area.bottom) {
    return [...item("Only from this value on", rowForRange(column, [cell], "from")), ...item("Only up to this value", rowForRange(column, [cell], "to"))];
  }
  if (!rowForRange(column, [cell], "both")) return [];
  const run = async () => {
    const table = await grid.table(area, false).catch((error: unknown) => void toast(asFailure(error).message, "bad"));
    const row = table && rowForRange(column, table.rows.flat(), "both");
    if (row) grid.narrow([row]);
    else if (table) toast("These values have no order, so they make no range.", "bad");
  };
  return [{ label: "Only this range", disabled: grid.widens, hint: hintOf(grid), run: () => void run() }];
}

function hintOf(grid: GridController): string | undefined {
  return grid.widens ? "The filter matches any of its rows, so a further one would show more rows." : undefined;
}

/** What can be done with a cell, with its row, and with what is selected around it. */
export function cellItems(
  grid: GridController,
  place: Place,
  writable: boolean,
  finds: boolean,
  acts: { readonly openPane: () => void; readonly compare: () => void; readonly write: (kind: RowDraft["kind"]) => void; readonly edit: () => void },
): readonly Offered[] {
  const found = grid.at(place);
  const area = grid.selection.peek().rectangle(grid.view.names.length);
  if (!found || !area) return [];
  const { openPane, compare, write, edit } = acts;
  const by = (not: boolean): MenuItem => {
    const row = rowForCell(found.column, found.cell, not);
    return {
      label: not ? "Filter it out" : "Filter by this value",
      icon: not ? undefined : "filter",
      disabled: !row || grid.widens,
      hint: row ? hintOf(grid) : (found.column.reasons?.filter ?? "This column has no fitting operator."),
      run: () => {
        if (row) grid.narrow([row]);
      },
    };
  };
  const cannot = writable ? whyNoEdit(grid, place) : "This driver cannot change rows.";
  const erasable = writable && found.row.key !== null;
  return [
    { label: "Copy", icon: "copy", run: () => void copyArea(grid, area, "text") },
    { label: "Copy rows as JSON", run: () => void copyArea(grid, area, "json", true) },
    { label: "Copy as CSV", run: () => void copyArea(grid, area, "csv") },
    "line",
    by(false),
    by(true),
    ...ranges(grid, found.column, found.cell, area),
    { label: "Show whole value", icon: "pane", run: openPane },
    ...(area.bottom > area.top ? [{ label: `Compare rows ${area.top + 1} and ${area.bottom + 1}`, icon: "columns" as const, run: compare }] : []),
    ...(finds ? similarItems(grid, found.row) : []),
    "line",
    {
      label: "Edit",
      icon: "edit",
      disabled: !!cannot,
      hint: cannot,
      run: edit,
    },
    { label: "Edit the row as JSON", disabled: !writable || found.row.key === null, hint: writable ? undefined : cannot, run: () => write("update") },
    { label: "Duplicate the row", icon: "copy", disabled: !writable, hint: writable ? undefined : cannot, run: () => write("insert") },
    {
      label: "Set to null",
      disabled: !!cannot,
      hint: cannot,
      run: () => changesOf(grid.connection).edit(grid.object, found.row, found.column.name, found.cell, null),
    },
    {
      label: area.bottom > area.top ? `Delete ${area.bottom - area.top + 1} rows` : "Delete the row",
      icon: "remove",
      danger: true,
      disabled: !erasable,
      run: () => void grid.erase(area),
    },
  ];
}

/** Ask for the rows that are similar to a row; Back leads to those that are shown. */
function goNear(grid: GridController, row: GridRow, column: string | null): void {
  if (row.key === null) return toast("This row has no key, so no row can be compared with it.");
  go({ view: "rows", connection: grid.connection, rows: { ...grid.query.peek(), sort: [] }, near: { key: row.key, column } });
}

/** The names of an object's vectors. */
function vectorsOf(columns: readonly Column[]): string[] {
  return columns
    .filter(({ dimensions }) => dimensions !== undefined && dimensions !== null)
    .flatMap(({ name, members }) => (members?.length ? members.map((member) => `${name}.${member}`) : [name]));
}

/** One entry for each vector; none for rows without vectors. */
function similarItems(grid: GridController, row: GridRow): MenuItem[] {
  const vectors = vectorsOf(grid.columns.peek());
  const names = vectors.length > 1 ? vectors : vectors.map(() => null);
  return names.map((column) => ({
    label: column === null ? "Similar rows" : `Similar rows by ${column}`,
    icon: "search",
    disabled: row.key === null,
    hint: row.key === null ? "This row has no key." : undefined,
    run: () => goNear(grid, row, column),
  }));
}

/** What the key does: rows similar by the only vectors, or a choice among several. */
export function showSimilar(grid: GridController, place: Place): void {
  const found = grid.at(place);
  if (!found) return toast("This row is still loading.");
  const items = similarItems(grid, found.row);
  if (!items.length) return toast("These rows have no vectors.");
  if (items.length > 1) return openMenu("Similar rows", items, grid.view.where(place) ?? new DOMRect());
  if (items[0].disabled) toast(items[0].hint ?? "");
  else items[0].run();
}

/** Why a cell cannot be edited; empty if it can. */
export function whyNoEdit(grid: GridController, place: Place): string {
  const found = grid.at(place);
  if (!found) return "This row is still loading.";
  const { column, row, cell } = found;
  const why = whyNoChange(row, column);
  if (why) return why[0].toUpperCase() + why.slice(1);
  return isCut(cell) ? "Only the beginning of this value is here. Edit it in the side pane, which fetches all of it." : "";
}
