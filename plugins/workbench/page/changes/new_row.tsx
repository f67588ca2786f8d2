/** A new row: values by column, for the change list. */

import { useState } from "preact/hooks";
import { typed } from "../wire/cells.ts";
import type { GridController } from "../grid/controller.ts";
import type { Cell } from "../messages.ts";
import { Button } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { type NewRowDraft, changesOf } from "../state/change_list.ts";

const EMPTY: NewRowDraft = { id: "", texts: {} };

export function NewRow({ grid, close }: { grid: GridController; close: () => void }) {
  const list = changesOf(grid.connection);
  const [draft, setDraft] = useState(list.drafts.get(grid.object) ?? EMPTY);
  const { id, texts } = draft;
  const write = (part: Partial<NewRowDraft>) => {
    const next = { ...draft, ...part };
    list.drafts.set(grid.object, next);
    setDraft(next);
  };
  const clear = () => {
    list.drafts.delete(grid.object);
    setDraft(EMPTY);
  };
  const any = !!id || Object.values(texts).some(Boolean);
  const columns = grid.columns.value.filter((column) => column.written !== "never" && column.role !== "key");
  const add = () => {
    const values: Record<string, Cell> = {};
    for (const column of columns) {
      const text = texts[column.name];
      if (text) values[column.name] = typed(text, column, null, grid.rows.likeOf(column.name));
    }
    list.drafts.delete(grid.object);
    list.insert(grid.object, values, id.trim(), grid.query.peek().tenant ?? null);
    close();
  };
  return (
    <Dialog
      title={`New row in ${grid.object}`}
      onClose={close}
      footer={
        <>
          {any && <Button label="Clear" tone="quiet" onClick={clear} />}
          <Button label={any ? "Later" : "Cancel"} title={any ? "What is written stays in this tab" : undefined} onClick={close} />
          <Button label="Add to the changes" tone="primary" disabled={!Object.values(texts).some(Boolean)} onClick={add} />
        </>
      }
    >
      <label class="field">
        <span>Id</span>
        <input value={id} placeholder="made by the server" autocomplete="off" onInput={(event) => write({ id: event.currentTarget.value })} />
      </label>
      {columns.map(({ name, type, reasons }) => (
        <label class="field" key={name}>
          <span>{name} <span class="muted">{type}</span></span>
          <input
            value={texts[name] ?? ""}
            disabled={!!reasons?.edit}
            title={reasons?.edit}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => write({ texts: { ...texts, [name]: event.currentTarget.value } })}
          />
        </label>
      ))}
    </Dialog>
  );
}
