"""All routes together, and those about the server itself: state, opening, unlocking, answers, preferences."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from anyio.to_thread import run_sync

from dragoman_api.errors import ConfigurationError
from dragoman_workbench.downloads import Downloads
from dragoman_workbench.messages.base import Done
from dragoman_workbench.messages.connections import Pinged
from dragoman_workbench.messages.routes import ROUTES, Preferences, State
from dragoman_workbench.remembered import Remembered
from dragoman_workbench.surfaces import SurfaceRules

from .changes import ChangeRoutes
from .connections import ConnectionRoutes
from .console import ConsoleRoutes
from .exports import ExportRoutes
from .grid import GridRoutes
from .marketplace import MarketplaceRoutes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from aiohttp import web

    from dragoman import Runtime
    from dragoman_workbench.background_work import Work
    from dragoman_workbench.event_stream import EventStream, FileWatch, Questions
    from dragoman_workbench.messages.base import Empty, RouteAnswer
    from dragoman_workbench.messages.connections import OnConnection, OpenConnection, Unlock
    from dragoman_workbench.messages.routes import AnswerQuestion, PreferencesAsked, SetPreference
    from dragoman_workbench.open_connections import OpenConnections

    Route = Callable[[Any], Awaitable[RouteAnswer]]
    Download = Callable[[web.Request, str], Awaitable[web.StreamResponse]]


RESTART = "config.toml has changed; its guards and settings hold from the next start of the workbench"


def make_routes(
    runtime: Runtime,
    *,
    connections: OpenConnections,
    stream: EventStream,
    work: Work,
    questions: Questions,
    files: FileWatch,
    first: str,
    export_folder: Path | None,
) -> tuple[Mapping[str, Route], Download]:
    """Return what answers each route, and what answers the request for a ticket."""
    downloads, rules = Downloads(work), SurfaceRules(runtime)
    remembered = Remembered(runtime.paths.state / "workbench", change_file=runtime.change_file, mask=runtime.masked)
    exports = ExportRoutes(runtime, connections, stream=stream, work=work, downloads=downloads, folder=export_folder)
    front = _Front(runtime, connections, questions=questions, exports=exports, remembered=remembered)
    front.files, front.first, front.folder = files, first, str(export_folder or "")
    groups: tuple[Any, ...] = (
        front,
        ConnectionRoutes(runtime, connections, rules),
        GridRoutes(connections, runtime),
        ChangeRoutes(connections, downloads),
        ConsoleRoutes(connections, remembered),
        exports,
        MarketplaceRoutes(runtime),
    )
    routes: dict[str, Route] = {}
    for group in groups:
        routes |= {name: _available(_busy(route, connections), rules) for name, route in group.routes.items()}
    assert routes.keys() == ROUTES.keys() - {"enter", "leave", "token"}
    return routes, downloads.answer


def _busy(route: Route, connections: OpenConnections) -> Route:
    """Keep the connection that a request is about open until it is answered."""

    async def answer(request: Any) -> RouteAnswer:
        with connections.busy(getattr(request, "connection", "")):
            return await route(request)

    return answer


def _available(route: Route, rules: SurfaceRules) -> Route:
    """Refuse what is about a connection whose driver excludes the surface that asks (P6)."""

    async def answer(request: Any) -> RouteAnswer:
        if name := getattr(request, "connection", ""):
            await rules.check_connection(name)
        return await route(request)

    return answer


class _Front:
    """Routes about the server itself."""

    files: FileWatch
    first = ""
    folder = ""

    def __init__(
        self,
        runtime: Runtime,
        connections: OpenConnections,
        *,
        questions: Questions,
        exports: ExportRoutes,
        remembered: Remembered,
    ) -> None:
        self._runtime, self._open = runtime, connections
        self._questions, self._exports, self._remembered = questions, exports, remembered

    @property
    def routes(self) -> Mapping[str, Route]:
        """The routes by name."""
        return {
            "state": self.state,
            "open": self.open,
            "close": self.close,
            "ping": self.ping,
            "unlock": self.unlock,
            "questions/answer": self.answer,
            "preferences": self.preferences,
            "preferences/set": self.set_preference,
        }

    async def state(self, _: Empty) -> State:
        """Return what a tab shows first."""
        return State(
            version=version("dragoman"),
            sandbox=await run_sync(lambda: self._runtime.sandbox),
            connection=self.first,
            open=self._open.all(),
            questions=self._questions.open,
            exports=self._exports.all,
            export_folder=self.folder,
            warnings=[RESTART] if self.files.settings_changed else [],
        )

    async def open(self, request: OnConnection) -> OpenConnection:
        """Open a connection."""
        return await self._open.open(request.connection)

    async def close(self, request: OnConnection) -> Done:
        """Close a connection."""
        await self._open.close(request.connection)
        return Done()

    async def ping(self, request: OnConnection) -> Pinged:
        """Check a connection's health."""
        session = await self._open.session(request.connection)
        if not session.can("ping"):
            return Pinged(ok=True)
        health = await session.ping()
        return Pinged(ok=health.ok, reason=health.reason, code=health.code)

    async def unlock(self, request: Unlock) -> OpenConnection:
        """Unlock or lock a production connection."""
        name = request.connection
        await self._open.session(name)
        if not self._runtime.settings.guards.of(name).production:
            raise ConfigurationError(f"{name} is not marked as production", code="not-production")
        if request.minutes and request.typed != name:
            raise ConfigurationError(f"type the name of the connection to unlock it: {name}", code="name-not-typed")
        self._runtime.locks.unlock(name, minutes=request.minutes)
        self._open.tell(name)
        return self._open.about(name)

    async def answer(self, request: AnswerQuestion) -> Done:
        """Answer a question."""
        if not self._questions.answer(request.id, yes=request.yes):
            raise ConfigurationError("this question has already been answered", code="not-found")
        return Done()

    async def preferences(self, request: PreferencesAsked) -> Preferences:
        """Return preferences."""
        return Preferences(values=await self._remembered.preferences(request.prefix))

    async def set_preference(self, request: SetPreference) -> Done:
        """Set a preference."""
        await self._remembered.set(request.key, request.value)
        return Done()
