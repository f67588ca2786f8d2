/** A copy of rows to another connection: where to, what is made there, and where the two objects differ. */

import { useEffect, useState } from "preact/hooks";
import type { CopyColumn, CopyPlanned, RowSelection } from "../messages.ts";
import { go } from "../state/route.ts";
import { connections, heardOfImport, open, opened, remedy } from "../state/store.ts";
import { Button, ErrorBox, Waiting } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { call } from "../wire/client.ts";
import { type Conflict, ConflictChoice } from "./conflict_choice.tsx";

const PAUSE = 250; // ms without a key before the target is looked at again

export function CopyDialog({ connection, rows, close }: { connection: string; rows: RowSelection; close: () => void }) {
  const all = connections.value?.connections ?? [];
  const type = opened.value.get(connection)?.type;
  const first = all.filter((one) => one.type === type);
  const others = all.filter((one) => one.type !== type);
  const [target, setTarget] = useState("");
  const [object, setObject] = useState(rows.object);
  const [plan, setPlan] = useState<CopyPlanned | null>(null);
  const [seen, setSeen] = useState(""); // what the plan answers
  const [failed, setFailed] = useState<unknown>(null);
  const [conflict, setConflict] = useState<Conflict>("fail");
  const [ids, setIds] = useState<CopyPlanned["ids"] | null>(null); // null until a person chooses
  const [leftOut, setLeftOut] = useState<readonly string[]>([]);
  const [undo, setUndo] = useState(true);
  const [fresh, setFresh] = useState(0);
  const [busy, setBusy] = useState(false);
  const name = object.trim();
  const renamed = Object.fromEntries(leftOut.map((column) => [column, ""]));
  const asked = { connection, rows: { ...rows, sort: [], columns: null }, target, object: name, renamed, ids };
  const key = JSON.stringify([target, name, leftOut, ids, fresh]);
  const choose = (chosen: string) => {
    const [own, there] = [`${rows.object}-copy`, rows.object];
    if (name === own || name === there) setObject(chosen === connection ? own : there);
    setTarget(chosen);
    setLeftOut([]);
    setIds(null);
  };
  const leave = (column: string, left: boolean) => setLeftOut(left ? [...leftOut, column] : leftOut.filter((one) => one !== column));
  useEffect(() => {
    if (!target || !name) return;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        await open(target);
        const now = await call("imports/plan_copy", asked, stop.signal);
        setPlan(now);
        setSeen(key);
        setFailed(null);
      } catch (error) {
        if (!stop.signal.aborted) setFailed(error);
      }
    }, plan ? PAUSE : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key]);
  const ready = failed === null && seen === key && !!target && !!name;
  const start = async () => {
    setBusy(true);
    try {
      const agreed = Object.fromEntries((plan?.differs ? plan.columns : []).filter((one) => one.reason).map((one) => [one.name, one.to]));
      heardOfImport(
        await call("imports/copy", {
          ...asked,
          renamed: { ...agreed, ...renamed },
          ids: plan?.differs ? plan.ids : null,
          making: plan?.making ?? "",
          on_conflict: conflict,
          undo,
        }),
      );
      close();
      go({ view: "import", connection: target, object: "" });
    } catch (error) {
      setFailed(error);
      setBusy(false);
    }
  };
  const filters = rows.filters?.length ?? 0;
  const label = !plan || plan.exists ? "Copy the rows" : "Make it with these types, and copy";
  return (
    <Dialog
      title={`Copy ${rows.object}`}
      onClose={close}
      footer={
        <>
          <Button label="Cancel" onClick={close} />
          <Button icon="copy" label={label} tone="primary" disabled={!ready} busy={busy} onClick={() => void start()} />
        </>
      }
    >
      <p>
        {filters ? `The rows that match the filter (${filters} filter ${filters === 1 ? "row" : "rows"}).` : "All rows."}
        {plan?.differs ? "" : " Ids, vectors and every digit stay as they are."}
      </p>
      <label class="field">
        <span>To the connection</span>
        <select value={target} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="" disabled>choose one</option>
          {first.map((one) => <option key={one.name} value={one.name}>{one.name}{one.name === connection ? " (this one)" : ""}</option>)}
          {others.map((one) => <option key={one.name} value={one.name}>{`${one.name} (${one.type})`}</option>)}
        </select>
      </label>
      <label class="field">
        <span>Into the object</span>
        <input value={object} autocomplete="off" spellcheck={false} onInput={(event) => setObject(event.currentTarget.value)} />
      </label>
      {plan?.exists !== false && (
        <ConflictChoice value={conflict} choose={setConflict} />
      )}
      <label class="inline">
        <input type="checkbox" checked={undo} onChange={(event) => setUndo(event.currentTarget.checked)} />
        <span>keep an undo file</span>
      </label>
      {!name && <p class="field-error" role="status">Name the object that gets the rows.</p>}
      {failed !== null && <ErrorBox error={failed} retry={() => setFresh(fresh + 1)} act={(wanted) => void remedy(wanted, () => setFresh(fresh + 1))} />}
      {target && name && !plan && failed === null && <Waiting what={`Looking at ${target} …`} />}
      {plan?.differs && failed === null && <Passages plan={plan} object={name} leave={leave} ids={plan.ids} choose={setIds} />}
      {plan && !plan.differs && failed === null && (plan.exists ? <Differences columns={plan.columns} object={name} /> : <Making plan={plan} object={name} />)}
    </Dialog>
  );
}

