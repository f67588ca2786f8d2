"""The prompt of `dragoman open` on a terminal: editing, history, search, completion, texts of several lines.

It is the one module that knows prompt_toolkit, and is imported only when a person sits at a terminal.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import History

from dragoman_api.masking import is_secret
from dragoman_registry.files import change, exclusively

from .output import plain
from .word_completion import goes_on

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from prompt_toolkit.completion import CompleteEvent

    from .line_completion import LineOffer

HELP = "a blank line or Alt-Enter sends, Ctrl-C forgets"
"""What stands beside a text of several lines."""
MAX_LINES = 2_000
"""Maximum number of lines that are kept; the oldest are forgotten."""

MAX_LINE = 20_000
"""Maximum length of a line that is kept, in characters."""

MAX_FILE = 4 << 20
"""Size of the file in bytes from which it is shortened."""

_OPTION = re.compile(r"(?:^|\s)['\"]?--?([A-Za-z][\w-]*)")


class LinePrompt:
    """Reads lines from a terminal.

    Args:
        name: What stands before the cursor.
        history: The lines of earlier sessions.
        offers: Yields how a line may continue, from its text and the number of characters before the cursor. It may
            take its time: it runs in a thread.
    """

    def __init__(self, name: str, *, history: LineHistory, offers: Callable[[str, int], Iterable[LineOffer]]) -> None:
        self._session: PromptSession[str] = PromptSession(
            f"{plain(name)}> ",
            multiline=Condition(_goes_on),
            prompt_continuation=lambda width, _line, wrapped: "" if wrapped else f"{'...':>{width - 1}} ",
            rprompt=lambda: [("class:bottom-toolbar", HELP)] if "\n" in get_app().current_buffer.text else "",
            history=_Kept(history),
            completer=_Offers(offers),
            complete_while_typing=False,
            complete_in_thread=True,
            enable_open_in_editor=True,
        )

    def read(self) -> str:
        """Return the next line; a console text may have several. Raises EOFError, KeyboardInterrupt."""
        return self._session.prompt()


def _goes_on() -> bool:
    document = get_app().current_buffer.document
    return goes_on(document.text, position=document.cursor_position)


class _Kept(History):
    """The history of the prompt: the file, and the lines of this session, those with secrets included."""

    def __init__(self, history: LineHistory) -> None:
        super().__init__()
        self._history = history

    def load_history_strings(self) -> Iterable[str]:
        """Return the lines of earlier sessions, the newest first."""
        return reversed(self._history.lines())

    def store_string(self, string: str) -> None:
        """Keep a line."""
        self._history.add(string)


class _Offers(Completer):
    """The completion of the prompt."""

    def __init__(self, offers: Callable[[str, int], Iterable[LineOffer]]) -> None:
        self._offers = offers

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield how the text before the cursor may continue."""
        for offer in self._offers(document.text, document.cursor_position):
            if offer.kind == "plain":
                yield Completion(offer.text, -offer.length, display=plain(offer.shown), display_meta=plain(offer.about))
            else:
                yield from _paths(document, offer, complete_event)


def _paths(document: Document, offer: LineOffer, event: CompleteEvent) -> Iterator[Completion]:
    typed = document.text_before_cursor[document.cursor_position - offer.length :]
    paths = PathCompleter(only_directories=offer.kind == "dir", expanduser=True)
    for completion in paths.get_completions(Document(typed), event):
        if completion.text.isprintable():
            yield completion


class LineHistory:
    """A file that only its owner can read, a JSON text a line; a file that cannot be used is none."""

    def __init__(self, file: Path, *, mask: Callable[[str], str]) -> None:
        self._file, self._mask = file, mask

    def lines(self) -> list[str]:
        """Return the lines, the oldest first; a damaged one is left out, and a file that is too long is shortened."""
        try:
            with open(self._file, "rb") as file:  # noqa: PTH123 - of its end only so much
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - MAX_FILE))
                lines = _texts(file.read())
        except OSError:
            return []
        if len(lines) > MAX_LINES or size > MAX_FILE:
            lines = lines[-MAX_LINES // 2 :]
            with suppress(OSError):
                change(self._file, _shortened)
        return lines

    def add(self, line: str) -> None:
        """Keep a line, unless it begins with a space or may hold a secret; if that fails, it is not kept."""
        line = line.rstrip()
        if not line or line[:1].isspace() or len(line) > MAX_LINE or self.is_secret(line):
            return
        with suppress(OSError):
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
            with exclusively(self._file), os.fdopen(os.open(self._file, flags, 0o600), "ab", buffering=0) as file:
                file.write(_encoded(line))

    def is_secret(self, line: str) -> bool:
        """Return whether a line may hold a secret: a known one, or a value that is named like one."""
        return self._mask(line) != line or any(map(is_secret, _OPTION.findall(line)))


def _shortened(data: bytes) -> bytes:
    """Return the contents of a file with the newest lines only."""
    return b"".join(map(_encoded, _texts(data[-MAX_FILE:])[-MAX_LINES // 2 :]))


def _texts(data: bytes) -> list[str]:
    return [*filter(None, map(_text, data.splitlines()))]


def _encoded(line: str) -> bytes:
    return json.dumps(line).encode() + b"\n"


def _text(data: bytes) -> str | None:
    try:
        text = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return text if isinstance(text, str) else None
