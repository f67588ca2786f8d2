"""The entry points of a wheel, accepted only if every reader agrees on them."""

from __future__ import annotations

import configparser
import re
from importlib.metadata import Distribution
from typing import Any

from dragoman_registry.validation import Unreadable

MAX_TEXT = 256 << 10
"""Maximum characters of entry_points.txt."""

MAX_LINE = 512
"""Maximum characters of one line; configparser takes quadratic time on a long line of spaces."""

_GROUP = re.compile(r"[\w.:-]+", re.ASCII)


class _Told(Distribution):
    """A distribution with known entry points only."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "entry_points.txt" else None

    def locate_file(self, path: Any) -> Any:
        raise NotImplementedError


def read_entry_points(text: str) -> dict[str, dict[str, str]]:
    """Read entry points as a mapping of groups to names to values.

    `importlib.metadata`, which pip uses, splits lines and groups differently from configparser, which others use.

    Raises:
        Unreadable: The text is too long, or the two readers disagree on it.
    """
    if len(text) > MAX_TEXT or any(len(line) > MAX_LINE for line in text.splitlines()):
        raise Unreadable(f"it has more than {MAX_TEXT} characters, or a line with more than {MAX_LINE}")
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    try:
        parser.read_string(text)
        ours = {group: dict(parser.items(group)) for group in parser.sections()}
        theirs = [(entry.group, entry.name, entry.value) for entry in _Told(text).entry_points]
    except configparser.Error as error:
        raise Unreadable(str(error).partition("\n")[0]) from error
    except (TypeError, ValueError) as error:
        raise Unreadable("importlib.metadata cannot read it") from error
    if odd := next((group for group in ours if not _GROUP.fullmatch(group)), None):
        raise Unreadable(f"{odd!r} is not a plain group name")
    if strange := {*theirs} ^ {(group, name, value) for group in ours for name, value in ours[group].items()}:
        group, name, _ = min(strange)
        raise Unreadable(f"readers disagree on {name!r} in the group {group!r}")
    return ours
