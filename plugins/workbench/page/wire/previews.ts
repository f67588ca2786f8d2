/** Values as they are read at a glance; the exact ones are in the cell, its copy and the side pane. */

const INSTANT = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?$/;
const UTC = /^(Z|[+-]00:?00)?$/;

/** An instant for people: a space for the T, no zone if that is UTC, at most milliseconds; other texts as they are. */
export function instant(text: string): string {
  const parts = INSTANT.exec(text);
  if (!parts) return text;
  const [, day, time, fraction = "", zone = ""] = parts;
  const short = /[1-9]/.test(fraction) ? `.${fraction.slice(0, 3)}` : "";
  return `${day} ${time}${short}${UTC.test(zone) ? "" : ` ${zone}`}`;
}

const SHOWN = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d)(:\d\d(?:\.\d{1,9})?)? ?(Z|[+-]\d\d:?\d\d)?$/;

/** An instant as `instant` shows it, written as a stored one is, whose zone is UTC where none is shown; others as they are. */
export function asStored(text: string, stored: string): string {
  const [parts, form] = [SHOWN.exec(text.trim()), INSTANT.exec(stored)];
  if (!parts || !form) return text;
  const [, day, minute, second = ":00", zone = form[4] ? "Z" : ""] = parts;
  return `${day}T${minute}${second}${zone}`;
}

/** The beginning of a text that is longer than `most` units of UTF-16, with an ellipsis; no sign is cut in half. */
export function beginning(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return `${text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 1 : most)}…`;
}

/** A preview is about as long as a column is wide at most; its parts are no longer, however much room there is. */
const ROOM = 40;
const MOST_PARTS = 20;

interface Parts {
  readonly count: number;
  /** The first values, as written; each with its name if they have names. */
  readonly first: readonly string[];
}

/** A document or an array in short: the number of its values, and the first of them, digit for digit. */
export function preview(text: string, most = ROOM): string {
  const open = text[0];
  if (open !== "[" && open !== "{") return text;
  const { count, first } = partsOf(text);
  if (!count) return open === "[" ? "[]" : "{}";
  const shown: string[] = [];
  let room = most;
  for (const part of first) {
    const short = brief(part, open === "{", shown.length === 0);
    room -= short.length + 2;
    if (room < 0 && shown.length) break;
    shown.push(beginning(short, ROOM));
  }
  const words = shown.join(", ") + (shown.length < count ? ", …" : "");
  if (shown.length === count && !first.some((part) => /[[{]/.test(part))) {
    return open === "[" ? `[${words}]` : `{${words}}`;
  }
  return open === "[" ? `[${count}] ${words}` : `{${count}} ${words}`;
}

const NAMED = /^"((?:[^"\\]|\\.)*)"\s*:\s*/;

/** One value of a document or an array; what it holds itself is only counted, but for the first of an array. */
function brief(part: string, named: boolean, unfold: boolean): string {
  const name = named ? NAMED.exec(part) : null;
  const value = name ? part.slice(name[0].length) : part;
  const before = name ? `${name[1]}: ` : "";
  if (value[0] !== "{" && value[0] !== "[") return before + value;
  const { count, first } = partsOf(value);
  if (value[0] === "[" || named || !unfold) return before + (value[0] === "[" ? `[${count}]` : `{${count}}`);
  const inner = first.slice(0, 2).map((one) => brief(one, true, false));
  return `{${inner.join(", ")}${count > inner.length ? ", …" : ""}}`;
}

/** The values directly in a document or an array: one pass over its signs, without reading numbers. */
function partsOf(text: string): Parts {
  if (text.lastIndexOf("[") === 0 && !text.includes('"') && !text.includes("{")) return numbersOf(text);
  const first: string[] = [];
  let [depth, count, begin, quoted] = [0, 0, 1, false];
  const end = (at: number) => {
    if (first.length >= MOST_PARTS) return void (count += 1);
    const part = text.slice(begin, at).trim();
    if (!part) return;
    first.push(part);
    count += 1;
  };
  for (let at = 0; at < text.length; at += 1) {
    const sign = text.charCodeAt(at);
    if (quoted) {
      if (sign === 92) at += 1;
      else if (sign === 34) quoted = false;
    } else if (sign === 34) quoted = true;
    else if (sign === 91 || sign === 123) depth += 1;
    else if (sign === 93 || sign === 125) {
      depth -= 1;
      if (!depth) end(at);
    } else if (sign === 44 && depth === 1) {
      end(at);
      begin = at + 1;
    }
  }
  return { count, first };
}

/** The number of values directly in an array or a document. */
export function countOf(text: string): number {
  return partsOf(text).count;
}

/** The same for an array of numbers, such as a vector, which may have thousands. */
function numbersOf(text: string): Parts {
  const first: string[] = [];
  let [begin, count] = [1, 0];
  for (let at = text.indexOf(","); ; at = text.indexOf(",", at + 1)) {
    const part = first.length < MOST_PARTS ? text.slice(begin, at < 0 ? text.lastIndexOf("]") : at).trim() : "-";
    if (part) count += 1;
    if (part && first.length < MOST_PARTS) first.push(part);
    if (at < 0) return { count, first };
    begin = at + 1;
  }
}
