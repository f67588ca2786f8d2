/** How wide columns are: as wide as what they hold, between bounds. */

import type { Column, GridRow } from "../messages.ts";
import { isNumeric, show } from "../wire/cells.ts";

/** How a text is drawn: in a cell, in a cell of code, or in a head. */
export type Face = "cell" | "code" | "head";

/** The width of a text in pixels. */
export type Measure = (text: string, face: Face) => number;

const PADDING = 17;
const MARK = 22;
const CUT = 26;
/** The bars of a vector, beside the number of its values. */
const BARS = 78;
const NARROWEST = 72;
const WIDEST = 320;
/** A key names its row, and stands in view wherever the others are scrolled: it leaves them room. */
const WIDEST_KEY = 168;
const KEY_SHARE = 0.28;
/** A name longer than this does not make its column wider than its values are. */
const WIDEST_NAME = 200;
/** What a person asked for by a double click, or a number, whose digits all count. */
const WIDEST_WHOLE = 900;
/** So many texts of a column are measured: those that are likely the widest. */
const MEASURED = 3;
/** About how wide a sign is, in halves of a usual letter, by its code. */
const SIGNS = new Uint8Array(128).fill(2);
for (const sign of "fijlrtI.,:;'|!()[]{} -") SIGNS[sign.charCodeAt(0)] = 1;
for (const sign of "mwMW@%") SIGNS[sign.charCodeAt(0)] = 3;
/** A text of more signs fills the widest column. */
const MOST_SIGNS = 90;

/** The width of each column for these rows. */
export function fitted(columns: readonly Column[], rows: readonly GridRow[], measure: Measure): Map<string, number> {
  return new Map(columns.map((column, at) => [column.name, width(column, rows, at, measure, false)]));
}

/** The width that shows all values of one column, as far as a screen can. */
export function fittedWhole(name: string, columns: readonly Column[], rows: readonly GridRow[], measure: Measure): number {
  const at = columns.findIndex((column) => column.name === name);
  return at < 0 ? NARROWEST : width(columns[at], rows, at, measure, true);
}

/** Widen columns of numbers whose digits these rows would cut; returns whether there are such. */
export function widened(
  widths: Map<string, number>,
  columns: readonly Column[],
  rows: readonly GridRow[],
  measure: Measure,
): boolean {
  let wider = false;
  columns.forEach((column, at) => {
    if (!isNumeric(column)) return;
    const needed = width(column, rows, at, measure, false);
    if (needed <= (widths.get(column.name) ?? 0)) return;
    widths.set(column.name, needed);
    wider = true;
  });
  return wider;
}

function width(column: Column, rows: readonly GridRow[], at: number, measure: Measure, whole: boolean): number {
  const name = measure(column.name, "head") + PADDING + MARK;
  let most = NARROWEST;
  for (const { text, tone } of widest(rows, at, column)) {
    const face = /^(json|bytes)/.test(tone) ? "code" : "cell";
    most = Math.max(most, measure(text, face) + PADDING + (tone === "vector" ? BARS : tone.endsWith(" cut") ? CUT : 0));
  }
  const key = Math.min(WIDEST_KEY, KEY_SHARE * (globalThis.innerWidth ?? Infinity));
  const bound = whole || isNumeric(column) ? WIDEST_WHOLE : column.role === "key" ? key : WIDEST;
  return Math.ceil(Math.min(bound, Math.max(most, whole ? name : Math.min(WIDEST_NAME, name))));
}

function widest(rows: readonly GridRow[], at: number, column: Column) {
  const kept: { text: string; tone: string; likely: number }[] = [];
  for (const { cells } of rows) {
    const { text, tone } = show(cells[at] ?? null, column);
    const likely = guess(text);
    if (kept.length === MEASURED && kept[MEASURED - 1].likely >= likely) continue;
    if (kept.some((one) => one.text === text)) continue;
    kept.push({ text, tone, likely });
    kept.sort((one, other) => other.likely - one.likely);
    kept.length = Math.min(kept.length, MEASURED);
  }
  return kept;
}

/** About how wide a text is; measuring each one would take longer than drawing it. */
function guess(text: string): number {
  let width = 0;
  const end = Math.min(text.length, MOST_SIGNS);
  for (let at = 0; at < end; at += 1) {
    const code = text.charCodeAt(at);
    width += code < 128 ? SIGNS[code] : code > 0x2e7f ? 3 : 2;
  }
  return width + 2 * (text.length - end);
}

let drawing: CanvasRenderingContext2D | null = null;
let fonts: Record<Face, string> | null = null;

/** Measure as the browser draws: the sizes are those of the style of cells and heads. */
export const measured: Measure = (text, face) => {
  drawing ??= document.createElement("canvas").getContext("2d");
  if (!fonts) {
    const style = getComputedStyle(document.documentElement);
    const [sans, mono] = [style.getPropertyValue("--sans"), style.getPropertyValue("--mono")];
    fonts = { cell: `13px ${sans}`, code: `12px ${mono}`, head: `600 12px ${sans}` };
  }
  if (!drawing) return text.length * 8;
  if (drawing.font !== fonts[face]) drawing.font = fonts[face];
  return drawing.measureText(text).width;
};
