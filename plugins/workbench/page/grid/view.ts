/**
 * The grid: a window of the size of the view that stays put, and one transform that moves what it shows.
 *
 * Only the rows and columns in view exist in the document. The browser's own scroll bars give the position; rows are
 * drawn at it, however many there are.
 */

import { beginning } from "../wire/previews.ts";
import type { CellEditor } from "./cell_editor.ts";
import { GUTTER, HEAD_HEIGHT, Places, ROW_HEIGHT, ROW_HEIGHTS, type RowHeight, Rows, gutterOf } from "./geometry.ts";
import { Head, type HeadColumn, type SortKey } from "./head.ts";
import { type GridData, RowPool } from "./row_pool.ts";
import { TextInput, isTyped } from "./text_input.ts";
import { HEAD, type Place, type Rectangle, Selection, step } from "./selection.ts";

export interface GridColumn extends HeadColumn {
  readonly width: number;
  readonly pinned: boolean;
}

/** What a person does in the grid; the one who shows the grid decides what follows. */
export interface GridActions {
  sort(column: string, add: boolean): void;
  resize(column: string, width: number): void;
  /** A column is to be as wide as its content. */
  fit(column: string): void;
  move(column: string, before: string | null): void;
  menu(column: string, anchor: DOMRect): void;
  cellMenu(place: Place, anchor: DOMRect): void;
  selected(selection: Selection): void;
  /** The exact text of a cell, which may show less; null for none. */
  exact(place: Place): string | null;
  open(place: Place): void;
  edit(place: Place, typed: string | null): boolean;
  /** The row of a place is to be edited as a whole. */
  editRow?(place: Place): void;
  /** A text is pasted at a place; `table` if it was copied from one. */
  paste?(place: Place, text: string, table: boolean): void;
  /** An input method begins a text at a place. */
  compose?(place: Place): CellEditor | null;
  erase(area: Rectangle): void;
  copy(area: Rectangle): void;
  /** Rows similar to a row are asked for. */
  similar?(place: Place): void;
  /** The columns in view, and how far they are scrolled. */
  viewed?(x: number, range: readonly [number, number], version: number): void;
}

/** Where letters begin no text, they move as in other readers. */
const LETTERS: Record<string, string> = { h: "ArrowLeft", j: "ArrowDown", k: "ArrowUp", l: "ArrowRight" };
const NARROWEST = 48;
const LONGEST_HINT = 1_000;
/** Milliseconds without a move after which the document is put in order. */
const TIDY = 100;

export class GridView {
  readonly element: HTMLDivElement;
  readonly #window: HTMLDivElement;
  readonly #body: HTMLDivElement;
  readonly #filler: HTMLDivElement;
  readonly #head = new Head();
  readonly #pool: RowPool;
  readonly #actions: GridActions;
  readonly #observer: ResizeObserver;
  readonly #input: TextInput | null;
  #data: GridData;
  #heads = new Map<string, HeadColumn>();
  #sort: readonly SortKey[] = [];
  #columns: readonly GridColumn[] = [];
  #gutter = GUTTER;
  #places = new Places([], GUTTER);
  #rows = new Rows(0, 0);
  #width = 0;
  #height = 0;
  #y = 0;
  #row: number = ROW_HEIGHT;
  #slots = 0;
  #version = 0;
  #frame = 0;
  #tidying = 0;
  #stale = true;
  #expected = -1;
  /** The focus was in the grid when cells were taken away; the active cell gets it back. */
  #held = false;
  selection = new Selection({ row: 0, column: 0 });

