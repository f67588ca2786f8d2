"""The prompt of `dragoman open` on a terminal: editing, history, search, completion, texts of several lines.

It is the one module that knows prompt_toolkit, and is imported only when a person sits at a terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import History

from .line_words import goes_on
from .output import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prompt_toolkit.completion import CompleteEvent

    from .line_completion import LineOffer
    from .line_history import LineHistory

HELP = "a blank line or Alt-Enter sends, Ctrl-C forgets"
"""What stands beside a text of several lines."""


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
