/** Rows of the filter: which inputs an operator takes, and the row that a cell makes. */

import { isCut, tagOf, textOf } from "../wire/cells.ts";
import type { Cell, Column, Filter } from "../messages.ts";
import type { FilterRow } from "../state/query.ts";

export type Inputs = "none" | "one" | "list" | "two";

const ALONE = new Set(["null", "not-null", "empty", "not-empty"]);

/** What an operator takes beside the column. */
export function inputs(op: string): Inputs {
  if (ALONE.has(op)) return "none";
  if (op === "between") return "two";
  return op === "in" || op === "not-in" ? "list" : "one";
}

type Op = Filter["op"];

/** A row of the filter on a column. */
export function filterOf(column: string, op: string, value: Filter["value"] = null): Filter {
  return { type: "filter", column, op: op as Op, value, group: null, case: null };
}

/** The texts of a row's values; none for a value that is not there yet. */
export function textsOf(row: FilterRow): readonly string[] {
  if (row.type === "raw") return row.text ? [row.text] : [];
  const values = Array.isArray(row.value) ? row.value : row.value == null ? [] : [row.value];
  return values.map((value) => String(value ?? ""));
}

/** The row that keeps, or with `not` drops, the rows with this value; null if the column has no such operator. */
export function rowForCell(column: Column, cell: Cell, not: boolean): Filter | null {
  const can = new Set<string>(column.operators ?? []);
  const first = (...ops: string[]) => ops.find((op) => can.has(op));
  const tag = tagOf(cell);
  const text = textOf(cell);
  if (text === null) return alone(column, not ? first("not-null") : first("null"));
  if (tag.startsWith("cut-") || tag === "json") return null;
  if (text === "") return alone(column, not ? first("not-empty") : first("empty", "="));
  const op = not ? first("!=", "not-contains") : first("=", "contains");
  return op ? filterOf(column.name, op, text) : null;
}

const ORDERED = new Set(["integer", "unsigned", "float", "decimal", "timestamp", "date", "time"]);

/** The row that keeps the rows from the least of these values on, up to the greatest, or both; null if there is none. */
export function rowForRange(column: Column, cells: readonly Cell[], ends: "from" | "to" | "both"): Filter | null {
  const op = { from: ">=", to: "<=", both: "between" }[ends];
  if (!ORDERED.has(column.kind) || column.repeated || !column.operators?.some((one) => one === op)) return null;
  const texts = cells.flatMap((cell) => (isCut(cell) ? [] : (textOf(cell) ?? [])));
  if (!texts.length) return null;
  const numbers = column.kind === "integer" || column.kind === "unsigned" ? BigInt : Number;
  const time = column.kind === "timestamp" || column.kind === "date" || column.kind === "time";
  const before = (one: string, other: string) => (time ? one < other : numbers(one) < numbers(other));
  const least = texts.reduce((one, other) => (before(other, one) ? other : one));
  const greatest = texts.reduce((one, other) => (before(one, other) ? other : one));
  return filterOf(column.name, op, { from: least, to: greatest, both: [least, greatest] }[ends]);
}

function alone(column: Column, op: string | undefined): Filter | null {
  return op ? filterOf(column.name, op, op === "=" ? "" : null) : null;
}

/** Whether a row says enough to be sent. */
export function complete(row: FilterRow): boolean {
  const kind = row.type === "raw" ? "one" : inputs(row.op);
  const texts = textsOf(row);
  if (kind === "two") return texts.length === 2 && texts.every((text) => text !== "");
  return kind === "none" || texts.length > 0;
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
