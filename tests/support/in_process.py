"""A session over a driver in this process: what the session does with a call is seen in milliseconds."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from dragoman.automations.hook_manager import Hooks
from dragoman.sessions.session import Session
from dragoman_api.connections import Server
from dragoman_api.events import Call, ConnectionInfo

if TYPE_CHECKING:
    from dragoman.sessions.live_driver import LiveDriver
    from dragoman.settings import Limit


class Here:
    """Stands where `LiveDriver` does, without its process.

    Attributes:
        seen: Events so far.
        alive: Whether the process runs; a call starts it again.
        incarnation: Counts the starts.
    """

    def __init__(self, driver: object, *use: object, capabilities: tuple[str, ...] = ()) -> None:
        self.seen: list[Any] = []
        self.info = ConnectionInfo(name="shop", type="memory", host="h", port=1)
        self.server = Server("Memory", "1.0")
        manifest = SimpleNamespace(capabilities=[*capabilities])
        self.generation = SimpleNamespace(plugin="memory", version="1.2.3", manifest=manifest, sha256="")
        self.endpoints = [("h", 1)]
        self.sandbox, self.warnings, self.unattended = "full", ["careful"], True
        self.alive, self.incarnation = True, 1
        self._hooks = Hooks(use, emit=self.seen.append, driver=driver)

    def check_usable(self) -> None:
        """Let everything pass: it is never closed."""

    check_open = check_usable

    def offers(self, hook: str) -> bool:
        """Return whether the driver implements a hook."""
        return self._hooks.offers(hook)

    def explaining(self) -> AbstractContextManager[None]:
        """Leave errors as they are: nothing lies between this machine and the server."""
        return nullcontext()

    def call_of(self, hook: str, **fields: Any) -> Call:
        """Return what the automations are asked about before a hook is called."""
        return Call(hook=hook, connection=self.info, unattended=self.unattended, **fields)

    async def ask(self, call: Call) -> None:
        """Ask the automations about a call."""
        await self._hooks.ask(call)

    async def hooks(self) -> Hooks:
        """Start the driver again if it is not alive."""
        if not self.alive:
            self.alive, self.incarnation = True, self.incarnation + 1
        return self._hooks

    def session(self, *, limit: Limit | None = None, keep_alive: int = 300) -> Session:
        """Open a session."""
        return Session(cast("LiveDriver", self), emit=self.seen.append, limit=limit, keep_alive=keep_alive)
