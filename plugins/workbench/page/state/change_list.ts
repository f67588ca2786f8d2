/** Edits that gather until a person sends them: cells, new rows and deletions of one connection. */

import { signal } from "@preact/signals";
import { sameCell } from "../wire/cells.ts";
import type { Cell, ChangeEntry, Column, GridRow } from "../messages.ts";

export interface Change {
  readonly number: number;
  readonly kind: "insert" | "update" | "delete";
  readonly object: string;
  /** The row's key; empty for a new row. */
  readonly key: string;
  /** For people. */
  readonly id: string;
  readonly values: Readonly<Record<string, Cell>>;
  /** What the changed cells were. */
  readonly before: Readonly<Record<string, Cell>>;
  readonly tenant: string | null;
}

/** Edits that are not sent yet, laid over the rows. */
export interface Overlay {
  cell(row: GridRow, column: string): Cell | undefined;
  state(row: GridRow): string;
}

let counted = 0;
const MOST_STEPS = 200;

/** What a person did to the changes of one object: they before and after it. */
interface Step {
  readonly before: readonly Change[];
  readonly after: readonly Change[];
}

/** The steps of one object that can be undone, and those that can be done again; the last is the next. */
interface Steps {
  past: readonly Step[];
  future: readonly Step[];
}

/** A new row that is being written. */
export interface NewRowDraft {
  readonly id: string;
  readonly texts: Readonly<Record<string, string>>;
}

/** A row that is being written as a document. */
export interface RowDraft {
  readonly kind: "insert" | "update";
  /** The row that is changed, or that a new one begins as. */
  readonly row: GridRow;
  /** What the row has, by column, whole; nothing for a new row. */
  readonly cells: Readonly<Record<string, Cell>>;
  /** What the writing began with. */
  readonly begin: string;
  readonly text: string;
  /** The id of a new row; empty if the server makes one. */
  readonly id: string;
}

interface Edit {
  readonly row: GridRow;
  readonly column: string;
  readonly before: Cell;
  readonly after: Cell;
}

export class ChangeList {
  readonly list = signal<readonly Change[]>([]);
  /** New rows that are not in the list yet, by object: closing their dialog loses nothing. */
  readonly drafts = new Map<string, NewRowDraft>();
  /** Rows that are being written, by object: closing their pane loses nothing. */
  readonly rowDrafts = signal<ReadonlyMap<string, RowDraft>>(new Map());
  readonly #steps = new Map<string, Steps>();

  of(object: string): readonly Change[] {
    return this.list.value.filter((change) => change.object === object);
  }

  /** Keep a row as it is written so far; null ends the writing. */
  write(object: string, draft: RowDraft | null): void {
    const others = new Map(this.rowDrafts.peek());
    if (draft) others.set(object, draft);
    else others.delete(object);
    this.rowDrafts.value = others;
  }

  /** Change one cell; a cell that gets back its old value is no longer changed. */
  edit(object: string, row: GridRow, column: string, before: Cell, after: Cell): void {
    this.fill(object, [{ row, column, before, after }]);
  }

  /** Change several cells in one step. */
  fill(object: string, edits: readonly Edit[]): void {
    this.#do(object, edits.reduce((list, edit) => this.#edited(list, object, edit), this.list.value));
  }

