"""An operation as automations see it before it happens."""

from __future__ import annotations

import msgspec

from .changes import Change, HttpRequest


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
        changes: The changes behind the requests, of `plan_change` and `apply_change`.
        rows: The maximum number of rows requested, of `fetch_page`.
        unattended: No person is present to answer questions.
    """

    hook: str
    connection: ConnectionInfo | None = None
    object: str | None = None
    writes: bool = False
    requests: tuple[HttpRequest, ...] = ()
    statements: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    rows: int | None = None
    unattended: bool = True
