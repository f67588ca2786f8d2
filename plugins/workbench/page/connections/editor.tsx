/** New and edited connections: the type, its driver, and the form that the manifest describes. */

import { useEffect, useState } from "preact/hooks";
import { InstallProgress } from "../marketplace/install_progress.tsx";
import { Offer } from "../marketplace/offer.tsx";
import type { FieldEntry, Form, Tested, TypeOffer } from "../messages.ts";
import { askToLeave } from "../state/leaving.tsx";
import { beforeLeaving, goUnasked, write } from "../state/route.ts";
import { loadConnections, remedy } from "../state/store.ts";
import { Badge, Button, CopyCommand, Blank, ErrorBox, Waiting, asFailure } from "../ui/controls.tsx";
import { toast } from "../ui/toasts.tsx";
import { type Failure, call } from "../wire/client.ts";
import { FormField } from "./form_field.tsx";
import { type Entries, initial, isVisible, missing, toSend } from "./form_state.ts";

export function NewConnection({ type }: { type: string }) {
  return type ? <FormOfType type={type} /> : <ChooseType />;
}

/** The types of all registries; those not installed are marked. */
function ChooseType() {
  const [types, setTypes] = useState<readonly TypeOffer[] | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  const load = () => {
    setFailed(null);
    call("connections/types", {}).then((list) => setTypes(list.types), setFailed);
  };
  useEffect(load, []);
  return (
    <div class="page">
      <h1>New connection</h1>
      <p class="muted">What kind of database?</p>
      {failed !== null && <ErrorBox error={failed} retry={load} />}
      {!types && failed === null && <Waiting what="Reading the registries …" />}
      {types?.length === 0 && (
        <Blank icon="shop" title="No registry offers a driver">
          <p>Without one, no connection can be made.</p>
          <details>
            <summary>Add a registry in a terminal</summary>
            <CopyCommand command="dragoman registry add NAME ADDRESS" />
          </details>
        </Blank>
      )}
      <ul class="cards">
        {types?.map(({ type, driver }) => (
          <li class="card" key={`${type}/${driver.id}`}>
            <a class="card-link" href={write({ view: "new", type })}>
              <strong>{driver.label}</strong>
              <span class="muted">{type}</span>
              <span>{driver.summary}</span>
            </a>
            <div class="card-badges">
              <Badge tone={driver.state === "available" ? "accent" : "good"}>
                {driver.state === "available" ? "not installed" : driver.state}
              </Badge>
            </div>
          </li>
        ))}
      </ul>
    </div>
  );
}

function FormOfType({ type }: { type: string }) {
  const [form, setForm] = useState<Form | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  const [skipped, setSkipped] = useState(false);
  const load = () => {
    setFailed(null);
    call("connections/form", { type }).then(setForm, setFailed);
  };
  useEffect(load, [type]);
  if (failed !== null) return <div class="page"><h1>New connection</h1><ErrorBox error={failed} retry={load} act={(wanted) => void remedy(wanted, load)} /></div>;
  if (!form) return <div class="page"><h1>New connection</h1><Waiting what="Reading the form …" /></div>;
  if (!form.installed && !skipped) {
    return <Offer id={form.driver.id} done={load} later={() => setSkipped(true)} />;
  }
  return <FormView form={form} heading={`New ${form.driver.label} connection`} />;
}

export function EditConnection({ name }: { name: string }) {
  const [form, setForm] = useState<Form | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  const load = () => {
    setFailed(null);
    call("connections/form", { name }).then(setForm, setFailed);
  };
  useEffect(load, [name]);
  if (failed !== null) return <div class="page"><h1>{name}</h1><ErrorBox error={failed} retry={load} /></div>;
  if (!form) return <div class="page"><h1>{name}</h1><Waiting what="Reading the form …" /></div>;
  return <FormView form={form} heading={`Edit ${name}`} replace={name} />;
}

