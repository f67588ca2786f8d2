/** One import: how far it is, what became of the rows, and what can be done about those that were not written. */

import { useState } from "preact/hooks";
import type { ImportJob, RejectedRows } from "../messages.ts";
import { write } from "../state/route.ts";
import { heardOfImport } from "../state/store.ts";
import { Badge, Button, ErrorBox, Notes, asFailure } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
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
const UNDO_WORDS = [
  ["applied", "taken back"], ["conflict", "changed since, and left as they are"], ["refused", "refused"], ["failed", "failed"],
  ["unknown", "without an answer"],
] as const;

export function ImportCard({ job }: { job: ImportJob }) {
  const { id, object, file, state, error, part } = job;
  const [rejected, setRejected] = useState<RejectedRows | null>(null);
  const [stopping, setStopping] = useState(false);
  const [asking, setAsking] = useState(false);
  const undoes = !!job.undoes;
  const act = (route: "imports/cancel" | "imports/resume") =>
    void call(route, { id }).catch((failed: unknown) => toast(asFailure(failed).message, "bad"));
  const undo = async () => {
    setAsking(false);
    try {
      heardOfImport(await call("imports/undo", { id }));
    } catch (failed) {
      toast(asFailure(failed).message, "bad");
    }
  };
  const look = async () => {
    if (rejected) return setRejected(null);
    try {
      setRejected(await call("imports/rejected", { id }));
    } catch (failed) {
      toast(asFailure(failed).message, "bad");
    }
  };
  const counts = (undoes ? UNDO_WORDS : WORDS).filter(([status]) => job.counts?.[status]).map(([status, words]) => `${whole(job.counts![status])} ${words}`);
  const ended = state !== "running";
  const left = Object.entries(job.counts ?? {}).reduce((sum, [status, count]) => sum + (status === "applied" || status === "skipped" ? 0 : count), 0);
  const tone = state === "finished" && job.dry_run && left ? "warn" : TONES[state];
  return (
    <li class="card" tabIndex={-1}>
      <div class="import-card-head">
        <strong>{undoes && "Undo of "}<bdi>{file}</bdi></strong>
        <span>{undoes ? "in" : "into"} <a href={write({ view: "rows", connection: job.connection, rows: { object } })}><bdi>{object}</bdi></a></span>
        {job.undone ? <Badge>taken back</Badge> : <Badge tone={tone}>{job.dry_run ? `dry run, ${left && state === "finished" ? `${whole(left)} ${left === 1 ? "row" : "rows"} would be rejected` : state}` : state}</Badge>}
      </div>
      <p>
        {whole(job.rows ?? 0)} {job.rows === 1 ? "row" : "rows"}{undoes ? " to take back" : " read"}{counts.length ? `: ${counts.join(", ")}` : ""}
        {job.dry_run && ended && "; nothing was sent"}
        {!!job.seconds && ended && ` · ${duration(job.seconds)}`}
      </p>
      {!ended && <progress max={1} value={part ?? undefined} aria-label={`${undoes ? "Undo" : "Import"} of ${file}`} />}
      <Notes notes={job.notes ?? []} />
      {error && <ErrorBox error={error} />}
      {job.copies && ended && state !== "finished" && !!job.counts?.applied && (
        <p class="muted">
          {job.new_ids ? "The rows got new ids, so another copy adds them again: take these back first." : "To copy the rest, copy again, and keep the stored rows."}
        </p>
      )}
      {(job.requests ?? []).map((text, at) => <pre class="import-request" key={at} tabIndex={0}>{text}</pre>)}
      {(!ended || job.resumable || job.rejected || job.undo) && (
        <div class="actions">
          {!ended && <Button label={stopping ? "Cancel at once" : "Cancel"} title={stopping ? "Rows on their way may be in doubt" : "Once what was sent is answered"} onClick={() => { setStopping(true); act("imports/cancel"); }} />}
          {job.resumable && <Button icon="play" label="Resume" tone="primary" onClick={() => { setStopping(false); act("imports/resume"); }} />}
          {ended && job.rejected && <Button label={`${rejected ? "Hide" : "Show"} the ${undoes ? "rows that were left" : "rejected rows"}`} expanded={!!rejected} onClick={() => void look()} />}
          {ended && job.rejected && !undoes && <Button icon="export" label="Download the rejected rows" tone="quiet" onClick={() => void fetchFile(id, "rejected")} />}
          {ended && job.undo && <Button icon="undo" label="Undo the import …" onClick={() => setAsking(true)} />}
          {ended && job.undo && <Button icon="export" label="Download the undo file" title="A change file that takes this import back" tone="quiet" onClick={() => void fetchFile(id, "undo")} />}
        </div>
      )}
      {rejected && (
        <div class="import-table" tabIndex={0} role="group" aria-label={undoes ? "Rows that were left, which scroll" : "Rejected rows, which scroll"}>
          <table>
            <thead><tr><th scope="col" class="import-number">row</th><th scope="col">why</th><th scope="col">{undoes ? "id" : "as it was read"}</th></tr></thead>
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
          {!rejected.whole && <p class="muted pad">These are the first {rejected.rows.length}{undoes ? "." : "; the download has all of them."}</p>}
        </div>
      )}
      {asking && (
        <Dialog
          title="Undo this import?"
          onClose={() => setAsking(false)}
          footer={
            <>
              <Button label="Cancel" onClick={() => setAsking(false)} />
              <Button label="Undo the import" tone="danger" onClick={() => void undo()} />
            </>
          }
        >
          <p>The rows that it added to <bdi>{object}</bdi> are deleted; rows that it replaced get back what they held.</p>
          <p>A row that was changed since stays as it is, and is listed. <bdi>{object}</bdi> itself stays, even if the import made it.</p>
        </Dialog>
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
