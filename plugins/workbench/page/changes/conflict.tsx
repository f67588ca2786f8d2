/** A row that somebody else changed meanwhile: mine beside theirs, and a choice. */

import { useState } from "preact/hooks";
import { spelled } from "../grid/copy_formats.ts";
import type { OpenConnection, RowAnswer } from "../messages.ts";
import { Button, asFailure } from "../ui/controls.tsx";
import { toast } from "../ui/toasts.tsx";
import { call } from "../wire/client.ts";
import { type Change, changesOf } from "../state/change_list.ts";

export function Conflict({ open, change }: { open: OpenConnection; change: Change }) {
  const { connection } = open;
  const [theirs, setTheirs] = useState<RowAnswer | null>(null);
  const [chosen, setChosen] = useState("");
  const list = changesOf(connection);
  const load = () =>
    call("changes/row", { connection, key: change.key }).then(setTheirs, (error: unknown) =>
      toast(asFailure(error).message, "bad"),
    );
  if (chosen) return <span class="muted">{chosen}</span>;
  if (!theirs) return <Button label="Compare" onClick={() => void load()} />;
  const { row, columns } = theirs;
  if (!row) return <span>The row is gone.</span>;
  const value = (name: string) => row.cells[columns.findIndex((column) => column.name === name)] ?? ["missing", ""];
  const mine = () => {
    if (row.key) list.rebase(change.number, row.key);
    setChosen("Your change is in the change list again, and now replaces theirs.");
  };
  const drop = () => {
    list.drop(change.object, new Set([change.number]));
    setChosen("Their values stay; Ctrl+Z brings your change back.");
  };
  return (
    <div class="conflict">
      <table class="table">
        <thead><tr><th scope="col">Column</th><th scope="col">Was</th><th scope="col">Mine</th><th scope="col">Theirs</th></tr></thead>
        <tbody>
          {Object.entries(change.values).map(([name, after]) => {
            return (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{spelled(change.before[name] ?? null)}</td>
                <td>{spelled(after)}</td>
                <td>{spelled(value(name))}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <div class="actions">
        <Button label="Keep theirs" onClick={drop} />
        <Button label="Use mine" tone="primary" disabled={!row.key} onClick={mine} />
      </div>
    </div>
  );
}
