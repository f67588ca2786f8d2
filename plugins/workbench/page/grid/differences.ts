/** Where two texts differ. */

const CONTEXT = 24; // equal letters that are kept before and after what differs
const LONGEST = 600; // letters of what differs

export interface Part {
  readonly before: string;
  readonly own: string;
  readonly after: string;
}

/** A text in three parts: the letters that another one does not have, and those around them; a long text is cut. */
export function partsOf(text: string, other: string): Part {
  const most = Math.min(text.length, other.length);
  let start = 0;
  while (start < most && text[start] === other[start]) start += 1;
  if (start && isHigh(text, start - 1)) start -= 1; // no half of a sign
  let end = 0;
  while (end < most - start && text[text.length - 1 - end] === other[other.length - 1 - end]) end += 1;
  if (end && isHigh(text, text.length - end - 1)) end -= 1;
  const last = text.length - end;
  const from = start > 2 * CONTEXT ? start - CONTEXT : 0;
  const to = end > 2 * CONTEXT ? last + CONTEXT : text.length;
  const own = text.slice(start, last);
  return {
    before: `${from ? "…" : ""}${text.slice(from, start)}`,
    own: own.length > LONGEST ? `${own.slice(0, LONGEST)}…` : own,
    after: `${text.slice(last, to)}${to < text.length ? "…" : ""}`,
  };
}

function isHigh(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0xd800 && code < 0xdc00;
}
