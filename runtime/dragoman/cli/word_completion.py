"""How the words of a command are completed: by a shell from the names kept, in `dragoman open` from the connection."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem, ShellComplete

from dragoman_api.columns import Operator

from .filters import LISTS, VALUELESS
from .options import Options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .known_names import Known, KnownColumn

    Items = list[CompletionItem[str]]

_ROW = re.compile(r"(?P<column>\"(?:[^\"\\]|\\.)*\"|[^\s'\"]+)(?P<gap>\s+)(?:(?P<operator>\S+)(?P<next>\s+))?")
_BARE = re.compile(r"[^\s'\",@\\]+")


def suggestions(cli: click.Command, options: Options, words: Sequence[str], incomplete: str) -> Items:
    """Return how the last word of a command line may continue; nothing is run.

    Args:
        cli: The command `dragoman`.
        options: Where names come from: `Options.names`, or those kept in its home.
        words: The words before it.
        incomplete: Its beginning.
    """
    sign = ""
    if words and words[-1] == "--sort" and incomplete.startswith("-"):  # else it would be taken for an option
        sign, incomplete = "-", incomplete[1:]
    shell = ShellComplete(cli, {"obj": options}, "dragoman", "")
    try:
        found = shell.get_completions([*words], incomplete)
    except click.ClickException:  # what stands before it cannot be read
        return []
    return [_item(f"{sign}{item.value}", item) for item in found if item.value.isprintable()]


def _item(value: str, item: CompletionItem[str]) -> CompletionItem[str]:
    return CompletionItem(value, item.type, item.help, goes_on=item.goes_on)


def complete_object(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Return the objects of the connection that begin with what was typed."""
    known = _names(context).objects(_connection(context))
    return [CompletionItem(name, help=known.age) for name in known.names if name.startswith(incomplete)]


def complete_column(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Return the columns of the object that begin with what was typed."""
    known = _columns(context)
    return [CompletionItem(each.name, help=_told(each, known)) for each in _beginning(known, incomplete)]


def complete_columns(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Return how a list of columns, divided by commas, may continue."""
    before, comma, last = incomplete.rpartition(",")
    known, chosen = _columns(context), before.split(",")
    return [
        CompletionItem(f"{before}{comma}{each.name}", help=_told(each, known), goes_on=True)
        for each in _beginning(known, last)
        if each.name not in chosen
    ]


def complete_sort(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Return the columns that can be sorted by and begin with what was typed."""
    known = _columns(context)
    found = [each for each in _beginning(known, incomplete) if each.sortable]
    return [CompletionItem(each.name, help=_told(each, known)) for each in found]


def complete_assignment(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Return how ``COL=VALUE`` may continue."""
    column, sign, value = incomplete.partition("=")
    known = _columns(context)
    if not sign:
        found = _beginning(known, column)
        return [CompletionItem(f"{each.name}=", help=_told(each, known), goes_on=True) for each in found]
    name = column.removesuffix(":")
    return [CompletionItem(f"{column}={each}") for each in _values(context, name) if each.startswith(value)]


def complete_filter(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Return how a filter row may continue: its column, its operator, then its value."""
    known = _columns(context)
    typed = _ROW.match(incomplete)
    if typed is None:
        found = [each for each in known.names if _word(each.name).startswith(incomplete)]
        if len(found) == 1:  # a single one with its operators, so that no shell closes the quote after it
            return [*_with_operators(f"{_word(found[0].name)} ", "", found[0], help=_told(found[0], known))]
        return [CompletionItem(f"{_word(each.name)} ", help=_told(each, known), goes_on=True) for each in found]
    column = next((each for each in known.names if _word(each.name) == typed["column"]), None)
    if column is None:
        return []
    if typed["operator"] is None:
        return [*_with_operators(typed[0], incomplete[typed.end() :], column, help=_told(column, known))]
    return _row_values(context, incomplete, typed, column.name)


def _with_operators(begin: str, typed: str, column: KnownColumn, *, help: str) -> Iterator[CompletionItem[str]]:
    for operator in column.operators:
        if operator.startswith(typed.lower()):
            ends = operator in VALUELESS
            yield CompletionItem(f"{begin}{operator}{'' if ends else ' '}", help=help, goes_on=not ends)


def _row_values(context: click.Context, incomplete: str, typed: re.Match[str], column: str) -> Items:
    if typed["operator"] in VALUELESS or typed["operator"] not in [*Operator]:
        return []
    several = typed["operator"] in LISTS
    at = typed.end()
    if several and "," in incomplete[at:]:
        at = incomplete.rindex(",") + 1
    words = map(_word, _values(context, column))
    head, begun = incomplete[:at], incomplete[at:]
    return [CompletionItem(head + word, goes_on=several) for word in words if word.startswith(begun)]


def _word(text: str) -> str:
    """Return a text as one word of a filter row."""
    return text if _BARE.fullmatch(text) else '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def _names(context: click.Context) -> Any:
    options = context.obj or Options()
    if options.names is None:
        from .known_names import KnownNames

        options.names = KnownNames(options.paths())
    return options.names


def _connection(context: click.Context) -> str:
    return str(context.params.get("connection") or "")


def _columns(context: click.Context) -> Known:
    found: Known = _names(context).columns(_connection(context), str(context.params.get("object") or ""))
    return found


def _values(context: click.Context, column: str) -> Iterable[str]:
    known = next((each for each in _columns(context).names if each.name == column), None)
    if known is not None and known.kind == "boolean":
        return ("true", "false")
    found: Sequence[str] = _names(context).values(_connection(context), str(context.params.get("object")), column)
    return found


def _beginning(known: Known, text: str) -> list[KnownColumn]:
    return [each for each in known.names if each.name.startswith(text)]


def _told(column: KnownColumn, known: Known) -> str:
    return ", ".join(filter(None, (column.type, known.age)))
