"""A server to test on, fake or real, and the driver connected to it."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

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
from dragoman_api.connections import AuthScheme, Secrets, SslMode
from dragoman_api.http import Http
from dragoman_api.testing.target import opened
from dragoman_elasticsearch.driver import Driver
from fakes.elasticsearch import FakeElasticsearch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from dragoman_api import Answer, Outcome, Plan
    from dragoman_api.changes import Change

VERSIONS = ("8.19.21", "7.17.29", "7.10.2")


def profile(url: str, **more: Any) -> Profile:
    """Make a profile of a server without credentials."""
    scheme, _, rest = url.partition("://")
    host, _, port = rest.rpartition(":")
    mode = SslMode.DISABLED if scheme == "http" else SslMode.REQUIRED_SKIP_VERIFY
    return Profile(
        **{"name": "shop", "type": "elasticsearch", "host": host, "port": int(port), "ssl_mode": mode} | more
    )


class Rig:
    """A connected driver, a way past it to the server, and indices that are removed at the end."""

    def __init__(self, version: str, driver: Driver, http: Http, log: list[HttpRequest]) -> None:
        self.version = tuple(int(part) for part in version.split("."))
        self.driver, self.http, self.log = driver, http, log
        self.fake: FakeElasticsearch | None = None
        self._made: list[str] = []

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

    async def index(
        self,
        properties: dict[str, Any] | None = None,
        documents: Iterable[object] = (),
        *,
        name: str = "",
        settings: dict[str, Any] | None = None,
        mapping: dict[str, Any] | None = None,
    ) -> str:
        """Make an index; documents get their number as id, a text is sent as it is. Names are unique to the test."""
        name = f"t{uuid4().hex[:8]}-{name or 'books'}"
        mappings = {**({"properties": properties} if properties is not None else {}), **(mapping or {})}
        given = {"number_of_shards": 1, "number_of_replicas": 0, **(settings or {})}
        await self.call("PUT", f"/{name}", {"settings": given, "mappings": mappings})
        self._made.append(name)
        await self.load(name, documents)
        return name

    async def load(self, name: str, documents: Iterable[object]) -> None:
        """Store documents under their numbers and make them visible."""
        lines = []
        for number, document in enumerate(documents):
            text = document if isinstance(document, str) else json.dumps(document, ensure_ascii=False)
            lines += [json.dumps({"index": {"_id": str(number)}}), text]
        if lines:
            answer = await self.call("POST", f"/{name}/_bulk?refresh=true", "\n".join(lines) + "\n")
            assert not answer["errors"], str(answer)[:1000]

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
        """Give the ids that a filter leaves; in order where a sort is given, else sorted."""
        page = await self.page(name, *rows, match=match, sort=sort, limit=1000)
        found = [key.id for key in page.keys]
        return found if sort else sorted(found)

    async def plan(self, *changes: Change) -> Plan:
        """Plan changes."""
        return await self.driver.plan_change(PlanRequest(changes=list(changes)))

    async def apply(self, *changes: Change) -> list[Outcome]:
        """Plan and apply changes; refusals are outcomes too, in the order of the changes."""
        plan = await self.plan(*changes)
        outcomes = [*plan.refusals, *await self.driver.apply_change(plan)]
        return sorted(outcomes, key=lambda outcome: outcome.change)

    async def source(self, name: str, key: str) -> str:
        """Give a stored document as it is stored."""
        return (await self.raw("GET", f"/{name}/_source/{key}")).text

    async def console(self, text: str) -> list[Answer]:
        """Run a console text."""
        parsed = await self.driver.parse_console(ConsoleText(text))
        return [await self.driver.execute_console(each) for each in parsed]

    def sent(self, method: str = "", path: str = "") -> list[HttpRequest]:
        """Give what the driver has sent, by method and a part of the path."""
        return [each for each in self.log if each.method.startswith(method) and path in each.path]

    async def remove(self) -> None:
        """Remove what the test made."""
        for name in self._made:
            await self.raw("DELETE", f"/{name}")


@asynccontextmanager
async def connected(given: Profile, *, version: str) -> AsyncIterator[Rig]:
    """Connect a driver."""
    driver = Driver()
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(opened(driver, given))
        rig = Rig(version, driver, driver._http, log)
        stack.push_async_callback(rig.remove)
        yield rig


@asynccontextmanager
async def on_fake(version: str, **more: Any) -> AsyncIterator[Rig]:
    """Connect a driver to a fake server; a request that no real server understands fails the test."""
    async with FakeElasticsearch(version=version) as fake:
        async with connected(profile(fake.url, **more), version=version) as rig:
            rig.fake = fake
            yield rig
        assert fake.faults == []


@asynccontextmanager
async def on_server(record: dict[str, Any], **more: Any) -> AsyncIterator[Rig]:
    """Connect a driver to a real server."""
    if record["security"]:
        user = record["users"]["admin"] if "admin" in record["users"] else next(iter(record["users"].values()))
        more = {
            "auth_scheme": AuthScheme.BASIC,
            "options": {"username": user["username"]},
            "secrets": Secrets(values={"password": user["password"]}),
        } | more
    async with connected(profile(record["url"], **more), version=record["version"]) as rig:
        yield rig


class OnFake:
    """Run the rules of a class on fakes of several versions."""

    @pytest.fixture(params=VERSIONS)
    async def es(self, request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
        async with on_fake(request.param) as rig:
            yield rig


class OnServer:
    """Run the rules of a class on every real server of ``--live``."""

    pytestmark = pytest.mark.live("elasticsearch")

    @pytest.fixture
    async def es(self, live_server: dict[str, Any]) -> AsyncIterator[Rig]:
        async with on_server(live_server) as rig:
            yield rig
