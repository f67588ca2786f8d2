"""What to do about an error or a note: commands that can be pasted where they are printed, and advice in words.

A hint has one command or one sentence a line. Inside `dragoman open`, a command is written as it is typed there.
"""

from __future__ import annotations

import re
import shlex
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError
from dragoman_api.wording import shell_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dragoman_api.columns import Note
    from dragoman_api.errors import DragomanError
    from dragoman_api.remedies import Argument, Remedy

PROGRAMS = ("dragoman", "pip", "python", "pipx", "uv", "uvx", "chmod", "ssh", sys.executable)
"""Programs whose commands are printed for pasting."""

PLACEHOLDERS = re.compile(
    r"(?:ANOTHER-)?(?:COLUMN|CONNECTION|DIR|FILE|FOLDER|HOST|ID|KEY|LOCATION|NAME|NUMBER|OBJECT|PATH|PORT|ROOT|SHA256"
    r"|SOURCE|TEXT|TOKEN|TYPE|VALUE|VERSION|WHEELS)(?:\.\w+)?[,;:]?|env:NAME|\S*(?:=VALUE|=NAME)|…"
)
"""Words that a person replaces before a command can run."""

LINES = (
    "objects",
    "describe",
    "page",
    "count",
    "summarize",
    "similar",
    "cell",
    "console",
    "export",
    "insert",
    "update",
    "delete",
    "drop",
    "apply",
    "import",
)
"""Commands of a line inside `dragoman open`, which leave out the connection's name."""

ELSEWHERE = ("connections", "copy", "queries", "plugins", "registry", "driver", "doctor", "run", "completion")
"""Commands of a line that are not about its connection; they are written as outside."""

_place: list[str] = []  # the connection that `dragoman open` has open
_homes: list[Callable[[], str | None]] = []  # that of a command line with `--home`


@contextmanager
def inside(connection: str) -> Iterator[None]:
    """Print commands as the lines of a connection that `dragoman open` has open."""
    _place.append(connection)
    try:
        yield
    finally:
        _place.pop()


@contextmanager
def at_home(home: Callable[[], str | None], words: Sequence[str]) -> Iterator[None]:
    """Print commands with the `--home` of a command line, if it has one: they would act on another home without it."""
    has_home = any(word == "--home" or word.startswith("--home=") for word in words)
    if has_home:
        _homes.append(home)
    try:
        yield
    finally:
        if has_home:
            _homes.pop()


def command(*words: str) -> str:
    """Return a command line to paste here, from the words of the one in a shell: `dragoman`, then its arguments."""
    return _here([*words]) or shell_line(words)


def lines(hint: str) -> Iterator[str]:
    """Yield the lines that show a hint: `try:` and one command, or `hint:` and words; not yet safe for a terminal."""
    for line in hint.splitlines():
        text = line.strip()
        if not text:
            continue
        if not (words := _words(text)):
            yield f"hint: {text}"
        elif prompt_line := _here(words):
            yield f"try: {prompt_line}"
        else:  # nothing in it means something to a shell
            yield f"{'hint: outside of this shell:' if _place else 'try:'} {shell_line(_at_home(words))}"


def advice(source: Note | DragomanError) -> Iterator[str]:
    """Yield the lines that show hint and remedies with their source: a driver's advice is not the host's."""
    if source.hint_from and source.hint:
        yield f"the driver suggests: {source.hint}"
    elif source.hint:
        yield from lines(source.hint)
    for remedy in source.remedies:
        command = remedy_command(remedy)
        text = command or str(remedy)
        yield f"{'the driver suggests' if source.hint_from else 'try' if command else 'hint'}: {text}"


def remedy_command(remedy: Remedy) -> str:
    """Return the command line that does what a remedy says, to paste here; empty if no command does."""
    if not (words := command_words(remedy)):
        return ""
    return _here(words) or shell_line(_at_home(words))


