/** One field of a connection's form. */

import { useId, useState } from "preact/hooks";
import type { InputField, FieldEntry } from "../messages.ts";
import { Button } from "../ui/controls.tsx";

interface Props {
  readonly field: InputField;
  readonly entry: FieldEntry;
  readonly change: (entry: FieldEntry) => void;
  /** What is wrong with it, with a remedy beside it where there is one. */
  readonly fault: string;
}

export function FormField({ field, entry, change, fault }: Props) {
  const id = useId();
  const describedBy = [field.help && `${id}-help`, fault && `${id}-fault`].filter(Boolean).join(" ") || undefined;
  const control = { id, "aria-describedby": describedBy, "aria-invalid": fault ? true : undefined };
  return (
    <div class={field.kind === "switch" ? "field switch" : "field"}>
      <label for={id}>
        {field.label}
        {field.required && <span class="muted"> required</span>}
      </label>
      <Control field={field} entry={entry} change={change} control={control} />
      {field.help && <p class="field-help" id={`${id}-help`}>{field.help}</p>}
      {fault && <p class="field-error" id={`${id}-fault`} role="alert">{fault}</p>}
    </div>
  );
}

interface ControlProps extends Omit<Props, "fault"> {
  readonly control: Record<string, string | boolean | undefined>;
}

function Control({ field, entry, change, control }: ControlProps) {
  const text = String(entry.value ?? "");
  const typed = (event: { currentTarget: { value: string } }) =>
    change({ kind: entry.kind, value: event.currentTarget.value });
  switch (field.kind) {
    case "switch":
      return (
        <input
          {...control}
          type="checkbox"
          checked={entry.value === true}
          onChange={(event) => change({ kind: "value", value: event.currentTarget.checked })}
        />
      );
    case "choice":
      return (
        <select {...control} value={text} onChange={typed}>
          {!field.required && <option value="">–</option>}
          {field.choices?.map(({ value, label }) => <option key={value} value={value}>{label}</option>)}
        </select>
      );
    case "secret":
    case "file":
      return <Referred field={field} entry={entry} change={change} control={control} />;
    default:
      return (
        <input
          {...control}
          value={text}
          inputMode={field.kind === "integer" ? "numeric" : undefined}
          autocomplete="off"
          spellcheck={false}
          onInput={typed}
        />
      );
  }
}

/** A secret or a file: kept, typed, or one that a saved connection holds already. Nothing saved ever comes back. */
function Referred({ field, entry, change, control }: ControlProps) {
  const [seen, setSeen] = useState(false);
  const own = field.kind === "file" ? "path" : "secret";
  if (entry.kind === "keep") {
    return (
      <div class="kept">
        <span>{field.saved}</span>
        <Button label="Change" onClick={() => change({ kind: own, value: "" })} />
      </div>
    );
  }
  return (
    <div class="referred">
      {entry.kind === "reference" ? (
        <select
          {...control}
          value={String(entry.value ?? "")}
          onChange={(event) => change({ kind: "reference", value: event.currentTarget.value })}
        >
          {field.references?.map(({ id, act }) => <option key={id} value={id}>{act}</option>)}
        </select>
      ) : (
        <input
          {...control}
          type={(own === "secret" && !seen ? "password" : "text") as "text"}
          value={String(entry.value ?? "")}
          autocomplete={own === "secret" ? "new-password" : "off"}
          placeholder={own === "path" ? "path of a certificate file" : ""}
          spellcheck={false}
          onInput={(event) => change({ kind: own, value: event.currentTarget.value })}
        />
      )}
      {own === "secret" && entry.kind === "secret" && (
        <Button label={seen ? "Hide" : "Show"} tone="quiet" pressed={seen} onClick={() => setSeen(!seen)} />
      )}
      {(field.references?.length ?? 0) > 0 && (
        <Button
          label={entry.kind === "reference" ? "Type it" : "Use a known one"}
          tone="quiet"
          onClick={() =>
            change(
              entry.kind === "reference"
                ? { kind: own, value: "" }
                : { kind: "reference", value: field.references?.[0].id ?? "" },
            )
          }
        />
      )}
      {field.saved && <Button label="Keep the saved one" tone="quiet" onClick={() => change({ kind: "keep", value: null })} />}
    </div>
  );
}
