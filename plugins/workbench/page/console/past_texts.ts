/** What was run before, as a list that is searched. */

import type { HistoryEntry } from "../messages.ts";
import { beginning } from "../wire/previews.ts";

const LONGEST_LINE = 120;

/** The entries that have all words, whatever the case; of equal texts the newest. */
export function fitting(entries: readonly HistoryEntry[], words: string): HistoryEntry[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const seen = new Set<string>();
  return entries.filter(({ text }) => {
    if (seen.has(text)) return false;
    seen.add(text);
    const lower = text.toLowerCase();
    return wanted.every((word) => lower.includes(word));
  });
}

/** The first line of a text that is no comment, and how many lines follow. */
export function headline(text: string): string {
  const lines = text.trim().split("\n");
  const at = Math.max(0, lines.findIndex((line) => line.trim() && !/^\s*(#|\/\/)/.test(line)));
  const more = lines.length - at - 1;
  return `${beginning(lines[at].trim(), LONGEST_LINE)}${more > 0 ? `  +${more.toLocaleString("en")} ${more === 1 ? "line" : "lines"}` : ""}`;
}
