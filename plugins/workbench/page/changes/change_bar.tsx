/** The line under a grid that says how many changes wait, and leads to their review. */

import { useEffect, useState } from "preact/hooks";
import type { Opened } from "../messages.ts";
import { askToLeave } from "../shell/leaving.tsx";
import { beforeLeaving } from "../shell/route.ts";
import { Button } from "../ui/controls.tsx";
import { type ChangeList, changesOf } from "./change_list.ts";
import { Review } from "./review.tsx";

export function ChangeBar({ open, object, applied }: { open: Opened; object: string; applied: () => void }) {
  const [reviewing, setReviewing] = useState(false);
  const list = changesOf(open.connection);
  const waiting = list.of(object);
  const any = waiting.length > 0;
  useEffect(() => (any ? beforeLeaving(() => ask(list, object)) : undefined), [list, object, any]);
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
      <Button label="Discard" onClick={() => list.discard(object)} />
      <Button label="Review" tone="primary" onClick={() => setReviewing(true)} />
      {reviewing && (
        <Review open={open} changes={waiting} close={() => setReviewing(false)} applied={applied} />
      )}
    </div>
  );
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
      { label: "Discard and leave", tone: "danger", run: () => list.discard(object) },
      { label: one ? "Keep it and leave" : "Keep them and leave" },
    ],
  );
}
