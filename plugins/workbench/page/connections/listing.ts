/** The objects of a connection, read again while somebody looks. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Note, Object as Entry, ObjectList } from "../messages.ts";
import { changes } from "../state/store.ts";
import { call } from "../wire/client.ts";

const MOST = 10_000; // objects that are listed
const PART = 1_000; // objects that are asked for at once
const EVERY = 10_000; // milliseconds between two rounds, or twenty times as long as a round took
const REST = 600_000; // milliseconds without a key or a pointer after which nobody looks

export interface Listing {
  readonly objects: readonly Entry[];
  readonly notes: readonly Note[];
  /** How many there are, if the server says so. */
  readonly total: number | null;
  /** There are more than are listed. */
  readonly more: boolean;
  readonly at: Date;
  readonly seconds: number;
}

/** Read all parts of one level; `show` hears of those that are there so far. */
async function read(
  place: { connection: string; contains?: string; parent?: string },
  signal: AbortSignal,
  show?: (now: Listing) => void,
): Promise<Listing> {
  const began = performance.now();
  let now: Listing = { objects: [], notes: [], total: null, more: true, at: new Date(), seconds: 0 };
  for (let cursor: string | null = null; now.more && now.objects.length < MOST; ) {
    const part: ObjectList = await call("objects", { ...place, cursor, limit: PART }, signal);
    cursor = part.next ?? null;
    now = {
      objects: [...now.objects, ...part.objects],
      notes: [...now.notes, ...(part.notes ?? [])],
      total: part.total ?? null,
      more: cursor !== null,
      at: new Date(),
      seconds: (performance.now() - began) / 1_000,
    };
    if (now.more) show?.(now);
  }
  return now;
}

interface Objects {
  readonly listing: Listing | null;
  readonly inner: ReadonlyMap<string, readonly Entry[]>;
  /** Objects that came while the view is open. */
  readonly fresh: ReadonlySet<string>;
  readonly failed: unknown;
  readonly waits: boolean;
  readonly again: () => void;
  /** Whether words are sought among what is listed; otherwise the server seeks. */
  readonly whole: boolean;
}

/** List the objects, and those of opened branches, now and every few seconds; not while the page is hidden or unused. */
export function useObjects(connection: string, words: string, branches: ReadonlySet<string>): Objects {
  const [listing, setListing] = useState<Listing | null>(null);
  const [inner, setInner] = useState<ReadonlyMap<string, readonly Entry[]>>(new Map());
  const [fresh, setFresh] = useState<ReadonlySet<string>>(new Set());
  const [failed, setFailed] = useState<unknown>(null);
  const [waits, setWaits] = useState(true);
  const [whole, setWhole] = useState(false);
  const [asked, setAsked] = useState(0);
  const first = useRef<ReadonlySet<string> | null>(null);
  const contains = whole ? "" : words.trim();
  useEffect(() => {
    const stop = new AbortController();
    let [timer, used, resting] = [0, performance.now(), false];
    const round = async (begins: boolean) => {
      const began = performance.now();
      if (begins) setWaits(true);
      try {
        const now = await read({ connection, contains }, stop.signal, begins && !listing ? setListing : undefined);
        const below = new Map<string, readonly Entry[]>();
        for (const parent of branches) below.set(parent, (await read({ connection, parent }, stop.signal)).objects);
        setListing(now);
        setInner(below);
        setFailed(null);
        if (!contains && !now.more) {
          const known = (first.current ??= new Set(now.objects.map((one) => one.name)));
          setFresh(new Set(now.objects.map((one) => one.name).filter((name) => !known.has(name))));
          setWhole(true);
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        setFailed(error);
      }
      if (stop.signal.aborted) return;
      setWaits(false);
      timer = window.setTimeout(next, Math.max(EVERY, 20 * (performance.now() - began)));
    };
    const next = () => {
      resting = document.hidden || performance.now() - used > REST;
      if (!resting) void round(false);
    };
    const wake = () => {
      if (!document.hidden) used = performance.now();
      if (resting) next();
    };
    const heard = ["pointermove", "pointerdown", "keydown", "visibilitychange"];
    for (const name of heard) document.addEventListener(name, wake);
    timer = window.setTimeout(() => void round(true), contains ? 200 : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
      for (const name of heard) document.removeEventListener(name, wake);
    };
  }, [connection, contains, branches, changes.value, asked]);
  return { listing, inner, fresh, failed, waits, whole, again: () => setAsked((count) => count + 1) };
}
