"""Every request and answer between the page and the server; `page/messages.ts` is generated from it.

Internal: the stable interface is the Python API. The page sends each request as a POST with a JSON body to ``/api/…``
and, except for ``enter``, with the secret in the header ``Dragoman-Secret``. `ROUTES` at the end lists them. A failure
is `Failed` with a status of 400 or more:

- 400 the body is not what the route takes; 404 there is no such route or id; 413 it is too large; 429 too many at once
- 401 the secret is missing or expired: the page asks the person to open the workbench again
- 403 the Host or Origin header names another site
- 422 a DragomanError; `Failure.code` says which

``GET /api/events`` (same header, read with fetch) answers with ``text/event-stream``; the ``data`` of each message is
one `ServerEvent`. ``GET /download/TICKET`` streams an export; the browser navigates to it, so it has no header. A
ticket holds once, for 30 seconds.

**Cells.** A cell is null, true, false or a string, which stands for that text, or a pair ``[tag, text]``:

- ``integer``, ``decimal``: a number with its digits as the server sent them, of any length; never a JSON number
- ``json``: an array or object, as JSON text with its digits and key order; ``[]`` and ``{}`` are empty ones
- ``bytes``: a binary value as base64
- ``cut-text``, ``cut-json``, ``cut-bytes``: only the beginning of such a value; ``cell`` fetches all of it
- ``missing``: the row has no such value, where the driver tells that apart from null; the text is empty

A value that the page sends takes the same form, without the cut tags. Values of filter rows are texts: the driver reads
them according to the column.

**Keys.** `Row.key` is a text that only the server reads; the page sends it back unchanged. `Row.id` is for people.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from dragoman_api.changes import HttpRequest
from dragoman_api.columns import Column, Note, Object, TimeColumn
from dragoman_api.filters import Explanation

CellTag = Literal["integer", "decimal", "json", "bytes", "cut-text", "cut-json", "cut-bytes", "missing"]
Tagged = tuple[CellTag, str]
Cell = None | bool | str | Tagged

Name = Annotated[str, Meta(min_length=1, max_length=64)]
ObjectName = Annotated[str, Meta(min_length=1, max_length=4_096)]
ColumnName = Annotated[str, Meta(min_length=1, max_length=4_096)]
Text = Annotated[str, Meta(max_length=65_536)]
Key = Annotated[str, Meta(min_length=2, max_length=65_536)]
Ticket = Annotated[str, Meta(min_length=1, max_length=128)]


class Message(Struct, frozen=True, kw_only=True):
    """An answer, or a part of one."""


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a request."""


# failures, and what they offer ----------------------------------------------------------------------------------------


class Remedy(Message, frozen=True, kw_only=True):
    """What the page offers as a button beside a failure.

    Attributes:
        action: What the button does; ``command`` copies `target`, the others call that route with it.
        label: The text of the button.
        target: A plugin's id, a connection's name, or the command to copy.
    """

    action: Literal["install", "update", "repair", "enable", "edit", "unlock", "open", "command"]
    label: str
    target: str


class Failure(Message, frozen=True, kw_only=True):
    """Why a request failed; a person can act on it.

    Attributes:
        code: Stable identifier, as of `dragoman_api.errors`, or ``bad-request``, ``not-found``, ``too-large``,
            ``too-many``, ``no-secret``, ``foreign``.
        message: One sentence.
        hint: What to do; empty if nothing can be done.
        hint_from: ``driver`` if a driver wrote the hint, which is then shown as its words; else empty.
        field: The field of the form that can mend it; empty if there is none.
        row: The filter row or change that it is about, from 0; None for none.
        remedy: A button; None for none.
    """

    code: str
    message: str
    hint: str = ""
    hint_from: str = ""
    details: dict[str, str] = {}
    field: str = ""
    row: int | None = None
    remedy: Remedy | None = None


class Failed(Message, frozen=True, kw_only=True):
    """The body of every answer with a status of 400 or more."""

    error: Failure


class Done(Message, frozen=True, kw_only=True):
    """It was done."""

    done: bool = True


