/** The overview of an open connection: what the server is, whether it answers, and its objects as a table. */

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { openObjectMenu } from "../state/object_menu.ts";
import { askAhead } from "../grid/first_page.ts";
import type { Condition, OpenConnection, ServerStatus } from "../messages.ts";
import { go, write } from "../state/route.ts";
import { broken, remedy } from "../state/store.ts";
import { Badge, Blank, Button, ErrorBox, Waiting } from "../ui/controls.tsx";
import { duration, fileSize, whole } from "../ui/figures.ts";
import { instant } from "../wire/previews.ts";
import { Icon } from "../ui/icons.tsx";
import { type Listing, useObjects } from "./listing.ts";
import { type Newest, newest, placeOf, timeOf, useNewest } from "./newest.ts";
import { ConditionMark, countConditions, Nodes, TONES, useStatus } from "./server_status.tsx";
import { type Line, type Order, type SortColumn, linesInView, linesOf, nextOrder } from "./object_table.ts";

const LINE = 28; // height of a line, as in the style
const MOST_TIMED = 1_000; // objects that are asked for their newest time to sort by it
const order = signal<Order>({ by: "name", descending: false });
const HEADS: Readonly<Record<SortColumn, string>> = { name: "Object", kind: "Kind", state: "State", newest: "Newest", rows: "Rows", size: "Size" };

export function ConnectionView({ open }: { open: OpenConnection }) {
  const name = open.connection;
  const [words, setWords] = useState("");
  const [branches, setBranches] = useState<ReadonlySet<string>>(new Set());
  const objects = useObjects(name, words, branches);
  const { inner, failed } = objects;
  const status = useStatus(name, open.hooks.includes("read_status"), objects.listing?.at);
  const listing = useMemo(() => withStates(objects.listing, status), [objects.listing, status]);
  const conditions = useMemo(() => countConditions((listing?.objects ?? []).map((one) => one.state)), [listing]);
  const [chosen, setChosen] = useState("");
  const state = conditions.some((one) => one.state.word === chosen) ? chosen : "";
  const lines = useMemo(
    () => linesOf(listing?.objects ?? [], inner, order.value, objects.whole ? words : "", (object) => timeOf(name, object), state),
    [listing, inner, order.value, words, state, objects.whole, order.value.by === "newest" && newest.value],
  );
  const table = useRef<HTMLDivElement>(null);
  const empty = listing?.objects.length === 0 && !words.trim();
  const bare = empty && failed === null && !listing?.notes.length; // nothing is there, and nothing is hidden
  const console = open.hooks.includes("parse_console") && (
    <a class="button plain" href={write({ view: "console", connection: name })}><Icon name="console" />Open the console</a>
  );
  const imports = open.hooks.includes("plan_change") && (
    <a class={`button ${bare ? "primary" : "plain"}`} href={write({ view: "import", connection: name, object: "" })}><Icon name="import" />Import rows</a>
  );
  const flip = (branch: string) => {
    const now = new Set(branches);
    if (!now.delete(branch)) now.add(branch);
    setBranches(now);
  };
  const alone = listing?.objects.length === 1 && listing.objects[0].branch ? listing.objects[0].name : "";
  useEffect(() => { // the only one that contains others is opened at once
    if (alone) setBranches(new Set([alone]));
  }, [alone]);
  return (
    <div class="overview">
      <div class="toolbar overview-head">
        <h1 class="grow">{name}</h1>
        {!bare && imports}
        {console}
      </div>
      <dl class="facts overview-facts">
        <div><dt>Health</dt><dd><Health name={name} failed={failed} listing={listing} state={status?.state ?? null} /></dd></div>
        <div><dt>Server</dt><dd>{open.product} {open.server_version || <span class="muted">version not reported</span>}</dd></div>
        <div><dt>Driver</dt><dd>{open.plugin} {open.plugin_version}</dd></div>
        {open.guards.length > 0 && <div><dt>Guards</dt><dd>{open.guards.join(", ")}</dd></div>}
      </dl>
      {[...open.warnings, ...open.server_notes].map((text) => <p class="banner warn" key={text}>{text}</p>)}
      {failed !== null && (
        <ErrorBox error={failed} retry={objects.again} act={(wanted) => void remedy(wanted, objects.again)}>
          <Button label="Edit this connection" icon="edit" onClick={() => go({ view: "edit", connection: name })} />
        </ErrorBox>
      )}
      {status?.notes.map((note) => <p class="muted" key={note.reason}>{note.reason}</p>)}
      {status && status.nodes.length > 0 && <Nodes connection={name} nodes={status.nodes} />}
      {listing && !empty && (
        <div class="overview-tools">
          <label class="search">
            <Icon name="search" />
            <input
              type="search"
              placeholder="Filter by name"
              aria-label={`Filter the table of objects of ${name}`}
              value={words}
              onInput={(event) => setWords(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key !== "ArrowDown") return;
                event.preventDefault();
                table.current?.querySelector<HTMLElement>(".object-name[tabindex='0']")?.focus();
              }}
            />
          </label>
          {(conditions.length > 1 || state) && (
            <span class="conditions" role="group" aria-label="Filter by state">
              {conditions.map((one) => (
                <button
                  key={one.state.word} type="button" class="button plain" aria-pressed={one.state.word === state}
                  onClick={() => setChosen(one.state.word === state ? "" : one.state.word)}
                >
                  <ConditionMark state={one.state} /><span class="count">{whole(one.count)}</span>
                </button>
              ))}
            </span>
          )}
          <span class="muted" role="status">{sumOf(listing, lines, words.trim() !== "" || state !== "")}</span>
        </div>
      )}
      {!listing && failed === null && <Waiting what={`Reading the objects of ${name} …`} />}
      {listing && lines.length > 0 && (
        <ObjectTable
          lines={lines} listing={listing} open={open} branches={branches} flip={flip} fresh={objects.fresh} host={table}
          stale={failed !== null || (objects.waits && !objects.whole && words !== "")}
        />
      )}
      {listing && !lines.length && !empty && !objects.waits && (
        <Blank icon="search" title={state ? "No object has such a name and state" : "No object has such a name"}>
          <Button label="Clear the filter" onClick={() => { setWords(""); setChosen(""); }} />
        </Blank>
      )}
      {empty && failed === null && (
        <Blank icon="table" title={listing?.notes.length ? "No object can be seen" : "The server holds no objects yet"}>
          <p>{listing?.notes.length ? "Why is written below." : "New ones appear here by themselves."}</p>
          <p class="actions center">{(bare && imports) || <Button label="Look again" icon="refresh" onClick={objects.again} />}</p>
        </Blank>
      )}
      {[...new Set((listing?.notes ?? []).map((note) => note.reason))].map((reason) => <p class="muted" key={reason}>{reason}</p>)}
    </div>
  );
}

