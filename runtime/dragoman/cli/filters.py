"""The grammar of filter rows and sort keys; pure, and strict rather than guessing."""

from __future__ import annotations

import re
import shlex

import msgspec

from dragoman.near_names import did_you_mean, near_names
from dragoman.sessions.relative_times import is_relative
from dragoman_api.columns import Operator
from dragoman_api.errors import ConfigurationError
from dragoman_api.filters import Filter, RawQuery
from dragoman_api.grid import Sort

SHAPE = "COLUMN OP VALUE [@GROUP]"

VALUELESS = (Operator.NULL, Operator.NOT_NULL, Operator.EMPTY, Operator.NOT_EMPTY)
LISTS = (Operator.IN, Operator.NOT_IN, Operator.BETWEEN)
# Outside quotes a backslash escapes only what would end a word here: the \d of a regular expression must survive.
_PIECE = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\([\s'"\\,@])|([^\s'"])""", re.DOTALL)
_UNSPACED = re.compile(r"([^<>=!]+)(>=|<=|!=|=|>|<)(.+)", re.DOTALL)


class _Word(msgspec.Struct, frozen=True):
    """A word of a filter row: its text, its items between unquoted commas, and whether it is unquoted."""

    text: str
    items: tuple[str, ...]
    bare: bool


def _words(row: str) -> list[_Word]:
    words = []
    at = 0
    while at < len(row):
        if row[at].isspace():
            at += 1
            continue
        items, bare = [""], True
        while at < len(row) and not row[at].isspace():
            piece = _PIECE.match(row, at)
            if piece is None:
                hint = "put a value that contains a quote into quotes of the other kind"
                raise _fault(row, f"the quote at position {at + 1} is never closed", hint=hint)
            at = piece.end()
            single, double, escaped, plain = piece.groups()
            bare = bare and plain is not None
            if plain == ",":
                items.append("")
            elif double is not None:
                items[-1] += re.sub(r'\\(["\\])', r"\1", double)
            else:
                items[-1] += single if single is not None else escaped or plain
        words.append(_Word(",".join(items), tuple(items), bare))
    return words


def parse_filter(row: str) -> Filter:
    """Read one filter row, written ``COLUMN OP VALUE [@GROUP]`` with values quoted as in a shell.

    Args:
        row: As typed; commas outside quotes separate the values of ``in``, ``not-in`` and ``between``.

    Returns:
        The filter row; its value is text, which the driver parses according to the column's type.

    Raises:
        ConfigurationError: It does not have that form (code ``filter-syntax``).

    Relative times need no quotes: ``at in last 24h``.

    >>> parse_filter("items.sku = A-17 @1")
    Filter(column='items.sku', op=<Operator.EQ: '='>, value='A-17', group='1', case=None)
    """
    words = _words(row)
    if len(words) == 1 and (parts := _UNSPACED.fullmatch(row.strip())):
        spaced = " ".join(part.strip() for part in parts.groups())
        raise _fault(row, f"it is written {SHAPE}", hint=f"--filter '{spaced}'")
    if len(words) < 2 or not words[0].text:
        raise _fault(row, f"it is written {SHAPE}", hint="--filter 'total >= 100'")
    if is_relative(time := " ".join(word.text for word in words[1:])):
        raise _fault(row, f"{time!r} needs an operator", hint=f"--filter '{words[0].text} in {time}'")
    column, operator, rest = words[0].text, _operator(row, words[1].text), words[2:]
    if len(rest) > 1 and (hint := _conditions(words)):
        raise _fault(row, "it has more than one condition, and a filter row has one", hint=hint)
    group = None
    if rest and rest[-1].bare and re.fullmatch(r"@\w+", rest[-1].text):
        group = rest.pop().text[1:]
    if operator in VALUELESS:
        if rest:
            raise _fault(row, f"{operator} takes no value", hint=f"--filter '{column} {operator}'")
        return Filter(column, operator, None, group)
    if not rest:
        lost = " (@… names a group; quote a value that starts with @)" if group else ""
        raise _fault(row, f"{operator} needs a value{lost}", hint=f"--filter '{column} {operator} VALUE'")
    if len(rest) > 1 and (phrase := _said(rest, lists=operator in LISTS)) is not None:
        rest = [phrase]
    if len(rest) > 1:
        joined = " ".join(word.text for word in rest)
        raise _fault(row, "it has more than one value", hint=f"--filter '{column} {operator} \"{joined}\"'")
    return Filter(column, operator, _items(row, operator, rest[0]) if operator in LISTS else rest[0].text, group)


def _conditions(words: list[_Word]) -> str:
    """Return the options for several conditions that are joined by a word; empty if these words are none."""
    joints = {word.text.lower() for word in words if word.bare} & {"and", "or", "&&", "||"}
    rows: list[list[_Word]] = [[]]
    for word in words:
        if word.bare and word.text.lower() in joints:
            rows.append([])
        else:
            rows[-1].append(word)
    operators = {str(operator) for operator in Operator}
    if not joints or not all(len(row) > 1 and row[1].text.lower() in operators for row in rows):
        return ""
    texts = (" ".join(word.text if word.bare else f'"{word.text}"' for word in row) for row in rows)
    if len(joints) > 1 and not joints <= {"or", "||"} and not joints <= {"and", "&&"}:
        return "give each as a --filter of its own: all must hold, or with --match any one of them"
    every = " --match any" if joints <= {"or", "||"} else ""
    return " ".join(f"--filter {shlex.quote(text)}" for text in texts) + every


def _said(words: list[_Word], *, lists: bool) -> _Word | None:
    """Join the words of relative times (``last 24h``, or ``last week,next week`` in a list); None if they are none."""
    items: list[str] = []
    for word in words:
        first, *others = word.items
        items[-1:] = [f"{items[-1]} {first}" if items else first]
        items += others
    if not all(" " not in item or is_relative(item) for item in items) or (len(items) > 1 and not lists):
        return None
    items = [item.strip() for item in items]
    return _Word(",".join(items), tuple(items), bare=all(word.bare for word in words))


def _items(row: str, operator: Operator, word: _Word) -> list[bool | int | float | str | None]:
    if word.bare and "" in word.items:
        raise _fault(row, "an element of the list is empty", hint="an empty text is written ''")
    if operator is Operator.BETWEEN and len(word.items) != 2:
        raise _fault(row, "between takes two bounds", hint="--filter 'total between 10,20'")
    return list(word.items)


def _operator(row: str, text: str) -> Operator:
    try:
        return Operator(text.lower())
    except ValueError:
        names = [str(operator) for operator in Operator]
        suggestion = did_you_mean(near_names(text.lower(), names, least=0.5))
        raise _fault(row, f"{text!r} is not an operator{suggestion}", hint=f"use one of: {' '.join(names)}") from None


def _fault(row: str, reason: str, *, hint: str) -> ConfigurationError:
    return ConfigurationError(f"filter {row!r} cannot be read: {reason}", hint=hint, code="filter-syntax")


def parse_rows(rows: tuple[str, ...], raw: tuple[str, ...]) -> list[Filter | RawQuery]:
    """Read filter rows, followed by those in the server's own syntax.

    Raises:
        ConfigurationError: A filter row cannot be read, or is empty, which would match everything.
    """
    if not all(text.strip() for text in raw):
        raise ConfigurationError("--raw is empty", hint="--raw 'status:open AND total:>100'", code="filter-syntax")
    return [*map(parse_filter, rows), *map(RawQuery, raw)]


def parse_sort(keys: tuple[str, ...]) -> list[Sort]:
    """Read sort keys, each a column, with a leading hyphen for descending order.

    >>> parse_sort(("-total", "_id"))
    [Sort(column='total', descending=True), Sort(column='_id', descending=False)]
    """
    sorts = [Sort(key.removeprefix("-"), descending=key.startswith("-")) for key in keys]
    if not all(sort.column for sort in sorts):
        raise ConfigurationError("--sort names no column", hint="--sort -total")
    return sorts


def show_row(row: Filter | RawQuery) -> str:
    """Write a filter row as it is read, for an explanation."""
    if isinstance(row, RawQuery):
        return f"raw {row.text}"
    value = ",".join(map(str, row.value)) if isinstance(row.value, list) else row.value
    parts = (row.column, row.op, value, row.group and f"@{row.group}")
    return " ".join(str(part) for part in parts if part is not None)
