/** What a person entered in the form of a connection, and which fields it shows. */

import type { InputField, FieldEntry, Form } from "../messages.ts";

export type Entries = Readonly<Record<string, FieldEntry>>;

/** The entries with which a form begins: saved secrets and files are kept. */
export function initial(form: Form): Entries {
  return Object.fromEntries(form.fields.map((field) => [field.name, entryOf(field)]));
}

function entryOf(field: InputField): FieldEntry {
  if (field.kind === "secret" || field.kind === "file") {
    if (field.saved) return { kind: "keep", value: null };
    return { kind: field.kind === "file" ? "path" : "secret", value: "" };
  }
  return { kind: "value", value: field.value ?? (field.kind === "switch" ? false : "") };
}

/** Whether a field is shown: each of its conditions holds for the entry of another field. */
export function isVisible(field: InputField, entries: Entries): boolean {
  if (field.always) return true;
  return Object.entries(field.visible_if ?? {}).every(([name, values]) =>
    values.includes(String(entries[name]?.value ?? "")),
  );
}

/** The entries to send: of visible fields only, empty ones as null. */
export function toSend(form: Form, entries: Entries): Record<string, FieldEntry> {
  const shown = form.fields.filter((field) => isVisible(field, entries));
  return Object.fromEntries(
    shown.flatMap((field) => {
      const entry = entries[field.name];
      if (entry.kind === "keep") return [[field.name, entry]];
      if (entry.value === "" || entry.value === null) return [[field.name, { kind: "value", value: null }]];
      return [[field.name, entry]];
    }),
  ) as Record<string, FieldEntry>;
}

/** The required fields that are shown and empty. */
export function missing(form: Form, entries: Entries): string[] {
  const needed = form.fields.filter((field) => field.required && isVisible(field, entries));
  return needed.flatMap(({ name }) => {
    const { kind, value } = entries[name];
    return kind !== "keep" && (value === "" || value === null) ? [name] : [];
  });
}
