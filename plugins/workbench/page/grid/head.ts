/** The head of the grid: names, sorts, resizing and moving of columns. */

import { HEAD_HEIGHT, type Places } from "./geometry.ts";
import { HEAD, type Place } from "./selection.ts";

export interface HeadColumn {
  readonly name: string;
  readonly type: string;
  readonly numeric: boolean;
  readonly sortable: boolean;
}

export interface SortKey {
  readonly column: string;
  readonly descending?: boolean;
}

/** The drawn head. Its cells are made anew when columns enter or leave the view. */
export class Head {
  readonly element: HTMLDivElement;
  readonly #row: HTMLDivElement;
  readonly #fixed: HTMLDivElement;
  #drawn = "";

  constructor() {
    this.element = box("head", "rowgroup");
    this.#row = box("head-row", "row");
    this.#row.setAttribute("aria-rowindex", "1");
    this.#fixed = box("fixed", "none");
    this.#row.append(this.#fixed);
    this.element.append(this.#row);
    this.element.style.height = `${HEAD_HEIGHT}px`;
  }

  slide(x: number): void {
    this.#row.style.transform = `translateX(${-x}px)`;
    this.#fixed.style.transform = x ? `translateX(${x}px)` : "";
  }

  draw(
    places: Places,
    range: readonly [number, number],
    heads: ReadonlyMap<string, HeadColumn>,
    sort: readonly SortKey[],
    active: Place | null,
    version: number,
  ): void {
    const mark = active?.row === HEAD ? active.column : -1;
    const state = `${version}:${range[0]}:${range[1]}:${mark}`;
    if (state === this.#drawn) return;
    this.#drawn = state;
    const cells: HTMLElement[] = [];
    for (let at = 0; at < places.all.length; at += 1) {
      if (at >= places.pinned && (at < range[0] || at > range[1])) continue;
      const placed = places.all[at];
      const cell = headCell(heads.get(placed.name), placed.name, sort, at === mark);
      cell.setAttribute("aria-colindex", String(at + 2));
      cell.style.transform = `translateX(${placed.left}px)`;
      cell.style.width = `${placed.width}px`;
      cells.push(cell);
    }
    this.#fixed.style.width = `${places.pinnedWidth}px`;
    const corner = box("head-cell corner", "columnheader");
    corner.setAttribute("aria-colindex", "1");
    corner.setAttribute("aria-label", "row number");
    corner.textContent = "#";
    this.#fixed.replaceChildren(corner, ...cells.slice(0, places.pinned));
    this.#row.replaceChildren(this.#fixed, ...cells.slice(places.pinned));
  }

  cell(column: number): HTMLElement | null {
    return this.#row.querySelector<HTMLElement>(`[aria-colindex="${column + 2}"]`);
  }
}

function headCell(head: HeadColumn | undefined, name: string, sort: readonly SortKey[], active: boolean): HTMLElement {
  const cell = box(head?.numeric ? "head-cell numeric" : "head-cell", "columnheader");
  cell.tabIndex = active ? 0 : -1;
  const at = sort.findIndex((key) => key.column === name);
  if (head?.sortable) {
    const direction = at < 0 ? "none" : sort[at].descending ? "descending" : "ascending";
    cell.setAttribute("aria-sort", direction);
    cell.classList.add("sortable");
  }
  const label = box("head-name");
  label.textContent = name;
  cell.title = head ? `${name} · ${head.type}` : name;
  cell.append(label);
  if (at >= 0) {
    const mark = box("head-sort");
    mark.textContent = (sort[at].descending ? "↓" : "↑") + (sort.length > 1 ? String(at + 1) : "");
    cell.append(mark);
  }
  const menu = box("head-menu");
  menu.setAttribute("aria-hidden", "true");
  menu.textContent = "⋯";
  const grip = box("head-grip");
  grip.setAttribute("aria-hidden", "true");
  cell.append(menu, grip);
  return cell;
}

function box(name: string, role = ""): HTMLDivElement {
  const element = document.createElement("div");
  element.className = name;
  if (role) element.setAttribute("role", role);
  return element;
}
