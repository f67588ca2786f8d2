"""Refuse to overwrite a long value with its truncated beginning (E23)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from dragoman.row_ids import cell_command, spell_id
from dragoman_api.cells import CELL_CUT, ELLIPSIS, is_cut
from dragoman_api.changes import Insert, Update
from dragoman_api.errors import Refused
from dragoman_api.hookspecs import hookimpl

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman_api.calls import Call


class CutCells:
    """Refuses a change that would store what a grid shows of a cut cell."""

    name: ClassVar = "cut_cells"

    def __init__(self, watches: Callable[[str], bool]) -> None:
        self._watches = watches

    @hookimpl
    async def before_call(self, call: Call) -> None:
        if call.hook != "plan_change" or call.connection is None or not self._watches(call.connection.name):
            return
        for change in call.changes:
            if not isinstance(change, (Insert, Update)):
                continue
            for column, value in change.values.items():
                if is_cut(value) or _looks_cut(value):
                    key = change.key.id if isinstance(change, Update) else change.id
                    row = spell_id(key) if key else "a new row"
                    command = cell_command(call.connection.name, str(call.object), key or "ID", column)
                    hint = f"fetch the whole value first, and edit that\n{command}"
                    raise Refused(f"{column} of {row} is the beginning of a longer value", hint=hint)


def _looks_cut(value: object) -> bool:
    """Return whether a text is a grid's truncated display of a long array or object, pasted back."""
    return (
        isinstance(value, str)
        and value.endswith(ELLIPSIS)
        and len(value) == CELL_CUT + len(ELLIPSIS)
        and value[0] in "[{"
    )
