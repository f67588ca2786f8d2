"""How a line of `dragoman open` may continue: its command, its words, or a console text."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, NamedTuple

from . import app
from .line_words import LineWord, console_text, is_console, split
from .word_completion import suggestions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from click.shell_completion import CompletionItem

    from .live_names import LiveNames
    from .options import Options

_SAFE = re.compile(r"[\w@%+=:,./\\-]*")  # \x is a command


class LineOffer(NamedTuple):
    """One way to continue.

    Attributes:
        text: What takes the place of the last `length` characters before the cursor.
        length: Number of these characters.
        shown: Its name in a menu.
        about: A few words beside it.
        kind: ``plain``; ``file`` or ``dir`` stand for all paths that begin like the last `length` characters.
    """

    text: str
    length: int
    shown: str
    about: str = ""
    kind: str = "plain"


def offers(
    line: str, position: int, *, options: Options, names: LiveNames, connection: str, own: Mapping[str, str],
    local: Collection[str],
) -> Iterator[LineOffer]:  # fmt: skip
    """Yield how a line may continue at the cursor; names that are not printable are left out.

    Args:
        line: The whole line, which may have several lines if it is a console text.
        position: Number of characters before the cursor.
        options: The options of the shell.
        names: What the connection has.
        connection: Its name.
        own: The commands that only the shell has, with what they do.
        local: The commands that leave out the connection's name.
    """
    if is_console(line):
        yield from _console(line, position, names)
        return
    words, last = split(line[:position])
    if words[:1] in (["help"], []):
        yield from _commands(last, own if not words else {}, position)
        return
    command = words[0]
    before = [command, connection, *words[1:]] if command in local else words
    for item in suggestions(app.cli, options, before, last.text):
        yield _offer(item, last, position)


def _offer(item: CompletionItem[str], last: LineWord, position: int) -> LineOffer:
    length = position - last.start
    if item.type in ("file", "dir"):
        return LineOffer(item.value, length, item.value, kind=item.type)
    return LineOffer(_quoted(item.value, last.quote, goes_on=bool(item.goes_on)), length, item.value, item.help or "")


def _quoted(value: str, quote: str, *, goes_on: bool) -> str:
    """Return a value as a word of a line, in the quotes that are open; they stay open if it goes on."""
    if not quote and _SAFE.fullmatch(value):
        return value if goes_on else f"{value} "
    if "'" in value:
        return value if goes_on else f"{shlex.quote(value)} "
    quote = quote or "'"
    inner = re.sub(r'(["\\])', r"\\\1", value) if quote == '"' else value
    return f"{quote}{inner}" if goes_on else f"{quote}{inner}{quote} "


def _commands(last: LineWord, own: Mapping[str, str], position: int) -> Iterator[LineOffer]:
    help_texts = dict.fromkeys(app.cli.commands, "") | dict(own)
    for name in sorted(help_texts):
        if name.startswith(last.text):
            help_text = help_texts[name] or app.cli.commands[name].get_short_help_str(limit=60)
            yield LineOffer(f"{name} ", position - last.start, name, help_text)


def _console(line: str, position: int, names: LiveNames) -> Iterator[LineOffer]:
    text, before = console_text(line)
    at = position - before
    if at < 0:
        return
    for suggestion in names.console(text, at):
        if not suggestion.text.isprintable() or not suggestion.start <= at <= suggestion.end:
            continue
        rest = text[at : suggestion.end]  # what follows the cursor stays
        if suggestion.text.endswith(rest):
            new = suggestion.text.removesuffix(rest) if rest else suggestion.text
            help_text = " ".join(
                filter(None, (suggestion.kind, suggestion.detail if suggestion.detail.isprintable() else ""))
            )
            yield LineOffer(new, at - suggestion.start, suggestion.text, help_text)
