/** JSON read for people: digits, duplicate names and order stay as written. */

export type JsonNode =
  | { readonly kind: "object"; readonly members: readonly (readonly [string, JsonNode])[] }
  | { readonly kind: "array"; readonly items: readonly JsonNode[] }
  | { readonly kind: "string" | "number" | "word"; readonly text: string };

const TOKEN = /\s*(?:([{}[\],:])|("(?:[^"\\]|\\.)*")|(-?[0-9][0-9.eE+-]*)|(true|false|null))/y;
const DEEPEST = 200;

class Reader {
  readonly #text: string;
  #at = 0;
  #next: RegExpExecArray | null = null;

  constructor(text: string) {
    this.#text = text;
    this.#step();
  }

  #step(): RegExpExecArray | null {
    const taken = this.#next;
    TOKEN.lastIndex = this.#at;
    this.#next = TOKEN.exec(this.#text);
    if (this.#next) this.#at = TOKEN.lastIndex;
    return taken;
  }

  whole(): JsonNode {
    const node = this.#value(0);
    if (this.#next || this.#text.slice(this.#at).trim()) throw new SyntaxError("text after the end");
    return node;
  }

  #value(depth: number): JsonNode {
    const token = this.#step();
    if (!token || depth > DEEPEST) throw new SyntaxError("no value");
    const [, sign, string, number, word] = token;
    if (string) return { kind: "string", text: JSON.parse(string) as string };
    if (number) return { kind: "number", text: number };
    if (word) return { kind: "word", text: word };
    if (sign === "{") return { kind: "object", members: this.#list("}", () => this.#member(depth)) };
    if (sign === "[") return { kind: "array", items: this.#list("]", () => this.#value(depth + 1)) };
    throw new SyntaxError(`unexpected ${sign}`);
  }

  #member(depth: number): readonly [string, JsonNode] {
    const name = this.#step();
    if (!name?.[2] || this.#step()?.[1] !== ":") throw new SyntaxError("no name");
    return [JSON.parse(name[2]) as string, this.#value(depth + 1)];
  }

  #list<T>(end: string, read: () => T): T[] {
    const found: T[] = [];
    if (this.#next?.[1] === end) {
      this.#step();
      return found;
    }
    for (;;) {
      found.push(read());
      const sign = this.#step()?.[1];
      if (sign === end) return found;
      if (sign !== ",") throw new SyntaxError("no comma");
    }
  }
}

/** Read a JSON text; raises SyntaxError. */
export function readJson(text: string): JsonNode {
  return new Reader(text).whole();
}

/** Lay a JSON text out over lines, every digit kept; a text that is no JSON stays as it is. */
export function pretty(text: string): string {
  try {
    return written(readJson(text), "");
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
