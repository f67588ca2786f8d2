"""The OpenSearch driver from the bundled registry, installed by opening a connection, on the real server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from drivers.opensearch.rig import on_server

from dragoman import Filter, Insert, Runtime, SavedConnection, Sort, Update
from dragoman_api.changes import OutcomeStatus

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.live("opensearch"), pytest.mark.timeout(180)]


async def test_opening_a_connection_installs_the_driver_and_uses_it(
    live_server: dict[str, Any], tmp_path: Path
) -> None:
    """P1, P3: pages, counts, changes, exports and the console, without an install step."""
    runtime = Runtime(spare=False)
    values = {"host": live_server["host"], "port": live_server["port"], "auth_method": "none"}
    runtime.connections.save(SavedConnection(name="search", type="opensearch", values=values))
    properties = {"title": {"type": "keyword"}, "sold": {"type": "integer"}, "more": {"type": "flat_object"}}
    documents = [{"title": f"Book {at}", "sold": at, "more": {"shelf": f"s{at % 3}"}} for at in range(60)]
    async with on_server(live_server) as rig, runtime, runtime.open("search") as session:
        name = await rig.index(properties, documents)
        assert (session.plugin, session.server.product) == ("opensearch", "OpenSearch")
        assert session.server.version == live_server["version"]
        assert session.sandbox == "full"
        assert name in [item.name for item in await session.objects()]
        filters = [Filter("sold", ">=", 50), Filter("more.shelf", "=", "s2")]
        rows = session.rows(name, filters=filters, sort=[Sort("sold", descending=True)])
        assert [row["_id"] for row in (await rows.page()).rows] == ["59", "56", "53", "50"]
        assert await rows.count() == 4
        result = await session.rows(name).export(tmp_path / "all.ndjson")
        assert result.rows == 60
        lines = (tmp_path / "all.ndjson").read_text().splitlines()
        assert sorted(json.loads(line)["sold"] for line in lines) == [*range(60)]
        key = (await rows.page(limit=1)).keys[0]
        plan = await session.plan(Update(key, {"sold": 100}), Insert(name, {"title": "New"}, id="new"))
        assert [outcome.status for outcome in await session.apply(plan)] == [OutcomeStatus.APPLIED] * 2
        [stale] = await session.apply(await session.plan(Update(key, {"sold": 101})))
        assert stale.status is OutcomeStatus.CONFLICT
        assert await session.rows(name).count() == 61
        answers = await session.console(f"GET /_cat/indices/{name}?format=json")
        assert [row["index"] for row in answers[0].page.rows] == [name]
