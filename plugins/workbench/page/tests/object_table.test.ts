import assert from "node:assert/strict";
import { test } from "node:test";
import { linesInView, linesOf, nextOrder, sorted } from "../connections/object_table.ts";
import type { Condition, Object as Entry } from "../messages.ts";

const entry = (name: string, more: Partial<Entry> = {}): Entry =>
  ({ name, rows: null, size: null, kind: "table", parent: null, branch: false, state: null, ...more });
const names = (entries: readonly Entry[]) => entries.map((one) => one.name);

test("figures sort by value, names as people count, and what is unknown comes last either way", () => {
  const entries = [entry("log-10", { rows: 9 }), entry("log-9", { rows: 10 }), entry("a", { rows: 10 }), entry("closed")];
  assert.deepEqual(names(sorted(entries, { by: "name", descending: false })), ["a", "closed", "log-9", "log-10"]);
  assert.deepEqual(names(sorted(entries, { by: "rows", descending: true })), ["a", "log-9", "log-10", "closed"]);
  assert.deepEqual(names(sorted(entries, { by: "rows", descending: false })), ["log-10", "a", "log-9", "closed"]);
});

test("objects sort by their newest time, and what has none comes last", () => {
  const times: Record<string, number> = { old: 1, new: 9 };
  const sort = (descending: boolean) => names(sorted([entry("none"), entry("old"), entry("new")], { by: "newest", descending }, (name) => times[name] ?? null));
  assert.deepEqual(sort(true), ["new", "old", "none"]);
  assert.deepEqual(sort(false), ["old", "new", "none"]);
});

test("states sort from the worst, and one of them selects its objects, with the branches around them", () => {
  const state = (word: string, level: Condition["level"]) => ({ state: { word, level } });
  const entries = [
    entry("fine", state("green", "good")), entry("shut", state("closed", "")), entry("half", state("yellow", "warning")),
    entry("gone", state("red", "bad")), entry("silent"), entry("db", { branch: true }),
  ];
  const order = nextOrder({ by: "name", descending: false }, "state");
  assert.deepEqual(names(sorted(entries, order)), ["gone", "half", "shut", "fine", "db", "silent"]);
  const inner = new Map([["db", [entry("db/x", { parent: "db", ...state("yellow", "warning") })]]]);
  const lines = linesOf(entries, inner, { by: "name", descending: false }, "", undefined, "yellow");
  assert.deepEqual(lines.map((line) => line.entry.name), ["db", "db/x", "half"]);
});

test("a head sorts figures from the largest and names from A, and a second click turns them round", () => {
  const order = nextOrder({ by: "name", descending: false }, "rows");
  assert.deepEqual(order, { by: "rows", descending: true });
  assert.deepEqual(nextOrder(order, "rows"), { by: "rows", descending: false });
  assert.deepEqual(nextOrder(order, "kind"), { by: "kind", descending: false });
});

test("a branch stays while an object in it has the name that is sought", () => {
  const inner = new Map([["db", [entry("db/films", { parent: "db" }), entry("db/books", { parent: "db" })]]]);
  const lines = linesOf([entry("other"), entry("db", { branch: true })], inner, { by: "name", descending: false }, "FILM");
  assert.deepEqual(lines.map(({ entry: { name }, depth }) => [name, depth]), [["db", 0], ["db/films", 1]]);
});

test("of ten thousand lines only those near the view are drawn", () => {
  assert.deepEqual(linesInView(140_000, 560, 28, 10_000), [4_990, 5_030]);
  assert.deepEqual(linesInView(9_000, 560, 28, 3), [0, 3]);
});
