/** What an object consists of: columns, what cannot be done with them and why, and the server's own definition. */

import { useEffect, useState } from "preact/hooks";
import { canCopy, copying } from "../state/object_menu.ts";
import { DropObject } from "../changes/drop_object.tsx";
import type { Description, OpenConnection } from "../messages.ts";
import { write } from "../state/route.ts";
import { remedy } from "../state/store.ts";
import { Badge, Button, ErrorBox, Notes, Waiting } from "../ui/controls.tsx";
import { JsonTree } from "../ui/json_tree.tsx";
import { call } from "../wire/client.ts";

/** Each reason once, with all that it forbids. */
function byReason(reasons: Readonly<Record<string, string>>): [string, string[]][] {
  const found = new Map<string, string[]>();
  for (const [what, why] of Object.entries(reasons)) found.set(why, [...(found.get(why) ?? []), what]);
  return [...found];
}

export function Structure({ open, object }: { open: OpenConnection; object: string }) {
  const { connection } = open;
  const [described, setDescribed] = useState<Description | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  const [dropping, setDropping] = useState(false);
  const load = () => {
    setFailed(null);
    call("describe", { connection, object }).then(setDescribed, setFailed);
  };
  useEffect(load, [connection, object]);
  return (
    <div class="page">
      <div class="toolbar">
        <h1 class="grow">{object}</h1>
        <a class="button plain" href={write({ view: "rows", connection, rows: { object } })}>Rows</a>
        {canCopy(open) && (
          <Button icon="copy" label="Copy to a connection" onClick={() => (copying.value = { connection, rows: { object } })} />
        )}
        {open.capabilities.includes("drop") && (
          <Button icon="remove" label="Drop" tone="danger" onClick={() => setDropping(true)} />
        )}
      </div>
      {failed !== null && <ErrorBox error={failed} retry={load} act={(wanted) => void remedy(wanted, load)} />}
      {!described && failed === null && <Waiting what="Reading the structure …" />}
      {described && (
        <>
          <Notes notes={described.notes} />
          <div class="table-scroll" tabIndex={0} role="region" aria-label={`Columns of ${object}`}>
            <table class="table">
              <thead>
                <tr>
                  <th scope="col">Column</th>
                  <th scope="col">Type</th>
                  <th scope="col">Kind</th>
                  <th scope="col">Sort</th>
                  <th scope="col">Filter</th>
                  <th scope="col">What cannot be done</th>
                </tr>
              </thead>
              <tbody>
                {described.columns.map((column) => (
                  <tr key={column.name}>
                    <th scope="row">
                      {column.name} {column.role && <Badge tone="accent">{column.role}</Badge>}
                    </th>
                    <td><code>{column.type}</code></td>
                    <td>{column.repeated ? `list of ${column.kind}` : column.kind}</td>
                    <td>{column.sortable ? "yes" : "no"}</td>
                    <td class="operators">{column.operators?.join("  ") || "no"}</td>
                    <td class="reasons">
                      {byReason(column.reasons ?? {}).map(([why, what]) => (
                        <p key={why}><code>{what.join(" ")}</code> {why}</p>
                      ))}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {described.structure && (
            <section>
              <h2>The server's definition</h2>
              <JsonTree text={described.structure} label="The server's definition" />
            </section>
          )}
        </>
      )}
      {dropping && <DropObject open={open} object={object} close={() => setDropping(false)} />}
    </div>
  );
}
