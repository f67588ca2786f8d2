"""How a line of `dragoman open` may continue: its command, its words, or a console text."""

from __future__ import annotations

import re
import shlex
import time
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from anyio.to_thread import run_sync

from dragoman_api.errors import DragomanError

from . import app
from .known_names import Known, KnownColumn
from .word_completion import LineWord, console_text, is_console, split, suggestions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Hashable, Iterator, Mapping, Sequence

    from anyio.from_thread import BlockingPortal
    from click.shell_completion import CompletionItem

    from dragoman.sessions.session import Session
    from dragoman_api.console import Suggestion

    from .known_names import KnownNames
    from .options import Options

_SAFE = re.compile(r"[\w@%+=:,./\\-]*")  # \x is a command
PATIENCE = 3.0
"""Seconds after which a completion gives up; the answer serves the next one."""

KEPT_SECONDS = 60.0
"""Seconds for which names are not read again."""

MOST_VALUES = 50
"""A column with more different values is not an enumeration."""

LONGEST_VALUE = 100
"""Maximum length of a value that is suggested, in characters."""

T = TypeVar("T")


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


class LiveNames:
    """The names of one open connection; other connections have those that were kept."""

    def __init__(self, session: Session, portal: BlockingPortal, *, kept: KnownNames) -> None:
        self._session, self._portal, self._others = session, portal, kept
        self._read: dict[Hashable, tuple[float, Any]] = {}

    def objects(self, connection: str) -> Known:
        """Return the names of a connection's objects."""
        if connection != self._session.name:
            return self._others.objects(connection)
        return Known(self._ask("objects", self._objects) or ())

    def columns(self, connection: str, object: str) -> Known:
        """Return the columns of an object, as `KnownColumn`."""
        if connection != self._session.name:
            return self._others.columns(connection, object)
        return Known(self._ask(("columns", object), lambda: self._columns(object)) or ())

    def values(self, connection: str, object: str, column: str) -> Sequence[str]:
        """Return the values of a column that has few different ones, the most frequent first."""
        if connection != self._session.name or not self._session.can("summarize_column"):
            return ()
        return self._ask(("values", object, column), lambda: self._values(object, column)) or ()

    def console(self, text: str, position: int) -> Sequence[Suggestion]:
        """Return how a console text may continue at a place."""
        if not self._session.can("complete_console"):
            return ()

        async def complete() -> Sequence[Suggestion]:
            return (await self._session.complete(text, position)).suggestions

        return self._wait(complete) or ()

    async def _objects(self) -> list[str]:
        names = [node.name for node in await self._session.objects(counts=False)]
        await run_sync(self._others.remember_objects, self._session.name, names)
        return names

    async def _columns(self, object: str) -> list[KnownColumn]:
        columns = (await self._session.describe(object)).columns
        await run_sync(self._others.remember_columns, self._session.name, object, columns)
        return [
            KnownColumn(column.name, column.type, column.kind, column.sortable, tuple(map(str, column.operators)))
            for column in columns
        ]

    async def _values(self, object: str, column: str) -> list[str]:
        summary = await self._session.rows(object).summarize(column, values=MOST_VALUES, buckets=0)
        if summary.distinct is not None and summary.distinct > MOST_VALUES:
            return []
        texts = [frequency.value for frequency in summary.values if isinstance(frequency.value, str)]
        return [text for text in texts if text.isprintable() and 0 < len(text) <= LONGEST_VALUE]

    def _ask(self, key: Hashable, read: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """Return an answer that is not too old, or ask for it. None if there is none in time."""
        at, answer = self._read.get(key, (0.0, None))
        if answer is not None and time.monotonic() - at < KEPT_SECONDS:
            return answer  # type: ignore[no-any-return]

        async def keep() -> T:
            reply = await read()
            self._read[key] = time.monotonic(), reply
            return reply

        return self._wait(keep)

    def _wait(self, read: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        try:
            answer: T = self._portal.start_task_soon(read).result(PATIENCE)
        except (DragomanError, TimeoutError, CancelledError, RuntimeError):  # completion has nothing to say about it
            return None
        return answer
