/** Which rows of an object a grid shows, and in which order. */

import type { FilterRow, RowsAsked, SortKey } from "../messages.ts";

export interface Query extends Omit<RowsAsked, "connection" | "object" | "filters" | "sort"> {
  readonly filters: readonly FilterRow[];
  readonly sort: readonly SortKey[];
}

export const EVERYTHING: Query = {
  filters: [],
  match: "all",
  sort: [],
  columns: null,
  span: null,
  tenant: null,
  revision: "",
  now: null,
  residual: null,
};

/** What a saved query asks for. */
export function queryOf({ connection: _, object: __, ...rows }: RowsAsked): Query {
  return { ...EVERYTHING, ...rows, filters: rows.filters ?? [], sort: rows.sort ?? [] };
}
