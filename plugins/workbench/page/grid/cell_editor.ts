/** The field in which a cell is edited in place. */

/** What a person decided: the text and where to go next, or nothing. */
export interface Edited {
  readonly text: string;
  readonly next: "down" | "right" | "left" | "stay";
}

const MOVES = ["scroll", "resize"] as const;

/** How a field begins. */
export interface Beginning {
  readonly text: string;
  /** The text was typed or pasted, so the next key goes on after it; else it is the old value, which a key replaces. */
  readonly typed: boolean;
  /** An input method is still at work on the text, elsewhere: the field only shows it until `settle`. */
  readonly composing?: boolean;
}

/** A field that is laid over a cell. */
export interface CellEditor {
  /** Show what an input method has so far. */
  show(text: string): void;
  /** The input method has ended: go on in the field, with the cursor after the text. */
  settle(text: string): void;
  cancel(): void;
}

/**
 * Lay a field over a cell, and keep it there. It ends with Enter, Tab or a click elsewhere, which keep the text, as does
 * the cell's leaving the view; or with Escape.
 *
 * `locate` returns the cell's place in the window; null while it is out of view.
 */
export function editCell(
  locate: () => DOMRect | null,
  label: string,
  begin: Beginning,
  done: (edited: Edited | null) => void,
): CellEditor {
  const field = document.createElement("textarea");
  field.className = "cell-editor";
  field.value = begin.text;
  field.setAttribute("aria-label", label);
  field.rows = 1;
  field.spellcheck = false;
  const lay = ({ left, top, width, height }: DOMRect) => {
    const wide = Math.min(innerWidth, Math.max(width, 160));
    Object.assign(field.style, {
      left: `${Math.max(0, Math.min(left, innerWidth - wide))}px`,
      top: `${top}px`,
      width: `${wide}px`,
      height: `${height}px`,
    });
  };
  const begun = locate();
  if (begun) lay(begun);
  let frame = 0;
  let over = false;
  const end = (edited: Edited | null) => {
    if (over) return;
    over = true;
    for (const name of MOVES) removeEventListener(name, moved, true);
    cancelAnimationFrame(frame);
    field.remove();
    done(edited);
  };
  const keep = () => end({ text: field.value, next: "stay" });
  const follow = () => {
    const place = locate();
    if (place) lay(place);
    else keep();
  };
  /** The cell moves with what scrolls around it, one frame after that; a long text scrolls the field itself. */
  const moved = (event: Event) => {
    if (event.target === field) return;
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => {
      frame = requestAnimationFrame(follow);
    });
  };
  field.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.isComposing || event.keyCode === 229) return; // the key is the input method's
    if (event.key === "Escape") end(null);
    else if (event.key === "Enter" && event.altKey) field.setRangeText("\n", field.selectionStart, field.selectionEnd, "end");
    else if (event.key === "Enter") end({ text: field.value, next: "down" });
    else if (event.key === "Tab") end({ text: field.value, next: event.shiftKey ? "left" : "right" });
    else return;
    event.preventDefault();
  });
  field.addEventListener("blur", keep);
  for (const name of MOVES) addEventListener(name, moved, true);
  document.body.append(field);
  const take = () => {
    field.focus({ preventScroll: true });
    if (begin.typed) field.setSelectionRange(field.value.length, field.value.length);
    else field.select();
  };
  if (!begin.composing) take();
  return {
    show: (text) => {
      field.value = text;
    },
    settle: (text) => {
      if (over) return;
      field.value = text;
      take();
    },
    cancel: () => end(null),
  };
}
