/** Rows that are read again by themselves, where a person wants that. */

import { useEffect, useState } from "preact/hooks";
import { Button } from "../ui/controls.tsx";
import { openMenu } from "../ui/menu.tsx";
import type { GridController } from "./controller.ts";
import { repeat } from "./repeating.ts";

const SECONDS = [5, 10, 30, 60];

/** How often the rows are read again. It is not remembered: a page that is opened loads no server by itself. */
export function Refreshing({ grid }: { grid: GridController }) {
  const [every, setEvery] = useState(0);
  useEffect(() => {
    if (!every) return;
    // a field that is laid over a cell stays where it is
    const run = async () => (document.querySelector(".cell-editor") ? undefined : grid.refresh());
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
