/** What every text editor of the page has. This module and CodeMirror are loaded when an editor is first opened. */

import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, bracketMatching, codeFolding, foldGutter, foldKeymap, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, type KeyBinding, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: [tags.atom, tags.bool, tags.null], color: "var(--code-atom)" },
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

export interface CodeOptions {
  /** The name that readers hear. */
  readonly label: string;
  readonly changed: (text: string) => void;
  /** Keys that go before the usual ones, and those that come after them. */
  readonly keys: readonly KeyBinding[];
  readonly lastKeys?: readonly KeyBinding[];
  readonly extensions: Extension;
}

/**
 * Put an editor into `host`. It lives in a shadow root: there CodeMirror adopts style sheets, which the page's policy
 * allows, while style elements in the document would be refused.
 */
export function openCode(host: HTMLElement, text: string, options: CodeOptions): EditorView {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  return new EditorView({
    root,
    parent: root as unknown as Element,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        codeFolding(),
        foldGutter(),
        history(),
        drawSelection(),
        bracketMatching(),
        closeBrackets(),
        highlightActiveLine(),
        highlightActiveLineGutter(),
        highlightSelectionMatches(),
        syntaxHighlighting(colours),
        look,
        EditorView.contentAttributes.of({ "aria-label": options.label, tabindex: "0" }),
        EditorView.domEventHandlers({ beforeinput: typeOverSelection }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) options.changed(update.state.doc.toString());
        }),
        options.extensions,
        keymap.of([
          ...options.keys,
          ...closeBracketsKeymap,
          ...defaultKeymap,
          ...searchKeymap,
          ...historyKeymap,
          ...foldKeymap,
          ...(options.lastKeys ?? []),
        ]),
      ],
    }),
  });
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
