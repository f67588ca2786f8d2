/** Markdown as a tree of bounded depth. HTML in it is text. */

import type { Nodes, Root } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmTableFromMarkdown } from "mdast-util-gfm-table";
import { gfmTable } from "micromark-extension-gfm-table";

/** The maximum depth of elements; deeper ones are their text alone. */
const DEEPEST = 24;
const NO_HTML = { disable: { null: ["htmlFlow", "htmlText"] } };

export function readMarkdown(text: string): Root {
  const options = { extensions: [NO_HTML, gfmTable()], mdastExtensions: [gfmTableFromMarkdown()] };
  return bounded(fromMarkdown(text, options), 0) as Root;
}

/** A copy without places in the text, which would be most of its size, and without what is too deep. */
function bounded(node: Nodes, depth: number): Nodes {
  const { position: _, ...kept } = node;
  if (!("children" in kept)) return kept;
  if (depth >= DEEPEST) return { type: "text", value: textOf(node) };
  return { ...kept, children: kept.children.map((child) => bounded(child, depth + 1)) } as Nodes;
}

/** The text of a node and of all below it. */
export function textOf(node: Nodes): string {
  const waiting: Nodes[] = [node];
  const texts: string[] = [];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    if ("value" in next) texts.push(next.value);
    else if ("alt" in next) texts.push(next.alt ?? "");
    if ("children" in next) for (const child of [...next.children].reverse()) waiting.push(child);
  }
  return texts.join("");
}
