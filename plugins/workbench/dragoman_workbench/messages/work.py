"""Messages of the console and of exports."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from dragoman import FileFormat
from dragoman_api.changes import HttpRequest
from dragoman_api.columns import Note
from dragoman_api.console import Suggestion

from .base import Name, Request, RequestFailure, RouteAnswer, Text, Ticket
from .rows import PageAnswer, RowsAsked


class ParseAsked(Request, frozen=True, kw_only=True):
    """The requests in a console text; nothing is sent. `variables` fill ``${name}``."""

    connection: Name
    text: Annotated[str, Meta(max_length=4 << 20)]
    variables: Annotated[dict[str, Text], Meta(max_length=200)] = {}


class ParsedRequest(RouteAnswer, frozen=True, kw_only=True):
    """One request of a console text.

    Attributes:
        writes: It may write.
        line: Where it begins, from 1.
        docs: The page on it that the driver's manifest names, an https address; empty for none.
    """

    request: HttpRequest
    writes: bool
    line: int
    curl: str
    docs: str = ""


class Parsed(RouteAnswer, frozen=True, kw_only=True):
    """The requests of a console text, in order."""

    requests: list[ParsedRequest]


class ExecuteAsked(ParseAsked, frozen=True, kw_only=True):
    """Send requests of a console text, in order.

    Attributes:
        line: Only the request that holds this line, from 1; null for all.
        stop_on_error: Stop after the first answer that reports a failure; otherwise the others are sent, too.
        remember: Add the text to the history, without what looks like a secret.
    """

    line: int | None = None
    stop_on_error: bool = False
    remember: bool = True


class ConsoleAnswer(RouteAnswer, frozen=True, kw_only=True):
    """The answer to one request.

    Attributes:
        line: Where its request begins, from 1.
        until: The last line before the next request of the text; 0 if there is none.
        kind: ``grid`` and ``table`` use `page`; ``json`` and ``text`` use `text`.
        text: The body, JSON with its digits untouched.
        title: Of the rows, if one request has several answers.
        failed: Why it failed despite a success status; empty if it succeeded.
        writes: The request may have changed what the server holds.
    """

    line: int
    until: int
    kind: Literal["grid", "table", "json", "text"]
    status: int
    request: HttpRequest
    page: PageAnswer | None
    text: str
    notes: list[Note]
    title: str
    failed: str
    seconds: float
    writes: bool


class UnsentRequest(RouteAnswer, frozen=True, kw_only=True):
    """A request that was not sent, because one before it ended the run; `line` is where it begins."""

    line: int
    method: str
    path: str


class Executed(RouteAnswer, frozen=True, kw_only=True):
    """The answers so far; `error` is what ended the run early, and `unsent` what comes after that."""

    answers: list[ConsoleAnswer]
    error: RequestFailure | None = None
    unsent: list[UnsentRequest] = []


class CompleteAsked(Request, frozen=True, kw_only=True):
    """How to continue a console text after that many characters (code points)."""

    connection: Name
    text: Annotated[str, Meta(max_length=1 << 20)]
    position: Annotated[int, Meta(ge=0, le=1 << 20)]


class Completed(RouteAnswer, frozen=True, kw_only=True):
    """Suggestions, the likeliest first; places are in code points."""

    suggestions: list[Suggestion]


class HistoryEntry(RouteAnswer, frozen=True, kw_only=True):
    """One text that was run; `at` is seconds since the epoch."""

    at: float
    text: str


class History(RouteAnswer, frozen=True, kw_only=True):
    """What was run on a connection, the newest first."""

    entries: list[HistoryEntry]


class ExportedFile(Request, frozen=True, kw_only=True):
    """What the file of an export is: a `dragoman.FileFormat` that the page can choose.

    Attributes:
        compression: Its compression; null goes by the file's name in the folder, and means none for a download.
        escape: Put an apostrophe before the texts of a CSV or TSV file that a spreadsheet would take for a formula.
            Other formats ignore it.
    """

    format: Literal["documents", "rows", "json", "csv", "tsv", "bulk", "parquet"] = "documents"
    compression: Literal["gzip", "bzip2", "zstd"] | None = None
    escape: bool = True

    @property
    def file_format(self) -> FileFormat:
        """The format as the host takes it."""
        escape = self.escape and self.format in ("csv", "tsv")
        return FileFormat(self.format, compression=self.compression, escape=escape)


class ExportAsked(RowsAsked, frozen=True, kw_only=True):
    """Export rows.

    Attributes:
        to: ``download``: answers with a ticket; the export begins when the browser fetches it. ``folder``: into the
            folder given at the start.
    """

    to: Literal["download", "folder"]
    file: Annotated[str, Meta(min_length=1, max_length=200)]
    format: ExportedFile = ExportedFile()


class ExportJob(RouteAnswer, frozen=True, kw_only=True):
    """An export, as ``exports`` and the event ``export`` report it.

    Attributes:
        ticket: For ``/download/TICKET``, while `state` is ``waiting``.
        resumable: It can go on where it ended: ``exports/resume``.
        changes: How often it has changed; of two reports, that with the larger number is the newer one.
    """

    id: str
    connection: str
    object: str
    file: str
    to: Literal["download", "folder"]
    state: Literal["waiting", "running", "finished", "failed", "cancelled"]
    ticket: str = ""
    rows: int = 0
    bytes: int = 0
    total: int | None = None
    sha256: str = ""
    notes: list[Note] = []
    error: RequestFailure | None = None
    resumable: bool = False
    changes: int = 0


class ExportNamed(Request, frozen=True, kw_only=True):
    """An export by id."""

    id: Ticket


class Exports(RouteAnswer, frozen=True, kw_only=True):
    """All exports since the start."""

    exports: list[ExportJob]
