/** The line under a grid that says how many changes wait, and leads to their review. */

import { useEffect, useState } from "preact/hooks";
import type { OpenConnection } from "../messages.ts";
import { askToLeave } from "../state/leaving.tsx";
import { beforeLeaving } from "../state/route.ts";
import { Button } from "../ui/controls.tsx";
import { toast } from "../ui/toasts.tsx";
import { type Change, type ChangeList, changesOf, isTouched } from "../state/change_list.ts";
import { Review } from "./review.tsx";

export function ChangeBar({ open, object, applied }: { open: OpenConnection; object: string; applied: (changes: readonly Change[]) => void }) {
  const [reviewing, setReviewing] = useState(false);
  const list = changesOf(open.connection);
  const waiting = list.of(object);
  const any = waiting.length > 0;
  const draft = list.rowDrafts.value.get(object);
  const unfinished = !!draft && isTouched(draft);
  useEffect(() => {
    const key = (event: KeyboardEvent) => void (stepped(event, list, object) && event.preventDefault());
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [list, object]);
  useEffect(
    () => (any ? beforeLeaving(() => ask(list, object)) : unfinished ? beforeLeaving(() => askOfRow(list, object)) : undefined),
    [list, object, any, unfinished],
  );
  if (!waiting.length && !reviewing) return null;
  const count = (kind: string) => waiting.filter((change) => change.kind === kind).length;
  const parts = [
    [count("update"), "changed"],
    [count("insert"), "new"],
    [count("delete"), "to delete"],
  ].flatMap(([number, what]) => (number ? [`${number} ${what}`] : []));
  return (
    <div class="change-bar" role="region" aria-label="Changes">
      <strong>{waiting.length} {waiting.length === 1 ? "change" : "changes"}</strong>
      <span class="grow">{parts.join(", ")}, not sent yet</span>
      <div class="change-bar-buttons">
        <Button icon="undo" label="Undo" title="Undo (Ctrl+Z)" bare tone="quiet" disabled={!list.canUndo(object)} onClick={() => list.undo(object)} />
        <Button icon="redo" label="Redo" title="Redo (Ctrl+Shift+Z)" bare tone="quiet" disabled={!list.canRedo(object)} onClick={() => list.redo(object)} />
        <Button label="Discard" onClick={() => discard(list, object)} />
        <Button label="Review" tone="primary" onClick={() => setReviewing(true)} />
      </div>
      {reviewing && (
        <Review open={open} changes={waiting} close={() => setReviewing(false)} applied={applied} />
      )}
    </div>
  );
}

/** Drop what waits; it can be taken back, here and by Ctrl+Z. */
function discard(list: ChangeList, object: string): void {
  const count = list.of(object).length;
  list.drop(object);
  const left = list.list.value;
  const run = () => (list.list.value === left ? list.undo(object) : toast("There are other changes since; Ctrl+Z takes them back first."));
  const undo = { label: "Undo", run: () => void run() };
  toast(`${count} ${count === 1 ? "change is" : "changes are"} discarded.`, "plain", undo);
}

/** Ctrl+Z and Ctrl+Shift+Z (or Ctrl+Y) step through what was done, except in a field, which has steps of its own. */
function stepped(event: KeyboardEvent, list: ChangeList, object: string): boolean {
  const key = event.key.toLowerCase();
  if (!(event.ctrlKey || event.metaKey) || event.altKey || (key !== "z" && key !== "y")) return false;
  if ((event.target as Element).closest("input, textarea, select, dialog, .editor")) return false;
  const again = key === "y" || event.shiftKey;
  const done = again ? list.redo(object) : list.undo(object);
  if (!done) toast(again ? "There is nothing to do again." : "There is nothing to undo.");
  return true;
}

function ask(list: ChangeList, object: string): Promise<boolean> {
  const waiting = list.of(object);
  const one = waiting.length === 1;
  return askToLeave(
    one ? "A change is not sent" : `${waiting.length} changes are not sent`,
    <p>
      {one ? "It stays" : "They stay"} in the change list of <strong>{object}</strong> while this tab is open.
    </p>,
    [
      { label: "Discard and leave", tone: "danger", run: () => discard(list, object) },
      { label: one ? "Keep it and leave" : "Keep them and leave" },
    ],
  );
}

function askOfRow(list: ChangeList, object: string): Promise<boolean> {
  return askToLeave("A row is not finished", <p>It stays in the side pane of <strong>{object}</strong> while this tab is open.</p>, [
    { label: "Drop it and leave", tone: "danger", run: () => list.write(object, null) },
    { label: "Keep it and leave" },
  ]);
}
