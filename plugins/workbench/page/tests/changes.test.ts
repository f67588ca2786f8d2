/** The change list: steps that can be taken back, and what is sent. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ChangeList, changesOf, forgetChanges } from "../state/change_list.ts";
import { complete, filterOf } from "../grid/filter_rows.ts";
import { asText, readTable } from "../grid/copy_formats.ts";
import type { GridRow } from "../messages.ts";

const row = (id: string): GridRow => ({ id, key: `key-${id}`, cells: [] });
const values = (list: ChangeList, object = "books") => list.of(object).map(({ kind, values }) => [kind, values]);

test("each step is undone and done again, and a new one ends that", () => {
  const list = new ChangeList();
  list.edit("books", row("1"), "title", "a", "b");
  list.edit("books", row("1"), "title", "b", "c");
  list.flipDeleted("books", [row("2")]);
  list.insert("books", { title: "new" }, "", null);
  const whole = values(list);
  for (let step = 0; step < 4; step += 1) assert.ok(list.undo("books"));
  assert.equal(list.undo("books"), false);
  assert.deepEqual(values(list), []);
  for (let step = 0; step < 4; step += 1) assert.ok(list.redo("books"));
  assert.equal(list.redo("books"), false);
  assert.deepEqual(values(list), whole);
  list.undo("books");
  list.edit("books", row("3"), "title", "x", "y");
  assert.equal(list.canRedo("books"), false);
});

test("what is dropped comes back, and steps of other objects stay", () => {
  const list = new ChangeList();
  list.edit("books", row("1"), "title", "a", "b");
  list.edit("orders", row("9"), "total", "1", "2");
  list.drop("books");
  assert.deepEqual([list.of("books").length, list.of("orders").length], [0, 1]);
  assert.ok(list.undo("books"));
  assert.deepEqual(values(list), [["update", { title: "b" }]]);
  assert.ok(list.undo("orders"));
  assert.deepEqual([list.of("books").length, list.of("orders").length], [1, 0]);
});

test("what was sent is not undone, and what was not sent still is", () => {
  const list = new ChangeList();
  list.edit("books", row("1"), "title", "a", "b");
  list.edit("books", row("2"), "title", "c", "d");
  list.settle(new Set([list.of("books")[0].number]));
  assert.deepEqual(list.of("books").map(({ id }) => id), ["2"]);
  assert.ok(list.undo("books"));
  assert.deepEqual(values(list), []);
  assert.equal(list.undo("books"), false);
  assert.ok(list.redo("books"));
  assert.deepEqual(list.of("books").map(({ id }) => id), ["2"]);
});

test("several cells are one step, and a cell that gets back its value is none", () => {
  const list = new ChangeList();
  const edit = (id: string, after: string) => ({ row: row(id), column: "title", before: "a", after });
  list.fill("books", [edit("1", "b"), edit("2", "c")]);
  assert.equal(list.of("books").length, 2);
  list.fill("books", [edit("1", "a")]);
  assert.equal(list.of("books").length, 1);
  list.undo("books");
  list.undo("books");
  assert.equal(list.of("books").length, 0);
  list.fill("books", [edit("1", "a")]);
  assert.equal(list.canUndo("books"), false);
});

test("signing out forgets changes, steps and new rows that are half written", () => {
  const list = changesOf("shop");
  list.edit("books", row("1"), "title", "a", "b");
  list.drafts.set("books", { id: "", texts: { title: "half" } });
  forgetChanges();
  assert.deepEqual([list.list.value.length, list.canUndo("books"), list.drafts.size], [0, false, 0]);
});

test("a table that was copied is read again as it was", () => {
  const cells = [["a", "1"], ["x\ny", 'q"r'], ["", "z\tw"]];
  assert.deepEqual(readTable(asText({ columns: ["p", "q"], rows: cells })), cells);
  assert.deepEqual(readTable("a\t1\r\nb\t2\r\n"), [["a", "1"], ["b", "2"]]);
  assert.deepEqual(readTable('5" disk\t1'), [['5" disk', "1"]]);
});

test("a row of the filter without a value, or with one of two bounds, is left out", () => {
  assert.ok(!complete(filterOf("n", "=", null)));
  assert.ok(complete(filterOf("n", "=", ""))); // the empty text, from the menu of a cell
  assert.ok(complete(filterOf("n", "null")));
  assert.ok(!complete(filterOf("n", "in", [])));
  assert.ok(!complete(filterOf("n", "between", ["1", ""])));
  assert.ok(!complete({ type: "raw", text: "" }));
});