function Health({ name, failed, listing, state }: { name: string; failed: unknown; listing: Listing | null; state: Condition | null }) {
  const reason = broken.value.get(name);
  const [dot, text] = reason !== undefined ? ["broken", `does not answer${reason ? `: ${reason}` : ""}`]
    : failed !== null ? ["broken", "its objects cannot be read"]
    : listing ? [state ? TONES[state.level] : "open", `${state ? `${state.word}, ` : ""}answers, objects read in ${duration(listing.seconds)}`]
    : ["opening", "open, no answer yet"];
  return <span class="health"><span class={`dot ${dot}`} aria-hidden="true" />{text}</span>;
}

/** Objects with the states that the status tells, where the list tells none. */
function withStates(listing: Listing | null, status: ServerStatus | null): Listing | null {
  const states = status?.objects;
  if (!listing || !states || !Object.keys(states).length) return listing;
  return { ...listing, objects: listing.objects.map((one) => (one.state || !Object.hasOwn(states, one.name) ? one : { ...one, state: states[one.name] })) };
}

/** What the table holds, in a sentence. */
function sumOf(listing: Listing, lines: readonly Line[], filtered: boolean): string {
  const count = listing.objects.length;
  const objects = listing.more
    ? `${whole(count)} of ${listing.total === null ? "more" : whole(listing.total)} objects; filter to find others`
    : `${whole(count)} ${count === 1 ? "object" : "objects"}`;
  const shown = filtered ? `${whole(lines.length)} shown of ${objects}` : objects;
  return `${shown} · as of ${listing.at.toLocaleTimeString()}`;
}

