/** What of a table can be drawn: the groups that its keys name, and one figure of each. */

import { instant } from "../wire/previews.ts";
import { show, tagOf, textOf } from "../wire/cells.ts";
import type { Cell, Column, PageAnswer } from "../messages.ts";

export interface Point {
  readonly label: string;
  /** Milliseconds since 1970; NaN where groups are no times. */
  readonly at: number;
  readonly value: number;
  /** The figure as the server wrote it. */
  readonly text: string;
}

/** The groups inside one group of the outer keys. */
export interface Panel {
  readonly title: string;
  readonly points: readonly Point[];
  /** How many more there are. */
  readonly rest: number;
}

export interface Drawing {
  /** The column whose values are the groups, and the figure that is drawn. */
  readonly by: string;
  readonly figure: string;
  readonly overTime: boolean;
  /** Bars are whole numbers from zero on; a line is everything else. */
  readonly shape: "bars" | "line";
  readonly panels: readonly Panel[];
  readonly restOfPanels: number;
  /** Rows without a number or a time. */
  readonly undrawn: number;
  readonly least: number;
  readonly most: number;
}

export const MOST_PANELS = 8;
const MOST_BARS = 50;
const MOST_TIMES = 400;
const MOST_TIME_BARS = 120;
const ZONED = /^\d{4}-\d\d-\d\d(T.*(Z|[+-]\d\d:?\d\d))?$/;

function isNumber(cell: Cell): boolean {
  const tag = tagOf(cell);
  return tag === "integer" || tag === "decimal";
}

interface Keys {
  /** The columns that name the outer groups, and that of the groups in them; -1 if nothing names rows. */
  readonly outer: readonly number[];
  readonly by: number;
  /** The last column that names groups: figures before it are of the groups around. */
  readonly last: number;
}

/** Where the columns are that name the rows of a table. One that says the same of each row names none, unless it is alone. */
function keysOf({ columns, rows }: PageAnswer): Keys {
  const varies = (at: number) => new Set(rows.map(({ cells }) => JSON.stringify(cells[at]))).size > 1;
  const keys = columns.flatMap(({ role }, at) => (role === "key" ? [at] : []));
  const time = columns.findIndex(({ role }) => role === "time");
  const naming = keys.filter(varies);
  const last = keys.length > 1 ? keys[keys.length - 1] : -1;
  if (time >= 0 && (varies(time) || !keys.length)) return { outer: naming, by: time, last };
  const names = naming.length ? naming : keys.slice(-1);
  return { outer: names.slice(0, -1), by: names[names.length - 1] ?? -1, last };
}

/** The columns of a table that may be drawn; none if no column names its rows. */
export function figuresOf(page: PageAnswer): readonly string[] {
  const { by, last } = keysOf(page);
  if (by < 0) return [];
  const numbers = page.columns.flatMap(({ role }, at) => (!role && page.rows.some(({ cells }) => isNumber(cells[at])) ? [at] : []));
  const inner = numbers.filter((at) => at > last);
  return (inner.length ? inner : numbers).map((at) => page.columns[at].name);
}

/** Whether a table says most as a chart: its groups have no groups in them, or are samples over time. */
export function isFlat(page: PageAnswer): boolean {
  const { outer, by } = keysOf(page);
  return !outer.length || page.columns[by].role === "time";
}

