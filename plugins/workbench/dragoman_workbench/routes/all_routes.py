"""All routes together, and those about the server itself: state, opening, unlocking, answers, preferences."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from anyio.to_thread import run_sync

from dragoman_api.errors import ConfigurationError
from dragoman_workbench.downloads import Downloads
from dragoman_workbench.messages.base import Done
from dragoman_workbench.messages.routes import ROUTES, Preferences, State
from dragoman_workbench.remembered import Remembered
from dragoman_workbench.surfaces import SurfaceRules
from dragoman_workbench.uploads import MAX_BYTES

from .changes import ChangeRoutes
from .connections import ConnectionRoutes
from .console import ConsoleRoutes
from .exports import ExportRoutes
from .grid import GridRoutes, QueryRoutes
from .imports import ImportRoutes
from .marketplace import MarketplaceRoutes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    import msgspec
    from aiohttp import web

    from dragoman import Runtime
    from dragoman_workbench.background_work import Work
    from dragoman_workbench.event_stream import EventStream, FileWatch
    from dragoman_workbench.messages.base import Empty
    from dragoman_workbench.messages.connections import OnConnection, OpenConnection, Unlock
    from dragoman_workbench.messages.routes import AnswerQuestion, PreferencesAsked, SetPreference
    from dragoman_workbench.open_connections import OpenConnections
    from dragoman_workbench.questions import Questions
    from dragoman_workbench.samples import Samples
    from dragoman_workbench.uploads import ReceivedFiles

    Route = Callable[[Any], Awaitable[msgspec.Struct]]
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
    uploads: ReceivedFiles,
    samples: Samples,
) -> tuple[Mapping[str, Route], Download]:
    """Return what answers each route, and what answers the request for a ticket."""
    downloads, rules = Downloads(work), SurfaceRules(runtime)
    remembered = Remembered(runtime.paths.state / "workbench", change_file=runtime.change_file, mask=runtime.masked)
    exports = ExportRoutes(runtime, connections, stream=stream, work=work, downloads=downloads, folder=export_folder)
    imports = ImportRoutes(connections, stream=stream, work=work, downloads=downloads, uploads=uploads)
    front = _Front(runtime, connections, questions=questions, exports=exports, imports=imports, remembered=remembered)
    front.files, front.first, front.folder = files, first, str(export_folder or "")
    reads = ("objects", "status", "describe", "page", "similar", "count", "cell", "summarize", "explain")
    groups: dict[str, Any] = dict.fromkeys(reads, GridRoutes(connections)) | {
        "connections": ConnectionRoutes(runtime, connections, rules, samples),
        "queries": QueryRoutes(connections, runtime),
        "changes": ChangeRoutes(connections, downloads),
        "console": ConsoleRoutes(connections, remembered),
        "exports": exports,
        "imports": imports,
        "plugins": MarketplaceRoutes(runtime),
    }
    routes: dict[str, Route] = {}
    for name in ROUTES.keys() - {"enter", "leave", "token"}:
        room, _, _ = name.partition("/")
        route = getattr(groups.get(room, front), name.rpartition("/")[2])  # the last word of a route is its method
        routes[name] = _available(_busy(route, connections), rules)
    return routes, downloads.answer


def _busy(route: Route, connections: OpenConnections) -> Route:
    """Keep the connection that a request is about open until it is answered."""

    async def answer(request: Any) -> msgspec.Struct:
        with connections.busy(getattr(request, "connection", "")):
            return await route(request)

    return answer


def _available(route: Route, rules: SurfaceRules) -> Route:
    """Refuse what is about a connection whose driver excludes the surface that asks (P6)."""

    async def answer(request: Any) -> msgspec.Struct:
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
        imports: ImportRoutes,
        remembered: Remembered,
    ) -> None:
        self._runtime, self._open = runtime, connections
        self._questions, self._exports, self._imports, self._remembered = questions, exports, imports, remembered

    async def state(self, _: Empty) -> State:
        """Return what a tab shows first."""
        return State(
            version=version("dragoman"),
            sandbox=await run_sync(lambda: self._runtime.sandbox),
            connection=self.first,
            open=self._open.all(),
            questions=self._questions.open,
            exports=self._exports.all,
            imports=self._imports.all,
            upload_bytes=MAX_BYTES,
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

    async def set(self, request: SetPreference) -> Done:
        """Set a preference."""
        await self._remembered.set(request.key, request.value)
        return Done()