  constructor(label: string, data: GridData, actions: GridActions) {
    this.#data = data;
    this.#actions = actions;
    const make = (name: string, role: string) => {
      const element = document.createElement("div");
      element.className = name;
      if (role) element.setAttribute("role", role);
      return element;
    };
    this.element = make("grid", "grid");
    this.element.setAttribute("aria-label", label);
    this.element.setAttribute("aria-multiselectable", "true");
    this.element.tabIndex = -1;
    this.#window = make("grid-window", "none");
    const clip = make("grid-clip", "none");
    this.#body = make("grid-body", "rowgroup");
    this.#filler = make("grid-filler", "none");
    clip.append(this.#body);
    this.#window.append(this.#head.element, clip);
    this.element.append(this.#window, this.#filler);
    this.#pool = new RowPool(this.#body);
    const { compose } = actions;
    this.#input = compose
      ? new TextInput({
          typed: (text) => void this.#edit(this.selection.active, text),
          compose: () => (this.#bring(this.selection.active) ? compose(this.selection.active) : null),
        })
      : null;
    this.#observer = new ResizeObserver(() => this.#measure());
    this.#observer.observe(this.element);
    this.element.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.element.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    this.element.addEventListener("keydown", (event) => this.#key(event));
    document.addEventListener("paste", this.#paste);
    this.element.addEventListener("pointerdown", (event) => this.#pointer(event));
    this.element.addEventListener("pointerover", (event) => this.#hint(event));
    this.element.addEventListener("dblclick", (event) => this.#double(event));
    this.element.addEventListener("contextmenu", (event) => this.#context(event));
  }

  /** End the grid: nothing observes it any more. */
  close(): void {
    this.#observer.disconnect();
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#tidying);
    document.removeEventListener("paste", this.#paste);
    this.element.remove();
  }

  set data(data: GridData) {
    this.#data = data;
    this.refresh();
  }

  /** Show these columns, in this order (pinned ones first). */
  columns(columns: readonly GridColumn[], sort: readonly SortKey[]): void {
    this.#heads = new Map(columns.map((column) => [column.name, column]));
    this.#sort = sort;
    this.#columns = columns;
    this.#places = new Places(columns, this.#gutter);
    this.element.setAttribute("aria-colcount", String(columns.length + 1));
    const { row, column } = this.selection.active;
    if (column >= columns.length) this.selection = new Selection({ row, column: Math.max(0, columns.length - 1) });
    this.#layout();
  }

  /** Draw rows of another height; the active row stays where it is, or else the first one in view. */
  set rowHeight(height: RowHeight) {
    const before = this.#row;
    this.#row = ROW_HEIGHTS[height];
    if (before === this.#row) return;
    const [first, last] = this.#rows.range(this.#y);
    const { row } = this.selection.active;
    const seen = row >= first && row <= last;
    const kept = seen ? row : this.#y / before;
    const above = kept * before - this.#y;
    this.element.dataset.rows = height;
    this.element.style.setProperty("--row", `${this.#row}px`);
    this.#layout();
    this.#goto(kept * this.#row - above);
    if (seen) this.#goto(this.#rows.reveal(row, this.#y));
  }

  /** The first and last row in view of so many; last < first if there are none. */
  range(count: number): [number, number] {
    const rows = new Rows(count, this.#rows.view, this.#row);
    return rows.range(rows.clamp(this.#y));
  }

  get places(): Places {
    return this.#places;
  }

  /** Names of the columns in the order in which they stand. */
  get names(): string[] {
    return this.#places.all.map((placed) => placed.name);
  }

  get pinned(): ReadonlySet<string> {
    return new Set(this.#places.all.filter((placed) => placed.pinned).map((placed) => placed.name));
  }

  /** Draw what is in view again: rows have arrived, or their number has changed. */
  refresh(): void {
    if (this.#data.count !== this.#rows.count) this.#layout();
    this.#stale = true;
    this.#later();
  }

  /** Draw at once. */
  flush(): void {
    cancelAnimationFrame(this.#frame);
    this.#draw();
  }

  #measure(): void {
    const [width, height] = [this.element.clientWidth, this.element.clientHeight];
    if (width === this.#width && height === this.#height) return;
    const { row } = this.selection.active;
    const [first, last] = this.#rows.range(this.#y);
    const seen = this.#height > 0 && row >= first && row <= last;
    [this.#width, this.#height] = [width, height];
    this.#layout();
    if (seen) this.#goto(this.#rows.reveal(row, this.#y)); // a pane or a bar took its place
  }

  #layout(): void {
    this.#hold();
    this.#rows = new Rows(this.#data.count, this.#height - HEAD_HEIGHT, this.#row);
    this.#number(this.#data.count);
    this.#y = this.#rows.clamp(this.#y);
    this.element.setAttribute("aria-rowcount", String(this.#data.count + 1));
    this.#window.style.width = `${this.#width}px`;
    this.#window.style.height = `${this.#height}px`;
    this.#filler.style.width = `${this.#places.width}px`;
    this.#filler.style.height = `${Math.max(0, this.#rows.extent + HEAD_HEIGHT - this.#height)}px`;
    // one surface behind all rows: else the browser keeps a layer for each of them
    this.#body.style.width = `${this.#places.width}px`;
    this.#body.style.height = `${this.#rows.reach}px`;
    this.#slots = this.#places.most(this.#width);
    this.#pool.fit(this.#places, this.#slots);
    this.#version += 1;
    this.#stale = true;
    this.#later();
  }

  /** Give the numbers of so many rows their room. */
  #number(rows: number): void {
    const gutter = gutterOf(rows);
    if (gutter === this.#gutter) return;
    this.#gutter = gutter;
    this.#places = new Places(this.#columns, gutter);
    this.element.style.setProperty("--gutter", `${gutter}px`);
  }

  #scrolled(): void {
    const top = this.element.scrollTop;
    if (Math.abs(top - this.#expected) >= 1) this.#y = this.#rows.clamp(top * this.#rows.scale);
    this.#expected = -1;
    this.#later();
  }

  /** Where the scroll bar is coarser than a row, a turn of the wheel moves by pixels of rows, not of the bar. */
  #wheel(event: WheelEvent): void {
    if (this.#rows.scale === 1 || event.ctrlKey || !event.deltaY) return;
    event.preventDefault();
    const unit = event.deltaMode === 1 ? this.#row : event.deltaMode === 2 ? this.#rows.view : 1;
    this.#goto(this.#y + event.deltaY * unit);
  }

  #goto(y: number): void {
    this.#y = this.#rows.clamp(y);
    const top = this.#y / this.#rows.scale;
    this.element.scrollTop = top;
    this.#expected = this.element.scrollTop;
    this.#later();
  }

  #later(): void {
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#draw());
  }

  #draw(): void {
    this.#frame = 0;
    if (!this.#height) return;
    this.#hold();
    const x = this.element.scrollLeft;
    const [first, last] = this.#rows.range(this.#y);
    if (last >= first) this.#data.wanted(first, last); // the server works while these rows are drawn
    const range = this.#places.range(x, this.#width);
    const columns = this.#places.grown(range, this.#slots);
    const active = this.selection.active;
    const origin = this.#rows.origin(this.#y);
    this.#head.draw(this.#places, columns, this.#heads, this.#sort, active, this.#version);
    this.#head.slide(x);
    this.#pool.slide(x);
    this.#pool.draw(first, last, origin, this.#stale, {
      data: this.#data,
      places: this.#places,
      columns,
      height: this.#row,
      selected: this.selection.rectangle(this.#places.all.length),
      active,
    });
    this.#stale = false;
    this.#body.style.transform = `translate(${-x}px, ${origin * this.#row - this.#y}px)`;
    const seen = active.row === HEAD || (active.row >= first && active.row <= last);
    this.element.tabIndex = seen && this.#places.all.length ? -1 : 0;
    if (this.#held) this.#giveBack();
    clearTimeout(this.#tidying);
    this.#tidying = window.setTimeout(() => this.#tidy(), TIDY);
    this.#actions.viewed?.(x, range, this.#version);
  }

  #tidy(): void {
    this.#head.tidy();
    this.#pool.tidy();
  }

  #hold(): void {
    this.#held ||= this.element.contains(document.activeElement);
  }

  /** Focus the active cell unless another control was focused meanwhile. */
  #giveBack(): void {
    this.#held = false;
    const now = document.activeElement;
    if (now === null || now === document.body || this.element.contains(now)) this.focus();
  }

  /** Make a cell the active one and bring it into view. */
  select(selection: Selection, focus = true): void {
    this.selection = selection;
    const { row, column } = selection.active;
    if (column < this.#places.all.length) {
      this.element.scrollLeft = this.#places.reveal(column, this.element.scrollLeft, this.#width);
    }
    if (row !== HEAD) this.#goto(this.#rows.reveal(row, this.#y));
    this.#stale = true;
    this.flush();
    if (focus) this.focus();
    this.#actions.selected(selection);
  }

  /** Focus the active cell, or the grid while that is out of view. */
  focus(): void {
    const cell = this.cell(this.selection.active);
    const target = cell ?? this.element;
    if (target !== document.activeElement) target.focus({ preventScroll: true });
    if (this.selection.active.row !== HEAD) this.#input?.attach(cell);
  }

  /** Where in the window a cell is; null while it is out of view. */
  where(place: Place): DOMRect | null {
    const [cell, view] = [this.cell(place)?.getBoundingClientRect(), this.#window.getBoundingClientRect()];
    const inside = cell && cell.bottom > view.top + HEAD_HEIGHT && cell.top < view.bottom && cell.right > view.left && cell.left < view.right;
    return inside ? cell : null;
  }

  /** The element of a cell in view. */
  cell({ row, column }: Place): HTMLElement | null {
    return row === HEAD ? this.#head.cell(column) : (this.#pool.cell(row, column) ?? null);
  }

  #key(event: KeyboardEvent): void {
    if ((event.target as Element).closest("input, textarea, select") || event.isComposing) return;
    const { active } = this.selection;
    const far = event.ctrlKey || event.metaKey;
    if (active.row === HEAD && this.#headKey(event)) return event.preventDefault();
    const size = { rows: this.#rows.count, columns: this.#places.all.length };
    const page = Math.max(1, Math.floor(this.#rows.view / this.#row) - 1);
    const key = this.#input || far ? event.key : (LETTERS[event.key] ?? event.key);
    const to = event.altKey ? null : step(key, active, { ...size, page }, far);
    if (to) {
      event.preventDefault();
      // a pinned column is in view wherever the others are scrolled, and the beginning means theirs, too
      if (to.column === 0 && (event.key === "Home" || (far && event.key === "ArrowLeft"))) this.element.scrollLeft = 0;
      this.select(this.selection.move(to, event.shiftKey));
    } else if (this.#command(event, far)) event.preventDefault();
  }

  #command(event: KeyboardEvent, far: boolean): boolean {
    const { active } = this.selection;
    const area = this.selection.rectangle(this.#places.all.length);
    if (!area) return false;
    if (far && event.key.toLowerCase() === "a") {
      const last = { row: this.#rows.count - 1, column: this.#places.all.length - 1 };
      this.#reselect(new Selection({ row: 0, column: 0 }, last));
    } else if (far && event.key.toLowerCase() === "c" && !getSelection()?.toString()) this.#actions.copy(area);
    else if (event.key === " " && event.shiftKey) this.#reselect(new Selection(this.selection.anchor, active, true));
    else if (event.key === " ") this.#actions.open(active);
    else if (event.key === "Delete") this.#actions.erase(area);
    else if (event.key === "Escape" && !this.selection.single) this.#reselect(new Selection(active));
    else if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) this.#menuAt(active);
    else if (far && event.key === "Enter" && this.#actions.similar) this.#actions.similar(active);
    else if (event.key === "Enter" && event.shiftKey && this.#actions.editRow) this.#actions.editRow(active);
    else if (event.key === "Enter" || event.key === "F2") return this.#edit(active, null);
    else if (isTyped(event)) return this.#edit(active, event.key);
    else if (this.#input?.begins(event)) void this.#edit(active, ""); // the text itself comes into the field
    else return false;
    return true;
  }

  #reselect(selection: Selection): void {
    this.selection = selection;
    this.#stale = true;
    this.flush();
    this.#actions.selected(selection);
  }

  #edit(place: Place, typed: string | null): boolean {
    return !!this.#bring(place) && this.#actions.edit(place, typed);
  }

  /** The element of a cell, which is brought into view if it is not. */
  #bring(place: Place): HTMLElement | null {
    const [first, last] = this.#rows.range(this.#y);
    if (place.row !== HEAD && (place.row < first || place.row > last || !this.cell(place))) this.select(this.selection);
    return this.cell(place);
  }

  /** Browsers send it to where a text is selected, which need not be the cell that has the focus. */
  readonly #paste = (event: ClipboardEvent): void => {
    if (!this.element.contains(document.activeElement)) return;
    const { active } = this.selection;
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (!text || active.row === HEAD || !this.#actions.paste) return;
    event.preventDefault();
    const table = /<td[\s>]/i.test(event.clipboardData?.getData("text/html") ?? ""); // as spreadsheets write it beside the text
    if (this.#bring(active)) this.#actions.paste(active, text, table);
  };

  #menuAt(place: Place): void {
    const cell = this.cell(place);
    if (cell) this.#actions.cellMenu(place, cell.getBoundingClientRect());
  }

  #headKey(event: KeyboardEvent): boolean {
    const at = this.selection.active.column;
    const name = this.#places.all[at]?.name;
    if (!name) return false;
    const sideways = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (event.key === "Enter") this.#actions.sort(name, event.shiftKey);
    else if (event.key === " " || (event.key === "F10" && event.shiftKey) || event.key === "ContextMenu") {
      const cell = this.#head.cell(at);
      if (cell) this.#actions.menu(name, cell.getBoundingClientRect());
    } else if (sideways && event.altKey && event.shiftKey) {
      this.#actions.resize(name, Math.max(NARROWEST, this.#places.all[at].width + sideways * 16));
    } else if (sideways && event.altKey) this.shift(name, sideways);
    else return false;
    return true;
  }

  /** Move a column one place to the left or right, and stay on it. */
  shift(name: string, by: number): void {
    const names = this.names;
    const at = names.indexOf(name);
    const to = at + by;
    if (to < 0 || to >= names.length || this.#places.all[to].pinned !== this.#places.all[at].pinned) return;
    this.#actions.move(name, by < 0 ? names[to] : (names[to + 1] ?? null));
    this.select(new Selection({ row: this.selection.active.row, column: to }));
  }

  #pointer(event: PointerEvent): void {
    const target = event.target as HTMLElement;
    if (event.button || target.closest("input, textarea, select")) return;
    const head = target.closest<HTMLElement>(".head-cell");
    if (head) return this.#headPointer(event, head);
    const found = this.#pool.find(target);
    if (!found) return;
    event.preventDefault();
    const rows = found.column < 0;
    const place = { row: found.row, column: Math.max(0, found.column) };
    if (event.shiftKey) this.select(new Selection(this.selection.anchor, place, rows || this.selection.rows));
    else this.select(new Selection(place, place, rows));
    if (event.pointerType === "mouse") this.#drag(event, (at) => this.#dragTo(at, rows));
  }

  /** Under the mouse, a cell that shows less than its value has all of it. */
  #hint({ target }: PointerEvent): void {
    const cell = (target as Element).closest<HTMLElement>(".cell");
    if (!cell) return;
    const place = this.#pool.find(cell);
    const exact = place && this.#actions.exact(place);
    const more = exact && (exact !== cell.textContent || cell.scrollWidth > cell.clientWidth);
    if (more) cell.title = beginning(exact, LONGEST_HINT);
    else cell.removeAttribute("title");
  }

  #dragTo(at: PointerEvent, rows: boolean): void {
    const under = document.elementFromPoint(at.clientX, at.clientY);
    const found = under && this.element.contains(under) ? this.#pool.find(under) : null;
    if (!found) return;
    const place = { row: found.row, column: Math.max(0, found.column) };
    const { active } = this.selection;
    if (active.row !== place.row || active.column !== place.column) {
      this.select(new Selection(this.selection.anchor, place, rows));
    }
  }

  #drag(event: PointerEvent, moved: (at: PointerEvent) => void, ended?: (at: PointerEvent) => void): void {
    const stop = new AbortController();
    const { signal } = stop;
    this.element.setPointerCapture(event.pointerId);
    this.element.addEventListener("pointermove", moved, { signal });
    const end = (at: PointerEvent) => {
      stop.abort();
      ended?.(at);
    };
    this.element.addEventListener("pointerup", end, { signal });
    this.element.addEventListener("pointercancel", () => stop.abort(), { signal });
  }

  #headPointer(event: PointerEvent, cell: HTMLElement): void {
    event.preventDefault();
    const at = Number(cell.getAttribute("aria-colindex")) - 2;
    if (at < 0) return;
    const placed = this.#places.all[at];
    const target = event.target as HTMLElement;
    if (target.classList.contains("head-grip")) {
      const from = event.clientX;
      return this.#drag(event, (to) =>
        this.#actions.resize(placed.name, Math.max(NARROWEST, Math.round(placed.width + to.clientX - from))),
      );
    }
    if (target.classList.contains("head-menu")) {
      this.select(new Selection({ row: HEAD, column: at }));
      return this.#actions.menu(placed.name, cell.getBoundingClientRect());
    }
    this.#carry(event, at);
  }

  /** A press on a head sorts; a press that moves carries the column to where it is dropped. */
  #carry(event: PointerEvent, at: number): void {
    const from = event.clientX;
    const { name } = this.#places.all[at];
    let to = at;
    const drop = (x: number) => {
      const left = x - this.element.getBoundingClientRect().left;
      return this.#places.at(left < this.#places.pinnedWidth ? left : left + this.element.scrollLeft);
    };
    this.#drag(
      event,
      (now) => {
        to = Math.abs(now.clientX - from) > 6 ? drop(now.clientX) : at;
        this.element.classList.toggle("carrying", to !== at);
      },
      (end) => {
        this.element.classList.remove("carrying");
        if (to === at) {
          this.select(new Selection({ row: HEAD, column: at }));
          if (Math.abs(end.clientX - from) <= 6) this.#actions.sort(name, event.shiftKey || event.ctrlKey);
          return;
        }
        const names = this.names;
        this.#actions.move(name, to < at ? names[to] : (names[to + 1] ?? null));
      },
    );
  }

  #double(event: MouseEvent): void {
    // the grid has captured the pointer, so it is the target of all
    const grip = document.elementFromPoint(event.clientX, event.clientY)?.closest(".head-grip");
    if (grip) {
      const at = Number(grip.closest(".head-cell")?.getAttribute("aria-colindex")) - 2;
      return this.#actions.fit(this.#places.all[at].name);
    }
    const found = this.#pool.find(event.target as Element);
    if (!found || found.column < 0) return;
    if (!this.#edit(found, null)) this.#actions.open(found);
  }

  #context(event: MouseEvent): void {
    const target = event.target as Element;
    const head = target.closest(".head-cell");
    const found = this.#pool.find(target);
    if (!head && !found) return;
    event.preventDefault();
    const at = new DOMRect(event.clientX, event.clientY, 0, 0);
    const column = head ? Number(head.getAttribute("aria-colindex")) - 2 : -1;
    if (column >= 0) return this.#actions.menu(this.#places.all[column].name, at);
    if (!found) return;
    const inside = this.selection.rectangle(this.#places.all.length);
    const kept = inside && found.row >= inside.top && found.row <= inside.bottom;
    const place = { row: found.row, column: Math.max(0, found.column) };
    if (!kept) this.select(new Selection(place, place, found.column < 0));
    this.#actions.cellMenu(place, at);
  }
}
