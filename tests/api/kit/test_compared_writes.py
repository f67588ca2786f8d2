"""Whole rows of a server that compares when it writes: nothing lies between the look at a row and the write."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from dragoman_api import Column, Delete, Description, HttpRequest, Insert, OutcomeStatus, RowKey, Update, hookimpl
from dragoman_api.changes import PlanRequest
from dragoman_api.columns import Role, Written
from dragoman_api.kit.writing import WholeRows

COLUMNS = [Column(name="id", type="", role=Role.KEY, written=Written.INSERT), Column(name="n", type="")]
KEY = RowKey("cells", "a")


class Looking(WholeRows):
    """A server of one object; `meanwhile` is what another writer does just before a request arrives."""

    product = "Cells"

    def __init__(self, **rows):
        self.rows, self.meanwhile = rows, None

    @hookimpl
    async def describe_object(self, name):
        return Description(object=name, columns=COLUMNS)

    async def stored(self, key):
        return self.rows.get(key.text)

    def write_request(self, key, document):
        return HttpRequest("PUT", f"/{key.text}", json.dumps({"row": document}))

    async def send(self, request, *, read=None):
        if self.meanwhile is not None:
            self.rows["a"], self.meanwhile = self.meanwhile, None
        body = json.loads(request.body)
        if "expected" in body and self.rows.get("a") != body["expected"]:
            return SimpleNamespace(status=200, body=b'{"written": false}')
        self.rows["a"] = body["row"]
        return SimpleNamespace(status=200, body=b'{"written": true}')


class Comparing(Looking):
    """The same server, asked to compare."""

    def compared_request(self, key, document, stored):
        return HttpRequest("PUT", f"/{key.text}", json.dumps({"row": document, "expected": stored}))

    def lost_comparison(self, reply):
        return not json.loads(reply.body)["written"]


async def carry_out(driver, change, meanwhile=None):
    plan = await driver.plan_change(PlanRequest(changes=[change]))
    driver.meanwhile = meanwhile
    [outcome] = await driver.apply_change(replace(plan, changes=[change]))
    return plan, outcome


CHANGES = [Update(KEY, {"n": "new"}), Delete(KEY), Insert("cells", {"n": "new"}, id="a", replace=True)]


@pytest.mark.parametrize("change", CHANGES)
async def test_a_row_that_changed_between_look_and_write_is_a_conflict_and_stays(change):
    driver = Comparing(a={"n": "old"})
    plan, outcome = await carry_out(driver, change, {"n": "another's"})
    assert (outcome.status, outcome.id) == (OutcomeStatus.CONFLICT, "a")
    assert driver.rows == {"a": {"n": "another's"}}
    assert plan.notes == []


async def test_a_row_that_came_between_look_and_insert_is_a_conflict():
    driver = Comparing()
    _, outcome = await carry_out(driver, Insert("cells", {"n": "new"}, id="a"), {"n": "another's"})
    assert (outcome.status, driver.rows) == (OutcomeStatus.CONFLICT, {"a": {"n": "another's"}})


async def test_a_row_that_is_as_it_was_read_is_written():
    driver = Comparing(a={"n": "old"})
    _, outcome = await carry_out(driver, Update(KEY, {"n": "new"}))
    assert (outcome.status, driver.rows) == (OutcomeStatus.APPLIED, {"a": {"n": "new"}})


async def test_a_server_that_compares_nothing_is_said_to_and_may_be_overtaken():
    driver = Looking(a={"n": "old"})
    plan, outcome = await carry_out(driver, Update(KEY, {"n": "new"}), {"n": "another's"})
    assert [note.code for note in plan.notes] == ["unguarded"]
    assert (outcome.status, driver.rows) == (OutcomeStatus.APPLIED, {"a": {"n": "new"}})
