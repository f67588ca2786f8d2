/** Which view is shown: the part of the address after `#`, so that Back and Forward work. */

import { signal } from "@preact/signals";
import type { RowSelection } from "../messages.ts";
import { type Origin, readSelection, spell } from "./query.ts";

export type Route =
  | { readonly view: "home" | "exports" }
  | { readonly view: "new"; readonly type: string }
  | { readonly view: "edit"; readonly connection: string }
  | { readonly view: "drivers"; readonly driver: string }
  | { readonly view: "connection" | "console"; readonly connection: string }
  | { readonly view: "rows"; readonly connection: string; readonly rows: RowSelection; readonly near?: Origin | null }
  | { readonly view: "import"; readonly connection: string; readonly object: string }
  | { readonly view: "structure"; readonly connection: string; readonly object: string };

/** The object that a view is about; empty for none. */
export function objectOf(shown: Route): string {
  return shown.view === "rows" ? shown.rows.object : shown.view === "structure" ? shown.object : "";
}

export function read(hash: string): Route {
  const parts = hash.replace(/^#\/?/, "").split("/").map(decoded);
  const [first, second = "", third = "", fourth = "", fifth = "", sixth = "", seventh = ""] = parts;
  if (first === "connection" && second) {
    if (third === "console") return { view: "console", connection: second };
    if (third === "edit") return { view: "edit", connection: second };
    if (third === "structure" && fourth) return { view: third, connection: second, object: fourth };
    if (third === "import") return { view: third, connection: second, object: fourth };
    const rows = third === "rows" ? readSelection(fourth) : null;
    if (rows && fifth === "near" && sixth) {
      return { view: "rows", connection: second, rows, near: { key: sixth, column: seventh || null } };
    }
    if (rows) return { view: "rows", connection: second, rows };
    return { view: "connection", connection: second };
  }
  if (first === "new") return { view: "new", type: second };
  if (first === "drivers") return { view: "drivers", driver: second };
  return { view: first === "exports" ? "exports" : "home" };
}

export function write(to: Route): string {
  const name = "connection" in to ? `#/connection/${encodeURIComponent(to.connection)}` : "";
  switch (to.view) {
    case "rows":
      return `${name}/rows/${encodeURIComponent(spell(to.rows))}${nearTo(to.near)}`;
    case "structure":
      return `${name}/structure/${encodeURIComponent(to.object)}`;
    case "import":
      return to.object ? `${name}/import/${encodeURIComponent(to.object)}` : `${name}/import`;
    case "console":
    case "edit":
      return `${name}/${to.view}`;
    case "connection":
      return name;
    case "new":
      return to.type ? `#/new/${encodeURIComponent(to.type)}` : "#/new";
    case "drivers":
      return to.driver ? `#/drivers/${encodeURIComponent(to.driver)}` : "#/drivers";
    default:
      return to.view === "home" ? "#/" : `#/${to.view}`;
  }
}

function nearTo(near: Origin | null | undefined): string {
  return near ? ["/near", near.key, ...(near.column ? [near.column] : [])].map((part, at) => (at ? encodeURIComponent(part) : part)).join("/") : "";
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

export const route = signal<Route>(globalThis.location ? read(location.hash) : { view: "home" });

/** Asked before a view is left; false stays. */
type Guard = () => boolean | Promise<boolean>;
let guard: Guard | null = null;

/** Have `ask` decide whether the view is left, until the returned function is called. */
export function beforeLeaving(ask: Guard): () => void {
  guard = ask;
  return () => {
    if (guard === ask) guard = null;
  };
}

/** Whether the view may be left; a person may be asked. */
export async function mayLeave(): Promise<boolean> {
  return guard === null || (await guard());
}

/** Have the address name what is shown now, without a further step of the history. */
export function rename(to: Route): void {
  history.replaceState(history.state, "", write(to));
}

/** Have the address name what a person now shows, as a step that Back undoes. */
export function step(to: Route): void {
  if (write(to) === location.hash) return;
  here += 1;
  history.pushState({ place: here }, "", write(to));
}

export function go(to: Route): void {
  location.hash = write(to); // which `follow` hears
}

/** Go where a person who was asked already wants to be: the view that is left may still be drawn, with its question. */
export function goUnasked(to: Route): void {
  guard = null;
  go(to);
}

/** Where a history entry stands among those of this tab, kept in its state; null for a new one. */
const place = (): number | null => (history.state as { place?: number } | null)?.place ?? null;

function mark(at: number): void {
  history.replaceState({ place: at }, "");
}

/** The place of the entry that is shown. */
let here = 0;

/** Whether a view is only another one of the same rows: nothing that waits there is left. */
function stays(from: Route, to: Route): boolean {
  return from.view === "rows" && to.view === "rows" && from.connection === to.connection && from.rows.object === to.rows.object;
}

/** Show what the address says, also after Back and Forward. */
export function follow(): void {
  here = place() ?? 0;
  let asking = false;
  let passing = false;
  mark(here);
  addEventListener("hashchange", async () => {
    const there = place() ?? here + 1;
    mark(there);
    if (there === here) return;
    const to = read(location.hash);
    if (passing || !guard || stays(route.peek(), to)) {
      [here, passing] = [there, false];
      route.value = to;
      return;
    }
    // back to the view that is shown, so that the address and the history stay as they are until a person has chosen
    const way = there - here;
    history.go(-way);
    if (asking) return;
    asking = true;
    passing = await mayLeave();
    asking = false;
    if (passing) history.go(way);
  });
}
