/** The head of the grid: names, sorts, resizing and moving of columns. */

import { HEAD_HEIGHT, type Placed, type Places } from "./geometry.ts";
import { inOrder } from "./row_pool.ts";
import { HEAD, type Place } from "./selection.ts";

export interface HeadColumn {
  readonly name: string;
  readonly type: string;
  /** What the values are, in at most two signs. */
  readonly mark: string;
  readonly numeric: boolean;
  readonly sortable: boolean;
}

export interface SortKey {
  readonly column: string;
  readonly descending?: boolean;
}

/** The drawn head. A cell that leaves the view becomes one that enters it. */
export class Head {
  readonly element: HTMLDivElement;
  readonly #row: HTMLDivElement;
  readonly #fixed: HTMLDivElement;
  readonly #pinned: HeadCell[] = [];
  readonly #cells: HeadCell[] = [];
  #range = "";
  #version = -1;
  #mark = -1;

  constructor() {
    this.element = box("head", "rowgroup");
    this.#row = box("head-row", "row");
    this.#row.setAttribute("aria-rowindex", "1");
    this.#fixed = box("fixed", "none");
    const corner = box("head-cell corner", "columnheader");
    corner.setAttribute("aria-colindex", "1");
    corner.setAttribute("aria-label", "row number");
    corner.textContent = "#";
    this.#fixed.append(corner);
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
    [first, last]: readonly [number, number],
    heads: ReadonlyMap<string, HeadColumn>,
    sort: readonly SortKey[],
    active: Place | null,
    version: number,
  ): void {
    const mark = active?.row === HEAD ? active.column : -1;
    const anew = version !== this.#version;
    const range = `${first}:${last}`;
    if (!anew && range === this.#range && mark === this.#mark) return;
    [this.#version, this.#range, this.#mark] = [version, range, mark];
    if (anew) this.#fixed.style.width = `${places.pinnedWidth}px`;
    const show = (cell: HeadCell, at: number) => {
      if (anew || cell.column !== at) cell.show(at, places.all[at], heads, sort);
      cell.focusable(at === mark);
    };
    fit(this.#pinned, places.pinned, this.#fixed);
    this.#pinned.forEach(show);
    const slots = last - first + 1;
    fit(this.#cells, slots, this.#row);
    for (let at = first; at <= last; at += 1) show(this.#cells[at % slots], at);
  }

  /** Put the heads into the order of their columns. */
  tidy(): void {
    const byColumn = (one: HeadCell, other: HeadCell) => one.column - other.column;
    inOrder(this.#row, [this.#fixed, ...[...this.#cells].sort(byColumn).map((cell) => cell.element)]);
  }

  cell(column: number): HTMLElement | null {
    return [...this.#pinned, ...this.#cells].find((cell) => cell.column === column)?.element ?? null;
  }
}

function fit(cells: HeadCell[], count: number, parent: HTMLElement): void {
  while (cells.length < count) {
    const cell = new HeadCell();
    cells.push(cell);
    parent.append(cell.element);
  }
  while (cells.length > count) cells.pop()?.element.remove();
}

class HeadCell {
  readonly element = box("head-cell", "columnheader");
  readonly #type = box("head-type");
  readonly #label = box("head-name");
  readonly #mark = box("head-sort");
  #width = 0;
  #look = "";
  #sorted = "";
  column = -1;

  constructor() {
    const menu = box("head-menu");
    menu.setAttribute("aria-hidden", "true");
    menu.textContent = "⋯";
    const grip = box("head-grip");
    grip.setAttribute("aria-hidden", "true");
    this.element.tabIndex = -1;
    this.#mark.hidden = true;
    this.#type.setAttribute("aria-hidden", "true");
    this.element.append(this.#type, this.#label, this.#mark, menu, grip);
  }

  show(column: number, placed: Placed, heads: ReadonlyMap<string, HeadColumn>, sort: readonly SortKey[]): void {
    const { element } = this;
    const head = heads.get(placed.name);
    const at = sort.findIndex((key) => key.column === placed.name);
    this.column = column;
    const look = `head-cell${head?.numeric ? " numeric" : ""}${head?.sortable ? " sortable" : ""}`;
    if (look !== this.#look) element.className = this.#look = look;
    element.style.transform = `translateX(${placed.left}px)`;
    if (placed.width !== this.#width) element.style.width = `${(this.#width = placed.width)}px`;
    element.title = head ? `${placed.name} · ${head.type}` : placed.name;
    element.setAttribute("aria-colindex", String(column + 2));
    if (this.#type.dataset.mark !== head?.mark) this.#type.dataset.mark = head?.mark ?? "";
    this.#label.textContent = placed.name; // a new node: a text that changes its place counts as a shift
    this.#sort(!!head?.sortable, sort[at], at >= 0 && sort.length > 1 ? String(at + 1) : "");
  }

  #sort(sortable: boolean, key: SortKey | undefined, place: string): void {
    const way = !key ? "none" : key.descending ? "descending" : "ascending";
    const sorted = sortable ? `${way} ${place}` : "";
    if (sorted === this.#sorted) return;
    this.#sorted = sorted;
    if (sortable) this.element.setAttribute("aria-sort", way);
    else this.element.removeAttribute("aria-sort");
    this.#mark.hidden = !key;
    this.#mark.textContent = key ? (key.descending ? "↓" : "↑") + place : "";
  }

  focusable(active: boolean): void {
    if (this.element.tabIndex !== (active ? 0 : -1)) this.element.tabIndex = active ? 0 : -1;
  }
}

function box(name: string, role = ""): HTMLDivElement {
  const element = document.createElement("div");
  element.className = name;
  if (role) element.setAttribute("role", role);
  return element;
}
