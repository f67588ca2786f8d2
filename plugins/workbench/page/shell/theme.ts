/** Light and dark: as the system has it, until a person chooses. */

import { signal } from "@preact/signals";
import { recall, remember } from "../state/preferences.ts";

type Theme = "light" | "dark";
const dark = matchMedia("(prefers-color-scheme: dark)");

export const theme = signal<Theme>(dark.matches ? "dark" : "light");

theme.subscribe((now) => {
  document.documentElement.dataset.theme = now;
});

export async function recallTheme(): Promise<void> {
  const chosen = await recall<Theme>("theme");
  if (chosen) theme.value = chosen;
  else dark.addEventListener("change", () => (theme.value = dark.matches ? "dark" : "light"));
}

export function flipTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  remember("theme", theme.value);
}
