/** Rows and cells of the document, recycled while the grid scrolls. */

import { ROW_HEIGHT, type Placed, Places } from "./geometry.ts";
import { type Rectangle, within } from "./selection.ts";
import { CELL_BARS, type Shown } from "../wire/cells.ts";

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
  #width = 0;
  #tone = "";
  #name = "";
  #spoken = "";
  #selected = false;
  #active = false;
  #bars: SVGPathElement | null = null;
  #path = "";

  constructor() {
    this.element = document.createElement("div");
    this.element.setAttribute("role", "gridcell");
    this.element.setAttribute("aria-selected", "false");
    this.element.tabIndex = -1;
    this.element.append(this.#text);
  }

  place(column: number, { left, width }: Placed): void {
    this.column = column;
    this.element.style.transform = `translateX(${left}px)`;
    if (width !== this.#width) this.element.style.width = `${(this.#width = width)}px`;
    this.element.setAttribute("aria-colindex", String(column + 2));
  }

  show(shown: Shown, selected: boolean, active: boolean): void {
    if (this.#drawn !== shown.text) this.#text.data = this.#drawn = shown.text;
    const path = shown.bars?.() ?? "";
    if (path !== this.#path) this.#draw((this.#path = path));
    if (shown.tone === this.#tone && selected === this.#selected && active === this.#active && (shown.name ?? "") === this.#spoken) return;
    this.#spoken = shown.name ?? "";
    this.#tone = shown.tone;
    this.element.className = `cell ${shown.tone}${selected ? " selected" : ""}${active ? " active" : ""}`;
    if (selected !== this.#selected) {
      this.#selected = selected;
      this.element.setAttribute("aria-selected", String(selected));
    }
    if (active !== this.#active) {
      this.#active = active;
      this.element.tabIndex = active ? 0 : -1;
    }
    const name = shown.name ?? NAMES[shown.tone.split(" ", 1)[0]] ?? "";
    if (name === this.#name) return;
    this.#name = name;
    if (name) this.element.setAttribute("aria-label", name);
    else this.element.removeAttribute("aria-label");
  }

  /** Draw the bars beside the text, in an element that is made once and goes with the cell. */
  #draw(path: string): void {
    if (!this.#bars) {
      const drawing = document.createElementNS(SVG, "svg");
      drawing.setAttribute("class", "bars");
      drawing.setAttribute("viewBox", `0 0 ${CELL_BARS} 2`);
      drawing.setAttribute("preserveAspectRatio", "none");
      drawing.setAttribute("aria-hidden", "true");
      drawing.append((this.#bars = document.createElementNS(SVG, "path")));
      this.element.append(drawing);
    }
    this.#bars.setAttribute("d", path);
  }
}

const SVG = "http://www.w3.org/2000/svg";

const NAMES: Record<string, string> = { missing: "missing", empty: "empty text", loading: "loading" };

class Line {
  readonly element: HTMLDivElement;
  readonly #fixed: HTMLDivElement;
  readonly #number = document.createElement("div");
  readonly #pinned: Cell[] = [];
  readonly #cells: Cell[] = [];
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
  fit({ pinned, pinnedWidth, width }: Places, cells: number): void {
    this.element.style.width = `${width}px`;
    this.#fixed.style.width = `${pinnedWidth}px`;
    fit(this.#pinned, pinned, this.#fixed);
    fit(this.#cells, cells, this.element);
  }

  move(row: number, origin: number, height: number): void {
    if (this.row === -1) this.element.removeAttribute("aria-hidden");
    this.row = row;
    this.element.style.transform = `translateY(${(row - origin) * height}px)`;
    this.element.setAttribute("aria-rowindex", String(row + 2));
    this.#number.textContent = NUMBERS.format(row + 1); // a new node: a text that changes its place counts as a shift
  }

  slide(x: number): void {
    this.#fixed.style.transform = x ? `translateX(${x}px)` : "";
  }

  /** Draw all cells, or else only those that take the place of another column. */
  draw(view: Drawn, all: boolean): void {
    if (all) this.#tell(view.data.state(this.row));
    for (let at = 0; at < this.#pinned.length; at += 1) this.#show(this.#pinned[at], at, view, all);
    const [first, last] = view.columns;
    const slots = this.#cells.length;
    for (let at = first; at <= last; at += 1) this.#show(this.#cells[at % slots], at, view, all);
  }

  #tell(state: string): void {
    if (state === this.#state) return;
    this.#state = state;
    this.element.className = state ? `line ${state}` : "line";
  }

  #show(cell: Cell, at: number, { data, places, selected, active }: Drawn, all: boolean): void {
    const placed = places.all[at];
    if (cell.column !== at) cell.place(at, placed);
    else if (!all) return;
    cell.show(
      data.shown(this.row, placed.name) ?? LOADING,
      within(selected, this.row, at),
      !!active && active.row === this.row && active.column === at,
    );
  }

  /** Put the cells into the order of their columns. */
  tidy(): void {
    const byColumn = (one: Cell, other: Cell) => one.column - other.column;
    const elements = (cells: readonly Cell[]) => [...cells].sort(byColumn).map((cell) => cell.element);
    inOrder(this.element, [this.#fixed, ...elements(this.#cells)]);
    inOrder(this.#fixed, [this.#number, ...elements(this.#pinned)]);
  }

  cell(column: number): HTMLElement | undefined {
    return [...this.#pinned, ...this.#cells].find((cell) => cell.column === column)?.element;
  }
}

/** Have so many cells in a row; all are to be placed anew. */
function fit(cells: Cell[], count: number, parent: HTMLElement): void {
  while (cells.length > count) cells.pop()?.element.remove();
  for (const cell of cells) cell.column = -1;
  while (cells.length < count) {
    const cell = new Cell();
    cells.push(cell);
    parent.append(cell.element);
  }
}

/** Order the children of an element. One that has the focus stays where it is, since moving it would take that away. */
export function inOrder(parent: Element, children: readonly Element[]): void {
  if (children.every((child, at) => parent.children[at] === child)) return;
  const held = children.find((child) => child.contains(document.activeElement));
  const at = held ? children.indexOf(held) : children.length;
  for (const child of children.slice(0, at)) parent.insertBefore(child, held ?? null);
  for (const child of children.slice(at + 1)) parent.append(child);
}

export interface Drawn {
  readonly data: GridData;
  readonly places: Places;
  readonly columns: readonly [number, number];
  /** The height of a row. */
  readonly height: number;
  readonly selected: Rectangle | null;
  readonly active: { row: number; column: number } | null;
}

/** The drawn rows; a row that leaves the view becomes one that enters it. */
export class RowPool {
  readonly #body: HTMLElement;
  readonly #live = new Map<number, Line>();
  readonly #free: Line[] = [];
  #places = new Places([], 0);
  #cells = 0;
  #height: number = ROW_HEIGHT;
  #x = 0;
  #origin = 0;
  #columns: readonly [number, number] = [0, -1];

  constructor(body: HTMLElement) {
    this.#body = body;
  }

  /** Begin anew for other columns, or another number of those that are not pinned. */
  fit(places: Places, cells: number): void {
    [this.#places, this.#cells] = [places, cells];
    for (const line of [...this.#live.values(), ...this.#free]) line.fit(places, cells);
  }

  slide(x: number): void {
    if (x === this.#x) return;
    this.#x = x;
    for (const line of this.#live.values()) line.slide(x);
  }

  /** Draw rows `first` to `last`; with `all`, those too that were drawn before and whose columns did not move. */
  draw(first: number, last: number, origin: number, all: boolean, view: Drawn): void {
    const [from, to] = view.columns;
    const across = all || from !== this.#columns[0] || to !== this.#columns[1];
    this.#columns = [from, to];
    const moved = origin !== this.#origin || view.height !== this.#height;
    [this.#origin, this.#height] = [origin, view.height];
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
      if (fresh || moved) line.move(row, origin, view.height);
      if (fresh || across) line.draw(view, fresh || all);
    }
    for (const line of this.#free) if (line.row !== -1) this.#park(line);
  }

  /** Put rows and cells into the order of the document, in which they are read aloud: recycling mixes them. */
  tidy(): void {
    const lines = [...this.#live].sort(([one], [other]) => one - other).map(([, line]) => line);
    for (const line of lines) line.tidy();
    inOrder(this.#body, [...lines, ...this.#free].map((line) => line.element));
  }

  #park(line: Line): void {
    line.row = -1;
    line.element.style.transform = "translateY(-9999px)";
    line.element.setAttribute("aria-hidden", "true");
  }

  #make(): Line {
    const line = new Line();
    line.fit(this.#places, this.#cells);
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
