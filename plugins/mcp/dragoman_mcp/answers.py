"""Values as an agent reads them: exact, bounded, and harmless as text; what an agent may name again has a handle."""

from __future__ import annotations

import base64
import json
import math
import secrets
from collections import OrderedDict
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from dragoman_api.cells import CutBytes, CutJson, CutText, Json, is_cut
from dragoman_api.errors import ConfigurationError
from dragoman_api.masking import UNSAFE
from dragoman_api.remedies import Remedy, RemedyKind

if TYPE_CHECKING:
    from dragoman_api import Cell

EXACT = (1 << 53) - 1
"""The greatest integer that every client reads as it is written."""

MASKED = {"$masked": True}
"""What stands for a value that a rule hides."""

_HARMLESS = {0x09, 0x0A}
_UNREAL = (*range(0xE0000, 0xE0080), *range(0xE0100, 0xE01F0), 0xFEFF, 0xFFFE, 0xFFFF)
"""Tags and selectors, which no screen shows and which can carry a text of their own."""
_SPELLED = {
    code: f"\\u{{{code:x}}}"
    for code in (*UNSAFE, *_UNREAL, *range(0xD800, 0xE000))
    if code not in _HARMLESS
}  # fmt: skip

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

T = TypeVar("T")


def harmless(text: str) -> str:
    r"""Return a text with everything spelled out that is not visible but acts on who reads it: controls, directions.

    >>> harmless("a\x1b[2Jb\u202ec\n")
    'a\\u{1b}[2Jb\\u{202e}c\n'
    """
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_SPELLED)


def as_json(value: object) -> str:
    r"""Return compact JSON in which nothing looks like markup, whatever a value holds; any reader decodes it exactly.

    >>> as_json({"a": "</tool>"})
    '{"a":"\\u003c/tool\\u003e"}'
    """
    text = _COMPACT.encode(value)
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def shown_cell(value: Cell, *, length: int) -> Any:
    """Return a cell as `schemas.CELLS` describes it.

    Args:
        value: The cell.
        length: Characters that it may have.

    >>> shown_cell(9007199254740993, length=9), shown_cell(Json('["a",1]'), length=9), shown_cell("abc", length=2)
    ({'$integer': '9007199254740993'}, ['a', 1], {'$cut': 'ab', 'length': 3})
    """
    match value:
        case None | bool():
            return value
        case tuple():
            return {}
        case Json() if not is_cut(value) and len(value) <= length:
            return _array(value)
        case str():
            return _text(value, length)
        case bytes():
            return _bytes(value, length)
        case int():
            return value if -EXACT <= value <= EXACT else {"$integer": str(value)}
        case float() if math.isfinite(value):
            return value
    return {"$decimal": str(value)}


def _text(value: str, length: int) -> Any:
    beginning = harmless(value[:length])
    if isinstance(value, CutText | CutJson):
        return {"$cut": beginning}
    return beginning if len(value) <= length else {"$cut": beginning, "length": len(value)}


def _bytes(value: bytes, length: int) -> Any:
    encoded = base64.b64encode(value).decode()
    if not isinstance(value, CutBytes) and len(encoded) <= length:
        return {"$bytes": encoded}
    return {"$cut": encoded[:length], "length": len(encoded)}


def _array(text: str) -> Any:
    """Return an array as it is, if every client reads its values exactly; else the JSON text."""
    try:
        if text.lstrip()[:1] == "[" and harmless(text) == text:
            value = _EXACTLY.decode(text)
            # What is not visible in the text itself can only be spelled with a backslash.
            if "\\" not in text or harmless(spelled := json.dumps(value, ensure_ascii=False)) == spelled:
                return value
    except (ValueError, RecursionError):
        pass
    return {"$json": harmless(text)}


def _exact_integer(digits: str) -> int:
    if len(digits) > len(str(EXACT)) or not -EXACT <= int(digits) <= EXACT:
        raise ValueError("too many digits")
    return int(digits)


def _exact_float(digits: str) -> float:
    if repr(float(digits)) != digits:
        raise ValueError("another spelling")
    return float(digits)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(members := dict(pairs)) < len(pairs):
        raise ValueError("a member twice")
    return members


_EXACTLY = json.JSONDecoder(
    parse_int=_exact_integer, parse_float=_exact_float, parse_constant=_exact_float, object_pairs_hook=_members
)  # fmt: skip


def whole_text(value: Cell) -> tuple[str, str]:
    """Return the kind of a value and its whole text."""
    match value:
        case tuple():
            return "missing", ""
        case None:
            return "null", ""
        case bool():
            return "boolean", "true" if value else "false"
        case Json():
            return "json", str(value)
        case str():
            return "text", str(value)
        case bytes():
            return "bytes", base64.b64encode(value).decode()
    return "number", str(value)


def is_shown_cut(cell: object) -> bool:
    """Return whether an answer shows only the beginning of a value."""
    return isinstance(cell, dict) and "$cut" in cell


def rows_within(rows: list[list[Any]], budget: int) -> tuple[int, int]:
    """Return how many of the first rows fit into a number of bytes, at least one, and their bytes."""
    size = len(as_json(rows).encode()) - 1
    if size <= budget:  # as most answers do; encoding each row takes twice as long
        return len(rows), size if rows else 0
    size = 0
    for number, row in enumerate(rows):
        row_size = len(as_json(row).encode()) + 1
        if number and size + row_size > budget:
            return number, size
        size += row_size
    return len(rows), size


class Handles(Generic[T]):
    """Short names for values that an agent may give back, the latest of which are kept; nobody can guess one."""

    def __init__(self, most_values: int, *, letter: str) -> None:
        self._most_values, self._prefix = most_values, f"{letter}{secrets.token_hex(3)}."
        self._numbers = count(1)
        self._values: OrderedDict[str, tuple[str, T | None]] = OrderedDict()

    def add(self, connection: str, value: T | None) -> str:
        """Keep a value, and return its handle, the next in turn; that of None takes a turn and is not known."""
        handle = f"{self._prefix}{next(self._numbers)}"
        self._values[handle] = connection, value
        while len(self._values) > self._most_values:
            self._values.popitem(last=False)
        return handle

    def get(self, connection: str, handle: str) -> T:
        """Return the value of a handle.

        Raises:
            ConfigurationError: It is no handle of this connection, or one of long ago.
        """
        of_connection, value = self._values.get(handle, ("", None))
        if value is None or of_connection != connection:
            remedy = Remedy(RemedyKind.ADVICE, {"text": "read the rows again, and use what the answer names"})
            raise ConfigurationError(
                f"{handle[:100]!r} is not, or no longer, known for {connection}",
                code="handle-unknown",
                remedies=[remedy],
            )
        return value


def plain(answer: msgspec.Struct) -> dict[str, Any]:
    """Return an answer as plain values, in the order of its fields."""
    values: dict[str, Any] = msgspec.to_builtins(answer)
    return values