function askAboutForm(): Promise<boolean> {
  return askToLeave("The connection is not saved", <p>Leaving drops what is entered.</p>, [
    { label: "Leave", tone: "danger" },
  ]);
}

function FormView({ form, heading, replace = "" }: { form: Form; heading: string; replace?: string }) {
  const [entries, setEntries] = useState<Entries>(() => initial(form));
  const [name, setName] = useState(form.name);
  const [busy, setBusy] = useState<"" | "test" | "save" | "open">("");
  const [failed, setFailed] = useState<Failure | null>(null);
  const [tested, setTested] = useState<Tested | null>(null);
  const [told, setTold] = useState(false);
  const shown = form.fields.filter((field) => isVisible(field, entries));
  const empty = new Set(told ? missing(form, entries) : []);
  const [written, setWritten] = useState(false);
  useEffect(() => (written ? beforeLeaving(askAboutForm) : undefined), [written]);
  const change = (field: string, entry: FieldEntry) => {
    setWritten(true);
    setEntries({ ...entries, [field]: entry });
    setTested(null);
    if (failed?.field === field) setFailed(null);
  };
  const run = async (what: "test" | "save" | "open") => {
    setTold(true);
    setFailed(null);
    setTested(null);
    if (!name.trim() || missing(form, entries).length) return;
    setBusy(what);
    const host = form.fields.some((field) => field.name === "host");
    const body = { name: name.trim(), type: form.type, fields: toSend(form, entries), replace, revision: form.revision, accept_address: host };
    try {
      if (what === "test") setTested(await call("connections/test", body));
      else {
        await call("connections/save", body);
        await loadConnections();
        toast(`${body.name} is saved`, "good");
        goUnasked(what === "open" ? { view: "connection", connection: body.name } : { view: "home" });
      }
    } catch (error) {
      setFailed(asFailure(error));
    }
    setBusy("");
  };
  const fields = (advanced: boolean) =>
    shown
      .filter((field) => !!field.advanced === advanced)
      .map((field) => (
        <FormField
          key={field.name}
          field={field}
          entry={entries[field.name]}
          change={(entry) => change(field.name, entry)}
          fault={failed?.field === field.name ? failed.message : empty.has(field.name) ? "Must not be empty." : ""}
        />
      ));
  const advanced = shown.filter((field) => field.advanced);
  return (
    <form class="page form" onSubmit={(event) => (event.preventDefault(), void run("open"))}>
      <h1>{heading}</h1>
      <div class="field">
        <label for="connection-name">Name</label>
        <input
          id="connection-name"
          value={name}
          autocomplete="off"
          spellcheck={false}
          aria-invalid={told && !name.trim() ? true : undefined}
          onInput={(event) => (setWritten(true), setName(event.currentTarget.value))}
        />
        {told && !name.trim() && <p class="field-error" role="alert">A connection needs a name.</p>}
      </div>
      {fields(false)}
      {advanced.length > 0 && (
        <details class="advanced" open={advanced.some(({ name: one }) => failed?.field === one || empty.has(one))}>
          <summary>Advanced</summary>
          {fields(true)}
        </details>
      )}
      {failed && (
        <ErrorBox error={failed} act={(wanted) => void remedy(wanted, () => void run("test"))} />
      )}
      {tested && (
        <div class="banner good" role="status">
          <p><strong>It works:</strong> {tested.product} {tested.version}, sandbox {tested.sandbox}</p>
          {tested.warnings.map((text) => <p key={text}>{text}</p>)}
        </div>
      )}
      {busy && <InstallProgress />}
      <div class="actions">
        <Button label="Save & Connect" tone="primary" submit busy={busy === "open"} onClick={() => {}} />
        <Button label="Save" busy={busy === "save"} onClick={() => void run("save")} />
        <Button label="Test" busy={busy === "test"} onClick={() => void run("test")} />
        <Button label="Cancel" tone="quiet" onClick={() => history.back()} />
      </div>
    </form>
  );
}
