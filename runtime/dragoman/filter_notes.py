"""What a filter makes approximate, as notes of the result: a page, a count or an export shows no explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api.columns import Note

if TYPE_CHECKING:
    from dragoman_api.filters import CompiledFilter

APPROXIMATE = "filter-approximate"


def filter_notes(compiled: CompiledFilter | None) -> list[Note]:
    """Return a note for each row of a filter that is approximate in more than unlikely cases; none without a filter."""
    return [
        Note(code=APPROXIMATE, reason=f"filter row {told.row + 1} ({told.clause}): {'; '.join(told.approximations)}")
        for told in (compiled.rows if compiled else ())
        if told.approximations or not (told.exact or told.unlikely)
    ]
