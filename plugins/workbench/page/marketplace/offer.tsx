/** A driver that is not installed, offered before the form of its connections: what it can, reaches, and who vouches. */

import { useEffect, useState } from "preact/hooks";
import type { DriverPage } from "../messages.ts";
import { remedy } from "../state/store.ts";
import { Badge, Button, ErrorBox, Waiting } from "../ui/controls.tsx";
import { fileSize } from "../ui/figures.ts";
import { call } from "../wire/client.ts";
import { InstallProgress } from "./install_progress.tsx";

export function Offer({ id, done, later }: { id: string; done: () => void; later: () => void }) {
  const [page, setPage] = useState<DriverPage | null>(null);
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<unknown>(null);
  useEffect(() => void call("plugins/show", { id }).then(setPage, setFailed), [id]);
  const install = async () => {
    setBusy(true);
    setFailed(null);
    try {
      await call("plugins/install", { id });
      done();
    } catch (error) {
      setFailed(error);
    }
    setBusy(false);
  };
  return (
    <div class="page">
      <h1>{page?.driver.label ?? id} is not installed yet</h1>
      {!page && failed === null && <Waiting what="Reading the driver's page …" />}
      {page && (
        <div class="card offer">
          <p>{page.driver.summary}</p>
          <h2>What it may do</h2>
          <ul class="plain-list">
            {page.permissions.map((text) => <li key={text}>{text}</li>)}
          </ul>
          <h2>Who vouches for it</h2>
          <p>{page.publisher || "No publisher is named."} <span class="muted">From the registry {page.driver.registry}.</span></p>
          <h2>What it can do</h2>
          <p class="capabilities">{page.driver.capabilities.map((name) => <Badge key={name}>{name}</Badge>)}</p>
          {page.report && <p class="muted">{page.report.summary}</p>}
        </div>
      )}
      <InstallProgress />
      {failed !== null && (
        <ErrorBox error={failed} retry={() => void install()} act={(wanted) => void remedy(wanted, done)} />
      )}
      <div class="actions">
        <Button
          icon="export"
          label={page?.driver.size ? `Install ${page.driver.version} (${fileSize(page.driver.size)})` : "Install"}
          tone="primary"
          busy={busy}
          why={page?.driver.unavailable_here}
          onClick={() => void install()}
        />
        <Button label="Fill in the form first" onClick={later} />
      </div>
    </div>
  );
}
