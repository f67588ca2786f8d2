/** Cells as the grid shows them, as a person copies them, and as they go back to the server. */

import type { Cell, Column } from "../messages.ts";
import { barsOf } from "./bars_of_numbers.ts";
import { asStored, beginning, countOf, instant, preview } from "./previews.ts";

/** What a cell shows; `tone` is its class: how null, missing, empty and cut are told apart. */
export interface Shown {
  readonly text: string;
  readonly tone: string;
  /** What is read aloud instead of the text. */
  readonly name?: string;
  /** The path of its bars, which is made when it is first drawn. */
  readonly bars?: () => string;
}

/** Bars of a vector in a cell. */
export const CELL_BARS = 32;

const LONGEST_SHOWN = 300;
/** Letters of a document in a cell of three lines. */
const TALL = 150;
const SYMBOLS: Record<string, string> = { "\n": "↵", "\r": "␍", "\t": "⇥" };
const NUMERIC = new Set(["integer", "unsigned", "float", "decimal"]);

export function isNumeric(column: Column | undefined): boolean {
  return !!column && !column.repeated && NUMERIC.has(column.kind);
}

/** The tag of a cell: what its text is. Plain texts have the tag `text`. */
export function tagOf(cell: Cell): string {
  if (cell === null) return "null";
  if (typeof cell === "boolean") return "boolean";
  return typeof cell === "string" ? "text" : cell[0];
}

/** The text of a cell, digit for digit; null for null and missing. */
export function textOf(cell: Cell): string | null {
  if (cell === null) return null;
  if (typeof cell === "boolean") return String(cell);
  if (typeof cell === "string") return cell;
  return cell[0] === "missing" ? null : cell[1];
}

export function isCut(cell: Cell): boolean {
  return tagOf(cell).startsWith("cut-");
}

/** What one cell shows. Null, missing, empty and cut never look like a text. With its column it is read at a glance. */
export function show(cell: Cell, column?: Column, tall = false): Shown {
  const side = column && isNumeric(column) && !column.arrays?.length ? " digits" : "";
  if (cell === null) return { text: "null", tone: `null${side}` };
  if (typeof cell === "boolean") return { text: String(cell), tone: "boolean" };
  if (cell === "") return { text: "empty", tone: "empty" };
  if (typeof cell === "string") {
    return column?.kind === "timestamp" ? { text: line(instant(cell)), tone: "text when" } : { text: (tall ? lines : line)(cell), tone: "text" };
  }
  const [tag, text] = cell;
  if (tag === "missing") return { text: "–", tone: `missing${side}` };
  if (tag === "json" && isVector(column) && text[0] === "[") return vector(text);
  return { text: line(tag === "json" && column ? (tall ? preview(text, TALL) : previewOf(cell, text)) : text), tone: TONES[tag] ?? "text" };
}

export function isVector(column: Column | undefined): boolean {
  return (column?.dimensions ?? null) !== null;
}

/** What a vector shows: its length, and bars. */
export function vector(text: string): Shown {
  const count = countOf(text);
  let path: string | undefined;
  const bars = () => (path ??= barsOf(text, CELL_BARS)?.path ?? "");
  return { text: String(count), tone: "vector", name: `vector of ${count} ${count === 1 ? "number" : "numbers"}`, bars };
}

/** Columns are measured by the previews that are drawn afterwards. */
const previews = new WeakMap<object, string>();

function previewOf(cell: object, text: string): string {
  let short = previews.get(cell);
  if (short === undefined) previews.set(cell, (short = preview(text)));
  return short;
}

const TONES: Record<string, string> = {
  integer: "digits",
  decimal: "digits",
  json: "json",
  bytes: "bytes",
  "cut-text": "text cut",
  "cut-json": "json cut",
  "cut-bytes": "bytes cut",
};

/** One line of a text: line breaks and tabs as symbols, the rest of a long one left to the side pane. */
export function line(text: string): string {
  return beginning(text, LONGEST_SHOWN).replace(/[\n\r\t]/g, (found) => SYMBOLS[found]);
}

/** The same with its line breaks, for a cell of several lines. */
function lines(text: string): string {
  return line(text).replaceAll("↵", "↵\n");
}

const INTEGER = /^-?(0|[1-9][0-9]*)$/;
const NUMBER = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/;

const OPEN = new Set(["json", "range", "geo"]);

/**
 * What a typed text becomes as a value of a column: numbers keep their digits, and what is no number stays a text. An
 * array is one where the column always has one, or can have one and is not of texts, or where one stood before. A time
 * as the grid shows it is written as the old one is, or else as another one of the column, `like`.
 */
export function typed(text: string, column: Column, before: Cell = null, like: Cell = null): Cell {
  const lists = column.repeated || OPEN.has(column.kind);
  const mayList = (column.multiple && column.kind !== "text") || tagOf(before) === "json";
  if ((lists || (mayList && /^\s*[[{]/.test(text))) && isJson(text)) return reread(text);
  if (lists) return text;
  if (column.kind === "boolean" && (text === "true" || text === "false")) return text === "true";
  const stored = typeof before === "string" ? before : like;
  if (column.kind === "timestamp" && typeof stored === "string") return asStored(text, stored);
  if (isNumeric(column) && INTEGER.test(text)) return ["integer", text];
  if (isNumeric(column) && NUMBER.test(text)) return ["decimal", text];
  return column.kind === "binary" ? ["bytes", text] : text;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function reread(text: string): Cell {
  const trimmed = text.trim();
  if (/^[[{]/.test(trimmed)) return ["json", trimmed];
  if (INTEGER.test(trimmed)) return ["integer", trimmed];
  if (NUMBER.test(trimmed)) return ["decimal", trimmed];
  return JSON.parse(trimmed) as Cell;
}

export function sameCell(one: Cell, other: Cell): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
