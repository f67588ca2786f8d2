"""Parsing of command-line words that click does not parse."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dragoman_api.changes import Values
    from dragoman_api.columns import Column

_TEXTS = ("text", "timestamp", "date", "time", "binary")
"""Kinds of columns whose values are typed as they stand."""

_JSON = ("json", "range", "geo", "other")
"""Kinds of columns whose values are JSON."""


def parse_time(text: str | None, *, option: str) -> int | None:
    """Return the seconds of a time such as 90s, 30m or 2h."""
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,6})([smhd]?)", text)
    seconds = int(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}[match[2]] if match else 0
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


def parse_values(pairs: Iterable[str], columns: Mapping[str, Column]) -> Values:
    """Read assignments: ``COL=VALUE`` by the column's kind alone, ``COL:=JSON`` as JSON.

    A text stays the text it is, even if it looks like an array; a column of arrays or objects takes JSON either way.

    Raises:
        ConfigurationError: One is not of that form, or a column is named twice.
    """
    from dragoman_api.errors import ConfigurationError

    values: dict[str, Any] = {}
    for pair in pairs:
        match = re.fullmatch(r"([^=]*?)(:?=)(.*)", pair, re.DOTALL)
        if not match or not match[1]:
            raise ConfigurationError(f"--set {pair!r} is not of the form COL=VALUE", hint="--set price=12.5")
        column, sign, text = match.groups()
        if column in values:
            raise ConfigurationError(f"--set names the column {column!r} twice", hint="keep one of the two")
        values[column] = _value(text, column=column, must=sign == ":=", definition=columns.get(column))
    return values


def _value(text: str, *, column: str, must: bool, definition: Column | None) -> object:
    from msgspec import Raw

    from dragoman.spellings import value_of
    from dragoman_api.errors import ConfigurationError
    from dragoman_api.json_text import decode

    if not must and (definition is None or (definition.kind in _TEXTS and not definition.repeated)):
        return text
    spelled = text.strip(" \t\r\n").encode()
    try:
        decode(text, Raw)
    except ValueError as error:
        if must:
            reason = f"--set {column}:= has the value {text!r}, which is not JSON"
            raise ConfigurationError(reason, hint=f"for a text: --set {column}={text}") from error
        return text
    if must or definition is None or definition.kind in _JSON:
        return value_of(spelled)
    if spelled[:1] == b'"':
        return decode(text, str)
    if spelled[:1] in (b"[", b"{") and not (definition.repeated or definition.multiple):
        return text
    value = value_of(spelled)
    return Decimal(spelled.decode()) if definition.kind == "decimal" and type(value) in (int, float) else value
