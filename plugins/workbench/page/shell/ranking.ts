/** Which entries fit to words, the best first. */

export interface Named {
  readonly label: string;
  /** Further words by which it is found. */
  readonly also?: string;
}

/** Entries that hold each word, ignoring case: those that begin with the first, then at a beginning of a word, then others. */
export function ranked<T extends Named>(entries: readonly T[], text: string): T[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [...entries];
  const rank = ({ label, also = "" }: T): number => {
    const name = label.toLowerCase();
    const all = `${name} ${also.toLowerCase()}`;
    if (!words.every((word) => all.includes(word))) return -1;
    if (name === words.join(" ")) return 0;
    if (name.startsWith(words[0])) return 1;
    return name.split(/[^\p{L}\p{N}]+/u).some((part) => part.startsWith(words[0])) ? 2 : 3;
  };
  return entries
    .map((entry, at) => ({ entry, at, rank: rank(entry) }))
    .filter(({ rank }) => rank >= 0)
    .sort((one, other) => one.rank - other.rank || one.at - other.at)
    .map(({ entry }) => entry);
}
