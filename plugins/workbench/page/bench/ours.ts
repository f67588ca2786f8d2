/** The workbench's grid over rows that are all here. */

import type { GridData } from "../grid/row_pool.ts";
import { GridView } from "../grid/view.ts";
import "../style/index.css";
import { COLUMNS, ROWS, value } from "./rows.ts";

const nothing = () => {};
const data: GridData = {
  count: ROWS,
  shown: (row, column) => {
    const at = Number(column.slice(1));
    return { text: String(value(row, at)), tone: at % 3 ? "text" : "digits" };
  },
  state: () => "",
  wanted: nothing,
};
const view = new GridView("Rows", data, {
  sort: nothing, resize: nothing, move: nothing, menu: nothing, cellMenu: nothing, selected: nothing, open: nothing,
  edit: () => false, erase: nothing, copy: nothing,
});
const column = (_: unknown, at: number) => ({
  name: `c${at}`, type: "", numeric: at % 3 === 0, sortable: true, width: 120, pinned: false,
});
view.columns(Array.from({ length: COLUMNS }, column), []);
document.getElementById("grid")?.append(view.element);
Object.assign(window, { scrollers: () => [view.element, view.element] });
