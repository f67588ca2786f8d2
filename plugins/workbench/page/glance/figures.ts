/** What a summary says in words, and the filter rows that its values and bars make. */

import { filterOf, rowForCell } from "../grid/filter_rows.ts";
import { show, textOf } from "../wire/cells.ts";
import type { Bar, Cell, Filter, Summarized } from "../messages.ts";
import { whole } from "../ui/figures.ts";

/** A mark before a figure that is only estimated. */
export function about(summary: Summarized, figure: string): string {
  return figure in summary.approximate ? "≈ " : "";
}

export function shownText(cell: Cell): string {
  return show(cell).text;
}

/** A share of all rows as a percentage; empty without rows. */
export function share(rows: number, all: number): string {
  if (!all) return "";
  const percent = (100 * rows) / all;
  return percent > 0 && percent < 1 ? "< 1 %" : percent < 100 && percent > 99 ? "> 99 %" : `${Math.round(percent)} %`;
}

/** One line that says what a summary draws. */
export function sentence(summary: Summarized): string {
  const parts = [`${about(summary, "rows")}${whole(summary.rows)} rows`];
  if (summary.missing) parts.push(`${about(summary, "missing")}${whole(summary.missing)} without a value`);
  if (summary.distinct !== null) parts.push(`${about(summary, "distinct")}${whole(summary.distinct)} different values`);
  if (summary.minimum !== null) {
    const estimated = "minimum" in summary.approximate || "maximum" in summary.approximate ? "≈ " : "";
    parts.push(`${estimated}from ${shownText(summary.minimum)} to ${shownText(summary.maximum)}`);
  }
  const [first] = summary.values;
  if (first) parts.push(`most often ${shownText(first.cell)} (${about(summary, "values")}${whole(first.rows)})`);
  return parts.join(", ");
}

/** The rows of a filter that keep, or with `not` drop, one frequent value; null if no operator of the column does. */
export function rowsForValue(summary: Summarized, cell: Cell, not: boolean): Filter[] | null {
  const row = rowForCell(summary.column, cell, not);
  return row ? [row] : null;
}

/** The rows of a filter that select one bar; null if no operators of the column do, or not for the same element. */
export function rowsForBar({ column }: Summarized, bar: Bar): Filter[] | null {
  const can = new Set<string>(column.operators ?? []);
  const [lower, upper] = [textOf(bar.lower), textOf(bar.upper)];
  if (column.repeated || lower === null || upper === null || !can.has(">=") || !can.has("<")) return null;
  return [filterOf(column.name, ">=", lower), filterOf(column.name, "<", upper)];
}
