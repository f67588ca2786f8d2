"""What rigs have in common: a connected driver, a way past it to the server, and shorter words for its hooks."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import wheelhouse
from dragoman.sandbox.conversation import DriverProxy
from dragoman.sandbox.driver_process import Launch, Worker
from dragoman_api import (
    CompiledFilter,
    ConsoleText,
    Filter,
    FilterRequest,
    HttpRequest,
    Page,
    PageRequest,
    PlanRequest,
    Profile,
    RawQuery,
    Sort,
)
from dragoman_api.connections import SslMode
from dragoman_api.http import Http
from dragoman_api.testing import Proxy, opened
from dragoman_registry.client.installer import unpack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from contextlib import AbstractContextManager

    from dragoman_api import Answer, Outcome, Plan
    from dragoman_api.changes import Change


def profile_of(url: str, **given: Any) -> Profile:
    """Make a profile of a server, without credentials unless some are given."""
    scheme, _, rest = url.partition("://")
    host, _, port = rest.rpartition(":")
    mode = SslMode.DISABLED if scheme == "http" else SslMode.REQUIRED_SKIP_VERIFY
    return Profile(**{"host": host, "port": int(port), "ssl_mode": mode} | given)


def manifest_of(plugin: str) -> dict[str, Any]:
    """Return the contents of a driver's manifest."""
    manifest: dict[str, Any] = json.loads(files(f"dragoman_{plugin}").joinpath("driver.json").read_text())
    return manifest


class Rig:
    """A connected driver, a way past it to the server, and objects that are removed at the end.

    Attributes:
        path: Of an object by its name, to remove it.
        made: Objects the test made.
        lose: Loses the server's answers, as `Target.lose` says; None where no proxy stands before it.
    """

    path: str
    fake: Any = None
    lose: Callable[[HttpRequest, int], AbstractContextManager[object]] | None = None

    def __init__(self, driver: Any, http: Http, log: list[HttpRequest] | None) -> None:
        self.driver, self.http, self.log = driver, http, log
        self.made: list[str] = []

    async def call(self, method: str, path: str, body: object = None) -> Any:
        """Send a request past the driver; it must succeed."""
        reply = await self.raw(method, path, body)
        assert reply.status < 300, f"{method} {path}: {reply.text[:500]}"
        return json.loads(reply.body) if reply.body else None

    async def raw(self, method: str, path: str, body: object = None) -> Any:
        """Send a request past the driver and give whatever is answered."""
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        kind = "application/x-ndjson" if path.split("?")[0].endswith("_bulk") else "application/json"
        return await Http.request(self.http, method, path, body=text, content_type=kind)

    async def filter(self, name: str, *rows: Filter | RawQuery, match: str = "all") -> CompiledFilter:
        """Describe an object and compile filter rows for it."""
        await self.driver.describe_object(name)
        return await self.driver.compile_filter(FilterRequest(object=name, rows=list(rows), match=match))

    async def page(
        self, name: str, *rows: Filter | RawQuery, sort: Sequence[Sort] = (), match: str = "all", **more: Any
    ) -> Page:
        """Fetch a page, filtered and sorted."""
        compiled = await self.filter(name, *rows, match=match) if rows else None
        return await self.driver.fetch_page(PageRequest(object=name, filter=compiled, sort=list(sort), **more))

    async def ids(
        self, name: str, *rows: Filter | RawQuery, match: str = "all", sort: Sequence[Sort] = ()
    ) -> list[str]:
        """Return the ids that a filter leaves; in order where a sort is given, else sorted."""
        page = await self.page(name, *rows, match=match, sort=sort, limit=1000)
        found = [key.id for key in page.keys]
        return found if sort else sorted(found)

    async def plan(self, *changes: Change) -> Plan:
        """Plan changes, as the host does: the plan tells them."""
        plan = await self.driver.plan_change(PlanRequest(changes=list(changes)))
        return msgspec.structs.replace(plan, changes=list(changes))

    async def apply(self, *changes: Change) -> list[Outcome]:
        """Plan and apply changes; refusals are outcomes too, in the order of the changes."""
        plan = await self.plan(*changes)
        outcomes = [*plan.refusals, *await self.driver.apply_change(plan)]
        return sorted(outcomes, key=lambda outcome: outcome.change)

    async def console(self, text: str) -> list[Answer]:
        """Run a console text."""
        parsed = await self.driver.parse_console(ConsoleText(text))
        return [await self.driver.execute_console(each) for each in parsed]

    def sent(self, method: str = "", path: str = "") -> list[HttpRequest]:
        """Return what the driver has sent, by method and a part of the path."""
        return [each for each in self.log or () if each.method.startswith(method) and path in each.path]

    async def remove(self) -> None:
        """Remove what the test made."""
        for name in self.made:
            await self.raw("DELETE", self.path.format(name))


@asynccontextmanager
async def behind_proxy(record: dict[str, Any]) -> AsyncIterator[tuple[dict[str, Any], Any]]:
    """Put a proxy before a real server, and give its record with what loses answers; it passes no TLS on."""
    if record["url"].startswith("https:"):
        yield record, None
        return
    async with Proxy(record["url"]) as proxy:
        yield {**record, "url": proxy.url}, proxy.lose


@asynccontextmanager
async def connected(rig: type[Rig], driver: Any, given: Profile) -> AsyncIterator[Any]:
    """Connect a driver, and remove what was made through its rig at the end."""
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(opened(driver, given))
        http = getattr(driver, "http", None) or driver._exchanges.http
        made = rig(driver, http, log)
        stack.push_async_callback(made.remove)
        yield made


@asynccontextmanager
async def confined(rig: type[Rig], driver: type, given: Profile) -> AsyncIterator[Any]:
    """Connect a driver in its sandbox, from its wheel; what it sends cannot be seen there."""
    with TemporaryDirectory() as temporary:
        plugin = driver.__module__.split(".")[0].removeprefix("dragoman_")
        trees = []
        for wheel in wheelhouse.project_wheels(f"plugins/{plugin}"):
            trees.append(Path(temporary) / wheel.stem)
            unpack(wheel, trees[-1])
        launch = Launch(
            driver=f"{driver.__module__}:{driver.__qualname__}",
            trees=tuple(trees),
            approved=tuple(given.endpoints),
            profile=given,
        )
        async with Http(given) as http, Worker(launch) as worker:
            proxy = DriverProxy(worker)
            await proxy.connect()
            made = rig(proxy, http, None)
            if str(worker.report) != "full":
                pytest.skip(f"the sandbox is {worker.report} here")
            yield made
            await made.remove()
            if "close" in worker.hooks:
                await proxy.close()
