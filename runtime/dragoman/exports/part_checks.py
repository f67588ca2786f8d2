"""Checks of a driver's claims about export parts against the parts themselves."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from dragoman_api.errors import DriverFaultError
from dragoman_api.exports import ExportForm

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from dragoman_api.exports import ExportPart, ExportRequest

_SHORT = 60
"""The average length of a line, in bytes, below which lines count as short."""

_HINT = "tell the driver's author: dragoman driver check finds it too"


async def counted(stream: AsyncGenerator[ExportPart, None], request: ExportRequest) -> AsyncGenerator[ExportPart, None]:
    """Yield the parts of an export while they match what the driver claims of them.

    For documents and rows, a line is one row; in the bulk form, a row has at least one line.

    Raises:
        DriverFaultError: A part ends inside a line, or has an empty line or a wrong number of rows; or its checkpoint
            is a repeated one, after which rows would come twice.
    """
    checkpoint, rows = request.checkpoint, 0
    async with aclosing(stream):
        async for part in stream:
            if fault := _fault(part, request.form):
                raise DriverFaultError(f"after row {rows:,}: {fault}", hint=_HINT)
            if part.rows and part.checkpoint is not None and part.checkpoint == checkpoint:
                text = "the driver's checkpoint did not advance, so resuming there would repeat rows"
                raise DriverFaultError(f"after row {rows:,}: {text}", hint=_HINT)
            checkpoint, rows = part.checkpoint, rows + part.rows
            yield part


def _fault(part: ExportPart, form: ExportForm) -> str:
    """Return a sentence on what is wrong with a part; empty if nothing is."""
    if part.data and not part.data.endswith(b"\n"):
        return "a part of the export ends inside a line"
    lines = _lines(part.data)
    if lines < 0:
        return "a part of the export has an empty line"
    if part.rows > lines or (part.rows != lines and form is not ExportForm.BULK):
        return f"the driver claims {part.rows:,} rows for a part that has {lines:,} lines"
    return ""


def _lines(data: bytes) -> int:
    """Return the number of lines; -1 if one is empty."""
    if data[:1] == b"\n":
        return -1
    lines, find, end = 0, data.find, len(data)
    at = find(b"\n") + 1
    while at:
        lines += 1
        if at < _SHORT * lines:  # many short lines: counting all bytes is faster than to stop at each of them
            return -1 if data.rfind(b"\n\n") >= 0 else data.count(b"\n")
        if at == end:
            break
        line_end = find(b"\n", at) + 1
        if line_end == at + 1:
            return -1
        at = line_end
    return lines
