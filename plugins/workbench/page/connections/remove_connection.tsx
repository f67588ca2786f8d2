/** Removing a saved connection, after a question. */

import { useState } from "preact/hooks";
import { changesOf, forgetChanges } from "../state/change_list.ts";
import { forgetConsoles } from "../console/left.ts";
import { go } from "../state/route.ts";
import { loadConnections } from "../state/store.ts";
import { Button, ErrorBox } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { call } from "../wire/client.ts";

export function RemoveConnection({ name, close }: { name: string; close: () => void }) {
  const [failed, setFailed] = useState<unknown>(null);
  const waiting = changesOf(name).list.value.length;
  const remove = async () => {
    try {
      await call("connections/remove", { name });
      forgetChanges(name);
      forgetConsoles(name);
      await loadConnections();
      close();
      go({ view: "home" });
    } catch (error) {
      setFailed(error);
    }
  };
  return (
    <Dialog
      title={`Remove ${name}?`}
      onClose={close}
      footer={
        <>
          <Button label="Keep it" onClick={close} />
          <Button label="Remove" tone="danger" onClick={() => void remove()} />
        </>
      }
    >
      {waiting > 0 && (
        <p class="banner warn">
          {waiting === 1 ? "A change that is not sent is" : `${waiting} changes that are not sent are`} lost.
        </p>
      )}
      <p>The saved connection and the secrets stored for it are removed. Nothing on the server changes.</p>
      {failed !== null && <ErrorBox error={failed} />}
    </Dialog>
  );
}
