/** Copying cells to the clipboard; `copy_formats.ts` writes them. */

import { asFailure } from "../ui/controls.tsx";
import { copyText, toast } from "../ui/toasts.tsx";
import { isCut } from "../wire/cells.ts";
import { type Table, asCsv, asJson, asText } from "./copy_formats.ts";
import type { Rectangle } from "./selection.ts";

const FORMS = { text: asText, json: asJson, csv: asCsv };

/** What cells are copied from; null if it has already said why they cannot be. */
export interface CellSource {
  table(area: Rectangle, whole: boolean): Promise<Table | null>;
}

let copied = "";

/** Whether a text is what was copied from cells here last. */
export function isCopied(text: string): boolean {
  return text !== "" && text.replaceAll("\r\n", "\n") === copied.replaceAll("\r\n", "\n");
}

/** Copy the cells of an area, or with `whole` its whole rows; what is cut is said. */
export async function copyArea(
  source: CellSource,
  area: Rectangle,
  form: keyof typeof FORMS,
  whole = false,
): Promise<void> {
  try {
    const table = await source.table(area, whole);
    if (!table) return;
    const cut = table.rows.flat().filter(isCut).length;
    const cells = table.rows.length * table.columns.length;
    const what = cells === 1 ? "Copied the cell" : `Copied ${table.rows.length.toLocaleString("en")} × ${table.columns.length} cells`;
    const text = FORMS[form](table);
    copied = form === "text" && cells > 1 ? text : "";
    await copyText(text, cut ? `${what}; ${cut} of them only in part, because they are cut` : what);
  } catch (error) {
    toast(asFailure(error).message, "bad");
  }
}
