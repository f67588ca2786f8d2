/** Which rows of an object a grid shows, and in which order. */

import type { FilterRow, PageAsked, SortKey } from "../messages.ts";

export interface Query extends Pick<PageAsked, "match" | "span" | "tenant"> {
  readonly filters: readonly FilterRow[];
  readonly sort: readonly SortKey[];
}

export const EVERYTHING: Query = { filters: [], match: "all", sort: [], span: null, tenant: null };
