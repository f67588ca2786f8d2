/** A block of copied cells as changes: each is read as its column says, and each that cannot be is named. */

import type { Cell, Column, GridRow } from "../messages.ts";
import { whyNoChange } from "../state/change_list.ts";
import { typed } from "../wire/cells.ts";
import { misfit, nodeOf } from "./misfits.ts";

/** A copied cell that its place does not take. */
export interface Refused {
  /** The number of the row, from 1. */
  readonly row: number;
  /** Empty beyond the last column, and for a whole row that is not there. */
  readonly column: string;
  readonly text: string;
  readonly reason: string;
}

export interface Pasted {
  readonly edits: readonly { readonly row: GridRow; readonly column: string; readonly before: Cell; readonly after: Cell }[];
  readonly refused: readonly Refused[];
}

/** Where a block lands: rows from one on, and columns from one on; there may be fewer than the block has. */
export interface Landing {
  readonly first: number;
  readonly rows: readonly GridRow[];
  readonly columns: readonly Column[];
  readonly cellOf: (row: GridRow, column: string) => Cell;
  /** A value that the column has somewhere; null if none is known. */
  readonly likeOf: (column: string) => Cell;
}

/** Lay copied cells over rows. */
export function readPaste(table: readonly (readonly string[])[], { first, rows, columns, cellOf, likeOf }: Landing): Pasted {
  const edits: Pasted["edits"][number][] = [];
  const refused: Refused[] = [];
  table.forEach((line, down) => {
    const row = rows[down];
    const number = first + down + 1;
    if (!row) return void refused.push({ row: number, column: "", text: line.join("  "), reason: "there is no such row" });
    line.forEach((text, right) => {
      const column = columns[right];
      const name = column?.name ?? "";
      const before = column ? cellOf(row, name) : null;
      const after = column ? read(text, column, before, likeOf(name)) : null;
      const reason = column ? reasonAgainst(row, column, before, after) : "there is no such column";
      if (reason) refused.push({ row: number, column: name, text, reason });
      else edits.push({ row, column: name, before, after });
    });
  });
  return { edits, refused };
}

/** Spreadsheets write TRUE, and nothing for no value; what the cell holds already is taken as it stands. */
function read(text: string, column: Column, before: Cell, like: Cell): Cell {
  if (column.kind === "text") return typed(text, column, before);
  const trimmed = text.trim();
  if (!trimmed) return null;
  return typed(column.kind === "boolean" ? trimmed.toLowerCase() : trimmed, column, before, like);
}

function reasonAgainst(row: GridRow, column: Column, before: Cell, after: Cell): string {
  const why = whyNoChange(row, column);
  if (why) return why.replace(/\.$/, "");
  const node = nodeOf(after);
  return node ? misfit(node, column, before) : "";
}
