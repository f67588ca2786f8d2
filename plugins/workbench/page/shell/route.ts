/** Which view is shown: the part of the address after `#`, so that Back and Forward work. */

import { signal } from "@preact/signals";

export type Route =
  | { readonly view: "home" | "exports" }
  | { readonly view: "new"; readonly type: string }
  | { readonly view: "edit"; readonly connection: string }
  | { readonly view: "drivers"; readonly driver: string }
  | { readonly view: "connection" | "console"; readonly connection: string }
  | { readonly view: "rows" | "structure"; readonly connection: string; readonly object: string };

export function read(hash: string): Route {
  const parts = hash.replace(/^#\/?/, "").split("/").map(decoded);
  const [first, second = "", third = "", fourth = ""] = parts;
  if (first === "connection" && second) {
    if (third === "console") return { view: "console", connection: second };
    if (third === "edit") return { view: "edit", connection: second };
    if ((third === "rows" || third === "structure") && fourth) {
      return { view: third, connection: second, object: fourth };
    }
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
    case "structure":
      return `${name}/${to.view}/${encodeURIComponent(to.object)}`;
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

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

export const route = signal<Route>(globalThis.location ? read(location.hash) : { view: "home" });

/** Asked before a view is left; false stays. */
let mayLeave: (to: Route) => boolean = () => true;

export function beforeLeaving(ask: (to: Route) => boolean): () => void {
  mayLeave = ask;
  return () => {
    mayLeave = () => true;
  };
}

export function go(to: Route): void {
  location.hash = write(to); // which `follow` hears
}

export function follow(): void {
  addEventListener("hashchange", () => {
    const to = read(location.hash);
    if (mayLeave(to)) route.value = to;
    else history.replaceState(null, "", write(route.value));
  });
}
