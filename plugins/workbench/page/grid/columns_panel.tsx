/** The columns of a grid in a pane: which are shown, in what order, found by their names. */

import { useState } from "preact/hooks";
import { Button } from "../ui/controls.tsx";
import { arranged, markOf } from "./column_layout.ts";
import type { GridController } from "./controller.ts";

/** An object may have thousands of columns; a search leads to the others. */
const MOST_LISTED = 300;

export function ColumnsPanel({ grid, close }: { grid: GridController; close: () => void }) {
  const [words, setWords] = useState("");
  const [carried, setCarried] = useState("");
  grid.columns.value; // others may come
  const arrangement = grid.arrangement.value;
  const all = arranged(grid.ordered, arrangement);
  const hidden = new Set(arrangement.hidden);
  const wanted = words.toLowerCase();
  const matching = all.filter(({ name, type }) => name.toLowerCase().includes(wanted) || type.toLowerCase() === wanted);
  const listed = matching.slice(0, MOST_LISTED);
  const show = (shown: boolean) =>
    grid.hide(
      matching.filter(({ role }) => shown || role !== "key").map(({ name }) => name),
      !shown,
    );
  const step = (event: KeyboardEvent, name: string) => {
    const by = event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : 0;
    if (!by) return;
    event.preventDefault();
    if (event.altKey) {
      const at = all.findIndex((column) => column.name === name);
      const before = by < 0 ? all[at - 1]?.name : (all[at + 2]?.name ?? null);
      if (before !== undefined && at + by < all.length) grid.move(name, before);
      return;
    }
    const boxes = [...(event.currentTarget as Element).closest("ul")!.querySelectorAll("input")];
    boxes[boxes.indexOf(event.currentTarget as HTMLInputElement) + by]?.focus();
  };
  return (
    <aside class="pane" aria-label="Columns" onKeyDown={(event) => event.key === "Escape" && close()}>
      <div class="pane-head">
        <h2>{`Columns: ${all.filter(({ name }) => !hidden.has(name)).length} of ${all.length}`}</h2>
        <Button icon="close" label="Close the pane" bare tone="quiet" onClick={close} />
      </div>
      <input
        type="search"
        class="row-search"
        placeholder="Search names and types"
        aria-label="Search the columns"
        value={words}
        onInput={(event) => setWords(event.currentTarget.value)}
      />
      <div class="column-tools">
        <Button label="All" title="Show the columns listed" onClick={() => show(true)} />
        <Button label="None" title="Hide the columns listed, but for the key" onClick={() => show(false)} />
        <Button icon="refresh" label="As at first" onClick={() => grid.reset()} />
      </div>
      <ul class="column-list" aria-label="Columns">
        {listed.map((column) => (
          <li
            key={column.name}
            class={carried === column.name ? "carried" : ""}
            draggable
            onDragStart={() => setCarried(column.name)}
            onDragEnd={() => setCarried("")}
            onDragOver={(event) => carried && event.preventDefault()}
            onDrop={(event) => {
              event.preventDefault();
              if (carried && carried !== column.name) grid.move(carried, column.name);
              setCarried("");
            }}
          >
            <label>
              <input
                type="checkbox"
                aria-keyshortcuts="Alt+ArrowUp Alt+ArrowDown"
                checked={!hidden.has(column.name)}
                onChange={(event) => grid.hide([column.name], !event.currentTarget.checked)}
                onKeyDown={(event) => step(event, column.name)}
              />
              <span class="head-type" data-mark={markOf(column)} aria-hidden="true" />
              <span class="grow">{column.name}</span>
              <span class="muted">{column.type}</span>
            </label>
          </li>
        ))}
      </ul>
      {!matching.length && <p class="muted pad">No column has this name or type.</p>}
      {matching.length > listed.length && (
        <p class="muted pad">{`${matching.length - listed.length} more: search for them.`}</p>
      )}
    </aside>
  );
}
