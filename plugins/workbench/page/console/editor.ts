/** The text editor of the console. This module and CodeMirror are loaded when a console is first opened. */

import { autocompletion, closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, bracketMatching, codeFolding, foldGutter, foldKeymap, foldService, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, type Text } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { completing } from "./completion.ts";
import { language } from "./language.ts";

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: tags.atom, color: "var(--code-atom)" },
  { tag: tags.propertyName, color: "var(--code-name)" },
  { tag: tags.url, color: "var(--text)" },
  { tag: tags.comment, color: "var(--muted)" },
]);

const look = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "13px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--muted)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--selected)",
  },
  ".cm-foldPlaceholder": { backgroundColor: "var(--panel)", color: "var(--muted)", borderColor: "var(--line)" },
  ".cm-panels, .cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
});

export interface Commands {
  run(): void;
  runAll(): void;
  changed(text: string): void;
}

/** Whose console it is; `completes` if its driver suggests how to continue a text. */
export interface Console {
  readonly connection: string;
  readonly completes: boolean;
}

/**
 * Put an editor into `host`. It lives in a shadow root: there CodeMirror adopts style sheets, which the page's policy
 * allows, while style elements in the document would be refused.
 */
export function openEditor(host: HTMLElement, text: string, about: Console, commands: Commands): EditorView {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const command = (run: () => void) => () => (run(), true);
  const view = new EditorView({
    root,
    parent: root as unknown as Element,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        codeFolding(),
        foldGutter(),
        foldService.of((state, start) => foldable(state.doc, start)),
        history(),
        drawSelection(),
        bracketMatching(),
        closeBrackets(),
        highlightActiveLine(),
        highlightActiveLineGutter(),
        highlightSelectionMatches(),
        about.completes ? autocompletion({ override: [completing(about.connection)], icons: false }) : [],
        StreamLanguage.define(language),
        syntaxHighlighting(colours),
        look,
        EditorView.contentAttributes.of({ "aria-label": `Console of ${about.connection}` }),
        EditorView.domEventHandlers({ beforeinput: typeOverSelection }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) commands.changed(update.state.doc.toString());
        }),
        keymap.of([
          { key: "Mod-Enter", run: command(commands.run) },
          { key: "Mod-Shift-Enter", run: command(commands.runAll) },
          ...closeBracketsKeymap,
          ...defaultKeymap,
          ...searchKeymap,
          ...historyKeymap,
          ...foldKeymap,
          indentWithTab, // Escape, then Tab leaves the editor, as CodeMirror's own pages say
        ]),
      ],
    }),
  });
  return view;
}

/**
 * Put typed text in place of a selection. Chromium's own editing keeps the style of what it replaces by style
 * attributes, which the page's policy reports and refuses.
 */
function typeOverSelection(event: InputEvent, view: EditorView): boolean {
  const { state, composing } = view;
  const { from, to, empty } = state.selection.main;
  if (empty || composing || event.inputType !== "insertText" || !event.data || state.selection.ranges.length > 1) return false;
  const text = event.data;
  const insert = () => state.update(state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
  const handlers = state.facet(EditorView.inputHandler);
  if (!handlers.some((handle) => handle(view, from, to, text, insert))) view.dispatch(insert());
  return true;
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
