/** Text that comes to the active cell: by keys, and by input methods, dead keys and pickers of the system. */

import type { CellEditor } from "./cell_editor.ts";

/** What follows when a text comes to the cell. */
export interface TextActions {
  typed(text: string): void;
  /** An input method begins: where it shows its text; null if the cell takes none. */
  compose(): CellEditor | null;
}

/** The part of https://www.w3.org/TR/edit-context/ that is used; TypeScript does not describe it yet. */
interface Context extends EventTarget {
  readonly text: string;
  updateText(start: number, end: number, text: string): void;
  updateSelection(start: number, end: number): void;
  updateControlBounds(bounds: DOMRect): void;
  updateSelectionBounds(bounds: DOMRect): void;
}

const MAC = /mac/i.test(globalThis.navigator?.platform ?? "");

/**
 * Whether a key types a character. With AltGr, which some systems report as Ctrl and Alt, and with Option on a Mac, it
 * does so, too.
 */
export function isTyped(event: KeyboardEvent): boolean {
  if ([...event.key].length !== 1) return false;
  if (event.getModifierState("AltGraph")) return true;
  return !event.ctrlKey && !event.metaKey && (MAC || !event.altKey);
}

/**
 * Takes text for the cell that has the focus. A cell is no field, and browsers send input methods to fields only: an
 * edit context makes it a target. Browsers without those get an empty field at the first key of an input method.
 */
export class TextInput {
  readonly #actions: TextActions;
  readonly #context: Context | null;
  #cell: HTMLElement | null = null;
  #editor: CellEditor | null = null;
  #composing = false;

  constructor(actions: TextActions) {
    this.#actions = actions;
    const kind = (globalThis as { EditContext?: new () => Context }).EditContext;
    this.#context = kind ? new kind() : null;
    this.#context?.addEventListener("compositionstart", () => this.#begin());
    this.#context?.addEventListener("textupdate", () => this.#update());
    this.#context?.addEventListener("compositionend", () => this.#end());
  }

  /** Take the text of this cell from now on. */
  attach(cell: HTMLElement | null): void {
    if (!this.#context || cell === this.#cell) return;
    const give = (element: HTMLElement, context: Context | null) =>
      ((element as unknown as { editContext: Context | null }).editContext = context);
    if (this.#cell) give(this.#cell, null);
    if (cell) give(cell, this.#context);
    this.#cell = cell;
  }

  /** Whether a key is the first of an input method that needs a field. */
  begins(event: KeyboardEvent): boolean {
    return !this.#context && (event.key === "Dead" || event.key === "Process" || event.keyCode === 229);
  }

  #begin(): void {
    this.#composing = true;
    const place = this.#cell?.getBoundingClientRect();
    if (place) {
      this.#context?.updateControlBounds(place);
      this.#context?.updateSelectionBounds(place);
    }
    this.#editor = this.#actions.compose();
  }

  #update(): void {
    const text = this.#context?.text ?? "";
    if (this.#composing) this.#editor?.show(text);
    else if (text) {
      this.#clear();
      this.#actions.typed(text);
    }
  }

  #end(): void {
    const text = this.#context?.text ?? "";
    const editor = this.#editor;
    [this.#composing, this.#editor] = [false, null];
    this.#clear();
    if (text) editor?.settle(text);
    else editor?.cancel();
  }

  #clear(): void {
    this.#context?.updateText(0, this.#context.text.length, "");
    this.#context?.updateSelection(0, 0);
  }
}