class Empty(Request, frozen=True, kw_only=True):
    """A request without parameters: ``{}``."""


# entering -------------------------------------------------------------------------------------------------------------


class Enter(Request, frozen=True, kw_only=True):
    """The exchange of a one-time token, from the address's fragment (``/#token=…``), for a secret."""

    token: Annotated[str, Meta(min_length=1, max_length=128)]


class Entered(Message, frozen=True, kw_only=True):
    """The secret for the header; it expires after that many seconds without a request."""

    secret: str
    idle_seconds: int


class NewToken(Message, frozen=True, kw_only=True):
    """A one-time token, with which the page opens a further tab: ``/#token=…``; it holds a minute."""

    token: str


class State(Message, frozen=True, kw_only=True):
    """What a tab shows first.

    Attributes:
        version: Of dragoman.
        sandbox: The level that drivers reach here: ``full``, ``partial: no Landlock …``, ``off``.
        connection: The connection named at the start; empty for none.
        open: The connections that are open.
        questions: Those that wait for an answer.
        exports: Running and finished ones.
        export_folder: Where exports may be written, as given at the start; empty if only downloads are possible.
        warnings: About this machine and its files.
    """

    version: str
    sandbox: str
    connection: str
    open: list[Opened]
    questions: list[Question]
    exports: list[Export]
    export_folder: str
    warnings: list[str]


# connections ----------------------------------------------------------------------------------------------------------


class ConnectionSummary(Message, frozen=True, kw_only=True):
    """A saved connection in the list.

    Attributes:
        name: Its name.
        type: The database type.
        address: Host and port.
        acts: What dragoman reads or runs to open it, in words.
        open: It is open.
        production: It is marked as production.
    """

    name: str
    type: str
    address: str
    acts: list[str]
    open: bool
    production: bool


class HiddenConnection(Message, frozen=True, kw_only=True):
    """A saved connection that cannot be used, and why."""

    name: str
    reason: str


class ConnectionList(Message, frozen=True, kw_only=True):
    """The saved connections; `warnings` tells how others can change the file."""

    connections: list[ConnectionSummary]
    hidden: list[HiddenConnection]
    warnings: list[str]


class TypeOffer(Message, frozen=True, kw_only=True):
    """A database type of a registry, or of an installed driver.

    Attributes:
        type: Its name in a connection.
        driver: The driver that serves it.
    """

    type: str
    driver: DriverSummary


class TypeList(Message, frozen=True, kw_only=True):
    """The types of all registries."""

    types: list[TypeOffer]


class FormAsked(Request, frozen=True, kw_only=True):
    """The form of a new connection by `type`, or of a saved one by `name`. Nothing is installed."""

    type: Annotated[str, Meta(max_length=64)] = ""
    name: Annotated[str, Meta(max_length=64)] = ""


class FieldChoice(Message, frozen=True, kw_only=True):
    """One value of a choice and its label."""

    value: str
    label: str


class Field(Message, frozen=True, kw_only=True):
    """One field of the form.

    Attributes:
        name: Its name.
        label: The label.
        kind: The kind of input.
        value: The saved value, else the default; always null for a secret and a file.
        choices: Of a choice.
        visible_if: Names of fields, and the values (as texts: ``true``, ``basic``) that show this one; all must hold.
        always: It is shown whatever `visible_if` says.
        advanced: It belongs to the Advanced section.
        required: It must not be empty while it is visible.
        help: One sentence.
        saved: For a secret or a file with a saved reference: what dragoman does with it, in words. Empty otherwise.
        references: References that saved connections hold already, which this field may use; secrets and files only.
    """

    name: str
    label: str
    kind: Literal["text", "integer", "switch", "choice", "secret", "file"]
    value: bool | str | None = None
    choices: list[FieldChoice] = []
    visible_if: dict[str, list[str]] = {}
    always: bool = False
    advanced: bool = False
    required: bool = False
    help: str = ""
    saved: str = ""
    references: list[KnownReference] = []


class KnownReference(Message, frozen=True, kw_only=True):
    """A reference that a saved connection holds: the page sends `id` and shows `act`."""

    id: str
    act: str


