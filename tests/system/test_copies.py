"""Copies between two clusters of different versions, through two sandboxes and a pipe."""

from __future__ import annotations

import json

import pytest

from clusters import cluster_of, send
from stranger import stranger

pytestmark = pytest.mark.slow

ROWS = 2_500


@pytest.fixture(scope="module")
def clusters():
    with cluster_of("7.10.2") as old, cluster_of("8.19.21") as new:
        yield old, new


@pytest.fixture(scope="module")
def machine(clusters, tmp_path_factory):
    folder = tmp_path_factory.mktemp("copier")
    shell = stranger(folder / "home", cwd=folder)
    for name, cluster in zip(("old", "new"), clusters, strict=True):
        shell(f"dragoman connections add {name} --type elasticsearch --port {cluster.port} --auth none --yes")
    return shell


@pytest.fixture
def shell(machine, clusters, tmp_path):
    """Yield a shell in a folder of its own, an index `orders` in both clusters, and rows in the older one."""
    for cluster in clusters:
        send(cluster, "PUT", "/orders", {"mappings": {"properties": {"n": {"type": "long"}}}})
    lines = "".join(f'{{"index":{{"_id":"a/{at}"}}}}\n{{"n":{at},"price": {at}.10}}\n' for at in range(ROWS))
    send(clusters[0], "POST", "/orders/_bulk?refresh=true", lines)
    yield machine.beside(cwd=tmp_path)
    for cluster in clusters:
        cluster.behave()
        send(cluster, "DELETE", "/orders")


def stored(server):
    send(server, "POST", "/orders/_refresh")
    hits = json.loads(send(server, "POST", "/orders/_search", {"size": 10_000}), parse_float=str)["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits}


def test_a_copy_has_every_row_under_its_id_with_its_digits(shell, clusters):
    done = shell("dragoman copy old orders new orders --json")
    assert done.json["counts"]["applied"] == ROWS
    assert stored(clusters[1]) == stored(clusters[0])
    assert list(shell.cwd.iterdir()) == []
    done = shell("dragoman copy old orders new orders --filter 'n < 10' --on-conflict skip --json")
    assert (done.json["counts"]["skipped"], done.json["rows"]) == (10, 10)
    done = shell("dragoman copy old orders new orders --filter 'n < 10' --json", code=4)
    assert done.json["counts"]["conflict"] == 10
    assert len((shell.cwd / "orders.rejected.ndjson").read_text().splitlines()) == 10


def test_a_copy_makes_its_target_like_its_source(shell, clusters):
    send(clusters[1], "DELETE", "/orders")
    assert "object-not-found" in shell("dragoman copy old orders new orders", code=None).err
    done = shell("dragoman copy old orders new orders --create")
    assert "orders does not exist and is made: PUT /orders" in done.err
    assert stored(clusters[1]) == stored(clusters[0])
    old, new = (json.loads(send(each, "GET", "/orders/_mapping"))["orders"]["mappings"] for each in clusters)
    assert new["properties"]["n"] == old["properties"]["n"] == {"type": "long"}


def test_a_source_that_fails_in_the_middle_is_an_error_and_no_complete_copy(shell, clusters):
    clusters[0].misbehave("garbage", on="/_search", after=2)
    clusters[0].misbehave("garbage", on="/_search/scroll", after=1)
    done = shell("dragoman copy old orders new orders", code=None)
    assert done.code in (1, 3)
    assert "error[" in done.err
    assert "not written" not in done.err


def test_a_target_that_refuses_ends_the_copy_at_once(shell, clusters):
    clusters[1].misbehave("drop", on="/orders/_bulk")
    clusters[1].misbehave("drop")
    done = shell("dragoman copy old orders new orders", code=3)
    assert "error[connection-failed]" in done.err


def test_rows_are_not_copied_onto_themselves(shell):
    assert "onto themselves" in shell("dragoman copy old orders old orders", code=2).err
