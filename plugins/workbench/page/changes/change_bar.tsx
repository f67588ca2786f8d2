/** The line under a grid that says how many changes wait, and leads to their review. */

import { useEffect, useState } from "preact/hooks";
import type { Opened } from "../messages.ts";
import { beforeLeaving } from "../shell/route.ts";
import { Button } from "../ui/controls.tsx";
import { changesOf } from "./change_list.ts";
import { Review } from "./review.tsx";

export function ChangeBar({ open, object, applied }: { open: Opened; object: string; applied: () => void }) {
  const [reviewing, setReviewing] = useState(false);
  const list = changesOf(open.connection);
  const waiting = list.of(object);
  useEffect(
    () =>
      beforeLeaving(
        () =>
          !list.of(object).length ||
          confirm("Changes of this object are not sent. They stay in the change list while this tab is open. Leave?"),
      ),
    [object],
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
      <Button label="Discard" onClick={() => list.remove(new Set(waiting.map((change) => change.number)))} />
      <Button label="Review" tone="primary" onClick={() => setReviewing(true)} />
      {reviewing && (
        <Review open={open} changes={waiting} close={() => setReviewing(false)} applied={applied} />
      )}
    </div>
  );
}
