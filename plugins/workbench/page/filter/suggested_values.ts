/** Values that a filter may name: the most frequent ones of its column, and those that begin as what is typed. */

import { useEffect, useState } from "preact/hooks";
import { filterOf, inputs } from "../grid/filter_rows.ts";
import { type Entry, lastOf, stageOf } from "../grid/filter_entry.ts";
import type { GridController } from "../grid/controller.ts";
import type { Column } from "../messages.ts";
import { whole } from "../ui/figures.ts";
import { isCut, show, textOf } from "../wire/cells.ts";

export interface SuggestedValue {
  readonly value: string;
  /** What is shown for it. */
  readonly label: string;
  /** How many rows hold it; empty if that is not known. */
  readonly rows: string;
}

const MOST = 12;
/** Milliseconds without a key before the server is asked. */
const PAUSE = 150;
const EQUAL = new Set(["=", "!=", "in", "not-in"]);
const TRUTH: readonly SuggestedValue[] = ["true", "false"].map((value) => ({ value, label: value, rows: "" }));

/** Values of the entry's column under the rest of the filter. A server that cannot say has none, without an error. */
export function useSuggestedValues(grid: GridController, entry: Entry, column: Column | undefined, able: boolean): readonly SuggestedValue[] {
  const asks = stageOf(entry) === "value" && !entry.raw && EQUAL.has(entry.op) && !!column;
  const truth = asks && column.kind === "boolean";
  const needle = asks ? (inputs(entry.op) === "list" ? lastOf(entry.text).last : entry.text) : "";
  const search = column?.kind === "text" ? (column.operators.find((op) => op === "starts") ?? column.operators.find((op) => op === "contains")) : undefined;
  const place = asks ? JSON.stringify([entry.column, entry.at]) : "";
  const { filters, match } = grid.query.value;
  const [most, setMost] = useState<readonly SuggestedValue[]>([]);
  const [searched, setSearched] = useState<readonly SuggestedValue[]>([]);
  const read = (prefix: string, keep: (values: readonly SuggestedValue[]) => void) => {
    const stop = new AbortController();
    const others = match === "any" ? [] : filters.filter((_, number) => number !== entry.at);
    const sought = prefix && search ? [filterOf(entry.column, search, prefix)] : [];
    const timer = setTimeout(() => {
      grid.valuesOf(entry.column, [...others, ...sought], MOST, stop.signal).then(
        (summary) =>
          keep(
            summary.values.flatMap(({ cell, rows }) => {
              const value = textOf(cell);
              if (value === null || isCut(cell)) return [];
              return [{ value, label: value === "" ? "“”" : show(cell).text, rows: `${"values" in summary.approximate ? "≈ " : ""}${whole(rows)}` }];
            }),
          ),
        () => stop.signal.aborted || keep([]),
      );
    }, prefix ? PAUSE : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  };
  useEffect(() => {
    setMost([]);
    setSearched([]);
    return asks && able && !truth ? read("", setMost) : undefined;
  }, [place, able, truth, filters]);
  useEffect(() => (needle && asks && able && search ? read(needle, setSearched) : undefined), [place, needle, able, search]);
  if (!asks) return [];
  const lower = needle.toLowerCase();
  const all = truth ? TRUTH : [...most, ...searched.filter(({ value }) => !most.some((one) => one.value === value))];
  const at = ({ value }: SuggestedValue) => value.toLowerCase().indexOf(lower);
  const fitting = all.filter((one) => at(one) >= 0);
  return [...fitting.filter((one) => at(one) === 0), ...fitting.filter((one) => at(one) > 0)].slice(0, MOST);
}
