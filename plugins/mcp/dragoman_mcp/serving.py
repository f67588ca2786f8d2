"""The server as a whole: one runtime, the rules of its connections, and the transport."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from dragoman import Runtime
from dragoman_api.errors import ConfigurationError

from .changes import Changer
from .open_sessions import OpenSessions
from .protocol import AgentServer
from .rules import rules_of
from .tools import Reader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from dragoman_api import Event

SURFACE = "agent"
"""What automations see as `Call.surface`."""


@asynccontextmanager
async def agent_server(
    home: Path | None = None,
    *,
    connections: Sequence[str] = (),
    allow: str | None = None,
    export_to: Path | None = None,
    use: Sequence[object] = (),
    sinks: Sequence[Callable[[Event], None]] = (),
    **options: Any,
) -> AsyncIterator[AgentServer]:
    """Prepare a server for agents; no driver starts before a tool needs one.

    Args:
        home: Root of everything on disk; None for DRAGOMAN_HOME, else the platform's places.
        connections: The connections that agents may use; empty for those that `config.toml` names.
        allow: What agents may do at most: ``read``, ``plan`` or ``write``; None for what `config.toml` says.
        export_to: The folder for exports; None for no exports.
        use: Automations.
        sinks: Functions that receive every event.
        options: Passed on to Runtime.

    Yields:
        The server, without a transport.

    Raises:
        ConfigurationError: No connection is named, one does not exist, or `config.toml` is wrong.
    """
    if export_to is not None and not await anyio.Path(export_to).is_dir():
        raise ConfigurationError(f"{export_to} is not a folder", hint=f"mkdir -p {export_to}")
    runtime = Runtime(home, use=use, surface=SURFACE, spare=False, **options)
    for sink in sinks:
        runtime.add_sink(sink)
    rules = await anyio.to_thread.run_sync(lambda: rules_of(runtime, names=connections, power=allow))
    async with runtime, anyio.create_task_group() as tasks:
        sessions = OpenSessions(runtime, tasks)
        try:
            reader = Reader(runtime, sessions, rules)
            yield AgentServer(runtime, reader, Changer(sessions, reader, folder=export_to))
        finally:
            sessions.close()


async def serve_stdio(home: Path | None = None, **options: Any) -> None:
    """Serve one agent on standard input and output until it closes its end.

    Args:
        home: As for `agent_server`.
        options: Passed on to `agent_server`.

    Raises:
        ConfigurationError: As for `agent_server`.
    """
    async with agent_server(home, **options) as agents, stdio_server() as (received, sent):
        await agents.server.run(received, sent, agents.server.create_initialization_options())
