/** What the palette finds, the best first. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ranked } from "../shell/ranking.ts";

test("what begins with the words comes first, and each word must be there", () => {
  const names = ["Light or dark colours", "Export", "back_orders", "orders", "Order", "Keys"];
  const entries = names.map((label) => ({ label, also: label === "Keys" ? "shortcuts" : "" }));
  const labels = (text: string) => ranked(entries, text).map(({ label }) => label);
  assert.deepEqual(labels("order"), ["Order", "orders", "back_orders"]);
  assert.deepEqual(labels("or"), ["orders", "Order", "Light or dark colours", "back_orders", "Export", "Keys"]);
  assert.deepEqual(labels("dark light"), ["Light or dark colours"]);
  assert.deepEqual(labels("nothing"), []);
  assert.deepEqual(labels(" "), names);
});
