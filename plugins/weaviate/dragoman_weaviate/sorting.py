"""Sort keys: what the server sorts by, and what is dropped, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api import Note, Sort

from .fields import Family

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .schema import View

Keys = list[tuple[list[str], bool]]


def compile_sort(sorts: Sequence[Sort], view: View) -> tuple[Keys, list[Note]]:
    """Translate sort keys; a column that does not sort, or only somehow, is dropped and reported.

    Returns:
        Paths, each with whether it goes down, and a note ``sort-dropped`` for each column that is left out.
    """
    keys: Keys = []
    notes: list[Note] = []
    for sort in sorts:
        found = view.fields.get(sort.column)
        reason = "there is no such column" if found is None else found.sort_reason
        if found is None or reason:
            notes.append(Note(code="sort-dropped", column=sort.column, reason=reason))
        else:
            keys.append((["_id"] if found.family is Family.ID else found.path, sort.descending))
    return keys, notes
