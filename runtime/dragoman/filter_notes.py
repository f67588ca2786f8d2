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
        Note(code=APPROXIMATE, reason=f"filter row {row.row + 1} ({row.clause}): {'; '.join(row.approximations)}")
        for row in (compiled.rows if compiled else ())
        if row.approximations or not (row.exact or row.unlikely)
    ]
