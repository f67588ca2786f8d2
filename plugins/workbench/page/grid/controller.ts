/** One grid on one object: what is asked for, what is shown, and what a person does with it. */

import { type Signal, batch, effect, signal } from "@preact/signals";
import { type Change, changesOf } from "../state/change_list.ts";
import { Summaries } from "./summaries.ts";
import type {
  Cell,
  Column,
  Note,
  PageAnswer,
  RowSelection,
  Span,
  GridRow,
  Summarized,
  TimeRange,
} from "../messages.ts";
import { type Entry, NO_ENTRY, withColumn } from "./filter_entry.ts";
import { recall, remember } from "../state/preferences.ts";
import { asFailure } from "../ui/controls.tsx";
import { toast } from "../ui/toasts.tsx";
import { call } from "../wire/client.ts";
import { type Arrangement, UNTOUCHED, moved, resized, usualOrder, visible, withHidden, withPinned } from "./column_layout.ts";
import { fitted, fittedWhole, measured, widened } from "./column_widths.ts";
import { textOf } from "../wire/cells.ts";
import { copyArea } from "./clipboard.ts";
import type { RowHeight } from "./geometry.ts";
import { takeAhead } from "./first_page.ts";
import { type FilterRow, type Origin, type Query, queryOf, sameRows, spell } from "../state/query.ts";
import type { Pasted } from "./pasting.ts";
import { RowBlocks } from "./row_blocks.ts";
import { type Place, type Rectangle, Selection } from "./selection.ts";
import { type GridActions, GridView } from "./view.ts";

/** Rows of a filter that is being written. */
export interface FilterDraft {
  readonly rows: readonly FilterRow[];
  readonly match: "all" | "any";
}

export interface Status {
  readonly loading: boolean;
  readonly failed: unknown;
  readonly notes: readonly Note[];
  readonly total: number | null;
  readonly exact: boolean;
  readonly seconds: number;
  readonly walking: number | null;
  /** The range of time that the rows are from. */
  readonly time: TimeRange | null;
}

/** Filters that a person applied in this tab, where they may be read again without a question. */
const approved = new Set<string>();

const NOTHING: Status = {
  loading: true,
  failed: null,
  notes: [],
  total: null,
  exact: true,
  seconds: 0,
  walking: null,
  time: null,
};
const MOST_COPIED = 10_000;
/** Rows that one request to the server may change. */
const MOST_CHANGED = 5_000;
/** Changed rows that are read one by one after they were sent. */
const MOST_REREAD = 20;
/** What a card above a column can show. */
const SMALL = { values: 3, buckets: 16 };

/** What rows are asked for with: their span gets absolute instants, for time goes on and they stay the same. */
interface Question {
  readonly query: Query;
  span: Span | null;
  /** The instant that relative times of their filter count from. */
  now: string | null;
}

/** Rows, and what they are asked for with. */
type Reading = readonly [RowBlocks, Question];

function selectionOf({ query, span, now }: Question): Query {
  return { ...query, span: span ?? query.span, now };
}

/** What only the panel around the grid can do. */
export interface Surroundings {
  columnMenu(column: string, anchor: DOMRect): void;
  cellMenu(place: Place, anchor: DOMRect): void;
  edit(place: Place, typed: string | null): boolean;
  paste?: GridActions["paste"];
  compose?: GridActions["compose"];
  openPane(): void;
  editRow?: GridActions["editRow"];
  similar?: GridActions["similar"];
}

