/** A row of tools. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "./controls.tsx";
import { openMenu } from "./menu.tsx";

const TOOLS = "button:not(:disabled), a[href], input[type=checkbox]:not(:disabled)";

/**
 * Tools that are one stop of the Tab key: arrows, Home and End go from one to the next, and the last one that was used
 * is the stop. Fields between them are stops of their own, because arrows move in their text.
 */
export function Toolbar({ label, children }: { label: string; children: ComponentChildren }) {
  const bar = useRef<HTMLDivElement>(null);
  const stop = useRef<HTMLElement | null>(null);
  const every = () => [...(bar.current?.querySelectorAll<HTMLElement>(TOOLS) ?? [])].filter((tool) => !tool.closest("dialog"));
  const tools = () => every().filter((tool) => tool.checkVisibility());
  const settle = (wanted = stop.current) => {
    const all = tools();
    stop.current = wanted && all.includes(wanted) ? wanted : (all[0] ?? null);
    for (const tool of every()) tool.tabIndex = tool === stop.current ? 0 : -1;
  };
  useEffect(() => {
    if (!bar.current) return;
    settle();
    const tools = new MutationObserver(() => settle());
    tools.observe(bar.current, { childList: true, subtree: true, attributeFilter: ["disabled", "href"] });
    const room = new ResizeObserver(() => settle());
    room.observe(bar.current);
    return () => {
      tools.disconnect();
      room.disconnect();
    };
  }, []);
  const move = (event: KeyboardEvent) => {
    const all = tools();
    const at = all.indexOf(event.target as HTMLElement);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: -1 }[event.key];
    if (at < 0 || to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    all.at(to % all.length)?.focus();
  };
  return (
    <div
      class="toolbar"
      role="toolbar"
      aria-label={label}
      ref={bar}
      onKeyDown={move}
      onFocusIn={({ target }) => tools().includes(target as HTMLElement) && settle(target as HTMLElement)}
    >
      {children}
    </div>
  );
}

/** Tools that are used seldom: where there is little room, they are in a menu. */
export function Seldom({ children }: { children: ComponentChildren }) {
  return <span class="seldom">{children}</span>;
}

/** The menu of the tools that are used seldom, where there is no room for them. */
export function MoreTools() {
  const open = (event: MouseEvent) => {
    const button = event.currentTarget as Element;
    const tools = [...(button.closest(".toolbar")?.querySelectorAll<HTMLElement>(".seldom :is(button, a[href])") ?? [])];
    const items = tools.map((tool) => ({
      label: tool.ariaLabel ?? tool.textContent ?? "",
      disabled: (tool as HTMLButtonElement).disabled,
      checked: tool.ariaPressed === null ? undefined : tool.ariaPressed === "true",
      run: () => tool.click(),
    }));
    openMenu("More tools", items, button.getBoundingClientRect());
  };
  return (
    <span class="more-tools">
      <Button icon="more" label="More tools" bare onClick={open} />
    </span>
  );
}
