/** The tenant and the span of time whose rows a grid shows, where an object has such. */

import { useEffect, useState } from "preact/hooks";
import type { Span, TimeColumn, TimeRange } from "../messages.ts";
import { Button } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { type MenuItem, openMenu } from "../ui/menu.tsx";
import type { Query } from "../state/query.ts";
import { ALL, PRESETS, fromLocal, spanLabel, toLocal } from "./time_spans.ts";

type Ask = (part: Partial<Query>) => void;

export function Scope({ tenants, time, range, query, ask }: {
  tenants: boolean;
  time: TimeColumn | null;
  /** What was read, with absolute instants. */
  range: TimeRange | null;
  query: Query;
  ask: Ask;
}) {
  return (
    <>
      {(tenants || query.tenant) && <Tenant query={query} ask={ask} />}
      {time && <Time time={time} range={range} query={query} ask={ask} />}
    </>
  );
}

function Tenant({ query, ask }: { query: Query; ask: Ask }) {
  const [tenant, setTenant] = useState(query.tenant ?? "");
  useEffect(() => setTenant(query.tenant ?? ""), [query.tenant]);
  return (
    <input
      class="tenant"
      placeholder="tenant"
      aria-label="Tenant"
      value={tenant}
      onInput={(event) => setTenant(event.currentTarget.value)}
      onKeyDown={(event) => event.key === "Enter" && ask({ tenant: tenant || null })}
      onBlur={() => (query.tenant ?? "") !== tenant && ask({ tenant: tenant || null })}
    />
  );
}

function Time({ time, range, query, ask }: { time: TimeColumn; range: TimeRange | null; query: Query; ask: Ask }) {
  const [choosing, setChoosing] = useState(false);
  const chosen = query.span;
  const label = spanLabel(chosen, time);
  const choose = (event: MouseEvent) => {
    const item = (text: string, span: Span): MenuItem => ({
      label: text,
      checked: JSON.stringify(span) === JSON.stringify(chosen),
      run: () => ask({ span }),
    });
    const own: MenuItem = { label: "From … to …", icon: "clock", run: () => setChoosing(true) };
    const all: Span = time.window ? ALL : {};
    openMenu(
      `Time of ${time.column}`,
      [
        ...(time.window ? [item(spanLabel({}, time), {})] : []),
        ...PRESETS.map(([text, span]) => item(text, span)),
        item("all time", all),
        "line",
        own,
      ],
      (event.currentTarget as Element).getBoundingClientRect(),
    );
  };
  const bounds = range ? `: ${range.since ?? "…"} to ${range.until ?? "…"}` : ": all rows";
  return (
    <>
      <Button icon="clock" label={`Time: ${label}`} title={`Time of ${time.column}${bounds}`} onClick={choose} />
      {choosing && (
        <OwnSpan time={time} span={chosen} range={range} ask={ask} close={() => setChoosing(false)} />
      )}
    </>
  );
}

function OwnSpan({ time, span, range, ask, close }: {
  time: TimeColumn;
  span: Span;
  range: TimeRange | null;
  ask: Ask;
  close: () => void;
}) {
  const begin = span.since || span.until ? range : null;
  const [since, setSince] = useState(toLocal(begin?.since));
  const [until, setUntil] = useState(toLocal(begin?.until));
  const backwards = !!since && !!until && fromLocal(since)! >= fromLocal(until)!;
  const nothing = !since && !until;
  const show = (event: Event) => {
    event.preventDefault();
    if (backwards || nothing) return;
    ask({ span: { since: fromLocal(since), until: fromLocal(until) } });
    close();
  };
  const field = (name: string, value: string, set: (value: string) => void) => (
    <label class="field">
      <span>{name}</span>
      <input type="datetime-local" step="1" value={value} onInput={(event) => set(event.currentTarget.value)} />
    </label>
  );
  return (
    <Dialog
      title={`Rows by ${time.column}`}
      onClose={close}
      footer={
        <>
          <Button label="Cancel" onClick={close} />
          <Button label="Show" tone="primary" disabled={backwards || nothing} onClick={show} />
        </>
      }
    >
      <div class="stack" onKeyDown={(event) => event.key === "Enter" && show(event)}>
        {field("From", since, setSince)}
        {field("To", until, setUntil)}
        <p class="muted">
          In this browser's time zone ({Intl.DateTimeFormat().resolvedOptions().timeZone}). The first instant is
          included, the last is not; an empty field sets no bound.
        </p>
        {backwards && <p class="field-error" role="alert">From is not before to.</p>}
      </div>
    </Dialog>
  );
}
