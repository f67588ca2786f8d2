"""A driver's notes on the rows of an export, bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api.columns import Note

if TYPE_CHECKING:
    from collections.abc import Sequence

NOTES = 50
"""Maximum number of a driver's notes per export; a final note says if there are more."""


def add_notes(kept: list[Note], notes: Sequence[Note], *, rows: int, known: int = 0) -> None:
    """Add a part's notes to those kept so far, while there is room.

    Args:
        kept: The notes so far, which this function extends.
        notes: The part's.
        rows: Rows up to the end of the part.
        known: How many of `kept` are not the driver's and take no room.
    """
    room = NOTES - (len(kept) - known)
    kept += notes[: max(room, 0)]
    if room >= 0 and len(notes) > room:
        reason = f"the driver told more about rows after the first {rows:,}; these notes are left out"
        kept.append(Note(code="notes-cut", reason=reason))
