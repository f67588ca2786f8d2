import assert from "node:assert/strict";
import { test } from "node:test";
import { barsOf } from "../wire/bars_of_numbers.ts";
import { CELL_BARS, isCut, line, show, typed } from "../wire/cells.ts";
import { asCsv, asJson, asText, spelled } from "../grid/copy_formats.ts";
import { UNTOUCHED, arranged, moved, usualOrder, visible, withHidden } from "../grid/column_layout.ts";
import { fitted, fittedWhole, widened } from "../grid/column_widths.ts";
import { MAX_EXTENT, Places, ROW_HEIGHTS, Rows, gutterOf } from "../grid/geometry.ts";
import { BLOCK, RowBlocks, type BlockOrder } from "../grid/row_blocks.ts";
import { partsOf } from "../grid/differences.ts";
import { misfit, nodeOf } from "../grid/misfits.ts";
import { HEAD, Selection, step } from "../grid/selection.ts";
import type { Cell, Column, GridRow, PageAnswer } from "../messages.ts";

const column = (name: string, more: Partial<Column> = {}): Column =>
  ({ name, type: "keyword", kind: "text", role: "", sortable: true, ...more }) as Column;

test("null, missing, empty and cut never look like a text", () => {
  const tones = ([null, ["missing", ""], "", "null", ["cut-text", "nul"]] as Cell[]).map((cell) => show(cell).tone);
  assert.deepEqual(tones, ["null", "missing", "empty", "text", "text cut"]);
  assert.ok(isCut(["cut-json", "["]) && !isCut(["json", "[]"]));
});

test("a cell with its column is read at a glance, and keeps its digits", () => {
  const at = column("at", { kind: "timestamp" });
  const times = ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000+00:00", "2026-01-02T03:04:05.120456Z", "2026-01-02T03:04:05+02:00"];
  assert.deepEqual(times.map((time) => show(time, at).text), [
    "2026-01-02 03:04:05",
    "2026-01-02 03:04:05",
    "2026-01-02 03:04:05.120",
    "2026-01-02 03:04:05 +02:00",
  ]);
  assert.equal(show("about noon", at).text, "about noon");
  assert.equal(show(times[0]).text, times[0]);
  assert.equal(show(times[0], column("text")).text, times[0]);
  const json = column("j", { kind: "json" });
  const previews = {
    "[]": "[]",
    "{ }": "{}",
    "[90.020, 1e400]": "[90.020, 1e400]",
    "[ 1 ]": "[1]",
    "[ ]": "[]",
    "[true,null]": "[true, null]",
    "[[1,2],3]": "[2] [2], 3",
    '{"lat":1.50,"lon":-2}': "{lat: 1.50, lon: -2}",
    '[{"sku":"A-17","qty":1,"price":2.0},{"sku":"B"}]': '[2] {sku: "A-17", qty: 1, …}, {1}',
    '{"a":{"b":[1,2]},"c":[{},"]"],"d":"}\\""}': '{3} a: {1}, c: [2], d: "}\\""',
    [`[${Array.from({ length: 300 }, (_, at) => at).join(",")}]`]: "[300] 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …",
    [`["${"x".repeat(80)}",1]`]: `[2] "${"x".repeat(39)}…, …`,
    [`["${"x".repeat(38)}🐎🐎",1]`]: `[2] "${"x".repeat(38)}…, …`, // half a sign is none
  };
  for (const [text, short] of Object.entries(previews)) assert.equal(show(["json", text], json).text, short);
  const tones = ([null, ["missing", ""]] as Cell[]).map((cell) => show(cell, column("n", { kind: "integer" })).tone);
  assert.deepEqual(tones, ["null digits", "missing digits"]);
  assert.equal(show(["cut-json", '[{"sku":'], json).text, '[{"sku":');
});

test("line breaks and tabs of a cell stay on one line", () => {
  assert.equal(line("a\nb\tc"), "a↵b⇥c");
  assert.equal(line("x".repeat(400)).length, 301);
  assert.equal(line(`${"x".repeat(299)}🐎`), `${"x".repeat(299)}…`);
});

test("typed numbers keep their digits, and what is no number stays a text", () => {
  const number = column("n", { kind: "integer" });
  assert.deepEqual(typed("12345678901234567890", number), ["integer", "12345678901234567890"]);
  assert.deepEqual(typed("1.10", column("d", { kind: "decimal" })), ["decimal", "1.10"]);
  assert.equal(typed("007", number), "007");
  assert.equal(typed("12", column("t")), "12");
  assert.deepEqual(typed('{"a": 1.0}', column("j", { kind: "json" })), ["json", '{"a": 1.0}']);
  assert.equal(typed("true", column("b", { kind: "boolean" })), true);
});

