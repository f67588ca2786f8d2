/** Rows of one selection, fetched by blocks as they come into view; only so many are kept. */

import type { Cell, Column, GridRow, Note, PageAnswer } from "../messages.ts";
import type { Overlay } from "../state/change_list.ts";
import { type Shown, show } from "../wire/cells.ts";
import { misfit, nodeOf } from "./misfits.ts";
import type { GridData } from "./row_pool.ts";

export const BLOCK = 100;
const KEPT_CELLS = 600_000;
const FEWEST_BLOCKS = 12;
const MOST_BLOCKS = 200;
const STRIDE = 1_000;
const MOST_NOTES = 100;

export interface BlockOrder {
  readonly offset: number;
  readonly limit: number;
  readonly cursor?: string;
  readonly total: boolean;
}

export type FetchPage = (order: BlockOrder, signal: AbortSignal) => Promise<PageAnswer>;

/** Told when rows have arrived, and when a fetch failed; the next fetch in view tries again. */
export interface Listener {
  arrived(page: PageAnswer): void;
  failed(error: unknown): void;
  /** Rows are passed over to reach a distant one, where a server has no offsets that far. */
  walking(row: number | null): void;
  /** Rows are in view that are not kept, and may have got other numbers since a row was replaced. */
  behind(): void;
}

const BARE: Overlay = { cell: () => undefined, state: () => "" };

export class RowBlocks implements GridData {
  readonly #fetch: FetchPage;
  readonly #listener: Listener;
  readonly #blocks = new Map<number, readonly GridRow[]>();
  #tall = false;
  #shown = new WeakMap<GridRow, (Shown | undefined)[]>();
  readonly #cursors = new Map<number, string>();
  readonly #stop = new AbortController();
  #index = new Map<string, number>();
  #pending: number | null = null;
  #range: [number, number] = [0, 0];
  #broken = false;
  #behind = false;
  #atLeast = 0;
  overlay: Overlay = BARE;
  columns: readonly Column[] = [];
  total: number | null = null;
  totalExact = true;
  /** Notes of the pages kept, each once. */
  notes: readonly Note[] = [];
  seconds = 0;

  constructor(fetch: FetchPage, listener: Listener) {
    this.#fetch = fetch;
    this.#listener = listener;
  }

