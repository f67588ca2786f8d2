/** Which rows of an object a grid shows: a selection as the host spells it, in messages and in the page's address. */

import type { Filter, RawQuery, RowSelection, Sort } from "../messages.ts";

/** The row that the rows of a grid are similar to, and the vectors that this goes by; null for the only ones. */
export interface Origin {
  readonly key: string;
  readonly column: string | null;
}

/** One row of the filter. */
export type FilterRow = Filter | RawQuery;

/** A selection with all of its parts. */
export type Query = Required<RowSelection>;

const NO_CHOICE: Query = {
  object: "",
  filters: [],
  match: "all",
  sort: [],
  columns: null,
  tenant: null,
  revision: "",
  span: {},
  now: null,
  residual: null,
};

/** A selection with all of its parts. */
export function queryOf(rows: RowSelection): Query {
  return { ...NO_CHOICE, ...rows };
}

/** The JSON of a selection, without the parts that choose nothing. */
export function spell(rows: RowSelection): string {
  const usual = Object.fromEntries(Object.entries(NO_CHOICE).map(([part, value]) => [part, JSON.stringify(value)]));
  return JSON.stringify(Object.fromEntries(Object.entries(rows).filter(([part, value]) => JSON.stringify(value) !== usual[part])));
}

/** The selection of a JSON text, which a stranger may have written; null if it is none. Values become texts. */
export function readSelection(text: string): RowSelection | null {
  try {
    const rows = JSON.parse(text, (name, value, context?: { source?: string }) =>
      typeof value === "number" && name !== "residual" ? (context?.source ?? String(value)) : value,
    );
    return isSelection(rows) ? rows : null;
  } catch {
    return null;
  }
}

/** Rows of two addresses are the same. */
export function sameRows(one: RowSelection, near: Origin | null, other: RowSelection, also: Origin | null): boolean {
  return spell(one) === spell(other) && near?.key === also?.key && (near?.column ?? null) === (also?.column ?? null);
}

/** Whether a value has the parts that the page itself reads; the host judges the rest. */
function isSelection(value: unknown): value is RowSelection {
  if (!isRecord(value) || typeof value.object !== "string" || !value.object) return false;
  const { filters = [], sort = [], columns = null, span = {}, tenant = null } = value;
  const texts = (list: unknown) => Array.isArray(list) && list.every((text) => typeof text === "string");
  return (
    Array.isArray(filters) && filters.every(isFilter) &&
    Array.isArray(sort) && sort.every((key): key is Sort => isRecord(key) && typeof key.column === "string") &&
    (columns === null || texts(columns)) && isRecord(span) && (tenant === null || typeof tenant === "string")
  );
}

function isFilter(row: unknown): row is FilterRow {
  if (!isRecord(row)) return false;
  const { type, text, column, op } = row;
  return type === "raw" ? typeof text === "string" : type === "filter" && [column, op].every((part) => typeof part === "string");
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