test("copies keep digits, and only CSV marks formulas", () => {
  const rows: Cell[][] = [[["decimal", "1.10"], "a,b", ["missing", ""]], [["integer", "-5"], "=1+1", null]];
  const table = { columns: ["n", "t", "m"], rows };
  assert.equal(asCsv(table), 'n,t,m\r\n1.10,"a,b",\r\n-5,\'=1+1,\r\n');
  assert.equal(asJson(table), '[\n  {"n": 1.10, "t": "a,b"},\n  {"n": -5, "t": "=1+1", "m": null}\n]');
  assert.equal(asText(table), "1.10\ta,b\t\n-5\t=1+1\t");
  assert.equal(asCsv({ columns: ["a", "b"], rows: [["", null], [["missing", ""], ""]] }), 'a,b\r\n"",\r\n,""\r\n');
  assert.equal(asCsv({ columns: ["a"], rows: [[null]] }), 'a\r\n""\r\n');
  assert.deepEqual([["missing", ""], null, "", "null"].map((cell) => spelled(cell as Cell)), ["missing", "null", '""', '"null"']);
  assert.equal(asText({ columns: ["t"], rows: [['say "x"\n']] }), 'say "x"\n');
});

test("a column that is new on the server stands where the server has it", () => {
  const columns = ["a", "b", "c"].map((name) => column(name));
  const arrangement = moved(UNTOUCHED, columns, "c", "a");
  const now = [columns[0], column("new"), columns[1], columns[2]];
  assert.deepEqual(arranged(now, arrangement).map(({ name }) => name), ["c", "a", "new", "b"]);
  const shown = visible(now, withHidden(arrangement, ["a"], true), NO_WIDTHS);
  assert.deepEqual(shown.map(({ name }) => name), ["c", "new", "b"]);
});

const NO_WIDTHS = new Map<string, number>();

test("the key and the time come first, vectors and what the server says last", () => {
  const columns = [
    column("_index", { role: "server" }),
    column("vector", { kind: "json", dimensions: 4 }),
    column("title"),
    column("changed", { kind: "timestamp" }),
    column("placed", { kind: "timestamp", role: "time" }),
    column("_id", { role: "key" }),
  ];
  const names = (those: readonly Column[]) => usualOrder(those).map(({ name }) => name);
  assert.deepEqual(names(columns), ["_id", "placed", "title", "changed", "vector", "_index"]);
  const without = columns.filter(({ role }) => role !== "time");
  assert.deepEqual(names(without), ["_id", "changed", "title", "vector", "_index"]);
});

test("columns are as wide as their content between bounds, and never cut a number", () => {
  const measure = (text: string) => text.length * 10;
  const columns = [
    column("_id", { role: "key" }),
    column("n", { kind: "integer", type: "long" }),
    column("city"),
    column("a.rather.long.name.of.a.column"),
    column("text"),
  ];
  const row = (digits: string, text: string) =>
    ({ cells: ["0".repeat(36), ["integer", digits], "Lisbon, Portugal", null, text] }) as unknown as GridRow;
  const rows = [row("1", "a".repeat(90)), row("1234567890123456789", "b")];
  const widths = fitted(columns, rows, measure);
  assert.deepEqual([...widths.values()], [168, 207, 177, 200, 320]);
  assert.equal(fittedWhole("text", columns, rows, measure), 900);
  assert.ok(!widened(widths, columns, rows, measure));
  assert.ok(widened(widths, columns, [row("-1234567890123456789012345678901234567890", "c".repeat(200))], measure));
  assert.deepEqual([...widths.values()], [168, 427, 177, 200, 320]);
});

test("distances come first, however a person arranged the columns", () => {
  const columns = ["_distance", "a", "b"].map((name) => column(name));
  const arrangement = withHidden(moved(UNTOUCHED, columns, "_distance", null), ["_distance"], true);
  assert.deepEqual(visible(columns, arrangement, NO_WIDTHS).map(({ name }) => name), ["a", "b"]);
  const [first, ...others] = visible(columns, arrangement, NO_WIDTHS, "_distance");
  assert.deepEqual([first.name, first.pinned, others.map(({ name }) => name)], ["_distance", true, ["a", "b"]]);
  const pinned = visible(columns, { ...UNTOUCHED, chosen: true, pinned: ["b"] }, NO_WIDTHS, "_distance");
  assert.deepEqual(pinned.map(({ name }) => name), ["_distance", "b", "a"]);
});

