"""A server to test on, fake or real, and the driver connected to it."""

from __future__ import annotations

import json
from contextlib import aclosing, asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from drivers import rigging

from dragoman_api import (
    ExportRequest,
    Filter,
    Profile,
    RawQuery,
)
from dragoman_api.connections import AuthScheme, Secrets
from dragoman_sample.fakes.weaviate import FakeWeaviate
from dragoman_weaviate.driver import Driver
from dragoman_weaviate.writing.apply import Sender

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from contextlib import AbstractAsyncContextManager

    from dragoman_api import Outcome, Plan
    from dragoman_api.kit.exchanges import Exchange
    from dragoman_weaviate.protocol import Features

TYPES = {
    "title": "text",
    "code": {"dataType": ["text"], "tokenization": "field"},
    "pages": "int",
    "price": "number",
    "available": "boolean",
    "published": "date",
    "shelf": "uuid",
    "tags": "text[]",
    "sizes": "int[]",
    "place": "geoCoordinates",
    "phone": "phoneNumber",
    "cover": "blob",
    "author": {
        "dataType": ["object"],
        "nestedProperties": [{"name": "name", "dataType": ["text"]}, {"name": "born", "dataType": ["int"]}],
    },
}
"""One property of nearly every type."""

INDEXED = {"indexNullState": True, "indexPropertyLength": True, "indexTimestamps": True}


@cache
def key(number: int) -> str:
    """Return a uuid that spreads over the range of all, and is the same each time."""
    return str(UUID(int=(number * 0x9E3779B97F4A7C15F39CC0605CEDC834) % 2**128))


@cache
def _numbers() -> dict[str, int]:
    return {key(number): number for number in range(1000)}


def properties(types: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, **(spec if isinstance(spec, dict) else {"dataType": [spec]})} for name, spec in types.items()
    ]


def profile(url: str, **more: Any) -> Profile:
    """Make a profile of a server without credentials."""
    return rigging.profile_of(url, **{"name": "library", "type": "weaviate"} | more)


def keyed(api_key: str) -> dict[str, Any]:
    """Return what a profile needs for an API key."""
    return {"auth_scheme": AuthScheme.BEARER, "secrets": Secrets(values={"api_key": api_key})}


class Rig(rigging.Rig):
    """A connected driver, and collections that are removed at the end."""

    path = "/v1/schema/{}"
    fake: FakeWeaviate | None = None

    async def collection(
        self,
        types: dict[str, Any],
        objects: Iterable[dict[str, Any]] = (),
        *,
        shards: int = 1,
        index: dict[str, bool] | None = None,
        name: str = "",
        **more: Any,
    ) -> str:
        """Make a collection; objects get a uuid by their number, and vectors where they hold `vector`."""
        name = f"T{uuid4().hex[:8]}_{name or 'Books'}"
        vectors = {} if "vectorConfig" in more else {"vectorizer": "none", "vectorIndexType": "flat"}
        sharding = {} if "multiTenancyConfig" in more else {"shardingConfig": {"desiredCount": shards}}
        definition = {
            "class": name,
            "properties": properties(types),
            "invertedIndexConfig": INDEXED if index is None else index,
        }
        await self.call("POST", "/v1/schema", definition | vectors | sharding | more)
        self.made.append(name)
        await self.load(name, objects)
        return name

    async def load(self, name: str, objects: Iterable[dict[str, Any]], *, tenant: str | None = None) -> None:
        """Store objects under their numbers, unless they say their id; `properties` holds what clashes."""
        items = []
        for number, each in enumerate(objects):
            values = dict(each)
            item = {"class": name, "id": values.pop("id", key(number))}
            item |= {part: values.pop(part) for part in ("vector", "vectors") if part in values}
            items.append(
                item | {"properties": values.get("properties", values)} | ({"tenant": tenant} if tenant else {})
            )
        for start in range(0, len(items), 500):
            done = await self.call("POST", "/v1/batch/objects", {"objects": items[start : start + 500]})
            failed = [each["result"] for each in done if each["result"].get("errors")]
            assert not failed, str(failed)[:1000]

    async def numbers(self, name: str, *rows: Filter | RawQuery, match: str = "all") -> list[int]:
        """Return the numbers of the objects that a filter leaves."""
        return sorted(_numbers()[each] for each in await self.ids(name, *rows, match=match))

    async def export(self, name: str, *rows: Filter, match: str = "all", **more: Any) -> list[Any]:
        """Export a collection and give its lines."""
        compiled = await self.filter(name, *rows, match=match) if rows else None
        lines: list[Any] = []
        request = ExportRequest(object=name, filter=compiled, **more)
        async with aclosing(self.driver.export_rows(request)) as parts:
            async for part in parts:
                found = [json.loads(line) for line in part.data.splitlines()]
                assert len(found) == part.rows
                lines += found
        return lines

    async def stored(self, name: str, uuid: str, **query: str) -> dict[str, Any] | None:
        """Return an object as it is stored; None where there is none."""
        text = "&".join(f"{each}={value}" for each, value in query.items())
        reply = await self.raw("GET", f"/v1/objects/{name}/{uuid}" + (f"?{text}" if text else ""))
        assert reply.status in (200, 404), reply.text
        return json.loads(reply.body) if reply.status == 200 else None


