import assert from "node:assert/strict";
import { test } from "node:test";
import { filterOf, joinList, rowForCell, rowForRange, splitList, textsOf } from "../grid/filter_rows.ts";
import { type Entry, NO_ENTRY, backFrom, entryOf, rowOf, rowsWith, typedInto } from "../grid/filter_entry.ts";
import type { Cell, Column } from "../messages.ts";
import { queryOf, spell } from "../state/query.ts";
import { read, write } from "../state/route.ts";
import { compact, duration, fileSize, whole } from "../ui/figures.ts";
import { pretty, readJson } from "../ui/json_text.ts";
import { MessageReader } from "../wire/event_stream.ts";

test("JSON keeps digits, duplicate names and order", () => {
  const text = '{"b":1.0,"a":12345678901234567890,"a":1e400,"c":["x",-0]}';
  assert.equal(pretty(text).replaceAll(/\s/g, ""), text);
  assert.equal(pretty("not json"), "not json");
  assert.equal(readJson("[]").kind, "array");
  for (const wrong of ["", "[1,]", "{1:2}", "[1] 2", "[".repeat(5_000)]) assert.throws(() => readJson(wrong), SyntaxError);
});

test("a list of values survives commas and quotes", () => {
  for (const values of [["a", "b"], ["a,b", 'say "x"', ""], [" x"], []]) assert.deepEqual(splitList(joinList(values)), values);
});

test("a filter is typed in one go, and each kind of row is edited back into itself", () => {
  const operators = ["=", "!=", "<", "<=", ">", ">=", "between", "in", "null", "not-null", "starts"];
  const columns = ["n", "n o", "items.sku"].map((name) => ({ name, kind: "integer", operators })) as unknown as Column[];
  const says = (text: string) => {
    // a key at a time, as a person does
    const entry = [...text].reduce((entry, key) => typedInto(entry, entry.text + key, columns), NO_ENTRY);
    assert.deepEqual(rowOf(typedInto(NO_ENTRY, text, columns)), rowOf(entry), text);
    return rowOf(entry);
  };
  assert.deepEqual(says("n >= 100"), filterOf("n", ">=", "100"));
  assert.deepEqual(says("n>=100"), filterOf("n", ">=", "100"));
  assert.deepEqual(says("n o at most 5"), filterOf("n o", "<=", "5"));
  assert.deepEqual(says("items.sku is Lisbon"), filterOf("items.sku", "=", "Lisbon"));
  assert.deepEqual(says("items.sku is not null "), filterOf("items.sku", "not-null"));
  assert.deepEqual(says("n between 1 to 2"), filterOf("n", "between", ["1", "2"]));
  assert.deepEqual(says('n is one of 1, "2,5"'), filterOf("n", "in", ["1", "2,5"]));
  assert.equal(says("nothing = 1"), null);
  const grouped = { ...filterOf("items.sku", "=", "A"), group: "1", case: false };
  for (const row of [grouped, filterOf("n", "=", ""), filterOf("n", "between", ["1", "2"]), filterOf("n", "in", ["a,b", ""]), { type: "raw", text: "n:1" } as const]) {
    assert.deepEqual(rowOf(entryOf(row, 0)), row);
    assert.deepEqual(rowsWith([row], entryOf(row, 0)), [row]);
  }
  let entry: Entry | null = entryOf(filterOf("n", "between", ["1", "2"]), 0);
  const texts = [];
  for (; entry; entry = backFrom(entry)) texts.push(entry.text);
  assert.deepEqual(texts, ["2", "1", "1", "n"]);
});