class Form(Message, frozen=True, kw_only=True):
    """The form of one connection; `installed` is False if the driver should be offered first (P2)."""

    type: str
    name: str
    driver: DriverSummary
    installed: bool
    fields: list[Field]


class FieldEntry(Request, frozen=True, kw_only=True):
    """What a person entered in one field.

    Attributes:
        kind: ``value``; ``keep`` for the saved secret or file; ``secret`` for a typed one, which is stored in a file
            that only this user can read; ``reference`` for the `id` of a known one; ``path`` for the path of a file of
            certificates.
        value: A switch as a boolean, everything else as text; null for an empty field.
    """

    kind: Literal["value", "keep", "secret", "reference", "path"] = "value"
    value: bool | Text | None = None


class SaveConnection(Request, frozen=True, kw_only=True):
    """Save a connection; `replace` is the name of the one that is edited, empty for a new one.

    Attributes:
        fields: Entries of the visible fields by name.
        accept_address: The person changed or confirmed the host: the address it has now is accepted.
    """

    name: Name
    type: Name
    fields: Annotated[dict[str, FieldEntry], Meta(max_length=200)]
    replace: Annotated[str, Meta(max_length=64)] = ""
    accept_address: bool = False


class TestConnection(SaveConnection, frozen=True, kw_only=True):
    """Connect with these entries, without saving them."""


class Tested(Message, frozen=True, kw_only=True):
    """The connection works."""

    product: str
    version: str
    sandbox: str
    warnings: list[str]


class Named(Request, frozen=True, kw_only=True):
    """A connection by name."""

    name: Name


# opening --------------------------------------------------------------------------------------------------------------


class Opened(Message, frozen=True, kw_only=True):
    """An open connection: what the header shows.

    Attributes:
        connection: Its name.
        type: The database type.
        product: Of the server.
        server_version: Of the server; empty if it reports none.
        server_notes: Remarks of the driver on the server.
        plugin: The driver's id.
        plugin_version: Its version.
        sandbox: Level and what it lacks.
        warnings: About this connection.
        guards: In words: ``read-only``, ``asks before writes``, ``at most 1,000 rows``.
        hooks: The hooks that the driver implements: a view is offered only if its hook is there.
        capabilities: Those of the manifest: ``tenants``, ``raw-filter``, ``revisions``, ``time-range``, …
        production: It is marked as production.
        unlocked_until: Seconds since the epoch until which writes are allowed on it; None while it is locked.
        opened_at: Seconds since the epoch.
    """

    connection: str
    type: str
    product: str
    server_version: str
    server_notes: list[str]
    plugin: str
    plugin_version: str
    sandbox: str
    warnings: list[str]
    guards: list[str]
    hooks: list[str]
    capabilities: list[str]
    production: bool
    unlocked_until: float | None = None
    opened_at: float = 0.0


class Unlock(Request, frozen=True, kw_only=True):
    """Allow writes on a production connection for some minutes; the person typed its name. 0 locks it again."""

    connection: Name
    typed: Annotated[str, Meta(max_length=64)]
    minutes: Annotated[int, Meta(ge=0, le=60)] = 15


class OnConnection(Request, frozen=True, kw_only=True):
    """An open connection by name."""

    connection: Name


class Pinged(Message, frozen=True, kw_only=True):
    """The health of a connection: ok, or a reason."""

    ok: bool
    reason: str = ""
    code: str = ""


# objects --------------------------------------------------------------------------------------------------------------


class ObjectsAsked(Request, frozen=True, kw_only=True):
    """One level of the objects of a connection, in parts.

    Attributes:
        parent: The branch; None for the top.
        contains: Only names that contain this text.
        cursor: `Objects.next` of an earlier part.
    """

    connection: Name
    parent: Annotated[str, Meta(max_length=4_096)] | None = None
    contains: Annotated[str, Meta(max_length=1_000)] = ""
    cursor: Text | None = None
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1_000


class Objects(Message, frozen=True, kw_only=True):
    """The objects of one level, or a part of them."""

    objects: list[Object]
    notes: list[Note] = []
    next: str | None = None