def connected(given: Profile, *, confined: bool = False) -> AbstractAsyncContextManager[Rig]:
    """Connect a driver, in this process or in its sandbox."""
    return rigging.confined(Rig, Driver, given) if confined else rigging.connected(Rig, Driver(), given)


@asynccontextmanager
async def on_fake(*, given: dict[str, Any] | None = None, confined: bool = False, **fake: Any) -> AsyncIterator[Rig]:
    """Connect a driver to a fake server; a request that no real server understands fails the test."""
    async with FakeWeaviate(**fake) as server:
        async with connected(profile(server.url, **(given or {})), confined=confined) as rig:
            rig.fake, rig.lose = server, server.lose
            yield rig
        # What a role permits is shown by real servers only.
        assert [fault for fault in server.faults if not fault.target.endswith("/own-info")] == []


@asynccontextmanager
async def on_server(record: dict[str, Any], *, confined: bool = False, **more: Any) -> AsyncIterator[Rig]:
    """Connect a driver to a real server."""
    if record["api_keys"]:
        more = keyed(record["api_keys"]["admin"]) | more
    async with connected(profile(record["url"], **more), confined=confined) as rig:
        yield rig


def needs(record: dict[str, Any], *, access: str = "", **settings: str) -> None:
    """Skip a test that another engine has to show."""
    if access and record["access"] != access:
        pytest.skip(f"needs an engine with access {access}")
    for name, value in settings.items():
        if record["settings"].get(name) != value:
            pytest.skip(f"needs an engine with {name}={value}")


def ordinary(record: dict[str, Any]) -> None:
    """Skip a test that needs GraphQL and the usual window on an engine without them."""
    if record["settings"]:
        pytest.skip("this engine is set up for rules of its own")


class OnFake:
    """Run the rules of a class on a fake server."""

    @pytest.fixture
    async def wv(self) -> AsyncIterator[Rig]:
        async with on_fake() as rig:
            yield rig


class OnServer:
    """Run the rules of a class on every real server of ``--live``."""

    pytestmark = pytest.mark.live("weaviate")

    @pytest.fixture
    async def wv(self, live_server: dict[str, Any]) -> AsyncIterator[Rig]:
        ordinary(live_server)
        async with on_server(live_server) as rig:
            yield rig


def apply_plan(plan: Plan, features: Features) -> Exchange[list[Outcome]]:
    """Send a plan once, as the driver does unless the server is busy, and return the outcomes."""
    sender = Sender(plan, features)
    yield from sender.send()
    return sender.outcomes
