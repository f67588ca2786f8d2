"""The servers that the oracle asks: a fake, or a real one."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from drivers.elasticsearch import rig as elasticsearch
from drivers.opensearch import fake_rig
from drivers.opensearch import rig as opensearch
from drivers.weaviate import rig as weaviate

from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_sample.fakes.weaviate import FakeWeaviate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

Target = tuple[str, "AbstractAsyncContextManager[Any]"]

USUAL = {"elasticsearch": "8.19.21", "opensearch": "3.9.0", "weaviate": "1.38.11"}
"""The version of a fake."""

OPTIONS: dict[str, Any] = {"window": "index"}
"""A window of a few rows brings deep pages into reach of a few documents."""


def on_fake(driver: str, version: str = "") -> Target:
    """Connect a driver to a fake server."""
    version = version or USUAL[driver]
    if driver == "opensearch":
        return f"fake {version}", fake_rig.on_fake(version, options=OPTIONS)
    return f"fake {version}", (_elasticsearch_fake if driver == "elasticsearch" else _weaviate_fake)(version)


def of_record(record: dict[str, Any]) -> Target:
    """Connect a driver to a real server, by its record in `--live`."""
    usual: dict[str, Any] = {"security": False, "users": {}, "api_keys": {}, "settings": {}}
    if record["type"] == "weaviate":
        return record["engine"], weaviate.on_server(usual | record)
    if record["type"] == "opensearch":
        return record["engine"], opensearch.on_server(record, options=OPTIONS)
    users = record.get("users") or {}
    who = users.get("admin") or next(iter(users.values()), {})
    options = OPTIONS | {name: value for name, value in who.items() if name == "username"}
    return record["engine"], elasticsearch.on_server(usual | record, options=options)


@asynccontextmanager
async def _elasticsearch_fake(version: str) -> AsyncIterator[Any]:
    async with (
        FakeElasticsearch(version=version) as fake,
        elasticsearch.connected(elasticsearch.profile(fake.url, options=OPTIONS), version=version) as rig,
    ):
        rig.fake = fake
        yield rig


@asynccontextmanager
async def _weaviate_fake(version: str) -> AsyncIterator[Any]:
    async with FakeWeaviate(version=version) as fake, weaviate.connected(weaviate.profile(fake.url)) as rig:
        rig.fake = fake
        yield rig
