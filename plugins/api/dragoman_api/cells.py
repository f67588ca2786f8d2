"""Values of a grid: what a cell may hold, and how it is told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

CELL_CUT = 10_000
"""Characters of a JSON cell after which it is cut (E22)."""

ELLIPSIS = "..."
"""What a cut cell ends in (E22)."""


class Json(str):
    """The text of a JSON array or object, digits and key order as the server sent them.

    A str that says of itself that it is not a plain string: `Json('["a"]')` is an array, `'["a"]'` a text.
    """

    __slots__ = ()


class CutText(Json):
    """A Json text that was cut; saving it would store the fragment (E22, E23)."""

    __slots__ = ()


if TYPE_CHECKING:
    from decimal import Decimal

    Cell = None | bool | int | float | str | Decimal
    """One value of a grid. Integers have any size; Decimal stands where a float would lose digits; Json is a str."""
else:  # what msgspec decodes: big integers, Decimal and Json travel as extension types
    Cell = None | bool | int | float | str | msgspec.msgpack.Ext


def exact_number(text: str) -> float | Decimal:
    """Read a JSON number that has a fraction or an exponent without losing a digit of how it was written.

    Meant as msgspec's `float_hook`.

    >>> exact_number("1.5"), exact_number("1.10"), exact_number("1e400")
    (1.5, Decimal('1.10'), Decimal('1E+400'))
    """
    value = float(text)
    if repr(value) == text:
        return value
    from decimal import Decimal

    return Decimal(text)


def cut(text: str, *, limit: int = CELL_CUT) -> Json | CutText:
    """Cut a JSON text to a limit of characters, marked as E22 asks.

    Args:
        text: The whole JSON text of an array or object.
        limit: Characters that stay before the ellipsis.

    Returns:
        The text itself as Json when it fits, else its first characters and ``...`` as CutText.

    >>> cut("[1,2]")
    '[1,2]'
    >>> cut("[1,2,3]", limit=4)
    '[1,2...'
    """
    return Json(text) if len(text) <= limit else CutText(text[:limit] + ELLIPSIS)
