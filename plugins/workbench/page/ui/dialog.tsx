/** Dialogs: the browser's own, which holds the focus inside and gives it back. */

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
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
  useLayoutEffect(() => { // before the next key
    const before = document.activeElement as HTMLElement | null;
    const dialog = element.current!;
    dialog.showModal();
    return () => {
      dialog.close(); // until then, nothing else takes the focus
      if (before?.isConnected) before.focus({ preventScroll: true });
    };
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
