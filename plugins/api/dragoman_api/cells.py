"""Values of a grid: the types that a cell may hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

CELL_CUT = 10_000
"""Maximum length of a JSON cell in characters; a longer one is cut (E22)."""

ELLIPSIS = "..."
"""The end of a cut cell (E22)."""


class Json(str):
    """The text of a JSON array or object, digits and key order as the server sent them.

    The type distinguishes JSON from plain text: `Json('["a"]')` is an array, `'["a"]'` a text.
    """

    __slots__ = ()


class CutText(Json):
    """A Json text that was cut; saving it would store the fragment (E22, E23)."""

    __slots__ = ()


if TYPE_CHECKING:
    from decimal import Decimal

    Cell = None | bool | int | float | str | Decimal
    """One value of a grid. Integers have any size; Decimal is used where a float would lose digits; Json is a str."""
else:  # what msgspec decodes: big integers, Decimal and Json travel as extension types
    Cell = None | bool | int | float | str | msgspec.msgpack.Ext


MAX_DIGITS = 4_300
"""Maximum digits of an integer that Python and msgspec read and print; a longer one is a Decimal."""

_ZERO = "e-0000"  # appended to an integer that is too long; the number keeps its value
_LONG = (
    re.compile(  # an unclosed string, and a run of digits that is no integer, are consumed: no byte is scanned twice
        rb'"(?:[^"\\]++|\\[^\n])*+"?|(-[0-9]{%d,}+|[0-9]{%d,}+)(?![.eE])|[0-9]++' % (MAX_DIGITS, MAX_DIGITS + 1)
    )
)
_RUN = re.compile(rb"(?<![0-9])[0-9]{%d}" % MAX_DIGITS)
_WIDENED = re.compile(f"(?<=[0-9]{{{MAX_DIGITS}}}){_ZERO}(?![0-9])")


def exact_number(text: str) -> float | Decimal | Json:
    """Read a JSON number that has a fraction or an exponent, and keep every digit.

    Use it as msgspec's `float_hook`. A number outside Decimal's range stays text.

    >>> exact_number("1.5"), exact_number("1.10"), exact_number("1e400"), exact_number("1e99999999999999999999")
    (1.5, Decimal('1.10'), Decimal('1E+400'), '1e99999999999999999999')
    """
    value = float(text)
    if repr(value) == text:
        return value
    from decimal import Decimal, InvalidOperation

    try:
        return Decimal(text if len(text) <= MAX_DIGITS else narrowed(text))
    except InvalidOperation:
        return Json(text)


def widened(json: bytes) -> bytes:
    """Add an exponent of zero to the integers of a JSON text that are too long to be read as integers.

    `exact_number` reads them; `narrowed` removes the exponent if they stay text.
    """
    if not _RUN.search(json):  # twenty times as fast
        return json
    return _LONG.sub(lambda found: found[1] + _ZERO.encode() if found[1] else found[0], json)


def narrowed(json: str) -> str:
    """Remove the exponents that `widened` added."""
    return _WIDENED.sub("", json) if _ZERO in json else json


def cut(text: str, *, limit: int = CELL_CUT) -> Json | CutText:
    """Cut a JSON text to a number of characters and mark it as cut (E22).

    Args:
        text: The whole JSON text of an array or object.
        limit: The number of characters to keep before the ellipsis.

    Returns:
        The text itself as Json if it fits, else its first characters and ``...`` as CutText.

    >>> cut("[1,2]")
    '[1,2]'
    >>> cut("[1,2,3]", limit=4)
    '[1,2...'
    """
    return Json(text) if len(text) <= limit else CutText(text[:limit] + ELLIPSIS)
