/** The saved queries of an object: kept, used and forgotten beside its filter. */

import { useEffect, useState } from "preact/hooks";
import type { GridController } from "../grid/controller.ts";
import type { QueryList, SavedQuery } from "../messages.ts";
import type { FilterRow } from "../state/query.ts";
import { Button, asFailure } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { openMenu } from "../ui/menu.tsx";
import { toast } from "../ui/toasts.tsx";
import { call } from "../wire/client.ts";

/** How a query can be named: `@NAME` is one word in a terminal. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** The saved queries of the connection; null if they cannot be read, which is said. */
async function savedQueries({ connection }: GridController): Promise<QueryList | null> {
  try {
    return await call("queries", { connection });
  } catch (error) {
    toast(asFailure(error).message, "bad");
    return null;
  }
}

/** Open the menu of the queries that are saved for this object, and of those that cannot be used, which say why. */
export async function openSaved(event: MouseEvent, grid: GridController, name: () => void, use: (query: SavedQuery) => void): Promise<void> {
  const anchor = (event.currentTarget as Element).getBoundingClientRect();
  const list = await savedQueries(grid);
  if (!list) return;
  const queries = list.queries.filter(({ rows }) => rows.object === grid.object);
  const own = queries.filter(({ shared }) => !shared);
  const choose = () =>
    openMenu("Forget a query", own.map((query) => ({ label: query.name, run: () => void forget(grid, query) })), anchor);
  openMenu(
    "Saved queries",
    [
      { label: "Save these rows", icon: "add", run: name },
      "line",
      ...queries.map((query) => ({ label: query.name, icon: "filter" as const, run: () => use(query) })),
      ...Object.entries(list.unusable).map(([query, reason]) => (
        { label: `${query} cannot be used …`, run: () => toast(reason, "bad") }
      )),
      ...(own.length ? [{ label: "Forget a query …", icon: "remove" as const, run: choose }] : []),
    ],
    anchor,
  );
}

async function forget({ connection }: GridController, { name, rows }: SavedQuery): Promise<void> {
  const again = () => void saving(call("queries/save", { connection, name, rows }));
  if (await saving(call("queries/remove", { connection, name }))) {
    toast(`The query ${name} is forgotten.`, "plain", { label: "Undo", run: again });
  }
}

/** Whether a change of the saved queries succeeded; a failure is said. */
async function saving(change: Promise<unknown>): Promise<boolean> {
  try {
    await change;
    return true;
  } catch (error) {
    toast(asFailure(error).message, "bad");
    return false;
  }
}

export function NameQuery({ grid, filters, match, close }: {
  grid: GridController;
  filters: readonly FilterRow[];
  match: "all" | "any";
  close: () => void;
}) {
  const [name, setName] = useState("");
  const [taken, setTaken] = useState<ReadonlySet<string>>(new Set());
  const { connection } = grid;
  useEffect(() => {
    call("queries", { connection }).then(
      ({ queries }) => setTaken(new Set(queries.flatMap((query) => (query.shared ? [] : [query.name])))),
      () => {}, // saving says what is wrong
    );
  }, [connection]);
  const replace = taken.has(name);
  const named = NAME.test(name);
  const save = async () => {
    const rows = { ...grid.query.peek(), filters, match };
    if (!(await saving(call("queries/save", { connection, name, rows, replace })))) return;
    toast(`The query ${name} is saved.`, "good");
    close();
  };
  return (
    <Dialog
      title="Save these rows"
      onClose={close}
      footer={
        <>
          <Button label="Cancel" onClick={close} />
          <Button label={replace ? "Replace" : "Save"} tone="primary" disabled={!named} onClick={() => void save()} />
        </>
      }
    >
      <label class="field">
        <span>Name</span>
        <input value={name} maxLength={64} autocomplete="off" onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      {name && !named ? (
        <p class="field-error" role="alert">A name has letters, digits, dots, hyphens and underscores.</p>
      ) : (
        <p class="muted" title={`dragoman page ${connection} @${name || "NAME"}`}>Scripts and the command line know it by this name, too.</p>
      )}
    </Dialog>
  );
}
