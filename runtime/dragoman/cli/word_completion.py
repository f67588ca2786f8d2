"""The words of a command line, and how a shell or the prompt of `dragoman open` completes them."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.shell_completion import CompletionItem, ShellComplete

from dragoman.sessions.selection_codec import word
from dragoman_api.columns import LISTS, VALUELESS, Operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .known_names import Known, KnownColumn

    Items = list[CompletionItem[str]]

_ROW = re.compile(r"(?P<column>\"(?:[^\"\\]|\\.)*\"|[^\s'\"]+)(?P<gap>\s+)(?:(?P<operator>\S+)(?P<next>\s+))?")
_CONSOLE = re.compile(r"\s*console(?=[ \n]|\Z)[ \n]*")
_TAKES_BODY = re.compile(r"(POST|PUT|PATCH)\b[^{\[\n]*", re.IGNORECASE)
_TEXTS = re.compile(r'""".*?(?:"""|\Z)|"(?:[^"\\\n]|\\.)*"?', re.DOTALL)


def suggestions(cli: click.Command, options: Any, words: Sequence[str], incomplete: str) -> Items:
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
        items = shell.get_completions([*words], incomplete)
    except click.ClickException:  # what stands before it cannot be read
        return []
    return [_item(f"{sign}{item.value}", item) for item in items if item.value.isprintable()]


def _item(value: str, item: CompletionItem[str]) -> CompletionItem[str]:
    return CompletionItem(value, item.type, item.help, goes_on=item.goes_on)


def complete_object(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Return the objects of the connection that begin with what was typed."""
    objects = _names(context).objects(_connection(context))
    return [CompletionItem(name, help=objects.age) for name in objects.names if name.startswith(incomplete)]


def complete_column(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Return the columns of the object that begin with what was typed."""
    columns = _columns(context)
    return [CompletionItem(column.name, help=_hint(column, columns)) for column in _beginning(columns, incomplete)]


def complete_columns(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Return how a list of columns, divided by commas, may continue."""
    before, comma, last = incomplete.rpartition(",")
    columns, chosen = _columns(context), before.split(",")
    return [
        CompletionItem(f"{before}{comma}{column.name}", help=_hint(column, columns), goes_on=True)
        for column in _beginning(columns, last)
        if column.name not in chosen
    ]


def complete_sort(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Return the columns that can be sorted by and begin with what was typed."""
    columns = _columns(context)
    sortable_columns = [column for column in _beginning(columns, incomplete) if column.sortable]
    return [CompletionItem(column.name, help=_hint(column, columns)) for column in sortable_columns]


def complete_assignment(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Return how ``COL=VALUE`` may continue."""
    column, sign, value = incomplete.partition("=")
    columns = _columns(context)
    if not sign:
        matches = _beginning(columns, column)
        return [CompletionItem(f"{match.name}=", help=_hint(match, columns), goes_on=True) for match in matches]
    name = column.removesuffix(":")
    return [
        CompletionItem(f"{column}={candidate}") for candidate in _values(context, name) if candidate.startswith(value)
    ]


def complete_filter(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Return how a filter row may continue: its column, its operator, then its value."""
    columns = _columns(context)
    typed = _ROW.match(incomplete)
    if typed is None:
        matches = [candidate for candidate in columns.names if word(candidate.name).startswith(incomplete)]
        if len(matches) == 1:  # a single one with its operators, so that no shell closes the quote after it
            return [*_with_operators(f"{word(matches[0].name)} ", "", matches[0], help=_hint(matches[0], columns))]
        return [
            CompletionItem(f"{word(candidate.name)} ", help=_hint(candidate, columns), goes_on=True)
            for candidate in matches
        ]
    column = next((candidate for candidate in columns.names if word(candidate.name) == typed["column"]), None)
    if column is None:
        return []
    if typed["operator"] is None:
        return [*_with_operators(typed[0], incomplete[typed.end() :], column, help=_hint(column, columns))]
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
    texts = map(word, _values(context, column))
    head, begun = incomplete[:at], incomplete[at:]
    return [CompletionItem(head + text, goes_on=several) for text in texts if text.startswith(begun)]


def _names(context: click.Context) -> Any:
    options = context.obj
    if options.names is None:
        from .known_names import KnownNames

        options.names = KnownNames(options.paths())
    return options.names


def _connection(context: click.Context) -> str:
    return str(context.params.get("connection") or "")


def _columns(context: click.Context) -> Known:
    columns: Known = _names(context).columns(_connection(context), str(context.params.get("object") or ""))
    return columns


def _values(context: click.Context, column: str) -> Iterable[str]:
    definition = next((candidate for candidate in _columns(context).names if candidate.name == column), None)
    if definition is not None and definition.kind == "boolean":
        return ("true", "false")
    values: Sequence[str] = _names(context).values(_connection(context), str(context.params.get("object")), column)
    return values


def _beginning(columns: Known, text: str) -> list[KnownColumn]:
    return [column for column in columns.names if column.name.startswith(text)]


def _hint(column: KnownColumn, columns: Known) -> str:
    return ", ".join(filter(None, (column.type, columns.age)))


class LineWord(NamedTuple):
    """The word at the cursor, which may be unfinished.

    Attributes:
        start: Number of characters before it.
        text: What it means, without quotes.
        quote: The quote that is open, if any.
    """

    start: int
    text: str
    quote: str


def split_words(line: str) -> list[str]:
    """Return the words of a line, as a shell would."""
    line = line.strip()
    if line.startswith("\\"):
        return line.split()
    if is_console(line):
        text, _ = console_text(line)
        return ["console", *([text] if text else [])]
    try:
        return shlex.split(line)
    except ValueError:
        return [line]


def split(text: str) -> tuple[list[str], LineWord]:
    """Split a line into the words before the cursor and the one at it.

    >>> split("page orders --filter 'total >")
    (['page', 'orders', '--filter'], LineWord(start=21, text='total >', quote="'"))
    >>> split("page ")
    (['page'], LineWord(start=5, text='', quote=''))
    """
    words: list[str] = []
    start, word, quote, escaped, inside = 0, "", "", False, False
    for at, letter in enumerate(text):
        if not inside and not quote and not escaped:
            if letter.isspace():
                continue
            start, word, inside = at, "", True
        if escaped:
            word, escaped = word + letter, False
        elif letter == "\\" and quote != "'" and text[at : at + 2] != "\\x":
            escaped = True
        elif quote:
            quote, word = ("", word) if letter == quote else (quote, word + letter)
        elif letter in "'\"":
            quote = letter
        elif letter.isspace():
            words.append(word)
            inside = False
        else:
            word += letter
    return words, LineWord(start, word, quote) if inside else LineWord(len(text), "", "")


def is_console(line: str) -> bool:
    """Return whether a line is a console text: the command, and neither options nor a quoted text after it."""
    match = _CONSOLE.match(line)
    return match is not None and line[match.end() :][:1] not in ("'", '"', "-")


def console_text(line: str) -> tuple[str, int]:
    """Return the text after the command, and the number of characters before it."""
    match = _CONSOLE.match(line)
    before = match.end() if match else 0
    return line[before:], before


def goes_on(line: str, *, position: int) -> bool:
    r"""Return whether Enter begins another line of a console text; a blank line or a text that is complete ends it.

    >>> [goes_on(line, position=len(line)) for line in ("page orders", "console GET /", "console GET /x {", "console")]
    [False, False, True, True]
    >>> [goes_on(line, position=len(line)) for line in ("console POST /x\n{}", "console POST /x\n{}\n  ")]
    [True, False]
    """
    if not is_console(line):
        return False
    text, _ = console_text(line)
    if "\n" in line:
        return "\n" in line[position:] or bool(line.rpartition("\n")[2].strip())
    return not text.strip() or bool(_TAKES_BODY.fullmatch(text.strip())) or _is_open(text)


def _is_open(text: str) -> bool:
    """Return whether a bracket or a text is not closed; brackets in texts do not count."""
    bare = _TEXTS.sub(lambda match: '"' if _is_cut(match[0]) else "", text)
    return '"' in bare or sum(map(bare.count, "{[(")) > sum(map(bare.count, "}])"))


def _is_cut(quoted: str) -> bool:
    mark = '"""' if quoted.startswith('"""') else '"'
    return len(quoted) < 2 * len(mark) or not quoted.endswith(mark)
