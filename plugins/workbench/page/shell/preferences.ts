/** What the page remembers on this machine: the server keeps it, because a browser's own storage changes with the port. */

import { call } from "../wire/client.ts";

/** Read what is kept under a key; null if there is nothing readable. */
export async function recall<T>(key: string): Promise<T | null> {
  try {
    const { values } = await call("preferences", { prefix: key });
    const found = values[key];
    return found === undefined ? null : (JSON.parse(found) as T);
  } catch {
    return null;
  }
}

const waiting = new Map<string, number>();

/** Keep a value under a key, soon; null forgets it. */
export function remember(key: string, value: unknown): void {
  clearTimeout(waiting.get(key));
  waiting.set(
    key,
    window.setTimeout(() => {
      waiting.delete(key);
      const text = value === null ? null : JSON.stringify(value);
      call("preferences/set", { key, value: text }).catch(() => {
        // losing a width is no reason to interrupt; a lost server says so itself
      });
    }, 400),
  );
}
