"""Changes of one document: each has an outcome, and no revision is stale because of an earlier change of the set."""

from __future__ import annotations

import pytest
from dragoman_couch.driver import Driver
from fake import serving

from dragoman_api import Delete, Insert, OutcomeStatus, PlanRequest, Profile, RowKey, Update

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


async def carried_out(open_driver, *changes):
    """Plan and apply changes, and return the statuses by change, the requests and the documents."""
    async with serving() as (fake, proxy):
        profile = Profile(name="fake", type="couchdb", host=proxy.host, port=proxy.port)
        async with open_driver(Driver, profile) as driver:
            plan = await driver.plan_change(PlanRequest(changes=list(changes)))
            outcomes = [*plan.refusals, *await driver.apply_change(plan)]
        statuses = [each.status for each in sorted(outcomes, key=lambda each: each.change)]
        return statuses, plan.planned, fake.databases["scratch"]


async def test_two_updates_of_one_document_are_one_request(open_driver):
    first = RowKey("scratch", "first")
    statuses, planned, documents = await carried_out(
        open_driver, Update(first, {"price": 2}), Update(first, {"stock": 3})
    )
    assert (statuses, [each.changes for each in planned]) == ([OutcomeStatus.APPLIED] * 2, [[0, 1]])
    assert (documents["first"]["price"], documents["first"]["stock"]) == (2, 3)


async def test_a_new_document_can_be_changed_in_the_same_set(open_driver):
    new, gone = RowKey("scratch", "new"), RowKey("scratch", "gone")
    statuses, _, documents = await carried_out(
        open_driver,
        Insert("scratch", {"price": 1}, "new"),
        Update(new, {"price": 2}),
        Delete(gone),
    )
    assert statuses == [OutcomeStatus.APPLIED, OutcomeStatus.APPLIED, OutcomeStatus.REFUSED]
    assert documents["new"]["price"] == 2
