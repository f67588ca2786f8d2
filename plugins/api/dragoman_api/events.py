"""What automations see: an operation before it happens, and all events, typed, with dotted names in the past tense."""

from __future__ import annotations

import json
import time
from typing import ClassVar

import msgspec

from .changes import Change, HttpRequest, InsertBatch
from .masking import escaped


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="name"):
    """Something that happened.

    Attributes:
        name: The dotted name, ``connection.opened``; a class attribute of each kind.
        at: Seconds since the epoch.
    """

    name: ClassVar[str] = ""
    at: float = msgspec.field(default_factory=time.time)

    def to_json(self) -> str:
        """Return the event as one line of JSON, name first, with terminal control characters escaped."""
        try:
            text = msgspec.json.encode(self).decode()
        except UnicodeEncodeError:  # lone surrogates, as in a file name that is not UTF-8
            text = json.dumps(msgspec.to_builtins(self))
        return escaped(text)


def _named(kind: type[Event]) -> type[Event]:
    kind.name = str(kind.__struct_config__.tag)
    return kind


class PluginInstallStarted(Event, frozen=True, kw_only=True, tag="plugin.install_started"):
    """An installation began."""

    plugin: str
    version: str
    connection: str | None = None


class PluginInstallProgressed(Event, frozen=True, kw_only=True, tag="plugin.install_progressed"):
    """An installation reached a phase, or fetched more bytes (`done` of `total`)."""

    plugin: str
    version: str
    phase: str
    done: int = 0
    total: int = 0


class PluginInstalled(Event, frozen=True, kw_only=True, tag="plugin.installed"):
    """A driver is installed and active."""

    plugin: str
    version: str
    sha256: str
    seconds: float


class PluginInstallFailed(Event, frozen=True, kw_only=True, tag="plugin.install_failed"):
    """An installation failed, or was cancelled (code ``cancelled``); what was active before still is."""

    plugin: str
    version: str
    code: str
    reason: str


class PluginRemoved(Event, frozen=True, kw_only=True, tag="plugin.removed"):
    """A driver is no longer installed."""

    plugin: str
    version: str


class PluginRolledBack(Event, frozen=True, kw_only=True, tag="plugin.rolled_back"):
    """An earlier version of a driver is active again."""

    plugin: str
    version: str


class PluginCollected(Event, frozen=True, kw_only=True, tag="plugin.collected"):
    """Unused files were removed; plugin and version are empty if no installation named the files."""

    plugin: str
    version: str
    bytes: int


class PluginEnabled(Event, frozen=True, kw_only=True, tag="plugin.enabled"):
    """Connections may use a driver again."""

    plugin: str


class PluginDisabled(Event, frozen=True, kw_only=True, tag="plugin.disabled"):
    """A driver remains installed but is not used."""

    plugin: str


class PluginPinned(Event, frozen=True, kw_only=True, tag="plugin.pinned"):
    """A driver was pinned to a version, or unpinned if it is None."""

    plugin: str
    version: str | None


class PluginCrashed(Event, frozen=True, kw_only=True, tag="plugin.crashed"):
    """A driver's process ended by itself, or the host ended it for a violation."""

    plugin: str
    connection: str
    reason: str


class PluginRestarted(Event, frozen=True, kw_only=True, tag="plugin.restarted"):
    """A driver's process was started again after a crash."""

    plugin: str
    connection: str
    attempt: int


class RegistryFailed(Event, frozen=True, kw_only=True, tag="registry.failed"):
    """A registry could not be read; the offers of the others are complete."""

    registry: str
    code: str
    reason: str


class RegistryRecordHidden(Event, frozen=True, kw_only=True, tag="registry.record_hidden"):
    """A record of a registry could not be read and was left out; the other records are complete."""

    registry: str
    record: str
    reason: str


class RegistryUploadReceived(Event, frozen=True, kw_only=True, tag="registry.upload_received"):
    """An uploaded wheel waits in the inbox; `new` is False if the same bytes were there already."""

    registry: str
    file: str
    sha256: str
    publisher: str
    new: bool


class RegistryUploadRefused(Event, frozen=True, kw_only=True, tag="registry.upload_refused"):
    """An upload was refused and discarded."""

    registry: str
    codes: list[str]
    reason: str


class ConnectionOpened(Event, frozen=True, kw_only=True, tag="connection.opened"):
    """A connection is open; `sandbox` is the level of its driver."""

    connection: str
    plugin: str
    version: str
    product: str
    server_version: str
    sandbox: str


class ConnectionFailed(Event, frozen=True, kw_only=True, tag="connection.failed"):
    """A connection could not be opened."""

    connection: str
    code: str
    reason: str


class ConnectionHealthChanged(Event, frozen=True, kw_only=True, tag="connection.health_changed"):
    """A health check found a new state: ``ok``, or ``failed`` with the error's code (W35)."""

    connection: str
    state: str
    reason: str = ""
    code: str = ""


class ConnectionClosed(Event, frozen=True, kw_only=True, tag="connection.closed"):
    """A connection ended."""

    connection: str


class ConnectionWarned(Event, frozen=True, kw_only=True, tag="connection.warned"):
    """A warning about an open connection, such as unchecked TLS or a weaker sandbox."""

    connection: str
    code: str
    reason: str


class ConnectionDenied(Event, frozen=True, kw_only=True, tag="connection.denied"):
    """The sandbox kept a driver from a host that its connection does not name.

    If `port` is None, the driver only looked up the name. If `address` is set, the host is allowed, but its name
    resolved to that address, which the driver may not reach: a cloud's credential endpoint, or an address nearer (on a
    private network or this machine) than the name may lead. Emitted once for each host, port and address, at most 100
    times.
    """

    connection: str
    host: str
    port: int | None = None
    address: str = ""


