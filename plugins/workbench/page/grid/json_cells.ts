/** Values of JSON as cells. */

import type { Cell, Column } from "../messages.ts";
import { type JsonNode, oneLine } from "../ui/json_text.ts";

const INTEGER = /^-?(0|[1-9][0-9]*)$/;

/** A value as a cell of a column, every digit kept. */
export function cellFrom(node: JsonNode, column: Column): Cell {
  if (node.kind === "object" || node.kind === "array") return ["json", oneLine(node)];
  const { kind, text } = node;
  if (kind === "word") return text === "null" ? null : text === "true";
  if (kind === "number") return [INTEGER.test(text) ? "integer" : "decimal", text];
  return column.kind === "binary" && !column.repeated ? ["bytes", text] : text;
}
