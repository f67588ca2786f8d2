"""Rows of a load: new documents of one index, each a row of its own, of which nothing is read beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api import Insert
from dragoman_api.changes import object_of
from dragoman_api.grid import text_id
from dragoman_api.kit.row_changes import NotSentError

from . import edited_values
from .requests import RowWrite

if TYPE_CHECKING:
    from dragoman_api import PlanRequest
    from dragoman_api.kit.row_changes import PlanDraft
    from dragoman_elasticsearch.columns.grid_columns import View


def is_load(request: PlanRequest) -> bool:
    """Return whether a plan has only such rows; then no change of it depends on another one, nor on what is stored."""
    if not request.bulk or request.undo or not request.changes:
        return False
    name, id_count, keys = object_of(request.changes[0]), 0, set()
    for change in request.changes:
        if (
            not isinstance(change, Insert)
            or change.object != name
            or change.document is None
            or change.values
            or change.guard
        ):
            return False
        if change.id is not None:
            if not isinstance(change.id, str):
                return False
            id_count += 1
            keys.add((change.id, change.routing))
    return len(keys) == id_count


def check_routing(view: View, routing: str | None) -> None:
    """Refuse a row without the routing that its index requires.

    The server says so of a row with an id only; without one, and for a read, 7.17 answers "id must not be null" (500)
    and "type must not be null" (seen on 7.17.29).

    Raises:
        NotSentError: The routing is missing.
    """
    if view.routed and routing is None:
        raise NotSentError(f"'{view.target}' needs a routing for every row (_routing.required), and this one has none")


def writes(draft: PlanDraft, view: View, *, refresh: bool) -> list[RowWrite]:
    """Return the write of each row; a row that cannot be written is refused in the draft."""
    row_writes = []
    for number, change in enumerate(draft.changes):
        with draft.judging(number):
            assert isinstance(change, Insert)
            check_routing(view, change.routing)
            document = edited_values.whole(change.document or "")
            row = RowWrite(
                action="index" if change.replace else "create", index=change.object,
                id=None if change.id is None else text_id(change.id), body=change.document, routing=change.routing,
                refresh=refresh, changes=[number],
            )  # fmt: skip
            row.check(len(document))
            row_writes.append(row)
    return row_writes
