import assert from "node:assert/strict";
import { test } from "node:test";
import { type Span, joined, lengthWords, marks, narrowing, padded, spanWithin, spanWords, timeBars } from "../chart/bars.ts";
import { filterOf } from "../grid/filter_rows.ts";
import { repeat } from "../grid/repeating.ts";
import { timeColumns } from "../grid/time_columns.ts";
import type { Column } from "../messages.ts";

const at = (text: string) => Date.parse(text);
const span = (from: string, to: string): Span => ({ from: at(from), to: at(to) });
const days = (first: string, count: number) =>
  Array.from({ length: count }, (_, day) => ({ from: at(first) + day * 86_400_000, to: at(first) + (day + 1) * 86_400_000, rows: 1 }));
const column = (name: string, more: Partial<Column> = {}): Column =>
  ({ name, type: "date", kind: "timestamp", role: "", operators: [">=", "<"], ...more }) as Column;

test("a span and the length of a bar are said as a person says them", () => {
  const words = [
    ["2026-03-03", "2026-03-10", "3 to 9 March 2026", "a week"],
    ["2026-03-03", "2026-03-04", "3 March 2026", "a day"],
    ["2026-02-27", "2026-03-04", "27 February to 3 March 2026", "5 days"],
    ["2025-12-31", "2026-01-02", "31 December 2025 to 1 January 2026", "2 days"],
    ["2026-03-01", "2026-04-01", "March 2026", "a month"],
    ["2025-11-01", "2026-02-01", "November 2025 to January 2026", "3 months"],
    ["2020-01-01", "2030-01-01", "2020 to 2029", "10 years"],
    ["2026-03-03T04:00Z", "2026-03-03T05:00Z", "3 March 2026, 04:00 to 05:00", "an hour"],
    ["2026-03-03T18:00Z", "2026-03-04T00:00Z", "3 March 2026, 18:00 to 24:00", "6 hours"],
    ["2026-03-03T22:00Z", "2026-03-04T06:00Z", "3 March, 22:00 to 4 March 2026, 06:00", "8 hours"],
    ["2026-03-03T04:00:05Z", "2026-03-03T04:00:07Z", "3 March 2026, 04:00:05 to 04:00:07", "2 seconds"],
    ["2026-03-03T04:00:05.010Z", "2026-03-03T04:00:05.020Z", "3 March 2026, 04:00:05.010 to 04:00:05.020", "10 milliseconds"],
  ];
  for (const [from, to, said, length] of words) {
    assert.equal(spanWords(span(from, to)), said);
    assert.equal(lengthWords(span(from, to)), length);
  }
});

test("bounds that are no instants make no bars", () => {
  const bar = (lower: string, upper: string) => ({ lower, upper, rows: 2 });
  assert.deepEqual(timeBars([bar("2026-03-03T00:00:00Z", "2026-03-04T00:00:00Z")]), [{ ...span("2026-03-03", "2026-03-04"), rows: 2 }]);
  assert.deepEqual(timeBars([bar("<b>", "2026-03-04T00:00:00Z")]), []);
  assert.deepEqual(timeBars([bar("2026-03-04T00:00:00Z", "2026-03-03T00:00:00Z")]), []);
});

test("empty bars stand up to the range that was asked for, unless they are too many", () => {
  const bars = days("2026-03-03", 2);
  const ends = (all: readonly Span[]) => spanWords(joined(all as never, 0, all.length - 1));
  assert.equal(ends(padded(bars, at("2026-03-01T12:00Z"), at("2026-03-06T01:00Z"))), "1 to 6 March 2026");
  assert.equal(ends(padded(bars, Infinity, -Infinity)), "3 to 4 March 2026");
  assert.equal(padded(bars, at("2020-01-01"), at("2026-03-06")), bars);
  assert.equal(padded(bars, NaN, at("2026-03-06")), bars);
});

