/** Dropping a whole object: behind its typed name and the exact request (E31). */

import { useState } from "preact/hooks";
import type { OpenConnection, Planned } from "../messages.ts";
import { go } from "../state/route.ts";
import { changes, remedy } from "../state/store.ts";
import { Button, ErrorBox, Notes } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { toast } from "../ui/toasts.tsx";
import { Failure, call } from "../wire/client.ts";
import { Steps } from "./steps.tsx";

export function DropObject({ open, object, close }: { open: OpenConnection; object: string; close: () => void }) {
  const { connection } = open;
  const [typed, setTyped] = useState("");
  const [planned, setPlanned] = useState<Planned | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  const plan = () => {
    setFailed(null);
    const asked = { connection, changes: [{ kind: "drop" as const, object }], undo: false, typed };
    call("changes/plan", asked).then(setPlanned, setFailed);
  };
  const drop = async () => {
    if (!planned) return;
    setFailed(null);
    try {
      const { outcomes } = await call("changes/apply", { connection, plan: planned.plan });
      const [{ status, reason }] = outcomes;
      if (status !== "applied") throw new Failure({ code: status, message: reason || `The drop is ${status}.` });
      changes.value += 1;
      toast(`${object} is dropped`, "good");
      go({ view: "connection", connection });
    } catch (error) {
      setPlanned(null);
      setFailed(error);
    }
  };
  return (
    <Dialog
      title={`Drop ${object}?`}
      onClose={close}
      footer={
        <>
          <Button label="Keep it" onClick={close} />
          {planned ? (
            <Button label={`Drop ${object}`} tone="danger" disabled={!planned.steps.length} onClick={() => void drop()} />
          ) : (
            <Button label="Show the request" disabled={typed !== object} onClick={plan} />
          )}
        </>
      }
    >
      <p>All rows of this object and its definition are deleted on the server. This cannot be undone.</p>
      <label class="field">
        <span>Type the name of the object</span>
        <input value={typed} autocomplete="off" spellcheck={false} disabled={!!planned} onInput={(event) => setTyped(event.currentTarget.value)} />
      </label>
      {failed !== null && <ErrorBox error={failed} act={(wanted) => void remedy(wanted, plan)} />}
      {planned && (
        <>
          <Notes notes={planned.notes} />
          {planned.refusals.map(({ reason }) => <p class="field-error" key={reason}>{reason}</p>)}
          <Steps steps={planned.steps} />
        </>
      )}
    </Dialog>
  );
}
