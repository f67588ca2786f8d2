/** Two rows of the grid beside each other: what differs, and what is equal if it is asked for. */

import { useState } from "preact/hooks";
import type { Cell } from "../messages.ts";
import { whole } from "../ui/figures.ts";
import { isCut, sameCell } from "../wire/cells.ts";
import type { GridController } from "./controller.ts";
import { spelled } from "./copy_formats.ts";
import { partsOf } from "./differences.ts";

export function Compared({ grid, top, bottom }: { grid: GridController; top: number; bottom: number }) {
  const [all, setAll] = useState(false);
  grid.version.value;
  const [one, other] = [grid.rows.row(top), grid.rows.row(bottom)];
  if (!one || !other) return <p class="muted pad">Row {whole((one ? bottom : top) + 1)} is not here: scroll to it.</p>;
  const columns = grid.columns.value.map(({ name }) => {
    const [left, right] = [grid.rows.cellOf(one, name), grid.rows.cellOf(other, name)];
    const alike = sameCell(left, right);
    return { name, left, right, alike, same: alike && !isCut(left) };
  });
  const different = columns.filter(({ same }) => !same);
  const equal = columns.length - different.length;
  return (
    <div class="pane-body">
      <div class="row-tools compared-tools">
        <span role="status">{different.length ? `${whole(different.length)} of ${whole(columns.length)} columns ${different.length === 1 ? "differs" : "differ"}` : "The rows are equal"}</span>
        {equal > 0 && (
          <label class="inline">
            <input type="checkbox" checked={all} onChange={(event) => setAll(event.currentTarget.checked)} />
            <span>Show {whole(equal)} equal</span>
          </label>
        )}
      </div>
      {(all || different.length > 0) && (
        <table class="compared" aria-label="Two rows, compared">
          <thead>
            <tr><td />{[top, bottom].map((row) => <th key={row} scope="col">row {whole(row + 1)}</th>)}</tr>
          </thead>
          <tbody>
            {(all ? columns : different).map(({ name, left, right, alike, same }) => (
              <tr key={name} class={same ? "same" : ""}>
                <th scope="row"><bdi>{name}</bdi></th>
                {same ? <td colSpan={2}><Value cell={left} other={left} /></td>
                  : alike ? <td colSpan={2} class="muted">Their beginnings are equal; the rest is not here.</td>
                  : <><td><Value cell={left} other={right} /></td><td><Value cell={right} other={left} /></td></>}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

function Value({ cell, other }: { cell: Cell; other: Cell }) {
  const { before, own, after } = partsOf(spelled(cell), cell === other ? "" : spelled(other));
  if (cell === other) return <bdi>{own}</bdi>;
  return <bdi>{before}{own && <mark>{own}</mark>}{after}</bdi>;
}
