"""The console: a text becomes requests, a request an answer."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from .changes import HttpRequest
from .columns import Note
from .grid import Page


class ConsoleText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person typed, or a file holds."""

    text: str


class ConsoleRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request of a console text.

    Attributes:
        request: Exactly what is sent.
        writes: It may change something on the server; in doubt it does.
        line: Where it begins in the text, from 1.
    """

    request: HttpRequest
    writes: bool
    line: int = 1


class AnswerKind(StrEnum):
    """How an answer is shown."""

    GRID = "grid"
    TABLE = "table"
    JSON = "json"
    TEXT = "text"


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the server answered, ready to be shown.

    Attributes:
        kind: Grid and table use `page`, json and text use `text`.
        status: HTTP status.
        request: What was sent.
        page: Rows, where the answer has some.
        text: The body as text: JSON with its digits untouched, or plain text.
        notes: What a person should know beside it.
        title: What the rows are, where one request has several answers.
        failed: Why the request failed although the status says that it did not; empty when it went well.
        next: The answer after this one, where one request has several.
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
