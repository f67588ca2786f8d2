/** A filter row while it is typed: first its column, then its operator, then its values. */

import type { Column, Filter, Operator } from "../messages.ts";
import type { FilterRow } from "../state/query.ts";
import { TIMES, filterOf, inputs, joinList, splitList, textsOf } from "./filter_rows.ts";

export interface Entry {
  /** The number of the row that is edited; null for a new one. */
  readonly at: number | null;
  /** Whether it is a text in the server's own syntax. */
  readonly raw: boolean;
  /** Empty while it is typed, as is the operator. */
  readonly column: string;
  readonly op: Operator | "";
  /** The lower one of two values; null while it is typed. */
  readonly low: string | null;
  /** What stands in the field. */
  readonly text: string;
  /** No text stands for the empty text, not for no value. */
  readonly empty: boolean;
  readonly group: string | null;
  readonly case: boolean | null;
  /** The number of a row that comes into the same group. */
  readonly partner: number | null;
}

export const NO_ENTRY: Entry = {
  at: null,
  raw: false,
  column: "",
  op: "",
  low: null,
  text: "",
  empty: false,
  group: null,
  case: null,
  partner: null,
};

export type Stage = "column" | "operator" | "low" | "value" | "done";

export function stageOf({ raw, column, op, low }: Entry): Stage {
  if (raw) return "value";
  if (!column) return "column";
  if (!op) return "operator";
  const kind = inputs(op);
  if (kind === "none") return "done";
  return kind === "two" && low === null ? "low" : "value";
}

/** The entry that edits a row. */
export function entryOf(row: FilterRow, at: number): Entry {
  if (row.type === "raw") return { ...NO_ENTRY, at, raw: true, text: row.text };
  const { column, op, group, case: cased } = row;
  const texts = textsOf(row);
  const two = inputs(op) === "two";
  const text = inputs(op) === "list" ? joinList(texts) : (texts[two ? 1 : 0] ?? "");
  return { ...NO_ENTRY, at, column, op, low: two ? (texts[0] ?? null) : null, text, empty: texts[0] === "", group: group ?? null, case: cased ?? null };
}

/** The row that an entry says; null while a part of it is missing. */
export function rowOf(entry: Entry): FilterRow | null {
  const { raw, column, op, low, text, empty, group } = entry;
  if (raw) return text ? { type: "raw", text } : null;
  if (!column || !op) return null;
  const list = splitList(text);
  const values: Record<ReturnType<typeof inputs>, Filter["value"] | undefined> = {
    none: null,
    one: text || (empty ? "" : undefined),
    list: list.length ? list : undefined,
    two: low && text ? [low, text] : undefined,
  };
  const value = values[inputs(op)];
  return value === undefined ? null : { ...filterOf(column, op, value), group, case: entry.case };
}

/** The rows of a filter with the one that is typed, if it is whole. */
export function rowsWith(rows: readonly FilterRow[], entry: Entry): readonly FilterRow[] {
  const row = rowOf(entry);
  if (!row) return rows;
  const { at, group, partner } = entry;
  const joined = rows.map((one, number) => (number === partner && one.type === "filter" ? { ...one, group } : one));
  return at === null ? [...joined, row] : joined.map((one, number) => (number === at ? row : one));
}

const WORDS: Readonly<Record<Operator, string>> = {
  "=": "is",
  "!=": "is not",
  "<": "less than",
  "<=": "at most",
  ">": "more than",
  ">=": "at least",
  between: "between",
  contains: "contains",
  "not-contains": "does not contain",
  starts: "starts with",
  ends: "ends with",
  regex: "matches the pattern",
  in: "is one of",
  "not-in": "is none of",
  null: "is null",
  "not-null": "is not null",
  empty: "is empty",
  "not-empty": "is not empty",
  "in-box": "is in the box",
  near: "is near",
};
const OF_TIME: Partial<Record<Operator, string>> = { "<": "before", "<=": "until", ">": "after", ">=": "since" };
const SIGNS: Partial<Record<Operator, string>> = { "!=": "≠", "<=": "≤", ">=": "≥", "=": "=", "<": "<", ">": ">" };

/** What an operator is called on a column. */
export function wordsOf(op: Operator, column: Column | undefined): string {
  return (column && TIMES.has(column.kind) && OF_TIME[op]) || (WORDS[op] ?? op);
}

/** How an operator stands in a pill: its sign, or else its words. */
export function signOf(op: Operator): string {
  return SIGNS[op] ?? WORDS[op] ?? op;
}

/** What a row says behind its column and operator. */
export function valuesOf(row: FilterRow): string {
  const texts = textsOf(row);
  if (row.type === "raw") return row.text;
  if (inputs(row.op) === "two") return texts.join(" to ");
  return inputs(row.op) === "list" ? joinList(texts) : texts[0] === "" ? "“”" : (texts[0] ?? "");
}

