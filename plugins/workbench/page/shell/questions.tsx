/** Questions that need a person's consent; every tab shows them until one answers. */

import { useState } from "preact/hooks";
import type { OpenQuestion } from "../messages.ts";
import { Button, ErrorBox } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { call } from "../wire/client.ts";
import { questions } from "../state/store.ts";

export function Questions() {
  const first = questions.value[0];
  return first ? <Ask key={first.id} question={first} /> : null;
}

const TITLES: Record<string, string> = {
  permissions: "What a driver may do",
  publisher: "Who vouches for a driver",
  sandbox: "A weaker sandbox",
  change: "Confirm a change",
  reference: "Something to read or run",
  address: "A changed address",
};

function Ask({ question }: { question: OpenQuestion }) {
  const [failed, setFailed] = useState<unknown>(null);
  const answer = async (yes: boolean) => {
    try {
      await call("questions/answer", { id: question.id, yes });
      questions.value = questions.value.filter((one) => one.id !== question.id);
    } catch (error) {
      setFailed(error);
    }
  };
  return (
    <Dialog
      title={TITLES[question.subject] ?? "A question"}
      onClose={() => void answer(false)}
      footer={
        <>
          <Button label="No" onClick={() => void answer(false)} />
          <Button label="Yes" tone="primary" onClick={() => void answer(true)} />
        </>
      }
    >
      <p class="question">{question.text}</p>
      {question.details.length > 0 && (
        <pre class="details" tabIndex={0} aria-label="Details">{question.details.join("\n")}</pre>
      )}
      {failed !== null && <ErrorBox error={failed} />}
    </Dialog>
  );
}
