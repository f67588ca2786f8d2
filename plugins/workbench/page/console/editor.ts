/** The text editor of the console. */

import { autocompletion } from "@codemirror/autocomplete";
import { indentWithTab } from "@codemirror/commands";
import { StreamLanguage, foldService } from "@codemirror/language";
import type { Text } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { openCode } from "../ui/code_editor.ts";
import { completing } from "./completion.ts";
import { language } from "./language.ts";
import { LayoutFault, layOut } from "./layout.ts";
import { type SentRequest, editedLines, restoreSent, sentMarks, sentRequests } from "./sent.ts";

export { beginSending, markSent } from "./sent.ts";

export interface Commands {
  run(): void;
  runAll(): void;
  layOut(): void;
  history(): void;
  changed(text: string): void;
  /** The text has changed, or the cursor has moved. */
  moved(): void;
  /** The requests that were sent, and the lines of those that were edited since. */
  sent(requests: readonly SentRequest[], edited: readonly number[]): void;
}

/** Whose console it is; `completes` if its driver suggests how to continue a text. */
export interface Console {
  readonly connection: string;
  readonly completes: boolean;
}

/** Put the editor of a console into `host`; `sent` are requests of the text that have answers. */
export function openEditor(host: HTMLElement, text: string, sent: readonly SentRequest[], about: Console, commands: Commands): EditorView {
  const command = (run: () => void) => () => (run(), true);
  const view = openCode(host, text, {
    label: `Console of ${about.connection}`,
    changed: commands.changed,
    keys: [
      { key: "Mod-Enter", run: command(commands.run) },
      { key: "Mod-Shift-Enter", run: command(commands.runAll) },
      { key: "Mod-i", run: command(commands.layOut), preventDefault: true },
      { key: "Mod-h", run: command(commands.history), preventDefault: true },
    ],
    lastKeys: [indentWithTab], // Escape, then Tab leaves the editor, as CodeMirror's own pages say
    extensions: [
      foldService.of((state, start) => foldable(state.doc, start)),
      about.completes ? autocompletion({ override: [completing(about.connection)], icons: false }) : [],
      StreamLanguage.define(language),
      sentMarks,
      EditorView.updateListener.of(({ state, transactions }) => {
        if (transactions.length) commands.sent(sentRequests(state), editedLines(state));
        if (transactions.some(({ docChanged, selection }) => docChanged || selection)) commands.moved();
      }),
    ],
  });
  restoreSent(view, sent);
  return view;
}

/** Lay out the request of the cursor; returns why it cannot be done, or an empty text. */
export function layOutHere(view: EditorView): string {
  const { state } = view;
  try {
    const changes = layOut(state.doc.toString(), state.selection.main.head);
    if (changes.length) view.dispatch({ changes: [...changes], userEvent: "format", scrollIntoView: true });
    return "";
  } catch (error) {
    if (!(error instanceof LayoutFault)) throw error;
    return `Line ${state.doc.lineAt(Math.min(error.at, state.doc.length)).number}: ${error.message}. Nothing was changed.`;
  }
}

const MOST_FOLDED = 20_000;

/** The rest of a line that opens a bracket, up to the one that closes it. */
function foldable(doc: Text, start: number): { from: number; to: number } | null {
  const line = doc.lineAt(start);
  const opens = /[{[]\s*$/.exec(line.text);
  if (!opens) return null;
  const from = line.from + opens.index + 1;
  const rest = doc.sliceString(from, from + MOST_FOLDED);
  let depth = 1;
  let quoted = false;
  for (let at = 0; at < rest.length; at += 1) {
    const sign = rest[at];
    if (sign === "\\" && quoted) at += 1;
    else if (sign === '"') quoted = !quoted;
    else if (quoted) continue;
    else if (sign === "{" || sign === "[") depth += 1;
    else if (sign === "}" || sign === "]") depth -= 1;
    if (!depth) return at ? { from, to: from + at } : null;
  }
  return null;
}

/** The line of the cursor, from 1. */
export function lineOf(view: EditorView): number {
  return view.state.doc.lineAt(view.state.selection.main.head).number;
}

export function replaceText(view: EditorView, text: string): void {
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
}
