/** Short messages at the edge of the page. */

import { signal } from "@preact/signals";
import { Icon } from "./icons.tsx";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: "good" | "bad" | "plain";
  readonly action: ToastAction | null;
}

/** What a button in a message does, such as taking back what the message tells of. */
export interface ToastAction {
  readonly label: string;
  readonly run: () => void;
}

const toasts = signal<readonly Toast[]>([]);
let count = 0;

/**
 * Show a message for a few seconds, once however often it comes; one with a button for longer, and an error until it is
 * closed.
 */
export function toast(text: string, tone: Toast["tone"] = "plain", action: ToastAction | null = null): void {
  count += 1;
  const id = count;
  const others = toasts.value.filter((one) => one.text !== text || one.tone !== tone);
  toasts.value = [...others.slice(-3), { id, text, tone, action }];
  if (tone !== "bad") setTimeout(() => dismiss(id), action ? 15_000 : 4_000);
}

/** Take back a message that no longer holds. */
export function retract(text: string): void {
  toasts.value = toasts.value.filter((one) => one.text !== text);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

export async function copyText(text: string, what = "Copied"): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(what, "good");
  } catch {
    toast("The browser does not let this page write to the clipboard.", "bad");
  }
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, tone, action }) => (
        <div class={`toast ${tone}`} key={id}>
          <span>{text}</span>
          {action && (
            <button type="button" class="button plain" onClick={() => (dismiss(id), action.run())}>{action.label}</button>
          )}
          <button type="button" class="button quiet bare" aria-label="Close message" onClick={() => dismiss(id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
