/** The editor of a JSON text: what differs and what is wrong is marked in its lines. Loaded when it is first opened. */

import { json } from "@codemirror/lang-json";
import { foldEffect, foldable } from "@codemirror/language";
import { type Range, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView } from "@codemirror/view";
import { openCode } from "./code_editor.ts";

/** Places in the text, in units of UTF-16. */
export interface Marks {
  readonly changed: readonly { readonly from: number; readonly to: number }[];
  readonly faults: readonly number[];
}

export interface JsonCommands {
  changed(text: string): void;
  done(): void;
  cancel(): void;
}

const setMarks = StateEffect.define<Marks>();
const changedLine = Decoration.line({ class: "cm-changed" });
const faultyLine = Decoration.line({ class: "cm-faulty" });

const marks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(shown, change) {
    for (const effect of change.effects) if (effect.is(setMarks)) return decorated(change.state.doc, effect.value);
    return shown.map(change.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

const look = EditorView.theme({
  "&": { fontSize: "12px" },
  ".cm-changed": { backgroundColor: "var(--edited)", boxShadow: "inset 2px 0 0 var(--warn)" },
  ".cm-faulty": { backgroundColor: "var(--bad-soft)", boxShadow: "inset 2px 0 0 var(--bad)" },
});

/** Put an editor of a JSON text into `host`. */
export function openJson(host: HTMLElement, text: string, label: string, commands: JsonCommands): EditorView {
  const command = (run: () => void) => () => (run(), true);
  return openCode(host, text, {
    label,
    changed: (now) => commands.changed(now),
    keys: [
      { key: "Mod-Enter", run: command(() => commands.done()) },
      { key: "Escape", run: command(() => commands.cancel()) },
    ],
    extensions: [json(), EditorView.lineWrapping, marks, look],
  });
}

export function mark(view: EditorView, places: Marks): void {
  view.dispatch({ effects: setMarks.of(places) });
}

/** Fold the value that begins in the line of a place. */
export function fold(view: EditorView, at: number): void {
  const line = view.state.doc.lineAt(at);
  const range = foldable(view.state, line.from, line.to);
  if (range) view.dispatch({ effects: foldEffect.of(range) });
}

/** Go to a place. */
export function reach(view: EditorView, at: number): void {
  view.dispatch({ selection: { anchor: Math.min(at, view.state.doc.length) }, scrollIntoView: true });
  view.focus();
}

function decorated(doc: EditorView["state"]["doc"], { changed, faults }: Marks): DecorationSet {
  const lines = new Map<number, Range<Decoration>>();
  for (const { from, to } of changed) {
    for (let at = Math.min(from, doc.length); at <= Math.min(to, doc.length); ) {
      const line = doc.lineAt(at);
      lines.set(line.from, changedLine.range(line.from));
      at = line.to + 1;
    }
  }
  for (const at of faults) {
    const { from } = doc.lineAt(Math.min(at, doc.length));
    lines.set(from, faultyLine.range(from));
  }
  return Decoration.set([...lines.values()], true);
}
