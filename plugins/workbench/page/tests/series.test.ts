/** Tables as drawings: what is drawn, what is left out, and digits as they are. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { drawingOf, figuresOf, isFlat, leftOut, readable, ticksOf } from "../chart/series.ts";
import { fitting, headline } from "../console/past_texts.ts";
import type { Cell, PageAnswer } from "../messages.ts";

function table(columns: Record<string, string>, ...rows: Cell[][]): PageAnswer {
  const described = Object.entries(columns).map(([name, role]) => ({ name, role, kind: "other", type: "" }));
  return { columns: described, rows: rows.map((cells) => ({ id: "", key: null, cells })) } as unknown as PageAnswer;
}

const whole = (text: string): Cell => ["integer", text];

test("a table without keys, or without numbers, is not drawn", () => {
  assert.deepEqual(figuresOf(table({ a: "", b: "" }, ["x", whole("1")])), []);
  assert.deepEqual(figuresOf(table({ a: "key", b: "", c: "server" }, ["x", "1", whole("1")])), []);
  assert.deepEqual(figuresOf(table({ a: "key", b: "", c: "" }, ["x", null, whole("1")], ["y", whole("2"), whole("2")])), ["b", "c"]);
});

test("each group is a bar in the order of the answer, with every digit of its figure", () => {
  const page = table({ kind: "key", "kind.doc_count": "", load: "" }, ["b", whole("9007199254740993"), ["decimal", "1.50"]], ["", whole("2"), null], [null, whole("3"), "x"]);
  const { panels, overTime, shape, by } = drawingOf(page, "kind.doc_count");
  assert.deepEqual([by, overTime, shape, isFlat(page)], ["kind", false, "bars", true]);
  assert.deepEqual(panels[0].points.map(({ label, text }) => [label, text]), [["b", "9007199254740993"], ["empty", "2"], ["null", "3"]]);
  const load = drawingOf(page, "load");
  assert.equal(load.undrawn, 2);
  assert.equal(leftOut(load), "2 rows have no number in load");
  assert.equal(drawingOf(table({ k: "key", n: "" }, ["a", ["decimal", "1e400"]]), "n").undrawn, 1);
});

test("inner groups are charts by the outer ones, and figures of the outer ones are not drawn", () => {
  const page = table({ a: "key", "a.n": "", b: "key", "b.n": "" }, ["x", whole("3"), "p", whole("1")], ["x", whole("3"), "q", whole("2")], ["y", whole("1"), "p", whole("-1")]);
  assert.deepEqual(figuresOf(page), ["b.n"]);
  const { panels, least, most } = drawingOf(page, "b.n");
  assert.deepEqual(panels.map(({ title, points }) => [title, points.map(({ label }) => label)]), [["x", ["p", "q"]], ["y", ["p"]]]);
  assert.deepEqual([least, most, isFlat(page)], [-1, 2, false]);
});

test("times stand in their order, as bars if they are counts, else as a line", () => {
  const page = table({ day: "key", n: "", mean: "" }, ["2026-01-02T00:00:00.000Z", whole("2"), ["decimal", "0.5"]], ["2026-01-01T00:00:00.000Z", whole("0"), null]);
  const counts = drawingOf(page, "n");
  assert.deepEqual([counts.overTime, counts.shape, counts.panels[0].points.map(({ label }) => label)], [true, "bars", ["2026-01-01 00:00:00", "2026-01-02 00:00:00"]]);
  assert.deepEqual([drawingOf(page, "mean").shape, drawingOf(page, "mean").undrawn], ["line", 1]);
  assert.equal(readable(page)[0].kind, "timestamp");
  const labels = table({ host: "key", time: "time", value: "" }, ["a", "2026-01-01T00:00:00Z", ["decimal", "1.5"]], ["b", "2026-01-01T00:00:15Z", ["decimal", "2"]]);
  assert.deepEqual([drawingOf(labels, "value").by, drawingOf(labels, "value").panels.map(({ title }) => title)], ["time", ["a", "b"]]);
  assert.equal(drawingOf(table({ day: "key", n: "" }, ["2026-01-01", whole("1")], ["January", whole("1")]), "n").overTime, false);
});

test("what is the same in each row names no group", () => {
  const at = "2026-01-01T00:00:00Z";
  const columns = { name: "key", host: "key", job: "key", time: "time", value: "" };
  const vector = table(columns, ["up", "a", "web", at, whole("1")], ["up", "b", "web", at, whole("0")]);
  assert.deepEqual([drawingOf(vector, "value").by, drawingOf(vector, "value").panels.map(({ title }) => title), isFlat(vector)], ["host", [""], true]);
  const matrix = table(columns, ["up", "a", "web", at, whole("1")], ["up", "b", "web", "2026-01-01T00:01:00Z", whole("0")]);
  assert.deepEqual([drawingOf(matrix, "value").by, drawingOf(matrix, "value").panels.map(({ title }) => title), isFlat(matrix)], ["time", ["a", "b"], true]);
  const one = table({ a: "key", "a.n": "", b: "key", "b.n": "" }, ["x", whole("3"), "p", whole("1")], ["y", whole("3"), "p", whole("2")]);
  assert.deepEqual([figuresOf(one), drawingOf(one, "b.n").by], [["b.n"], "a"]);
});

test("a chart is bounded, and says what it leaves out", () => {
  const many = Array.from({ length: 300 }, (_, at): Cell[] => [`k${at}`, whole(`${at}`)]);
  const drawing = drawingOf(table({ k: "key", n: "" }, ...many), "n");
  assert.equal(drawing.panels[0].points.length, 50);
  assert.equal(leftOut(drawing), "the first 50 of 300 groups are drawn");
  const panels = drawingOf(table({ a: "key", k: "key", n: "" }, ...many.map(([k, n], at): Cell[] => [`a${at % 20}`, k, n])), "n");
  assert.equal(panels.panels.length, 8);
  assert.match(leftOut(panels), /^the first 48 of 120 groups are drawn; 8 of 20 charts are shown$/);
  const times = Array.from({ length: 1_000 }, (_, at): Cell[] => [new Date(at * 1_000).toISOString(), whole("1")]);
  const overTime = drawingOf(table({ t: "time", n: "" }, ...times), "n");
  assert.deepEqual([overTime.shape, leftOut(overTime)], ["line", "the first 400 of 1,000 times are drawn"]);
});

test("a scale of time has round times, few of them, and ends", () => {
  const texts = (from: string, to: string) => ticksOf(Date.parse(from), Date.parse(to)).map(({ when }) => when.toISOString().slice(0, 16));
  assert.deepEqual(texts("2025-01-01", "2026-01-01"), ["2025-01-01T00:00", "2025-04-01T00:00", "2025-07-01T00:00", "2025-10-01T00:00", "2026-01-01T00:00"]);
  assert.deepEqual(texts("2026-01-01T00:07:00Z", "2026-01-01T02:20:00Z"), ["2026-01-01T00:30", "2026-01-01T01:00", "2026-01-01T01:30", "2026-01-01T02:00"]);
  for (const [from, to] of [[0, 0], [0, 1], [-8.64e15, 8.64e15], [0, 86_400_000 * 40], [5, 4]]) {
    const ticks = ticksOf(from, to);
    assert.ok(ticks.length <= 8 && ticks.every(({ when }) => !Number.isNaN(when.getTime())), `${from} ${to} ${ticks.length}`);
  }
});

test("a history is searched by words, repeats no text, and shows the first line that says something", () => {
  const entries = [{ at: 2, text: "GET /a\n{}" }, { at: 1, text: "# a note\n\nPOST /Orders/_search\n{}" }, { at: 0, text: "GET /a\n{}" }];
  assert.deepEqual(fitting(entries, "").map(({ at }) => at), [2, 1]);
  assert.deepEqual(fitting(entries, " orders  POST ").map(({ at }) => at), [1]);
  assert.deepEqual(fitting(entries, "orders get").map(({ at }) => at), []);
  assert.equal(headline(entries[1].text), "POST /Orders/_search  +1 line");
  assert.equal(headline("# only a note"), "# only a note");
  assert.equal(headline(`GET /${"x".repeat(500)}`).length, 121);
});
