/** JSON read for people: digits, duplicate names and order stay as written. */

export type JsonNode =
  | { readonly kind: "object"; readonly members: readonly (readonly [string, JsonNode])[] }
  | { readonly kind: "array"; readonly items: readonly JsonNode[] }
  | { readonly kind: "string" | "number" | "word"; readonly text: string };

/** Why a text is no JSON, and where it stops being so, in units of UTF-16. */
export class JsonFault extends SyntaxError {
  readonly at: number;

  constructor(reason: string, at: number) {
    super(reason);
    this.at = at;
  }
}

/** A member of an object, and where it stands in the text. */
export interface JsonMember {
  readonly name: string;
  readonly value: JsonNode;
  readonly from: number;
  readonly to: number;
}

interface Token {
  readonly kind: "sign" | "string" | "number" | "word";
  readonly text: string;
  readonly from: number;
  readonly to: number;
}

const TOKEN = /\s*(?:([{}[\],:])|("(?:[^"\\]|\\.)*")|(-?[0-9][0-9.eE+-]*)|(true|false|null))/y;
const KINDS = ["sign", "string", "number", "word"] as const;
const NUMBER = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/;
const DEEPEST = 200;

class Reader {
  readonly #text: string;
  #next: Token | null = null;
  /** The end of the last token that was taken. */
  #end = 0;

  constructor(text: string) {
    this.#text = text;
    this.#look();
  }

  #look(): void {
    TOKEN.lastIndex = this.#end;
    const match = TOKEN.exec(this.#text);
    const group = match ? match.findIndex((part, at) => at > 0 && part !== undefined) : 0;
    const to = TOKEN.lastIndex;
    this.#next = match && { kind: KINDS[group - 1], text: match[group], from: to - match[group].length, to };
  }

  #step(): Token | null {
    const token = this.#next;
    if (!token) return null;
    this.#end = token.to;
    this.#look();
    return token;
  }

  /** The beginning of what comes next. */
  get #at(): number {
    const rest = /\S/.exec(this.#text.slice(this.#end));
    return this.#next?.from ?? (rest ? this.#end + rest.index : this.#text.length);
  }

  #fault(reason: string, at = this.#at): JsonFault {
    return new JsonFault(at < this.#text.length ? reason : "the text ends too early", at);
  }

  whole(): JsonNode {
    const node = this.#value(0);
    this.#finish();
    return node;
  }

  members(): JsonMember[] {
    if (this.#next?.text !== "{") throw this.#fault("a document begins with {");
    this.#step();
    const members = this.#list("}", () => {
      const from = this.#at;
      const [name, value] = this.#member(0);
      return { name, value, from, to: this.#end };
    });
    this.#finish();
    return members;
  }

  #finish(): void {
    if (this.#at < this.#text.length) throw this.#fault("there is a text after the end");
  }

  #value(depth: number): JsonNode {
    const at = this.#at;
    const token = this.#step();
    if (!token) throw this.#fault("this is no value", at);
    if (depth > DEEPEST) throw this.#fault(`it is deeper than ${DEEPEST} values`, at);
    const { kind, text } = token;
    if (kind === "string") return { kind, text: this.#string(token) };
    if (kind === "word") return { kind, text };
    if (kind === "number") {
      if (!NUMBER.test(text)) throw this.#fault(`${text} is no number`, at);
      return { kind, text };
    }
    if (text === "{") return { kind: "object", members: this.#list("}", () => this.#member(depth)) };
    if (text === "[") return { kind: "array", items: this.#list("]", () => this.#value(depth + 1)) };
    throw this.#fault(`a value is missing before ${text}`, at);
  }

  #member(depth: number): readonly [string, JsonNode] {
    const at = this.#at;
    const name = this.#step();
    if (name?.kind !== "string") throw this.#fault(name?.text === "}" ? "there is a comma too many before }" : "a name in quotes is missing", at);
    if (this.#next?.text !== ":") throw this.#fault("a colon is missing");
    this.#step();
    return [this.#string(name), this.#value(depth + 1)];
  }

  #string({ text, from }: Token): string {
    try {
      return JSON.parse(text) as string;
    } catch {
      throw new JsonFault("this text is not closed, or has a sign that JSON writes with \\", from);
    }
  }

  #list<T>(end: string, read: () => T): T[] {
    const list: T[] = [];
    if (this.#next?.text === end) {
      this.#step();
      return list;
    }
    for (;;) {
      list.push(read());
      const at = this.#at;
      const sign = this.#step()?.text;
      if (sign === end) return list;
      if (sign !== ",") throw this.#fault("a comma is missing before this", at);
    }
  }
}

/** The line of a place in a text, from 1. */
export function lineAt(text: string, at: number): number {
  return text.slice(0, at).split("\n").length;
}

/** Read a JSON text; raises JsonFault. */
export function readJson(text: string): JsonNode {
  return new Reader(text).whole();
}

/** Read the text of a JSON object; raises JsonFault. */
export function readMembers(text: string): JsonMember[] {
  return new Reader(text).members();
}

/** A JSON value in one line, every digit kept. */
export function oneLine(node: JsonNode): string {
  if (node.kind === "object") {
    return `{${node.members.map(([name, value]) => `${JSON.stringify(name)}:${oneLine(value)}`).join(",")}}`;
  }
  if (node.kind === "array") return `[${node.items.map(oneLine).join(",")}]`;
  return node.kind === "string" ? JSON.stringify(node.text) : node.text;
}

/**
 * Lay a JSON text out over lines, every digit kept; a text that is no JSON stays as it is. `indent` stands before all
 * lines but the first.
 */
export function pretty(text: string, indent = ""): string {
  try {
    return written(readJson(text), indent);
  } catch {
    return text;
  }
}

function written(node: JsonNode, indent: string): string {
  const deeper = `${indent}  `;
  if (node.kind === "object") {
    const lines = node.members.map(([name, value]) => `${deeper}${JSON.stringify(name)}: ${written(value, deeper)}`);
    return lines.length ? `{\n${lines.join(",\n")}\n${indent}}` : "{}";
  }
  if (node.kind === "array") {
    const flat = node.items.every((item) => item.kind !== "object" && item.kind !== "array");
    const items = node.items.map((item) => written(item, deeper));
    if (flat && items.join(", ").length < 90) return `[${items.join(", ")}]`;
    return `[\n${items.map((item) => deeper + item).join(",\n")}\n${indent}]`;
  }
  return node.kind === "string" ? JSON.stringify(node.text) : node.text;
}
