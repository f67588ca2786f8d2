"""Texts that a spreadsheet would read as a formula when it opens a CSV file."""

from __future__ import annotations

import re

from dragoman_api.columns import Note

_BEGINS = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,9})?)?")


def is_formula(text: str) -> bool:
    """Return whether a spreadsheet may run a text as a formula; a number is none.

    >>> [text for text in ("=1+1", "-5", "+1.5e3", "-", "+31 20 1234", "@SUM(A1)", "a=b") if is_formula(text)]
    ['=1+1', '+31 20 1234', '@SUM(A1)']
    """
    return text.startswith(_BEGINS) and not _NUMBER.fullmatch(text)


def escaped(text: str) -> str:
    """Put an apostrophe before a text; spreadsheets take it as the mark of a text that is no formula."""
    return f"'{text}"


def unescaped(text: str) -> str:
    """Remove the apostrophe that an export put before a formula, or before apostrophes and a formula.

    >>> unescaped("'=1+1"), unescaped("''=1+1"), unescaped("'tis")
    ('=1+1', "'=1+1", "'tis")
    """
    return text[1:] if text[:1] == "'" and is_formula(text.lstrip("'")) else text


def formula_notes(count: int, *, escaped: bool) -> list[Note]:
    """Return a note on how many cells look like a formula and how they were written; none if there are none."""
    if not count:
        return []
    cells = f"{count:,} cell{'s begin' if count > 1 else ' begins'} like a formula"
    if escaped:
        return [Note(code="formulas-escaped", reason=f"{cells} and got an apostrophe before it")]
    hint = "--escape-formulas puts an apostrophe before them"
    return [Note(code="formulas-kept", reason=f"{cells}, which a spreadsheet may run", hint=hint)]
