/** The sidebar: connections, their objects, and the ways to drivers and exports. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { changesOf } from "../state/change_list.ts";
import { openObjectMenu } from "../state/object_menu.ts";
import { askAhead } from "../grid/first_page.ts";
import type { ConnectionSummary, Note, Object as Entry, ObjectList } from "../messages.ts";
import { Badge, Button, ErrorBox } from "../ui/controls.tsx";
import { compact, fileSize } from "../ui/figures.ts";
import { Icon } from "../ui/icons.tsx";
import { call } from "../wire/client.ts";
import { type Route, go, objectOf, route, write } from "../state/route.ts";
import { broken, changes, connections, opened, opening, remedy, running, sidebarOpen } from "../state/store.ts";

const PART = 500; // objects that are asked for at once

export function Sidebar() {
  const here = route.value;
  const current = "connection" in here ? here.connection : "";
  return (
    <nav class={sidebarOpen.value ? "sidebar open" : "sidebar"} aria-label="Connections">
      <div class="brand">
        <Icon name="database" />
        <a href="#/">dragoman</a>
        <Button icon="add" label="New connection" bare tone="quiet" onClick={() => to({ view: "new", type: "" })} />
      </div>
      <ul class="connections">
        {connections.value?.connections.map((one) => (
          <ConnectionItem key={one.name} connection={one} current={one.name === current} />
        ))}
      </ul>
      <div class="sidebar-foot">
        <Link to={{ view: "drivers", driver: "" }} icon="shop" label="Drivers" current={here.view === "drivers"} />
        <Link to={{ view: "exports" }} icon="export" label="Exports" current={here.view === "exports"}>
          {running.value > 0 && <Badge tone="accent">{running.value}</Badge>}
        </Link>
      </div>
    </nav>
  );
}

function to(target: Route): void {
  sidebarOpen.value = false;
  go(target);
}

function Link({ to: target, icon, label, current, children }: {
  to: Route;
  icon: "shop" | "export" | "console" | "table";
  label: string;
  current: boolean;
  children?: preact.ComponentChildren;
}) {
  return (
    <a
      class="nav-link"
      href={write(target)}
      aria-current={current ? "page" : undefined}
      onClick={() => (sidebarOpen.value = false)}
    >
      <Icon name={icon} />
      <span class="grow">{label}</span>
      {children}
    </a>
  );
}

function ConnectionItem({ connection, current }: { connection: ConnectionSummary; current: boolean }) {
  const { name } = connection;
  const open = opened.value.get(name);
  const state = broken.value.has(name) ? "broken" : open ? "open" : opening.value.has(name) ? "opening" : "closed";
  return (
    <li>
      <a
        class="nav-link connection"
        href={write({ view: "connection", connection: name })}
        aria-current={current ? "true" : undefined}
        title={`${connection.type} · ${connection.address}`}
        onClick={() => current || (sidebarOpen.value = false)}
      >
        <span class={`dot ${state}`} role="img" aria-label={state} />
        <span class="grow">{name}</span>
        {!current && <Unsent connection={name} />}
        {connection.production && <Badge tone="bad">production</Badge>}
      </a>
      {current && open && <Objects connection={name} console={open.hooks.includes("parse_console")} />}
    </li>
  );
}

/** How many changes wait for a connection, or for one of its objects. */
function Unsent({ connection, object }: { connection: string; object?: string }) {
  const list = changesOf(connection);
  const count = object === undefined ? list.list.value.length : list.of(object).length;
  return count ? <Badge tone="warn" title={`${count} not sent`}>{count}<span class="unseen"> not sent</span></Badge> : null;
}

