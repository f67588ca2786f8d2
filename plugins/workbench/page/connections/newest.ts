/** The newest time in each object: asked for the lines in view, a few at a time, once the objects themselves are read. */

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { timeColumns } from "../grid/time_columns.ts";
import type { Object as Entry } from "../messages.ts";
import { textOf } from "../wire/cells.ts";
import { call } from "../wire/client.ts";

const AT_ONCE = 3; // objects that are asked about side by side
const PAUSE = 300; // milliseconds after the objects
const AGE = 60_000; // milliseconds until an object is asked again whose number of rows is not known
const MOST_FAILURES = 3; // in a row; then nothing more is asked

export interface Newest {
  readonly column: string;
  /** Null where the object has no time column, or no row has a time. */
  readonly text: string | null;
  /** How many rows the object had, as its list said. */
  readonly rows: number | null;
  readonly at: number;
}

/** What is known, by `placeOf`. */
export const newest = signal<ReadonlyMap<string, Newest>>(new Map());

export function placeOf(connection: string, object: string): string {
  return `${connection}/${object}`;
}

/** The newest time of an object as a number that sorts; null if it is not known. */
export function timeOf(connection: string, object: string): number | null {
  const at = Date.parse(newest.value.get(placeOf(connection, object))?.text ?? "");
  return Number.isNaN(at) ? null : at;
}

async function ask(connection: string, object: string, signal: AbortSignal): Promise<Pick<Newest, "column" | "text">> {
  const { columns, time } = await call("describe", { connection, object }, signal);
  const column = time?.column ?? timeColumns(columns)[0]?.name;
  if (!column) return { column: "", text: null };
  const summary = await call("summarize", { connection, rows: { object }, column, values: 0, buckets: 0 }, signal);
  return { column, text: textOf(summary.maximum) };
}

/** Ask about the objects of some lines, if the driver can summarize a column. */
export function useNewest(connection: string, entries: readonly Entry[], able: boolean): void {
  const wanted = useRef(entries);
  const wake = useRef(() => {});
  wanted.current = entries;
  useEffect(() => {
    if (!able) return;
    const stop = new AbortController();
    const underWay = new Set<string>();
    let [running, failures] = [0, 0];
    const stale = ({ name, rows, branch }: Entry) => {
      if (branch || underWay.has(name)) return false;
      const known = newest.peek().get(placeOf(connection, name));
      return !known || known.rows !== (rows ?? null) || (rows == null && known.text !== null && Date.now() - known.at > AGE);
    };
    const work = async () => {
      running += 1;
      while (!stop.signal.aborted && !document.hidden && failures < MOST_FAILURES) {
        const entry = wanted.current.find(stale);
        if (!entry) break;
        underWay.add(entry.name);
        let answer: Pick<Newest, "column" | "text"> = { column: "", text: null };
        try {
          answer = await ask(connection, entry.name, stop.signal);
          failures = 0;
        } catch {
          failures += 1;
        }
        if (stop.signal.aborted) return;
        newest.value = new Map(newest.peek()).set(placeOf(connection, entry.name), { ...answer, rows: entry.rows ?? null, at: Date.now() });
        underWay.delete(entry.name);
      }
      running -= 1;
    };
    wake.current = () => {
      while (running < AT_ONCE && failures < MOST_FAILURES && !document.hidden && wanted.current.some(stale)) void work();
    };
    const timer = setTimeout(() => wake.current(), PAUSE);
    return () => {
      wake.current = () => {};
      clearTimeout(timer);
      stop.abort();
    };
  }, [connection, able]);
  useEffect(() => {
    const timer = setTimeout(() => wake.current(), PAUSE);
    return () => clearTimeout(timer);
  }, [entries]);
}
