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


def command_line(request: ExplainAsked) -> str:
    """Return the command that shows the same rows."""
    names, options = [shell_word(request.connection), shell_word(request.object)], [*_options(request)]
    if request.object.startswith("-"):  # it would be read as an option
        return " ".join(["dragoman page", *options, "--", *names])
    return " ".join(["dragoman page", *names, *options])


def _options(request: ExplainAsked) -> Iterator[str]:
    for row in request.filters:
        yield f"--filter {shell_word(filter_text(row))}" if row.column else f"--raw {shell_word(row.value or '')}"
    if request.match == "any":
        yield "--match any"
    for key in request.sort:
        yield f"--sort={shell_word(('-' if key.descending else '') + key.column)}"
    if request.tenant is not None:
        yield f"--tenant {shell_word(request.tenant)}"
    if request.span is not None:
        yield from ("--all-time",) if request.span.all_time else ()
        yield from (f"--since {shell_word(request.span.since)}",) if request.span.since else ()
        yield from (f"--until {shell_word(request.span.until)}",) if request.span.until else ()


def python_code(request: ExplainAsked) -> str:
    """Return a script that prints the same rows."""
    filters = [_call(row) if row.column else f"RawQuery({row.value or ''!r})" for row in request.filters]
    sort = [
        f"Sort({key.column!r}, descending=True)" if key.descending else f"Sort({key.column!r})" for key in request.sort
    ]
    span = request.span
    arguments = [repr(request.object)]
    arguments += [f"filters=[{', '.join(filters)}]"] if filters else []
    arguments += ['match="any"'] if request.match == "any" else []
    arguments += [f"sort=[{', '.join(sort)}]"] if sort else []
    arguments += [f"tenant={request.tenant!r}"] if request.tenant is not None else []
    if span is not None:
        arguments.append(f"span=Span(since={span.since!r}, until={span.until!r}, all_time={span.all_time!r})")
    names = [
        name
        for name, is_used in (
            ("Filter", any(row.column for row in request.filters)),
            ("RawQuery", any(not row.column for row in request.filters)),
            ("Sort", bool(sort)),
            ("Span", span is not None),
            ("open", True),
        )
        if is_used
    ]
    return (
        f"import anyio\nfrom dragoman import {', '.join(names)}\n\n\nasync def main():\n"
        f"    async with open({request.connection!r}) as session:\n"
        f"        page = await session.rows({', '.join(arguments)}).page()\n"
        "        for row in page.rows:\n            print(row.to_dict())\n\n\nanyio.run(main)\n"
    )


def _call(row: FilterRow) -> str:
    value = [*row.values] if row.op in _LISTS else None if row.op in _VALUELESS else row.value or ""
    parts = [repr(row.column), repr(row.op)] + ([] if value is None else [repr(value)])
    parts += [f"group={row.group!r}"] if row.group else []
    parts += [f"case={row.case!r}"] if row.case is not None else []
    return f"Filter({', '.join(parts)})"
