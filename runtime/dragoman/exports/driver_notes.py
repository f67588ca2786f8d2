"""A driver's notes on the rows of an export, bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api.columns import Note

if TYPE_CHECKING:
    from collections.abc import Sequence

NOTES = 50
"""Maximum number of a driver's notes per export; a final note says if there are more."""


def add_notes(kept: list[Note], notes: Sequence[Note], *, rows: int, known: int = 0) -> None:
    """Add the notes on a part to those of the export, up to `NOTES` of the driver's.

    Args:
        kept: The notes so far, which this function extends.
        notes: The notes on the part.
        rows: The number of rows up to the end of the part.
        known: The number of notes in `kept` that are not the driver's, and so do not count.
    """
    room = NOTES - (len(kept) - known)
    kept += notes[: max(room, 0)]
    if room >= 0 and len(notes) > room:
        reason = f"the driver told more about rows after the first {rows:,}; these notes are left out"
        kept.append(Note(code="notes-cut", reason=reason))
