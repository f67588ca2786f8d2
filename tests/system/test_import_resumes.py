"""A load through the real driver in its sandbox: killed, interrupted, left by its server, and resumed exactly."""

from __future__ import annotations

import json
import re
import signal

import pytest

from clusters import begun, cluster_of, send
from stranger import connected

pytestmark = pytest.mark.slow

ROWS = 3_050


@pytest.fixture(scope="module")
def cluster():
    with cluster_of("8.19.21") as server:
        yield server


@pytest.fixture(scope="module")
def machine(cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("loader")
    return connected(folder / "home", cwd=folder, port=cluster.port)


@pytest.fixture
def shell(machine, cluster, tmp_path):
    """Yield a shell in a folder of its own with a file of rows, and an empty index `big`."""
    send(cluster, "PUT", "/big", {"mappings": {"properties": {"n": {"type": "long"}, "sku": {"type": "keyword"}}}})
    lines = "".join(f'{{"n": {at}, "sku": "s{at}", "price": {at}.10}}\n' for at in range(ROWS))
    (tmp_path / "rows.ndjson").write_text(lines)
    yield machine.beside(cwd=tmp_path)
    cluster.behave()
    send(cluster, "DELETE", "/big")


def stored(server):
    """Return the numbers of all rows."""
    send(server, "POST", "/big/_refresh")
    answer = json.loads(send(server, "POST", "/big/_search", {"size": 10_000, "track_total_hits": True}))
    assert len(answer["hits"]["hits"]) == answer["hits"]["total"]["value"]
    return sorted(hit["_source"]["n"] for hit in answer["hits"]["hits"])


def stopped(shell, server, *words, kind="hang"):
    """Start a load against a server that stops answering after some bulk requests."""
    load = ("import", "shop", "big", "rows.ndjson", "--batch", "200", *words)
    return begun(shell, server, *load, path="/big/_bulk", after=3, kind=kind)


def resumed(shell, *words, code=0):
    return shell("import", "shop", "big", "rows.ndjson", "--batch", "200", *words, "--resume", "--json", code=code).json


def test_a_load_that_is_killed_is_resumed_without_a_row_too_many_or_too_few(shell, cluster):
    process = stopped(shell, cluster, "--id", "sku")
    process.kill()
    process.communicate(timeout=30)
    cluster.behave()
    assert 0 < len(stored(cluster)) < ROWS
    report = resumed(shell, "--id", "sku")
    assert (report["counts"]["applied"], report["resumed"], report["rows"]) == (ROWS, 1, ROWS)
    assert stored(cluster) == [*range(ROWS)]
    assert sorted(path.name for path in shell.cwd.iterdir()) == ["rows.ndjson"]


def test_rows_without_ids_that_were_under_way_are_told_as_in_doubt_and_never_doubled(shell, cluster):
    process = stopped(shell, cluster)
    process.kill()
    process.communicate(timeout=30)
    cluster.behave()
    before = stored(cluster)
    report = resumed(shell, code=4)
    after = stored(cluster)
    doubt = report["counts"]["unknown"]
    assert report["counts"]["applied"] + doubt == ROWS
    assert 0 < doubt <= 800
    assert len(after) == len(set(after))
    told = [json.loads(line) for line in (shell.cwd / "rows.ndjson.rejected.ndjson").read_text().splitlines()]
    assert {each["code"] for each in told} == {"unknown"}
    assert set(after) | {each["data"]["n"] for each in told} == {*range(ROWS)}
    assert set(before) <= set(after)


def test_an_interrupted_load_goes_on_by_the_command_it_names(shell, cluster):
    process = stopped(shell, cluster, "--id", "sku")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
    cluster.behave()
    [line] = [line for line in said.splitlines() if "to continue: " in line]
    done = shell(line.partition("to continue: ")[2])
    assert f"applied {ROWS:,}" in done.err
    assert stored(cluster) == [*range(ROWS)]


def test_a_server_that_dies_leaves_counts_the_exit_code_and_a_way_to_go_on(shell, cluster):
    process = stopped(shell, cluster, "--id", "sku", kind="drop")
    cluster.misbehave("drop")
    _, said = process.communicate(timeout=50)
    assert process.returncode == 3, said
    found = re.search(r"stopped after ([\d,]+) rows: applied ([\d,]+) .*?unknown ([\d,]+)\n", said)
    assert found, said
    assert int(found[3].replace(",", "")) > 0
    assert "--resume" in said
    cluster.behave()
    assert resumed(shell, "--id", "sku")["counts"]["applied"] == ROWS
    assert stored(cluster) == [*range(ROWS)]
