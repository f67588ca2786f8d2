"""Copies from object to object, through a driver in its own process."""

from __future__ import annotations

import errno
import json
import os

import pytest

import dragoman
from dragoman import Runtime, SavedConnection
from dragoman_api import ConsoleRequest
from dragoman_api.errors import ConfigurationError, ObjectNotFoundError
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch

MAPPING = {"sku": {"type": "keyword"}, "n": {"type": "long"}, "private": {"type": "keyword"}}
ROWS = [{"sku": "A-1", "n": 9_007_199_254_740_993, "private": "x"}, {"sku": "A-2", "n": 2, "private": "y"}]


@pytest.fixture
async def shop(home):
    """Open a connection to a server with the rows in `orders`."""
    async with FakeElasticsearch(version="8.19.21") as server:
        values = {"host": server.host, "port": server.port}
        async with Runtime(spare=False) as runtime:
            runtime.connections.save(SavedConnection(name="shop", type="elasticsearch", values=values))
            async with runtime.open("shop") as session:
                [made] = await session.parse(f"PUT /orders\n{json.dumps({'mappings': {'properties': MAPPING}})}")
                await session.execute(made)
                inserts = [dragoman.Insert("orders", row, id=str(number)) for number, row in enumerate(ROWS)]
                done = await session.apply(await session.plan(*inserts))
                assert {row.status for row in done} == {"applied"}, done
                await refresh(session, "orders")
                yield session


async def refresh(session, name):
    """Let searches see what was written."""
    [refreshed] = await session.parse(f"POST /{name}/_refresh")
    await session.execute(ConsoleRequest(request=refreshed.request, writes=True))


async def copied(session, folder):
    """Copy rows to the object `copy`, and return its documents in the order of their ids."""
    report = await dragoman.load(session, "copy", file=folder / "copy", rows=session.rows("orders"), create=True)
    assert report.counts["applied"] == len(ROWS)
    await refresh(session, "copy")
    exported = folder / "copy.rows"
    await session.rows("copy").export(to=exported, format="rows")
    lines = sorted(map(json.loads, exported.read_text().splitlines()), key=lambda line: line["_id"])
    return [line["_source"] for line in lines]


async def test_a_copy_has_all_members_of_each_row(shop, tmp_path):
    assert await copied(shop, tmp_path) == ROWS


async def test_a_load_that_cannot_keep_its_place_makes_no_object(shop, tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    (tmp_path / "new.ndjson").write_text('{"sku": "a"}\n')
    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(ConfigurationError, match="its file system cannot lock files") as caught:
        await dragoman.load(shop, "new", file=tmp_path / "new.ndjson", create=True)
    assert caught.value.hint.startswith("put the file on a disk of this machine")
    with pytest.raises(ObjectNotFoundError):
        await shop.describe("new")


async def test_a_copy_that_would_leave_columns_out_is_refused_and_makes_nothing(shop, tmp_path):
    rows = shop.rows("orders", columns=["_id", "sku"])
    with pytest.raises(ConfigurationError, match="cannot leave columns out"):
        await dragoman.load(shop, "copy", file=tmp_path / "copy", rows=rows, create=True)
    assert "copy" not in [item.name for item in (await shop.objects()).objects]
