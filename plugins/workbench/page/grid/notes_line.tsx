/** The notes of a grid, always in sight in its status line; all of them open above it, so that no row moves. */

import { useState } from "preact/hooks";
import type { Note } from "../messages.ts";
import { Notes } from "../ui/controls.tsx";
import { Icon } from "../ui/icons.tsx";

export function NotesLine({ notes }: { notes: readonly Note[] }) {
  const [open, setOpen] = useState(false);
  if (!notes.length) return <span class="grow" />;
  const [first] = notes;
  return (
    <div
      class="notes-line grow"
      onKeyDown={(event) => {
        if (event.key === "Escape") setOpen(false);
      }}
    >
      <button type="button" class="badge warn" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="warning" /> {notes.length} {notes.length > 1 ? "notes" : "note"}
      </button>
      <span class="note-text" title={first.reason}>
        {first.column ? `${first.column}: ` : ""}
        {first.reason}
      </span>
      {open && (
        <div class="notes-panel">
          <Notes notes={notes} all />
        </div>
      )}
    </div>
  );
}
