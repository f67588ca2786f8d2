/** Markdown as nodes of the page: an image is its description, and a link is its text and its address. */

import type { Definition, Nodes, Root, Table } from "mdast";
import { type ComponentChild, type ComponentChildren, h } from "preact";
import reader from "./reader.ts?worker&url";

/** Milliseconds after which a text stays as it is; some texts make every parser slow. */
const PATIENCE = 4_000;

/** The one script that runs as a worker: the page's policy lets no other address become one. */
const policy = globalThis.trustedTypes?.createPolicy("dragoman-reader", { createScriptURL: () => reader });

/** Read a text apart from the page; raises an error if that fails or takes too long. */
function read(text: string, signal: AbortSignal): Promise<Root> {
  const worker = new Worker((policy?.createScriptURL("") ?? reader) as string, { type: "module" });
  return new Promise<Root>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("it takes too long to format")), PATIENCE);
    signal.addEventListener("abort", () => (clearTimeout(late), reject(signal.reason)));
    worker.addEventListener("message", ({ data }) => (clearTimeout(late), resolve(data as Root)));
    worker.addEventListener("error", () => (clearTimeout(late), reject(new Error("it cannot be read"))));
    worker.postMessage(text);
  }).finally(() => worker.terminate());
}

/** Format a text; raises an error if that fails or takes too long. */
export async function format(text: string, signal: AbortSignal): Promise<ComponentChildren> {
  return new Shown(await read(text, signal)).all;
}

/** One text on the way to the page, with the addresses that it defines for its links. */
class Shown {
  readonly #addresses = new Map<string, string>();
  readonly all: ComponentChildren;

  constructor(root: Root) {
    for (const node of root.children) if (node.type === "definition") this.#define(node);
    this.all = this.#inside(root);
  }

  #define({ identifier, url }: Definition): void {
    if (!this.#addresses.has(identifier)) this.#addresses.set(identifier, url);
  }

  #inside(node: Nodes): ComponentChild[] {
    return "children" in node ? node.children.map((child) => this.#show(child)) : [];
  }

  #show(node: Nodes): ComponentChild {
    const inside = () => this.#inside(node);
    switch (node.type) {
      case "text":
        return node.value;
      case "paragraph":
        return <p>{inside()}</p>;
      case "heading": // the driver's name is the first heading of the page
        return h(`h${Math.min(6, node.depth + 1)}`, null, inside());
      case "emphasis":
        return <em>{inside()}</em>;
      case "strong":
        return <strong>{inside()}</strong>;
      case "inlineCode":
        return <code>{node.value}</code>;
      case "code":
        return <pre tabIndex={0}><code>{node.value}</code></pre>;
      case "blockquote":
        return <blockquote>{inside()}</blockquote>;
      case "list":
        return node.ordered ? <ol start={node.start ?? 1}>{inside()}</ol> : <ul>{inside()}</ul>;
      case "listItem":
        return <li>{inside()}</li>;
      case "break":
        return <br />;
      case "thematicBreak":
        return <hr />;
      case "table":
        return this.#table(node);
      case "link":
        return link(inside(), node.url);
      case "linkReference":
        return link(inside(), this.#addresses.get(node.identifier));
      case "image":
        return link(`[${node.alt || "image"}]`, node.url);
      case "imageReference":
        return link(`[${node.alt || "image"}]`, this.#addresses.get(node.identifier));
      case "definition":
        return null;
      default:
        return "value" in node ? node.value : inside();
    }
  }

  #table({ children: [head, ...rows], align }: Table): ComponentChild {
    const side = (at: number) => `to-${align?.[at] ?? "left"}`;
    return (
      <div class="table-scroll" tabIndex={0} role="region" aria-label="Table">
        <table class="table">
          <thead>
            <tr>
              {head?.children.map((cell, at) => <th scope="col" class={side(at)}>{this.#inside(cell)}</th>)}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr>{row.children.map((cell, at) => <td class={side(at)}>{this.#inside(cell)}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
    );
  }
}

/** A link leads nowhere by itself: its address follows its text, to be read before it is copied. */
function link(text: ComponentChildren, address = ""): ComponentChild {
  if (!address || (Array.isArray(text) && text.length === 1 && text[0] === address)) return <span>{text}</span>;
  return (
    <span>
      {text} <span class="address">({address})</span>
    </span>
  );
}
