/** The lines of the table of objects: which are shown, and in which order. */

import type { Object as Entry } from "../messages.ts";

export type SortColumn = "name" | "kind" | "state" | "rows" | "size" | "newest";

export interface Order {
  readonly by: SortColumn;
  readonly descending: boolean;
}

/** One line: an object, and how many others it lies in. */
export interface Line {
  readonly entry: Entry;
  readonly depth: number;
}

/** The newest time in an object, as a number; null if it is not known. */
export type TimeOf = (name: string) => number | null;

const LEVELS = ["good", "", "warning", "bad"]; // from the best to the worst

const names = new Intl.Collator("en", { numeric: true });

/** The order after a click on a head: names begin at A, figures at the largest, states at the worst; a second turns it. */
export function nextOrder(order: Order, by: SortColumn): Order {
  if (order.by === by) return { by, descending: !order.descending };
  return { by, descending: by !== "name" && by !== "kind" };
}

/** Sorted; what is unknown comes last either way, and equal figures go by name. */
export function sorted(entries: readonly Entry[], { by, descending }: Order, timeOf: TimeOf = () => null): Entry[] {
  const way = descending ? -1 : 1;
  const byName = (left: Entry, right: Entry) => names.compare(left.name, right.name);
  const grade = ({ state }: Entry) => (state ? LEVELS.indexOf(state.level) : null);
  return [...entries].sort((left, right) => {
    if (by === "name") return way * byName(left, right);
    if (by === "kind") return way * names.compare(left.kind, right.kind) || byName(left, right);
    const figure = (entry: Entry) => (by === "newest" ? timeOf(entry.name) : by === "state" ? grade(entry) : entry[by]);
    const [first, second] = [figure(left), figure(right)];
    if (first == null || second == null) return Number(first == null) - Number(second == null) || byName(left, right);
    const alike = by === "state" ? names.compare(left.state!.word, right.state!.word) : 0;
    return way * (first - second) || alike || byName(left, right);
  });
}

/** The lines in order: objects whose name holds the words, in the state if one is named, and what contains such an object. */
export function linesOf(
  entries: readonly Entry[],
  inner: ReadonlyMap<string, readonly Entry[]>,
  order: Order,
  words: string,
  timeOf?: TimeOf,
  state = "",
  depth = 0,
): Line[] {
  const wanted = words.trim().toLowerCase();
  return sorted(entries, order, timeOf).flatMap((entry) => {
    const below = linesOf(inner.get(entry.name) ?? [], inner, order, words, timeOf, state, depth + 1);
    const fits = entry.name.toLowerCase().includes(wanted) && (!state || entry.state?.word === state);
    return below.length || fits ? [{ entry, depth }, ...below] : [];
  });
}

/** The lines in view, and some around them: from the first to before the last. */
export function linesInView(top: number, height: number, line: number, count: number): [number, number] {
  const first = Math.max(0, Math.min(count, Math.floor(top / line)) - 10);
  return [first, Math.min(count, Math.ceil((top + height) / line) + 10)];
}