def command_words(remedy: Remedy) -> list[str]:
    """Return the words of the command that does it, not quoted; none if no command does.

    >>> from dragoman_api.remedies import Remedy
    >>> arguments = {"connection": "shop", "object": "-a b", "column": "sku", "operator": "=", "value": "A 17"}
    >>> command_words(Remedy("filter-rows", arguments))
    ['dragoman', 'page', 'shop', '--filter', 'sku = "A 17"', '--', '-a b']
    """
    from dragoman.spellings import field_words
    from dragoman_api.remedies import ABOUT_PLUGINS, RemedyKind

    if remedy.fault or not ("connection" in remedy.arguments or remedy.kind in ABOUT_PLUGINS):
        return []
    arguments = {name: value if isinstance(value, bool) else str(value) for name, value in remedy.arguments.items()}
    if remedy.kind == RemedyKind.EDIT_FIELD:
        value = arguments.get("value")
        options = [] if value is None else field_words(str(arguments["field"]), value=value)
        return _line("connections edit", [str(arguments["connection"])], options)
    if remedy.kind in (RemedyKind.OPEN_OBJECT, RemedyKind.FILTER_ROWS, RemedyKind.QUERY_ROWS):
        return _page(remedy.arguments)
    if remedy.kind not in _COMMANDS:
        return []
    command, names, option = _COMMANDS[remedy.kind]
    switch, _, value = option.partition("=")
    options = (
        [switch, *([str(arguments[value])] if value else [])] if option and arguments.get(value, not value) else []
    )
    return _line(command, [str(arguments[name]) for name in names.split()], options)


def _page(arguments: Mapping[str, Argument]) -> list[str]:
    """Return the words that show rows: all of an object, those of a filter row, or those of a query."""
    from dragoman.sessions.selection_codec import SelectionTexts, filter_text
    from dragoman_api.filters import Filter

    rows: list[str] = []
    if "column" in arguments:
        value = arguments.get("value")
        try:
            rows = [filter_text(Filter(str(arguments["column"]), str(arguments["operator"]), value))]
        except (ConfigurationError, ValueError):  # a driver wrote it, and no command can say it
            return []
    raw = [str(arguments["query"])] if "query" in arguments else []
    texts = SelectionTexts(object=str(arguments["object"]), filters=rows, raw=raw)
    return texts.command(str(arguments["connection"]))


def _line(command: str, names: list[str], options: list[str]) -> list[str]:
    start, names = ["dragoman", *command.split(), *names[:1]], names[1:]
    if any(name.startswith("-") for name in names):  # it would be read as an option
        return [*start, *options, "--", *names]
    return [*start, *names, *options]


# For each kind: the command, its names, and its options with their values.
_COMMANDS: dict[str, tuple[str, str, str]] = {
    "pin-certificate": ("connections edit", "connection", "--pin-certificate=fingerprint"),
    "unpin-certificate": ("connections edit", "connection", "--unpin"),
    "test-connection": ("connections test", "connection", ""),
    "sign-in": ("connections edit", "connection", "--sign-in-at=server"),
    "list-objects": ("objects", "connection", ""),
    "describe-object": ("describe", "connection object", ""),
    "raise-setting": ("console", "connection request", ""),
    "send-request": ("console", "connection request", ""),
    "install": ("plugins install", "plugin", "--version=version"),
    "update": ("plugins update", "plugin", ""),
    "repair": ("plugins repair", "plugin", ""),
    "enable": ("plugins enable", "plugin", ""),
}


def _words(text: str) -> list[str]:
    """Return the words of a command that can be pasted; none for anything else."""
    try:
        words = shlex.split(text)
    except ValueError:
        return []
    return [] if words[0] not in PROGRAMS or any(PLACEHOLDERS.fullmatch(word) for word in words) else words


def _at_home(words: list[str]) -> list[str]:
    home = _homes[-1]() if _homes else None
    return [*words[:1], "--home", home, *words[1:]] if home and words[:1] == ["dragoman"] else words


def _here(words: list[str]) -> str:
    """Return a command as a line of the open connection; empty if it is none."""
    if words == ["dragoman", "--help"]:
        return "help" if _place else ""
    if _place and words[0] == "dragoman" and {*words[1:2]} & {*ELSEWHERE}:
        return shell_line(words[1:])
    if not _place or words[0] != "dragoman" or not {*words[1:2]} & {*LINES}:
        return ""
    if words[2:3] == ["--help"]:
        return f"help {words[1]}"
    if words[2:3] != [_place[-1]] or not all(map(str.isprintable, words)):
        return ""
    if words[1] == "console" and len(words) == 4 and not words[3].startswith("-"):
        return f"console {words[3]}"  # a request is typed without quotes around it
    return shell_line([words[1], *words[3:]])
