"""Pages and console answers as a notebook shows them: a table with its notes beneath; every text is only text."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from .cells import CutBytes, Json, is_cut
from .masking import UNSAFE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .cells import Cell
    from .columns import Column, Note

SHOWN_ROWS = 100
"""The most rows of a page that a notebook shows."""

SHOWN_COLUMNS = 100
"""The most columns that it shows."""

SHOWN_CHARACTERS = 200
"""The most characters of a cell that it shows."""

SHOWN_TEXT = 20_000
"""The most characters of a console answer's text that it shows."""

_FAINT = "opacity:.6"
_TABLE = "border-collapse:collapse"
_CELL = "padding:2px 10px;text-align:{side};vertical-align:top;white-space:pre-wrap;max-width:32em"
_VISIBLE = {code: f"\\u{code:04x}" for code in UNSAFE if chr(code) not in "\t\n"}


def page_html(
    columns: Sequence[Column],
    cells: Sequence[Sequence[Cell]],
    *,
    offset: int,
    total: int | None,
    total_exact: bool,
    notes: Iterable[Note],
) -> str:
    """Return a page as an HTML fragment."""
    visible_columns = columns[:SHOWN_COLUMNS]
    heads = "".join(_head(column) for column in visible_columns)
    body = "".join(
        f"<tr>{''.join(_cell(cell) for cell in row[: len(visible_columns)])}</tr>" for row in cells[:SHOWN_ROWS]
    )
    table = (
        f'<table style="{_TABLE}"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
        if visible_columns
        else ""
    )
    left = [
        f"{len(rest) - limit:,} more {noun} not shown here"
        for rest, limit, noun in ((cells, SHOWN_ROWS, "rows"), (columns, SHOWN_COLUMNS, "columns"))
        if len(rest) > limit
    ]
    return f"<div>{table}{_lines([_extent(len(cells), offset, total, exact=total_exact), *left])}{_notes(notes)}</div>"


def text_html(text: str, *, title: str, notes: Iterable[Note]) -> str:
    """Return a text under a title as an HTML fragment."""
    remainder = [f"{len(text) - SHOWN_TEXT:,} more characters not shown here"] if len(text) > SHOWN_TEXT else []
    pre = f'<pre style="white-space:pre-wrap">{_safe(text[:SHOWN_TEXT])}</pre>' if text else ""
    return f"<div>{_lines([title])}{pre}{_lines(remainder)}{_notes(notes)}</div>"


def title_html(title: str, rest: str) -> str:
    """Return an HTML fragment with a title above it."""
    return f"<div>{_lines([title])}{rest}</div>"


def _extent(rows: int, offset: int, total: int | None, *, exact: bool) -> str:
    of = "" if total is None else f" of {'' if exact else 'at least '}{total:,}"
    return f"rows {offset + 1:,}–{offset + rows:,}{of}" if rows else f"no rows{of}"  # noqa: RUF001 - a range


def _head(column: Column) -> str:
    side = "right" if column.kind.numeric else "left"
    return f'<th style="{_CELL.format(side=side)}" title="{_safe(column.type)}">{_safe(column.name)}</th>'


def _cell(cell: Cell) -> str:
    side = "right" if isinstance(cell, int | float) or type(cell).__name__ == "Decimal" else "left"
    return f'<td style="{_CELL.format(side="left" if isinstance(cell, bool) else side)}">{_value(cell)}</td>'


def _value(cell: Cell) -> str:
    match cell:
        case None:
            return _faint("null", italic=True)
        case tuple():  # MISSING
            return _faint("–")  # noqa: RUF001 - as in the workbench
        case "":
            return _faint('""')
        case bool():
            return str(cell).lower()
        case bytes():
            text = f"{len(cell):,} bytes: {cell[:24].hex(' ')}"
            return _safe(text) + (_faint(" …") if len(cell) > 24 or isinstance(cell, CutBytes) else "")
    text = str(cell)
    markup = _safe(text[:SHOWN_CHARACTERS])
    markup = f"<code>{markup}</code>" if isinstance(cell, Json) else markup
    if is_cut(cell):
        return markup + _faint(" … (cut)")
    return markup + (_faint(f" … ({len(text):,} characters)") if len(text) > SHOWN_CHARACTERS else "")


def _faint(text: str, *, italic: bool = False) -> str:
    return f'<span style="{_FAINT}{";font-style:italic" if italic else ""}">{_safe(text)}</span>'


def _lines(lines: Iterable[str]) -> str:
    return "".join(f'<div style="{_FAINT}">{_safe(line)}</div>' for line in lines if line)


def _notes(notes: Iterable[Note]) -> str:
    items = "".join(f"<li>{_safe(text)}</li>" for text in _told(notes))
    return f"<ul>{items}</ul>" if items else ""


def _told(notes: Iterable[Note]) -> Iterator[str]:
    for note in notes:
        yield f"{note.code}: {f'{note.column}: ' if note.column else ''}{note.reason}"


def _safe(text: str) -> str:
    return escape(text.translate(_VISIBLE))
