"""The server as a whole: one runtime, the rules of its connections, and the transport."""

from __future__ import annotations

import os
import secrets
import socket
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import uvicorn
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from dragoman import Runtime
from dragoman_api.errors import ConfigurationError

from .changes import Changer
from .open_sessions import OpenSessions
from .protocol import AgentServer
from .rules import rules_of
from .tools import Reader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

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


class TokenGate:
    """Lets requests pass that carry the token; what begins and ends the application needs none."""

    def __init__(self, application: ASGIApp, token: str) -> None:
        self._application, self._header = application, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it with status 401."""
        headers = [value for name, value in scope.get("headers", ()) if name == b"authorization"]
        if scope["type"] == "lifespan" or (
            len(headers) == 1 and secrets.compare_digest(headers[0], self._header) and scope["type"] == "http"
        ):
            await self._application(scope, receive, send)
            return
        await send(
            {"type": "http.response.start", "status": 401, "headers": [(b"www-authenticate", b"Bearer")]}
        )  # fmt: skip
        await send({"type": "http.response.body", "body": b""})


class _HttpServer(uvicorn.Server):
    """The web server, which leaves signals to the command, and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = anyio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        self.listening.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone."""
        yield


@asynccontextmanager
async def serving_http(home: Path | None = None, *, port: int = 0, **options: Any) -> AsyncIterator[tuple[str, str]]:
    """Serve agents over HTTP on 127.0.0.1 while the block runs.

    A request needs the token, a Host header of this address, and no Origin header of another, which a page sends.

    Args:
        home: As for `agent_server`.
        port: The port; 0 for a free one.
        options: Passed on to `agent_server`.

    Yields:
        The address, and the token.

    Raises:
        ConfigurationError: As for `agent_server`; or the port is taken.
    """
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        reason = f"the server for agents cannot listen on port {port}: {why}"
        raise ConfigurationError(reason, hint="--http 0 picks a free port") from error
    token, address = secrets.token_urlsafe(32), f"127.0.0.1:{listener.getsockname()[1]}"
    with listener:
        async with agent_server(home, **options) as agents:
            allowed = TransportSecuritySettings(allowed_hosts=[address], allowed_origins=[f"http://{address}"])
            application = agents.server.streamable_http_app(transport_security=allowed)
            config = uvicorn.Config(
                TokenGate(application, token), log_config=None, access_log=False, timeout_graceful_shutdown=1
            )
            server = _HttpServer(config)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(server.serve, [listener])
                await server.listening.wait()
                try:
                    yield f"http://{address}/mcp", token
                finally:
                    server.should_exit = True
