/** Spans of time: the usual ones, their names, and instants in the browser's time zone. */

import type { Span, TimeColumn } from "../messages.ts";

export const ALL: Span = { all_time: true };

export const PRESETS: readonly (readonly [string, Span])[] = [
  ["last 15 minutes", { since: "-15m" }],
  ["last hour", { since: "-1h" }],
  ["last 24 hours", { since: "-24h" }],
  ["last 7 days", { since: "-7d" }],
];

/** What a span is called. */
export function spanLabel(span: Span, { window }: TimeColumn): string {
  if (!span.all_time && !span.since && !span.until) return window ? `last ${seconds(window)}` : "all";
  if (span.all_time) return "all";
  const preset = PRESETS.find(([, one]) => one.since === span.since && !span.until);
  if (preset) return preset[0];
  const [since, until] = [shortly(span.since), shortly(span.until)];
  if (!until) return `since ${since}`;
  return since ? `${since} to ${until}` : `until ${until}`;
}

function seconds(count: number): string {
  for (const [unit, length] of [["day", 86_400], ["hour", 3_600], ["minute", 60]] as const) {
    if (count % length === 0) return count === length ? unit : `${count / length} ${unit}s`;
  }
  return `${count} seconds`;
}

function shortly(instant: string | null | undefined): string {
  return toLocal(instant).replace("T", " ").replace(/:00$/, "");
}

/** An instant as a field of local time takes it; empty for none. */
export function toLocal(instant: string | null | undefined): string {
  const at = new Date(instant ?? "");
  if (Number.isNaN(at.getTime())) return "";
  const two = (number: number) => String(number).padStart(2, "0");
  const day = `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day}T${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** The instant of a field of local time, in UTC; null for an empty field. */
export function fromLocal(text: string): string | null {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? null : at.toISOString().replace(".000Z", "Z");
}
