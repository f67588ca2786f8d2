/** RevoGrid over the same rows. */

import { defineCustomElements } from "@revolist/revogrid/loader";
import { COLUMNS, ROWS, Row } from "./rows.ts";

defineCustomElements();
const grid = document.createElement("revo-grid");
document.getElementById("grid")?.append(grid);
Object.assign(grid, {
  columns: Array.from({ length: COLUMNS }, (_, at) => ({ prop: `c${at}`, name: `c${at}`, size: 120 })),
  source: Array.from({ length: ROWS }, (_, at) => new Row(at)),
  rowSize: 28,
});
const all = (name: string) => [...document.querySelectorAll<HTMLElement>(name)];
Object.assign(window, {
  scrollers: () => [
    all("revogr-viewport-scroll.rgCol .vertical-inner, revogr-viewport-scroll .vertical-inner")[0],
    all("revogr-viewport-scroll.rgCol")[0],
  ],
});
