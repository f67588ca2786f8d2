/** A copy of rows to another connection: where to, what is made there, and where the two objects differ. */

import { useEffect, useState } from "preact/hooks";
import type { CopyColumn, CopyPlanned, RowSelection } from "../messages.ts";
import { go } from "../state/route.ts";
import { connections, heardOfImport, open, opened, remedy } from "../state/store.ts";
import { Button, ErrorBox, Waiting } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { call } from "../wire/client.ts";
import { type Conflict, ConflictChoice } from "./conflict_choice.tsx";

/** New names of columns by their own; an empty one leaves the column out. */
type Renamed = Readonly<Record<string, string>>;

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
  const [planned, setPlanned] = useState(""); // the object whose plan it is
  const [failed, setFailed] = useState<unknown>(null);
  const [conflict, setConflict] = useState<Conflict>("fail");
  const [ids, setIds] = useState<CopyPlanned["ids"] | null>(null); // null until a person chooses
  const [renamed, setRenamed] = useState<Renamed>({});
  const [reasons, setReasons] = useState<ReadonlyMap<string, string>>(new Map()); // of columns when they were not left out
  const [undo, setUndo] = useState(true);
  const [fresh, setFresh] = useState(0);
  const [busy, setBusy] = useState(false);
  const name = object.trim();
  const asked = { connection, rows: { ...rows, sort: [], columns: null }, target, object: name, renamed, ids };
  const key = JSON.stringify([target, name, renamed, ids, fresh]);
  const place = JSON.stringify([target, name]);
  const twice = plan !== null && planned === place && sharedPlaces(plan.columns, renamed).size > 0;
  const choose = (chosen: string) => {
    const [own, there] = [`${rows.object}-copy`, rows.object];
    if (name === own || name === there) setObject(chosen === connection ? own : there);
    setTarget(chosen);
    setRenamed({});
    setIds(null);
  };
  useEffect(() => {
    if (!target || !name || twice) return;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        await open(target);
        const now = await call("imports/plan_copy", asked, stop.signal);
        setPlan(now);
        setPlanned(place);
        setReasons((known) => new Map(now.columns.map((one) => [one.name, renamed[one.name] === "" ? known.get(one.name) ?? "" : one.reason])));
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
  const ready = failed === null && seen === key && !twice && !!target && !!name;
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
      wide={!!plan && (plan.differs || plan.exists)}
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
      {plan && (failed === null || planned === place) && (plan.differs || plan.exists
        ? <Passages plan={plan} object={name} renamed={renamed} rename={setRenamed} reasons={reasons} ids={plan.ids} choose={setIds} />
        : <Making plan={plan} object={name} />)}
    </Dialog>
  );
}

const ID_CHOICES: readonly [CopyPlanned["ids"], string][] = [
  ["keep", "keep them"],
  ["derive", "a UUID derived from each"],
  ["new", "new ones"],
];

