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

export const TIMES: ReadonlySet<string> = new Set(["timestamp", "date", "time"]);
const ORDERED: ReadonlySet<string> = new Set([...TIMES, "integer", "unsigned", "float", "decimal"]);
const ZONE = /(Z|[+-]\d\d:?\d\d)$/;

/** Whether a value comes before another one in a column that has an order; null if they have none. */
function precedes(one: string, other: string, kind: string): boolean | null {
  if (kind === "time") return one < other;
  const [first, second] = [rankOf(one, kind), rankOf(other, kind)];
  if (first === null || second === null) return null;
  return first === second ? one.replace(ZONE, "") < other.replace(ZONE, "") : first < second; // ranks end at milliseconds
}

/** The place of a number or an instant; whole numbers keep all digits. */
function rankOf(text: string, kind: string): number | bigint | null {
  if (/^-?\d+$/.test(text)) return BigInt(text);
  const number = text.trim() ? Number(text) : NaN;
  const rank = Number.isNaN(number) && TIMES.has(kind) ? Date.parse(text) : number;
  return Number.isNaN(rank) ? null : rank;
}

/**
 * The row that keeps the rows from the least of these values on, up to the greatest, or both; null if there is none, or
 * the values have no order.
 */
export function rowForRange(column: Column, cells: readonly Cell[], ends: "from" | "to" | "both"): Filter | null {
  const op = { from: ">=", to: "<=", both: "between" }[ends];
  if (!ORDERED.has(column.kind) || column.repeated || !column.operators?.some((one) => one === op)) return null;
  const texts = cells.flatMap((cell) => (isCut(cell) ? [] : (textOf(cell) ?? [])));
  if (!texts.length) return null;
  let [least, greatest] = [texts[0], texts[0]];
  for (const text of texts) {
    const [below, above] = [precedes(text, least, column.kind), precedes(greatest, text, column.kind)];
    if (below === null || above === null) return null;
    if (below) least = text;
    if (above) greatest = text;
  }
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
