/** What all views share: connections, what is open, questions, exports, and the state of the event stream. */

import { computed, signal } from "@preact/signals";
import type { Action, ConnectionList, ExportJob, ImportJob, OpenConnection, OpenQuestion, ServerEvent, State } from "../messages.ts";
import { asFailure, onRemedy } from "../ui/controls.tsx";
import { retract, toast } from "../ui/toasts.tsx";
import { call, enter, hasSecret, onExpired, wroteLately } from "../wire/client.ts";
import { type Link, listen } from "../wire/event_stream.ts";
import { go } from "./route.ts";

/** Where the tab stands: before the exchange of its token, in use, or no longer accepted. */
export const entry = signal<"entering" | "entered" | "closed">("entering");
export const link = signal<Link>("connecting");
export const state = signal<State | null>(null);
export const connections = signal<ConnectionList | null>(null);
export const opened = signal<ReadonlyMap<string, OpenConnection>>(new Map());
export const questions = signal<readonly OpenQuestion[]>([]);
export const exports = signal<readonly ExportJob[]>([]);
export const imports = signal<readonly ImportJob[]>([]);
export const installs = signal<ReadonlyMap<string, Install>>(new Map());
export const failure = signal<unknown>(null);
/** The health of connections that a check found broken, by name. */
export const broken = signal<ReadonlyMap<string, string>>(new Map());
/** Counts up when connections, drivers, files or the objects of a server may have changed. */
export const changes = signal(0);

export const running = computed(() => exports.value.filter((one) => one.state === "running").length);

export interface Install {
  readonly plugin: string;
  readonly version: string;
  readonly phase: string;
  readonly done: number;
  readonly total: number;
}

/** Exchange the token of the address, or go on with the secret of this tab, and load what is shown first. */
export async function begin(): Promise<void> {
  onExpired(() => {
    entry.value = "closed";
  });
  const token = /^#token=([^&]+)/.exec(location.hash)?.[1];
  if (token) history.replaceState(history.state, "", `${location.pathname}#/`);
  failure.value = null;
  try {
    if (token) await enter(decodeURIComponent(token));
    if (!hasSecret()) {
      entry.value = "closed";
      return;
    }
    await load();
    entry.value = "entered";
    const named = state.value?.connection;
    if (token && named) go({ view: "connection", connection: named });
    void listen(new AbortController().signal, heard, (now) => {
      link.value = now;
    });
  } catch (error) {
    failure.value = error;
    entry.value = "closed";
  }
}

/** Events that came while the state was on its way: they may be newer than what it says. */
const loading = new Set<ServerEvent[]>();

/** Load the state and the list of connections. */
export async function load(): Promise<void> {
  const events: ServerEvent[] = [];
  loading.add(events);
  try {
    const [now, list] = await Promise.all([call("state", {}), call("connections", {})]);
    state.value = now;
    connections.value = list;
    opened.value = new Map(now.open.map((one) => [one.connection, one]));
    const before = broken.value;
    broken.value = new Map(now.open.flatMap(({ connection, failing }) => (failing ? [[connection, failing]] : [])));
    for (const [name, reason] of before) if (!broken.value.has(name)) retract(noAnswer(name, reason));
    questions.value = now.questions;
    exports.value = now.exports;
    imports.value = now.imports;
    events.forEach(apply);
    changes.value += 1;
  } finally {
    loading.delete(events);
  }
}

async function reload(): Promise<void> {
  try {
    await load();
  } catch (error) {
    if (asFailure(error).code !== "no-secret") toast(asFailure(error).message, "bad");
  }
}

/** Load the list of connections anew. */
export async function loadConnections(): Promise<void> {
  connections.value = await call("connections", {});
}

/** What is now known of a job, in its place in the list; an answer may come after newer events. */
function heardOfJob<T extends { readonly id: string; readonly changes?: number }>(jobs: readonly T[], now: T): readonly T[] {
  const known = jobs.find((one) => one.id === now.id);
  if (!known) return [...jobs, now];
  return (known.changes ?? 0) < (now.changes ?? 0) ? jobs.map((one) => (one.id === now.id ? now : one)) : jobs;
}

export function heardOfExport(now: ExportJob): void {
  exports.value = heardOfJob(exports.value, now);
}

export function heardOfImport(now: ImportJob): void {
  const before = imports.value.find((one) => one.id === now.id);
  imports.value = heardOfJob(imports.value, now);
  const ended = now.state !== "running" && before?.state !== now.state;
  if (ended && !now.dry_run) changes.value += 1; // its object may be new
}

/** What tells of a connection whether it answers: a new session knows nothing of how the last one ended. */
const HEALTH: ReadonlySet<string> = new Set(["connection.opened", "connection.health_changed"]);

function noAnswer(name: string, reason: string): string {
  return `${name} does not answer: ${reason}`;
}

let greeted = false;

