/** A view of a connection: shown once it is open; opening it installs a driver that is missing. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Opened } from "../messages.ts";
import { InstallProgress } from "../marketplace/install_progress.tsx";
import { Button, ErrorBox, Waiting } from "../ui/controls.tsx";
import { go } from "./route.ts";
import { open, opened, opening, remedy } from "./store.ts";

export function WhenOpen({ name, show }: { name: string; show: (open: Opened) => ComponentChildren }) {
  const [failed, setFailed] = useState<unknown>(null);
  const now = opened.value.get(name);
  const start = () => {
    setFailed(null);
    open(name).catch((error: unknown) => setFailed((error as Error).name === "AbortError" ? CANCELLED : error));
  };
  useEffect(() => {
    if (!opened.value.has(name) && !opening.value.has(name)) start();
  }, [name]);
  if (now) return <>{show(now)}</>;
  return (
    <div class="page">
      <h1>{name}</h1>
      {failed === null ? (
        <div class="card">
          <Waiting what={`Opening ${name} …`} />
          <InstallProgress />
          <Button label="Cancel" onClick={() => opening.value.get(name)?.abort()} />
        </div>
      ) : (
        <>
          <ErrorBox error={failed} retry={start} act={(wanted) => void remedy(wanted, start)} />
          <p>
            <Button icon="edit" label="Edit this connection" onClick={() => go({ view: "edit", connection: name })} />
          </p>
        </>
      )}
    </div>
  );
}

const CANCELLED = new Error("Opening was cancelled.");
