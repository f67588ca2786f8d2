/** Rows of the filter: which inputs an operator takes, and the row that a cell makes. */

import { tagOf, textOf } from "../grid/cells.ts";
import type { Cell, Column, FilterRow } from "../messages.ts";

export type Inputs = "none" | "one" | "list" | "two";

const ALONE = new Set(["null", "not-null", "empty", "not-empty"]);

/** What an operator takes beside the column. */
export function inputs(op: string): Inputs {
  if (ALONE.has(op)) return "none";
  if (op === "between") return "two";
  return op === "in" || op === "not-in" ? "list" : "one";
}

/** The row for another operator: values are kept where it takes such. */
export function withOperator(row: FilterRow, op: string): FilterRow {
  const values = row.value != null && row.value !== "" ? [row.value] : (row.values ?? []);
  switch (inputs(op)) {
    case "none":
      return { ...row, op, value: null, values: [] };
    case "one":
      return { ...row, op, value: values[0] || null, values: [] };
    case "two":
      return { ...row, op, value: null, values: [values[0] ?? "", values[1] ?? ""] };
    default:
      return { ...row, op, value: null, values };
  }
}

/** The row that keeps, or with `not` drops, the rows with this value; null if the column has no such operator. */
export function rowForCell(column: Column, cell: Cell, not: boolean): FilterRow | null {
  const can = new Set<string>(column.operators ?? []);
  const first = (...ops: string[]) => ops.find((op) => can.has(op));
  const tag = tagOf(cell);
  const text = textOf(cell);
  if (text === null) return alone(column, not ? first("not-null") : first("null"));
  if (tag.startsWith("cut-") || tag === "json") return null;
  if (text === "") return alone(column, not ? first("not-empty") : first("empty", "="));
  const op = not ? first("!=", "not-contains") : first("=", "contains");
  return op ? { column: column.name, op, value: text } : null;
}

function alone(column: Column, op: string | undefined): FilterRow | null {
  return op ? { column: column.name, op, value: op === "=" ? "" : null } : null;
}

/** How much of a row is filled in: without a value it is no filter, and with one of two it is none yet. */
export type Filled = "nothing" | "half" | "all";

export function filled(row: FilterRow): Filled {
  const kind = row.column ? inputs(row.op ?? "=") : "one";
  if (kind === "none") return "all";
  if (kind === "one") return row.value == null || (!row.column && !row.value) ? "nothing" : "all";
  if (kind === "list") return row.values?.length ? "all" : "nothing";
  const count = (row.values ?? []).filter((value) => value !== "").length;
  return count === 2 ? "all" : count ? "half" : "nothing";
}

/** Whether a row says enough to be sent. */
export function complete(row: FilterRow): boolean {
  return filled(row) === "all";
}

/** A list as a person types it: commas between values, quotes around one that has a comma. */
export function splitList(text: string): string[] {
  const found: string[] = [];
  const parts = /\s*(?:"((?:[^"]|"")*)"|([^,]*))\s*(?:,|$)/y;
  while (parts.lastIndex < text.length) {
    const part = parts.exec(text);
    if (!part) break;
    const value = part[1] === undefined ? part[2].trim() : part[1].replaceAll('""', '"');
    if (value !== "" || part[1] !== undefined) found.push(value);
  }
  return found;
}

export function joinList(values: readonly string[]): string {
  return values.map((value) => (/[,"]|^\s|\s$|^$/.test(value) ? `"${value.replaceAll('"', '""')}"` : value)).join(", ");
}