/** Keep what an event says; said twice, it changes nothing. */
function apply(event: ServerEvent): void {
  if (event.opened) opened.value = new Map(opened.value).set(event.opened.connection, event.opened);
  if (event.closed) {
    const left = new Map(opened.value);
    left.delete(event.closed);
    opened.value = left;
  }
  const { question, export: export_, import_job } = event;
  const told = event.event as Told | null | undefined;
  if (told && HEALTH.has(told.name)) {
    const now = new Map(broken.value);
    if (told.state === "failed") now.set(String(told.connection), String(told.reason ?? ""));
    else now.delete(String(told.connection));
    broken.value = now;
  }
  if (question) questions.value = [...questions.value.filter((one) => one.id !== question.id), question];
  if (event.answered) questions.value = questions.value.filter((one) => one.id !== event.answered);
  if (export_) heardOfExport(export_);
  if (import_job) heardOfImport(import_job);
}

function heard(event: ServerEvent): void {
  for (const events of loading) events.push(event);
  const before = broken.value;
  apply(event);
  if (event.kind === "lost") void reload();
  if (event.kind === "hello") {
    if (greeted) void reload(); // what was said while the stream was lost is unknown
    greeted = true;
  }
  if (event.kind === "files") {
    void reload();
    if (!wroteLately()) toast("Connections or settings have changed elsewhere; the lists are up to date.");
  }
  if (event.event) told(event.event as Told, before);
}

type Told = { name: string } & Record<string, unknown>;

function told(event: Told, before: ReadonlyMap<string, string>): void {
  const text = (name: string) => String(event[name] ?? "");
  const plugin = text("plugin");
  switch (event.name) {
    case "plugin.install_started":
    case "plugin.install_progressed": {
      const [done, total] = [Number(event.done ?? 0), Number(event.total ?? 0)];
      const step = { plugin, version: text("version"), phase: text("phase"), done, total };
      installs.value = new Map(installs.value).set(plugin, step);
      break;
    }
    case "plugin.installed":
    case "plugin.install_failed": {
      const left = new Map(installs.value);
      left.delete(plugin);
      installs.value = left;
      changes.value += 1;
      if (event.name === "plugin.installed") toast(`${plugin} ${text("version")} is installed`, "good");
      break;
    }
    case "plugin.crashed":
      toast(`The driver of ${text("connection")} ended: ${text("reason").replace(/\.?$/, ".")} The next request starts it again.`, "bad");
      break;
    case "connection.opened":
    case "connection.health_changed": {
      const [name, ok] = [text("connection"), event.state !== "failed"];
      if (ok) retract(noAnswer(name, before.get(name) ?? ""));
      if (ok === before.has(name)) toast(ok ? `${name} answers again.` : noAnswer(name, text("reason")), ok ? "good" : "bad");
      break;
    }
    case "plugin.removed":
    case "plugin.rolled_back":
    case "plugin.enabled":
    case "plugin.disabled":
    case "plugin.pinned":
      changes.value += 1;
  }
}

/** On a narrow screen the sidebar covers the page while it is open. */
export const sidebarOpen = signal(false);

/** Connections that are being opened, with what ends the attempt. */
export const opening = signal<ReadonlyMap<string, AbortController>>(new Map());

/** Open a connection, if it is not open; a missing driver is installed. */
export async function open(name: string): Promise<OpenConnection> {
  const known = opened.value.get(name);
  if (known) return known;
  const stop = new AbortController();
  opening.value = new Map(opening.value).set(name, stop);
  try {
    const now = await call("open", { connection: name }, stop.signal);
    opened.value = new Map(opened.value).set(name, now);
    return now;
  } finally {
    const left = new Map(opening.value);
    left.delete(name);
    opening.value = left;
  }
}

export async function close(name: string): Promise<void> {
  await call("close", { connection: name });
  const left = new Map(opened.value);
  left.delete(name);
  opened.value = left;
}

/** What a button beside a failure does. */
export async function remedy({ action, target }: Action, again: () => void): Promise<void> {
  try {
    if (action === "edit") return go({ view: "edit", connection: target });
    if (action === "objects") return go({ view: "connection", connection: target });
    if (action === "new") return go({ view: "new", type: "" });
    if (action === "drivers") return go({ view: "drivers", driver: target });
    if (action === "unlock") {
      unlocking.value = target;
      return;
    }
    if (action === "open") await open(target);
    else if (action === "install") await call("plugins/install", { id: target });
    else if (action === "update") await call("plugins/update", { id: target });
    else if (action === "repair") await call("plugins/repair", { id: target });
    else if (action === "enable") await call("plugins/enable", { id: target });
    again();
  } catch (error) {
    toast(asFailure(error).message, "bad");
  }
}

onRemedy((wanted, again) => void remedy(wanted, again));

/** The production connection that a person wants to unlock. */
export const unlocking = signal("");