/** What becomes of each column, what it is called there, and what becomes of the ids. */
function Passages({ plan, object, renamed, rename, reasons, ids, choose }: {
  plan: CopyPlanned;
  object: string;
  renamed: Renamed;
  rename: (names: Renamed) => void;
  reasons: ReadonlyMap<string, string>;
  ids: CopyPlanned["ids"];
  choose: (ids: CopyPlanned["ids"]) => void;
}) {
  const lost = plan.columns.filter((one) => !one.to && !one.consent).length;
  const changed = plan.columns.filter((one) => !one.lost && reasons.get(one.name));
  const shared = [...new Set(changed.map((one) => reasons.get(one.name)!))]
    .map((reason) => ({ reason, columns: changed.filter((one) => reasons.get(one.name) === reason) }))
    .filter(({ columns }) => columns.length > 1);
  const twice = sharedPlaces(plan.columns, renamed);
  const leave = (columns: readonly CopyColumn[], left: boolean) => {
    const names = Object.entries(renamed).filter(([name]) => !columns.some((one) => one.name === name));
    rename(Object.fromEntries([...names, ...(left ? columns.map((one) => [one.name, ""]) : [])]));
  };
  return (
    <section aria-label="What becomes of each column">
      <p>
        <bdi>{object}</bdi> {plan.exists ? "exists" : "does not exist"}{!plan.differs ? "; the rows are added." : `, and is ${plan.exists ? "" : "made "}in another type of database.`}
        {plan.differs && ` The types come from the columns here, after a look at the first ${plan.rows === 1 ? "row" : `${plan.rows} rows`}.`}
      </p>
      {lost > 0 && <p class="banner warn" role="status">{lost === 1 ? "1 column is" : `${lost} columns are`} left out.</p>}
      {shared.length > 0 && (
        <fieldset class="copy-reasons">
          <legend>What changes in several columns</legend>
          {shared.map(({ reason, columns }) => {
            const copied = columns.filter((one) => one.to).length;
            return (
              <label key={reason} class="inline">
                <input type="checkbox" checked={copied > 0} ref={(box) => { if (box) box.indeterminate = copied > 0 && copied < columns.length; }}
                  disabled={!copied && !columns.some((one) => Object.hasOwn(renamed, one.name))}
                  onChange={(event) => leave(columns, !event.currentTarget.checked)} />
                <span><bdi>{reason}</bdi> <span class="muted">({columns.length}: <bdi>{columns.map((one) => one.name).join(", ")}</bdi>)</span></span>
              </label>
            );
          })}
        </fieldset>
      )}
      {twice.size > 0 && <p class="field-error" role="status">Several columns would be called <bdi>{[...twice].join(", ")}</bdi>.</p>}
      <div class="copy-columns" tabIndex={0} role="group" aria-label="Columns, which scroll">
        <table class="table">
          <thead><tr><th scope="col">Copy</th><th scope="col">Column</th><th scope="col">Type</th><th scope="col">There</th><th scope="col">What changes</th></tr></thead>
          <tbody>
            {plan.columns.map((one) => (
              <tr key={one.name}>
                <td>
                  <input type="checkbox" aria-label={`Copy ${one.name}`} checked={!!placeOf(one, renamed)} disabled={!one.to && !Object.hasOwn(renamed, one.name)}
                    onChange={(event) => leave([one], !event.currentTarget.checked)} />
                </td>
                <th scope="row"><bdi>{one.name}</bdi></th>
                <td><code>{one.type}</code></td>
                <td class="copy-place">
                  {!one.lost && (
                    <input aria-label={`Name of ${one.name} there; empty leaves it out`} value={placeOf(one, renamed, one.name)} placeholder="left out"
                      autocomplete="off" spellcheck={false} aria-invalid={twice.has(placeOf(one, renamed))}
                      onInput={(event) => rename({ ...renamed, [one.name]: event.currentTarget.value.trim() })} />
                  )}
                  <code>{one.to && one.target}</code>
                </td>
                <td><bdi>{one.reason}</bdi></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {plan.differs && (
        <>
          <label class="field">
            <span>Ids</span>
            <select value={ids} onChange={(event) => choose(event.currentTarget.value as CopyPlanned["ids"])}>
              {ID_CHOICES.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
            </select>
          </label>
          <p class="muted" role="status"><bdi>{plan.ids_reason}</bdi></p>
        </>
      )}
      {plan.notes.map((note) => <p key={`${note.code} ${note.column ?? ""}`} class="banner warn"><bdi>{note.reason}</bdi></p>)}
      {plan.making && <Request text={plan.making} />}
    </section>
  );
}

/** What a column is called there; empty if it is left out, unless another name may bring it in. */
function placeOf(column: CopyColumn, renamed: Renamed, otherwise = ""): string {
  return Object.hasOwn(renamed, column.name) ? renamed[column.name] : column.to || otherwise;
}

/** Names that several columns would get. */
function sharedPlaces(columns: readonly CopyColumn[], renamed: Renamed): Set<string> {
  const places = columns.filter((one) => !one.lost).map((one) => placeOf(one, renamed)).filter(Boolean);
  return new Set(places.filter((place, at) => places.indexOf(place) !== at));
}

function Request({ text }: { text: string }) {
  return (
    <details>
      <summary>The request that makes it</summary>
      <pre class="import-request" tabIndex={0}>{text}</pre>
    </details>
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
      <Request text={plan.making} />
    </section>
  );
}