test("the scale has marks at round times", () => {
  const texts = (bars: Parameters<typeof marks>[0]) => marks(bars, 6).map(({ text }) => text);
  assert.deepEqual(texts(days("2026-03-03", 3)), ["3 Mar", "4 Mar", "5 Mar"]);
  assert.deepEqual(texts(days("2025-12-20", 44)), ["22 Dec 2025", "29 Dec", "5 Jan 2026", "12 Jan", "19 Jan", "26 Jan"]);
  assert.deepEqual(texts(days("2026-01-01", 100)), ["Jan", "Feb", "Mar", "Apr"]);
  const months = Array.from({ length: 12 }, (_, month) => ({ from: Date.UTC(2025, month), to: Date.UTC(2025, month + 1), rows: 1 }));
  assert.deepEqual(texts(months), ["Jan", "Apr", "Jul", "Oct"]);
  const hours = days("2026-03-03", 1).flatMap(({ from }) => Array.from({ length: 24 }, (_, hour) => ({ from: from + hour * 3_600_000, to: from + (hour + 1) * 3_600_000, rows: 0 })));
  assert.deepEqual(texts(hours), ["3 Mar", "06:00", "12:00", "18:00"]);
});

test("a part of the bars takes the place of the bounds that it lies in, and widens none", () => {
  const wide = span("2026-03-03T00:00:00Z", "2026-03-05T00:00:00Z");
  const bound = (op: string, text: string) => filterOf("at", op, text);
  const other = filterOf("level", "=", "error");
  const narrowed = narrowing(column("at"), wide, [bound(">=", "2026-03-03T07:00:00.000000001Z"), other, bound("<", "2026-03-09T00:00:00Z")])!;
  assert.deepEqual(narrowed.rows, [bound(">=", "2026-03-03T07:00:00.000000001Z"), bound("<", "2026-03-05T00:00:00Z")]);
  assert.deepEqual([other, ...narrowed.rows, bound(">", "2026-03-03T07:00:00Z"), bound(">=", "2026-03-03T07:00:00")].map(narrowed.needless), [false, true, true, false, false]);
  assert.equal(narrowing(column("at", { operators: ["="] }), wide, []), null);
});

test("the column that rows are placed in time by comes first; elements of arrays do not place them", () => {
  const all = [column("born.at"), column("made"), column("tags", { repeated: true }), column("_id", { kind: "text" }), column("@timestamp", { role: "time" }), column("items.at", { arrays: ["items"] })];
  assert.deepEqual(timeColumns(all).map(({ name }) => name), ["@timestamp", "made", "born.at"]);
});

test("what is repeated never runs twice at once, and rests while it is hidden", async () => {
  const page = Object.assign(new EventTarget(), { hidden: false });
  let [runs, running, most] = [0, 0, 0];
  const run = async () => {
    [runs, running] = [runs + 1, running + 1];
    most = Math.max(most, running);
    await new Promise((done) => setTimeout(done, 12));
    running -= 1;
    if (runs === 1) throw new Error("once");
  };
  const rest = (milliseconds: number) => new Promise((done) => setTimeout(done, milliseconds));
  const end = repeat(2, run, page as unknown as Document);
  await rest(80);
  assert.ok(runs >= 2 && most === 1, `${runs} ${most}`);
  page.hidden = true;
  await rest(30);
  const before = runs;
  await rest(30);
  assert.equal(runs, before);
  page.hidden = false;
  page.dispatchEvent(new Event("visibilitychange"));
  assert.equal(runs, before + 1);
  end();
  await rest(30);
  assert.equal(runs, before + 1);
});

test("a part of a range stays within it, with the digits of its ends", () => {
  const range = { column: "at", since: "2026-03-03T00:30:00.123456Z", until: "2026-03-04T00:00:00Z" };
  const at = (hour: number) => Date.UTC(2026, 2, 3, hour);
  assert.deepEqual(spanWithin({ from: at(0), to: at(6) }, range as never), { since: range.since, until: "2026-03-03T06:00:00Z" });
  assert.deepEqual(spanWithin({ from: at(6), to: at(25) }, range as never), { since: "2026-03-03T06:00:00Z", until: range.until });
  assert.deepEqual(spanWithin({ from: at(6), to: at(7) }, { since: null, until: null } as never), { since: "2026-03-03T06:00:00Z", until: "2026-03-03T07:00:00Z" });
});
