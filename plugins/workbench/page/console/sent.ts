/** Which requests of the editor's text were sent, where they stand now, and whether they still say the same. */

import { type ChangeSet, type EditorState, type Range, StateEffect, StateField, type Text } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView } from "@codemirror/view";
import { signsOf } from "./layout.ts";

/** A request that was sent, by the line in which it began; places are in units of UTF-16. */
export interface SentRequest {
  readonly line: number;
  readonly text: string;
  readonly from: number;
  readonly to: number;
}

/** The lines of a text that one request takes; `until` is 0 if no other request follows. */
export interface Lines {
  readonly line: number;
  readonly until: number;
}

interface Sent {
  readonly requests: readonly SentRequest[];
  /** The text that was sent last, and what was changed in it since. */
  readonly text: Text | null;
  readonly changes: ChangeSet | null;
}

const sending = StateEffect.define<null>();
const answered = StateEffect.define<readonly Lines[]>();
const restored = StateEffect.define<readonly SentRequest[]>();

const sentField = StateField.define<Sent>({
  create: () => ({ requests: [], text: null, changes: null }),
  update(sent, change) {
    let now = sent;
    if (change.docChanged) {
      now = {
        ...now,
        changes: now.changes && now.changes.compose(change.changes),
        requests: now.requests.map((one) => ({ ...one, ...movedBy(change.changes, one, change.newDoc) })),
      };
    }
    for (const effect of change.effects) {
      if (effect.is(sending)) now = { requests: [], text: change.state.doc, changes: change.state.changes() };
      if (effect.is(restored)) now = { ...now, requests: effect.value };
      if (effect.is(answered)) now = { ...now, requests: placed(now, effect.value, change.newDoc) };
    }
    return now;
  },
  provide: (field) => EditorView.decorations.from(field, (sent) => (view: EditorView) => marked(view.state, sent)),
});

interface Place {
  readonly from: number;
  readonly to: number;
}

/** Where a request stands after changes: from the beginning of its line on, so that a line before it is no part of it. */
function movedBy(changes: ChangeSet, { from, to }: Place, doc: Text): Place {
  return { from: doc.lineAt(changes.mapPos(from, 1)).from, to: changes.mapPos(to, 1) };
}

/** Where the requests of the text that was sent stand now. */
function placed({ text, changes }: Sent, requests: readonly Lines[], doc: Text): SentRequest[] {
  if (!text || !changes) return [];
  return requests.flatMap(({ line, until }) => {
    if (line > text.lines) return [];
    const from = text.line(line).from;
    const to = until ? text.line(Math.min(until, text.lines)).to : text.length;
    return [{ line, text: text.sliceString(from, to), ...movedBy(changes, { from, to }, doc) }];
  });
}

const LONGEST = 50_000;

/** What a request says, without what is after it; all of it if it is long, or of a language that is not known here. */
function meaning(text: string): string {
  return (text.length < LONGEST && signsOf(text)) || text.trim();
}

function isEdited(doc: Text, { text, from, to }: SentRequest): boolean {
  const now = doc.sliceString(from, to);
  return now !== text && meaning(now) !== meaning(text);
}

/** The lines in which requests began, when they were sent, whose text has changed since. */
export function editedLines(state: EditorState): readonly number[] {
  return state.field(sentField).requests.filter((one) => isEdited(state.doc, one)).map(({ line }) => line);
}

export function sentRequests(state: EditorState): readonly SentRequest[] {
  return state.field(sentField).requests;
}

const edited = Decoration.line({ class: "cm-unsent" });

function marked(state: EditorState, { requests }: Sent): DecorationSet {
  const lines = new Map<number, Range<Decoration>>();
  for (const request of requests) {
    if (!isEdited(state.doc, request)) continue;
    const last = state.doc.lineAt(Math.min(request.from + state.doc.sliceString(request.from, request.to).trimEnd().length, state.doc.length));
    for (let { number } = state.doc.lineAt(request.from); number <= last.number; number += 1) {
      const { from } = state.doc.line(number);
      lines.set(from, edited.range(from));
    }
  }
  return Decoration.set([...lines.values()], true);
}

const look = EditorView.theme({ ".cm-line.cm-unsent": { backgroundColor: "var(--edited)", boxShadow: "inset 2px 0 0 var(--warn)" } });

/** Requests that were edited after they were sent have the look of what is not sent yet. */
export const sentMarks = [sentField, look];

/** The whole text is about to be sent. */
export function beginSending(view: EditorView): void {
  view.dispatch({ effects: sending.of(null) });
}

/** These requests of it were sent. */
export function markSent(view: EditorView, requests: readonly Lines[]): void {
  view.dispatch({ effects: answered.of(requests) });
}

export function restoreSent(view: EditorView, requests: readonly SentRequest[]): void {
  const { length } = view.state.doc;
  view.dispatch({ effects: restored.of(requests.filter(({ to }) => to <= length)) });
}
