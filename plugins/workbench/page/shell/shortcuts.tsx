/** Keys that work in every view, and what they open. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Keys } from "./keys.tsx"; // not lazily, as the palette: keys that follow at once would go to the grid
import { Palette } from "./palette.tsx";

const shown = signal<"" | "palette" | "keys">("");
const MAC = /mac/i.test(navigator.platform);

/** What opens the palette, as its button names it. */
export const PALETTE_KEY = MAC ? "⌘K" : "Ctrl+K";

export function openPalette(): void {
  shown.value = "palette";
}

export function openKeys(): void {
  shown.value = "keys";
}

/** Ctrl+K opens the palette and `?` the keys, unless a dialog is open or the sign belongs into a text. */
function pressed(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
  const only = MAC ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  if (only && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") openPalette();
  else if (event.key === "?" && !event.ctrlKey && !event.metaKey && !(event.target as Element).closest("input, textarea, select, .editor")) openKeys();
  else return;
  event.preventDefault();
}

export function Shortcuts() {
  useEffect(() => {
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  const close = () => (shown.value = "");
  if (shown.value === "palette") return <Palette close={close} />;
  return shown.value === "keys" ? <Keys close={close} /> : null;
}
