/** Whether a value is what a column takes, as far as the column tells; the server has the last word. */

import type { Cell, Column } from "../messages.ts";
import { type JsonNode, readJson } from "../ui/json_text.ts";
import { tagOf } from "../wire/cells.ts";

const INTEGER = /^-?(0|[1-9][0-9]*)$/;
const NUMBER = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/;
/** Columns whose values may have any form. */
const OPEN = new Set(["json", "range", "geo", "other"]);

/** What a cell is in JSON; null for a value that is cut or missing, or whose text is no JSON. */
export function nodeOf(cell: Cell): JsonNode | null {
  const tag = tagOf(cell);
  if (cell === null || typeof cell === "boolean") return { kind: "word", text: String(cell) };
  if (typeof cell === "string") return { kind: "string", text: cell };
  if (tag === "integer" || tag === "decimal") return { kind: NUMBER.test(cell[1]) ? "number" : "string", text: cell[1] };
  if (tag === "bytes") return { kind: "string", text: cell[1] };
  if (tag !== "json") return null;
  try {
    return readJson(cell[1]);
  } catch {
    return null;
  }
}

/** Why a column does not take a value, after its name; empty if it may. `before` is what the row has there. */
export function misfit(node: JsonNode, column: Column, before: Cell = null): string {
  const reason = unlike(node, column);
  if (!reason) return column.kind === "timestamp" && node.kind === "string" ? unlikeTime(node.text, nodeOf(before)) : "";
  // a server that stores values of another kind has them in its rows, and takes more of them
  const old = nodeOf(before);
  return old && old.kind === node.kind && unlike(old, column) ? "" : reason;
}

const STORED = /^\d{4}-\d\d-\d\dT\d\d:\d\d/;
const TIME = /^([+-]?\d{4,}(-\d\d(-\d\d(T.*)?)?)?|\d+)$/;

/** Servers know many forms; where a row has a time in the usual one, a text without a year is none. */
function unlikeTime(text: string, old: JsonNode | null): string {
  const usual = old?.kind === "string" && STORED.test(old.text);
  return usual && !TIME.test(text) ? `takes a time such as ${old.text}` : "";
}

function unlike(node: JsonNode, column: Column): string {
  if (node.kind === "word" && node.text === "null") return "";
  const { kind, repeated, multiple, members, dimensions } = column;
  const vector = (dimensions ?? null) !== null;
  if (node.kind === "object") return OPEN.has(kind) || vector || members?.length ? "" : "takes no object";
  if (node.kind !== "array") return repeated ? "takes an array" : OPEN.has(kind) ? "" : unlikeOne(node, column);
  if (OPEN.has(kind)) return "";
  if (!repeated && !multiple && !vector) return "takes one value, not an array";
  if (vector && dimensions && !members?.length && node.items.length !== dimensions) return `takes ${dimensions} numbers`;
  const one = { ...column, repeated: false, multiple: true };
  const reason = node.items.map((item) => unlike(item, one)).find(Boolean);
  return reason ? `${reason.replace(/^takes/, "takes an array, each value of which is")}` : "";
}

function unlikeOne({ kind: form, text }: Extract<JsonNode, { readonly text: string }>, { kind }: Column): string {
  const digits = form === "number" ? text : kind === "decimal" && form === "string" ? text : "";
  switch (kind) {
    case "integer":
      return INTEGER.test(digits) ? "" : "takes a whole number";
    case "unsigned":
      return INTEGER.test(digits) && !digits.startsWith("-") ? "" : "takes a whole number without a sign";
    case "float":
    case "decimal":
      return NUMBER.test(digits) ? "" : /^-?\d+,\d+$/.test(text) ? `takes a number with a point: ${text.replace(",", ".")}` : "takes a number";
    case "boolean":
      return form === "word" ? "" : "takes true or false";
    case "timestamp":
    case "date":
    case "time":
      return form === "word" ? "takes a time, written as a text" : "";
    default:
      return form === "string" ? "" : "takes a text, in quotes";
  }
}
