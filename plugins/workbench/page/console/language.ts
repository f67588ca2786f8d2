/** Colours of a console text: request lines, JSON, GraphQL, comments and variables. */

interface Stream {
  sol(): boolean;
  eatSpace(): boolean;
  match(pattern: RegExp): unknown;
  next(): string | void;
  skipToEnd(): void;
}

interface State {
  /** Inside a text in triple quotes. */
  long: boolean;
}

export const language = {
  name: "console",
  startState: (): State => ({ long: false }),
  token(stream: Stream, state: State): string | null {
    if (state.long) return longText(stream, state);
    if (stream.sol() && stream.match(/(GET|POST|PUT|DELETE|HEAD|PATCH|OPTIONS)(?=\s)/i)) return "keyword";
    if (stream.eatSpace()) return null;
    if (stream.match(/(#|\/\/).*/)) return "comment";
    if (stream.match(/"""/)) {
      state.long = true;
      return longText(stream, state);
    }
    if (stream.match(/"(?:[^"\\]|\\.)*"(?=\s*:)/)) return "propertyName";
    if (stream.match(/"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/\$\{[^}]*\}/)) return "atom";
    if (stream.match(/(true|false|null)\b/)) return "atom";
    if (stream.match(/-?\d+(\.\d+)?([eE][+-]?\d+)?\b/)) return "number";
    if (stream.match(/(query|mutation|fragment|on)\b/)) return "keyword";
    if (stream.match(/[A-Za-z_][\w]*(?=\s*[:(])/)) return "propertyName";
    if (stream.match(/\/[^\s]*/)) return "url";
    if (!stream.match(/[\w.-]+/)) stream.next();
    return null;
  },
};

function longText(stream: Stream, state: State): string {
  if (stream.match(/.*?"""/)) state.long = false;
  else stream.skipToEnd();
  return "string";
}