test("the columns in view are those that a scan finds", () => {
  const widths = Array.from({ length: 60 }, (_, at) => 50 + ((at * 37) % 200));
  const places = new Places(widths.map((width, at) => ({ name: `c${at}`, width, pinned: at < 2 })), 56);
  for (let x = 0; x < places.width; x += 33) {
    const [first, last] = places.range(x, 700);
    const seen = places.all.flatMap((one, at) =>
      !one.pinned && one.left + one.width > x + places.pinnedWidth && one.left < x + 700 ? [at] : [],
    );
    assert.deepEqual([first, last], [seen[0] ?? first, seen.at(-1) ?? last]);
    assert.ok(last - first + 1 <= places.most(700));
    const [from, to] = places.grown([first, last], places.most(700));
    assert.ok(from >= places.pinned && from <= first && to >= last && to < places.all.length);
    assert.equal(to - from + 1, places.most(700));
  }
});

test("the numbers of rows are whole however many there are", () => {
  assert.deepEqual([0, 99_999].map(gutterOf), [56, 56]);
  assert.ok(gutterOf(1_000_000_000) >= "1,000,000,000".length * 7);
});

test("a view that has no columns to scroll draws none", () => {
  const pinned = new Places([{ name: "id", width: 120, pinned: true }], 56);
  assert.deepEqual(pinned.grown(pinned.range(0, 700), pinned.most(700)), [1, 0]);
  const none = new Places([], 56);
  assert.deepEqual(none.grown(none.range(0, 700), none.most(700)), [0, -1]);
});

test("the scroll bar reaches the last of any number of rows, however high they are", () => {
  for (const height of Object.values(ROW_HEIGHTS)) {
    for (const count of [0, 1, 30, 100_000, 10_000_000, 2_000_000_000]) {
      const rows = new Rows(count, 600, height);
      assert.ok(rows.extent <= MAX_EXTENT);
      const end = rows.clamp((rows.extent - rows.view) * rows.scale);
      assert.equal(rows.range(end)[1], count - 1);
      assert.ok(end - rows.origin(end) * height < 2 ** 24 / 64);
      if (count) assert.equal(rows.reveal(count - 1, 0), rows.end);
    }
  }
});

test("a vector is its length and as many bars as a cell has room for", () => {
  const vector = column("v", { kind: "json", repeated: true, dimensions: 384 });
  const numbers = Array.from({ length: 384 }, (_, at) => Math.sin(at / 9) / 20);
  const { text, tone, name, bars } = show(["json", JSON.stringify(numbers)], vector);
  assert.deepEqual([text, tone, name], ["384", "vector", "vector of 384 numbers"]);
  assert.equal(bars?.().split("M").length, CELL_BARS + 1);
  assert.equal(barsOf("[1,-2,0]", 9)?.path, "M1.5 1V0.5M4.5 1V2M7.5 1V1");
  assert.deepEqual([barsOf("[]", 9), barsOf("[1,null]", 9), barsOf("[1,", 9), barsOf("[1e999]", 9)], [null, null, null, null]);
  assert.equal(show(["json", '{"a":[1]}'], vector).tone, "json"); // several vectors
});

test("keys move within the rows and into the head", () => {
  const size = { rows: 10, columns: 3, page: 4 };
  assert.deepEqual(step("ArrowUp", { row: 0, column: 1 }, size, false), { row: HEAD, column: 1 });
  assert.deepEqual(step("End", { row: 0, column: 1 }, size, true), { row: 9, column: 2 });
  assert.deepEqual(step("PageDown", { row: 8, column: 0 }, size, false), { row: 9, column: 0 });
  assert.equal(step("x", { row: 0, column: 0 }, size, false), null);
  const selection = new Selection({ row: 5, column: 2 }).move({ row: 3, column: 0 }, true);
  assert.deepEqual(selection.rectangle(3), { top: 3, bottom: 5, left: 0, right: 2 });
});

/** A server with so many rows, which counts offsets up to `reach` and goes on by cursors. */
function server(total: number, reach = Infinity) {
  const orders: BlockOrder[] = [];
  const fetch = async (order: BlockOrder): Promise<PageAnswer> => {
    orders.push(order);
    const offset = order.cursor ? Number(order.cursor) : order.offset;
    if (!order.cursor && offset + order.limit > reach) throw { code: "window-exceeded", message: "too far" };
    const rows = Array.from({ length: Math.max(0, Math.min(order.limit, total - offset)) }, (_, at) => {
      const id = String(offset + at);
      return { id, key: id, cells: [id] };
    });
    const end = offset + rows.length;
    return {
      columns: [column("id")], rows, notes: [], total, total_exact: true, offset,
      next: end < total ? String(end) : null, revision: "", seconds: 0.1, time: null, now: null, near: "",
    };
  };
  return { orders, fetch };
}

async function settled(rows: RowBlocks, place: number): Promise<string | undefined> {
  rows.wanted(place, Math.min(place + 20, rows.count - 1));
  for (let wait = 0; wait < 2_000 && !rows.row(place); wait += 1) await new Promise((done) => setImmediate(done));
  return rows.row(place)?.id;
}

