"""Updates of many rows, without a server: what is sent, and what is said of each row."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aiohttp import web
from drivers.solr.test_strange_answers import USUAL, connected
from msgspec.structs import replace

from dragoman_api import Insert, Outcome, OutcomeStatus, PlanRequest
from dragoman_api.changes import InsertBatch
from dragoman_solr import writing

if TYPE_CHECKING:
    import pytest

KEYS = [*"abcdefgh"]
APPLIED, CONFLICT, FAILED, UNKNOWN = (OutcomeStatus(name) for name in ("applied", "conflict", "failed", "unknown"))


class Updates:
    """A server that carries out updates as Solr does: it stops at a row that it refuses, and passes over conflicts."""

    def __init__(self, *, refused: set[str] = frozenset(), taken: set[str] = frozenset(), cut: int = 0) -> None:  # type: ignore[assignment]
        self.refused, self.taken, self.cut = refused, taken, cut
        self.documents: dict[str, dict[str, Any]] = {}
        self.bodies: list[list[str]] = []

    async def answer(self, request: web.Request) -> web.Response | None:
        path, body = request.path.rpartition("/")[2], await request.text()
        if path == "get":
            wanted = json.loads(body)["params"]["id"]
            documents = [self.documents[key] for key in wanted if key in self.documents]
            return web.json_response({"response": {"numFound": len(documents), "docs": documents}})
        if path != "update":
            return None
        rows = json.loads(body).get("add", [])
        self.bodies.append([row["id"] for row in rows])
        adds: list[Any] = []
        for row in rows:
            if row["id"] in self.refused:
                error = {"msg": f"wrong: {row['id']}"}
                return web.json_response({"adds": adds, "error": error}, status=400)
            if row["id"] not in self.taken:
                adds += [row["id"], 7]
                self.documents[row["id"]] = row
        if len(self.bodies) == self.cut:
            assert request.transport is not None
            request.transport.close()
        return web.json_response({"responseHeader": {"status": 0}, "adds": adds})


async def load(server: Updates, keys: list[str] = KEYS, **options: Any) -> tuple[list[str], dict[str, Outcome]]:
    """Load rows, and return the paths of the requests, and the outcome of each row by its key."""
    batch = InsertBatch("books", values=[{"n_i": 1}] * len(keys), ids=[*keys])
    async with connected(server.answer) as driver:
        plan = await driver.plan_change(PlanRequest(changes=batch, bulk=True, **options))
        outcomes = await driver.apply_change(replace(plan, changes=batch, bulk=True))
    by_key = {keys[outcome.change + at]: outcome for outcome in outcomes for at in range(outcome.rows)}
    assert sum(outcome.rows for outcome in outcomes) == len(keys) == len(by_key)
    return [planned.request.path.partition("?")[2] for planned in plan.planned], by_key


def statuses(outcomes: dict[str, Outcome]) -> dict[str, OutcomeStatus]:
    """Return the rows that were not applied."""
    return {key: outcome.status for key, outcome in outcomes.items() if outcome.status is not APPLIED}


async def test_a_row_that_the_server_refuses_costs_no_other_row() -> None:
    """S30: the rows that were not written are sent again in halves, and each row is written once."""
    server = Updates(refused={"d", "g"})
    _, outcomes = await load(server)
    assert statuses(outcomes) == {"d": FAILED, "g": FAILED}
    assert "wrong: d" in outcomes["d"].reason
    assert outcomes["g"].id == "g"
    assert server.bodies[0] == KEYS
    halves = [[*"de"], ["d"], ["e"], [*"fgh"], ["g"], ["h"]]
    assert server.bodies[1:] == halves
    assert {*server.documents} == {*KEYS} - {"d", "g"}


async def test_a_row_that_exists_is_a_conflict_and_says_whether_it_holds_the_change() -> None:
    """S26, S30: passed over without a word by the server, and read afterwards."""
    server = Updates(taken={*"bef"})
    values: dict[str, Any] = {"b": {"n_i": 1}, "e": {"n_i": 2}, "f": {"n_i": 1, "more_i": 1}}
    server.documents = {key: {"id": key, "_version_": 3, **members} for key, members in values.items()}
    _, outcomes = await load(server)
    assert statuses(outcomes) == dict.fromkeys("bef", CONFLICT)
    assert [(outcomes[key].holds, outcomes[key].id) for key in "bef"] == [(True, "b"), (False, "e"), (False, "f")]
    assert "exists" in outcomes["e"].reason
    assert server.bodies == [KEYS]


async def test_an_error_with_conflicts_before_it_tells_both() -> None:
    """S30: what the answer does not name may be either, so it is sent again."""
    _, outcomes = await load(Updates(taken={"a", "c"}, refused={"d"}))
    assert statuses(outcomes) == {"a": CONFLICT, "c": CONFLICT, "d": FAILED}


async def test_of_a_lost_answer_each_row_is_looked_for() -> None:
    """S26: those that were written are applied, those of a later request are sent."""
    server = Updates(taken={"c"}, cut=1)
    _, outcomes = await load(server)
    assert statuses(outcomes) == {"c": UNKNOWN}
    assert outcomes["c"].id == "c"
    assert "no answer" in outcomes["a"].reason
    assert server.bodies == [KEYS]


async def test_an_error_of_no_row_is_sent_once() -> None:
    """S30: a missing core or right is the same for every row."""
    paths: list[str] = []

    def answer(request: web.Request) -> web.Response | None:
        paths.append(request.path)
        return web.json_response({"error": {"msg": "no"}}, status=403) if "update" in request.path else None

    changes: list[Any] = [Insert("books", {"n_i": 1}, id=key) for key in KEYS]
    async with connected(answer) as driver:
        plan = await driver.plan_change(PlanRequest(changes=changes))
        outcomes = await driver.apply_change(replace(plan, changes=changes))
    assert [outcome.status for outcome in outcomes] == [FAILED] * 8
    assert sum("update" in path for path in paths) == 1


async def test_what_was_written_is_committed_although_the_last_request_was_refused() -> None:
    """S25: an update that is answered with an error does not commit."""
    cases: list[tuple[bool, list[list[str]]]] = [(True, [[]]), (False, [])]
    for last, committed in cases:
        server = Updates(refused={"h"})
        _, outcomes = await load(server, last=last)
        assert statuses(outcomes) == {"h": FAILED}
        assert [body for body in server.bodies if not body] == committed
        assert (server.bodies[-1] == []) is last
    server = Updates(refused={"h"})
    await load(server, ["h"], last=True)
    assert server.bodies == [["h"]]


async def test_a_load_is_divided_and_only_its_last_request_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """S25, S30: by rows and by length."""
    monkeypatch.setattr(writing, "ROWS", 3)
    for last, commits in ((False, [False] * 3), (True, [False, False, True])):
        server = Updates()
        queries, outcomes = await load(server, last=last)
        assert ([len(body) for body in server.bodies], statuses(outcomes)) == ([3, 3, 2], {})
        assert ["commit=true" in query for query in queries] == commits
        assert all("commitWithin=10000" in query and "failOnVersionConflicts=false" in query for query in queries)
    monkeypatch.setattr(writing, "LONGEST", 70)
    server = Updates()
    await load(server)
    assert [len(body) for body in server.bodies] == [2, 2, 2, 2]


async def test_a_set_of_changes_reads_and_writes_its_rows_together() -> None:
    """S25, S30: one look at all documents that are changed, and one update, which commits."""
    server = Updates()
    server.documents = {key: {"id": key, "n_i": 1, "_version_": 5} for key in KEYS}
    sent: list[tuple[str, Any]] = []

    async def answer(request: web.Request) -> web.Response | None:
        if request.method == "POST":
            sent.append((request.path_qs, json.loads(await request.text())))
        return await server.answer(request)

    changes: list[Any] = [Insert("books", {"n_i": 2}, id=key, replace=True) for key in KEYS]
    async with connected(answer) as driver:
        plan = await driver.plan_change(PlanRequest(changes=changes, undo=True))
        await driver.apply_change(replace(plan, changes=changes))
    assert [path.partition("?")[0] for path, _ in sent] == ["/solr/books/get", "/solr/books/update"]
    assert sent[0][1]["params"]["id"] == KEYS
    assert "commit=true" in sent[1][0]
    assert sent[1][1]["add"] == [{"id": key, "_version_": 5, "n_i": 2} for key in KEYS]
    assert [(change.id, change.values["n_i"]) for change in plan.undo] == [(key, 1) for key in KEYS]


async def test_two_spellings_of_one_key_are_one_document() -> None:
    """S30: an update names a document once, so the later change is refused."""
    schema = USUAL["schema"]["schema"] | {"uniqueKey": "n_i"}

    def answer(request: web.Request) -> web.Response | None:
        return web.json_response({"schema": schema}) if request.path.endswith("/schema") else None

    changes: list[Any] = [Insert("books", {}, id=key) for key in ("5", "05", "6")]
    async with connected(answer) as driver:
        plan = await driver.plan_change(PlanRequest(changes=changes))
    assert [(outcome.change, "spelling" in outcome.reason) for outcome in plan.refusals] == [(1, True)]
    assert [planned.rows for planned in plan.planned] == [[[0], [2]]]
