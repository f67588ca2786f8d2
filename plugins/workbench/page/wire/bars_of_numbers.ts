/** Many numbers, such as a vector, as few bars on one line: their shape, not their values. */

export interface Bars {
  /** The path of the bars, up or down from the middle of a box that is `wanted` units wide and two high. */
  readonly path: string;
  readonly least: number;
  readonly most: number;
}

/** At most so many bars of a JSON array of numbers, each the one farthest from zero of its share; null for other texts. */
export function barsOf(text: string, wanted: number): Bars | null {
  let numbers: unknown;
  try {
    numbers = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(numbers) || !numbers.length || !numbers.every(Number.isFinite)) return null;
  const count = Math.min(wanted, numbers.length);
  const heights = new Float64Array(count);
  let [least, most] = [Infinity, -Infinity];
  numbers.forEach((one: number, at) => {
    const share = Math.floor((at * count) / numbers.length);
    if (Math.abs(one) > Math.abs(heights[share])) heights[share] = one;
    if (one < least) least = one;
    if (one > most) most = one;
  });
  const scale = Math.max(Math.abs(least), Math.abs(most)) || 1;
  const path = Array.from(heights, (height, at) => `M${+(((at + 0.5) * wanted) / count).toFixed(2)} 1V${+(1 - height / scale).toFixed(3)}`).join("");
  return { path, least, most };
}
