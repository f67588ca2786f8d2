"""Sort keys: what the server sorts by, and what is dropped, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api import Note, Sort
from dragoman_weaviate.columns.field_types import Family

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_weaviate.columns.view import View

SortKeys = list[tuple[list[str], bool]]


def compile_sort(sorts: Sequence[Sort], view: View) -> tuple[SortKeys, list[Note]]:
    """Translate sort keys; a column that does not sort properly is dropped with a note.

    Returns:
        Paths, each with whether it descends, and a note ``sort-dropped`` for each dropped column.
    """
    keys: SortKeys = []
    notes: list[Note] = []
    for sort in sorts:
        found = view.fields.get(sort.column)
        reason = "there is no such column" if found is None else found.sort_reason
        if found is None or reason:
            notes.append(Note(code="sort-dropped", column=sort.column, reason=reason))
        else:
            keys.append((["_id"] if found.family is Family.ID else found.path, sort.descending))
    return keys, notes
