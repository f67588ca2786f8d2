"""The state, the event stream, what the page remembers, and the table of all routes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from dragoman_api.columns import Description, ObjectList
from dragoman_api.connections import ServerStatus

from . import connections, imports, rows, work
from .base import Done, Empty, Enter, Entered, NewToken, Request, RouteAnswer, Text, Ticket


class OpenQuestion(RouteAnswer, frozen=True, kw_only=True):
    """Something that needs a person's consent; every tab shows it until one answers.

    Attributes:
        subject: ``permissions``, ``publisher``, ``sandbox``, ``change``, ``reference`` or ``address``.
        details: What a person should see first; lines.
    """

    id: str
    subject: str
    text: str
    details: list[str]


class AnswerQuestion(Request, frozen=True, kw_only=True):
    """A person's answer."""

    id: Ticket
    yes: bool


class PreferencesAsked(Request, frozen=True, kw_only=True):
    """What the page remembers, by keys that begin with this text (``grid/shop/orders``)."""

    prefix: Annotated[str, Meta(max_length=8_192)] = ""


class Preferences(RouteAnswer, frozen=True, kw_only=True):
    """What the page remembers on this machine: drafts, columns of a grid; JSON texts by key, never secrets."""

    values: dict[str, str]


class SetPreference(Request, frozen=True, kw_only=True):
    """Remember a JSON text under a key; null forgets it."""

    key: Annotated[str, Meta(min_length=1, max_length=8_192)]
    value: Text | None


class State(RouteAnswer, frozen=True, kw_only=True):
    """What a tab shows first.

    Attributes:
        sandbox: The level that drivers reach here: ``full``, ``partial: no Landlock …``, ``off``.
        export_folder: Where exports may be written, as given at the start; empty if only downloads are possible.
        upload_bytes: The maximum size of a file to import.
    """

    version: str
    sandbox: str
    connection: str
    open: list[connections.OpenConnection]
    questions: list[OpenQuestion]
    exports: list[work.ExportJob]
    imports: list[imports.ImportJob]
    export_folder: str
    upload_bytes: int
    warnings: list[str]


class ServerEvent(RouteAnswer, frozen=True, kw_only=True):
    """One message of the event stream; only the member of its kind is set.

    Attributes:
        kind: ``event`` (of dragoman: `event` has ``name``, ``at`` and the fields of docs/reference/events.md, such as
            ``plugin.install_progressed`` with ``phase``, ``done``, ``total``); ``question`` and ``answered``;
            ``export`` and ``import``; ``opened`` (also after unlocking) and ``closed``; ``files`` (connections.toml or
            config.toml changed: load the lists again); ``lost`` (this tab was too slow: load the state again); ``bye``
            (the server ends); ``hello`` first, and ``beat`` every 15 seconds.
    """

    kind: Literal[
        "hello", "beat", "event", "question", "answered", "export", "import", "opened", "closed", "files", "lost", "bye"
    ]
    event: dict[str, Any] | None = None
    question: OpenQuestion | None = None
    answered: str | None = None
    export: work.ExportJob | None = None
    import_job: imports.ImportJob | None = None
    opened: connections.OpenConnection | None = None
    closed: str | None = None


ROUTES: dict[str, tuple[type[Request], type[Struct]]] = {
    "enter": (Enter, Entered),  # without the header
    "leave": (Empty, Done),  # the secret ends
    "token": (Empty, NewToken),
    "state": (Empty, State),
    "connections": (Empty, connections.ConnectionList),
    "connections/types": (Empty, connections.TypeList),
    "connections/form": (connections.FormAsked, connections.Form),
    "connections/save": (connections.SaveConnection, Done),
    "connections/test": (connections.TestConnection, connections.Tested),
    "connections/remove": (connections.Named, Done),
    "connections/add_samples": (Empty, Done),  # served by a process that ends with the workbench
    "connections/remove_samples": (Empty, Done),
    "open": (connections.OnConnection, connections.OpenConnection),  # may install a driver; an aborted fetch cancels
    "close": (connections.OnConnection, Done),
    "unlock": (connections.Unlock, connections.OpenConnection),
    "objects": (connections.ObjectsAsked, ObjectList),
    "status": (connections.OnConnection, ServerStatus),
    "describe": (connections.DescriptionAsked, Description),
    "page": (rows.PageAsked, rows.PageAnswer),
    "similar": (rows.SimilarAsked, rows.PageAnswer),
    "count": (rows.RowsAsked, rows.Counted),
    "cell": (rows.CellAsked, rows.CellAnswer),
    "summarize": (rows.SummaryAsked, rows.Summarized),  # aborting the fetch ends it
    "explain": (rows.RowsAsked, rows.Explained),
    "queries": (connections.OnConnection, rows.QueryList),
    "queries/save": (rows.SaveQuery, Done),
    "queries/remove": (rows.QueryNamed, Done),
    "changes/plan": (rows.PlanAsked, rows.Planned),
    "changes/apply": (rows.ApplyAsked, rows.Applied),
    "changes/row": (rows.RowAsked, rows.RowAnswer),
    "console/parse": (work.ParseAsked, work.Parsed),
    "console/execute": (work.ExecuteAsked, work.Executed),
    "console/complete": (work.CompleteAsked, work.Completed),
    "console/history": (connections.OnConnection, work.History),
    "exports": (Empty, work.Exports),
    "exports/start": (work.ExportAsked, work.ExportJob),
    "exports/cancel": (work.ExportNamed, Done),
    "exports/resume": (work.ExportNamed, work.ExportJob),
    "imports": (Empty, imports.Imports),
    "imports/preview": (imports.ImportPreviewAsked, imports.ImportPreviewed),
    "imports/start": (imports.ImportAsked, imports.ImportJob),
    "imports/cancel": (imports.ImportNamed, Done),
    "imports/resume": (imports.ImportNamed, imports.ImportJob),
    "imports/plan_copy": (imports.CopyPlanAsked, imports.CopyPlanned),
    "imports/copy": (imports.CopyAsked, imports.ImportJob),
    "imports/undo": (imports.ImportNamed, imports.ImportJob),  # an import of its own, which takes the other one back
    "imports/rejected": (imports.ImportNamed, imports.RejectedRows),
    "imports/download": (imports.ImportFileAsked, imports.ImportTicket),
    "imports/discard": (imports.UploadNamed, Done),  # the file is deleted, unless an import reads it
    "plugins/browse": (connections.BrowseAsked, connections.Browsed),
    "plugins/show": (connections.DriverNamed, connections.DriverPage),
    "plugins/install": (connections.DriverNamed, connections.Installed),  # takes a version; progress by events
    "plugins/updates": (Empty, connections.Updates),  # what could be updated
    "plugins/update": (connections.DriverNamed, connections.Updates),
    "plugins/rollback": (connections.DriverNamed, connections.Installed),  # takes a version
    "plugins/pin": (connections.DriverNamed, Done),  # version null unpins
    "plugins/enable": (connections.DriverNamed, Done),
    "plugins/disable": (connections.DriverNamed, Done),
    "plugins/remove": (connections.DriverNamed, Done),
    "plugins/verify": (connections.DriverNamed, connections.Verification),
    "plugins/repair": (connections.DriverNamed, connections.Installed),
    "questions/answer": (AnswerQuestion, Done),
    "preferences": (PreferencesAsked, Preferences),
    "preferences/set": (SetPreference, Done),
}
"""What each ``POST /api/NAME`` takes and answers. On a connection that is not open, a route answers 422 with the code
``connection-closed``; its remedy is ``open``."""