  #edited(list: readonly Change[], object: string, { row, column, before, after }: Edit): readonly Change[] {
    if (row.key === null) return list;
    const known = list.find((change) => change.key === row.key);
    const old = known?.before ?? {};
    const first = column in old ? old[column] : before;
    const values = { ...known?.values, [column]: after };
    const kept = { ...old, [column]: first };
    if (sameCell(first, after)) {
      delete values[column];
      delete kept[column];
    }
    const others = list.filter((change) => change !== known);
    const change = this.#make("update", object, row, { values, before: kept, number: known?.number });
    return Object.keys(values).length ? sorted([...others, change]) : others;
  }

  /** Delete rows, or keep them again if all are to be deleted already. */
  flipDeleted(object: string, rows: readonly GridRow[]): void {
    const named = rows.filter((row) => row.key !== null);
    const all = named.every((row) => this.#known(row.key)?.kind === "delete");
    const keys = new Set(named.map((row) => row.key));
    const others = this.list.value.filter((change) => !change.key || !keys.has(change.key));
    this.#do(object, all ? others : [...others, ...named.map((row) => this.#make("delete", object, row, {}))]);
  }

  insert(object: string, values: Record<string, Cell>, id: string, tenant: string | null): void {
    const row = { id, key: "", cells: [] };
    this.#do(object, [...this.list.value, { ...this.#make("insert", object, row, { values }), tenant }]);
  }

  /** Drop changes of an object: those with these numbers, or all. */
  drop(object: string, numbers?: ReadonlySet<number>): void {
    const stays = (change: Change) => change.object !== object || (numbers && !numbers.has(change.number));
    this.#do(object, this.list.value.filter(stays));
  }

  /** Take out changes that were sent: undoing does not bring them back. */
  settle(numbers: ReadonlySet<number>): void {
    this.#everywhere((list) => list.filter((change) => !numbers.has(change.number)));
  }

  /** Give a change the row's present key, so that it is sent over what somebody else wrote meanwhile. */
  rebase(number: number, key: string): void {
    this.#everywhere((list) => list.map((change) => (change.number === number ? { ...change, key } : change)));
  }

  /** Whether there is something to take back; who draws it is told when that changes. */
  canUndo(object: string): boolean {
    this.list.value;
    return !!this.#steps.get(object)?.past.length;
  }

  canRedo(object: string): boolean {
    this.list.value;
    return !!this.#steps.get(object)?.future.length;
  }

  /** Take back what was done last to the changes of an object; false if there is nothing. */
  undo(object: string): boolean {
    const steps = this.#steps.get(object);
    const step = steps?.past.at(-1);
    if (!steps || !step) return false;
    this.#steps.set(object, { past: steps.past.slice(0, -1), future: [...steps.future, step] });
    this.#put(object, step.before);
    return true;
  }

  /** Do again what was taken back last; false if there is nothing. */
  redo(object: string): boolean {
    const steps = this.#steps.get(object);
    const step = steps?.future.at(-1);
    if (!steps || !step) return false;
    this.#steps.set(object, { past: [...steps.past, step], future: steps.future.slice(0, -1) });
    this.#put(object, step.after);
    return true;
  }

  /** Drop everything, for good. */
  clear(): void {
    this.#steps.clear();
    this.drafts.clear();
    this.rowDrafts.value = new Map();
    this.list.value = [];
  }

  #do(object: string, list: readonly Change[]): void {
    const of = (all: readonly Change[]) => all.filter((change) => change.object === object);
    const step = { before: of(this.list.value), after: of(list) };
    if (same(step)) return;
    const past = this.#steps.get(object)?.past ?? [];
    this.#steps.set(object, { past: [...past, step].slice(-MOST_STEPS), future: [] });
    this.list.value = list;
  }

  #put(object: string, changes: readonly Change[]): void {
    this.list.value = sorted([...this.list.value.filter((change) => change.object !== object), ...changes]);
  }

  #everywhere(change: (list: readonly Change[]) => readonly Change[]): void {
    const step = ({ before, after }: Step) => ({ before: change(before), after: change(after) });
    for (const steps of this.#steps.values()) {
      steps.past = steps.past.map(step).filter((one) => !same(one));
      steps.future = steps.future.map(step).filter((one) => !same(one));
    }
    this.list.value = change(this.list.value);
  }

  overlay(): Overlay {
    const known = new Map(this.list.value.filter((change) => change.key).map((change) => [change.key, change]));
    return {
      cell: (row, column) => (row.key === null ? undefined : known.get(row.key)?.values[column]),
      state: (row) => (row.key !== null && known.get(row.key)?.kind === "delete" ? "deleted" : ""),
    };
  }

  #known(key: string | null): Change | undefined {
    return key ? this.list.value.find((change) => change.key === key) : undefined;
  }

  #make(kind: Change["kind"], object: string, row: GridRow, more: Partial<Change>): Change {
    counted += 1;
    const { number = counted, values = {}, before = {} } = more;
    return { number, kind, object, key: row.key ?? "", id: row.id, values, before, tenant: null };
  }
}

function same({ before, after }: Step): boolean {
  return JSON.stringify(before) === JSON.stringify(after);
}

function sorted(list: Change[]): Change[] {
  return list.sort((one, other) => one.number - other.number);
}

export function toEntry(change: Change): ChangeEntry {
  const { kind, object, key, values, tenant } = change;
  if (kind === "delete") return { kind, key };
  if (kind === "update") return { kind, key, values };
  return { kind, object, values, id: change.id || null, tenant };
}

/** Why no change can name a cell; empty if one can. */
export function whyNoChange(row: GridRow | undefined, column: Column | undefined): string {
  if (!row) return "there is no such row, or it is still loading.";
  if (!column) return "there is no such column.";
  if (row.key === null) return "this row has no key, so no change can name it.";
  if (column.written && column.written !== "always") return column.reasons?.edit ?? `the server writes ${column.name}.`;
  return column.reasons?.edit ?? "";
}

const lists = new Map<string, ChangeList>();

/** The change list of a connection; it outlives the view. */
export function changesOf(connection: string): ChangeList {
  let list = lists.get(connection);
  if (!list) lists.set(connection, (list = new ChangeList()));
  return list;
}

/** Whether a row is written otherwise than it began. */
export function isTouched({ kind, text, begin, id }: RowDraft): boolean {
  return kind === "insert" || text !== begin || !!id;
}

/** How many changes wait, of all connections of this tab; a row that is being written is one. */
export function unsent(): number {
  const written = (list: ChangeList) => [...list.rowDrafts.value.values()].filter(isTouched).length;
  return [...lists.values()].reduce((sum, list) => sum + list.list.value.length + written(list), 0);
}

/** Drop what waits for a connection that is removed, or for all when the tab is signed out. */
export function forgetChanges(connection?: string): void {
  for (const [name, list] of lists) if (connection === undefined || name === connection) list.clear();
}

globalThis.addEventListener?.("beforeunload", (event) => {
  if (!unsent()) return;
  event.preventDefault();
  event.returnValue = true; // what browsers of before 2024 ask for
});
