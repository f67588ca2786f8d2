"""How messages show values and exceptions: as a person writes them, not as Python does."""

from __future__ import annotations

import json
import re
import shlex
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LIVE = re.compile(r"[\\'!]|[^ -~]")  # in $'…': what ends or escapes there, and what a terminal may act on


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


def shell_word(text: str) -> str:
    r"""Quote a text as one word of a command to paste: nothing in it means anything to a shell or a terminal.

    Control characters, line breaks and marks of direction are escaped in ``$'…'``, which bash, zsh, ksh and POSIX 2024
    read.

    >>> print(shell_word("a b"), shell_word("a$(id)"), shell_word("\x1b[201~\n"), shell_word("=ls"))
    'a b' 'a$(id)' $'\033[201~\012' '=ls'

    Raises:
        ValueError: It holds a null character, which no argument can.
    """
    if "\0" in text:
        raise ValueError("an argument of a command cannot hold a null character")
    if text.isprintable():
        return f"'{text}'" if text.startswith("=") and "'" not in text else shlex.quote(text)
    return f"$'{_LIVE.sub(_octal, text)}'"


def shell_line(words: Iterable[str]) -> str:
    """Return a command to paste, each word quoted by `shell_word`."""
    return " ".join(map(shell_word, words))


def _octal(match: re.Match[str]) -> str:
    if match[0] in "\\'":
        return f"\\{match[0]}"
    if match[0].isprintable() and match[0] != "!":
        return match[0]
    return "".join(f"\\{byte:03o}" for byte in match[0].encode(errors="replace"))
