"""What an automation sees of an operation before it happens."""

from __future__ import annotations

import msgspec

from .changes import Change, HttpRequest


class ConnectionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The connection a call goes to; holds no credentials."""

    name: str
    type: str
    host: str
    port: int


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One operation that is about to happen.

    Attributes:
        hook: The driver's hook (``fetch_page``), or ``install_plugin``, ``update_plugin``, ``remove_plugin``.
            An update is also what chooses another version, or switches a driver on or off.
        connection: None for a call that belongs to no connection.
        object: The object, or the plugin's id; None where it is about all of them.
        writes: It may change something: on the server, or in what is installed.
        requests: The exact requests, of `apply_change` and `execute_console`.
        changes: What the requests are for, of `plan_change` and `apply_change`.
        rows: How many are asked for at most, of `fetch_page`.
        unattended: Nobody is there to be asked.
    """

    hook: str
    connection: ConnectionInfo | None = None
    object: str | None = None
    writes: bool = False
    requests: tuple[HttpRequest, ...] = ()
    changes: tuple[Change, ...] = ()
    rows: int | None = None
    unattended: bool = True