const ID_CHOICES: readonly [CopyPlanned["ids"], string][] = [
  ["keep", "keep them"],
  ["derive", "a UUID derived from each"],
  ["new", "new ones"],
];

/** What becomes of each column in another type of database, and of the ids. */
function Passages({ plan, object, leave, ids, choose }: {
  plan: CopyPlanned;
  object: string;
  leave: (column: string, left: boolean) => void;
  ids: CopyPlanned["ids"];
  choose: (ids: CopyPlanned["ids"]) => void;
}) {
  const lost = plan.columns.filter((one) => !one.to && !one.consent).length;
  return (
    <section aria-label="What becomes of each column">
      <p>
        <bdi>{object}</bdi> {plan.exists ? "exists, and is in another type of database." : "does not exist, and is made in another type of database."}
        {" "}The types come from the columns here, after a look at the first {plan.rows === 1 ? "row" : `${plan.rows} rows`}.
      </p>
      {lost > 0 && <p class="banner warn" role="status">{lost === 1 ? "1 column is" : `${lost} columns are`} left out.</p>}
      <div class="copy-columns" tabIndex={0} role="group" aria-label="Columns, which scroll">
        <table class="table">
          <thead><tr><th scope="col">Copy</th><th scope="col">Column</th><th scope="col">Type</th><th scope="col">There</th><th scope="col">What changes</th></tr></thead>
          <tbody>
            {plan.columns.map((one) => (
              <tr key={one.name}>
                <td>
                  <input type="checkbox" aria-label={`Copy ${one.name}`} checked={!!one.to} disabled={!one.to && !one.consent}
                    onChange={(event) => leave(one.name, !event.currentTarget.checked)} />
                </td>
                <th scope="row"><bdi>{one.name}</bdi></th>
                <td><code>{one.type}</code></td>
                <td>{one.to && <><bdi>{one.to === one.name ? "" : `${one.to} `}</bdi><code>{one.target}</code></>}</td>
                <td><bdi>{one.reason}</bdi></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <label class="field">
        <span>Ids</span>
        <select value={ids} onChange={(event) => choose(event.currentTarget.value as CopyPlanned["ids"])}>
          {ID_CHOICES.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
        </select>
      </label>
      <p class="muted" role="status"><bdi>{plan.ids_reason}</bdi></p>
      {plan.notes.map((note) => <p key={`${note.code} ${note.column ?? ""}`} class="banner warn"><bdi>{note.reason}</bdi></p>)}
      {plan.making && (
        <details>
          <summary>The request that makes it</summary>
          <pre class="import-request" tabIndex={0}>{plan.making}</pre>
        </details>
      )}
    </section>
  );
}

/** The object that is made: its columns, and the very request. */
function Making({ plan, object }: { plan: CopyPlanned; object: string }) {
  return (
    <section aria-label="What is made">
      <p><bdi>{object}</bdi> does not exist, and is made with these types. Settings that are no part of them are not copied.</p>
      <div class="copy-columns" tabIndex={0} role="group" aria-label="Columns, which scroll">
        <table class="table">
          <thead><tr><th scope="col">Column</th><th scope="col">Type</th></tr></thead>
          <tbody>{plan.columns.map(({ name, type }) => <tr key={name}><th scope="row"><bdi>{name}</bdi></th><td><code>{type}</code></td></tr>)}</tbody>
        </table>
      </div>
      <details>
        <summary>The request that makes it</summary>
        <pre class="import-request" tabIndex={0}>{plan.making}</pre>
      </details>
    </section>
  );
}

/** Columns that the other object does not have, or has with another type. */
function Differences({ columns, object }: { columns: readonly CopyColumn[]; object: string }) {
  const missing = columns.filter((one) => one.target === null).map(({ name }) => name);
  const different = columns.filter((one) => one.target !== null && one.target !== one.type);
  return (
    <section aria-label="Where the objects differ">
      <p class="muted"><bdi>{object}</bdi> exists; the rows are added{missing.length || different.length ? "." : ", and it has all columns with the same types."}</p>
      {missing.length > 0 && <p class="banner warn">It has no {missing.length === 1 ? "column" : "columns"} <bdi>{missing.join(", ")}</bdi>. The server adds what it can; a row with a value that it does not take is rejected, with the reason.</p>}
      {different.length > 0 && <p class="banner warn">Other types there: <bdi>{different.map(({ name, type, target }) => `${name} (${type} here, ${target} there)`).join(", ")}</bdi>. A value that does not fit makes a rejected row.</p>}
    </section>
  );
}
