/** One field that leads everywhere: connections, objects, saved queries, and what can be done here. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { IconName } from "../ui/icons.tsx";
import { Icon } from "../ui/icons.tsx";
import { line } from "../wire/cells.ts";
import { call } from "../wire/client.ts";
import { go, route } from "../state/route.ts";
import { connections, opened } from "../state/store.ts";
import { openKeys } from "./shortcuts.tsx";
import { offersHere } from "../ui/menu.tsx";
import { ranked } from "./ranking.ts";
import { flipTheme } from "./theme.ts";

interface Entry {
  readonly label: string;
  /** What it is, at the right. */
  readonly kind: string;
  readonly icon: IconName;
  readonly also?: string;
  readonly run: () => void;
}

const MOST_OBJECTS = 20;
const MOST_SHOWN = 60;
/** Milliseconds without a key before a server is asked. */
const PAUSE = 120;

export function Palette({ close }: { close: () => void }) {
  const element = useRef<HTMLDialogElement>(null);
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState(0);
  const here = useMemo(entriesHere, []);
  const offers = useMemo(() => offersHere().map(({ kind, item }): Entry => ({ label: item.label, kind, icon: item.icon ?? "right", run: item.run })), []);
  const { entries: there, settled } = useThere(words);
  const [held, setHeld] = useState(false);
  const found = ranked([...here, ...(words.trim() ? offers : []), ...there], words).slice(0, MOST_SHOWN);
  const at = Math.min(chosen, found.length - 1);
  useLayoutEffect(() => { // before the next key
    const before = document.activeElement as HTMLElement | null;
    const dialog = element.current!;
    dialog.showModal();
    return () => {
      // what was chosen may have taken the focus by now, such as a menu
      const now = document.activeElement;
      dialog.close(); // until then, nothing else takes the focus
      if (before?.isConnected && (!now || now === document.body || dialog.contains(now))) before.focus({ preventScroll: true });
    };
  }, []);
  useEffect(() => {
    element.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [at, found.length]);
  const take = (entry: Entry | undefined) => {
    if (!entry) return;
    close();
    requestAnimationFrame(() => entry.run()); // the focus is back where it was
  };
  useEffect(() => {
    if (held && settled) take(found[at]);
  }, [held, settled]);
  const key = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: Math.min(at + 8, found.length - 1), PageUp: Math.max(at - 8, 0) }[event.key];
    // what fits best may still be on its way; a second press takes what is here
    if (event.key === "Enter") chosen || settled || held ? take(found[at]) : setHeld(true);
    else if (to !== undefined && found.length) setChosen((to + found.length) % found.length);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      class="dialog palette"
      aria-label="Go to"
      ref={element}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onPointerDown={(event) => event.target === element.current && close()}
    >
      <label class="palette-field">
        <Icon name="search" />
        <input
          role="combobox"
          aria-label="Go to, or do"
          aria-expanded="true"
          aria-controls="palette"
          aria-activedescendant={found.length ? `palette-${at}` : undefined}
          placeholder="A connection, an object, a saved query, or what to do"
          autocomplete="off"
          spellcheck={false}
          value={words}
          onInput={(event) => {
            setWords(event.currentTarget.value);
            setChosen(0);
            setHeld(false);
          }}
          onKeyDown={key}
        />
      </label>
      <div id="palette" class="palette-list" role="listbox" aria-label="What fits">
        {found.map((entry, number) => (
          <div
            key={number}
            id={`palette-${number}`}
            class="suggestion"
            role="option"
            aria-selected={number === at}
            onClick={() => take(entry)}
          >
            <Icon name={entry.icon} />
            <span class="suggestion-label grow">{line(entry.label)}</span>
            <span class="muted">{entry.kind}</span>
          </div>
        ))}
      </div>
      {!found.length && <p class="palette-none muted" role="status">Nothing fits.</p>}
    </dialog>
  );
}

/** What is known without a question: what can be done in this view, connections, and views of the page. */
function entriesHere(): Entry[] {
  const now = route.peek();
  const name = "connection" in now ? now.connection : "";
  const open = opened.peek().get(name);
  const view = (label: string, icon: IconName, to: Parameters<typeof go>[0], also = ""): Entry => ({ label, icon, also, kind: "view", run: () => go(to) });
  return [
    ...toolsHere(),
    ...(open?.hooks.includes("parse_console") ? [view(`Console of ${name}`, "console", { view: "console", connection: name })] : []),
    ...(connections.peek()?.connections ?? []).map((one): Entry => ({
      label: one.name,
      kind: opened.peek().has(one.name) ? `${one.type}, open` : one.type,
      icon: "database",
      also: `${one.type} ${one.address} connection`,
      run: () => go({ view: "connection", connection: one.name }),
    })),
    view("New connection", "add", { view: "new", type: "" }),
    ...(name ? [view(`Edit the connection ${name}`, "edit", { view: "edit", connection: name })] : []),
    view("Drivers", "shop", { view: "drivers", driver: "" }, "marketplace install update"),
    view("Exports", "export", { view: "exports" }, "downloads files"),
    { label: "Light or dark colours", kind: "action", icon: "moon", also: "theme", run: flipTheme },
    { label: "Keys", kind: "action", icon: "key", also: "shortcuts help ?", run: openKeys },
  ];
}

/** The tools of this view: each is pressed as if by hand. */
function toolsHere(): Entry[] {
  const tools = [...document.querySelectorAll<HTMLElement>(":is([role=toolbar], .change-bar-buttons) :is(button, a[href])")];
  return tools
    .filter((tool) => !tool.closest("dialog") && !(tool as HTMLButtonElement).disabled)
    .map((tool) => ({
      label: tool.ariaLabel ?? tool.textContent ?? "",
      kind: "tool",
      icon: "right",
      run: () => {
        tool.focus();
        tool.click();
      },
    }));
}

/** Objects and saved queries of the connection that is shown, as its server and the workbench know them. */
function useThere(words: string): { readonly entries: readonly Entry[]; readonly settled: boolean } {
  const [entries, setEntries] = useState<readonly Entry[]>([]);
  const [answered, setAnswered] = useState<string | null>(null);
  const now = route.peek();
  const connection = "connection" in now && opened.peek().has(now.connection) ? now.connection : "";
  const saved = useRef<Promise<readonly Entry[]> | null>(null);
  useEffect(() => {
    if (!connection) return;
    const stop = new AbortController();
    const rows = (object: string) => () => go({ view: "rows", connection, rows: { object } });
    const ask = async () => {
      saved.current ??= call("queries", { connection }).then(
        ({ queries }) => queries.map((query): Entry => ({
          label: query.name,
          kind: `saved query on ${query.rows.object}`,
          icon: "filter",
          also: query.rows.object,
          run: () => go({ view: "rows", connection, rows: query.rows }),
        })),
        () => [],
      );
      const contains = words.trim().split(/\s+/)[0];
      try {
        const { objects } = await call("objects", { connection, contains, cursor: null, limit: MOST_OBJECTS }, stop.signal);
        const leaves = objects.filter(({ branch }) => !branch);
        const found = leaves.map(({ name, kind }): Entry => ({ label: name, kind: kind || "object", icon: "table", also: "object rows", run: rows(name) }));
        const others = await saved.current;
        if (!stop.signal.aborted) setEntries([...found, ...others]);
      } catch {
        // the connection says itself what fails; what is known stays
      }
      if (!stop.signal.aborted) setAnswered(words);
    };
    const timer = setTimeout(() => void ask(), words ? PAUSE : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [connection, words]);
  return { entries, settled: !connection || answered === words };
}
