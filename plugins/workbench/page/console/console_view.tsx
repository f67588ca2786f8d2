/** The console of a connection: many requests in one text, answers beside it. */

import type { EditorView } from "@codemirror/view";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Executed, HistoryEntry, Opened, ParsedRequest } from "../messages.ts";
import { recall, remember } from "../shell/preferences.ts";
import { remedy } from "../shell/store.ts";
import { Button, Empty, ErrorBox, Waiting, asFailure } from "../ui/controls.tsx";
import { moment } from "../ui/figures.ts";
import { openMenu } from "../ui/menu.tsx";
import { copyText, toast } from "../ui/toasts.tsx";
import { call } from "../wire/client.ts";
import { AnswerCard } from "./answer_card.tsx";
import { Variables } from "./variables.tsx";

type Editor = typeof import("./editor.ts");

export function ConsoleView({ open }: { open: Opened }) {
  const { connection } = open;
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<{ view: EditorView; module: Editor } | null>(null);
  const stop = useRef<AbortController | null>(null);
  const [ready, setReady] = useState(false);
  const [busy, setBusy] = useState(false);
  const [executed, setExecuted] = useState<Executed | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  const [variables, setVariables] = useState<Record<string, string>>({});
  const runner = useRef<(all: boolean) => void>(() => {});
  const key = `console/${connection}`;
  const completes = open.hooks.includes("complete_console");
  useEffect(() => {
    let left = false;
    void (async () => {
      try {
        const [module, kept] = await Promise.all([import("./editor.ts"), recall<string>(key)]);
        if (left || !host.current) return;
        const view = module.openEditor(host.current, kept ?? example(open), { connection, completes }, {
          run: () => runner.current(false),
          runAll: () => runner.current(true),
          changed: (text) => text.length < 60_000 && !secretish(text) && remember(key, text),
        });
        editor.current = { view, module };
        setReady(true);
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
  const text = () => editor.current?.view.state.doc.toString() ?? "";
  const run = async (all: boolean) => {
    const at = editor.current;
    if (!at || busy) return;
    stop.current = new AbortController();
    setBusy(true);
    setFailed(null);
    try {
      const line = all ? null : at.module.lineOf(at.view);
      const asked = { connection, text: text(), variables, line, remember: true };
      setExecuted(await call("console/execute", asked, stop.current.signal));
    } catch (error) {
      if (!stop.current.signal.aborted) setFailed(error);
    }
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
  const past = async (event: MouseEvent) => {
    const anchor = (event.currentTarget as Element).getBoundingClientRect();
    try {
      const { entries } = await call("console/history", { connection });
      const items = entries.slice(0, 50).map((entry: HistoryEntry) => ({
        label: `${moment(entry.at)}  ${entry.text.trim().slice(0, 60).replaceAll("\n", " ")}`,
        run: () => editor.current?.module.replaceText(editor.current.view, entry.text),
      }));
      const none = [{ label: "Nothing has been run yet", disabled: true, run: () => {} }];
      openMenu("History", items.length ? items : none, anchor);
    } catch (error) {
      toast(asFailure(error).message, "bad");
    }
  };
  return (
    <div class="console">
      <div class="toolbar" role="toolbar" aria-label="Console tools">
        <h1 class="grow">Console</h1>
        {busy ? (
          <Button icon="close" label="Stop" onClick={() => stop.current?.abort()} />
        ) : (
          <Button icon="play" label="Run" tone="primary" title="Run the request under the cursor (Ctrl+Enter)" disabled={!ready} onClick={() => void run(false)} />
        )}
        <Button label="Run all" title="Run all requests (Ctrl+Shift+Enter)" disabled={!ready || busy} onClick={() => void run(true)} />
        <Variables values={variables} change={setVariables} />
        <Button label="History" onClick={(event) => void past(event)} />
        <Button icon="copy" label="Copy as curl" bare disabled={!ready} onClick={() => void curl()} />
      </div>
      <div class="console-split">
        <div class="editor" ref={host}>{!ready && failed === null && <Waiting what="Loading the editor …" />}</div>
        <section class="answers" aria-label="Answers" aria-live="polite" aria-busy={busy}>
          {failed !== null && <ErrorBox error={failed} act={(wanted) => void remedy(wanted, () => void run(false))} />}
          {busy && <Waiting what="Waiting for the server …" />}
          {!executed && failed === null && !busy && (
            <Empty icon="console" title="No answer yet">
              <p>Ctrl+Enter runs the request under the cursor, Ctrl+Shift+Enter all of them.</p>
            </Empty>
          )}
          {executed?.answers.map((answer, at) => <AnswerCard key={at} answer={answer} />)}
          {executed?.error && <ErrorBox error={executed.error} />}
        </section>
      </div>
    </div>
  );
}

/** The last request that begins at or before a line. */
function under(requests: readonly ParsedRequest[], line: number): ParsedRequest | undefined {
  return requests.filter((one) => one.line <= line).at(-1) ?? requests[0];
}

/** Texts that may hold a secret are not kept between visits; the history on the server masks its own. */
function secretish(text: string): boolean {
  return /password|passwd|secret|api[_-]?key|token|authorization|credential/i.test(text);
}

function example(open: Opened): string {
  return open.type === "weaviate" ? "GET /v1/meta\n" : "GET /\n";
}
