/** Completion in the console's editor: the driver suggests, the editor shows. */

import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import type { EditorView } from "@codemirror/view";
import type { Suggestion, SuggestionKind } from "../messages.ts";
import { call } from "../wire/client.ts";
import { points, units } from "./places.ts";

const LONGEST = 500_000;
const KINDS: Record<SuggestionKind, string> = {
  method: "keyword",
  path: "text",
  object: "class",
  field: "property",
  keyword: "keyword",
};

/** A source of suggestions for the console of a connection. */
export function completing(connection: string) {
  return async (context: CompletionContext): Promise<CompletionResult | null> => {
    const text = context.state.doc.toString();
    const before = text.slice(0, context.pos);
    if (text.length > LONGEST || (!context.explicit && !/[\w/"._{(-]$/.test(before))) return null;
    const stop = new AbortController();
    context.addEventListener("abort", () => stop.abort(), { onDocChange: true });
    try {
      const asked = { connection, text, position: points(before) };
      const { suggestions } = await call("console/complete", asked, stop.signal);
      return result(text, context.pos, suggestions);
    } catch {
      return null; // a list that does not open interrupts less than an error at each key
    }
  };
}

function result(text: string, position: number, suggestions: readonly Suggestion[]): CompletionResult | null {
  if (!suggestions.length) return null;
  const from = units(text, suggestions[0].start);
  return {
    from,
    filter: false, // the driver knows what fits, and in which order
    options: suggestions.map((one): Completion => ({
      label: one.text,
      detail: one.detail || undefined,
      type: KINDS[one.kind],
      apply: replacing(one.text, units(text, one.start) - from, units(text, one.end) - position),
    })),
  };
}

/** Put a text in place of what the driver named: as far from the editor's own ends as those were when it was asked. */
function replacing(text: string, before: number, behind: number) {
  return (view: EditorView, _: Completion, start: number, end: number): void => {
    const [from, to] = [start + before, Math.min(end + behind, view.state.doc.length)];
    view.dispatch({
      changes: { from, to, insert: text },
      selection: { anchor: from + text.length },
      userEvent: "input.complete",
      scrollIntoView: true,
    });
  };
}
