/** A row as a JSON document by columns: written for a person, and read back as the values that differ. */

import type { Cell, Column } from "../messages.ts";
import { JsonFault, type JsonMember, type JsonNode, oneLine, pretty, readMembers } from "../ui/json_text.ts";
import { tagOf } from "../wire/cells.ts";
import { cellFrom } from "./json_cells.ts";
import { misfit, nodeOf } from "./misfits.ts";

const NOTHING: Cell = ["missing", ""];

/** Whose document it is: a row that exists, or one that is to be. */
export interface RowOf {
  readonly kind: "insert" | "update";
  readonly columns: readonly Column[];
  /** What the row has, by column, whole; nothing for a new one. */
  readonly cells: Readonly<Record<string, Cell>>;
}

/** A value that differs from what the row has, and where it stands in the text. */
export interface ValueWritten {
  readonly column: string;
  readonly after: Cell;
  readonly from: number;
  readonly to: number;
}

/** What keeps a document from being a change, and where. */
export interface DocumentFault {
  readonly reason: string;
  readonly at: number;
}

export interface DocumentRead {
  readonly values: readonly ValueWritten[];
  readonly faults: readonly DocumentFault[];
}

/** Whether a change can set a column: of a new row, or of one that exists. */
export function isWritten(column: Column, kind: RowOf["kind"]): boolean {
  if (column.role === "key" || column.reasons?.edit) return false;
  const written = column.written ?? "always";
  return written === "always" || (kind === "insert" && written === "insert");
}

/** A row's values as a document: its key, unless the row is new, and what a change can set. A missing one is left out. */
export function documentOf(columns: readonly Column[], cells: RowOf["cells"], kind: RowOf["kind"]): string {
  const named = columns.filter((column) => isWritten(column, kind) || (column.role === "key" && kind === "update"));
  const lines = named.flatMap(({ name }) => {
    const text = literal(cells[name] ?? NOTHING);
    return text === null ? [] : [`  ${JSON.stringify(name)}: ${text}`];
  });
  return lines.length ? `{\n${lines.join(",\n")}\n}` : "{\n}";
}

function literal(cell: Cell): string | null {
  const node = nodeOf(cell);
  return node && pretty(oneLine(node), "  ");
}

/** Read a document: what differs from the row, and each fault that keeps it from being sent. */
export function readDocument(text: string, row: RowOf): DocumentRead {
  let members: readonly JsonMember[];
  try {
    members = readMembers(text);
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    return { values: [], faults: [{ reason: error.message, at: error.at }] };
  }
  const values: ValueWritten[] = [];
  const faults: DocumentFault[] = [];
  const known = new Map(row.columns.map((column) => [column.name, column]));
  const named = new Set<string>();
  for (const { name, value, from, to } of members) {
    const column = known.get(name);
    const before = row.cells[name] ?? NOTHING;
    const twice = named.has(name) ? "is here twice" : "";
    named.add(name);
    if (!twice && row.kind === "update" && column && holds(before, value)) continue;
    const reason = twice || (column ? refusal(column, value, before, row.kind) : "is no column of these rows");
    if (reason || !column) faults.push({ reason: `${name} ${reason}`, at: from });
    else values.push({ column: name, after: cellFrom(value, column), from, to });
  }
  const end = Math.max(0, text.lastIndexOf("}"));
  for (const column of row.kind === "update" ? row.columns : []) {
    const { name } = column;
    const here = nodeOf(row.cells[name] ?? NOTHING) !== null && isWritten(column, "update");
    if (here && !named.has(name)) faults.push({ reason: `${name} is left out, and a change cannot remove a value; null stores a null`, at: end });
  }
  return { values, faults };
}

function refusal(column: Column, value: JsonNode, before: Cell, kind: RowOf["kind"]): string {
  if (column.role === "key") return kind === "insert" ? "is the id, which stands above" : "is the key of the row, which cannot be changed";
  if (!isWritten(column, kind)) return `cannot be changed: ${column.reasons?.edit ?? "the server writes it"}`;
  if (tagOf(before).startsWith("cut-")) return "cannot be changed here: only its beginning could be read";
  return misfit(value, column, before);
}

/** Whether a cell has just this value; spaces, and how a text is escaped, make no difference. */
function holds(cell: Cell, value: JsonNode): boolean {
  const node = nodeOf(cell);
  return node !== null && oneLine(node) === oneLine(value);
}
