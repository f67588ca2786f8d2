/** Places in a text: drivers count code points, the browser counts UTF-16 units. */

/** The number of code points of a text. */
export function points(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** The number of UTF-16 units before that many code points. */
export function units(text: string, before: number): number {
  let at = 0;
  for (let count = 0; count < before && at < text.length; count += 1) {
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  }
  return at;
}
