/** The question before a view is left that holds what was not sent; until it is answered, the view stays as it is. */

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Button } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";

interface Choice {
  readonly label: string;
  readonly tone?: "plain" | "danger";
  /** Done before the view is left. */
  readonly run?: () => void;
}

interface Asked {
  readonly title: string;
  readonly text: ComponentChildren;
  readonly choices: readonly Choice[];
  readonly answer: (leave: boolean) => void;
}

const asked = signal<Asked | null>(null);

/** Ask whether to leave; true if one of the choices was taken, false if the person stays. */
export function askToLeave(title: string, text: ComponentChildren, choices: readonly Choice[]): Promise<boolean> {
  asked.value?.answer(false);
  return new Promise((resolve) => {
    const answer = (leave: boolean) => {
      asked.value = null;
      resolve(leave);
    };
    asked.value = { title, text, choices, answer };
  });
}

export function LeaveQuestion() {
  const question = asked.value;
  if (!question) return null;
  const { title, text, choices, answer } = question;
  return (
    <Dialog
      title={title}
      onClose={() => answer(false)}
      footer={
        <>
          {choices.map(({ label, tone, run }) => (
            <Button key={label} label={label} tone={tone} onClick={() => (run?.(), answer(true))} />
          ))}
          <Button label="Stay" tone="primary" onClick={() => answer(false)} />
        </>
      }
    >
      {text}
    </Dialog>
  );
}