function Objects({ connection, console: offered }: { connection: string; console: boolean }) {
  const [objects, setObjects] = useState<readonly Entry[] | null>(null);
  const [notes, setNotes] = useState<readonly Note[]>([]);
  const [words, setWords] = useState("");
  const [next, setNext] = useState<string | null>(null);
  const [total, setTotal] = useState<number | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const here = route.value;
  const object = objectOf(here);
  const load = async (contains: string, cursor: string | null, signal?: AbortSignal) => {
    try {
      const part = await call("objects", { connection, contains, cursor, limit: PART }, signal);
      setObjects((before) => (cursor ? [...(before ?? []), ...part.objects] : part.objects));
      setNotes((before) => (cursor ? [...before, ...(part.notes ?? [])] : (part.notes ?? [])));
      setNext(part.next ?? null);
      setTotal(part.total ?? null);
      setFailed(null);
    } catch (error) {
      if ((error as Error).name === "AbortError") return;
      setFailed(error);
      if (cursor) return;
      setObjects(null); // those of other words do not stand under these
      setNotes([]);
      setNext(null);
    }
  };
  const first = useRef(true);
  const listing = useRef(new AbortController()); // ends with the words that it is for, and so do its further parts
  useEffect(() => {
    const stop = (listing.current = new AbortController());
    setNext(null); // a further part of the old list belongs under no other words
    const timer = setTimeout(() => void load(words, null, stop.signal), first.current ? 0 : 200);
    first.current = false;
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [connection, words, changes.value]);
  const more = async () => {
    setBusy(true);
    await load(words, next, listing.current.signal);
    setBusy(false);
  };
  const items = useMemo( // thousands of them must not be compared at each key
    () => objects?.map((one) => one.branch
      ? <BranchItem key={one.name} entry={one} connection={connection} object={object} alone={objects.length === 1} />
      : <ObjectItem key={one.name} entry={one} connection={connection} current={one.name === object} />),
    [objects, connection, object],
  );
  return (
    <div class="objects">
      {offered && (
        <Link to={{ view: "console", connection }} icon="console" label="Console" current={here.view === "console"} />
      )}
      <div class="search">
        <Icon name="search" />
        <input
          type="search"
          placeholder="Filter objects"
          aria-label={`Filter the objects of ${connection}`}
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
      </div>
      {failed !== null && <ErrorBox error={failed} retry={() => void load(words, null)} act={(r) => void remedy(r, () => void load(words, null))} />}
      <ul aria-label={`Objects of ${connection}`} class="object-list">
        {items}
      </ul>
      {objects?.length === 0 && <p class="muted pad">{words ? "No object has such a name." : "There are no objects."}</p>}
      {next && objects && (
        <>
          <p class="muted pad">
            {total === null ? `${objects.length.toLocaleString("en")} objects are listed, and there are more.`
              : `${objects.length.toLocaleString("en")} of ${total.toLocaleString("en")} objects are listed.`}
            {" Filter to find others by name."}
          </p>
          <Button label="More objects" tone="quiet" busy={busy} onClick={() => void more()} />
        </>
      )}
      {[...new Set(notes.map((note) => note.reason))].map((reason) => (
        <p class="muted pad" key={reason}>{reason}</p>
      ))}
    </div>
  );
}

/** An object that contains others, which are listed once it is opened: at once if it is the only one, or holds the object that is shown. */
function BranchItem({ entry, connection, object, alone }: {
  entry: Entry;
  connection: string;
  object: string;
  alone: boolean;
}) {
  const [open, setOpen] = useState(alone || object.startsWith(entry.name.replace(/\*$/, "")));
  const [part, setPart] = useState<ObjectList | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  const load = async (cursor: string | null, signal?: AbortSignal) => {
    try {
      const listed = await call("objects", { connection, parent: entry.name, cursor, limit: PART }, signal);
      setPart((before) => (cursor && before ? { ...listed, objects: [...before.objects, ...listed.objects] } : listed));
      setFailed(null);
    } catch (error) {
      if ((error as Error).name !== "AbortError") setFailed(error);
    }
  };
  useEffect(() => {
    if (!open) return;
    const stop = new AbortController();
    void load(null, stop.signal);
    return () => stop.abort();
  }, [open, connection, entry.name, changes.value]);
  return (
    <li>
      <button type="button" class="nav-link branch" aria-expanded={open} title={objectTitle(entry)} onClick={() => setOpen(!open)}>
        <span class="grow">{entry.name}</span>
        <span class="figure">{open ? "−" : "+"}</span>
      </button>
      {open && failed !== null && <ErrorBox error={failed} retry={() => void load(null)} act={(r) => void remedy(r, () => void load(null))} />}
      {open && part && (
        <ul class="object-list inner" aria-label={`Objects of ${entry.name}`}>
          {part.objects.map((one) => one.branch
            ? <BranchItem key={one.name} entry={one} connection={connection} object={object} alone={false} />
            : <ObjectItem key={one.name} entry={one} connection={connection} current={one.name === object} />)}
        </ul>
      )}
      {open && part?.objects.length === 0 && <p class="muted pad">There are no objects.</p>}
      {open && part?.next && <Button label="More objects" tone="quiet" onClick={() => void load(part.next ?? null)} />}
      {open && [...new Set((part?.notes ?? []).map((note) => note.reason))].map((reason) => (
        <p class="muted pad" key={reason}>{reason}</p>
      ))}
    </li>
  );
}

function ObjectItem({ entry, connection, current }: { entry: Entry; connection: string; current: boolean }) {
  return (
    <li>
      <a
        class="nav-link object"
        href={write({ view: "rows", connection, rows: { object: entry.name } })}
        aria-current={current ? "page" : undefined}
        title={objectTitle(entry)}
        onPointerDown={(event) => !current && askAhead(event, connection, entry.name)}
        onClick={() => (sidebarOpen.value = false)}
        onContextMenu={(event) => {
          const open = opened.value.get(connection);
          if (!open) return;
          event.preventDefault();
          openObjectMenu(open, entry.name, event.currentTarget.getBoundingClientRect());
        }}
      >
        <span class="grow">{entry.parent && entry.name.startsWith(`${entry.parent}/`) ? entry.name.slice(entry.parent.length + 1) : entry.name}</span>
        <Unsent connection={connection} object={entry.name} />
        <span class="figure">{entry.rows == null ? "" : compact(entry.rows)}</span>
      </a>
    </li>
  );
}

function objectTitle(one: Entry): string {
  const parts = [one.name, one.kind ?? ""];
  if (one.rows != null) parts.push(`${one.rows.toLocaleString("en")} rows`);
  if (one.size != null) parts.push(fileSize(one.size));
  return parts.filter(Boolean).join(" · ");
}
