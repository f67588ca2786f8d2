/** Rows and cells of the document, recycled while the grid scrolls. */

import { ROW_HEIGHT, type Placed, type Places } from "./geometry.ts";
import { type Rectangle, within } from "./selection.ts";

/** What a cell shows; `tone` is its class: how null, missing, empty and cut are told apart. */
export interface Shown {
  readonly text: string;
  readonly tone: string;
}

/** The rows that a grid draws. */
export interface GridData {
  /** Number of rows, as far as known. */
  readonly count: number;
  /** What a cell shows; null while its row is loading. */
  shown(row: number, column: string): Shown | null;
  /** State of a whole row, as a class: `changed`, `deleted`, `new` or an empty text. */
  state(row: number): string;
  /** The rows now in view, so that missing ones are fetched. */
  wanted(first: number, last: number): void;
}

const NUMBERS = new Intl.NumberFormat("en");
const LOADING: Shown = { text: "", tone: "loading" };

class Cell {
  readonly element: HTMLDivElement;
  readonly #text = document.createTextNode("");
  column = -1;
  #drawn = "";
  #tone = "";
  #name = "";
  #selected = false;
  #active = false;

  constructor() {
    this.element = document.createElement("div");
    this.element.setAttribute("role", "gridcell");
    this.element.setAttribute("aria-selected", "false");
    this.element.tabIndex = -1;
    this.element.append(this.#text);
  }

  place(column: number, placed: Placed, offset: number): void {
    this.column = column;
    this.element.style.transform = `translateX(${placed.left - offset}px)`;
    this.element.style.width = `${placed.width}px`;
    this.element.setAttribute("aria-colindex", String(column + 2));
    this.element.hidden = false;
  }

  hide(): void {
    this.column = -1;
    this.element.hidden = true;
  }

  show(shown: Shown, selected: boolean, active: boolean): void {
    if (this.#drawn !== shown.text) this.#text.data = this.#drawn = shown.text;
    const tone = `cell ${shown.tone}${selected ? " selected" : ""}${active ? " active" : ""}`;
    if (tone === this.#tone) return;
    this.#tone = this.element.className = tone;
    if (selected !== this.#selected) {
      this.#selected = selected;
      this.element.setAttribute("aria-selected", String(selected));
    }
    if (active !== this.#active) {
      this.#active = active;
      this.element.tabIndex = active ? 0 : -1;
    }
    const name = NAMES[shown.tone] ?? "";
    if (name === this.#name) return;
    this.#name = name;
    if (name) this.element.setAttribute("aria-label", name);
    else this.element.removeAttribute("aria-label");
  }
}

const NAMES: Record<string, string> = { missing: "missing", empty: "empty text", loading: "loading" };

class Line {
  readonly element: HTMLDivElement;
  readonly #fixed: HTMLDivElement;
  readonly #number = document.createElement("div");
  readonly #pinned: Cell[] = [];
  #cells: Cell[] = [];
  row = -1;
  #state = "";

  constructor() {
    this.element = document.createElement("div");
    this.element.setAttribute("role", "row");
    this.element.className = "line";
    this.#fixed = document.createElement("div");
    this.#fixed.className = "fixed";
    this.#fixed.setAttribute("role", "none");
    this.#number.className = "number";
    this.#number.setAttribute("role", "rowheader");
    this.#number.setAttribute("aria-colindex", "1");
    this.#fixed.append(this.#number);
    this.element.append(this.#fixed);
  }

  /** Make as many cells as a view needs; all are placed anew. */
  fit(pinned: number, cells: number, width: number): void {
    this.#fixed.style.width = `${width}px`;
    while (this.#pinned.length < pinned) this.#pinned.push(this.#add(this.#fixed));
    for (const cell of this.#pinned) cell.hide();
    while (this.#cells.length < cells) this.#cells.push(this.#add(this.element));
    while (this.#cells.length > cells) this.#cells.pop()?.element.remove();
    for (const cell of this.#cells) cell.hide();
  }

  #add(parent: HTMLElement): Cell {
    const cell = new Cell();
    parent.append(cell.element);
    return cell;
  }

  move(row: number, origin: number): void {
    if (this.row === -1) this.element.removeAttribute("aria-hidden");
    this.row = row;
    this.element.style.transform = `translateY(${(row - origin) * ROW_HEIGHT}px)`;
    this.element.setAttribute("aria-rowindex", String(row + 2));
    this.#number.textContent = NUMBERS.format(row + 1); // a new node: a text that changes its place counts as a shift
  }

  slide(x: number): void {
    this.#fixed.style.transform = x ? `translateX(${x}px)` : "";
  }

  draw(view: Drawn): void {
    const { data, places, columns } = view;
    const state = data.state(this.row);
    if (state !== this.#state) {
      this.#state = state;
      this.element.className = state ? `line ${state}` : "line";
    }
    for (let at = 0; at < places.pinned; at += 1) this.#show(this.#pinned[at], at, view);
    const [first, last] = columns;
    const slots = this.#cells.length;
    for (let at = first; at <= last; at += 1) this.#show(this.#cells[at % slots], at, view);
    if (last - first + 1 < slots) {
      for (const cell of this.#cells) if (cell.column < first || cell.column > last) cell.hide();
    }
  }

  #show(cell: Cell, at: number, { data, places, selected, active }: Drawn): void {
    const placed = places.all[at];
    if (cell.column !== at) cell.place(at, placed, 0);
    cell.show(
      data.shown(this.row, placed.name) ?? LOADING,
      within(selected, this.row, at),
      !!active && active.row === this.row && active.column === at,
    );
  }

  cell(column: number): HTMLElement | undefined {
    return [...this.#pinned, ...this.#cells].find((cell) => cell.column === column)?.element;
  }
}

export interface Drawn {
  readonly data: GridData;
  readonly places: Places;
  readonly columns: readonly [number, number];
  readonly selected: Rectangle | null;
  readonly active: { row: number; column: number } | null;
}

/** The drawn rows; a row that leaves the view becomes one that enters it. */
export class RowPool {
  readonly #body: HTMLElement;
  readonly #live = new Map<number, Line>();
  readonly #free: Line[] = [];
  #pinned = 0;
  #cells = 0;
  #width = 0;
  #x = 0;
  #origin = 0;

  constructor(body: HTMLElement) {
    this.#body = body;
  }

  /** Begin anew for other columns or another width. */
  fit(places: Places, view: number): void {
    [this.#pinned, this.#cells, this.#width] = [places.pinned, places.most(view), places.pinnedWidth];
    for (const line of [...this.#live.values(), ...this.#free]) line.fit(this.#pinned, this.#cells, this.#width);
  }

  slide(x: number): void {
    if (x === this.#x) return;
    this.#x = x;
    for (const line of this.#live.values()) line.slide(x);
  }

  /** Draw rows `first` to `last`; with `all`, those too that were drawn before. */
  draw(first: number, last: number, origin: number, all: boolean, view: Drawn): void {
    const moved = origin !== this.#origin;
    this.#origin = origin;
    for (const [row, line] of this.#live) {
      if (row >= first && row <= last) continue;
      this.#live.delete(row);
      this.#free.push(line);
    }
    for (let row = first; row <= last; row += 1) {
      let line = this.#live.get(row);
      const fresh = !line;
      if (!line) {
        line = this.#free.pop() ?? this.#make();
        this.#live.set(row, line);
        line.slide(this.#x);
      }
      if (fresh || moved) line.move(row, origin);
      if (fresh || all) line.draw(view);
    }
    for (const line of this.#free) if (line.row !== -1) this.#park(line);
  }

  #park(line: Line): void {
    line.row = -1;
    line.element.style.transform = "translateY(-9999px)";
    line.element.setAttribute("aria-hidden", "true");
  }

  #make(): Line {
    const line = new Line();
    line.fit(this.#pinned, this.#cells, this.#width);
    this.#body.append(line.element);
    return line;
  }

  cell(row: number, column: number): HTMLElement | undefined {
    return this.#live.get(row)?.cell(column);
  }

  /** The row and column of an element in the pool; column -1 is the row's number. */
  find(element: Element): { row: number; column: number } | null {
    const line = element.closest(".line");
    if (!line) return null;
    const row = Number(line.getAttribute("aria-rowindex")) - 2;
    const cell = element.closest("[aria-colindex]");
    return cell ? { row, column: Number(cell.getAttribute("aria-colindex")) - 2 } : null;
  }
}
