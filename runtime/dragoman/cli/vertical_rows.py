"""Rows with a line for each column, for terminals that a table does not fit."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

from .output import GAP, fit_columns, fitted, plain, say_cut, show, width_of, write_page

if TYPE_CHECKING:
    from dragoman_api.grid import Page

NARROW = 80
"""Width of a terminal in columns below which rows are expanded, unless all columns of the table have room."""

MOST_LINES = 4
"""Maximum number of lines of a value on a terminal."""


def write_rows(
    page: Page, *, format: str, vertical: bool | None, wide: bool, escape: bool, more: str = "use --json"
) -> None:
    """Write the rows of a page as `write_page` does, or expanded; without a wish, as the width of a terminal allows."""
    expands = _is_too_narrow(page, wide=wide) if vertical is None else vertical
    if format == "table" and page.columns and page.cells and expands:
        write_expanded(page, wide=wide)
    else:
        write_page(page, format=format, more=more, escape=escape, wide=wide)


def _is_too_narrow(page: Page, *, wide: bool) -> bool:
    """Return whether a narrow terminal has no room for all columns of a table."""
    room = shutil.get_terminal_size().columns
    if wide or not sys.stdout.isatty() or room >= NARROW:
        return False
    lines = [[plain(column.name) for column in page.columns], *([*map(show, row)] for row in page.cells)]
    natural = [min(max(map(width_of, column)), room) for column in zip(*lines, strict=True)]
    return len(fit_columns(natural, room)) < len(natural)


def write_expanded(page: Page, *, wide: bool) -> None:
    """Write the rows of a page, each below its number; columns that a row does not hold are left out."""
    names = [plain(column.name) for column in page.columns]
    margin = max(map(width_of, names))
    columns = shutil.get_terminal_size().columns
    room = max(columns - margin - len(GAP), 10) if sys.stdout.isatty() and not wide else None
    cut = 0
    for number, row in enumerate(page.cells, page.offset + 1):
        sys.stdout.write(f"{f'- row {number:,} '.ljust(min(columns, 60), '-')}\n")
        for name, cell in zip(names, row, strict=True):
            if isinstance(cell, tuple):
                continue
            pieces, whole = _pieces(show(cell), room)
            cut += not whole
            blank = " " * (margin + len(GAP))
            head = f"{name}{' ' * (margin - width_of(name))}{GAP}"
            sys.stdout.write(head + f"\n{blank}".join(pieces) + "\n")
    say_cut(cut)


def _pieces(text: str, room: int | None) -> tuple[list[str], bool]:
    """Divide a text into the lines of a value; say whether it is whole."""
    if room is None or width_of(text[: room + 1]) <= room >= len(text):
        return [text], True
    pieces: list[str] = []
    while text and len(pieces) < MOST_LINES:
        last = len(pieces) == MOST_LINES - 1
        piece = fitted(text, room) if last else _begin(text, room)
        if last and piece != text:
            return [*pieces, piece], False
        pieces.append(piece)
        text = text[len(piece) :]
    return pieces, True


def _begin(text: str, room: int) -> str:
    """Return as much of the beginning of a text as fits."""
    piece = text[:room]
    while width_of(piece) > room:
        piece = piece[:-1]
    return piece or text[:1]
