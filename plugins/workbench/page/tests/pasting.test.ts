/** Copied cells over rows: read as their columns say, and named where that cannot be. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { readPaste } from "../grid/pasting.ts";
import type { Cell, Column, GridRow } from "../messages.ts";
import { typed } from "../wire/cells.ts";

const column = (name: string, kind: string, more: object = {}) =>
  ({ name, kind, repeated: false, multiple: false, written: "always", reasons: {}, members: [], dimensions: null, ...more }) as unknown as Column;
const COLUMNS = [
  column("n", "integer"), column("t", "text", { multiple: true }), column("ok", "boolean"),
  column("v", "float", { repeated: true }), column("key", "text", { written: "insert", reasons: { edit: "a key stays." } }),
];
const ROWS: GridRow[] = [{ id: "1", key: "k1", cells: [] }, { id: "2", key: "k2", cells: [] }];
const before: Record<string, Cell> = { t: ["json", '["a"]'] };
const paste = (...table: string[][]) => {
  const landing = { first: 4, rows: ROWS, columns: COLUMNS, likeOf: () => null, cellOf: (_: GridRow, name: string) => before[name] ?? null };
  const { edits, refused } = readPaste(table, landing);
  return [edits.map(({ row, column, after }) => [row.id, column, after]), refused.map(({ row, column, text, reason }) => [row, column, text, reason])];
};

test("each cell is read as its column says", () => {
  assert.deepEqual(paste([" 9007199254740993 ", "a\nb", "TRUE", "[1.50]"], ["", "", "", ""]), [
    [
      ["1", "n", ["integer", "9007199254740993"]], ["1", "t", "a\nb"], ["1", "ok", true], ["1", "v", ["json", "[1.50]"]],
      ["2", "n", null], ["2", "t", ""], ["2", "ok", null], ["2", "v", null],
    ],
    [],
  ]);
});

test("each cell that cannot be is named, and rows and columns that are not there", () => {
  assert.deepEqual(paste(["1.5", "x", "yes", "2", "k", "over"], ["7"], ["8", "9"]), [
    [["1", "t", "x"], ["2", "n", ["integer", "7"]]],
    [
      [5, "n", "1.5", "takes a whole number"], [5, "ok", "yes", "takes true or false"], [5, "v", "2", "takes an array"],
      [5, "key", "k", "a key stays"], [5, "", "over", "there is no such column"], [7, "", "8  9", "there is no such row"],
    ],
  ]);
});

test("an array stays one where one stood, or where the column is not of texts", () => {
  const tags = COLUMNS[1];
  assert.deepEqual(typed('["a","b"]', tags, ["json", '["a"]']), ["json", '["a","b"]']);
  assert.equal(typed('["a","b"]', tags, "a"), '["a","b"]');
  assert.equal(typed("[draft] a", tags, ["json", '["a"]']), "[draft] a");
  assert.deepEqual(typed("[1,2]", column("n", "integer", { multiple: true })), ["json", "[1,2]"]);
});