class DescriptionAsked(Request, frozen=True, kw_only=True):
    """The columns of one object."""

    connection: Name
    object: ObjectName


class Described(Message, frozen=True, kw_only=True):
    """The description of one object; `structure` is the server's own definition as JSON text."""

    object: str
    columns: list[Column]
    structure: str
    notes: list[Note]
    time: TimeColumn | None = None


# the grid -------------------------------------------------------------------------------------------------------------


class FilterRow(Request, frozen=True, kw_only=True):
    """One row of the filter.

    Attributes:
        column: Its name; empty for a row of raw text, which is then `value`.
        op: An operator as `Column.operators` spells it.
        value: The value, for operators with one.
        values: The values of ``in``, ``not-in`` and ``between``.
        group: Rows of the same group must hold for the same element of an array.
        case: True compares letter case, False ignores it, None leaves it to the operator.
    """

    column: Annotated[str, Meta(max_length=4_096)] = ""
    op: Annotated[str, Meta(max_length=32)] = "="
    value: Text | None = None
    values: Annotated[list[Text], Meta(max_length=10_000)] = []
    group: Annotated[str, Meta(max_length=64)] | None = None
    case: bool | None = None


class TimeSpan(Request, frozen=True, kw_only=True):
    """A span of time: ISO 8601, or relative to now (``-1h``); `all_time` for all rows."""

    since: Annotated[str, Meta(max_length=64)] | None = None
    until: Annotated[str, Meta(max_length=64)] | None = None
    all_time: bool = False


class SortKey(Request, frozen=True, kw_only=True):
    """One key of a sort."""

    column: ColumnName
    descending: bool = False


class Selection(Request, frozen=True, kw_only=True):
    """The rows of an object that a grid shows.

    Attributes:
        filters: Rows of the filter.
        match: ``all`` or ``any``.
        span: None for the object's default window.
        tenant: None for an object without tenants.
        revision: `PageAnswer.revision` of an earlier page, to read the rows as they were then.
    """

    connection: Name
    object: ObjectName
    filters: Annotated[list[FilterRow], Meta(max_length=200)] = []
    match: Literal["all", "any"] = "all"
    span: TimeSpan | None = None
    tenant: Annotated[str, Meta(max_length=4_096)] | None = None
    revision: Annotated[str, Meta(max_length=4_096)] = ""


class PageAsked(Selection, frozen=True, kw_only=True):
    """One page of rows: by `cursor`, else by `offset`.

    Attributes:
        sort: The most significant key first.
        columns: The columns to return; None for all.
        total: Count all matching rows.
        residual: Let the driver filter and sort over so many rows itself what the server cannot; None for not.
    """

    sort: Annotated[list[SortKey], Meta(max_length=64)] = []
    offset: Annotated[int, Meta(ge=0, le=1 << 53)] = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100
    columns: Annotated[list[ColumnName], Meta(max_length=4_096)] | None = None
    total: bool = True
    cursor: Annotated[str, Meta(max_length=1 << 20)] | None = None
    residual: Annotated[int, Meta(ge=1, le=10_000)] | None = None


class Row(Message, frozen=True, kw_only=True):
    """One row: its cells in the order of the columns.

    Attributes:
        id: For people; empty if the row has none.
        key: What changes and ``cell`` send back; null if no change can name the row.
    """

    id: str
    key: str | None
    cells: list[Cell]


class PageAnswer(Message, frozen=True, kw_only=True):
    """One page of rows.

    Attributes:
        columns: Of the cells, in order.
        rows: The rows.
        notes: What was dropped, cut, partial or approximate; always in sight.
        total: All matching rows; null if not requested or unknown.
        total_exact: False when there are at least `total` rows.
        offset: Rows before this page.
        next: The cursor of the next page; null at the end, or if paging is by offset only.
        revision: The state of the data; empty if unknown.
        seconds: How long it took.
    """

    columns: list[Column]
    rows: list[Row]
    notes: list[Note]
    total: int | None
    total_exact: bool
    offset: int
    next: str | None
    revision: str
    seconds: float


