"""The state, the event stream, what the page remembers, and the table of all routes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from dragoman_api.columns import Description, ObjectList
from dragoman_api.connections import Health

from .base import Done, Empty, Enter, Entered, NewToken, Request, RouteAnswer, Text, Ticket
from .connections import (
    BrowseAsked,
    Browsed,
    ConnectionList,
    DescriptionAsked,
    DriverNamed,
    DriverPage,
    Form,
    FormAsked,
    Installed,
    Named,
    ObjectsAsked,
    OnConnection,
    OpenConnection,
    SaveConnection,
    TestConnection,
    Tested,
    TypeList,
    Unlock,
    Updates,
    Verification,
)
from .rows import (
    Applied,
    ApplyAsked,
    CellAnswer,
    CellAsked,
    Counted,
    Explained,
    PageAnswer,
    PageAsked,
    PlanAsked,
    Planned,
    QueryList,
    QueryNamed,
    RowAnswer,
    RowAsked,
    RowsAsked,
    SaveQuery,
    Summarized,
    SummaryAsked,
)
from .work import (
    CompleteAsked,
    Completed,
    ExecuteAsked,
    Executed,
    ExportAsked,
    ExportJob,
    ExportNamed,
    Exports,
    History,
    ParseAsked,
    Parsed,
)


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
    """

    version: str
    sandbox: str
    connection: str
    open: list[OpenConnection]
    questions: list[OpenQuestion]
    exports: list[ExportJob]
    export_folder: str
    warnings: list[str]


class ServerEvent(RouteAnswer, frozen=True, kw_only=True):
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
    question: OpenQuestion | None = None
    answered: str | None = None
    export: ExportJob | None = None
    opened: OpenConnection | None = None
    closed: str | None = None


ROUTES: dict[str, tuple[type[Request], type[Struct]]] = {
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
    "open": (OnConnection, OpenConnection),  # installs a missing driver; aborting the fetch cancels it
    "close": (OnConnection, Done),
    "ping": (OnConnection, Health),
    "unlock": (Unlock, OpenConnection),
    "objects": (ObjectsAsked, ObjectList),
    "describe": (DescriptionAsked, Description),
    "page": (PageAsked, PageAnswer),
    "count": (RowsAsked, Counted),
    "cell": (CellAsked, CellAnswer),
    "summarize": (SummaryAsked, Summarized),  # aborting the fetch ends it
    "explain": (RowsAsked, Explained),
    "queries": (OnConnection, QueryList),
    "queries/save": (SaveQuery, Done),
    "queries/remove": (QueryNamed, Done),
    "changes/plan": (PlanAsked, Planned),
    "changes/apply": (ApplyAsked, Applied),
    "changes/row": (RowAsked, RowAnswer),
    "console/parse": (ParseAsked, Parsed),
    "console/execute": (ExecuteAsked, Executed),
    "console/complete": (CompleteAsked, Completed),
    "console/history": (OnConnection, History),
    "exports": (Empty, Exports),
    "exports/start": (ExportAsked, ExportJob),
    "exports/cancel": (ExportNamed, Done),
    "exports/resume": (ExportNamed, ExportJob),
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
    "plugins/verify": (DriverNamed, Verification),
    "plugins/repair": (DriverNamed, Installed),
    "questions/answer": (AnswerQuestion, Done),
    "preferences": (PreferencesAsked, Preferences),
    "preferences/set": (SetPreference, Done),
}
"""What each ``POST /api/NAME`` takes and answers. On a connection that is not open, a route answers 422 with the code
``connection-closed``; its remedy is ``open``."""
