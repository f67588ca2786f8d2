"""Messages about saved and open connections, and their objects."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from .base import Name, ObjectName, Request, RouteAnswer, Text


class ConnectionSummary(RouteAnswer, frozen=True, kw_only=True):
    """A saved connection in the list.

    Attributes:
        acts: What dragoman reads or runs to open it, in words.
        sample: What there is to see, if this workbench serves it as a sample; empty otherwise.
    """

    name: str
    type: str
    address: str
    acts: list[str]
    open: bool
    production: bool
    sample: str


class HiddenConnection(RouteAnswer, frozen=True, kw_only=True):
    """A saved connection that cannot be used, and why."""

    name: str
    reason: str


class ConnectionList(RouteAnswer, frozen=True, kw_only=True):
    """The saved connections.

    Attributes:
        warnings: How others can change the file.
        samples_offered: The samples are installed, and not yet added.
        samples_ended: They were added, and their servers have ended since.
    """

    connections: list[ConnectionSummary]
    hidden: list[HiddenConnection]
    warnings: list[str]
    samples_offered: bool
    samples_ended: bool


class TypeOffer(RouteAnswer, frozen=True, kw_only=True):
    """A database type of a registry, or of an installed driver."""

    type: str
    driver: DriverSummary


class TypeList(RouteAnswer, frozen=True, kw_only=True):
    """The types of all registries."""

    types: list[TypeOffer]


class FormAsked(Request, frozen=True, kw_only=True):
    """The form of a new connection by `type`, or of a saved one by `name`. Nothing is installed."""

    type: Annotated[str, Meta(max_length=64)] = ""
    name: Annotated[str, Meta(max_length=64)] = ""


class FieldChoice(RouteAnswer, frozen=True, kw_only=True):
    """One value of a choice and its label."""

    value: str
    label: str


class InputField(RouteAnswer, frozen=True, kw_only=True):
    """One field of the form.

    Attributes:
        value: The saved value, else the default; always null for a secret and a file.
        visible_if: Names of fields, and the values (as texts: ``true``, ``basic``) that show this one; all must hold.
        always: It is shown whatever `visible_if` says.
        required: It must not be empty while it is visible.
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


class KnownReference(RouteAnswer, frozen=True, kw_only=True):
    """A reference that a saved connection holds: the page sends `id` and shows `act`."""

    id: str
    act: str


class Form(RouteAnswer, frozen=True, kw_only=True):
    """The form of one connection.

    Attributes:
        revision: Of the saved connection that is edited, which a save sends back; empty for a new one.
        installed: False if the driver should be offered first (P2).
    """

    type: str
    revision: str = ""
    name: str
    driver: DriverSummary
    installed: bool
    fields: list[InputField]


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
        revision: Of the form that was filled in; a connection that was changed since then is not replaced.
    """

    name: Name
    type: Name
    fields: Annotated[dict[str, FieldEntry], Meta(max_length=200)]
    replace: Annotated[str, Meta(max_length=64)] = ""
    accept_address: bool = False
    revision: Annotated[str, Meta(max_length=64)] = ""


class TestConnection(SaveConnection, frozen=True, kw_only=True):
    """Connect with these entries, without saving them."""


class Tested(RouteAnswer, frozen=True, kw_only=True):
    """The connection works."""

    product: str
    version: str
    sandbox: str
    warnings: list[str]


class Named(Request, frozen=True, kw_only=True):
    """A connection by name."""

    name: Name


class OpenConnection(RouteAnswer, frozen=True, kw_only=True):
    """An open connection: what the header shows.

    Attributes:
        server_notes: Remarks of the driver on the server.
        sandbox: Level and what it lacks.
        guards: In words: ``read-only``, ``asks before writes``, ``at most 1,000 rows``.
        hooks: The hooks that the driver implements: a view is offered only if its hook is there.
        capabilities: Those of the manifest: ``tenants``, ``raw-filter``, ``revisions``, ``time-range``, …
        console_example: The request of the manifest with which a console begins; empty for none.
        unlocked_until: Seconds since the epoch until which writes are allowed on it; None while it is locked.
        failing: Why the server did not answer the last check of its health; empty if it did.
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
    console_example: str
    production: bool
    unlocked_until: float | None = None
    opened_at: float = 0.0
    failing: str = ""