class CountAsked(Selection, frozen=True, kw_only=True):
    """The number of rows, counted exactly."""


class Counted(Message, frozen=True, kw_only=True):
    """A number of rows as text, and what makes it approximate."""

    rows: str
    notes: list[Note]


class CellAsked(Request, frozen=True, kw_only=True):
    """The whole value of one cell."""

    connection: Name
    key: Key
    column: ColumnName
    revision: Annotated[str, Meta(max_length=4_096)] = ""


class CellAnswer(Message, frozen=True, kw_only=True):
    """The whole value."""

    cell: Cell


class ExplainAsked(Selection, frozen=True, kw_only=True):
    """What is sent for each row of the filter; no rows are fetched.

    Attributes:
        sort: Only for `Explained.command` and `Explained.python`.
    """

    sort: Annotated[list[SortKey], Meta(max_length=64)] = []
    residual: Annotated[int, Meta(ge=1, le=10_000)] | None = None


class Explained(Message, frozen=True, kw_only=True):
    """How each row of the filter is sent, and the same page as a command and as Python."""

    rows: list[Explanation]
    command: str
    python: str


# changes --------------------------------------------------------------------------------------------------------------


class ChangeEntry(Request, frozen=True, kw_only=True):
    """One change of the change list.

    Attributes:
        kind: What it does.
        object: Of an insert and a drop.
        key: Of an update and a delete: `Row.key`.
        values: By column: of an insert and an update.
        id: Of an insert: its primary key; null to let the server make one.
        replace: An insert may replace the row with that id.
        tenant: Of an insert.
    """

    kind: Literal["insert", "update", "delete", "drop"]
    object: Annotated[str, Meta(max_length=4_096)] = ""
    key: Annotated[str, Meta(max_length=65_536)] = ""
    values: Annotated[dict[str, Cell], Meta(max_length=4_096)] = {}
    id: Annotated[str, Meta(max_length=65_536)] | None = None
    replace: bool = False
    tenant: Annotated[str, Meta(max_length=4_096)] | None = None


class PlanAsked(Request, frozen=True, kw_only=True):
    """The exact requests of some changes; nothing is written. A drop stands alone, with the object's name typed."""

    connection: Name
    changes: Annotated[list[ChangeEntry], Meta(min_length=1, max_length=5_000)]
    undo: bool = True
    typed: Annotated[str, Meta(max_length=4_096)] = ""


class PlannedStep(Message, frozen=True, kw_only=True):
    """One request as it will be sent, the changes it carries out, and in words what it does if it is hard to read."""

    request: HttpRequest
    changes: list[int]
    statement: str = ""


class OutcomeAnswer(Message, frozen=True, kw_only=True):
    """What became of one change.

    Attributes:
        change: Its number in the list, from 0.
        status: ``unknown`` if the server may have carried it out without saying so.
        id: For people.
        reason: One sentence; empty when applied as asked.
        key: The row's new key, for a further change.
    """

    change: int
    status: Literal["applied", "skipped", "refused", "conflict", "failed", "unknown"]
    id: str = ""
    reason: str = ""
    key: str | None = None


class Planned(Message, frozen=True, kw_only=True):
    """A plan: the server keeps it for ten minutes under `plan`, and ``apply`` sends exactly this.

    Attributes:
        plan: Its id.
        steps: Exact requests, in the order they are sent.
        refusals: Changes that are not sent, and why.
        notes: Remarks to read before sending.
        undoable: An undo file will be offered.
    """

    plan: str
    steps: list[PlannedStep]
    refusals: list[OutcomeAnswer]
    notes: list[Note]
    undoable: bool


class ApplyAsked(Request, frozen=True, kw_only=True):
    """Send a plan, once."""

    connection: Name
    plan: Ticket


class Applied(Message, frozen=True, kw_only=True):
    """What became of each change; `undo` is the ticket of a change file (``/download/TICKET``), empty for none."""

    outcomes: list[OutcomeAnswer]
    undo: str = ""