export class GridController {
  readonly connection: string;
  readonly object: string;
  readonly query: Signal<Query>;
  /** What the address asked for last; any other query is a step of a person. */
  addressed: Query;
  /** The filter as it is being written, whether its editor is open or not; null for the one that is applied. */
  readonly filter = signal<FilterDraft | null>(null);
  /** The filter that is being typed. */
  readonly entry = signal<Entry>(NO_ENTRY);
  /** Whether the field of the filter is to take the focus. */
  readonly called = signal(false);
  /** What an address asks for whose filter waits for a person to apply it; null if none waits. */
  readonly waiting = signal<Query | null>(null);
  /** The row that the rows shown are similar to; null for rows that are similar to none. */
  readonly near: Signal<Origin | null>;
  /** Its id, for people; empty until rows have come. */
  readonly nearId = signal("");
  readonly status = signal<Status>(NOTHING);
  readonly columns = signal<readonly Column[]>([]);
  readonly arrangement = signal<Arrangement>(UNTOUCHED);
  readonly selection = signal(new Selection({ row: 0, column: 0 }));
  /** The unpinned columns in view; `version` counts up when columns were laid out anew. */
  readonly seen = signal({ first: 0, last: -1, version: 0 });
  /** How far the unpinned columns are scrolled. */
  readonly scrolled = signal(0);
  readonly summaries: Summaries;
  /** Counts up when rows have arrived or changed. */
  readonly version = signal(0);
  readonly view: GridView;
  #rows: RowBlocks;
  /** The same rows read anew, until those in view have come. */
  #coming: Reading | null = null;
  /** Called when they have come, or are given up. */
  #settled: () => void = () => {};
  /** What the rows shown were asked for with; `query` may be ahead of it. */
  #asked: Question;
  /** What rows came for at last. */
  #answered: { readonly query: Query; readonly near: Origin | null } | null = null;
  /** Widths that the columns' content asks for. */
  #widths = new Map<string, number>();
  #end: () => void;

  constructor(connection: string, rows: RowSelection, near: Origin | null, surroundings: Surroundings) {
    const { object } = rows;
    this.connection = connection;
    this.object = object;
    this.near = signal(near);
    this.addressed = this.#admit(rows);
    this.query = signal(this.addressed);
    this.summaries = new Summaries((column, signal) => this.summary(column, SMALL, signal));
    [this.#rows, this.#asked] = this.#read((signal) => (!near && spell(rows) === spell({ object }) ? takeAhead(connection, object, signal) : null));
    this.view = new GridView(`Rows of ${object}`, this.#rows, this.#actions(surroundings));
    const changes = changesOf(connection);
    this.#end = effect(() => {
      changes.list.value;
      this.#rows.overlay = changes.overlay();
      this.view.refresh();
      this.version.value = this.version.peek() + 1;
    });
  }

  get rows(): RowBlocks {
    return this.#rows;
  }

  /** Fetch, and recall how the columns were arranged. */
  async start(): Promise<void> {
    this.#rows.start();
    const kept = await recall<Arrangement>(this.#key);
    if (kept) this.#arrange({ ...UNTOUCHED, ...kept }, false);
  }

  close(): void {
    this.#end();
    this.summaries.close();
    this.#giveUp();
    this.#rows.close();
    this.view.close();
  }

  get #key(): string {
    return `grid/${this.connection}/${this.object}`;
  }

  /** Add rows to the filter, in place of those that they make needless, and ask for the rows that they leave. */
  narrow(rows: readonly FilterRow[], needless: (row: FilterRow) => boolean = () => false): void {
    const query = this.query.peek();
    const draft = this.filter.peek();
    const added = (before: readonly FilterRow[]) => [...before.filter((row) => !needless(row)), ...rows];
    if (draft) this.filter.value = { ...draft, rows: added(draft.rows) };
    this.ask({ ...query, filters: added(query.filters) });
  }

  /** Whether a further row of the filter would show more rows, not fewer. */
  get widens(): boolean {
    const { match, filters } = this.query.peek();
    return match === "any" && filters.length > 0;
  }

  /** Begin to type a filter on a column. */
  writeFilter(column: string): void {
    this.entry.value = withColumn(NO_ENTRY, column);
    this.called.value = true;
  }

