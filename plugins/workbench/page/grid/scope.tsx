/** The tenant and the span of time whose rows a grid shows, where an object has such. */

import { useState } from "preact/hooks";
import type { Opened, TimeColumn, TimeSpan } from "../messages.ts";
import type { Query } from "./controller.ts";

const SPANS: readonly (readonly [string, string, TimeSpan | null])[] = [
  ["default", "usual window", null],
  ["-15m", "last 15 minutes", { since: "-15m" }],
  ["-1h", "last hour", { since: "-1h" }],
  ["-24h", "last 24 hours", { since: "-24h" }],
  ["-7d", "last 7 days", { since: "-7d" }],
  ["-30d", "last 30 days", { since: "-30d" }],
  ["all", "all time", { all_time: true }],
];

export function Scope({ open, time, query, ask }: {
  open: Opened;
  time: TimeColumn | null;
  query: Query;
  ask: (part: Partial<Query>) => void;
}) {
  const [tenant, setTenant] = useState(query.tenant ?? "");
  const span = SPANS.find(([, , one]) => JSON.stringify(one) === JSON.stringify(query.span ?? null))?.[0];
  return (
    <>
      {open.capabilities.includes("tenants") && (
        <input
          class="tenant"
          placeholder="tenant"
          aria-label="Tenant"
          value={tenant}
          onInput={(event) => setTenant(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && ask({ tenant: tenant || null })}
          onBlur={() => (query.tenant ?? "") !== tenant && ask({ tenant: tenant || null })}
        />
      )}
      {time && (
        <select
          aria-label={`Span of time of ${time.column}`}
          value={span}
          onChange={(event) => ask({ span: SPANS.find(([id]) => id === event.currentTarget.value)?.[2] ?? null })}
        >
          {SPANS.map(([id, label]) => (
            <option value={id} key={id}>{label}</option>
          ))}
        </select>
      )}
    </>
  );
}
