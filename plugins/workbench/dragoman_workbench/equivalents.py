"""The same rows as a command and as Python, to paste into a terminal and a script."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dragoman_api.wording import shell_word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .messages import ExplainAsked, FilterRow

_LISTS = ("in", "not-in", "between")
_VALUELESS = ("null", "not-null", "empty", "not-empty")
_PLAIN = re.compile(r"[\w.+-][\w.+:/-]*")


def _word(text: str) -> str:
    """Spell a text as one word of a filter row."""
    if _PLAIN.fullmatch(text):
        return text
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def filter_text(row: FilterRow) -> str:
    r"""Spell a filter row as the command line takes it.

    >>> from .messages import FilterRow
    >>> filter_text(FilterRow(column="title", op="contains", value='a "b"'))
    'title contains "a \\"b\\""'
    """
    words = [_word(row.column), row.op]
    if row.op in _LISTS:
        words.append(",".join(map(_word, row.values)))
    elif row.op not in _VALUELESS:
        words.append(_word(row.value or ""))
    if row.group:
        words.append(f"@{row.group}")
    return " ".join(words)


def command_line(asked: ExplainAsked) -> str:
    """Return the command that shows the same rows."""
    names, options = [shell_word(asked.connection), shell_word(asked.object)], [*_options(asked)]
    if asked.object.startswith("-"):  # it would be read as an option
        return " ".join(["dragoman page", *options, "--", *names])
    return " ".join(["dragoman page", *names, *options])


def _options(asked: ExplainAsked) -> Iterator[str]:
    for row in asked.filters:
        yield f"--filter {shell_word(filter_text(row))}" if row.column else f"--raw {shell_word(row.value or '')}"
    if asked.match == "any":
        yield "--match any"
    for key in asked.sort:
        yield f"--sort={shell_word(('-' if key.descending else '') + key.column)}"
    if asked.tenant is not None:
        yield f"--tenant {shell_word(asked.tenant)}"
    if asked.span is not None:
        yield from ("--all-time",) if asked.span.all_time else ()
        yield from (f"--since {shell_word(asked.span.since)}",) if asked.span.since else ()
        yield from (f"--until {shell_word(asked.span.until)}",) if asked.span.until else ()


def python_code(asked: ExplainAsked) -> str:
    """Return a script that prints the same rows."""
    filters = [_call(row) if row.column else f"RawQuery({row.value or ''!r})" for row in asked.filters]
    sort = [
        f"Sort({key.column!r}, descending=True)" if key.descending else f"Sort({key.column!r})" for key in asked.sort
    ]
    span = asked.span
    arguments = [repr(asked.object)]
    arguments += [f"filters=[{', '.join(filters)}]"] if filters else []
    arguments += ['match="any"'] if asked.match == "any" else []
    arguments += [f"sort=[{', '.join(sort)}]"] if sort else []
    arguments += [f"tenant={asked.tenant!r}"] if asked.tenant is not None else []
    if span is not None:
        arguments.append(f"span=Span(since={span.since!r}, until={span.until!r}, all_time={span.all_time!r})")
    names = [
        name
        for name, used in (
            ("Filter", any(row.column for row in asked.filters)),
            ("RawQuery", any(not row.column for row in asked.filters)),
            ("Sort", bool(sort)),
            ("Span", span is not None),
            ("open", True),
        )
        if used
    ]
    return (
        f"import anyio\nfrom dragoman import {', '.join(names)}\n\n\nasync def main():\n"
        f"    async with open({asked.connection!r}) as session:\n"
        f"        page = await session.rows({', '.join(arguments)}).page()\n"
        "        for row in page.rows:\n            print(row.to_dict())\n\n\nanyio.run(main)\n"
    )


def _call(row: FilterRow) -> str:
    value = [*row.values] if row.op in _LISTS else None if row.op in _VALUELESS else row.value or ""
    parts = [repr(row.column), repr(row.op)] + ([] if value is None else [repr(value)])
    parts += [f"group={row.group!r}"] if row.group else []
    parts += [f"case={row.case!r}"] if row.case is not None else []
    return f"Filter({', '.join(parts)})"
