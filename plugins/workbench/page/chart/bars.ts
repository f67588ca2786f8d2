/** Bars over time: what they say in words, where their scale has marks, and the filter rows that a part of them makes. */

import { filterOf, textsOf } from "../grid/filter_rows.ts";
import type { FilterRow } from "../state/query.ts";
import type { Bar, Column, TimeRange } from "../messages.ts";
import { textOf } from "../wire/cells.ts";

/** The rows from one instant, included, to another, excluded, both in milliseconds since 1970. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface TimeBar extends Span {
  readonly rows: number;
}

const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000];
const WEEK = 7 * DAY;
const MONDAY = 4 * DAY; // 1970-01-05
const MOST = 100;
const ZONED = /T.*(Z|[+-]\d\d:\d\d)$/; // other texts are read by the server alone
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

/** The bars of a summary; none if their bounds are no instants. */
export function timeBars(bars: readonly Bar[]): TimeBar[] {
  const read = bars.map(({ lower, upper, rows }) => ({ from: Date.parse(textOf(lower) ?? ""), to: Date.parse(textOf(upper) ?? ""), rows }));
  return read.every(({ from, to }) => from < to) ? read : [];
}

/** The bars with empty ones around them up to the instants that were asked for, if they are not too many. */
export function padded(bars: readonly TimeBar[], since: number, until: number): readonly TimeBar[] {
  if (!bars.length) return bars;
  const [first, last] = [bars[0], bars[bars.length - 1]];
  const size = first.to - first.from;
  if (bars.some(({ from, to }) => to - from !== size)) return bars; // months differ
  const [before, after] = [(first.from - since) / size, (until - last.to) / size].map((count) => Math.max(0, Math.ceil(count)));
  if (!(bars.length + before + after <= MOST)) return bars;
  const empty = (from: number) => ({ from, to: from + size, rows: 0 });
  return [
    ...Array.from({ length: before }, (_, at) => empty(first.from - (before - at) * size)),
    ...bars,
    ...Array.from({ length: after }, (_, at) => empty(last.to + at * size)),
  ];
}

/** How many months lie between two instants; 0 if they are not the beginnings of months. */
function months({ from, to }: Span): number {
  const [first, last] = [new Date(from), new Date(to)];
  const begins = (at: Date) => at.getTime() % DAY === 0 && at.getUTCDate() === 1;
  if (!begins(first) || !begins(last)) return 0;
  return 12 * (last.getUTCFullYear() - first.getUTCFullYear()) + last.getUTCMonth() - first.getUTCMonth();
}

/** How long a bar is: "6 hours", "a day", "a month". */
export function lengthWords(bar: Span): string {
  const count = months(bar);
  if (count) return count % 12 ? worded(count, "month") : worded(count / 12, "year");
  const length = bar.to - bar.from;
  const units = [["week", WEEK], ["day", DAY], ["hour", HOUR], ["minute", MINUTE], ["second", SECOND], ["millisecond", 1]] as const;
  const [unit, size] = units.find(([, one]) => length % one === 0) ?? units[5];
  return worded(length / size, unit);
}

function worded(count: number, unit: string): string {
  return count === 1 ? `${unit === "hour" ? "an" : "a"} ${unit}` : `${count.toLocaleString("en")} ${unit}s`;
}

/** A span in words, in UTC as the cells are: "3 to 9 March 2026", "3 March 2026, 04:00 to 16:00". */
export function spanWords({ from, to }: Span): string {
  const [first, last] = [new Date(from), new Date(to - 1)]; // the last instant that lies in it
  const [year, month, day] = [first.getUTCFullYear(), MONTHS[first.getUTCMonth()], first.getUTCDate()];
  const [lastYear, lastMonth, lastDay] = [last.getUTCFullYear(), MONTHS[last.getUTCMonth()], last.getUTCDate()];
  const sameYear = year === lastYear;
  const sameMonth = sameYear && month === lastMonth;
  const count = months({ from, to });
  if (count) {
    if (count % 12 === 0 && first.getUTCMonth() === 0) return sameYear ? `${year}` : `${year} to ${lastYear}`;
    return sameMonth ? `${month} ${year}` : `${month}${sameYear ? "" : ` ${year}`} to ${lastMonth} ${lastYear}`;
  }
  const sameDay = sameMonth && day === lastDay;
  const end = `${lastDay} ${lastMonth} ${lastYear}`;
  if (from % DAY === 0 && to % DAY === 0) {
    if (sameDay) return end;
    return `${day}${sameMonth ? "" : ` ${month}`}${sameYear ? "" : ` ${year}`} to ${end}`;
  }
  const exact = [from, to].some((at) => at % SECOND) ? 23 : [from, to].some((at) => at % MINUTE) ? 19 : 16;
  const begins = timeOf(from, exact);
  const ends = to % DAY === 0 ? "24:00:00.000".slice(0, exact - 11) : timeOf(to, exact);
  if (sameDay) return `${end}, ${begins} to ${ends}`;
  return `${day} ${month}${sameYear ? "" : ` ${year}`}, ${begins} to ${end}, ${ends}`;
}

/** The time of day of an instant, to the minute (16), the second (19) or the millisecond (23). */
function timeOf(at: number, exact: number): string {
  const text = new Date(at).toISOString();
  return text.slice(text.indexOf("T") + 1).slice(0, exact - 11);
}

