/** Dialogs: the browser's own, which holds the focus inside and gives it back. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Button } from "./controls.tsx";

export function Dialog({ title, wide, onClose, children, footer }: {
  title: string;
  wide?: boolean;
  onClose: () => void;
  children: ComponentChildren;
  footer?: ComponentChildren;
}) {
  const element = useRef<HTMLDialogElement>(null);
  const label = useId();
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    element.current?.showModal();
    return () => before?.isConnected && before.focus({ preventScroll: true });
  }, []);
  return (
    <dialog
      ref={element}
      class={wide ? "dialog wide" : "dialog"}
      aria-labelledby={label}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header class="dialog-head">
        <h2 id={label}>{title}</h2>
        <Button icon="close" label="Close" bare tone="quiet" onClick={onClose} />
      </header>
      <div class="dialog-body">{children}</div>
      {footer && <footer class="dialog-foot">{footer}</footer>}
    </dialog>
  );
}
