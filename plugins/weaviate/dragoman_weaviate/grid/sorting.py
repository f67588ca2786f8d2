"""Sort keys: what the server sorts by, and what is dropped, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api.kit.page_columns import sortable
from dragoman_weaviate.columns.field_types import Family

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api import Note, Sort
    from dragoman_weaviate.columns.grid_columns import View

SortKeys = list[tuple[list[str], bool]]


def compile_sort(sorts: Sequence[Sort], view: View) -> tuple[SortKeys, list[Note]]:
    """Translate sort keys; a column that does not sort properly is dropped with a note.

    Returns:
        Paths, each with whether it descends, and a note ``sort-dropped`` for each dropped column.
    """
    server_keys, notes = sortable(sorts, view.fields.get, lambda field: field.sort_reason)
    return [
        (["_id"] if field.family is Family.ID else field.path, sort.descending) for sort, field in server_keys
    ], notes
