"""Values of a grid: the types that a cell may hold."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import msgspec

CELL_CUT = 10_000
"""Maximum length of a JSON cell in characters; a longer one is cut (E22)."""

ELLIPSIS = "..."
"""The end of a cut cell (E22)."""

CELL_BUDGET = 256 * 2**10
"""Maximum size of one text (as UTF-8), JSON or binary cell of a page, in bytes.

Above this and the next two budgets, the driver's process cuts the longest cells before it sends the page, marks each as
`CutText`, `CutJson` or `CutBytes`, and adds a note ``cells-cut`` for each column. `fetch_cell` returns a whole value. A
driver need not cut anything itself.
"""

ROW_BUDGET = 3 * 2**20
"""Maximum size of the texts and bytes of one row of a page, in bytes."""

PAGE_BUDGET = 24 * 2**20
"""Maximum size of the texts and bytes of all cells of a page, or of all pages that answer one console request."""

TEXT_BUDGET = 32 * 2**20
"""Maximum size of all `Answer.text` of one console request, in bytes; longer ones are cut, with a note ``text-cut``."""


class Json(str):
    """The text of a JSON array or object, digits and key order as the server sent them.

    The type distinguishes JSON from plain text: `Json('["a"]')` is an array, `'["a"]'` a text. In a change it may be
    the text of any JSON value, of which neither kind nor digits change.
    """

    __slots__ = ()


class CutJson(Json):
    """A Json text that was cut; saving it would store the fragment (E22, E23)."""

    __slots__ = ()


class CutText(str):
    """A plain text that was cut; saving it would store the fragment (E23)."""

    __slots__ = ()


class CutBytes(bytes):
    """The first bytes of a binary value that was cut, without an ellipsis; saving it would store the fragment (E23)."""

    __slots__ = ()


MISSING = ()
"""The cell of a field that a row does not hold, where None is a null that the row does hold.

It is the empty tuple, and no other cell is a tuple: compare with ``is``. A driver whose server does not tell the two
apart uses None for both. A change takes no `MISSING`: it leaves the column out.
"""


def is_cut(value: object) -> bool:
    """Check whether a cell holds only the beginning of its value."""
    return isinstance(value, CutJson | CutText | CutBytes)


if TYPE_CHECKING:
    from decimal import Decimal

    Value = None | bool | int | float | str | bytes | Decimal
    """One value as a row holds it. Integers have any size; Decimal is used where a float would lose digits; Json is a
    str.

    A change may give bytes as base64 text, too, in a column of kind ``binary``; see `as_bytes`."""

    Cell = Value | tuple[()]
    """One value of a grid, or `MISSING`."""
else:  # what msgspec decodes: big integers, Decimal, Json and bytes travel as extension types
    Value = None | bool | int | float | str | msgspec.msgpack.Ext
    Cell = Value | tuple[()]


def as_bytes(value: object) -> bytes:
    r"""Return the value of a binary column: bytes, or what their base64 text stands for.

    Raises:
        ValueError: It is neither.

    >>> as_bytes("AP8="), as_bytes(b"a")
    (b'\x00\xff', b'a')
    """
    if isinstance(value, bytes):
        return value
    try:
        return base64.b64decode(value if isinstance(value, str) else "?", validate=True)
    except ValueError as error:
        raise ValueError(f"it takes bytes, or their base64 text: {error}") from None


def cut(text: str, *, limit: int = CELL_CUT) -> Json | CutJson:
    """Cut a JSON text to a number of characters and mark it as cut (E22).

    Args:
        text: The whole JSON text of an array or object.
        limit: The number of characters to keep before the ellipsis.

    Returns:
        The text itself as Json if it fits, else its first characters and ``...`` as CutJson.

    >>> cut("[1,2]")
    '[1,2]'
    >>> cut("[1,2,3]", limit=4)
    '[1,2...'
    """
    return Json(text) if len(text) <= limit else CutJson(text[:limit] + ELLIPSIS)
