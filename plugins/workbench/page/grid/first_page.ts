/** The first page of an object, asked for while its link is still pressed: a press takes about as long as the server. */

import type { PageAnswer } from "../messages.ts";
import { call } from "../wire/client.ts";
import { BLOCK } from "./row_blocks.ts";

/** Milliseconds after which a page is not what the click wanted: rows as they are now. */
const FRESH = 1_000;

interface Asked {
  readonly connection: string;
  readonly object: string;
  readonly began: number;
  readonly stop: AbortController;
  readonly page: Promise<PageAnswer>;
}

let asked: Asked | null = null;

/** Ask for the first page of an object whose link is pressed; it is forgotten unless a grid takes it soon. */
export function askAhead(event: PointerEvent, connection: string, object: string): void {
  const plain = event.isPrimary && event.button === 0 && event.pointerType === "mouse";
  if (!plain || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return; // a new tab, or a scroll
  asked?.stop.abort();
  const stop = new AbortController();
  const page = call("page", { connection, rows: { object }, offset: 0, limit: BLOCK, total: true }, stop.signal);
  const mine = { connection, object, began: performance.now(), stop, page };
  asked = mine;
  page.catch(() => {}); // the grid that takes it says why
  setTimeout(() => {
    if (asked !== mine) return;
    asked = null;
    stop.abort();
  }, FRESH);
}

/** The page of an object if it was asked for just now, once; `signal` ends its request. */
export function takeAhead(connection: string, object: string, signal: AbortSignal): Promise<PageAnswer> | null {
  const found = asked;
  if (found?.connection !== connection || found.object !== object || performance.now() - found.began > FRESH) return null;
  asked = null;
  signal.addEventListener("abort", () => found.stop.abort(), { once: true });
  return found.page;
}
