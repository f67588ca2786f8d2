/** What the page remembers on this machine: the server keeps it, because a browser's own storage changes with the port. */

import { call } from "../wire/client.ts";

/** Read what is kept under a key; null if there is nothing. Raises Failure if that cannot be known. */
async function read<T>(key: string): Promise<T | null> {
  const { values } = await call("preferences", { prefix: key });
  const kept = values[key];
  return kept === undefined ? null : (JSON.parse(kept) as T);
}

/** Read what is kept under a key; null if there is nothing readable. */
export async function recall<T>(key: string): Promise<T | null> {
  try {
    return await read<T>(key);
  } catch {
    return null;
  }
}

/** Keep a value under a key now; null forgets it. Raises Failure if it is not kept. */
async function store(key: string, value: unknown): Promise<void> {
  clearTimeout(waiting.get(key)?.timer);
  waiting.delete(key);
  await call("preferences/set", { key, value: value === null ? null : JSON.stringify(value) });
}

interface Waiting {
  readonly timer: number;
  readonly value: unknown;
}

const waiting = new Map<string, Waiting>();

/** Keep a value under a key, soon; null forgets it. */
export function remember(key: string, value: unknown): void {
  clearTimeout(waiting.get(key)?.timer);
  waiting.set(key, { value, timer: window.setTimeout(() => flush(key, value), 400) });
}

function flush(key: string, value: unknown): void {
  store(key, value).catch(() => {
    // losing a width is no reason to interrupt; a lost server says so itself
  });
}

globalThis.addEventListener?.("pagehide", () => {
  for (const [key, { value }] of [...waiting]) flush(key, value);
});
