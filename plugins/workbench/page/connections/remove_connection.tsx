/** Removing a saved connection, after a question. */

import { useState } from "preact/hooks";
import { forgetChanges } from "../changes/change_list.ts";
import { go } from "../shell/route.ts";
import { loadConnections } from "../shell/store.ts";
import { Button, ErrorBox } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { call } from "../wire/client.ts";

export function RemoveConnection({ name, close }: { name: string; close: () => void }) {
  const [failed, setFailed] = useState<unknown>(null);
  const remove = async () => {
    try {
      await call("connections/remove", { name });
      forgetChanges(name);
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
      <p>The saved connection and the secrets stored for it are removed. Nothing on the server changes.</p>
      {failed !== null && <ErrorBox error={failed} />}
    </Dialog>
  );
}
