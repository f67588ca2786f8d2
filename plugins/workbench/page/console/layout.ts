/**
 * Lays the requests of a console text out over lines. Only the blanks between the signs of a text change, never the
 * signs: digits, duplicate names, comments and variables stay as they are written, and so does what is sent.
 */

/** A part of a text that is replaced, in units of UTF-16. */
export interface Change {
  readonly from: number;
  readonly to: number;
  readonly insert: string;
}

/** Why a request cannot be laid out, and where. */
export class LayoutFault extends Error {
  readonly at: number;

  constructor(reason: string, at: number) {
    super(reason);
    this.at = at;
  }
}

type Kind = "open" | "close" | "sign" | "word" | "rest-of-line" | "block";

interface Token {
  readonly kind: Kind;
  readonly text: string;
  readonly from: number;
  readonly to: number;
}

/** One request: where it begins, its method and path if it has any, and the signs of its bodies. */
interface Request {
  readonly from: number;
  readonly path: string | null;
  /** JSON values, or one operation of GraphQL. */
  readonly graphql: boolean;
  /** The end of its method and path, or where the body begins. */
  readonly head: number;
  readonly tokens: readonly Token[];
}

const HEAD = /[ \t]*(?:GET|POST|PUT|DELETE|HEAD|PATCH|OPTIONS)(?:[ \t]+((?![#{]|\/\/\s)\S+))?(?=\s|$)/iy;
const GAP = /\s*/y;
const WORD = String.raw`(?:\$\{[^}\n]*\}|(?!\/[/*])[^\s"{}\[\](),:#$]|\$)+`;
const QUOTED = String.raw`"(?:[^"\\\n]|\\[^\n])*"`;
const JSON_TOKEN = new RegExp(String.raw`("""[^]*?"""|${QUOTED})|([{[])|([}\]])|([,:])|((?:#|\/\/)[^\n]*)|(\/\*[^]*?\*\/)|(${WORD}|[()])`, "y");
const GRAPHQL_TOKEN = new RegExp(String.raw`("""(?:\\"""|[^])*?"""|${QUOTED})|([{[(])|([}\])])|([,:])|(#[^\n]*)|(?!)()|(${WORD}|\/)`, "y");
const KINDS: readonly Kind[] = ["word", "open", "close", "sign", "rest-of-line", "block", "word"];
const PAIRS: Readonly<Record<string, string>> = { "{": "}", "[": "]", "(": ")" };
const GRAPHQL = /\{(?:\s|#[^\n]*\n)*(?![\s#"}$]|\/[/*])|(?:query|fragment)\b/y;
const COMMENTS = /(?:\s|(?:#|\/\/)[^\n]*(?:\n|$))*/y;
const DEEPEST = 1_000; // brackets in brackets: a line is indented by as many steps
const MANY_ROWS = /(?:^|\/)(?:_bulk|_msearch)\/?(?:\?|$)/;

function at(pattern: RegExp, text: string, place: number): RegExpExecArray | null {
  pattern.lastIndex = place;
  return pattern.exec(text);
}

function afterBlanks(text: string, place: number): number {
  return place + (at(GAP, text, place)?.[0].length ?? 0);
}

function beginsLine(text: string, place: number): boolean {
  let before = place - 1; // only blanks are looked at: a line may be as long as the text
  while (before >= 0 && text[before] !== "\n" && /\s/.test(text[before])) before -= 1;
  return before < 0 || text[before] === "\n";
}

function tokenAt(text: string, place: number, graphql: boolean): Token {
  const match = at(graphql ? GRAPHQL_TOKEN : JSON_TOKEN, text, place);
  if (!match) throw new LayoutFault(text[place] === '"' ? "this text is not closed" : "this cannot be read", place);
  const group = match.findIndex((part, number) => number > 0 && part !== undefined);
  return { kind: KINDS[group - 1], text: match[0], from: place, to: place + match[0].length };
}

/** The requests of a text, in order; what is no request that can be laid out is left out. */
export function* requestsOf(text: string): Generator<Request> {
  let place = 0;
  for (;;) {
    place = afterBlanks(text, place);
    if (place >= text.length) return;
    const rest = beginsLine(text, place) ? at(HEAD, text, place) : null;
    const graphql = !rest && !!at(GRAPHQL, text, place);
    if (!rest && !graphql && !/[{[#/]/.test(text[place])) {
      const line = text.indexOf("\n", place);
      place = line < 0 ? text.length : line; // a language of its own
      continue;
    }
    if (!rest && !graphql && /^(?:#|\/\/)/.test(text.slice(place, place + 2))) {
      place = tokenAt(text, place, false).to;
      continue;
    }
    const head = place + (rest?.[0].length ?? 0);
    const tokens = bodyOf(text, head, graphql);
    yield { from: place, path: rest ? (rest[1] ?? "") : null, graphql, head, tokens };
    place = Math.max(head, tokens.at(-1)?.to ?? 0, place + 1);
  }
}

/** The signs of one request's bodies, up to the next request. */
function bodyOf(text: string, begin: number, graphql: boolean): Token[] {
  const tokens: Token[] = [];
  const open: Token[] = [];
  let [place, values, last] = [begin, 0, 0];
  for (;;) {
    place = afterBlanks(text, place);
    const ends = place >= text.length || (!(graphql && open.length) && beginsLine(text, place) && place > begin && !!at(HEAD, text, place));
    if (ends && open.length) throw new LayoutFault(`this ${open.at(-1)!.text} is not closed`, open.at(-1)!.from);
    if (ends) break;
    if (!open.length && values && graphql) {
      if (!at(/fragment\b/y, text, place)) break;
      values = 0; // it belongs to the operation before it
    }
    if (!open.length && !graphql && at(GRAPHQL, text, place)) break;
    const token = tokenAt(text, place, graphql);
    if (!open.length && !graphql && token.kind === "word") break;
    tokens.push(token);
    place = token.to;
    if (token.kind === "open" && open.push(token) > DEEPEST) throw new LayoutFault("this is nested too deeply", token.from);
    if (token.kind === "close") {
      const opener = open.pop();
      if (!opener || PAIRS[opener.text] !== token.text) throw new LayoutFault(`this ${token.text} closes nothing`, token.from);
      if (!open.length && token.text !== ")") values += 1;
    }
    if (!open.length && token.kind !== "rest-of-line" && token.kind !== "block") last = tokens.length;
  }
  return tokens.slice(0, last); // comments after a body belong to what follows
}

/** What lays out the request at a place of a text: no changes if it is laid out. Raises LayoutFault. */
export function layOut(text: string, place: number): readonly Change[] {
  const line = text.indexOf("\n", place);
  const end = line < 0 ? text.length : line;
  let request: Request | null = null;
  for (const next of requestsOf(text)) {
    if (next.from > end) break;
    request = next;
  }
  const foreign = request?.graphql && outsideParens(request.tokens).some(({ kind, text: word }) => kind === "word" && word.includes("="));
  if (!request?.tokens.length || foreign) throw new LayoutFault("there is no JSON and no GraphQL here to lay out", place);
  const { tokens, graphql, path, head } = request;
  const several = MANY_ROWS.test(path ?? "") || valuesOf(tokens) > 1;
  const gaps = graphql ? graphqlGaps(text, tokens) : several ? lineGaps(text, tokens) : jsonGaps(text, tokens);
  const all: Change[] = tokens.slice(1).map((token, number) => ({ from: tokens[number].to, to: token.from, insert: gaps[number] }));
  if (path !== null) all.unshift({ from: head, to: tokens[0].from, insert: brokenAt(text, head, tokens[0].from) ? "\n" : " " });
  return all.filter(({ from, to, insert }) => text.slice(from, to) !== insert);
}

/**
 * What the first request of a text says, to compare two of them: its signs without the blanks between them, and what
 * follows it up to the next request, but for comments. Null if it is of no language that is known here.
 */
export function signsOf(text: string): string | null {
  try {
    const { value: first } = requestsOf(text).next() as IteratorResult<Request, undefined>;
    if (!first || first.from !== at(COMMENTS, text, 0)?.[0].length) return null;
    const { tokens, head } = first;
    const end = tokens.at(-1)?.to ?? head;
    const following = end + (at(COMMENTS, text, end)?.[0].length ?? 0);
    const next = beginsLine(text, following) && (at(HEAD, text, following) || at(GRAPHQL, text, following));
    return [text.slice(first.from, head), ...tokens.map((token) => token.text), next ? "" : text.slice(following).trim()].join("\n");
  } catch {
    return null;
  }
}

function valuesOf(tokens: readonly Token[]): number {
  let [depth, values] = [0, 0];
  for (const { kind } of tokens) {
    if (kind === "open" && !depth++) values += 1;
    else if (kind === "close") depth -= 1;
  }
  return values;
}

function outsideParens(tokens: readonly Token[]): Token[] {
  let depth = 0;
  return tokens.filter(({ text }) => {
    const outside = depth <= 0;
    depth += text === "(" ? 1 : text === ")" ? -1 : 0;
    return outside;
  });
}

function brokenAt(text: string, from: number, to: number): boolean {
  return text.slice(from, to).includes("\n");
}

function isComment({ kind }: Token): boolean {
  return kind === "rest-of-line" || kind === "block";
}

const LONGEST_LINE = 90;

/** Whether the brackets that open at a token stay in one line: nothing is in them, or a short array of plain values. */
function inOneLine(tokens: readonly Token[], number: number): boolean {
  let length = 0;
  for (let next = number + 1; next < tokens.length; next += 1) {
    const { kind, text } = tokens[next];
    if (kind === "close") return next === number + 1 || (tokens[number].text === "[" && length < LONGEST_LINE);
    if (kind === "open" || isComment(tokens[next]) || text.includes("\n")) return false;
    length += text.length + 1;
  }
  return false;
}

/** What stands around a comment; null if neither sign is one. */
function aroundComment(text: string, before: Token, after: Token, fresh: string): string | null {
  if (before.kind === "rest-of-line") return fresh;
  if (!isComment(before) && !isComment(after)) return null;
  return brokenAt(text, before.to, after.from) ? fresh : " ";
}

/** Two words that touch belong together, such as a variable and what follows it. */
function between(text: string, before: Token, after: Token): string {
  return before.to === after.from ? "" : brokenAt(text, before.to, after.from) ? "\n" : " ";
}

function jsonGaps(text: string, tokens: readonly Token[]): string[] {
  const open: boolean[] = [];
  return tokens.slice(1).map((after, number) => {
    const before = tokens[number];
    if (before.kind === "open") open.push(inOneLine(tokens, number));
    const flat = open.at(-1) ?? false;
    if (after.kind === "close") open.pop();
    const fresh = `\n${"  ".repeat(open.length)}`;
    const comment = aroundComment(text, before, after, fresh);
    if (comment !== null) return comment;
    if (before.kind === "open" || after.kind === "close") return flat ? "" : fresh;
    if (after.kind === "sign") return "";
    if (before.text === ":") return " ";
    if (before.text === ",") return flat ? " " : fresh;
    return after.kind === "open" && !open.length ? "\n" : between(text, before, after);
  });
}

/** Each value in a line of its own, as endpoints for many rows take them; one with a comment to the end of a line stays. */
function lineGaps(text: string, tokens: readonly Token[]): string[] {
  const stays: boolean[] = [];
  let [depth, begin] = [0, 0];
  tokens.forEach((token, number) => {
    if (!depth) begin = number;
    depth += token.kind === "open" ? 1 : token.kind === "close" ? -1 : 0;
    if (depth) return;
    const value = tokens.slice(begin, number + 1);
    const whole = value.some((part) => part.kind === "rest-of-line" || part.text.includes("\n"));
    for (const _ of value) stays.push(whole);
  });
  depth = 0;
  return tokens.slice(1).map((after, number) => {
    const before = tokens[number];
    depth += before.kind === "open" ? 1 : before.kind === "close" ? -1 : 0;
    if (!depth) return aroundComment(text, before, after, "\n") ?? "\n";
    if (stays[number]) return text.slice(before.to, after.from);
    const comment = aroundComment(text, before, after, " ");
    if (comment !== null) return comment;
    if (before.kind === "open" || after.kind === "close" || after.kind === "sign") return "";
    return before.kind === "sign" ? " " : between(text, before, after);
  });
}

function graphqlGaps(text: string, tokens: readonly Token[]): string[] {
  const open: string[] = [];
  return tokens.slice(1).map((after, number) => {
    const before = tokens[number];
    if (before.kind === "open") open.push(before.text);
    const inside = open.some((opener) => opener !== "{");
    if (after.kind === "close") open.pop();
    const fresh = `\n${"  ".repeat(open.filter((opener) => opener === "{").length)}`;
    const comment = aroundComment(text, before, after, fresh);
    if (comment !== null) return comment;
    if (before.kind === "open" || after.kind === "close") {
      return inside || (before.kind === "open" && after.kind === "close") ? "" : fresh;
    }
    if (after.kind === "sign" || after.text === "(") return "";
    if (before.text === ":") return " ";
    if (inside) return before.text === "," ? " " : between(text, before, after).replace("\n", " ");
    if (after.text === "{" || after.text.startsWith("@")) return " ";
    if (before.text === "," || before.text === "}") return fresh;
    if (before.text.endsWith("...")) return before.to === after.from ? "" : " ";
    const spreads = before.text === "...on" || (before.text === "on" && tokens[number - 1]?.text === "...");
    return spreads || !open.length ? " " : fresh;
  });
}