class RowAsked(Request, frozen=True, kw_only=True):
    """One row as it is now, to show beside a conflicting change."""

    connection: Name
    key: Key


class RowAnswer(Message, frozen=True, kw_only=True):
    """The row, or null if it is gone."""

    columns: list[Column]
    row: Row | None


# the console ----------------------------------------------------------------------------------------------------------


class ParseAsked(Request, frozen=True, kw_only=True):
    """The requests in a console text; nothing is sent. `variables` fill ``${name}``."""

    connection: Name
    text: Annotated[str, Meta(max_length=4 << 20)]
    variables: Annotated[dict[str, Text], Meta(max_length=200)] = {}


class ParsedRequest(Message, frozen=True, kw_only=True):
    """One request of a console text: the line where it begins (from 1), and whether it may write."""

    request: HttpRequest
    writes: bool
    line: int
    curl: str


class Parsed(Message, frozen=True, kw_only=True):
    """The requests of a console text, in order."""

    requests: list[ParsedRequest]


class ExecuteAsked(ParseAsked, frozen=True, kw_only=True):
    """Send requests of a console text, in order, and stop after one that fails.

    Attributes:
        line: Only the request that holds this line, from 1; null for all.
        remember: Add the text to the history, without what looks like a secret.
    """

    line: int | None = None
    remember: bool = True


class ConsoleAnswer(Message, frozen=True, kw_only=True):
    """The answer to one request.

    Attributes:
        line: Where the request begins.
        kind: ``grid`` and ``table`` use `page`; ``json`` and ``text`` use `text`.
        status: HTTP status.
        request: As sent.
        page: Rows, if there are any.
        text: The body, JSON with its digits untouched.
        notes: Remarks.
        title: Of the rows, if one request has several answers.
        failed: Why it failed despite a success status; empty if it succeeded.
        seconds: How long it took.
    """

    line: int
    kind: Literal["grid", "table", "json", "text"]
    status: int
    request: HttpRequest
    page: PageAnswer | None
    text: str
    notes: list[Note]
    title: str
    failed: str
    seconds: float


class Executed(Message, frozen=True, kw_only=True):
    """The answers so far; `error` is what ended the run before its end."""

    answers: list[ConsoleAnswer]
    error: Failure | None = None


class HistoryEntry(Message, frozen=True, kw_only=True):
    """One text that was run; `at` is seconds since the epoch."""

    at: float
    text: str


class History(Message, frozen=True, kw_only=True):
    """What was run on a connection, the newest first."""

    entries: list[HistoryEntry]


# exports --------------------------------------------------------------------------------------------------------------


class ExportAsked(Selection, frozen=True, kw_only=True):
    """Export rows.

    Attributes:
        to: ``download``: answers with a ticket; the export begins when the browser fetches it. ``folder``: into the
            folder given at the start.
        file: The file's name, without a folder.
        format: The format.
        compress: Its compression.
        columns: Of a CSV or Parquet file; null for all.
        escape_formulas: Keep a spreadsheet from running texts of a CSV file.
        resume: Continue an interrupted export into the same file of the folder.
    """

    to: Literal["download", "folder"]
    file: Annotated[str, Meta(min_length=1, max_length=200)]
    format: Literal["documents", "rows", "csv", "bulk", "parquet"] = "documents"
    compress: Literal["gzip", "zstd"] | None = None
    columns: Annotated[list[ColumnName], Meta(max_length=4_096)] | None = None
    escape_formulas: bool = True
    resume: bool = False


