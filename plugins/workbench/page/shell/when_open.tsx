/** A view of a connection: shown once it is open; opening it installs a driver that is missing. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { OpenConnection } from "../messages.ts";
import { InstallProgress } from "../marketplace/install_progress.tsx";
import { Button, ErrorBox, Waiting } from "../ui/controls.tsx";
import { go, route } from "../state/route.ts";
import { connections, open, opened, opening, remedy } from "../state/store.ts";

export function WhenOpen({ name, show }: { name: string; show: (open: OpenConnection) => ComponentChildren }) {
  const [failed, setFailed] = useState<unknown>(null);
  const now = opened.value.get(name);
  /** It was open here; without it now, another tab or the workbench has closed it. */
  const was = useRef(false);
  if (now) was.current = true;
  const start = () => {
    was.current = false;
    setFailed(null);
    open(name).catch((error: unknown) => setFailed((error as Error).name === "AbortError" ? CANCELLED : error));
  };
  useEffect(() => {
    if (!opened.value.has(name) && !opening.value.has(name)) start();
  }, [name, route.value]);
  if (now) return <>{show(now)}</>;
  if (was.current && failed === null && !opening.value.has(name)) {
    return (
      <div class="page">
        <h1>{name}</h1>
        <p>This connection was closed, here or in another tab.</p>
        <p>
          <Button label="Open it again" tone="primary" onClick={start} />
        </p>
      </div>
    );
  }
  return (
    <div class="page">
      <h1>{name}</h1>
      {failed === null ? (
        <div class="card">
          <Waiting what={`Opening ${name} …`} />
          <InstallProgress />
          <p>
            <Button label="Cancel" onClick={() => opening.value.get(name)?.abort()} />
          </p>
        </div>
      ) : (
        <>
          <ErrorBox error={failed} retry={start} act={(wanted) => void remedy(wanted, start)} />
          {connections.value?.connections.some((one) => one.name === name) && (
            <p>
              <Button icon="edit" label="Edit this connection" onClick={() => go({ view: "edit", connection: name })} />
            </p>
          )}
        </>
      )}
    </div>
  );
}

const CANCELLED = new Error("Opening was cancelled.");