class Unlock(Request, frozen=True, kw_only=True):
    """Allow writes on a production connection for a few minutes; the person typed its name. 0 locks it again."""

    connection: Name
    typed: Annotated[str, Meta(max_length=64)]
    minutes: Annotated[int, Meta(ge=0, le=60)] = 15


class OnConnection(Request, frozen=True, kw_only=True):
    """An open connection by name."""

    connection: Name


class ObjectsAsked(Request, frozen=True, kw_only=True):
    """One level of the objects of a connection, in parts.

    Attributes:
        cursor: `ObjectList.next` of an earlier part.
    """

    connection: Name
    parent: Annotated[str, Meta(max_length=4_096)] | None = None
    contains: Annotated[str, Meta(max_length=1_000)] = ""
    cursor: Text | None = None
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1_000


class DescriptionAsked(Request, frozen=True, kw_only=True):
    """The columns of one object."""

    connection: Name
    object: ObjectName


class DriverSummary(RouteAnswer, frozen=True, kw_only=True):
    """A driver in a list.

    Attributes:
        state: ``available``, ``installed``, ``update``, ``disabled``, ``linked``, ``incompatible`` or ``unreadable``.
        reaches: What it can reach, in words.
        size: Bytes of its wheel, 0 if unknown.
        unavailable_here: Why it is not available on the device that asks (P6); empty if it is.
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
    unavailable_here: str = ""


class BrowseAsked(Request, frozen=True, kw_only=True):
    """A search: all words must occur."""

    words: Annotated[str, Meta(max_length=1_000)] = ""
    type: Annotated[str, Meta(max_length=64)] = ""
    capability: Annotated[str, Meta(max_length=64)] = ""
    compatible: bool = False


class Browsed(RouteAnswer, frozen=True, kw_only=True):
    """Drivers, the best match first (500 at most), and the registries that could not be read, with the reason."""

    drivers: list[DriverSummary]
    omitted: int
    failures: dict[str, str]


class DriverNamed(Request, frozen=True, kw_only=True):
    """A driver by id; `version` only where a route takes one."""

    id: Annotated[str, Meta(min_length=1, max_length=200)]
    version: Annotated[str, Meta(max_length=64)] | None = None


class VersionSummary(RouteAnswer, frozen=True, kw_only=True):
    """One version of a driver: `state` is ``offered``, ``yanked``, ``deprecated``, ``quarantined`` or empty."""

    version: str
    state: str
    reason: str
    uploaded: str
    size: int
    host_api: str
    installed: bool


class Report(RouteAnswer, frozen=True, kw_only=True):
    """The conformance report, as its author published it."""

    summary: str = ""
    sandbox: str
    engines: dict[str, dict[str, int]]
    deviations: list[str]
    failures: list[str]


class DriverPage(RouteAnswer, frozen=True, kw_only=True):
    """Everything known about a driver.

    Attributes:
        skipped: Newer versions that do not fit, and why.
        rollback_versions: Versions to which one can roll back, the active one first.
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
    rollback_versions: list[str]
    pin: str
    used_by: list[str]


class Installed(RouteAnswer, frozen=True, kw_only=True):
    """What is active after an installation, an update or a roll-back."""

    id: str
    version: str


class UpdateOffer(RouteAnswer, frozen=True, kw_only=True):
    """What an update changes; `permissions` and `publisher` are what it asks for beyond the installed version.

    Attributes:
        unavailable_here: As of `DriverSummary`.
    """

    id: str
    before: str
    version: str
    permissions: list[str]
    publisher: str
    state: str
    reason: str
    unavailable_here: str = ""


class Updates(RouteAnswer, frozen=True, kw_only=True):
    """Available, or carried out, updates."""

    updates: list[UpdateOffer]


class Verification(RouteAnswer, frozen=True, kw_only=True):
    """The files of an installed driver that differ from what was installed; none if it is intact."""

    faults: list[str]
