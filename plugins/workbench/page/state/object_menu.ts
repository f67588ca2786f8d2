/** Copies of rows to another connection: what is to be copied, and the menu of an object that offers it. */

import { signal } from "@preact/signals";
import type { OpenConnection, RowSelection } from "../messages.ts";
import { go } from "./route.ts";
import { type MenuItem, openMenu } from "../ui/menu.tsx";

/** The rows that a person wants to copy, which the dialog asks about. */
export const copying = signal<{ readonly connection: string; readonly rows: RowSelection } | null>(null);

export function canCopy(open: OpenConnection): boolean {
  return open.hooks.includes("export_rows");
}

/** What can be done with an object, in a menu below it. */
export function openObjectMenu(open: OpenConnection, object: string, anchor: DOMRect): void {
  const { connection, hooks } = open;
  const items: MenuItem[] = [
    { label: "Rows", icon: "table", run: () => go({ view: "rows", connection, rows: { object } }) },
    { label: "Structure", icon: "columns", run: () => go({ view: "structure", connection, object }) },
  ];
  if (hooks.includes("plan_change")) items.push({ label: "Import rows", icon: "import", run: () => go({ view: "import", connection, object }) });
  if (canCopy(open)) items.push({ label: "Copy to a connection …", icon: "copy", run: () => (copying.value = { connection, rows: { object } }) });
  openMenu(`Menu of ${object}`, items, anchor);
}
