/** Edits that gather until a person sends them: cells, new rows and deletions of one connection. */

import { signal } from "@preact/signals";
import { sameCell } from "../grid/cells.ts";
import type { Overlay } from "../grid/row_blocks.ts";
import type { Cell, ChangeEntry, Row } from "../messages.ts";

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

let counted = 0;

export class ChangeList {
  readonly list = signal<readonly Change[]>([]);

  of(object: string): readonly Change[] {
    return this.list.value.filter((change) => change.object === object);
  }

  /** Change one cell; a cell that gets back its old value is no longer changed. */
  edit(object: string, row: Row, column: string, before: Cell, after: Cell): void {
    if (row.key === null) return;
    const known = this.#known(row.key);
    const old = known?.before ?? {};
    const first = column in old ? old[column] : before;
    const values = { ...known?.values, [column]: after };
    const kept = { ...old, [column]: first };
    if (sameCell(first, after)) {
      delete values[column];
      delete kept[column];
    }
    const others = this.list.value.filter((change) => change !== known);
    const change = this.#make("update", object, row, { values, before: kept, number: known?.number });
    this.list.value = Object.keys(values).length ? sorted([...others, change]) : others;
  }

  /** Delete rows, or keep them again if all are to be deleted already. */
  flipDeleted(object: string, rows: readonly Row[]): void {
    const named = rows.filter((row) => row.key !== null);
    const all = named.every((row) => this.#known(row.key)?.kind === "delete");
    const keys = new Set(named.map((row) => row.key));
    const others = this.list.value.filter((change) => !change.key || !keys.has(change.key));
    this.list.value = all ? others : [...others, ...named.map((row) => this.#make("delete", object, row, {}))];
  }

  insert(object: string, values: Record<string, Cell>, id: string, tenant: string | null): void {
    const row = { id, key: "", cells: [] };
    this.list.value = [...this.list.value, { ...this.#make("insert", object, row, { values }), tenant }];
  }

  remove(numbers: ReadonlySet<number>): void {
    this.list.value = this.list.value.filter((change) => !numbers.has(change.number));
  }

  /** Drop all changes of an object. */
  discard(object: string): void {
    this.list.value = this.list.value.filter((change) => change.object !== object);
  }

  /** Give a change the row's present key, so that it is sent over what somebody else wrote meanwhile. */
  rebase(number: number, key: string): void {
    this.list.value = this.list.value.map((change) => (change.number === number ? { ...change, key } : change));
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

  #make(kind: Change["kind"], object: string, row: Row, more: Partial<Change>): Change {
    counted += 1;
    const { number = counted, values = {}, before = {} } = more;
    return { number, kind, object, key: row.key ?? "", id: row.id, values, before, tenant: null };
  }
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

const lists = new Map<string, ChangeList>();

/** The change list of a connection; it outlives the view. */
export function changesOf(connection: string): ChangeList {
  let list = lists.get(connection);
  if (!list) lists.set(connection, (list = new ChangeList()));
  return list;
}

/** How many changes wait, of all connections of this tab. */
export function unsent(): number {
  return [...lists.values()].reduce((sum, { list }) => sum + list.value.length, 0);
}

/** Drop what waits for a connection that is removed, or for all when the tab is signed out. */
export function forgetChanges(connection?: string): void {
  for (const [name, { list }] of lists) if (connection === undefined || name === connection) list.value = [];
}

globalThis.addEventListener?.("beforeunload", (event) => {
  if (!unsent()) return;
  event.preventDefault();
  event.returnValue = true; // what browsers of before 2024 ask for
});
