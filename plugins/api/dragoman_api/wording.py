"""How messages show values and exceptions: as a person writes them, not as Python does."""

from __future__ import annotations

import json
from enum import Enum


def as_typed(value: object) -> str:
    """Return a value as a person types it: a list with commas, everything else as JSON spells it, texts without quotes.

    >>> as_typed(["last 24h", 10]), as_typed(True), as_typed(None), as_typed({"a": 1})
    ('last 24h,10', 'true', 'null', '{"a": 1}')
    """
    match value:
        case Enum():
            return as_typed(value.value)
        case str():
            return value
        case list() | tuple():
            return ",".join(map(as_typed, value))
        case None | bool() | dict():
            return json.dumps(value, ensure_ascii=False, default=str)
        case _:
            return str(value)


def quoted(value: object) -> str:
    """Return a value for the middle of a sentence: as `as_typed`, but a text in quotes, its odd characters escaped.

    >>> quoted("5 km"), quoted(["a", 1]), quoted(False)
    ("'5 km'", "'a', 1", 'false')
    """
    if isinstance(value, list | tuple):
        return ", ".join(map(quoted, value))
    return repr(str(value)) if isinstance(value, str) else as_typed(value)


def failure(error: BaseException) -> str:
    """Return an exception's type, and its text if it has one.

    >>> failure(ValueError("no digits")), failure(TimeoutError())
    ('ValueError: no digits', 'TimeoutError')
    """
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
