"""Parsing of command-line words that click does not parse."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def parse_time(text: str | None, *, option: str) -> int | None:
    """Return the seconds of a time such as 90s, 30m or 2h."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,6})([smhd]?)", text)
    seconds = int(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}[found[2]] if found else 0
    if not seconds:
        raise click.UsageError(f"{option} {text!r} is not a time such as 90s, 30m or 2h")
    return seconds


def take_pairs(args: Iterable[str], *, known: Callable[[str], bool]) -> tuple[list[str], dict[str, str | bool]]:
    """Extract the options that the command does not know (`known`) from its words.

    Returns:
        The other words, and the values by name with underscores; True for an option without a value.
    """
    rest: list[str] = []
    pairs: dict[str, str | bool] = {}
    words = list(args)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            return [*rest, word, *words], pairs
        if not name.startswith("--") or known(name):
            rest.append(word)
        elif equals:
            pairs[name[2:].replace("-", "_")] = value
        else:
            has_value = bool(words) and not words[0].startswith("--")
            pairs[name[2:].replace("-", "_")] = words.pop(0) if has_value else True
    return rest, pairs
