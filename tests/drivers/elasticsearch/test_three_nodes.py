"""Three real Elasticsearch nodes, of which one dies while a driver works: reads go on, no write is sent twice (E6)."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.rig import connected, profile
from servers.elasticsearch import lines
from servers.elasticsearch.node import Node, Security
from servers.engines import Options
from servers.jdks import find_jdk

from dragoman_api import ExportRequest, Insert, OutcomeStatus
from dragoman_api.errors import ConnectionFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.live("elasticsearch"), pytest.mark.timeout(600)]

ENGINE = "elasticsearch-8.19.21-plain"
ROWS = 50


@pytest.fixture(scope="module")
def nodes(live_server: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """Run a cluster of three nodes beside the engine that runs; yield the record of each."""
    if live_server["engine"] != ENGINE:
        pytest.skip(f"one cluster is enough: it runs beside {ENGINE}")
    jdk = find_jdk(lines.V8_19.java)
    assert jdk is not None
    options = Options(heap="256m", patience=120)
    with ExitStack() as running:
        records, cluster = list[dict[str, Any]](), list[Node]()
        for number in range(3):
            folder = tmp_path_factory.mktemp(f"node-{number}")
            node = Node(ENGINE, lines.V8_19, security=Security.NONE, folder=folder, options=options, cluster=cluster)
            records.append(running.enter_context(node.running(jdk))[1])
            cluster.append(node)
        yield records


async def test_E6_one_of_three_nodes_dies_and_reads_and_writes_go_on(nodes: list[dict[str, Any]]) -> None:
    dying, *others = nodes
    hosts = ",".join(f"127.0.0.1:{record['port']}" for record in others)
    given = profile(dying["url"], options={"hosts": hosts})
    async with connected(given, version=dying["version"]) as es:
        rows: list[object] = [{"n": number} for number in range(ROWS)]
        name = await es.index({"n": {"type": "long"}}, rows)
        await es.http.request("PUT", f"/{name}/_settings", body='{"index.number_of_replicas": 2}')
        health = f"/_cluster/health/{name}?wait_for_nodes=3&wait_for_status=green&timeout=120s"
        assert (await es.http.get_json(health, timeout=130))["status"] == "green"
        assert len(await es.ids(name)) == ROWS

        # A node that hangs may have carried out a write: it is not sent to the next one.
        os.kill(dying["pid"], signal.SIGSTOP)
        try:
            with pytest.raises(ConnectionFailedError) as caught:
                await es.http.request("POST", f"/{name}/_doc/hung", body='{"n": -1}', timeout=4)
            assert caught.value.details["sent"] is True
            assert f"127.0.0.1:{others[0]['port']}" not in caught.value.message
        finally:
            os.kill(dying["pid"], signal.SIGKILL)

        # A dead node certainly gets nothing: reads and writes go to the next one.
        assert len({*await es.ids(name)} - {"hung"}) == ROWS
        [outcome] = await es.apply(Insert(object=name, id="after", values={"n": ROWS}))
        assert outcome.status is OutcomeStatus.APPLIED, outcome
        assert "after" in await es.ids(name)
        health_after = await es.driver.ping()
        assert health_after.ok
        assert f"127.0.0.1:{dying['port']}: " in " ".join(note.reason for note in es.http.faults)
        exported = sum([part.rows async for part in es.driver.export_rows(ExportRequest(object=name))])
        assert exported == len(await es.ids(name))
