/** What the consoles of this tab hold while another view is shown. */

import type { Executed } from "../messages.ts";
import type { SentRequest } from "./sent.ts";

/** What a console had when it was left; it lives as long as the tab. */
export interface Left {
  readonly text: string | null;
  readonly variables: Readonly<Record<string, string>>;
  readonly executed: Executed | null;
  /** The requests that the answers are to, with the variables of then. */
  readonly sent: readonly SentRequest[];
  readonly filled: Readonly<Record<string, string>>;
}

const NOTHING: Left = { text: null, variables: {}, executed: null, sent: [], filled: {} };

const consoles = new Map<string, Left>();

export function leftBehind(connection: string): Left {
  return consoles.get(connection) ?? NOTHING;
}

export function leaveBehind(connection: string, part: Partial<Left>): void {
  consoles.set(connection, { ...leftBehind(connection), ...part });
}

/** Drop what the consoles of this tab have, or that of one connection. */
export function forgetConsoles(connection?: string): void {
  if (connection === undefined) consoles.clear();
  else consoles.delete(connection);
}