  /** The number of rows that can be scrolled to: all, or those known so far and a block more. */
  get count(): number {
    return this.total !== null && this.totalExact ? this.total : Math.max(this.total ?? 0, this.#atLeast);
  }

  /** Cells have room for three lines. */
  set tall(tall: boolean) {
    if (tall === this.#tall) return;
    this.#tall = tall;
    this.#shown = new WeakMap();
  }

  /** Fetch the first block. */
  start(): void {
    void this.#load(0);
  }

  close(): void {
    this.#stop.abort();
  }

  /** Whether a fetch failed, and nothing is tried until somebody says so. */
  get broken(): boolean {
    return this.#broken;
  }

  /** Try again what failed. */
  retry(): void {
    this.#broken = false;
    this.wanted(...this.#range);
  }

  row(row: number): GridRow | undefined {
    return this.#blocks.get(Math.floor(row / BLOCK))?.[row % BLOCK];
  }

  /** All rows that are kept. */
  get kept(): GridRow[] {
    return [...this.#blocks.values()].flat();
  }

  cell(row: number, column: string): Cell | undefined {
    const found = this.row(row);
    return found && this.cellOf(found, column);
  }

  /** A row's cell with its unsent edit. */
  cellOf(row: GridRow, column: string): Cell {
    const edited = this.overlay.cell(row, column);
    if (edited !== undefined) return edited;
    const at = this.#index.get(column);
    return at === undefined ? ["missing", ""] : row.cells[at];
  }

  /** Put a row that was changed on the server in its old place; the others may have got other numbers there. */
  replace(key: string, now: GridRow, columns: readonly Column[]): void {
    this.#behind = true;
    const index = new Map(columns.map(({ name }, at) => [name, at]));
    for (const [block, rows] of this.#blocks) {
      const old = rows.find((row) => row.key === key);
      if (!old) continue;
      const cells = this.columns.map(({ name, role }, at) => {
        const cell = now.cells[index.get(name) ?? -1];
        return cell === undefined || (cell === null && role === "server") ? old.cells[at] : cell; // a score is no part of a row
      });
      return void this.#blocks.set(block, rows.map((row) => (row === old ? { ...now, cells } : row)));
    }
  }

  /** Whether rows can be read: what is not kept has its number from a later moment once a row was replaced. */
  reads(first: number, last: number): boolean {
    const blocks = Array.from({ length: Math.floor(last / BLOCK) - Math.floor(first / BLOCK) + 1 }, (_, at) => Math.floor(first / BLOCK) + at);
    return !this.#behind || blocks.every((block) => this.#blocks.has(block));
  }

  /** A text that some row has in a column, or else in another one of its type; null if none is kept. */
  likeOf(column: string): Cell {
    const own = this.#index.get(column);
    if (own === undefined) return null;
    const { type } = this.columns[own];
    const others = this.columns.flatMap((one, at) => (at !== own && one.type === type ? [at] : []));
    for (const at of [own, ...others]) for (const rows of this.#blocks.values()) for (const { cells } of rows) if (typeof cells[at] === "string") return cells[at];
    return null;
  }

  /** Why a column does not take the unsent edit of a row, as far as the column tells; empty if it may. */
  misfitOf(row: GridRow, column: string): string {
    const at = this.#index.get(column);
    const edited = this.overlay.cell(row, column);
    const node = edited === undefined || at === undefined ? null : nodeOf(edited);
    return node && at !== undefined ? misfit(node, this.columns[at], row.cells[at]) : "";
  }

  shown(row: number, column: string): Shown | null {
    const found = this.row(row);
    if (!found) return null;
    const edited = this.overlay.cell(found, column);
    if (edited !== undefined) {
      const shown = show(edited, this.columns[this.#index.get(column) ?? -1], this.#tall);
      const why = this.misfitOf(found, column);
      return { ...shown, tone: `${shown.tone} edited${why && " misfit"}`, name: why ? `${shown.text}: the column ${why}` : shown.name };
    }
    const at = this.#index.get(column);
    if (at === undefined) return { text: "", tone: "missing" };
    let line = this.#shown.get(found);
    if (!line) this.#shown.set(found, (line = new Array(found.cells.length)));
    return (line[at] ??= show(found.cells[at], this.columns[at], this.#tall));
  }

  state(row: number): string {
    const found = this.row(row);
    return found ? this.overlay.state(found) : "";
  }

  wanted(first: number, last: number): void {
    this.#range = [first, last];
    if (this.#pending !== null || this.#broken || this.#stop.signal.aborted) return;
    if (this.#behind) return this.reads(first, last) ? undefined : this.#listener.behind();
    const [from, to] = [Math.floor(first / BLOCK), Math.floor(last / BLOCK)];
    for (let block = from; block <= to; block += 1) if (!this.#blocks.has(block)) return void this.#load(block);
    // the next block in the direction of reading, before it is needed
    const ahead = Math.floor((last + BLOCK / 2) / BLOCK);
    if (ahead * BLOCK < this.count && !this.#blocks.has(ahead)) void this.#load(ahead);
  }

  /** Rows from `first` to `last`, fetched where they are not kept. */
  async read(first: number, last: number): Promise<readonly GridRow[]> {
    const rows: GridRow[] = [];
    for (let block = Math.floor(first / BLOCK); block * BLOCK <= last; block += 1) {
      const kept = this.#blocks.get(block) ?? (await this.#page(block * BLOCK, false)).rows;
      rows.push(...kept.slice(Math.max(0, first - block * BLOCK), last - block * BLOCK + 1));
    }
    return rows;
  }

  async #load(block: number): Promise<void> {
    this.#pending = block;
    try {
      const page = await this.#page(block * BLOCK, this.total === null && block === 0);
      if (this.#stop.signal.aborted) return;
      this.#keep(block, page);
      this.#pending = null;
      this.#listener.arrived(page);
    } catch (error) {
      this.#pending = null;
      if (this.#stop.signal.aborted) return;
      this.#broken = true;
      this.#listener.failed(error);
    }
    this.wanted(...this.#range);
  }

  #keep(block: number, page: PageAnswer): void {
    if (page.columns.length !== this.columns.length || page.columns.some((c, at) => c.name !== this.columns[at].name)) {
      this.#blocks.clear();
      this.columns = page.columns;
      this.#index = new Map(page.columns.map((column, at) => [column.name, at]));
    }
    this.#blocks.delete(block);
    this.#blocks.set(block, page.rows);
    this.seconds = page.seconds;
    this.#size(block * BLOCK, page);
    const known = new Set(this.notes.map((note) => JSON.stringify(note)));
    const fresh = page.notes.filter((note) => !known.has(JSON.stringify(note)));
    if (fresh.length) this.notes = [...this.notes, ...fresh].slice(0, MOST_NOTES);
    const fitting = Math.floor(KEPT_CELLS / Math.max(1, page.columns.length) / BLOCK);
    const most = Math.max(FEWEST_BLOCKS, Math.min(MOST_BLOCKS, fitting));
    const inView = [Math.floor(this.#range[0] / BLOCK), Math.floor(this.#range[1] / BLOCK)];
    for (const old of this.#blocks.keys()) {
      if (this.#blocks.size <= most) break;
      if (old < inView[0] || old > inView[1]) this.#blocks.delete(old);
    }
  }

  #size(offset: number, page: PageAnswer): void {
    if (page.total !== null) [this.total, this.totalExact] = [page.total, page.total_exact];
    const end = offset + page.rows.length;
    const more = page.rows.length === BLOCK;
    if (!more && page.rows.length && (this.total === null || !this.totalExact || end > this.total)) {
      [this.total, this.totalExact] = [end, true];
    }
    if (!more && !page.rows.length && this.total !== null && offset < this.total) {
      [this.total, this.totalExact] = [Math.min(offset, this.total), true];
    }
    this.#atLeast = Math.max(this.#atLeast, more ? end + (page.next || page.total === null ? BLOCK : 0) : end);
  }

  async #page(offset: number, total: boolean): Promise<PageAnswer> {
    const cursor = this.#cursors.get(offset);
    try {
      const page = await this.#fetch({ offset, limit: BLOCK, total, ...(cursor ? { cursor } : {}) }, this.#stop.signal);
      if (page.next) this.#cursors.set(offset + page.rows.length, page.next);
      return page;
    } catch (error) {
      if (cursor || (error as { code?: string }).code !== "window-exceeded") throw error;
      return this.#walk(offset, error);
    }
  }

  /** Go from cursor to cursor to an offset that the server does not count to. */
  async #walk(offset: number, refused: unknown): Promise<PageAnswer> {
    let at = Math.max(-1, ...[...this.#cursors.keys()].filter((known) => known <= offset));
    if (at < 0) at = 0;
    try {
      while (at < offset) {
        this.#listener.walking(at);
        const cursor = this.#cursors.get(at);
        const order = { offset: at, limit: Math.min(STRIDE, offset - at), total: false };
        const page = await this.#fetch(cursor ? { ...order, cursor } : order, this.#stop.signal);
        if (!page.next || !page.rows.length) throw refused;
        at += page.rows.length;
        this.#cursors.set(at, page.next);
      }
    } finally {
      this.#listener.walking(null);
    }
    const page = await this.#fetch(
      { offset, limit: BLOCK, total: false, cursor: this.#cursors.get(offset) },
      this.#stop.signal,
    );
    if (page.next) this.#cursors.set(offset + page.rows.length, page.next);
    return page;
  }
}