/** The bars from one to another, whichever comes first, as one. */
export function joined(bars: readonly TimeBar[], one: number, other: number): TimeBar {
  const part = bars.slice(Math.min(one, other), Math.max(one, other) + 1);
  return { from: part[0].from, to: part[part.length - 1].to, rows: part.reduce((sum, bar) => sum + bar.rows, 0) };
}

/** A place of the scale: a share of its width, and what stands there. */
export interface Mark {
  readonly at: number;
  readonly text: string;
}

type Begins = (at: Date) => boolean;

const FIXED = [1, 10, 100, SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND, MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY];
const begun = (at: Date) => at.getUTCDate() === 1 && at.getTime() % DAY === 0;
const MONTHLY: readonly Begins[] = [
  ...[1, 3, 6].map((count): Begins => (at) => begun(at) && at.getUTCMonth() % count === 0),
  ...[1, 2, 5, 10, 20, 50, 100].map((count): Begins => (at) => begun(at) && at.getUTCMonth() === 0 && at.getUTCFullYear() % count === 0),
];

/** What may be a round time among bars, the finest first. */
function scales(bar: Span): readonly Begins[] {
  const length = bar.to - bar.from;
  if (months(bar)) return MONTHLY;
  if (length % WEEK === 0) return [];
  const fixed = FIXED.filter((size) => size % length === 0);
  return [...fixed.map((size): Begins => (at) => at.getTime() % size === 0), (at) => (at.getTime() - MONDAY) % WEEK === 0, ...MONTHLY];
}

/** The marks of the scale: at most so many bars, those whose beginning is a round time. */
export function marks(bars: readonly TimeBar[], most: number): Mark[] {
  if (!bars.length) return [];
  const starts = bars.map(({ from }, at) => ({ at: at / bars.length, when: new Date(from) }));
  const round = scales(bars[0]).map((begins) => starts.filter(({ when }) => begins(when)));
  const every = Math.ceil(bars.length / most);
  const chosen = round.find(({ length }) => length > 1 && length <= most) ?? starts.filter((_, at) => at % every === 0);
  return chosen.map(({ at, when }, number) => ({ at, text: markText(when, chosen, number) }));
}

/** What stands at a round time: the time of day, or the day; the year where it is news. */
export function markText(when: Date, all: readonly { when: Date }[], number: number): string {
  const midnight = ({ when: at }: { when: Date }) => at.getTime() % DAY === 0;
  if (!midnight({ when })) {
    const exact = all.some(({ when: at }) => at.getTime() % SECOND) ? 23 : all.some(({ when: at }) => at.getTime() % MINUTE) ? 19 : 16;
    return timeOf(when.getTime(), exact);
  }
  const [year, month] = [when.getUTCFullYear(), MONTHS[when.getUTCMonth()].slice(0, 3)];
  const ofMonths = all.length > 1 && all.every(({ when: at }) => midnight({ when: at }) && at.getUTCDate() === 1);
  if (ofMonths && all.every(({ when: at }) => at.getUTCMonth() === 0)) return `${year}`;
  const news = number === 0 ? all.some(({ when: at }) => at.getUTCFullYear() !== year) : all[number - 1].when.getUTCFullYear() !== year;
  return `${ofMonths ? "" : `${when.getUTCDate()} `}${month}${news ? ` ${year}` : ""}`;
}

interface Bound {
  readonly at: number;
  readonly text: string;
}

/** The first instant that a row of the filter keeps, or the first that it does not; null for all other rows. */
function boundOf(row: FilterRow, column: Column): Bound | null {
  if (row.type !== "filter" || row.column !== column.name || row.group || (row.op !== ">=" && row.op !== "<")) return null;
  const text = textsOf(row)[0] ?? "";
  const at = ZONED.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(at) ? null : { at, text };
}

/** The range that the rows of a filter keep together; null where they set no bound. */
export function rangeOf(column: Column, filters: readonly FilterRow[]): { readonly since: Bound | null; readonly until: Bound | null } {
  let [since, until]: [Bound | null, Bound | null] = [null, null];
  for (const row of filters) {
    const bound = boundOf(row, column);
    if (!bound || row.type !== "filter") continue;
    if (row.op === ">=" && !(since && since.at > bound.at)) since = bound;
    if (row.op === "<" && !(until && until.at < bound.at)) until = bound;
  }
  return { since, until };
}

/** What narrows rows to a span of a column, and which rows of the filter it makes needless; null if no operators do. */
export function narrowing(column: Column, { from, to }: Span, filters: readonly FilterRow[]) {
  const can = new Set<string>(column.operators ?? []);
  if (column.repeated || !can.has(">=") || !can.has("<")) return null;
  const { since, until } = rangeOf(column, filters);
  const lower = since && since.at >= from ? since.text : instantText(from); // the first bar begins before it, or it has more digits
  const upper = until && until.at < to ? until.text : instantText(to);
  const rows: FilterRow[] = [filterOf(column.name, ">=", lower), filterOf(column.name, "<", upper)];
  return { rows, needless: (row: FilterRow) => boundOf(row, column) !== null };
}

/** The part of a range of time that bars cover, as a span with absolute ends; the first and the last bar may go beyond the range. */
export function spanWithin({ from, to }: Span, { since, until }: TimeRange): { since: string; until: string } {
  return {
    since: since && Date.parse(since) >= from ? since : instantText(from),
    until: until && Date.parse(until) <= to ? until : instantText(to),
  };
}

function instantText(at: number): string {
  return new Date(at).toISOString().replace(".000Z", "Z");
}