class Export(Message, frozen=True, kw_only=True):
    """An export, as ``exports`` and the event ``export`` tell.

    Attributes:
        id: Its id.
        ticket: For ``/download/TICKET``, while `state` is ``waiting``.
        total: Rows to export; null if unknown.
        error: Why it failed.
        resumable: It can continue: the same request with `resume`.
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
    error: Failure | None = None
    resumable: bool = False


class ExportNamed(Request, frozen=True, kw_only=True):
    """An export by id."""

    id: Ticket


class Exports(Message, frozen=True, kw_only=True):
    """All exports since the start."""

    exports: list[Export]


# the marketplace ------------------------------------------------------------------------------------------------------


class DriverSummary(Message, frozen=True, kw_only=True):
    """A driver in a list.

    Attributes:
        state: ``available``, ``installed``, ``update``, ``disabled``, ``linked``, ``incompatible`` or ``unreadable``.
        reaches: What it can reach, in words.
        size: Bytes of its wheel, 0 if unknown.
        unavailable_here: It does not work on this kind of device (P6).
    """

    id: str
    label: str
    types: list[str]
    version: str
    state: str
    reaches: str
    summary: str
    registry: str
    size: int
    capabilities: list[str]
    unavailable_here: bool = False


class BrowseAsked(Request, frozen=True, kw_only=True):
    """A search: all words must occur."""

    words: Annotated[str, Meta(max_length=1_000)] = ""
    type: Annotated[str, Meta(max_length=64)] = ""
    capability: Annotated[str, Meta(max_length=64)] = ""
    compatible: bool = False


class Browsed(Message, frozen=True, kw_only=True):
    """Drivers, the best match first (500 at most), and the registries that could not be read, with the reason."""

    drivers: list[DriverSummary]
    more: int
    failures: dict[str, str]


class DriverNamed(Request, frozen=True, kw_only=True):
    """A driver by id; `version` only where a route takes one."""

    id: Annotated[str, Meta(min_length=1, max_length=200)]
    version: Annotated[str, Meta(max_length=64)] | None = None


class VersionSummary(Message, frozen=True, kw_only=True):
    """One version of a driver: `state` is ``offered``, ``yanked``, ``deprecated``, ``quarantined`` or empty."""

    version: str
    state: str
    reason: str
    uploaded: str
    size: int
    host_api: str
    installed: bool


class Report(Message, frozen=True, kw_only=True):
    """The conformance report, as its author published it."""

    summary: str
    sandbox: str
    engines: dict[str, dict[str, int]]
    skips: dict[str, int]
    deviations: list[str]
    failures: list[str]


class DriverPage(Message, frozen=True, kw_only=True):
    """Everything known about a driver.

    Attributes:
        permissions: In plain words.
        readme: Markdown, to be shown as text.
        changelog: Alike.
        skipped: Newer versions that do not fit, and why.
        kept: Versions to which one can roll back, the active one first.
        pin: The version it is pinned to; empty for none.
        used_by: Saved connections of its types.
    """

    driver: DriverSummary
    versions: list[VersionSummary]
    permissions: list[str]
    publisher: str
    readme: str
    changelog: str
    report: Report | None
    skipped: list[str]
    hooks: list[str]
    server_versions: list[str]
    licence: str
    docs: str
    kept: list[str]
    pin: str
    used_by: list[str]


class Installed(Message, frozen=True, kw_only=True):
    """What is active after an installation, an update or a roll-back."""

    id: str
    version: str


class UpdateOffer(Message, frozen=True, kw_only=True):
    """What an update changes; `permissions` and `publisher` are what it asks beyond the installed version."""

    id: str
    before: str
    version: str
    permissions: list[str]
    publisher: str
    state: str
    reason: str


class Updates(Message, frozen=True, kw_only=True):
    """Available, or carried out, updates."""

    updates: list[UpdateOffer]


class Verified(Message, frozen=True, kw_only=True):
    """The files of an installed driver that differ from what was installed; none if it is intact."""

    faults: list[str]


# questions, preferences -----------------------------------------------------------------------------------------------


class Question(Message, frozen=True, kw_only=True):
    """Something that needs a person's consent; every tab shows it until one answers.

    Attributes:
        id: For the answer.
        about: ``permissions``, ``publisher``, ``sandbox``, ``change``, ``reference`` or ``address``.
        text: The question.
        details: What a person should see first; lines.
    """

    id: str
    about: str
    text: str
    details: list[str]


class AnswerQuestion(Request, frozen=True, kw_only=True):
    """A person's answer."""

    id: Ticket
    yes: bool


