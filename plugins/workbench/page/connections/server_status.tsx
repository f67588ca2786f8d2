/** How the server is beside answering: its nodes, and the conditions of objects that no list of objects tells. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Condition, ServerNode, ServerStatus } from "../messages.ts";
import { fileSize, whole } from "../ui/figures.ts";
import { call, Failure } from "../wire/client.ts";

const EVERY = 60_000; // milliseconds between two requests, while the objects are read again and again
const FEW = 4; // nodes that are shown without being asked for

/** The classes of a dot. */
export const TONES: Readonly<Record<Condition["level"], string>> = { "": "unknown", good: "open", warning: "warning", bad: "broken" };

/** Ask after the objects, which the server answers first; not again for every round of theirs. */
export function useStatus(connection: string, able: boolean, listed: Date | undefined): ServerStatus | null {
  const [known, setKnown] = useState<{ of: string; at: number; status: ServerStatus | null } | null>(null);
  const asking = useRef<AbortController | null>(null);
  useEffect(() => () => {
    asking.current?.abort();
    asking.current = null;
  }, [connection]);
  useEffect(() => {
    // A list of many parts, or its next round, does not ask again while the server still thinks about the first request.
    if (!able || !listed || asking.current || (known?.of === connection && Date.now() - known.at < EVERY)) return;
    const stop = (asking.current = new AbortController());
    const know = (status: ServerStatus) => {
      if (stop.signal.aborted) return;
      asking.current = null;
      setKnown({ of: connection, at: Date.now(), status });
    };
    call("status", { connection }, stop.signal).then(know, (error) => {
      const reason = error instanceof Failure ? error.message : "the status cannot be read";
      const notes = [{ code: "status-unknown", reason, column: null, hint: "", hint_from: "", remedies: [] }];
      know({ state: null, nodes: [], objects: {}, notes });
    });
  }, [connection, able, listed]);
  return known?.of === connection ? known.status : null;
}

/** A condition in the server's word; on a narrow page a dot alone, with the word for those who do not see it. */
export function ConditionMark({ state }: { state: Condition }) {
  return (
    <span class="condition" title={state.word}>
      <span class={`dot ${TONES[state.level]}`} aria-hidden="true" /><span class="word">{state.word}</span>
    </span>
  );
}

/** How many have which condition: the worst first. */
export function countConditions(states: readonly (Condition | null | undefined)[]): { state: Condition; count: number }[] {
  const counts = new Map<string, { state: Condition; count: number }>();
  for (const state of states) {
    if (!state) continue;
    const counted = counts.get(state.word) ?? { state, count: 0 };
    counts.set(state.word, { state, count: counted.count + 1 });
  }
  return [...counts.values()].sort((left, right) => severity(right.state) - severity(left.state) || right.count - left.count);
}

/** A number that is larger the worse a condition is. */
export function severity(state: Condition): number {
  return ["good", "", "warning", "bad"].indexOf(state.level);
}

export function Nodes({ connection, nodes }: { connection: string; nodes: readonly ServerNode[] }) {
  const conditions = countConditions(nodes.map((node) => node.state));
  const bad = conditions.some(({ state }) => severity(state) > 1);
  const of = conditions.map(({ state, count }) => `${whole(count)} ${state.word}`).join(", ");
  const has = (field: keyof ServerNode) => nodes.some((node) => node[field] !== null && node[field] !== "");
  return (
    <details class="nodes" open={nodes.length <= FEW || bad}>
      <summary>{whole(nodes.length)} {nodes.length === 1 ? "node" : "nodes"}{nodes.length > 1 && of ? `: ${of}` : ""}</summary>
      <div class="node-table" tabIndex={nodes.length > FEW ? 0 : undefined} role={nodes.length > FEW ? "region" : undefined} aria-label={nodes.length > FEW ? `Nodes of ${connection}` : undefined}>
        <table aria-label={`Nodes of ${connection}`}>
          <thead>
            <tr>
              <th scope="col">Node</th>
              {has("state") && <th scope="col" class="state">State</th>}
              {has("roles") && <th scope="col" class="roles">Roles</th>}
              {has("version") && <th scope="col" class="version">Version</th>}
              {has("rows") && <th scope="col" class="figure">Rows</th>}
              {has("memory") && <th scope="col" class="use">Memory</th>}
              {has("disk") && <th scope="col" class="use">Disk</th>}
            </tr>
          </thead>
          <tbody>
            {nodes.map((node, at) => (
              <tr key={at}>
                <th scope="row" title={node.name}><bdi>{node.name}</bdi></th>
                {has("state") && <td class="state">{node.state && <ConditionMark state={node.state} />}</td>}
                {has("roles") && <td class="roles" title={node.roles}>{node.roles}</td>}
                {has("version") && <td class="version">{node.version}</td>}
                {has("rows") && <td class="figure">{node.rows == null ? "–" : whole(node.rows)}</td>}
                {has("memory") && <Use used={node.memory} limit={node.memory_limit} />}
                {has("disk") && <Use used={node.disk} limit={node.disk_limit} />}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** How much of a node's memory or disk is in use: a bar, and the figures. */
function Use({ used, limit }: { used: number | null; limit: number | null }) {
  if (used == null) return <td class="use"><span class="muted" title="not known">–</span></td>;
  const part = limit ? Math.min(1, used / limit) : null;
  return (
    <td class="use" title={limit ? `${whole(used)} of ${whole(limit)} bytes` : `${whole(used)} bytes`}>
      {part !== null && <span class={part > 0.9 ? "bar full" : "bar"} aria-hidden="true"><span style={{ width: `${100 * part}%` }} /></span>}
      <span class="figures">{fileSize(used)}{limit ? ` of ${fileSize(limit)}` : ""}</span>
    </td>
  );
}
