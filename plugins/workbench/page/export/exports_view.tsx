/** Exports since the start: progress, cancel, what became of each. */

import type { ExportJob } from "../messages.ts";
import { write } from "../state/route.ts";
import { exports, imports, state } from "../state/store.ts";
import { Badge, Button, CopyCommand, Blank, ErrorBox, Notes, asFailure } from "../ui/controls.tsx";
import { fileSize, whole } from "../ui/figures.ts";
import { toast } from "../ui/toasts.tsx";
import { call } from "../wire/client.ts";

export function ExportsView() {
  const all = [...exports.value].reverse();
  const folder = state.value?.export_folder ?? "";
  return (
    <div class="page">
      <h1>Exports</h1>
      {!all.length && (
        <Blank icon="export" title="Nothing has been exported yet">
          <p>A grid exports its rows with its filter, {folder ? `into the folder ${folder} or ` : ""}as a download.</p>
          {!folder && (
            <details>
              <summary>Export into a folder instead</summary>
              <p>Start the workbench with a folder:</p>
              <CopyCommand command="dragoman workbench --export-to DIR" />
            </details>
          )}
        </Blank>
      )}
      <ul class="cards single">
        {all.map((one) => <Item key={one.id} export_={one} />)}
      </ul>
      {imports.value.length > 0 && <h2>Imports</h2>}
      <ul class="plain-list">
        {[...imports.value].reverse().map(({ id, connection, object, file, state, rows }) => (
          <li key={id}>
            <a href={write({ view: "import", connection, object })}><bdi>{file}</bdi></a> into {connection} · <bdi>{object}</bdi>: {whole(rows ?? 0)} rows, {state}
          </li>
        ))}
      </ul>
    </div>
  );
}

const TONES: Record<ExportJob["state"], "good" | "bad" | "plain" | "accent" | "warn"> = {
  waiting: "plain",
  running: "accent",
  finished: "good",
  failed: "bad",
  cancelled: "warn",
};

function Item({ export_ }: { export_: ExportJob }) {
  const { id, connection, object, file, state, error } = export_;
  const [rows, bytes, total] = [export_.rows ?? 0, export_.bytes ?? 0, export_.total ?? null];
  const cancel = () =>
    call("exports/cancel", { id }).catch((failed: unknown) => toast(asFailure(failed).message, "bad"));
  const resume = () =>
    call("exports/resume", { id }).catch((failed: unknown) => toast(asFailure(failed).message, "bad"));
  return (
    <li class="card">
      <div class="card-link">
        <strong>{file}</strong>
        <span class="muted">{connection} · {object}</span>
        <span>
          {whole(rows)}{total ? ` of ${whole(total)}` : ""} rows, {fileSize(bytes)}
        </span>
      </div>
      <div class="card-badges"><Badge tone={TONES[state]}>{state}</Badge></div>
      {(state === "running" || state === "waiting") && (
        <>
          <progress max={total ?? undefined} value={total ? rows : undefined} aria-label={`Export of ${object}`} />
          <Button label="Cancel" onClick={() => void cancel()} />
        </>
      )}
      {export_.sha256 && <p class="muted digest">SHA-256 <code>{export_.sha256}</code></p>}
      <Notes notes={export_.notes ?? []} />
      {error && <ErrorBox error={error} />}
      {export_.resumable && <Button icon="play" label="Resume" onClick={() => void resume()} />}
    </li>
  );
}