/** Draw one figure of a table that has it. */
export function drawingOf(page: PageAnswer, figure: string): Drawing {
  const { columns, rows } = page;
  const { outer, by } = keysOf(page);
  const of = columns.findIndex(({ name }) => name === figure);
  const times = rows.map(({ cells }) => timeOf(cells[by]));
  const overTime = rows.length > 0 && rows.every(({ cells }, number) => textOf(cells[by]) === null || !Number.isNaN(times[number])) && times.some((at) => !Number.isNaN(at));
  const groups = new Map<string, Point[]>();
  let undrawn = 0;
  rows.forEach(({ cells }, number) => {
    const text = textOf(cells[of]) ?? "";
    const value = isNumber(cells[of]) ? Number(text) : NaN;
    if (!Number.isFinite(value) || (overTime && Number.isNaN(times[number]))) return void (undrawn += 1);
    const title = outer.map((at) => labelOf(cells[at])).join(" · ");
    const points = groups.get(title) ?? [];
    if (!points.length) groups.set(title, points);
    points.push({ label: overTime ? instant(textOf(cells[by]) ?? "") : labelOf(cells[by]), at: times[number], value, text });
  });
  const titles = [...groups.keys()].slice(0, MOST_PANELS);
  const most = overTime ? MOST_TIMES : Math.max(5, Math.floor(MOST_BARS / Math.max(1, titles.length)));
  const panels = titles.map((title) => {
    const points = groups.get(title)!;
    if (overTime) points.sort((one, other) => one.at - other.at);
    return { title, points: points.slice(0, most), rest: Math.max(0, points.length - most) };
  });
  const values = panels.flatMap(({ points }) => points.map(({ value }) => value));
  const counts = values.every((value) => value >= 0 && Number.isInteger(value)) && panels.every(({ points }) => points.length <= MOST_TIME_BARS);
  return {
    by: columns[by].name,
    figure,
    overTime,
    shape: !overTime || counts ? "bars" : "line",
    panels,
    restOfPanels: groups.size - titles.length,
    undrawn,
    least: values.length ? Math.min(...values) : 0,
    most: values.length ? Math.max(...values) : 0,
  };
}

function labelOf(cell: Cell): string {
  return show(cell).text;
}

function timeOf(cell: Cell): number {
  const text = typeof cell === "string" ? cell : "";
  return ZONED.test(text) ? Date.parse(text) : NaN;
}

/** The columns of a table, of which those that name rows by instants are read as instants. */
export function readable({ columns, rows }: PageAnswer): Column[] {
  return columns.map((column, at) => {
    const instants = column.role === "key" && rows.length > 0 && rows.every(({ cells }) => !Number.isNaN(timeOf(cells[at])));
    return instants ? { ...column, kind: "timestamp" } : column;
  });
}

/** What a drawing leaves out, in words; empty if it leaves nothing out. */
export function leftOut({ panels, restOfPanels, undrawn, overTime, by, figure }: Drawing): string {
  const rest = panels.reduce((sum, panel) => sum + panel.rest, 0);
  const shown = panels.reduce((sum, { points }) => sum + points.length, 0);
  const unit = overTime ? "times" : "groups";
  return [
    rest && `the first ${count(shown)} of ${count(shown + rest)} ${unit} are drawn`,
    restOfPanels && `${count(panels.length)} of ${count(panels.length + restOfPanels)} charts are shown`,
    undrawn && `${count(undrawn)} ${undrawn === 1 ? "row has" : "rows have"} no ${overTime ? `time or no number` : "number"} in ${overTime ? `${by}, ${figure}` : figure}`,
  ].filter(Boolean).join("; ");
}

function count(number: number): string {
  return number.toLocaleString("en");
}

/** A place of a scale of time: a share of its width, and what stands there. */
export interface Tick {
  readonly at: number;
  readonly when: Date;
}

const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000];
const STEPS = [1, 10, 100, SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND, MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY];
const MONTHS = [1, 3, 6, 12, 24, 60, 120, 240, 600, 1_200];
const MOST_TICKS = 6;

/** Round times between two instants, at most six. */
export function ticksOf(from: number, to: number): Tick[] {
  const span = to - from;
  const tick = (when: number): Tick => ({ at: (when - from) / span, when: new Date(when) });
  if (!(span > 0)) return [{ at: 0, when: new Date(from) }];
  const step = STEPS.find((size) => span / size <= MOST_TICKS);
  if (step) {
    const origin = step === 7 * DAY ? 4 * DAY : 0; // weeks begin on a Monday, such as 1970-01-05
    const first = Math.ceil((from - origin) / step) * step + origin;
    return Array.from({ length: Math.floor((to - first) / step) + 1 }, (_, at) => tick(first + at * step));
  }
  const months = MONTHS.find((size) => span / (size * 28 * DAY) <= MOST_TICKS) ?? MONTHS[MONTHS.length - 1];
  const begin = new Date(from);
  const first = Math.ceil((begin.getUTCFullYear() * 12 + begin.getUTCMonth() + (begin.getTime() === Date.UTC(begin.getUTCFullYear(), begin.getUTCMonth()) ? 0 : 1)) / months) * months;
  const ticks: Tick[] = [];
  for (let month = first; ticks.length <= MOST_TICKS; month += months) {
    const when = Date.UTC(Math.floor(month / 12), month % 12);
    if (!(when <= to)) break;
    ticks.push(tick(when));
  }
  return ticks;
}
