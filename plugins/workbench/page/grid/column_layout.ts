/** Which columns a grid shows, where and how wide: what a person arranged, over what the server has. */

import type { Column } from "../messages.ts";
import { isNumeric } from "../wire/cells.ts";
import type { RowHeight } from "./geometry.ts";
import type { GridColumn } from "./view.ts";

/** What is remembered for an object. Columns that it does not name follow in the server's order. */
export interface Arrangement {
  readonly order: readonly string[];
  readonly hidden: readonly string[];
  readonly pinned: readonly string[];
  readonly widths: Readonly<Record<string, number>>;
  /** A person has pinned or unpinned a column; until then the key is pinned. */
  readonly chosen?: boolean;
  readonly rows?: RowHeight;
}

export const UNTOUCHED: Arrangement = { order: [], hidden: [], pinned: [], widths: {} };

/** The width of a column that nothing was measured of. */
const USUAL = 160;

/** The order before a person arranges anything: the key, when, what, vectors, and what the server says of a row. */
export function usualOrder(columns: readonly Column[]): Column[] {
  const time =
    columns.find(({ role }) => role === "time") ??
    columns.find(({ kind, repeated, name }) => kind === "timestamp" && !repeated && !name.includes("."));
  const rank = (column: Column): number => {
    if (column.role === "key") return 0;
    if (column === time) return 1;
    if (column.role === "server") return 4;
    return (column.dimensions ?? null) === null ? 2 : 3;
  };
  return [...columns].sort((one, other) => rank(one) - rank(other));
}

export function arranged(columns: readonly Column[], { order }: Arrangement): Column[] {
  const known = new Map(columns.map((column) => [column.name, column]));
  const first = order.flatMap((name) => known.get(name) ?? []);
  const named = new Set(first.map((column) => column.name));
  const result = [...first];
  columns.forEach((column, at) => {
    if (named.has(column.name)) return;
    // a new column goes after the one that it follows on the server
    const before = columns[at - 1]?.name;
    const place = before ? result.findIndex((one) => one.name === before) + 1 : 0;
    result.splice(place, 0, column);
  });
  return result;
}

/** The columns that the grid shows: `first`, whatever a person arranged, and then pinned ones. */
export function visible(
  columns: readonly Column[],
  arrangement: Arrangement,
  widths: ReadonlyMap<string, number>,
  first = "",
): GridColumn[] {
  const hidden = new Set(arrangement.hidden);
  const pinned = new Set(arrangement.pinned);
  const shown = arranged(columns, arrangement).filter(({ name }) => name === first || !hidden.has(name));
  const made = shown.map((column, at) => ({
    name: column.name,
    type: column.type,
    mark: markOf(column),
    numeric: isNumeric(column) && !column.arrays?.length,
    sortable: column.sortable ?? false,
    pinned: column.name === first || (arrangement.chosen ? pinned.has(column.name) : column.role === "key" && at < 2),
    width: arrangement.widths[column.name] ?? widths.get(column.name) ?? USUAL,
  }));
  made.sort((one, other) => Number(other.name === first) - Number(one.name === first));
  return [...made.filter((column) => column.pinned), ...made.filter((column) => !column.pinned)];
}

const MARKS: Partial<Record<Column["kind"], string>> = {
  binary: "01",
  boolean: "✓",
  date: "d",
  decimal: ".0",
  float: ".0",
  geo: "xy",
  integer: "#",
  json: "{}",
  range: "..",
  text: "Aa",
  time: "t",
  timestamp: "t",
  unsigned: "#",
};

/** What the values of a column are, in at most two signs. */
export function markOf({ kind, role, repeated, dimensions }: Column): string {
  if (role === "key") return "id";
  if ((dimensions ?? null) !== null) return "→";
  return repeated ? "[]" : (MARKS[kind] ?? "");
}

export function resized(from: Arrangement, column: string, width: number): Arrangement {
  return { ...from, widths: { ...from.widths, [column]: width } };
}

/** Move a column before another; null moves it to the end. */
export function moved(from: Arrangement, all: readonly Column[], column: string, before: string | null): Arrangement {
  const order = arranged(all, from).map((one) => one.name).filter((name) => name !== column);
  const at = before === null ? order.length : order.indexOf(before);
  order.splice(at < 0 ? order.length : at, 0, column);
  return { ...from, order };
}

export function withHidden(from: Arrangement, columns: readonly string[], hide: boolean): Arrangement {
  const named = new Set(columns);
  const others = from.hidden.filter((name) => !named.has(name));
  return { ...from, hidden: hide ? [...others, ...columns] : others };
}

export function withPinned(from: Arrangement, shown: readonly GridColumn[], column: string, pin: boolean): Arrangement {
  const others = shown.filter((one) => one.pinned && one.name !== column).map((one) => one.name);
  return { ...from, chosen: true, pinned: pin ? [...others, column] : others };
}
