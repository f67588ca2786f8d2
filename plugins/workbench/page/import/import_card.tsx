/** One import: how far it is, what became of the rows, and what can be done about those that were not written. */

import { useState } from "preact/hooks";
import type { ImportJob, RejectedRows } from "../messages.ts";
import { write } from "../state/route.ts";
import { Badge, Button, ErrorBox, Notes, asFailure } from "../ui/controls.tsx";
import { duration, whole } from "../ui/figures.ts";
import { toast } from "../ui/toasts.tsx";
import { call } from "../wire/client.ts";

const TONES: Record<ImportJob["state"], "good" | "bad" | "accent" | "warn"> = {
  running: "accent",
  finished: "good",
  failed: "bad",
  cancelled: "warn",
};
/** The outcomes that a person reads of first. */
const WORDS = [
  ["applied", "written"], ["skipped", "kept as they were"], ["conflict", "had an id that exists"], ["refused", "rejected"],
  ["failed", "failed"], ["unknown", "without an answer"],
] as const;

export function ImportCard({ job }: { job: ImportJob }) {
  const { id, object, file, state, error, part } = job;
  const [rejected, setRejected] = useState<RejectedRows | null>(null);
  const [stopping, setStopping] = useState(false);
  const act = (route: "imports/cancel" | "imports/resume") =>
    void call(route, { id }).catch((failed: unknown) => toast(asFailure(failed).message, "bad"));
  const look = async () => {
    if (rejected) return setRejected(null);
    try {
      setRejected(await call("imports/rejected", { id }));
    } catch (failed) {
      toast(asFailure(failed).message, "bad");
    }
  };
  const counts = WORDS.filter(([status]) => job.counts?.[status]).map(([status, words]) => `${whole(job.counts![status])} ${words}`);
  const ended = state !== "running";
  return (
    <li class="card">
      <div class="import-card-head">
        <strong><bdi>{file}</bdi></strong>
        <span>into <a href={write({ view: "rows", connection: job.connection, rows: { object } })}><bdi>{object}</bdi></a></span>
        <Badge tone={TONES[state]}>{job.dry_run ? `dry run, ${state}` : state}</Badge>
      </div>
      <p>
        {whole(job.rows ?? 0)} {job.rows === 1 ? "row" : "rows"} read{counts.length ? `: ${counts.join(", ")}` : ""}
        {job.dry_run && ended && "; nothing was sent"}
        {!!job.seconds && ended && ` · ${duration(job.seconds)}`}
      </p>
      {!ended && <progress max={1} value={part ?? undefined} aria-label={`Import of ${file}`} />}
      <Notes notes={job.notes ?? []} />
      {error && <ErrorBox error={error} />}
      {(job.requests ?? []).map((text, at) => <pre class="import-request" key={at} tabIndex={0}>{text}</pre>)}
      {(!ended || job.resumable || job.rejected || job.undo) && (
        <div class="actions">
          {!ended && <Button label={stopping ? "Cancel at once" : "Cancel"} title={stopping ? "Rows on their way may be in doubt" : "Once what was sent is answered"} onClick={() => { setStopping(true); act("imports/cancel"); }} />}
          {job.resumable && <Button icon="play" label="Resume" tone="primary" onClick={() => { setStopping(false); act("imports/resume"); }} />}
          {ended && job.rejected && <Button label={rejected ? "Hide the rejected rows" : "Show the rejected rows"} expanded={!!rejected} onClick={() => void look()} />}
          {ended && job.rejected && <Button icon="export" label="Download the rejected rows" tone="quiet" onClick={() => void fetchFile(id, "rejected")} />}
          {ended && job.undo && <Button icon="undo" label="Download the undo file" title="A change file that takes this import back" tone="quiet" onClick={() => void fetchFile(id, "undo")} />}
        </div>
      )}
      {rejected && (
        <div class="import-table" tabIndex={0} role="group" aria-label="Rejected rows, which scroll">
          <table>
            <thead><tr><th scope="col" class="import-number">row</th><th scope="col">why</th><th scope="col">as it was read</th></tr></thead>
            <tbody>
              {rejected.rows.map((row) => (
                <tr key={row.row}>
                  <th scope="row" class="import-number">{whole(row.row)}</th>
                  <td class="import-reason">{row.reason || row.code}</td>
                  <td><bdi title={row.text}>{row.text}</bdi></td>
                </tr>
              ))}
            </tbody>
          </table>
          {!rejected.whole && <p class="muted pad">These are the first {rejected.rows.length}; the download has all of them.</p>}
        </div>
      )}
    </li>
  );
}

async function fetchFile(id: string, file: "rejected" | "undo"): Promise<void> {
  try {
    const offered = await call("imports/download", { id, file });
    const link = document.createElement("a");
    link.href = `download/${encodeURIComponent(offered.ticket)}`;
    link.download = offered.file;
    link.click();
  } catch (failed) {
    toast(asFailure(failed).message, "bad");
  }
}
