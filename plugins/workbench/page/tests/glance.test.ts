import assert from "node:assert/strict";
import { test } from "node:test";
import { points, units } from "../console/places.ts";
import { rowsForBar, sentence, share } from "../glance/figures.ts";
import { filterOf } from "../grid/filter_rows.ts";
import { Summaries } from "../grid/summaries.ts";
import type { Column, Summarized } from "../messages.ts";

const column = (name: string, more: Partial<Column> = {}): Column =>
  ({ name, type: "long", kind: "integer", role: "", operators: ["=", ">=", "<"], ...more }) as Column;
const summary = (name: string, more: Partial<Summarized> = {}): Summarized => ({
  column: column(name), rows: 10, missing: 0, values: [], distinct: null, minimum: null, maximum: null, bars: [],
  approximate: {}, absent: {}, notes: [], seconds: 0, ...more,
});
const rest = (milliseconds = 20) => new Promise((done) => setTimeout(done, milliseconds));

class Server {
  readonly asked: string[] = [];
  readonly ended: string[] = [];
  readonly answer = new Map<string, () => void>();

  ask = (name: string, signal: AbortSignal): Promise<Summarized> => {
    this.asked.push(name);
    return new Promise((done, fail) => {
      this.answer.set(name, () => done(summary(name)));
      signal.addEventListener("abort", () => {
        this.ended.push(name);
        fail(new Error("ended"));
      });
    });
  };
}

test("summaries are asked for two at a time, and kept", async () => {
  const server = new Server();
  const summaries = new Summaries(server.ask, 1);
  summaries.want(["a", "b", "c"]);
  assert.deepEqual(server.asked, []);
  await rest();
  assert.deepEqual(server.asked, ["a", "b"]);
  server.answer.get("a")?.();
  await rest();
  assert.deepEqual(server.asked, ["a", "b", "c"]);
  summaries.want(["a", "b", "c"]);
  await rest();
  assert.deepEqual(server.asked, ["a", "b", "c"]);
  assert.ok(summaries.of("a"));
  assert.equal(summaries.of("b"), undefined);
});

test("requests for columns that left the view are ended, and asked again when they come back", async () => {
  const server = new Server();
  const summaries = new Summaries(server.ask, 1);
  summaries.want(["a", "b"]);
  await rest();
  summaries.want(["b", "c"]);
  await rest();
  assert.deepEqual(server.ended, ["a"]);
  assert.deepEqual(server.asked, ["a", "b", "c"]);
  assert.equal(summaries.of("a"), undefined);
  server.answer.get("b")?.();
  summaries.want(["a"]);
  await rest();
  assert.deepEqual(server.asked, ["a", "b", "c", "a"]);
});

test("an answer for rows that are no longer shown is not kept", async () => {
  const server = new Server();
  const summaries = new Summaries(server.ask, 1);
  summaries.want(["a"]);
  await rest();
  summaries.reset();
  server.answer.get("a")?.();
  await rest();
  assert.equal(summaries.of("a"), undefined);
});

test("a refusal is kept as such", async () => {
  const summaries = new Summaries(() => Promise.reject(new Error("no")), 1);
  summaries.want(["a"]);
  await rest();
  assert.ok("failed" in (summaries.of("a") ?? {}));
});

test("estimated figures say so", () => {
  const told = sentence(summary("a", { distinct: 5, approximate: { distinct: "it is counted by sketches" } }));
  assert.equal(told, "10 rows, ≈ 5 different values");
});

test("a share never rounds to nothing or to all", () => {
  assert.deepEqual([share(1, 1000), share(999, 1000), share(1, 2), share(0, 9), share(0, 0)],
    ["< 1 %", "> 99 %", "50 %", "0 %", ""]);
});

test("a bar is a filter of its half-open span, except where elements differ", () => {
  const bar = { lower: ["integer", "9007199254740993"], upper: ["integer", "9007199254740995"], rows: 1 } as const;
  assert.deepEqual(rowsForBar(summary("a"), bar), [
    filterOf("a", ">=", "9007199254740993"),
    filterOf("a", "<", "9007199254740995"),
  ]);
  assert.equal(rowsForBar(summary("a", { column: column("a", { repeated: true }) }), bar), null);
});

test("places of a text with astral characters", () => {
  const text = "# 😀\nGET";
  assert.equal(points(text), 7);
  assert.equal(units(text, 4), 5);
  assert.equal(units(text, 99), text.length);
});
