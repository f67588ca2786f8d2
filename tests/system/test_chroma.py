"""The Chroma driver from the bundled registry, installed by opening a connection, on the real server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from drivers.chroma.rig import on_server, record

from dragoman import Filter, Insert, Runtime, SavedConnection, Update
from dragoman_api.changes import OutcomeStatus

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.live("chroma"), pytest.mark.timeout(180)]


async def test_opening_a_connection_installs_the_driver_and_uses_it(
    live_server: dict[str, Any], tmp_path: Path
) -> None:
    """P1, P3: pages, counts, changes, exports and the console, without an install step."""
    runtime = Runtime(spare=False)
    values = {"host": live_server["host"], "port": live_server["port"], "auth_method": "none"}
    runtime.connections.save(SavedConnection(name="vectors", type="chroma", values=values))
    async with on_server(live_server) as rig, runtime, runtime.open("vectors") as session:
        name = await rig.collection([record(at, year=1950 + at, sold=at % 2 == 0) for at in range(60)])
        assert (session.plugin, session.server.product) == ("chroma", "Chroma")
        assert name in [item.name for item in await session.objects(parent="default_database")]
        rows = session.rows(name, filters=[Filter("year", ">=", 2000), Filter("sold", "=", True)])
        assert [row["id"] for row in (await rows.page()).rows] == [f"r{at:04}" for at in range(50, 60, 2)]
        assert await rows.count() == 5
        result = await session.rows(name).export(tmp_path / "all.ndjson")
        assert result.rows == 60
        line = json.loads((tmp_path / "all.ndjson").read_text().splitlines()[7])
        assert line == {**record(7, year=1957, sold=False), "uri": None, "embedding": [7.0, 0.5, -1.0]}
        key = (await rows.page(limit=1)).keys[0]
        plan = await session.plan(Update(key, {"year": 1}), Insert(name, {"embedding": [1, 2, 3]}, id="new"))
        assert [outcome.status for outcome in await session.apply(plan)] == [OutcomeStatus.APPLIED] * 2
        assert await session.rows(name).count() == 61
        answers = await session.console("GET /heartbeat")
        assert answers[0].status == 200
