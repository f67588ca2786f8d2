/** The first view: saved connections, and how to make one. */

import { Badge, Button, Blank, ErrorBox, Waiting } from "../ui/controls.tsx";
import { openMenu } from "../ui/menu.tsx";
import { go, write } from "../state/route.ts";
import { broken, connections, loadConnections, opened } from "../state/store.ts";
import { call } from "../wire/client.ts";
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { RemoveConnection } from "./remove_connection.tsx";
import type { ConnectionSummary } from "../messages.ts";

const removing = signal("");

export function Home() {
  const list = connections.value;
  if (!list) return <Waiting what="Reading the connections …" />;
  const make = () => go({ view: "new", type: "" });
  return (
    <div class="page">
      <div class="toolbar">
        <h1 class="grow">Connections</h1>
        <Button icon="add" label="New connection" tone="primary" onClick={make} />
      </div>
      {list.warnings.map((text) => (
        <p class="banner warn" key={text}>{text}</p>
      ))}
      {list.connections.length === 0 && (
        <Blank icon="database" title="No connection is saved yet">
          <p>Choose a type of database; its driver is offered before the form.</p>
          <Button icon="add" label="New connection" tone="primary" onClick={make} />
          {list.samples_offered && <OfferSamples />}
        </Blank>
      )}
      {list.connections.some((one) => one.sample) && <SamplesServed ended={list.samples_ended} />}
      <ul class="cards">
        {list.connections.map((one) => (
          <Card key={one.name} connection={one} />
        ))}
      </ul>
      {list.hidden.length > 0 && (
        <section>
          <h2>Not usable</h2>
          <ul class="plain-list">
            {list.hidden.map(({ name, reason }) => (
              <li key={name}><strong>{name}</strong> {reason}</li>
            ))}
          </ul>
        </section>
      )}
      {removing.value && <RemoveConnection name={removing.value} close={() => (removing.value = "")} />}
    </div>
  );
}

/** Add or remove the samples; what failed is said beside the button. */
function useSamples(what: "connections/add_samples" | "connections/remove_samples") {
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<unknown>(null);
  const run = async () => {
    setBusy(true);
    setFailed(null);
    try {
      await call(what, {});
      await loadConnections();
    } catch (error) {
      setFailed(error);
    }
    setBusy(false);
  };
  return { busy, failed, run: () => void run() };
}

function OfferSamples() {
  const { busy, failed, run } = useSamples("connections/add_samples");
  return (
    <div class="samples-offer">
      <p>No server at hand? A bookshop, a library with vectors, and metrics are ready to look at.</p>
      <Button icon="database" label={busy ? "Loading the samples …" : "Add the samples"} busy={busy} onClick={run} />
      {failed !== null && <ErrorBox error={failed} />}
    </div>
  );
}

function SamplesServed({ ended }: { ended: boolean }) {
  const { busy, failed, run } = useSamples("connections/remove_samples");
  return (
    <>
      <div class={ended ? "banner warn samples" : "banner samples"}>
        <p class="grow">
          {ended
            ? "The servers of the samples have ended. Remove the samples, and add them again to go on."
            : "The samples, and your changes in them, are gone when the workbench ends."}
        </p>
        <Button label="Remove the samples" busy={busy} onClick={run} />
      </div>
      {failed !== null && <ErrorBox error={failed} />}
    </>
  );
}

function Card({ connection }: { connection: ConnectionSummary }) {
  const { name, type, address, acts, production, sample } = connection;
  const open = opened.value.get(name);
  const more = (event: MouseEvent) =>
    openMenu(
      name,
      [
        { label: "Edit", icon: "edit", run: () => go({ view: "edit", connection: name }) },
        { label: "Remove", icon: "remove", danger: true, run: () => (removing.value = name) },
      ],
      (event.currentTarget as Element).getBoundingClientRect(),
    );
  return (
    <li class="card">
      <a class="card-link" href={write({ view: "connection", connection: name })}>
        <strong>{name}</strong>
        <span class="muted">{type} · {address}</span>
        {sample && <span>{sample}</span>}
        {open && <span class="muted">{open.product} {open.server_version}</span>}
      </a>
      <div class="card-badges">
        {sample && <Badge tone="accent">sample</Badge>}
        {open && <Badge tone="good">open</Badge>}
        {broken.value.has(name) && <Badge tone="bad" title={broken.value.get(name)}>no answer</Badge>}
        {production && <Badge tone="bad">production</Badge>}
      </div>
      {acts.length > 0 && <p class="muted acts">Opening it: {acts.join("; ")}</p>}
      <Button icon="menu" label={`More about ${name}`} bare tone="quiet" onClick={more} />
    </li>
  );
}
