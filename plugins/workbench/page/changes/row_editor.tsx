/** A row as a document: several values are changed at once, and become one step of the change list. */

import { useMemo, useRef } from "preact/hooks";
import type { GridController } from "../grid/controller.ts";
import { type DocumentFault, readDocument } from "../grid/row_document.ts";
import { type RowDraft, changesOf, isTouched } from "../state/change_list.ts";
import { Button } from "../ui/controls.tsx";
import { JsonEditor } from "../ui/json_editor.tsx";
import { lineAt } from "../ui/json_text.ts";
import { toast } from "../ui/toasts.tsx";

const MOST_FAULTS = 4;
const MOST_NAMES = 6;

/** Loaded when a row is first written. */
export function RowEditor({ grid, draft }: { grid: GridController; draft: RowDraft }) {
  const list = changesOf(grid.connection);
  const { object } = grid;
  const columns = grid.columns.value;
  const { kind, row, cells, text, begin, id } = draft;
  const { values, faults } = useMemo(() => readDocument(text, { kind, columns, cells }), [text, kind, columns, cells]);
  const marks = useMemo(
    () => ({ changed: kind === "update" ? values : [], faults: faults.map(({ at }) => at) }),
    [values, faults],
  );
  const folded = useMemo(() => placesOfVectors(begin, grid), []);
  const goTo = useRef((_: number) => {});
  const write = (part: Partial<RowDraft>) => {
    const now = list.rowDrafts.peek().get(object);
    if (now) list.write(object, { ...now, ...part });
  };
  const end = () => {
    list.write(object, null);
    grid.view.focus();
  };
  const cancel = () => {
    const written = list.rowDrafts.peek().get(object);
    end();
    if (!written || !isTouched(written)) return;
    toast("What was written is dropped.", "plain", { label: "Undo", run: () => list.write(object, written) });
  };
  const possible = faults.length === 0 && values.length > 0;
  const done = () => {
    if (faults.length) return goTo.current(faults[0].at);
    if (!values.length) return;
    const after = Object.fromEntries(values.map(({ column, after }) => [column, after]));
    if (kind === "insert") list.insert(object, after, id.trim(), grid.query.peek().tenant ?? null);
    else {
      const edits = values.map(({ column, after }) => ({ row, column, before: grid.rows.cellOf(row, column), after }));
      list.fill(object, edits);
    }
    end();
  };
  const name = kind === "insert" ? "New row" : "Change a row";
  return (
    <div class="row-editor">
      <div class="pane-title">
        <strong>{name}</strong>
        <span class="muted grow" title={row.id}>{kind === "insert" ? `with the values of ${row.id}` : row.id}</span>
        <Button label="Cancel" title="Cancel (Esc)" tone="quiet" onClick={cancel} />
        <Button label={kind === "insert" ? "Add to the changes" : "Change"} tone="primary" title="Ctrl+Enter" disabled={!possible} onClick={done} />
      </div>
      {kind === "insert" && (
        <label class="row-id">
          <span>Id</span>
          <input value={id} placeholder="made by the server" autocomplete="off" spellcheck={false} onInput={(event) => write({ id: event.currentTarget.value })} />
        </label>
      )}
      <JsonEditor
        label={kind === "insert" ? "New row as JSON" : `Row ${row.id} as JSON`}
        text={text}
        marks={marks}
        folded={folded}
        goTo={goTo}
        commands={{ changed: (written) => write({ text: written }), done, cancel }}
      />
      <Faults faults={faults} text={text} goTo={(at) => goTo.current(at)} />
      {kind === "update" && !faults.length && (
        <p class="row-difference" role="status">{difference(values.map(({ column }) => column))}</p>
      )}
    </div>
  );
}

function difference(names: readonly string[]): string {
  if (!names.length) return "Nothing differs.";
  const more = names.length - MOST_NAMES;
  return `Differs: ${names.slice(0, MOST_NAMES).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** Each fault leads to its line. */
function Faults({ faults, text, goTo }: { faults: readonly DocumentFault[]; text: string; goTo: (at: number) => void }) {
  const more = faults.length - MOST_FAULTS;
  return (
    <ul class="row-faults" aria-label="What is wrong" aria-live="polite">
      {faults.slice(0, MOST_FAULTS).map(({ reason, at }) => (
        <li key={`${at}${reason}`}>
          <button type="button" class="row-fault" onClick={() => goTo(at)}>
            <span class="muted">line {lineAt(text, at)}</span> {reason}
          </button>
        </li>
      ))}
      {more > 0 && <li class="muted">and {more} more</li>}
    </ul>
  );
}

/** Where vectors stand: nobody reads their numbers. */
function placesOfVectors(text: string, grid: GridController): number[] {
  const vectors = grid.columns.peek().filter(({ dimensions }) => (dimensions ?? null) !== null);
  return vectors.map(({ name }) => text.indexOf(`\n  ${JSON.stringify(name)}: `) + 1).filter((at) => at > 0);
}
