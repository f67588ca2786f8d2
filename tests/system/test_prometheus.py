"""The Prometheus driver from the bundled registry, installed by opening a connection, on real servers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from drivers.prometheus import samples
from drivers.prometheus.rig import on_server

from dragoman import Filter, Insert, Runtime, SavedConnection, Sort, Span
from dragoman_api.errors import UnsupportedOperationError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.live("prometheus"), pytest.mark.timeout(180)]


async def test_opening_a_connection_installs_the_driver_and_uses_it(
    live_server: dict[str, Any], tmp_path: Path
) -> None:
    """P1, P3: pages, counts, summaries, exports and the console, without an install step; nothing is written."""
    runtime = Runtime(spare=False)
    values = {"host": live_server["host"], "port": live_server["port"]}
    runtime.connections.save(SavedConnection(name="metrics", type="prometheus", values=values))
    hour = Span(since="2026-11-20T00:00:00Z", until="2026-11-20T01:00:00Z")
    name, stored = "http_requests_total", samples.samples()["http_requests_total"]
    async with on_server(live_server), runtime, runtime.open("metrics") as session:
        assert (session.plugin, session.sandbox) == ("prometheus", "full")
        assert session.server.product == ("VictoriaMetrics" if "victoria" in live_server["engine"] else "Prometheus")
        assert name in [item.name for item in await session.objects(contains="http_")]
        errors = [Filter("code", "=", "500"), Filter("instance", "=", "a:1")]
        rows = session.rows(name, filters=errors, sort=[Sort("timestamp")], span=hour)
        page = await rows.page(limit=5)
        assert [row["value"] for row in page.rows] == [number / 4 for number in range(1, 11, 2)]
        assert await rows.count() == 120
        result = await session.rows(name, span=hour).export(tmp_path / "all.ndjson")
        assert result.rows == len(stored)
        lines = [json.loads(line) for line in (tmp_path / "all.ndjson").read_text().splitlines()]
        values = sorted(line["value"] for line in lines)
        assert values == sorted(sample.value for sample in stored)
        [answer] = await session.console(f"GET /api/v1/query?query=count({name})&time=2026-11-20T00:30:00Z")
        assert answer.status == 200
        with pytest.raises(UnsupportedOperationError):
            await session.plan(Insert(name, {"value": 1.0}))
