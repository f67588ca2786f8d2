/** Menus that open beside what they belong to. */

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Icon, type IconName } from "./icons.tsx";

export interface MenuItem {
  readonly label: string;
  readonly run: () => void;
  readonly icon?: IconName;
  readonly hint?: string;
  readonly disabled?: boolean;
  readonly checked?: boolean;
  readonly danger?: boolean;
}

interface Opened {
  readonly label: string;
  readonly items: readonly (MenuItem | "line")[];
  readonly anchor: DOMRect;
}

/** What a view offers for the place where a person is; `kind` says of what. */
interface Offer {
  readonly kind: string;
  readonly items: readonly (MenuItem | "line")[];
}

let offered: () => readonly Offer[] = () => [];

/** Let the palette find what the menus of a view hold; returns what ends that. */
export function offer(items: () => readonly Offer[]): () => void {
  offered = items;
  return () => {
    if (offered === items) offered = () => [];
  };
}

/** What is offered here and can be done now. */
export function offersHere(): readonly { readonly kind: string; readonly item: MenuItem }[] {
  return offered().flatMap(({ kind, items }) => items.flatMap((item) => (item === "line" || item.disabled ? [] : [{ kind, item }])));
}

const opened = signal<Opened | null>(null);

/** Open the one menu of the page; the focus returns to where it was. */
export function openMenu(label: string, items: readonly (MenuItem | "line")[], anchor: DOMRect): void {
  opened.value = { label, items, anchor };
}

export function MenuHost() {
  const menu = opened.value;
  return menu ? <Menu key={menu.label} {...menu} /> : null;
}

function Menu({ label, items, anchor }: Opened) {
  const element = useRef<HTMLDivElement>(null);
  const before = useRef(document.activeElement as HTMLElement | null);
  const close = (back = true) => {
    opened.value = null;
    if (back) before.current?.focus({ preventScroll: true });
  };
  useLayoutEffect(() => {
    const box = element.current;
    if (!box) return;
    const { width, height } = box.getBoundingClientRect();
    const below = anchor.bottom + height + 8 <= innerHeight;
    box.style.left = `${Math.max(8, Math.min(anchor.left, innerWidth - width - 8))}px`;
    box.style.top = `${Math.max(8, below ? anchor.bottom + 2 : Math.min(anchor.top - height - 2, innerHeight - height - 8))}px`;
    box.querySelector<HTMLElement>("[role^=menuitem]:not(:disabled)")?.focus();
  }, []);
  useEffect(() => {
    const outside = (event: Event) => {
      if (!element.current?.contains(event.target as Node)) close(false);
    };
    const timer = setTimeout(() => document.addEventListener("pointerdown", outside, true));
    return () => {
      clearTimeout(timer);
      document.removeEventListener("pointerdown", outside, true);
    };
  }, []);
  const key = (event: KeyboardEvent) => {
    const all = [...(element.current?.querySelectorAll<HTMLElement>("[role^=menuitem]:not(:disabled)") ?? [])];
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Escape" || event.key === "Tab") close();
    else if (to !== undefined) all.at(to % all.length)?.focus();
    else if (event.key.length === 1) {
      const begins = (one: HTMLElement) => one.textContent?.toLowerCase().startsWith(event.key.toLowerCase());
      [...all.slice(at + 1), ...all.slice(0, at + 1)].find(begins)?.focus();
      if (event.key === " ") return;
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="menu" role="menu" aria-label={label} ref={element} onKeyDown={key}>
      {items.map((item, at) =>
        item === "line" ? (
          <div role="separator" class="menu-line" key={at} />
        ) : (
          <button
            type="button"
            key={at}
            role={item.checked === undefined ? "menuitem" : "menuitemcheckbox"}
            aria-checked={item.checked}
            class={item.danger ? "menu-item danger" : "menu-item"}
            disabled={item.disabled}
            title={item.hint}
            onClick={() => {
              close();
              item.run();
            }}
          >
            <span class="menu-icon">
              {item.checked ? <Icon name="check" /> : item.icon && <Icon name={item.icon} />}
            </span>
            <span>{item.label}</span>
          </button>
        ),
      )}
    </div>
  );
}
