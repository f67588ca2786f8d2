/** What becomes of a row whose id exists. */

import type { ImportAsked } from "../messages.ts";

export type Conflict = NonNullable<ImportAsked["on_conflict"]>;

export function ConflictChoice({ value, choose }: { value: Conflict; choose: (value: Conflict) => void }) {
  return (
    <label class="field">
      <span>If the id exists</span>
      <select value={value} onChange={(event) => choose(event.currentTarget.value as Conflict)}>
        <option value="fail">reject the row</option>
        <option value="skip">keep the stored row</option>
        <option value="overwrite">replace the stored row</option>
      </select>
    </label>
  );
}
