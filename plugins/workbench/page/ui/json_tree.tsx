/** A JSON value as a tree that is opened branch by branch. */

import { useMemo, useState } from "preact/hooks";
import { type JsonNode, readJson } from "./json_text.ts";

const PART = 200;

export function JsonTree({ text, label }: { text: string; label: string }) {
  const read = useMemo(() => {
    try {
      return readJson(text);
    } catch {
      return null;
    }
  }, [text]);
  if (!read) return <pre class="value-text" tabIndex={0} aria-label={label}>{text}</pre>;
  return (
    <ul class="tree" role="tree" aria-label={label} onKeyDown={moveInTree}>
      <Branch name="" node={read} depth={0} first />
    </ul>
  );
}

function Branch({ name, node, depth, first }: { name: string; node: JsonNode; depth: number; first?: boolean }) {
  const [open, setOpen] = useState(depth < 2);
  const [shown, setShown] = useState(PART);
  const parts =
    node.kind === "object"
      ? node.members
      : node.kind === "array"
        ? node.items.map((item, at) => [String(at), item] as const)
        : null;
  const flip = () => parts?.length && setOpen(!open);
  return (
    <li role="none">
      <div
        class="tree-item"
        role="treeitem"
        aria-level={depth + 1}
        aria-expanded={parts?.length ? open : undefined}
        aria-selected="false"
        tabIndex={first ? 0 : -1}
        data-flip={parts?.length ? "" : undefined}
        onClick={flip}
      >
        <span class="tree-mark" aria-hidden="true">{parts?.length ? (open ? "▾" : "▸") : ""}</span>
        {name && <span class="tree-name">{name}: </span>}
        <Leaf node={node} open={open} />
      </div>
      {parts && open && (
        <ul role="group">
          {parts.slice(0, shown).map(([key, value], at) => (
            <Branch key={at} name={key} node={value} depth={depth + 1} />
          ))}
          {parts.length > shown && (
            <li role="none">
              <button type="button" class="button quiet" onClick={() => setShown(shown + PART * 5)}>
                {parts.length - shown} more
              </button>
            </li>
          )}
        </ul>
      )}
    </li>
  );
}

function Leaf({ node, open }: { node: JsonNode; open: boolean }) {
  if (node.kind === "object") return <Count marks="{}" count={node.members.length} open={open} />;
  if (node.kind === "array") return <Count marks="[]" count={node.items.length} open={open} />;
  const text = node.kind === "string" ? JSON.stringify(node.text) : node.text;
  return <span class={`json-${node.kind}`}>{text}</span>;
}

function Count({ marks, count, open }: { marks: string; count: number; open: boolean }) {
  return <span class="tree-count">{count === 0 ? marks : open ? marks[0] : `${marks[0]}…${marks[1]} ${count}`}</span>;
}

function moveInTree(event: KeyboardEvent): void {
  const tree = event.currentTarget as HTMLElement;
  const all = [...tree.querySelectorAll<HTMLElement>("[role=treeitem]")];
  const at = all.indexOf(document.activeElement as HTMLElement);
  if (at < 0) return;
  const open = all[at].getAttribute("aria-expanded");
  const focus = (to: number) => {
    all[at].tabIndex = -1;
    const next = all[Math.max(0, Math.min(all.length - 1, to))];
    next.tabIndex = 0;
    next.focus();
  };
  if (event.key === "ArrowDown") focus(at + 1);
  else if (event.key === "ArrowUp") focus(at - 1);
  else if (event.key === "Home") focus(0);
  else if (event.key === "End") focus(all.length - 1);
  else if (event.key === "Enter" || event.key === " ") all[at].click();
  else if (event.key === "ArrowRight") open === "false" ? all[at].click() : focus(at + 1);
  else if (event.key === "ArrowLeft") {
    const level = Number(all[at].ariaLevel ?? all[at].getAttribute("aria-level"));
    if (open === "true") all[at].click();
    else for (let up = at - 1; up >= 0; up -= 1) {
      if (Number(all[up].getAttribute("aria-level")) < level) {
        focus(up);
        break;
      }
    }
  } else return;
  event.preventDefault();
}
