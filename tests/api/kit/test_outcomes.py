"""Outcomes: unknown whenever the server may have done it, failed only if it certainly did not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import ConnectionFailedError, DragomanError, HttpRequest, Outcome, OutcomeStatus, Plan, PlannedRequest
from dragoman_api.errors import QueryError
from dragoman_api.kit.exchanges import unsure
from dragoman_api.kit.row_changes import Outcomes, before_writing, status_of, unknown_note

APPLIED, FAILED, CONFLICT, UNKNOWN = (OutcomeStatus(each) for each in ("applied", "failed", "conflict", "unknown"))


def outcome(status: OutcomeStatus) -> Outcome:
    return Outcome(change=99, status=status, id="x")


@pytest.mark.parametrize("turned_away", [False, True])
def test_only_a_refusal_has_certainly_failed(turned_away: bool) -> None:
    for status in range(1_000):
        found = status_of(status, turned_away=turned_away)
        assert (found is APPLIED) == (status in (200, 201, 204)), status
        refused = (300 <= status < 500 and status != 408) or (turned_away and status >= 500)
        assert (found is FAILED) == refused, status
        assert status < 300 or (found is UNKNOWN) == unsure(status, turned_away=turned_away), status


def test_an_interim_answer_is_unsure_and_a_final_one_is_not() -> None:
    assert [unsure(status) for status in (199, 200, 299, 499, 500)] == [True, False, False, False, True]


@pytest.mark.parametrize(("status", "proved"), [(409, CONFLICT), (412, FAILED), (202, UNKNOWN), (207, UNKNOWN)])
def test_an_answer_that_promises_or_tells_in_part_proves_nothing(status: int, proved: OutcomeStatus) -> None:
    assert status_of(status, conflicts=(409,)) is proved


def failing(error: Exception | None) -> None:
    if error is not None:
        raise error


LOST = (
    None,
    ConnectionFailedError("the answer was cut", details={"sent": True}),
    ConnectionFailedError("nothing is said of sending"),
    QueryError("the request cannot be written", details={"sent": False}),
    KeyError("rev"),
    msgspec.DecodeError("truncated"),
)


@given(st.lists(st.tuples(st.sampled_from(LOST), st.sampled_from([APPLIED, FAILED, CONFLICT, UNKNOWN]))))
def test_each_change_has_one_outcome_that_claims_no_more_than_is_known(
    sent: list[tuple[Exception | None, OutcomeStatus]],
) -> None:
    outcomes = Outcomes()
    for number, (error, said) in enumerate(sent):
        with outcomes.sending([2 * number, 2 * number + 1], row="x"):
            failing(error)
            outcomes.tell([2 * number, 2 * number + 1], outcome(said))
    assert [each.change for each in outcomes.told] == list(range(2 * len(sent)))
    for number, (error, said) in enumerate(sent):
        certain = isinstance(error, QueryError)
        wanted = said if error is None else FAILED if certain else UNKNOWN
        assert {outcomes.told[2 * number + at].status for at in (0, 1)} == {wanted}


@given(st.lists(st.sampled_from([APPLIED, FAILED, CONFLICT, UNKNOWN]), min_size=1))
def test_only_a_proof_ends_a_doubt(said: list[OutcomeStatus]) -> None:
    outcomes = Outcomes()
    doubt = False
    for each in said:
        outcomes.tell([0], outcome(each))
        doubt = each is UNKNOWN or (doubt and each is not APPLIED)
        assert outcomes.of(0).status is (UNKNOWN if doubt else each)


def test_a_later_doubt_says_why_and_a_refusal_after_a_doubt_does_not() -> None:
    outcomes = Outcomes()
    for status, reason, last in ((UNKNOWN, "a", "a"), (UNKNOWN, "b", "b"), (FAILED, "c", "b"), (APPLIED, "", "")):
        outcomes.tell([0, 1], Outcome(change=9, status=status, reason=reason))
        assert [(each.change, each.reason) for each in outcomes.told] == [(0, last), (1, last)]


def test_a_plan_of_which_nothing_was_sent_can_be_sent_again() -> None:
    unsent: dict[str, Any] = {"details": {"sent": False}}
    outcomes = Outcomes()
    with pytest.raises(ConnectionFailedError), outcomes.sending([0]):
        raise ConnectionFailedError("refused", **unsent)
    assert outcomes.told == []
    outcomes.tell([0], outcome(APPLIED))
    with outcomes.sending([1]):
        raise ConnectionFailedError("refused", **unsent)
    assert [each.status for each in outcomes.told] == [APPLIED, FAILED]


def test_a_change_of_which_nothing_is_told_is_in_doubt() -> None:
    request = HttpRequest("PUT", "/")
    plan = Plan(planned=[PlannedRequest(request=request, changes=[2]), PlannedRequest(request=request, changes=[0, 1])])
    outcomes = Outcomes()
    outcomes.tell([0], outcome(APPLIED))
    assert [(each.change, each.status, bool(each.reason)) for each in outcomes.of_plan(plan)] == [
        (2, UNKNOWN, True),
        (0, APPLIED, False),
        (1, UNKNOWN, True),
    ]


def test_what_is_read_before_a_write_leaves_nothing_in_doubt() -> None:
    outcomes = Outcomes()
    outcomes.tell([0], outcome(APPLIED))
    with outcomes.sending([1]), before_writing():
        raise ConnectionFailedError("the answer to the read was lost", details={"sent": True})
    assert outcomes.told[1].status is FAILED
    with pytest.raises(DragomanError) as caught, before_writing():
        raise QueryError("no")
    assert caught.value.details["sent"] is False


def test_a_console_says_what_is_in_doubt() -> None:
    assert unknown_note("HTTP 502").code == "outcome-unknown"


def test_a_row_of_several_parts_is_named_in_its_outcome() -> None:
    outcomes = Outcomes()
    with outcomes.sending([0], row=["eu", 17]):
        raise QueryError("the answer stopped")
    assert outcomes.of(0).id == ["eu", 17]


def test_applied_rows_of_a_load_are_joined_where_they_follow_each_other():
    outcomes = Outcomes()
    outcomes.applied([0, 1, 2, 5])
    outcomes.tell([3], Outcome(change=3, status=OutcomeStatus.FAILED))
    outcomes.applied([6, 7])
    assert [(outcome.change, str(outcome.status), outcome.rows) for outcome in outcomes.told] == [
        (0, "applied", 3), (3, "failed", 1), (5, "applied", 3),
    ]  # fmt: skip
    assert outcomes.of(1).status is OutcomeStatus.APPLIED
    outcomes.tell([8], Outcome(change=8, status=OutcomeStatus.UNKNOWN))
    outcomes.applied([8])
    assert outcomes.told[-1] == Outcome(change=5, status=OutcomeStatus.APPLIED, rows=4)


async def test_a_look_ends_a_doubt_and_says_of_a_conflict_whether_the_row_holds_the_change():
    """A load that was interrupted sends its rows again, and what it wrote before is then in conflict with itself."""
    outcomes, wanted = Outcomes(), []
    for number, status in enumerate(("unknown", "unknown", "conflict", "conflict", "failed", "applied")):
        outcomes.tell([number], Outcome(change=0, status=OutcomeStatus(status), reason="r"))

    async def holding(keys):
        wanted.extend(keys)
        return ["a", "c", "e"]

    await outcomes.look([(key, [number]) for number, key in enumerate("abcdef")], holding)
    assert wanted == ["a", "b", "c", "d"]
    states = [(str(one.status), one.id, one.holds) for one in map(outcomes.of, range(6))]
    assert states == [
        ("applied", "a", False), ("unknown", "b", False), ("conflict", "c", True), ("conflict", "d", False),
        ("failed", None, False), ("applied", None, False),
    ]  # fmt: skip

    async def failing(keys):
        raise QueryError("no")

    await outcomes.look([("b", [1])], failing)
    assert outcomes.of(1).status is OutcomeStatus.UNKNOWN