  /** Ask for the rows of an address; another link to the same object, or a step back. */
  visit(rows: RowSelection, near: Origin | null): void {
    batch(() => {
      this.near.value = near;
      if (this.entry.peek().at !== null) this.entry.value = NO_ENTRY; // that pill is gone
      this.addressed = this.#admit(rows);
      this.ask(this.addressed, near);
    });
  }

  /** Ask for the rows of a filter that a person has seen. */
  apply(query: Query): void {
    this.waiting.value = null;
    approved.add(this.#addressed(query));
    this.ask(query);
  }

  /** What is asked for at once for an address, which a stranger may have written: its filter waits if it has text in
   * the server's own syntax, or lets the driver itself read many rows. */
  #admit(rows: RowSelection): Query {
    const query = { ...queryOf(rows), ...(this.near.peek() ? { sort: [] } : {}) }; // their order is that of their distances
    const { filters, match, residual } = query;
    const bold = residual !== null || filters.some(({ type }) => type === "raw");
    const waits = bold && !approved.has(this.#addressed(query));
    this.waiting.value = waits ? query : null;
    this.filter.value = waits && filters.length ? { rows: filters, match } : null;
    return waits ? { ...query, filters: [], residual: null } : query;
  }

  #addressed({ filters, match, residual }: Query): string {
    return JSON.stringify([this.connection, this.object, match, residual, filters]);
  }