/** A row in one line. */
export function lineOf(row: FilterRow): string {
  return row.type === "raw" ? row.text : [row.column, signOf(row.op), valuesOf(row)].filter(Boolean).join(" ");
}

/** The entry on another column. */
export function withColumn(entry: Entry, column: string, text = ""): Entry {
  return { ...entry, raw: false, column, op: "", low: null, text, empty: false, group: null, partner: null };
}

/** The entry after a key: a column or an operator that is written to its end is taken. */
export function typedInto(entry: Entry, text: string, columns: readonly Column[]): Entry {
  const next = { ...entry, text, empty: entry.empty && text === "" };
  const column = columns.find(({ name }) => name === entry.column);
  switch (stageOf(next)) {
    case "column": {
      const ended = columns.filter(({ name }) => text.startsWith(name) && /^[\s=!<>≠≤≥]/.test(text.slice(name.length)));
      const [taken] = ended.sort((one, other) => other.name.length - one.name.length);
      if (!taken || columns.some(({ name }) => name !== taken.name && name.startsWith(text))) return next;
      return typedInto(withColumn(next, taken.name), text.slice(taken.name.length).trimStart(), columns);
    }
    case "operator": {
      const lower = text.toLowerCase();
      const spellings = (column?.operators ?? []).flatMap((op) => spellingsOf(op, column).map((spelling) => ({ op, spelling })));
      const ends = (spelling: string) => (/[a-z]$/.test(spelling) ? /^\s/ : /^[^=<>]/).test(lower.slice(spelling.length));
      const [taken] = spellings
        .filter(({ spelling }) => lower.startsWith(spelling) && ends(spelling))
        .sort((one, other) => other.spelling.length - one.spelling.length);
      if (!taken || spellings.some(({ spelling }) => spelling !== taken.spelling && spelling.startsWith(lower))) return next;
      return typedInto({ ...next, op: taken.op, text: "" }, text.slice(taken.spelling.length).trimStart(), columns);
    }
    case "low": {
      const parts = column?.kind === "text" ? null : /^(.*\S)\s+(?:to|and)\s(.*)$/.exec(text);
      return parts ? { ...next, low: parts[1], text: parts[2] } : next;
    }
    default:
      return next;
  }
}

function spellingsOf(op: Operator, column: Column | undefined): string[] {
  return [...new Set([op, signOf(op), WORDS[op] ?? op, wordsOf(op, column)])];
}

/** The entry without the part before the field; null if there is none. */
export function backFrom(entry: Entry): Entry | null {
  if (entry.raw) return { ...entry, raw: false };
  if (entry.low !== null) return { ...entry, low: null, text: entry.low };
  if (entry.op) return { ...entry, op: "", empty: false };
  return entry.column ? { ...withColumn(entry, ""), text: entry.column } : null;
}

/** Columns that fit a text: those that begin with it, then those a part of which does, then those that hold it. */
export function columnsFor(text: string, columns: readonly Column[]): Column[] {
  return ranked(columns, text, ({ name }) => [name]);
}

/** Operators of a column that fit a text, by words and by sign. */
export function operatorsFor(text: string, column: Column | undefined): Operator[] {
  return ranked(column?.operators ?? [], text, (op) => spellingsOf(op, column));
}

function ranked<T>(all: readonly T[], text: string, names: (one: T) => readonly string[]): T[] {
  const needle = text.trim().toLowerCase();
  const rank = (name: string) => {
    const at = name.toLowerCase().indexOf(needle);
    return at <= 0 ? at : /[\w\d]/.test(name[at - 1]) ? 2 : 1;
  };
  const ranks = all.map((one) => ({ one, best: Math.min(...names(one).map(rank).map((at) => (at < 0 ? 9 : at))) }));
  return ranks.filter(({ best }) => best < 9).sort((one, other) => one.best - other.best).map(({ one }) => one);
}

/** The part of a list that is being typed, and what stands before it. */
export function lastOf(text: string): { readonly before: string; readonly last: string } {
  const at = /(?:"(?:[^"]|"")*"|[^",])*$/.exec(text)?.index ?? 0;
  return { before: text.slice(0, at), last: text.slice(at).trim().replace(/^"/, "") };
}

/** The entry with a value that was chosen; one of a list leaves room for the next. */
export function withValue(entry: Entry, value: string): Entry {
  if (entry.op && inputs(entry.op) === "list") return { ...entry, text: `${lastOf(entry.text).before.trimEnd()} ${joinList([value])}, `.trimStart() };
  return { ...entry, text: value, empty: value === "" };
}
