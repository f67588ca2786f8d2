/** The drivers of all registries: search, filters, updates. */

import { useEffect, useState } from "preact/hooks";
import type { Browsed, DriverSummary, UpdateOffer } from "../messages.ts";
import { go, write } from "../state/route.ts";
import { changes } from "../state/store.ts";
import { Badge, Button, Blank, ErrorBox, Waiting, asFailure } from "../ui/controls.tsx";
import { Icon } from "../ui/icons.tsx";
import { toast } from "../ui/toasts.tsx";
import { call } from "../wire/client.ts";
import { InstallProgress } from "./install_progress.tsx";

export function Marketplace() {
  const [words, setWords] = useState("");
  const [compatible, setCompatible] = useState(true);
  const [capability, setCapability] = useState("");
  const [found, setFound] = useState<Browsed | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  const version = changes.value;
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => {
      call("plugins/browse", { words, compatible, capability }, stop.signal).then(
        (browsed) => (setFound(browsed), setFailed(null)),
        (error: unknown) => stop.signal.aborted || (setFound(null), setFailed(error)),
      );
    }, found ? 200 : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [words, compatible, capability, version]);
  const capabilities = [...new Set(found?.drivers.flatMap((driver) => driver.capabilities))].sort();
  return (
    <div class="page">
      <h1>Drivers</h1>
      <div class="toolbar" role="search">
        <div class="search grow">
          <Icon name="search" />
          <input
            type="search"
            aria-label="Search drivers"
            placeholder="Search drivers"
            value={words}
            onInput={(event) => setWords(event.currentTarget.value)}
          />
        </div>
        <select aria-label="Capability" value={capability} onChange={(event) => setCapability(event.currentTarget.value)}>
          <option value="">any capability</option>
          {[...new Set([...capabilities, capability])].filter(Boolean).map((name) => <option key={name}>{name}</option>)}
        </select>
        <label class="inline">
          <input type="checkbox" checked={compatible} onChange={(event) => setCompatible(event.currentTarget.checked)} />
          <span>works here</span>
        </label>
      </div>
      <Updates version={version} />
      <InstallProgress />
      {failed !== null && <ErrorBox error={failed} />}
      {Object.entries(found?.failures ?? {}).map(([registry, reason]) => (
        <p class="banner warn" key={registry}><strong>{registry}</strong> {reason}</p>
      ))}
      {!found && failed === null && <Waiting what="Reading the registries …" />}
      {found?.drivers.length === 0 && <Blank icon="shop" title="No driver matches" />}
      <ul class="cards">
        {found?.drivers.map((driver) => <DriverCard key={`${driver.registry}/${driver.id}`} driver={driver} />)}
      </ul>
      {!!found?.omitted && <p class="muted">{found.omitted} more; search to narrow the list.</p>}
    </div>
  );
}

export function stateTone(state: string): "good" | "warn" | "bad" | "plain" | "accent" {
  if (state === "installed" || state === "linked") return "good";
  if (state === "update") return "accent";
  if (state === "disabled" || state === "incompatible") return "warn";
  return state === "quarantined" || state === "unreadable" ? "bad" : "plain";
}

function DriverCard({ driver }: { driver: DriverSummary }) {
  return (
    <li class="card">
      <a class="card-link" href={write({ view: "drivers", driver: driver.id })}>
        <strong>{driver.label}</strong>
        <span class="muted">{driver.id} {driver.version}</span>
        <span>{driver.summary}</span>
        {driver.reaches && <span class="muted">reaches {driver.reaches}</span>}
      </a>
      <div class="card-badges">
        <Badge tone={stateTone(driver.state)}>{driver.state}</Badge>
        <Badge>{driver.registry}</Badge>
        {driver.unavailable_here && <Badge tone="warn">not on this device</Badge>}
      </div>
    </li>
  );
}

/** Installed drivers with a newer version, and what that asks for beyond the present one. */
function Updates({ version }: { version: number }) {
  const [updates, setUpdates] = useState<readonly UpdateOffer[]>([]);
  const [busy, setBusy] = useState("");
  useEffect(() => void call("plugins/updates", {}).then((list) => setUpdates(list.updates), () => setUpdates([])), [version]);
  const update = async (id: string) => {
    setBusy(id);
    try {
      await call("plugins/update", { id });
      changes.value += 1;
    } catch (error) {
      toast(asFailure(error).message, "bad");
    }
    setBusy("");
  };
  if (!updates.length) return null;
  return (
    <section class="card updates" aria-label="Updates">
      {updates.map((offer) => (
        <div key={offer.id} class="update">
          <div class="grow">
            <strong>{offer.id}</strong> {offer.before} → {offer.version}
            {offer.permissions.map((text) => <p key={text}><Badge tone="warn">new</Badge> {text}</p>)}
            {offer.publisher && <p><Badge tone="warn">publisher</Badge> {offer.publisher}</p>}
            {offer.reason && <p class="muted">{offer.reason}</p>}
          </div>
          <Button label="Update" tone="primary" busy={busy === offer.id} why={offer.unavailable_here} onClick={() => void update(offer.id)} />
          <Button label="Details" onClick={() => go({ view: "drivers", driver: offer.id })} />
        </div>
      ))}
    </section>
  );
}
