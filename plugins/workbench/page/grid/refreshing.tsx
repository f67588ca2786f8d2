/** Rows that are read again by themselves, where a person wants that. */

import { useEffect, useState } from "preact/hooks";
import { Button } from "../ui/controls.tsx";
import { openMenu } from "../ui/menu.tsx";
import type { GridController } from "./controller.ts";
import { repeat } from "./repeating.ts";

const SECONDS = [5, 10, 30, 60];

/** Whether a value is being written, over its cell or in the side pane: its row then stays where it is. */
function isWriting(): boolean {
  const field = document.activeElement?.closest("textarea, [contenteditable=true]");
  return !!document.querySelector(".cell-editor") || !!field?.closest(".pane");
}

/** How often the rows are read again. It is not remembered: a page that is opened loads no server by itself. */
export function Refreshing({ grid }: { grid: GridController }) {
  const [every, setEvery] = useState(0);
  useEffect(() => {
    if (!every) return;
    const run = async () => (isWriting() ? undefined : grid.refresh());
    return repeat(1_000 * every, run, document);
  }, [grid, every]);
  const choose = (event: MouseEvent) =>
    openMenu(
      "Refresh by itself",
      [0, ...SECONDS].map((seconds) => ({
        label: seconds ? `every ${seconds} seconds` : "only when asked",
        checked: seconds === every,
        run: () => setEvery(seconds),
      })),
      (event.currentTarget as Element).getBoundingClientRect(),
    );
  const title = every ? `The rows are read again every ${every} seconds` : "Refresh by itself …";
  return <Button icon="down" label={every ? `${every} s` : "Refresh by itself"} title={title} bare={!every} pressed={every ? true : undefined} onClick={choose} />;
}
