/** Copied cells that their places do not take, before anything is pasted. */

import type { Pasted } from "../grid/pasting.ts";
import { Button } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { whole } from "../ui/figures.ts";
import { line } from "../wire/cells.ts";

const MOST_SHOWN = 50;

export function RefusedCells({ pasted, paste, close }: { pasted: Pasted; paste: () => void; close: () => void }) {
  const { edits, refused } = pasted;
  const more = refused.length - MOST_SHOWN;
  const others = edits.length === 1 ? "the other cell" : `the other ${whole(edits.length)} cells`;
  return (
    <Dialog
      wide
      title={refused.length === 1 ? "A cell cannot be pasted" : `${whole(refused.length)} cells cannot be pasted`}
      onClose={close}
      footer={
        <>
          <Button label="Paste nothing" tone={edits.length ? "plain" : "primary"} onClick={close} />
          {edits.length > 0 && <Button label={`Paste ${others}`} tone="primary" onClick={() => (close(), paste())} />}
        </>
      }
    >
      <p>Nothing is pasted yet.</p>
      <div class="table-scroll">
        <table class="table">
          <thead>
            <tr><th scope="col">Row</th><th scope="col">Column</th><th scope="col">Copied</th><th scope="col">Why not</th></tr>
          </thead>
          <tbody>
            {refused.slice(0, MOST_SHOWN).map(({ row, column, text, reason }, at) => (
              <tr key={at}>
                <td class="digits">{whole(row)}</td>
                <td>{column || <span class="muted">–</span>}</td>
                <td><code>{line(text)}</code></td>
                <td>{reason}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {more > 0 && <p class="muted">and {whole(more)} more</p>}
    </Dialog>
  );
}
