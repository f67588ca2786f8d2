/** The field in which a cell is edited in place. */

/** What a person decided: the text and where to go next, or nothing. */
export interface Edited {
  readonly text: string;
  readonly next: "down" | "right" | "left" | "stay";
}

/**
 * Lay a field over a cell; it ends with Enter, Tab, a click elsewhere or a scroll, which keep the text, or with Escape.
 */
export function editCell(cell: HTMLElement, label: string, text: string, done: (edited: Edited | null) => void): void {
  const place = cell.getBoundingClientRect();
  const field = document.createElement("input");
  field.className = "cell-editor";
  field.value = text;
  field.setAttribute("aria-label", label);
  field.autocomplete = "off";
  field.spellcheck = false;
  Object.assign(field.style, {
    left: `${place.left}px`,
    top: `${place.top}px`,
    width: `${Math.max(place.width, 160)}px`,
    height: `${place.height}px`,
  });
  let over = false;
  const end = (edited: Edited | null) => {
    if (over) return;
    over = true;
    removeEventListener("scroll", keep, true);
    field.remove();
    done(edited);
  };
  const keep = () => end({ text: field.value, next: "stay" });
  field.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.isComposing) return;
    if (event.key === "Escape") end(null);
    else if (event.key === "Enter") end({ text: field.value, next: "down" });
    else if (event.key === "Tab") end({ text: field.value, next: event.shiftKey ? "left" : "right" });
    else return;
    event.preventDefault();
  });
  field.addEventListener("blur", keep);
  addEventListener("scroll", keep, true);
  document.body.append(field);
  field.focus({ preventScroll: true });
  field.select();
}
