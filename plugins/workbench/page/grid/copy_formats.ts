/** The formats of copied cells: text, JSON and CSV, with every digit as the server sent it. */

import type { Cell } from "../messages.ts";
import { tagOf, textOf } from "../wire/cells.ts";

export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

/** Lines of cells with tabs between them, as spreadsheets paste them; a single cell is its own text. */
export function asText({ columns, rows }: Table): string {
  if (rows.length === 1 && columns.length === 1) return textOf(rows[0][0]) ?? "";
  return rows.map((row) => row.map((cell) => quoted(textOf(cell) ?? "", /[\t\r\n"]/)).join("\t")).join("\n");
}

/** The cells of a text that a spreadsheet or `asText` copied. */
export function readTable(text: string): string[][] {
  const rows: string[][] = [];
  const fields = /(?:"((?:[^"]|"")*)"|([^\t\r\n]*))(\t|\r\n|\n|\r|$)/y;
  let row: string[] = [];
  while (fields.lastIndex < text.length || row.length) {
    const field = fields.exec(text);
    if (!field) return text.split(/\r\n|\n|\r/).map((line) => line.split("\t")); // a quote within a field
    row.push(field[1] === undefined ? field[2] : field[1].replaceAll('""', '"'));
    if (field[3] === "\t") continue;
    rows.push(row);
    row = [];
  }
  return rows;
}

/** A JSON array with one object for each row; a missing value is left out. */
export function asJson({ columns, rows }: Table): string {
  const objects = rows.map((row) => {
    const members = row.flatMap((cell, at) =>
      tagOf(cell) === "missing" ? [] : [`${JSON.stringify(columns[at])}: ${jsonOf(cell)}`],
    );
    return members.length ? `  {${members.join(", ")}}` : "  {}";
  });
  return objects.length ? `[\n${objects.join(",\n")}\n]` : "[]";
}

/** One cell as JSON: numbers and documents as the server wrote them. */
export function jsonOf(cell: Cell): string {
  const tag = tagOf(cell);
  const text = textOf(cell);
  if (text === null) return "null";
  return tag === "integer" || tag === "decimal" || tag === "json" || tag === "boolean" ? text : JSON.stringify(text);
}

/** One cell beside another: as JSON, or the word for a value that the row does not have. */
export function spelled(cell: Cell): string {
  return tagOf(cell) === "missing" ? "missing" : jsonOf(cell);
}

/**
 * Comma-separated values with a line of names; a text that a spreadsheet would run gets an apostrophe. Null and missing
 * are empty, an empty text is "", as in an export.
 */
export function asCsv({ columns, rows }: Table): string {
  const nothing = columns.length === 1 ? '""' : ""; // else the line would be empty, and readers would skip it
  const field = (cell: Cell) => (textOf(cell) === null ? nothing : quoted(harmless(cell), /^$|[,\r\n"]/));
  const lines = rows.map((row) => row.map(field).join(","));
  return [columns.map((name) => quoted(harmless(name), /[,\r\n"]/)).join(","), ...lines].join("\r\n") + "\r\n";
}

const NUMBER = /^[+-]?([0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,9})?)?$/;

function harmless(cell: Cell): string {
  const text = textOf(cell) ?? "";
  return /^[=+\-@\t\r]/.test(text) && !NUMBER.test(text) ? `'${text}` : text;
}

function quoted(text: string, special: RegExp): string {
  return special.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