function ObjectTable({ lines, listing, open, branches, flip, fresh, host, stale }: {
  lines: readonly Line[];
  listing: Listing;
  open: OpenConnection;
  branches: ReadonlySet<string>;
  flip: (branch: string) => void;
  fresh: ReadonlySet<string>;
  host: { current: HTMLDivElement | null };
  stale: boolean;
}) {
  const { connection } = open;
  const [view, setView] = useState({ top: 0, height: 600 });
  const [current, setCurrent] = useState(0);
  const moved = useRef(false);
  const [first, end] = linesInView(view.top, view.height, LINE, lines.length);
  const stop = current >= first && current < end ? current : first;
  // sorted by their times, all lines need one; else those in view
  const timed = order.value.by === "newest" ? lines.slice(0, MOST_TIMED) : lines.slice(first, end);
  useNewest(connection, useMemo(() => timed.map(({ entry }) => entry), [lines, first, end, order.value.by]), open.hooks.includes("summarize_column"));
  const times = newest.value;
  const kinds = new Set(listing.objects.map((one) => one.kind));
  const columns: SortColumn[] = [
    "name",
    ...(kinds.size > 1 ? (["kind"] as const) : []),
    ...(lines.some(({ entry }) => entry.state) ? (["state"] as const) : []),
    ...(lines.some(({ entry }) => times.get(placeOf(connection, entry.name))?.text) ? (["newest"] as const) : []),
    ...(["rows", "size"] as const).filter((column) => lines.some(({ entry }) => entry[column] != null)),
  ];
  const measure = () => {
    const scrolled = host.current;
    if (scrolled) setView({ top: scrolled.scrollTop, height: scrolled.clientHeight });
  };
  useLayoutEffect(() => {
    measure();
    const watch = new ResizeObserver(measure);
    if (host.current) watch.observe(host.current);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    host.current?.querySelector<HTMLElement>(".object-name[tabindex='0']")?.focus({ preventScroll: true });
  });
  const menu = (event: Event, name: string, element: Element) => {
    event.preventDefault();
    openObjectMenu(open, name, element.getBoundingClientRect());
  };
  const move = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(view.height / LINE) - 2);
    const by: Record<string, number> = {
      ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -lines.length, End: lines.length,
    };
    if (!by[event.key] || !(event.target as Element).matches(".object-name")) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(lines.length - 1, stop + by[event.key]));
    const scrolled = host.current;
    if (scrolled) { // the head covers the first line of the view
      const top = next * LINE;
      if (top < scrolled.scrollTop) scrolled.scrollTop = top;
      else if (top + 2 * LINE + 4 > scrolled.scrollTop + scrolled.clientHeight) scrolled.scrollTop = top + 2 * LINE + 4 - scrolled.clientHeight;
      measure();
    }
    moved.current = true;
    setCurrent(next);
  };
  return (
    <div class={stale ? "object-table stale" : "object-table"} ref={host} onScroll={measure} onKeyDown={move}>
      <table aria-label={`Objects of ${connection}`} aria-rowcount={lines.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => {
              const sorts = order.value.by === column;
              const way = order.value.descending ? "descending" : "ascending";
              return (
                <th key={column} class={column} scope="col" aria-sort={sorts ? way : undefined}>
                  <button type="button" onClick={() => (order.value = nextOrder(order.value, column))}>
                    {HEADS[column]}<span class="sort-mark" aria-hidden="true">{sorts ? (order.value.descending ? "↓" : "↑") : ""}</span>
                  </button>
                </th>
              );
            })}
            <td class="act" />
          </tr>
        </thead>
        <tbody>
          {first > 0 && <Space key="/above" height={first * LINE} />}
          {lines.slice(first, end).map(({ entry, depth }, at) => {
            const index = first + at;
            const attributes = { class: "object-name", title: entry.name, tabIndex: index === stop ? 0 : -1, onFocus: () => setCurrent(index) };
            const label = entry.parent && entry.name.startsWith(`${entry.parent}/`) ? entry.name.slice(entry.parent.length + 1) : entry.name;
            return (
              <tr
                key={entry.name} aria-rowindex={index + 2}
                onContextMenu={(event) => entry.branch || menu(event, entry.name, event.currentTarget.querySelector(".object-name")!)}
              >
                {columns.map((column) => column === "name" ? (
                  <th key={column} scope="row" class="name" style={{ paddingLeft: `${8 + 18 * depth}px` }}>
                    {entry.branch ? (
                      <button type="button" {...attributes} aria-expanded={branches.has(entry.name)} onClick={() => flip(entry.name)}>
                        <Icon name={branches.has(entry.name) ? "down" : "right"} /><bdi>{label}</bdi>
                      </button>
                    ) : (
                      <a
                        {...attributes}
                        href={write({ view: "rows", connection, rows: { object: entry.name } })}
                        onPointerDown={(event: PointerEvent) => askAhead(event, connection, entry.name)}
                      ><bdi>{label}</bdi></a>
                    )}
                    {fresh.has(entry.name) && <Badge tone="accent" title="It came while this view is open">new</Badge>}
                  </th>
                ) : column === "kind" ? <td key={column} class="kind">{entry.kind}</td> : column === "state" ? (
                  <td key={column} class="state">{entry.state && <ConditionMark state={entry.state} />}</td>
                ) : column === "newest" ? (
                  <NewestTime key={column} known={times.get(placeOf(connection, entry.name))} />
                ) : (
                  <td key={column} class={column}>
                    {entry[column] == null ? <span class="muted" title="not known">–</span> : column === "rows" ? whole(entry.rows!) : fileSize(entry.size!)}
                  </td>
                ))}
                <td class="act">
                  {!entry.branch && (
                    <Button
                      icon="menu" label={`Menu of ${entry.name}`} bare tone="quiet" tabIndex={index === stop ? 0 : -1}
                      onClick={(event) => menu(event, entry.name, event.currentTarget as Element)}
                    />
                  )}
                </td>
              </tr>
            );
          })}
          {end < lines.length && <Space key="/below" height={(lines.length - end) * LINE} />}
        </tbody>
      </table>
    </div>
  );
}

function NewestTime({ known }: { known: Newest | undefined }) {
  if (!known) return <td class="newest"><span class="muted" title="not asked yet">…</span></td>;
  if (known.text === null) return <td class="newest"><span class="muted" title={known.column ? `no row has a time in ${known.column}` : "no time is known"}>–</span></td>;
  return <td class="newest" title={`${known.text}, the newest ${known.column}`}>{instant(known.text)}</td>;
}

/** Room for the lines that are not drawn. A row without cells would have no height. */
function Space({ height }: { height: number }) {
  return <tr aria-hidden="true"><td class="space" style={{ height: `${height}px` }} /></tr>;
}
