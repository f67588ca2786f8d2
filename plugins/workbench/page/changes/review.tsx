/** The review of changes: the exact requests before they are sent, and what became of each row after. */

import { useEffect, useState } from "preact/hooks";
import { spelled } from "../grid/copy_formats.ts";
import type { Applied, OpenConnection, OutcomeAnswer, Planned } from "../messages.ts";
import { remedy } from "../state/store.ts";
import { Badge, Button, ErrorBox, Notes, Waiting } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { call } from "../wire/client.ts";
import { type Change, changesOf, toEntry } from "../state/change_list.ts";
import { Conflict } from "./conflict.tsx";
import { Steps } from "./steps.tsx";

interface Props {
  readonly open: OpenConnection;
  readonly changes: readonly Change[];
  readonly close: () => void;
  /** The changes that reached the server, and those that met another one. */
  readonly applied: (changes: readonly Change[]) => void;
}

export function Review({ open, changes, close, applied }: Props) {
  const { connection } = open;
  const list = changesOf(connection);
  const [sent] = useState(changes);
  const [planned, setPlanned] = useState<Planned | null>(null);
  const [outcome, setOutcome] = useState<Applied | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const plan = () => {
    setFailed(null);
    replan();
  };
  const replan = () => {
    setPlanned(null);
    call("changes/plan", { connection, changes: sent.map(toEntry), undo: true }).then(setPlanned, setFailed);
  };
  useEffect(plan, []);
  const apply = async () => {
    if (!planned) return;
    setBusy(true);
    setFailed(null);
    try {
      const now = await call("changes/apply", { connection, plan: planned.plan });
      setOutcome(now);
      const done = now.outcomes.filter((one) => one.status === "applied" || one.status === "skipped");
      list.settle(new Set(done.map((one) => sent[one.change].number)));
      applied(now.outcomes.flatMap(({ status, change }) => (status === "refused" ? [] : [sent[change]])));
    } catch (error) {
      setFailed(error);
      replan(); // a plan is sent once, whatever became of it
    }
    setBusy(false);
  };
  return (
    <Dialog
      wide
      title={outcome ? "What became of the changes" : "Review the changes"}
      onClose={close}
      footer={
        outcome ? (
          <>
            {outcome.undo && (
              <a class="button plain" href={`download/${encodeURIComponent(outcome.undo)}`} download>
                Download the undo file
              </a>
            )}
            <Button label="Close" tone="primary" onClick={close} />
          </>
        ) : (
          <>
            <Button label="Cancel" onClick={close} />
            <Button
              label={planned ? `Send ${planned.steps.length} ${planned.steps.length === 1 ? "request" : "requests"}` : "Send"}
              tone="primary"
              busy={busy}
              disabled={!planned?.steps.length}
              onClick={() => void apply()}
            />
          </>
        )
      }
    >
      {open.guards.length > 0 && !outcome && (
        <p class="muted">Guards in force: {open.guards.join(", ")}</p>
      )}
      {failed !== null && <ErrorBox error={failed} retry={plan} act={(wanted) => void remedy(wanted, plan)} />}
      {!outcome && <Summary changes={sent} refusals={planned?.refusals ?? []} />}
      {!planned && failed === null && <Waiting what="Planning …" />}
      {planned && !outcome && (
        <>
          <Notes notes={planned.notes} />
          <Steps steps={planned.steps} />
          <p class="muted">{planned.undoable ? "An undo file is offered afterwards." : "These changes cannot be undone from here."}</p>
        </>
      )}
      {outcome && <Outcomes open={open} changes={sent} outcomes={outcome.outcomes} />}
    </Dialog>
  );
}

function Summary({ changes, refusals }: { changes: readonly Change[]; refusals: readonly OutcomeAnswer[] }) {
  return (
    <ul class="change-list">
      {changes.map((change, at) => {
        const refusal = refusals.find((one) => one.change === at);
        return (
          <li key={change.number}>
            <Badge tone={change.kind === "delete" ? "bad" : "accent"}>{change.kind}</Badge>
            <strong>{change.id || "new row"}</strong>
            <span class="grow">
              {Object.entries(change.values).map(([name, value]) => (
                <span class="changed-cell" key={name}>
                  {name}: {name in change.before && <del>{spelled(change.before[name])}</del>} <ins>{spelled(value)}</ins>
                </span>
              ))}
            </span>
            {refusal && <span class="field-error">{refusal.reason}</span>}
          </li>
        );
      })}
    </ul>
  );
}

const TONES: Record<OutcomeAnswer["status"], "good" | "warn" | "bad" | "plain"> = {
  applied: "good",
  skipped: "plain",
  refused: "bad",
  conflict: "warn",
  failed: "bad",
  unknown: "warn",
};

function Outcomes({ open, changes, outcomes }: {
  open: OpenConnection;
  changes: readonly Change[];
  outcomes: readonly OutcomeAnswer[];
}) {
  return (
    <div role="status">
      <ul class="change-list">
        {outcomes.map((outcome) => {
          const change = changes[outcome.change];
          return (
            <li key={outcome.change}>
              <Badge tone={TONES[outcome.status]}>{outcome.status}</Badge>
              <strong>{outcome.id || change?.id}</strong>
              <span class="grow">{outcome.reason}</span>
              {outcome.status === "conflict" && change?.kind === "update" && <Conflict open={open} change={change} />}
            </li>
          );
        })}
      </ul>
    </div>
  );
}
