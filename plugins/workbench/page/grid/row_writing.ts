/** Beginning to write a row as a document: its values are fetched whole first. */

import { type RowDraft, changesOf, isTouched } from "../state/change_list.ts";
import type { Cell, GridRow } from "../messages.ts";
import { asFailure } from "../ui/controls.tsx";
import { toast } from "../ui/toasts.tsx";
import { isCut } from "../wire/cells.ts";
import { call } from "../wire/client.ts";
import type { GridController } from "./controller.ts";
import { documentOf, isWritten } from "./row_document.ts";

/**
 * Begin to change a row, or to write a new one that begins with its values; false, and a message, if that cannot be.
 * A row that is being written stays: the pane that shows it is then to be opened.
 */
export async function writeRow(grid: GridController, row: GridRow, kind: RowDraft["kind"]): Promise<boolean> {
  const list = changesOf(grid.connection);
  const open = list.rowDrafts.peek().get(grid.object);
  if (open && isTouched(open)) {
    if (open.row.key !== row.key || open.kind !== kind) toast("Another row is being written. Finish it or cancel it first.");
    return true;
  }
  if (kind === "update" && row.key === null) {
    toast("This row has no key, so no change can name it.");
    return false;
  }
  const columns = grid.columns.peek();
  const cells: Record<string, Cell> = {};
  for (const { name } of columns) cells[name] = grid.rows.cellOf(row, name);
  const cut = columns.filter((column) => isCut(cells[column.name]) && isWritten(column, kind));
  for (const { name } of cut) {
    try {
      if (row.key === null) throw new Error("only its beginning is here, and the row has no key");
      cells[name] = (await call("cell", { connection: grid.connection, key: row.key, column: name })).cell;
    } catch (error) {
      toast(`${name} is left out of the document: ${asFailure(error).message}`, "bad");
    }
  }
  const begin = documentOf(columns, cells, kind);
  list.write(grid.object, { kind, row, cells: kind === "insert" ? {} : cells, begin, text: begin, id: "" });
  return true;
}
