"""What the overview shows beside rows: the states of indices, and the nodes with what they do and hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, on_fake
from drivers.replies import Answers, reply

from dragoman_api import ObjectsRequest
from dragoman_api.columns import Condition, ConditionLevel
from dragoman_api.connections import ServerNode, ServerStatus
from dragoman_api.errors import AuthenticationError
from dragoman_querydsl import nodes, objects

if TYPE_CHECKING:
    from drivers.elasticsearch.rig import Rig


GREEN = reply({"status": "green", "active_shards": 3, "unassigned_shards": 0})


def listed(**fields: str | None) -> dict[str, Any]:
    return {"name": "n", "node.role": None, "master": "-", "version": "8.19.21"} | {
        name.replace("_", "."): value for name, value in fields.items()
    }


@pytest.mark.parametrize(
    ("letters", "master", "roles"),
    [
        ("cdfhilmrstw", "*", "elected master, data, ingest, machine learning, transform, remote clusters"),
        ("dim", "-", "master-eligible, data, ingest"),
        ("hs", "-", "hot data, content data"),
        ("mv", "-", "master-eligible, voting only"),
        ("-", "-", "coordinating"),
        ("", "-", ""),
    ],
)
def test_the_roles_of_a_node_are_words_and_a_role_of_all_data_stands_for_every_tier(letters, master, roles):
    row = listed(master=master) | {"node.role": letters}
    [node] = Answers(reply([row]), GREEN).run(nodes.read_status()).nodes
    assert node.roles == roles


def test_a_node_tells_how_full_it_is_and_what_is_no_number_is_unknown():
    rows = [
        listed(heap_current="10", heap_max="40", disk_used="7", disk_total="9"),
        listed(heap_current="1.2gb", heap_max=None, disk_used="-1", disk_total="\u0661"),
    ]
    answers = Answers(reply(rows), GREEN)
    full, strange = answers.run(nodes.read_status()).nodes
    assert full == ServerNode(name="n", version="8.19.21", memory=10, memory_limit=40, disk=7, disk_limit=9)
    assert strange == ServerNode(name="n", version="8.19.21")
    assert len(answers.asked) == 2
    assert len(answers.together) == 1


def test_without_the_right_or_on_a_service_without_nodes_a_note_says_so_and_nothing_fails():
    refused = {"error": {"type": "security_exception", "reason": "action is unauthorized"}, "status": 403}
    [note] = Answers(reply(refused, status=403), reply(refused, status=403)).run(nodes.read_status()).notes
    assert note.code == "nodes-hidden"
    gone = {"error": {"type": "api_not_available_exception", "reason": "not available"}, "status": 410}
    for answer in (reply(gone, status=410), reply(b"<html>"), reply({"nodes": 1})):
        status = Answers(answer, answer).run(nodes.read_status())
        assert ([note.code for note in status.notes], status.nodes, status.state) == (["nodes-unknown"], [], None)
    rejected = reply({"error": {"type": "security_exception", "reason": "no"}}, status=401)
    for answers in ((rejected, GREEN), (reply([]), rejected)):
        with pytest.raises(AuthenticationError):
            Answers(*answers).run(nodes.read_status())


@pytest.mark.parametrize(
    ("health", "state", "reasons"),
    [
        ({"status": "green", "active_shards": 3, "unassigned_shards": 0}, Condition("green", ConditionLevel.GOOD), []),
        (
            {"status": "yellow", "active_shards": 1_999, "unassigned_shards": 1},
            Condition("yellow", ConditionLevel.WARNING),
            ["1 of 2,000 shards are on no node: they are copies, so no row is missing"],
        ),
        (
            {"status": "red", "active_shards": 0, "unassigned_shards": 4},
            Condition("red", ConditionLevel.BAD),
            ["4 of 4 shards are on no node: some hold rows that no page can show now"],
        ),
        (
            {"status": "red", "active_shards": 5, "initializing_shards": 2, "unassigned_shards": 3},
            Condition("red", ConditionLevel.BAD),
            ["3 of 10 shards are on no node: some hold rows that no page can show now"],
        ),
        (
            {"status": "mauve", "active_shards": 1, "unassigned_shards": 1},
            Condition("mauve"),
            ["1 of 2 shards are on no node"],
        ),
        ({"status": "mauve"}, Condition("mauve"), []),
        ({"status": None}, None, []),
        ([], None, []),
    ],
)
def test_the_health_of_the_cluster_comes_with_its_reason_and_hides_no_node(health, state, reasons):
    status = Answers(reply([listed()]), reply(health)).run(nodes.read_status())
    assert (status.state, [note.reason for note in status.notes]) == (state, reasons)
    assert len(status.nodes) == 1


@pytest.mark.parametrize(
    ("status", "health", "state"),
    [
        ("open", "green", Condition("green", ConditionLevel.GOOD)),
        ("open", "yellow", Condition("yellow", ConditionLevel.WARNING)),
        ("open", "red", Condition("red", ConditionLevel.BAD)),
        ("open", "mauve", Condition("mauve")),
        ("close", "green", Condition("closed")),
        ("close", "red", Condition("red", ConditionLevel.BAD)),
        ("close", None, Condition("closed")),
        ("open", None, None),
    ],
)
def test_the_state_of_an_index_is_its_health_unless_it_is_closed(status, health, state):
    row = {"index": "a", "status": status, "health": health, "store.size": "1"}
    [entry] = Answers(reply([row])).run(objects.list_objects(ObjectsRequest(counts=False)))
    assert entry.state == state


class StatusRules:
    async def test_the_state_of_each_index_comes_with_its_size_and_without_a_further_request(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}], name="a")
        shut = await es.index({"n": {"type": "long"}}, [{"n": 1}], name="shut")
        await es.call("POST", f"/{shut}/_close?wait_for_active_shards=1")
        states = {entry.name: entry.state for entry in await es.driver.list_objects(ObjectsRequest())}
        assert states[name] in (Condition("green", ConditionLevel.GOOD), Condition("yellow", ConditionLevel.WARNING))
        assert states[shut] == Condition("closed")

    async def test_the_cluster_and_its_nodes_are_read_with_two_requests(self, es: Rig) -> None:
        mark = len(es.log)
        status = await es.driver.read_status()
        assert sorted(str(sent).partition("?")[0] for sent in es.log[mark:]) == [
            "GET /_cat/nodes",
            "GET /_cluster/health",
        ]
        assert status.state is not None
        assert status.state.level in (ConditionLevel.GOOD, ConditionLevel.WARNING)
        assert {note.code for note in status.notes} <= {"shards-unassigned"}
        for node in status.nodes:
            assert node.name
            assert node.version == ".".join(map(str, es.version))
            assert "data" in node.roles
            assert 0 < (node.memory or 0) <= (node.memory_limit or 0)
            assert 0 < (node.disk or 0) <= (node.disk_limit or 0)
        assert sum("elected master" in node.roles for node in status.nodes) == 1


class TestStatusOnFake(StatusRules, OnFake):
    pass


class TestStatusOnServer(StatusRules, OnServer):
    pass


async def test_a_server_that_is_silent_about_its_nodes_leaves_the_list_as_it_is():
    async with on_fake("8.19.21") as es:
        assert es.fake is not None
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}])
        es.fake.misbehave("answer", on="/_cat/nodes", times=9, status=500, body={"error": "broken"})
        assert (await es.driver.read_status()).nodes == ServerStatus().nodes
        assert name in {entry.name for entry in await es.driver.list_objects(ObjectsRequest())}
