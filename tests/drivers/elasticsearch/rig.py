"""A server to test on, fake or real, and the driver connected to it."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from drivers import rigging

from dragoman_api.connections import AuthScheme, Secrets
from dragoman_elasticsearch.driver import Driver
from dragoman_querydsl import console_text as text
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from dragoman_api import (
        Profile,
    )

parse = partial(text.parse, dialect=Driver.dialect)
may_write = Driver.dialect.may_write

OLD = pytest.param("7.10.2", marks=pytest.mark.slow)
VERSIONS = ("8.19.21", pytest.param("7.17.29", marks=pytest.mark.slow), OLD)


def profile(url: str, **more: Any) -> Profile:
    """Make a profile of a server without credentials."""
    return rigging.profile_of(url, **{"name": "shop", "type": "elasticsearch"} | more)


class Rig(rigging.Rig):
    """A connected driver, and indices that are removed at the end."""

    path = "/{}"
    fake: FakeElasticsearch | None = None
    version: tuple[int, ...] = ()

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
        # A write waits until it can be found, by default up to a second.
        quick = {"number_of_shards": 1, "number_of_replicas": 0, "index.refresh_interval": "50ms"}
        given = quick | (settings or {})
        await self.call("PUT", f"/{name}", {"settings": given, "mappings": mappings})
        self.made.append(name)
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

    async def source(self, name: str, key: str) -> str:
        """Return a stored document as it is stored."""
        return (await self.raw("GET", f"/{name}/_source/{key}")).text


@asynccontextmanager
async def connected(given: Profile, *, version: str, confined: bool = False) -> AsyncIterator[Rig]:
    """Connect a driver, in this process or in its sandbox."""
    way = rigging.confined(Rig, Driver, given) if confined else rigging.connected(Rig, Driver(), given)
    async with way as rig:
        rig.version = tuple(int(part) for part in version.split("."))
        yield rig


@asynccontextmanager
async def on_fake(version: str, *, confined: bool = False, **more: Any) -> AsyncIterator[Rig]:
    """Connect a driver to a fake server; a request that no real server understands fails the test."""
    async with FakeElasticsearch(version=version) as fake:
        async with connected(profile(fake.url, **more), version=version, confined=confined) as rig:
            rig.fake, rig.lose = fake, fake.lose
            yield rig
        assert fake.faults == []


@asynccontextmanager
async def on_server(record: dict[str, Any], *, confined: bool = False, **more: Any) -> AsyncIterator[Rig]:
    """Connect a driver to a real server."""
    if record["security"]:
        user = record["users"]["admin"] if "admin" in record["users"] else next(iter(record["users"].values()))
        more = {
            "auth_scheme": AuthScheme.BASIC,
            "options": {"username": user["username"]},
            "secrets": Secrets(values={"password": user["password"]}),
        } | more
    async with connected(profile(record["url"], **more), version=record["version"], confined=confined) as rig:
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
