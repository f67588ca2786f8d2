import assert from "node:assert/strict";
import { test } from "node:test";
import { UNMAPPED, chosenReading, chosenType, placeOf, renamedTo, undecided } from "../import/mapping.ts";
import type { ProposedColumn } from "../messages.ts";

test("nobody has chosen anything for a column with the name of what each object has", () => {
  for (const name of ["constructor", "toString", "__proto__", "valueOf"]) {
    assert.deepEqual([chosenReading(name, UNMAPPED), chosenType(name, UNMAPPED), placeOf(name, UNMAPPED)], [undefined, undefined, name]);
    assert.deepEqual(Object.entries(renamedTo(UNMAPPED, name, "n").types), []);
    const chosen = { ...UNMAPPED, readings: { [name]: "ja/nein" }, types: { [name]: "date" } };
    assert.deepEqual([chosenReading(name, chosen), chosenType(name, chosen)], ["ja/nein", "date"]);
    assert.deepEqual(Object.entries(renamedTo(chosen, name, "n").types), [["n", "date"]]);
  }
});

test("a doubt is settled by a person unless its values stay texts", () => {
  const column = { doubt: "the point in '1.234' may part thousands", consent: false } as ProposedColumn;
  assert.deepEqual((["rows", "object", "caller"] as const).map((source) => undecided({ ...column, source })), [false, true, true]);
  assert.equal(undecided({ ...column, source: "object", consent: true }), false);
});