  /** Ask for other rows, or for the same rows again; until they come, the old ones are shown as such. */
  ask(query: Query = this.query.peek(), near: Origin | null = this.near.peek()): void {
    batch(() => {
      this.query.value = query;
      this.near.value = near;
    });
    this.nearId.value = "";
    this.status.value = NOTHING;
    this.#giveUp();
    this.#rows.close();
    [this.#rows, this.#asked] = this.#read();
    this.#rows.overlay = changesOf(this.connection).overlay();
    this.#rows.start();
    this.summaries.reset();
    this.#lay(); // the head tells how the rows are sorted
  }

  /** Read the same rows anew, and put them where the others stand once they have come. */
  refresh(): Promise<void> {
    this.#giveUp();
    this.#coming = this.#read();
    this.#coming[0].start();
    return new Promise((done) => (this.#settled = done));
  }

  /**
   * Show rows after their changes were sent. They keep their places where no filter, span or sort asks for a changed
   * column: a server that puts a changed row at its end would take it out of sight.
   */
  async sent(changes: readonly Change[]): Promise<void> {
    const { filters, sort } = this.query.peek();
    const { time } = this.status.peek();
    const columns = new Set(changes.flatMap(({ values }) => Object.keys(values)));
    const asked = (time !== null && columns.has(time.column)) || sort.some(({ column }) => columns.has(column)) || filters.some((row) => row.type === "raw" || columns.has(row.column));
    if (asked || this.near.peek() || changes.length > MOST_REREAD || changes.some(({ kind }) => kind !== "update")) return this.ask();
    const rows = this.#rows;
    try {
      const read = await Promise.all(changes.map(({ key }) => call("changes/row", { connection: this.connection, key })));
      if (rows !== this.#rows) return;
      for (const [at, { row, columns }] of read.entries()) {
        if (!row) return this.ask(); // somebody else deleted it
        rows.replace(changes[at].key, row, columns);
      }
    } catch {
      if (rows === this.#rows) this.ask(); // which says what fails
      return;
    }
    this.summaries.renew();
    this.#set({}); // a chart counts anew
    this.view.refresh();
    this.version.value += 1;
  }

  /** Rows from `first` to `last`, from one moment. */
  async #rowsAt(first: number, last: number): Promise<readonly GridRow[]> {
    if (!this.#rows.reads(first, last)) await this.refresh();
    return this.#rows.read(first, last);
  }

  /** End the reading anew, if there is one. */
  #giveUp(): void {
    this.#coming?.[0].close();
    this.#coming = null;
    this.#settled();
  }

  /** Have the rows in view come, too? What is missing is asked for. */
  #inView(rows: RowBlocks): boolean {
    const [first, last] = this.view.range(rows.count);
    if (last < first || (rows.row(first) && rows.row(last))) return true;
    rows.wanted(first, last);
    return false;
  }

  /** What the rows that were shown last were asked for with, if that is something else than now. */
  get before(): { readonly query: Query; readonly near: Origin | null } | null {
    const [answered, query, near] = [this.#answered, this.query.value, this.near.value];
    return answered && !sameRows(answered.query, answered.near, query, near) ? answered : null;
  }

  /** Fetch again what could not be fetched: the rows of another place, or all of them. */
  retry(): void {
    if (!this.#rows.columns.length) return this.ask();
    if (!this.#rows.broken) return void this.refresh();
    this.#set({ loading: true, failed: null });
    this.#rows.retry();
  }

  /** Wait no longer for rows: the request is cancelled. */
  stop(): void {
    this.#giveUp();
    this.#rows.close();
    this.#failed(this.#rows, new Error("You stopped waiting for the server."));
  }

  /** Summarize a column over the rows that are shown. */
  summary(column: string, most: { values: number; buckets: number }, signal: AbortSignal): Promise<Summarized> {
    const { connection, shown } = this;
    return call("summarize", { connection, rows: { ...shown, sort: [] }, column, ...most }, signal);
  }

  /** The most frequent values of a column under another filter, which the driver itself need not evaluate. */
  valuesOf(column: string, filters: readonly FilterRow[], values: number, signal: AbortSignal): Promise<Summarized> {
    const { connection, shown } = this;
    const rows = { ...shown, filters, match: "all" as const, sort: [], residual: null };
    return call("summarize", { connection, rows, column, values, buckets: 0 }, signal);
  }

  /** The rows that are shown, for requests about just these: a relative span is the one that was read. */
  get shown(): Query {
    return selectionOf(this.#asked);
  }

  #read(ahead = (_: AbortSignal): Promise<PageAnswer> | null => null): Reading {
    const asked: Question = { query: this.query.peek(), span: null, now: this.query.peek().now };
    const [connection, near] = [this.connection, this.near.peek()];
    const rows: RowBlocks = new RowBlocks(
      (order, signal) =>
        near
          ? call("similar", { connection, rows: selectionOf(asked), ...near, limit: order.limit }, signal)
          : ((order.offset ? null : ahead(signal)) ?? call("page", { connection, rows: selectionOf(asked), ...order }, signal)),
      {
        arrived: (page) => this.#arrived(rows, asked, page),
        failed: (failed) => this.#failed(rows, failed),
        walking: (walking) => rows === this.#rows && this.#set({ walking }),
        behind: () => rows === this.#rows && !this.#coming && void this.refresh(),
      },
    );
    rows.tall = this.arrangement.peek().rows === "tall";
    return [rows, asked];
  }

  #set(part: Partial<Status>): void {
    this.status.value = { ...this.status.peek(), ...part };
  }

  /** Rows of another question do not stand under this one. */
  #failed(rows: RowBlocks, failed: unknown): void {
    if (rows === this.#coming?.[0]) {
      this.#giveUp();
      return this.#set({ failed });
    }
    if (rows !== this.#rows) return;
    this.#set({ loading: false, failed });
    if (rows.columns.length) return; // only those of another place are missing
    this.view.data = rows;
    this.version.value += 1;
  }

  #arrived(rows: RowBlocks, asked: Question, page: PageAnswer): void {
    asked.now ??= page.now ?? null;
    asked.span ??= page.time ? { since: page.time.since, until: page.time.until } : { all_time: true };
    if (rows === this.#coming?.[0] && this.#inView(rows)) {
      this.#rows.close();
      [this.#rows, this.#asked] = this.#coming;
      this.#rows.overlay = changesOf(this.connection).overlay();
      this.#coming = null;
      this.#settled();
      this.summaries.renew();
    }
    if (rows !== this.#rows) return;
    this.#answered = { query: asked.query, near: this.near.peek() };
    this.nearId.value = page.near ?? "";
    const { notes, total, totalExact: exact, columns } = rows;
    const time = page.time ?? null;
    this.#set({ loading: false, failed: null, notes, total, exact, seconds: page.seconds, time });
    if (columns !== this.columns.peek()) {
      this.columns.value = columns;
      this.#widths = fitted(columns, page.rows, measured);
      this.#lay();
    } else if (widened(this.#widths, columns, page.rows, measured)) this.#lay();
    this.view.data = rows;
    this.view.flush(); // not in the next frame's own time
    this.version.value += 1;
  }

  #lay(): void {
    const distances = this.near.peek() ? this.columns.peek()[0]?.name : "";
    this.view.columns(visible(this.ordered, this.arrangement.peek(), this.#widths, distances), this.query.peek().sort);
  }

  /** The columns in the order that they have until a person arranges them. */
  get ordered(): Column[] {
    return usualOrder(this.columns.peek());
  }

  #arrange(arrangement: Arrangement, keep = true): void {
    this.arrangement.value = arrangement;
    this.#rows.tall = arrangement.rows === "tall";
    this.view.rowHeight = arrangement.rows ?? "normal";
    if (keep) remember(this.#key, arrangement);
    this.#lay();
  }

  /** Hide columns, or show them again. */
  hide(columns: readonly string[], hide: boolean): void {
    this.#arrange(withHidden(this.arrangement.peek(), columns, hide));
  }

  /** Move a column before another; null moves it to the end. */
  move(column: string, before: string | null): void {
    this.#arrange(moved(this.arrangement.peek(), this.ordered, column, before));
  }

  /** Make a column as wide as the values that are here. */
  fit(column: string): void {
    const width = fittedWhole(column, this.columns.peek(), this.#rows.kept, measured);
    this.#arrange(resized(this.arrangement.peek(), column, width));
  }

  pin(column: string, pin: boolean): void {
    const shown = visible(this.ordered, this.arrangement.peek(), this.#widths);
    this.#arrange(withPinned(this.arrangement.peek(), shown, column, pin));
  }

  /** Make all rows as high as a person wants them. */
  heighten(rows: RowHeight): void {
    this.#arrange({ ...this.arrangement.peek(), rows });
  }

  /** Show all columns, in their usual order and widths, and rows of the usual height. */
  reset(): void {
    this.#arrange(UNTOUCHED);
  }

  /** Sort by a column: ascending, descending, not; with `add`, beside the other keys. */
  sort(column: string, add: boolean, descending?: boolean): void {
    if (this.near.peek()) return toast("Similar rows come nearest first. Show all rows to sort them.");
    if (!this.column(column)?.sortable) {
      const reason = this.column(column)?.reasons?.sort;
      return toast(reason ?? `${column} cannot be sorted.`);
    }
    const before = this.query.peek().sort;
    const known = before.find((key) => key.column === column);
    const next = descending !== undefined || !known || !known.descending;
    const key = { column, descending: descending ?? !!known };
    const others = before.filter((one) => one.column !== column);
    const kept = add && known && next ? before.map((one) => (one === known ? key : one)) : null;
    const sort = add ? (kept ?? (next ? [...others, key] : others)) : next ? [key] : [];
    this.ask({ ...this.query.peek(), sort });
  }

  column(name: string): Column | undefined {
    return this.columns.peek().find((column) => column.name === name);
  }

  /** The column, row and value at a place; undefined while it is loading. */
  at({ row, column }: Place) {
    const name = this.view.names[column];
    const found = this.#rows.row(row);
    const head = name === undefined ? undefined : this.column(name);
    return found && head ? { row: found, column: head, cell: this.#rows.cellOf(found, name) } : undefined;
  }

  /** The cells of an area, fetched where they are not kept; null and a message if there are too many. */
  async table(area: Rectangle, whole: boolean): Promise<{ columns: string[]; rows: Cell[][] } | null> {
    const last = Math.min(area.bottom, this.#rows.count - 1);
    if (last - area.top >= MOST_COPIED) {
      toast(`Copying takes at most ${MOST_COPIED.toLocaleString("en")} rows; export the others.`, "bad");
      return null;
    }
    const columns = whole ? this.view.names : this.view.names.slice(area.left, area.right + 1);
    const rows = await this.#rowsAt(area.top, last);
    return { columns, rows: rows.map((row) => columns.map((name) => this.#rows.cellOf(row, name))) };
  }

  #actions(outside: Surroundings): GridActions {
    const { columnMenu, cellMenu, edit, paste, compose, openPane, editRow, similar } = outside;
    return {
      sort: (column, add) => this.sort(column, add),
      resize: (column, width) => this.#arrange(resized(this.arrangement.peek(), column, width)),
      fit: (column) => this.fit(column),
      move: (column, before) => this.move(column, before),
      menu: columnMenu,
      cellMenu,
      exact: (place) => textOf(this.at(place)?.cell ?? null),
      edit,
      paste,
      compose,
      selected: (selection) => {
        this.selection.value = selection;
      },
      open: openPane,
      editRow,
      erase: (area) => void this.erase(area),
      copy: (area) => void copyArea(this, area, "text"),
      similar,
      viewed: (x, [first, last], version) => {
        this.scrolled.value = x;
        const seen = this.seen.peek();
        if (seen.first === first && seen.last === last && seen.version === version) return;
        this.seen.value = { first, last, version };
      },
    };
  }

  /** Change cells from a place to the right and down, in one step; if one of them cannot, `review` is asked first. */
  async fill(place: Place, table: readonly (readonly string[])[], review: (pasted: Pasted) => void): Promise<void> {
    if (table.length > MOST_CHANGED) return toast(`At most ${MOST_CHANGED.toLocaleString("en")} rows can be changed at once.`, "bad");
    const width = Math.max(...table.map((line) => line.length));
    const columns = this.view.names.slice(place.column, place.column + width).flatMap((name) => this.column(name) ?? []);
    try {
      const { readPaste } = await import("./pasting.ts");
      const rows = await this.#rowsAt(place.row, Math.min(this.#rows.count, place.row + table.length) - 1);
      const cellOf = (row: GridRow, column: string) => this.#rows.cellOf(row, column);
      const likeOf = (column: string) => this.#rows.likeOf(column);
      const pasted = readPaste(table, { first: place.row, rows, columns, cellOf, likeOf });
      if (pasted.refused.length) return review(pasted);
      this.put(pasted.edits);
      const last = { row: place.row + table.length - 1, column: place.column + width - 1 };
      this.view.select(new Selection(last, place)); // what was pasted, with the cursor where it was
    } catch (error) {
      toast(asFailure(error).message, "bad");
    }
  }

  /** Put pasted cells into the change list, in one step. */
  put(edits: Pasted["edits"]): void {
    changesOf(this.connection).fill(this.object, edits);
    toast(`Pasted ${edits.length.toLocaleString("en")} ${edits.length === 1 ? "cell" : "cells"} as changes; Ctrl+Z takes them back.`, "good");
  }

  /** Mark the rows of an area as deleted, or keep them again. */
  async erase(area: Rectangle): Promise<void> {
    const most = area.top + MOST_CHANGED - 1;
    if (area.bottom > most) return toast(`At most ${MOST_CHANGED.toLocaleString("en")} rows can be deleted at once.`, "bad");
    let rows: readonly GridRow[];
    try {
      rows = await this.#rowsAt(area.top, Math.min(area.bottom, this.#rows.count - 1));
    } catch (error) {
      return toast(asFailure(error).message, "bad");
    }
    if (rows.some((row) => row.key === null)) toast("These rows have no key, so no change can name them.", "bad");
    else changesOf(this.connection).flipDeleted(this.object, rows);
  }
}
