"""The console: a text becomes requests, and each request has an answer."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from .changes import HttpRequest
from .columns import Note
from .errors import UnsupportedOperationError
from .grid import Page


class ConsoleText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The console text that a person typed or a file holds."""

    text: str


class ConsoleRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request of a console text.

    Attributes:
        request: The request exactly as sent.
        writes: The request may change something on the server; True if in doubt.
        line: The line of the text where it begins, from 1.
        tabular: The answer is wanted as tables if it has rows in some form, such as the buckets of an aggregation. A
            driver that makes none answers as usual.
    """

    request: HttpRequest
    writes: bool
    line: int = 1
    tabular: bool = False


class AnswerKind(StrEnum):
    """The way an answer is shown."""

    GRID = "grid"
    TABLE = "table"
    JSON = "json"
    TEXT = "text"


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The server's answer, ready to be shown.

    Attributes:
        kind: Grid and table use `page`, json and text use `text`.
        status: HTTP status.
        request: The request as sent.
        page: The rows, if the answer has any.
        text: The body as text: JSON with its digits untouched, or plain text.
        notes: Remarks for a person.
        title: A title for the rows, if one request has several answers.
        failed: Why the request failed despite a success status; empty if it succeeded.
        next: The next answer, if one request has several.
    """

    kind: AnswerKind
    status: int
    request: HttpRequest
    page: Page | None = None
    text: str = ""
    notes: list[Note] = []
    title: str = ""
    failed: str = ""
    next: Answer | None = None

    def _repr_html_(self) -> str:
        """Return the answer as a notebook shows it: its rows or its text, and its notes beneath."""
        from .notebook_html import text_html, title_html  # only notebooks need it

        title = " · ".join(text for text in (f"{self.status}", self.title, self.failed) if text)
        if self.page is None:
            return text_html(self.text, title=title, notes=self.notes)
        page = msgspec.structs.replace(self.page, notes=[*self.notes, *self.page.notes])
        return title_html(title, page._repr_html_())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as an Arrow stream; see `Page`. Raises UnsupportedOperationError if there are none."""
        return self._rows().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Return the schema of the Arrow stream. Raises UnsupportedOperationError if there are no rows."""
        return self._rows().__arrow_c_schema__()

    def _rows(self) -> Page:
        if self.page is None:
            raise UnsupportedOperationError(f"the answer is {self.kind.value} without rows", hint="read its text")
        return self.page


MAX_SUGGESTIONS = 200
"""Maximum number of suggestions for one place."""

SUGGESTION_TEXT = 1_000
"""Maximum length of a suggestion in characters."""


class CompletionRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place in a console text.

    Attributes:
        text: The whole console text.
        position: Number of characters (code points) before the cursor, 0 to the length of the text.
    """

    text: str
    position: int


class SuggestionKind(StrEnum):
    """What a suggestion is."""

    METHOD = "method"
    PATH = "path"
    OBJECT = "object"
    FIELD = "field"
    KEYWORD = "keyword"


class Suggestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to continue: `text` replaces the characters from `start` to `end`.

    Attributes:
        text: Without line breaks and control characters.
        kind: What it is.
        start: Number of characters before the replaced ones.
        end: Number of characters before the first one after them; at least `start`.
        detail: A few words beside it, such as a field's type; may be empty.
    """

    text: str
    kind: SuggestionKind
    start: Annotated[int, msgspec.Meta(ge=0)]
    end: Annotated[int, msgspec.Meta(ge=0)]
    detail: str = ""


class Completion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The suggestions for one place, the likeliest first.

    Attributes:
        suggestions: At most `MAX_SUGGESTIONS`.
        more: There are further ones, which more typed characters bring.
    """

    suggestions: Annotated[list[Suggestion], msgspec.Meta(max_length=MAX_SUGGESTIONS)] = []
    more: bool = False