class PageFetched(Event, frozen=True, kw_only=True, tag="page.fetched"):
    """A page arrived; `seconds` includes the server's time."""

    connection: str
    object: str
    rows: int
    seconds: float
    notes: list[str] = []


class FilterRejected(Event, frozen=True, kw_only=True, tag="filter.rejected"):
    """A filter row cannot run; nothing was sent."""

    connection: str
    object: str
    column: str
    operator: str
    reason: str


class RowInserted(Event, frozen=True, kw_only=True, tag="row.inserted"):
    """A new row was written."""

    connection: str
    object: str
    id: str


class RowsWritten(Event, frozen=True, kw_only=True, tag="rows.written"):
    """One call of a load wrote so many rows; those that were not written have events of their own."""

    connection: str
    object: str
    rows: int


class RowUpdated(Event, frozen=True, kw_only=True, tag="row.updated"):
    """A row was changed."""

    connection: str
    object: str
    id: str


class RowDeleted(Event, frozen=True, kw_only=True, tag="row.deleted"):
    """A row was deleted."""

    connection: str
    object: str
    id: str


class RowSkipped(Event, frozen=True, kw_only=True, tag="row.skipped"):
    """A change was not applied, or it is unknown whether it was; `status` is that of its outcome."""

    connection: str
    object: str
    id: str
    status: str
    reason: str


class ObjectDropped(Event, frozen=True, kw_only=True, tag="object.dropped"):
    """A whole object was deleted."""

    connection: str
    object: str


class ConsoleExecuted(Event, frozen=True, kw_only=True, tag="console.executed"):
    """A console request was answered."""

    connection: str
    method: str
    path: str
    status: int
    seconds: float


class ExportStarted(Event, frozen=True, kw_only=True, tag="export.started"):
    """An export began with `resumed` rows on disk; `replaced` rows of an unfinished one are discarded."""

    connection: str
    object: str
    target: str
    resumed: int = 0
    replaced: int | None = None


class ExportProgressed(Event, frozen=True, kw_only=True, tag="export.progressed"):
    """An export progressed: rows and bytes so far, into the file or stream that `export.started` names."""

    connection: str
    object: str
    rows: int
    bytes: int
    total: int | None = None
    target: str = ""


class ExportFinished(Event, frozen=True, kw_only=True, tag="export.finished"):
    """An export is complete under its final name."""

    connection: str
    object: str
    target: str
    rows: int
    bytes: int
    sha256: str
    seconds: float


class ExportFailed(Event, frozen=True, kw_only=True, tag="export.failed"):
    """An export ended early; no file exists under the final name."""

    connection: str
    object: str
    target: str
    code: str
    reason: str


class AgentAnswered(Event, frozen=True, kw_only=True, tag="agent.answered"):
    """An agent's call of a tool was answered, or refused with the error `code`.

    The client has chosen its name itself. `rows` and `bytes` are those of the answer; an
    export's rows are those of its file.
    """

    client: str
    tool: str
    connection: str | None = None
    object: str | None = None
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    code: str = ""


class CallRefused(Event, frozen=True, kw_only=True, tag="call.refused"):
    """An automation vetoed a call."""

    hook: str
    automation: str
    reason: str
    connection: str | None = None


class CallFailed(Event, frozen=True, kw_only=True, tag="call.failed"):
    """A call to a driver ended with an error's `code`; the host may repeat the call.

    An automation's veto is `call.refused`, and a failed export `export.failed`.
    """

    hook: str
    code: str
    seconds: float
    connection: str | None = None
    object: str | None = None


class AutomationFailed(Event, frozen=True, kw_only=True, tag="automation.failed"):
    """An automation, or a function that listens to events, raised an exception other than a veto."""

    automation: str
    hook: str
    reason: str


class EventsDropped(Event, frozen=True, kw_only=True, tag="events.dropped"):
    """A subscriber was too slow and lost events."""

    count: int


ALL: tuple[type[Event], ...] = tuple(_named(kind) for kind in Event.__subclasses__())
"""Every kind of event."""


class ConnectionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The connection that a call uses, without credentials."""

    name: str
    type: str
    host: str
    port: int


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One operation that is about to happen.

    Attributes:
        hook: The driver's hook (``fetch_page``), or ``install_plugin``, ``update_plugin``, ``remove_plugin``.
            ``update_plugin`` also covers choosing another version and switching a driver on or off.
        connection: None for a call that belongs to no connection.
        object: The object, or the plugin's id; None if the call concerns all of them.
        writes: The call may change something on the server or among the installed drivers.
        requests: The exact requests, of `apply_change` and `execute_console`.
        statements: What each request does in the server's language, in the same order, of `apply_change`; empty texts
            for readable requests. A driver wrote them: only `requests` says what is sent.
        changes: The changes behind the requests, of `plan_change` and `apply_change`; rows of a load are a sequence of
            inserts, too.
        rows: The maximum number of rows requested, of `fetch_page`.
        unattended: No person is present to answer questions.
        surface: What the caller uses: ``cli`` (the default of a script, too), ``desktop`` (the workbench), ``agent``.
        client: The program of an agent, in its own words; empty for other callers.
    """

    hook: str
    connection: ConnectionInfo | None = None
    object: str | None = None
    writes: bool = False
    requests: tuple[HttpRequest, ...] = ()
    statements: tuple[str, ...] = ()
    changes: tuple[Change, ...] | InsertBatch = ()
    rows: int | None = None
    unattended: bool = True
    surface: str = ""
    client: str = ""
