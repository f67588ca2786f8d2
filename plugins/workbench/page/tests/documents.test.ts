/** Rows as documents: what differs, what is refused, and digits as they are. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { misfit, nodeOf } from "../grid/misfits.ts";
import { type RowOf, documentOf, readDocument } from "../grid/row_document.ts";
import type { Cell, Column } from "../messages.ts";
import { JsonFault, lineAt, oneLine, readJson } from "../ui/json_text.ts";

const column = (name: string, kind: string, more: object = {}) =>
  ({ name, kind, type: kind, repeated: false, multiple: false, role: "", written: "always", reasons: {}, members: [], dimensions: null, ...more }) as unknown as Column;

const COLUMNS = [
  column("id", "text", { role: "key", written: "insert", reasons: { edit: "a key stays" } }),
  column("big", "integer"),
  column("price", "float"),
  column("title", "text"),
  column("tags", "text", { multiple: true }),
  column("body", "json"),
  column("gone", "text"),
  column("score", "float", { role: "server", written: "never", reasons: { edit: "it is computed" } }),
];
const CELLS: Record<string, Cell> = {
  id: "7", big: ["integer", "9007199254740993"], price: ["decimal", "1.10"], title: 'say "x"\n', tags: ["json", '["a","b"]'],
  body: ["json", '{"n":12345678901234567890, "n":1e400}'], gone: ["missing", ""], score: ["decimal", "1.0"],
};
const ROW: RowOf = { kind: "update", columns: COLUMNS, cells: CELLS };
const TEXT = documentOf(COLUMNS, CELLS, "update");
const read = (text: string, row = ROW) => {
  const { values, faults } = readDocument(text, row);
  return [values.map(({ column, after }) => [column, after]), faults.map(({ reason, at }) => `${lineAt(text, at)}: ${reason}`)];
};

test("a row is written with every digit, and what is not touched does not differ", () => {
  assert.deepEqual(Object.keys(JSON.parse(TEXT)), ["id", "big", "price", "title", "tags", "body"]);
  for (const digits of ["9007199254740993", "1.10", "12345678901234567890", "1e400"]) assert.ok(TEXT.includes(digits), digits);
  assert.deepEqual(read(TEXT), [[], []]);
  assert.deepEqual(read(TEXT.replaceAll(/\n */g, " ").replace('"a"', '"\\u0061"')), [[], []]);
});

test("only what differs becomes a change, with its digits", () => {
  const text = TEXT.replace("740993", "740995").replace("1.10", "1.100").replace('"a", "b"', '"a", 12345678901234567890').replace("\n}", ',\n  "gone": null\n}');
  const [values] = read(text.replace("12345678901234567890]", '"c"]').replace("12345678901234567890", "12345678901234567891"));
  assert.deepEqual(values, [
    ["big", ["integer", "9007199254740995"]],
    ["price", ["decimal", "1.100"]],
    ["tags", ["json", '["a","c"]']],
    ["body", ["json", '{"n":12345678901234567891,"n":1e400}']],
    ["gone", null],
  ]);
});

test("what cannot be a change is refused with its line and its reason", () => {
  const refused = (from: string, to: string) => (read(TEXT.replace(from, to))[1] as string[]).join("; ");
  assert.equal(refused('"7"', '"8"'), "2: id is the key of the row, which cannot be changed");
  assert.equal(refused("9007199254740993", '"many"'), "3: big takes a whole number");
  assert.equal(refused("1.10", "true"), "4: price takes a number");
  assert.equal(refused('"price"', '"prize"'), "4: prize is no column of these rows; 15: price is left out, and a change cannot remove a value; null stores a null".replace("15", String(TEXT.split("\n").length)));
  assert.equal(refused("\n}", ',\n  "score": 2\n}').replace(/^\d+/, "n"), "n: score cannot be changed: it is computed");
  assert.equal(refused('"id": "7"', '"big": 1'), "3: big is here twice");
  assert.equal(refused("1.10,", "1.10"), "5: a comma is missing before this");
  assert.deepEqual(read("[]")[1], ["1: a document begins with {"]);
});

test("a new row has no key, no server's values, and leaves out what it will", () => {
  const row: RowOf = { kind: "insert", columns: COLUMNS, cells: {} };
  const text = documentOf(COLUMNS, CELLS, "insert");
  assert.deepEqual(Object.keys(JSON.parse(text)), ["big", "price", "title", "tags", "body"]);
  assert.equal((read(text, row)[0] as unknown[]).length, 5);
  assert.deepEqual(read('{"title": "x", "id": "8"}', row), [[["title", "x"]], ["1: id is the id, which stands above"]]);
});

test("values are held to what their columns take, unless the row has another kind already", () => {
  const says = (json: string, like: Column, before?: Cell) => misfit(readJson(json), like, before);
  assert.equal(says("[1]", column("n", "integer")), "takes one value, not an array");
  assert.equal(says("1", column("n", "integer", { repeated: true })), "takes an array");
  assert.match(says('[1, "x"]', column("n", "integer", { multiple: true })), /each value of which is a whole number/);
  assert.equal(says("[1, null]", column("n", "integer", { multiple: true })), "");
  assert.equal(says("-1", column("n", "unsigned")), "takes a whole number without a sign");
  assert.equal(says('"1.5"', column("n", "decimal")), "");
  assert.equal(says("{}", column("n", "text")), "takes no object");
  assert.equal(says("5", column("n", "text")), "takes a text, in quotes");
  assert.equal(says("5", column("n", "text"), ["integer", "4"]), "");
  assert.equal(says("1.5", column("n", "integer"), ["integer", "4"]), "takes a whole number");
  assert.equal(says("[1, 2]", column("v", "float", { repeated: true, dimensions: 3 })), "takes 3 numbers");
  assert.equal(nodeOf(["cut-text", "x"]), null);
});

test("a fault in a text is where it stands", () => {
  const at = (text: string) => {
    try {
      readJson(text);
      return "";
    } catch (error) {
      assert.ok(error instanceof JsonFault);
      return `${error.at} ${error.message}`;
    }
  };
  assert.equal(at('{"a": 1,}'), "8 there is a comma too many before }");
  assert.equal(at('{"a" 1}'), "5 a colon is missing");
  assert.equal(at("[1 2]"), "3 a comma is missing before this");
  assert.equal(at("[01]"), "1 01 is no number");
  assert.equal(at('["a\nb"]').slice(0, 1), "1");
  assert.equal(at('{"a": [1'), "8 the text ends too early");
  assert.equal(at("[1] x"), "4 there is a text after the end");
  assert.equal(oneLine(readJson('{ "a" : [ 1.0 , -0 ] }')), '{"a":[1.0,-0]}');
});
