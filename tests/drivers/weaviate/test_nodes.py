"""What the overview shows beside rows: the nodes, and the states of collections, which are those of their shards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.rig import on_fake, on_server

from dragoman_api import ObjectsRequest
from dragoman_api.columns import Condition, ConditionLevel
from dragoman_api.connections import ServerStatus
from dragoman_api.errors import AuthenticationError
from dragoman_weaviate import nodes

if TYPE_CHECKING:
    from drivers.weaviate.rig import Rig


def node(name: str, *shards: tuple[str, str], **fields: Any) -> dict[str, Any]:
    told = [{"class": collection, "name": "s", "vectorIndexingStatus": status} for collection, status in shards]
    return {"name": name, "status": "HEALTHY", "version": "1.38.11", "shards": told or None} | fields


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, Condition("HEALTHY", ConditionLevel.GOOD)),
        ({"status": "UNAVAILABLE"}, Condition("UNAVAILABLE", ConditionLevel.BAD)),
        ({"status": "TIMEOUT", "operationalMode": "ReadWrite"}, Condition("TIMEOUT", ConditionLevel.WARNING)),
        ({"operationalMode": "ReadOnly"}, Condition("HEALTHY ReadOnly", ConditionLevel.WARNING)),
        ({"status": "UNHEALTHY", "operationalMode": "ReadOnly"}, Condition("UNHEALTHY ReadOnly", ConditionLevel.BAD)),
        ({"status": "DREAMING"}, Condition("DREAMING")),
        ({"status": ""}, None),
        ({"status": None, "version": None, "operationalMode": None}, None),
        ({"status": None, "operationalMode": "ReadOnly"}, Condition("ReadOnly", ConditionLevel.WARNING)),
    ],
)
def test_the_state_of_a_node_is_its_status_and_that_it_takes_no_writes(fields, state):
    [told] = Answers(reply({"nodes": [node("a", **fields)]})).run(nodes.read_status(with_shards=False)).nodes
    assert told.state == state


def test_a_collection_is_as_its_worst_shard_on_whatever_node():
    answer = {
        "nodes": [
            node("b", ("Art", "READY"), ("Zoo", "READY")),
            node("a", ("Art", "READONLY"), ("Zoo", "LAZY_LOADING"), ("Mix", "INDEXING"), stats={"objectCount": 7}),
        ]
    }
    answers = Answers(reply(answer))
    status = answers.run(nodes.read_status(with_shards=True))
    assert {name: (state.word, state.level) for name, state in status.objects.items()} == {
        "Art": ("READONLY", ConditionLevel.WARNING),
        "Zoo": ("READY", ConditionLevel.GOOD),
        "Mix": ("INDEXING", ConditionLevel.WARNING),
    }
    assert [(told.name, told.rows) for told in status.nodes] == [("a", 7), ("b", None)]
    assert [asked.path for asked in answers.asked] == ["/v1/nodes?output=verbose"]


def test_one_strange_node_or_shard_hides_no_other():
    odd = [None, {}, {"name": None}, {"name": 3}, {"name": "x", "status": 3}, "node"]
    good = node("a", ("Art", "READY"), stats={"objectCount": 7})
    pairs = ((None, "READY"), ("Zoo", None), ("Art", "READONLY"), ("Art", []))
    shards = [None, 3, *({"class": name, "vectorIndexingStatus": state} for name, state in pairs)]
    answer = {
        "nodes": [*odd, good, node("b", shards=shards, stats=[]), node("c", shards=3, stats={"objectCount": "9"})]
    }
    status = Answers(reply(answer)).run(nodes.read_status(with_shards=True))
    assert [(told.name, told.rows, told.state) for told in status.nodes] == [
        (name, rows, Condition("HEALTHY", ConditionLevel.GOOD)) for name, rows in (("a", 7), ("b", None), ("c", None))
    ]
    assert {name: state.word for name, state in status.objects.items()} == {"Art": "READONLY"}
    assert [(note.code, note.reason.partition(":")[0]) for note in status.notes] == [
        ("nodes-unknown", f"{len(odd)} of {len(odd) + 3} nodes cannot be read")
    ]


@pytest.mark.parametrize("count", [-1, 2**70, None])
def test_a_count_that_is_none_is_unknown_rather_than_an_answer_for_which_the_host_ends_the_driver(count):
    answer = {"nodes": [node("a", stats={"objectCount": count})]}
    status = Answers(reply(answer)).run(nodes.read_status(with_shards=False))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(status), type=ServerStatus) == status
    assert status.nodes[0].rows is None


def test_without_the_right_a_note_says_so_and_nothing_fails():
    forbidden = reply({"error": [{"message": "forbidden"}]}, status=403)
    assert [note.code for note in Answers(forbidden).run(nodes.read_status(with_shards=True)).notes] == ["nodes-hidden"]
    for answer in (reply({}, status=500), reply(b"<html>"), reply({"nodes": 3})):
        status = Answers(answer).run(nodes.read_status(with_shards=False))
        assert ([note.code for note in status.notes], status.nodes) == (["nodes-unknown"], [])
    with pytest.raises(AuthenticationError):
        Answers(reply({"error": []}, status=401)).run(nodes.read_status(with_shards=False))


async def hold_status(wv: Rig) -> None:
    name = await wv.collection({"i": "int"}, [{"i": 1}, {"i": 2}])
    mark = len(wv.log)
    assert (await wv.driver.read_status()).objects == {}  # which collections have tenants is not known yet
    listing = await wv.driver.list_objects(ObjectsRequest())
    has_tenants = any(entry.state == Condition("with tenants") for entry in listing)
    status = await wv.driver.read_status()
    asked = [str(request) for request in wv.log[mark:] if "/v1/nodes" in str(request)]
    assert asked == ["GET /v1/nodes?output=minimal", f"GET /v1/nodes?output={'minimal' if has_tenants else 'verbose'}"]
    [told] = status.nodes
    assert told.state == Condition("HEALTHY", ConditionLevel.GOOD)
    assert told.version
    if not has_tenants:
        assert status.objects[name] == Condition("READY", ConditionLevel.GOOD)


async def test_the_states_of_collections_come_with_the_nodes_in_one_request():
    async with on_fake() as wv:
        await hold_status(wv)


async def test_a_server_with_tenants_is_not_asked_for_the_shards_of_them_all():
    async with on_fake() as wv:
        await wv.collection({"i": "int"}, name="Shared", multiTenancyConfig={"enabled": True})
        await hold_status(wv)


@pytest.mark.live("weaviate")
async def test_the_nodes_of_a_real_server(live_server: dict[str, Any]):
    async with on_server(live_server) as wv:
        if not live_server["engine"].endswith(("-open", "-tenants")):
            pytest.skip("one open server is enough")
        await hold_status(wv)
