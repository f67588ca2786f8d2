"""The Solr driver from the bundled registry, installed by opening a connection, on the real server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from drivers.solr.rig import on_server

import dragoman
from dragoman import Filter, Insert, Runtime, SavedConnection, Update
from dragoman_api.changes import OutcomeStatus

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.live("solr"), pytest.mark.timeout(180)]


async def test_opening_a_connection_installs_the_driver_and_uses_it(
    live_server: dict[str, Any], tmp_path: Path
) -> None:
    """P1, P3: pages, counts, changes, exports, imports and the console, without an install step."""
    runtime = Runtime(spare=False)
    values = {"host": live_server["host"], "port": live_server["port"], "auth_method": "none"}
    runtime.connections.save(SavedConnection(name="search", type="solr", values=values))
    async with on_server(live_server) as rig, runtime, runtime.open("search") as session:
        documents = [{"id": f"b{at:02}", "year_i": 1950 + at, "sold_b": at % 2 == 0} for at in range(60)]
        name, copy = await rig.core(documents), await rig.core()
        assert (session.plugin, session.server.product) == ("solr", "Solr")
        assert name in [item.name for item in await session.objects()]
        rows = session.rows(name, filters=[Filter("year_i", ">=", 2000), Filter("sold_b", "=", True)])
        assert [row["id"] for row in (await rows.page()).rows] == [f"b{at:02}" for at in range(50, 60, 2)]
        assert await rows.count() == 5
        result = await session.rows(name).export(tmp_path / "all.ndjson")
        assert result.rows == 60
        lines = [json.loads(line) for line in (tmp_path / "all.ndjson").read_text().splitlines()]
        assert [{key: value for key, value in line.items() if key != "_version_"} for line in lines] == documents
        report = await dragoman.load(session, copy, file=tmp_path / "all.ndjson")
        assert report.counts["applied"] == 60, report
        assert await session.rows(copy).count() == 60
        key = (await rows.page(limit=1)).keys[0]
        plan = await session.plan(Update(key, {"year_i": 1}), Insert(name, {"year_i": 2}, id="new"))
        assert [outcome.status for outcome in await session.apply(plan)] == [OutcomeStatus.APPLIED] * 2
        assert await session.rows(name).count() == 61
        answers = await session.console(f"GET /{name}/schema/uniquekey")
        assert answers[0].status == 200
