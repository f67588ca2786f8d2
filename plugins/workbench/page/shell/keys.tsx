/** The keys of the page. */

import { Dialog } from "../ui/dialog.tsx";

const KEYS: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
  ["Everywhere", [
    ["Ctrl+K", "go to a connection, an object, a saved query, or do something"],
    ["?", "these keys"],
    ["Tab, then arrows", "tools; a line of tools is one stop"],
    ["Esc", "close what is open"],
  ]],
  ["Rows", [
    ["arrows, Page Up, Page Down, Home, End", "move; with Ctrl to the edge, with Shift select"],
    ["Space", "the side pane: the whole value or row; of several rows, what differs between the first and the last"],
    ["Shift+F10", "the menu of the cell, or of the column in the head"],
    ["Ctrl+C", "copy what is selected"],
    ["Ctrl+A, Shift+Space", "select all, or whole rows"],
    ["Ctrl+Enter", "similar rows, where they can be found"],
    ["Enter in the head", "sort; with Shift, beside the others"],
    ["Alt+arrow in the head", "move the column; with Shift resize it"],
  ]],
  ["Changes", [
    ["Enter, F2, or any sign", "edit the cell"],
    ["Shift+Enter", "edit the row as JSON"],
    ["Ctrl+V", "paste a value, or cells from a spreadsheet"],
    ["Delete", "mark rows for deletion, or keep them"],
    ["Ctrl+Z, Ctrl+Shift+Z", "take a step back, or do it again"],
  ]],
  ["Filter", [
    ["Enter", "make a pill; on a pill, edit it"],
    ["←, →", "from pill to pill"],
    ["Delete", "remove the pill"],
  ]],
  ["Console, and texts", [
    ["Ctrl+Enter", "run the request here; keep what is written"],
    ["Ctrl+Shift+Enter", "run all requests"],
    ["Ctrl+I", "lay out the request here"],
    ["Ctrl+H", "search what was run"],
    ["Ctrl+F", "search"],
    ["Esc, then Tab", "leave the console"],
  ]],
];

export function Keys({ close }: { close: () => void }) {
  return (
    <Dialog title="Keys" wide onClose={close}>
      <div class="keys">
        {KEYS.map(([area, keys]) => (
          <section key={area} aria-label={area}>
            <h3>{area}</h3>
            <dl>
              {keys.map(([key, what]) => (
                <div key={key}>
                  <dt><kbd>{key}</kbd></dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