const silent = { arrived: () => {}, failed: (error: unknown) => assert.fail(String(error)), walking: () => {}, behind: () => {} };

test("rows are fetched where they are seen, and only so many are kept", async () => {
  const { orders, fetch } = server(1_000_000);
  const rows = new RowBlocks(fetch, silent);
  rows.start();
  assert.equal(await settled(rows, 0), "0");
  assert.equal(await settled(rows, 999_990), "999990");
  assert.ok(orders.length < 8);
  for (let place = 0; place < 700_000; place += BLOCK * 10) await settled(rows, place);
  assert.equal(rows.row(0), undefined);
  assert.equal(await settled(rows, 0), "0");
});

test("rows past a server's offsets are reached by cursors, forwards and backwards", async () => {
  const { orders, fetch } = server(50_000, 10_000);
  const rows = new RowBlocks(fetch, silent);
  rows.start();
  await settled(rows, 0);
  assert.equal(await settled(rows, 43_210), "43210");
  const walked = orders.length;
  assert.equal(await settled(rows, 20_050), "20050");
  assert.ok(orders.length - walked < 20, `${orders.length - walked} requests to go back`);
  assert.equal(await settled(rows, 49_999), "49999");
});

test("a row that was changed keeps its place, and what is not kept is read from one moment", async () => {
  const { orders, fetch } = server(1_000);
  let behind = 0;
  const rows = new RowBlocks(fetch, { ...silent, behind: () => (behind += 1) });
  rows.start();
  await settled(rows, 0);
  const asked = orders.length;
  rows.replace("5", { id: "5", key: "later", cells: ["new", "x"] }, [column("id"), column("other")]);
  assert.deepEqual(rows.row(5), { id: "5", key: "later", cells: ["new"] });
  rows.replace("6", { id: "6", key: "6", cells: [null] }, [column("id")]);
  assert.deepEqual(rows.row(6)?.cells, [null]);
  assert.ok(rows.reads(0, 99) && !rows.reads(50, 550));
  rows.wanted(10, 30);
  assert.equal(behind, 0);
  rows.wanted(500, 530);
  assert.deepEqual([behind, orders.length], [1, asked]);
});

test("an edit that its column does not take says so, and a time as it is shown is written as stored", () => {
  const at = column("at", { type: "date", kind: "timestamp" });
  const stored = "2026-03-02T10:01:07.001Z";
  const forms = ["2026-04-01 10:00", "2026-04-01 10:00:30.5", "2026-04-01 10:00:30 +02:00", "2026-04-01", "yesterday"];
  const written = ["2026-04-01T10:00:00Z", "2026-04-01T10:00:30.5Z", "2026-04-01T10:00:30+02:00", "2026-04-01", "yesterday"];
  assert.deepEqual(forms.map((text) => typed(text, at, stored)), written);
  assert.deepEqual(forms.map((text) => typed(text, at, null, stored)), written);
  assert.equal(typed(forms[0], at, "2026-03-02 10:01"), forms[0]); // the server's own form
  assert.equal(typed(forms[0], at, "2026-03-02T10:01"), "2026-04-01T10:00:00");
  const why = (cell: Cell, of: Column, before: Cell = null) => misfit(nodeOf(cell)!, of, before);
  assert.deepEqual(written.map((text) => why(text, at, stored)).filter(Boolean), [`takes a time such as ${stored}`]);
  assert.equal(why("yesterday", at), "");
  assert.equal(why("1764410400000", at, stored), "");
  assert.equal(why("12,5", column("n", { kind: "float" })), "takes a number with a point: 12.5");
});

test("two texts differ between what they begin and end with, and no sign is cut in half", () => {
  assert.deepEqual(partsOf("Malmö, Sweden", "Lund, Sweden"), { before: "", own: "Malmö", after: ", Sweden" });
  assert.deepEqual(partsOf("12", "123"), { before: "12", own: "", after: "" });
  assert.deepEqual(partsOf("aaa", "aa"), { before: "aa", own: "a", after: "" });
  assert.deepEqual(partsOf("x😀", "x😁"), { before: "x", own: "😀", after: "" });
  assert.deepEqual(partsOf("\u{1f600}", "\u{2f600}"), { before: "", own: "\u{1f600}", after: "" });
  const long = (middle: string) => "a".repeat(100) + middle + "b".repeat(100);
  assert.deepEqual(partsOf(long("1"), long("2")), { before: `…${"a".repeat(24)}`, own: "1", after: `${"b".repeat(24)}…` });
  assert.equal(partsOf("c".repeat(900), "").own, `${"c".repeat(600)}…`);
});