test("a range goes from the least to the greatest value, and mixed values make none", () => {
  const between = (kind: string, ...cells: unknown[]) => {
    const column = { name: "c", kind, operators: ["between"], arrays: [], repeated: false } as unknown as Column;
    return rowForRange(column, cells as Cell[], "both")?.value ?? null;
  };
  assert.deepEqual(between("integer", ["integer", "9007199254740993"], ["integer", "9"], ["integer", "9007199254740992"]), ["9", "9007199254740993"]);
  assert.deepEqual(between("float", ["integer", "10"], ["decimal", "9.5"], null), ["9.5", "10"]);
  assert.deepEqual(between("timestamp", "2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05Z"), ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5Z"]);
  assert.deepEqual(between("timestamp", "2026-01-02T00:30:00+02:00", "2026-01-01T23:00:00Z"), ["2026-01-02T00:30:00+02:00", "2026-01-01T23:00:00Z"]);
  assert.deepEqual(between("timestamp", "2026-01-02T03:04:05.1239Z", "2026-01-02T03:04:05.123456Z"), ["2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.1239Z"]);
  assert.equal(between("integer", "many 3", ["integer", "3"]), null);
});

test("a cell makes the filter row that keeps it", () => {
  const text = { name: "t", operators: ["=", "!=", "null", "not-null", "empty"] } as unknown as Column;
  assert.deepEqual(rowForCell(text, ["integer", "12345678901234567890"], false), filterOf("t", "=", "12345678901234567890"));
  assert.equal(rowForCell(text, null, false)?.op, "null");
  assert.equal(rowForCell(text, null, true)?.op, "not-null");
  assert.equal(rowForCell(text, "", false)?.op, "empty");
  assert.equal(rowForCell(text, ["cut-text", "begin"], false), null);
  assert.equal(rowForCell({ name: "g", operators: [] } as unknown as Column, "x", false), null);
});

test("every view has an address that leads back to it", () => {
  for (const name of ["shop", "a/b", "100% #?", "ä"]) {
    const rows = { object: name, filters: [filterOf(name, "in", ["1", name])], sort: [{ column: name, descending: true }] };
    for (const to of [
      { view: "structure", connection: name, object: name },
      { view: "rows", connection: name, rows },
      { view: "rows", connection: name, rows, near: { key: "k_-=", column: null } },
      { view: "rows", connection: name, rows, near: { key: "k_-=", column: name } },
    ] as const) {
      assert.deepEqual(read(write(to)), to);
    }
    assert.deepEqual(read(write({ view: "console", connection: name })), { view: "console", connection: name });
    assert.deepEqual(read(write({ view: "drivers", driver: name })), { view: "drivers", driver: name });
  }
  assert.equal(read("#/connection/%E0%A4%A").view, "home");
});

test("the address of rows holds their selection, and what is none leads to the connection", () => {
  const read_ = (text: string) => read(`#/connection/shop/rows/${encodeURIComponent(text)}`);
  assert.deepEqual(read_(spell(queryOf({ object: "orders" }))), { view: "rows", connection: "shop", rows: { object: "orders" } });
  const big = read_('{"object":"o","filters":[{"type":"filter","column":"n","op":"in","value":[12345678901234567890,1.10]}],"residual":50}');
  assert.deepEqual(big.view === "rows" && [big.rows.filters?.map(textsOf), big.rows.residual], [[["12345678901234567890", "1.10"]], 50]);
  for (const wrong of ["", "orders", "{}", "[]", '{"object":""}', "null", '{"object":"o"', ...[
    '"filters":{}', '"filters":[1]', '"filters":[{"type":"raw"}]', '"filters":[{"type":"filter","column":"a"}]', '"sort":["a"]',
    '"sort":1', '"columns":"a"', '"columns":[1,null]', '"span":null', '"span":[]', '"tenant":{}',
  ].map((part) => `{"object":"o",${part}}`)]) {
    assert.equal(read_(wrong).view, "connection", wrong);
  }
});

test("figures are short and keep big numbers whole", () => {
  assert.equal(whole("12345678901234567890"), "12,345,678,901,234,567,890");
  assert.deepEqual([compact(12_003), fileSize(98_300), duration(0.0004), duration(2)], ["12K", "98.3 kB", "1 ms", "2.0 s"]);
  assert.deepEqual([99.6, 119.7, 362.1, 3_600, 7_260].map(duration), ["1 min 40 s", "2 min 0 s", "6 min 2 s", "1 h 0 min", "2 h 1 min"]);
});

test("the event stream is read however it is cut", () => {
  const stream = 'data: {"kind":"hello"}\n\n: remark\n\nevent: x\ndata: {"a":\ndata: 1}\r\n\r\n';
  for (const size of [1, 3, 7, 100]) {
    const reader = new MessageReader();
    const found: string[] = [];
    for (let at = 0; at < stream.length; at += size) found.push(...reader.read(stream.slice(at, at + size)));
    assert.deepEqual(found, ['{"kind":"hello"}', '{"a":\n1}'], `cut every ${size}`);
  }
});