class PreferencesAsked(Request, frozen=True, kw_only=True):
    """What the page remembers, by keys that begin with this text (``grid/shop/orders``)."""

    prefix: Annotated[str, Meta(max_length=8_192)] = ""


class Preferences(Message, frozen=True, kw_only=True):
    """What the page remembers on this machine: saved filters, columns of a grid; JSON texts by key, never secrets."""

    values: dict[str, str]


class SetPreference(Request, frozen=True, kw_only=True):
    """Remember a JSON text under a key; null forgets it."""

    key: Annotated[str, Meta(min_length=1, max_length=8_192)]
    value: Text | None


# the event stream -----------------------------------------------------------------------------------------------------


class ServerEvent(Message, frozen=True, kw_only=True):
    """One message of the event stream; only the member of its kind is set.

    Attributes:
        kind: ``event`` (of dragoman: `event` has ``name``, ``at`` and the fields of docs/reference/events.md, such as
            ``plugin.install_progressed`` with ``phase``, ``done``, ``total``); ``question`` and ``answered``;
            ``export``; ``opened`` (also after unlocking) and ``closed``; ``files`` (connections.toml or config.toml
            changed: load the lists again); ``lost`` (this tab was too slow: load the state again); ``bye`` (the server
            ends); ``hello`` first, and ``beat`` every 15 seconds.
    """

    kind: Literal[
        "hello", "beat", "event", "question", "answered", "export", "opened", "closed", "files", "lost", "bye"
    ]
    event: dict[str, Any] | None = None
    question: Question | None = None
    answered: str | None = None
    export: Export | None = None
    opened: Opened | None = None
    closed: str | None = None


ROUTES: dict[str, tuple[type[Request], type[Message]]] = {
    "enter": (Enter, Entered),  # without the header
    "leave": (Empty, Done),  # the secret ends
    "token": (Empty, NewToken),
    "state": (Empty, State),
    "connections": (Empty, ConnectionList),
    "connections/types": (Empty, TypeList),
    "connections/form": (FormAsked, Form),
    "connections/save": (SaveConnection, Done),
    "connections/test": (TestConnection, Tested),
    "connections/remove": (Named, Done),
    "open": (OnConnection, Opened),  # installs a missing driver; aborting the fetch cancels it
    "close": (OnConnection, Done),
    "ping": (OnConnection, Pinged),
    "unlock": (Unlock, Opened),
    "objects": (ObjectsAsked, Objects),
    "describe": (DescriptionAsked, Described),
    "page": (PageAsked, PageAnswer),
    "count": (CountAsked, Counted),
    "cell": (CellAsked, CellAnswer),
    "explain": (ExplainAsked, Explained),
    "changes/plan": (PlanAsked, Planned),
    "changes/apply": (ApplyAsked, Applied),
    "changes/row": (RowAsked, RowAnswer),
    "console/parse": (ParseAsked, Parsed),
    "console/execute": (ExecuteAsked, Executed),
    "console/history": (OnConnection, History),
    "exports": (Empty, Exports),
    "exports/start": (ExportAsked, Export),
    "exports/cancel": (ExportNamed, Done),
    "plugins/browse": (BrowseAsked, Browsed),
    "plugins/show": (DriverNamed, DriverPage),
    "plugins/install": (DriverNamed, Installed),  # takes a version; progress by events
    "plugins/updates": (Empty, Updates),  # what could be updated
    "plugins/update": (DriverNamed, Updates),
    "plugins/rollback": (DriverNamed, Installed),  # takes a version
    "plugins/pin": (DriverNamed, Done),  # version null unpins
    "plugins/enable": (DriverNamed, Done),
    "plugins/disable": (DriverNamed, Done),
    "plugins/remove": (DriverNamed, Done),
    "plugins/verify": (DriverNamed, Verified),
    "plugins/repair": (DriverNamed, Installed),
    "questions/answer": (AnswerQuestion, Done),
    "preferences": (PreferencesAsked, Preferences),
    "preferences/set": (SetPreference, Done),
}
"""What each ``POST /api/NAME`` takes and answers. On a connection that is not open, a route answers 422 with the code
``connection-closed``; its remedy is ``open``."""
