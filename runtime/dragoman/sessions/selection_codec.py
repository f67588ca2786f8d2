"""The one codec of a selection: words of a command line, a table of texts, and Python; its JSON is msgspec's own.

A filter row is written ``COLUMN OP VALUE [@GROUP] [+case|-case]``. The grammar is strict rather than guessing, and what
it spells it reads back: values become texts, which the driver reads according to the column's type.
"""

from __future__ import annotations

import re
import shlex
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from dragoman.spellings import did_you_mean, near_names
from dragoman_api.columns import LISTS, VALUELESS, Operator
from dragoman_api.errors import ConfigurationError
from dragoman_api.filters import Filter, RawQuery
from dragoman_api.grid import Sort
from dragoman_api.wording import as_typed

from .relative_times import Span, is_relative, show_instant, whole_now
from .selections import RowSelection

if TYPE_CHECKING:
    from collections.abc import Sequence

SHAPE = "COLUMN OP VALUE [@GROUP] [+case|-case]"

# Outside quotes a backslash escapes only what would end a word here: the \d of a regular expression must survive.
_PIECE = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\([\s'"\\,@])|([^\s'"])""", re.DOTALL)
_UNSPACED = re.compile(r"([^<>=!]+)(>=|<=|!=|=|>|<)(.+)", re.DOTALL)
_BARE = re.compile(r"[^\s'\",@\\]+")
_NAME = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"\s*|([^,]*))(,|\Z)', re.DOTALL)
_GROUP = re.compile(r"\w+")
_CASES = {"+case": True, "-case": False}

_Text = Annotated[str, msgspec.Meta(max_length=16_384)]
_Texts = Annotated[list[_Text], msgspec.Meta(max_length=100)]


class SelectionTexts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A selection as texts: the options of a command, and a saved query. It names no connection, secret or file.

    Attributes:
        object: The object's name.
        filters: Filter rows.
        raw: Filter rows in the server's own syntax.
        match: ``all`` or ``any``.
        sort: Columns; with a hyphen, descending. A plus sign stands before a column whose name begins with either.
        columns: Columns to read, in order; None for all.
        tenant: The tenant, if the object has tenants.
        revision: The revision to read at; empty for the current one.
        since: The beginning of the span of time, such as ``-1h`` or a date; None for none.
        until: The end of the span of time, in the same forms; None for none.
        all_time: All rows, even if the object has a default time window.
        now: The instant that relative times count from; None for the beginning of each read.
        residual: The maximum number of rows that the driver may filter and sort itself; None for none.
    """

    object: Annotated[str, msgspec.Meta(min_length=1, max_length=16_384)]
    filters: _Texts = []
    raw: _Texts = []
    match: Literal["all", "any"] = "all"
    sort: _Texts = []
    columns: _Texts | None = None
    tenant: _Text | None = None
    revision: _Text = ""
    since: _Text | None = None
    until: _Text | None = None
    all_time: bool = False
    now: _Text | None = None
    residual: int | None = None

    @classmethod
    def of(cls, selection: RowSelection) -> SelectionTexts:
        """Return the texts of a selection; rows in the server's own syntax come after the others.

        Raises:
            ConfigurationError: A filter row has no spelling, such as one with a null in its list.
        """
        span, columns = selection.span, selection.columns
        texts = cls(
            object=selection.object,
            filters=[filter_text(row) for row in selection.filters if isinstance(row, Filter)],
            match=selection.match,
            raw=[row.text for row in selection.filters if isinstance(row, RawQuery)],
            sort=[sort_text(key) for key in selection.sort],
            columns=None if columns is None else [*columns],
            tenant=selection.tenant,
            revision=selection.revision,
            since=span.since,
            until=span.until,
            all_time=span.all_time,
            now=None if selection.now is None else show_instant(selection.now),
            residual=selection.residual,
        )
        _check_raw(texts.raw)
        return texts

    def read(self) -> RowSelection:
        """Return the selection.

        Raises:
            ConfigurationError: A filter row or another text cannot be read, or a value is not allowed.
        """
        _check_raw(self.raw)
        return RowSelection(
            object=self.object,
            filters=(*map(parse_filter, self.filters), *map(RawQuery, self.raw)),
            match=self.match,
            sort=tuple(map(parse_sort, self.sort)),
            columns=None if self.columns is None else tuple(self.columns),
            tenant=self.tenant,
            revision=self.revision,
            span=Span(since=self.since, until=self.until, all_time=self.all_time),
            now=None if self.now is None else whole_now(self.now),
            residual=self.residual,
        )

    @property
    def options(self) -> list[str]:
        """The words of the options of a command, not quoted; without the object.

        >>> SelectionTexts(object="x", filters=["a = 1"], sort=["-a"], columns=["a", "b,c"], all_time=True).options
        ['--filter', 'a = 1', '--sort=-a', '--columns', 'a,"b,c"', '--all-time']
        """
        words: list[str] = []
        for name, default in zip(self.__struct_fields__[1:], self.__struct_defaults__, strict=True):
            if (value := getattr(self, name)) == default:
                continue
            option = "--filter" if name == "filters" else f"--{name.replace('_', '-')}"
            if value is True:
                words.append(option)
                continue
            texts = [names_text(value)] if name == "columns" else value if isinstance(value, list) else [str(value)]
            for text in texts:
                words += [f"{option}={text}"] if text.startswith("-") else [option, text]
        return words

    def command(self, connection: str, *, verb: str = "page") -> list[str]:
        """Return the words of the command that reads these rows, not quoted.

        >>> SelectionTexts(object="-a b", tenant="north").command("shop")
        ['dragoman', 'page', 'shop', '--tenant', 'north', '--', '-a b']
        """
        place = f"@{self.object}" if self.object.startswith("@") else self.object  # one sign names a saved query
        if place.startswith("-"):  # it would be read as an option
            return ["dragoman", verb, connection, *self.options, "--", place]
        return ["dragoman", verb, connection, place, *self.options]


def call_arguments(selection: RowSelection) -> str:
    """Return the arguments of `Session.rows` that make a selection, as Python.

    >>> call_arguments(RowSelection(object="x", filters=(Filter("a", "in", ["1", 2], case=True),), columns=("a",)))
    "'x', filters=[Filter('a', 'in', ['1', 2], case=True)], columns=['a']"
    """
    return _arguments(selection)


def script(selection: RowSelection, connection: str) -> str:
    """Return a Python script that prints the rows of a selection."""
    values = [*selection.filters, *selection.sort, *([] if selection.span == Span() else [selection.span])]
    names = ", ".join([*sorted({type(value).__name__ for value in values}), "open"])
    return (
        f"import anyio\nfrom dragoman import {names}\n\n\nasync def main():\n"
        f"    async with open({connection!r}) as session:\n"
        f"        page = await session.rows({call_arguments(selection)}).page()\n"
        "        for row in page.rows:\n            print(row.to_dict())\n\n\nanyio.run(main)\n"
    )


def _arguments(struct: msgspec.Struct) -> str:
    required = len(struct.__struct_fields__) - len(struct.__struct_defaults__)
    arguments = [_python(getattr(struct, name)) for name in struct.__struct_fields__[:required]]
    for name, default in zip(struct.__struct_fields__[required:], struct.__struct_defaults__, strict=True):
        if (value := getattr(struct, name)) != default:
            arguments.append(_python(value) if name == "value" else f"{name}={_python(value)}")
    return ", ".join(arguments)


def _python(value: object) -> str:
    match value:
        case msgspec.Struct():
            return f"{type(value).__name__}({_arguments(value)})"
        case tuple() | list():
            return f"[{', '.join(map(_python, value))}]"
        case datetime():
            return repr(show_instant(value))
        case Enum():
            return repr(value.value)
    return repr(value)


def word(text: str) -> str:
    r"""Return a text as one word of a filter row.

    >>> print(word("A-17"), word('a "b"'), word("x,y"), word("-case"))
    A-17 "a \"b\"" "x,y" "-case"
    """
    return text if _BARE.fullmatch(text) and text.lower() not in _CASES else _in_quotes(text)


def _in_quotes(text: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def _unescaped(text: str) -> str:
    return re.sub(r'\\(["\\])', r"\1", text)


def filter_text(row: Filter) -> str:
    r"""Spell a filter row as `parse_filter` reads it; its values become texts.

    Raises:
        ConfigurationError: It has no spelling, such as a row with a null in its list.

    >>> print(filter_text(Filter("a b", "in", ["x,y", 2], "g", case=False)))
    "a b" in "x,y",2 @g -case
    """
    values = _values(row)
    words = [word(row.column), str(row.op)] + ([",".join(map(word, values))] if values else [])
    if row.group is not None:
        words.append("@" + (row.group if _GROUP.fullmatch(row.group) else _in_quotes(row.group)))
    words += [text for text, case in _CASES.items() if case is row.case]
    text = " ".join(words)
    try:
        filter_row = parse_filter(text)
    except ConfigurationError as error:
        raise _unspellable(row) from error
    value = values if row.op in LISTS else values[0] if values else None
    is_odd = isinstance(row.value, list) and (None in row.value or row.op not in LISTS)
    if is_odd or filter_row != Filter(row.column, row.op, value, row.group, row.case):  # type: ignore[arg-type]
        raise _unspellable(row)
    return text


def _values(row: Filter) -> list[str]:
    if row.value is None:
        return []
    if row.op not in LISTS:
        return [as_typed(row.value)]
    if isinstance(row.value, list):
        return [as_typed(value) for value in row.value]
    return [part.strip() for part in as_typed(row.value).split(",")]


def _unspellable(row: Filter) -> ConfigurationError:
    value = as_typed(row.value)
    reason = f"the filter row {row.column!r} {row.op} {value[:80]!r} has no spelling on a command line"
    return ConfigurationError(reason, hint="give it in Python", code="filter-syntax")


class _Word(msgspec.Struct, frozen=True):
    """A word of a filter row.

    Attributes:
        items: The texts between its unquoted commas.
        bare: No part of it is quoted or escaped.
        at_sign: It begins with an ``@`` that is neither quoted nor escaped.
    """

    text: str
    items: tuple[str, ...]
    bare: bool
    at_sign: bool = False


def _words(row: str) -> list[_Word]:
    words = []
    at = 0
    while at < len(row):
        if row[at].isspace():
            at += 1
            continue
        items, bare, at_sign = [""], True, row[at] == "@"
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
                items[-1] += _unescaped(double)
            else:
                items[-1] += single if single is not None else escaped or plain
        words.append(_Word(",".join(items), tuple(items), bare, at_sign))
    return words


def parse_filter(row: str) -> Filter:
    """Read one filter row, written ``COLUMN OP VALUE [@GROUP] [+case|-case]`` with values quoted as in a shell.

    Args:
        row: As typed; commas outside quotes separate the values of ``in``, ``not-in`` and ``between``. ``+case``
            compares letter case and ``-case`` ignores it; without them, the operator decides.

    Returns:
        The filter row; its value is text, which the driver parses according to the column's type.

    Raises:
        ConfigurationError: It does not have that form (code ``filter-syntax``).

    Relative times need no quotes: ``at in last 24h``.

    >>> parse_filter("items.sku = A-17 @1 -case")
    Filter(column='items.sku', op=<Operator.EQ: '='>, value='A-17', group='1', case=False)
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
    if hint := _conditions(words):
        raise _fault(row, "it has more than one condition, and a filter row has one", hint=hint)
    case = _CASES[rest.pop().text.lower()] if rest and rest[-1].bare and rest[-1].text.lower() in _CASES else None
    group = None
    if rest and rest[-1].at_sign and (not rest[-1].bare or _GROUP.fullmatch(rest[-1].text[1:])):
        group = rest.pop().text[1:]
    if operator in VALUELESS:
        if rest:
            raise _fault(row, f"{operator} takes no value", hint=f"--filter '{column} {operator}'")
        return Filter(column, operator, None, group, case)
    if not rest:
        lost = " (@… names a group; quote a value that starts with @)" if group is not None else ""
        lost = lost or (" (quote the value +case or -case)" if case is not None else "")
        raise _fault(row, f"{operator} needs a value{lost}", hint=f"--filter '{column} {operator} VALUE'")
    if len(rest) > 1 and (phrase := _phrase(rest, lists=operator in LISTS)) is not None:
        rest = [phrase]
    if len(rest) > 1:
        joined = " ".join(word.text for word in rest)
        raise _fault(row, "it has more than one value", hint=f"--filter '{column} {operator} \"{joined}\"'")
    value = _items(row, operator, rest[0]) if operator in LISTS else rest[0].text
    return Filter(column, operator, value, group, case)


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


def _phrase(words: list[_Word], *, lists: bool) -> _Word | None:
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


def _check_raw(raw: Sequence[str]) -> None:
    if not all(text.strip() for text in raw):  # it would match everything
        raise ConfigurationError("--raw is empty", hint="--raw 'status:open AND total:>100'", code="filter-syntax")


def sort_text(key: Sort) -> str:
    """Spell a key of a sort as `parse_sort` reads it."""
    return f"{'-' if key.descending else '+' if key.column[:1] in ('+', '-') else ''}{key.column}"


def parse_sort(text: str) -> Sort:
    """Read a key of a sort: a column, with a leading hyphen for descending order, or a plus sign for ascending order.

    >>> parse_sort("-total"), parse_sort("_id"), parse_sort("+-x")
    (Sort(column='total', descending=True), Sort(column='_id', descending=False), Sort(column='-x', descending=False))
    """
    column = text[1:] if text[:1] in ("+", "-") else text
    if not column:
        raise ConfigurationError("--sort names no column", hint="--sort -total")
    return Sort(column, descending=text.startswith("-"))


def names_text(names: Sequence[str]) -> str:
    """Spell names as `parse_names` reads them."""
    if [*names] == [""]:
        return '""'
    return ",".join(_in_quotes(name) if re.search(r'^["\s]|,|\s\Z|\A\Z|\A\*\Z', name) else name for name in names)


def parse_names(text: str) -> list[str]:
    r"""Read names that are divided by commas; one with a comma stands in double quotes. An empty text names none.

    >>> parse_names('a, b c,"x,\\"y"'), parse_names("")
    (['a', 'b c', 'x,"y'], [])
    """
    names: list[str] = []
    at, goes_on = 0, bool(text.strip())
    while goes_on:
        name = _NAME.match(text, at)
        assert name is not None  # any text has a match
        in_quotes, plain, comma = name.groups()
        names.append(plain.strip() if in_quotes is None else _unescaped(in_quotes))
        at, goes_on = name.end(), comma == ","
    return names
