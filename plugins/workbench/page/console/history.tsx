/** What was run on a connection: words narrow the list, and the chosen text is shown whole before it is taken. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { HistoryEntry } from "../messages.ts";
import { Button, ErrorBox, Waiting } from "../ui/controls.tsx";
import { moment } from "../ui/figures.ts";
import { Dialog } from "../ui/dialog.tsx";
import { beginning } from "../wire/previews.ts";
import { call } from "../wire/client.ts";
import { fitting, headline } from "./past_texts.ts";

const MOST_SHOWN = 200;
const LONGEST_SHOWN = 20_000;

export function History({ connection, take, close }: { connection: string; take: (text: string) => void; close: () => void }) {
  const [entries, setEntries] = useState<readonly HistoryEntry[] | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    field.current?.focus();
    call("console/history", { connection }).then((answer) => setEntries(answer.entries), setFailed);
  }, []);
  const all = entries ? fitting(entries, words) : [];
  const shown = all.slice(0, MOST_SHOWN);
  const at = Math.min(chosen, shown.length - 1);
  const entry = shown[at];
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [at, shown.length]);
  const key = (event: KeyboardEvent) => {
    if (event.isComposing || !shown.length) return;
    const last = shown.length - 1;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: Math.min(at + 8, last), PageUp: Math.max(at - 8, 0) }[event.key];
    if (event.key === "Enter") take(entry.text);
    else if (to !== undefined) setChosen((to + shown.length) % shown.length);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="History" wide onClose={close}>
      <input
        role="combobox"
        class="history-field"
        aria-label="Search what was run"
        aria-expanded="true"
        aria-controls="history"
        aria-activedescendant={entry ? `history-${at}` : undefined}
        placeholder="Words of a request"
        autocomplete="off"
        spellcheck={false}
        ref={field}
        value={words}
        onInput={(event) => {
          setWords(event.currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={key}
      />
      {failed !== null && <ErrorBox error={failed} />}
      {!entries && failed === null && <Waiting what="Reading …" />}
      <div class="history">
        <div id="history" class="history-list" role="listbox" aria-label="What was run" ref={list}>
          {shown.map(({ text, at: when }, number) => (
            <div
              key={number}
              id={`history-${number}`}
              class="suggestion"
              role="option"
              aria-selected={number === at}
              onClick={() => setChosen(number)}
              onDblClick={() => take(text)}
            >
              <code class="grow">{headline(text)}</code>
              <span class="muted">{moment(when)}</span>
            </div>
          ))}
        </div>
        {entry && (
          <section class="history-text" aria-label="The text that is chosen">
            <pre tabIndex={0}>{beginning(entry.text, LONGEST_SHOWN)}</pre>
          </section>
        )}
      </div>
      {entries && !shown.length && <p class="muted" role="status">{entries.length ? "Nothing fits." : "Nothing has been run yet."}</p>}
      <p class="history-foot">
        <span class="muted" role="status">
          {all.length > MOST_SHOWN ? `The newest ${MOST_SHOWN} of ${all.length.toLocaleString("en")} that fit. ` : ""}
          Enter puts the text in place of the editor’s; Ctrl+Z there brings that back.
        </span>
        <Button label="Use this text" tone="primary" disabled={!entry} onClick={() => entry && take(entry.text)} />
      </p>
    </Dialog>
  );
}
