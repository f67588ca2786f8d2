/** The console of a connection: many requests in one text, answers beside it. */

import type { EditorView } from "@codemirror/view";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Executed, OpenConnection, UnsentRequest } from "../messages.ts";
import { recall, remember } from "../state/preferences.ts";
import { changes, remedy } from "../state/store.ts";
import { Button, Blank, ErrorBox, Waiting } from "../ui/controls.tsx";
import { copyText, toast } from "../ui/toasts.tsx";
import { Toolbar } from "../ui/toolbar.tsx";
import { call } from "../wire/client.ts";
import { AnswerCard } from "./answer_card.tsx";
import { History } from "./history.tsx";
import { leaveBehind, leftBehind } from "./left.ts";
import { RequestDocs, under, useRequestDocs } from "./request_docs.tsx";
import { Variables } from "./variables.tsx";

type Editor = typeof import("./editor.ts");

export function ConsoleView({ open }: { open: OpenConnection }) {
  const { connection } = open;
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<{ view: EditorView; module: Editor } | null>(null);
  const stop = useRef<AbortController | null>(null);
  const [ready, setReady] = useState(false);
  const [busy, setBusy] = useState(false);
  const [executed, setExecuted] = useState(leftBehind(connection).executed);
  const [failed, setFailed] = useState<unknown>(null);
  const [stopped, setStopped] = useState(false);
  const [stops, setStops] = useState(false);
  const [variables, setVariables] = useState<Readonly<Record<string, string>>>(leftBehind(connection).variables);
  const [edited, setEdited] = useState<readonly number[]>([]);
  const [history, setHistory] = useState(false);
  const runner = useRef<(all: boolean) => void>(() => {});
  const text = () => editor.current?.view.state.doc.toString() ?? "";
  const { docs, moved } = useRequestDocs(connection, variables, () => {
    const at = editor.current;
    return { text: text(), line: at ? at.module.lineOf(at.view) : 1 };
  });
  const key = `console/${connection}`;
  const completes = open.hooks.includes("complete_console");
  useEffect(() => {
    let left = false;
    void (async () => {
      try {
        const mine = leftBehind(connection).text;
        const [module, kept] = await Promise.all([import("./editor.ts"), mine === null ? recall<string>(key) : null]);
        if (left || !host.current) return;
        if (kept) sayMasked(kept);
        const { sent } = leftBehind(connection);
        const view = module.openEditor(host.current, mine ?? kept ?? open.console_example, sent, { connection, completes }, {
          run: () => runner.current(false),
          runAll: () => runner.current(true),
          layOut: () => layOut(),
          moved,
          history: () => setHistory(true),
          sent: (requests, lines) => {
            leaveBehind(connection, { sent: requests });
            setEdited((before) => (before.join() === lines.join() ? before : lines));
          },
          changed: (text) => {
            leaveBehind(connection, { text });
            if (text.length < 60_000) remember(key, text);
          },
        });
        editor.current = { view, module };
        setReady(true);
        moved();
        view.focus();
      } catch (error) {
        setFailed(error);
      }
    })();
    return () => {
      left = true;
      stop.current?.abort();
      editor.current?.view.destroy();
      editor.current = null;
    };
  }, [connection]);
  const run = async (all: boolean) => {
    const at = editor.current;
    if (!at || busy) return;
    stop.current = new AbortController();
    const { signal } = stop.current;
    setBusy(true);
    setFailed(null);
    setStopped(false);
    at.module.beginSending(at.view);
    let now: Executed | null = null; // answers to another text do not stand beside this one
    try {
      const line = all ? null : at.module.lineOf(at.view);
      const asked = { connection, text: text(), variables, line, stop_on_error: stops, remember: true };
      now = await call("console/execute", asked, signal);
    } catch (error) {
      if (signal.aborted) setStopped(true);
      else setFailed(error);
    }
    setExecuted(now);
    if (!now || now.error || now.answers.some((one) => one.writes)) changes.value += 1; // there may be other objects
    leaveBehind(connection, { executed: now, filled: variables });
    if (editor.current === at) at.module.markSent(at.view, now?.answers ?? []);
    setBusy(false);
  };
  runner.current = (all) => void run(all);
  const curl = async () => {
    const at = editor.current;
    if (!at) return;
    try {
      const { requests } = await call("console/parse", { connection, text: text(), variables });
      const here = under(requests, at.module.lineOf(at.view));
      if (here) await copyText(here.curl, "Copied as curl");
    } catch (error) {
      setFailed(error);
    }
  };
  const layOut = () => {
    const at = editor.current;
    if (!at) return;
    const fault = at.module.layOutHere(at.view);
    if (fault) toast(fault, "bad");
    at.view.focus();
  };
  const take = (past: string) => {
    setHistory(false);
    const at = editor.current;
    if (!at) return;
    at.module.replaceText(at.view, past);
    sayMasked(past);
    requestAnimationFrame(() => at.view.focus()); // once the dialog has given the focus back
  };
  const { sent, filled } = leftBehind(connection);
  const refilled = JSON.stringify(filled) !== JSON.stringify(variables);
  const isEdited = (line: number) =>
    edited.includes(line) || (refilled && sent.some((one) => one.line === line && one.text.includes("${")));
  return (
    <div class="console">
      <Toolbar label="Console tools">
        <h1 class="grow">Console</h1>
        <RequestDocs address={docs} />
        {busy ? (
          <Button icon="close" label="Stop" onClick={() => stop.current?.abort()} />
        ) : (
          <Button icon="play" label="Run" tone="primary" title="Run the request under the cursor (Ctrl+Enter)" disabled={!ready} onClick={() => void run(false)} />
        )}
        <Button label="Run all" title="Run all requests (Ctrl+Shift+Enter)" disabled={!ready || busy} onClick={() => void run(true)} />
        <label class="inline" title="Else the requests after it are sent, too, as `dragoman console -f` does">
          <input type="checkbox" checked={stops} onChange={(event) => setStops(event.currentTarget.checked)} />
          <span>stop at a failure</span>
        </label>
        <Variables
          values={variables}
          change={(values) => {
            setVariables(values);
            leaveBehind(connection, { variables: values });
          }}
        />
        <Button label="Format" title="Lay out the request under the cursor (Ctrl+I)" disabled={!ready} onClick={layOut} />
        <Button icon="clock" label="History" title="Search what was run (Ctrl+H)" disabled={!ready} onClick={() => setHistory(true)} />
        <Button icon="copy" label="Copy as curl" disabled={!ready} onClick={() => void curl()} />
      </Toolbar>
      <div class="console-split">
        <div class="editor" ref={host}>{!ready && failed === null && <Waiting what="Loading the editor …" />}</div>
        <section class="answers" aria-label="Answers" aria-live="polite" aria-busy={busy}>
          {failed !== null && <ErrorBox error={failed} act={(wanted) => void remedy(wanted, () => void run(false))} />}
          {busy && <Waiting what="Waiting for the server …" />}
          {stopped && (
            <p class="banner warn">
              Stopped. A request that was under way may still take effect; those after it are not sent.
            </p>
          )}
          {!executed && failed === null && !busy && !stopped && (
            <Blank icon="console" title="No answer yet">
              <p>Ctrl+Enter runs the request under the cursor, Ctrl+Shift+Enter all of them.</p>
            </Blank>
          )}
          <div class={busy ? "answer-list stale" : "answer-list"}>
            {executed?.answers.map((answer, at) => <AnswerCard key={at} answer={answer} edited={isEdited(answer.line)} />)}
            {executed?.error && <ErrorBox error={executed.error} act={(wanted) => void remedy(wanted, () => void run(false))} />}
            {!!executed?.unsent?.length && <Unsent requests={executed.unsent} />}
          </div>
        </section>
      </div>
      {history && <History connection={connection} take={take} close={() => setHistory(false)} />}
    </div>
  );
}

/** The requests that a failure kept from being sent. */
function Unsent({ requests }: { requests: readonly UnsentRequest[] }) {
  return (
    <section class="banner warn" aria-label="Not sent">
      <p><strong>Not sent</strong>, because of the failure before {requests.length === 1 ? "it" : "them"}:</p>
      <ul class="plain-list">
        {requests.map(({ line, method, path }) => (
          <li key={line}><code>{method} {path}</code> <span class="muted">line {line}</span></li>
        ))}
      </ul>
    </section>
  );
}

/** The server keeps no secrets: say that a text came back without them, before it is sent so. */
function sayMasked(text: string): void {
  if (text.includes("***")) toast("What looked like a secret was kept as ***. Put it back before you send the text.", "bad");
}
