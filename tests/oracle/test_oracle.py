"""What drivers answer is what Python makes of the stored documents: thousands of random calls, each evaluated twice."""

from __future__ import annotations

import os
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from dragoman_api import Filter
from dragoman_api import Operator as Op

from .calls import zeros
from .columns import Text
from .known import needless
from .readings import Said
from .run import DRIVERS, run
from .targets import of_record, on_fake

if TYPE_CHECKING:
    from .run import Report
    from .targets import Target

FAKE, LIVE = 1_000, 5_000
SEED = 1
SETUPS = ("-rbac", "-tls", "-open", "-no-graphql", "-small", "-tenants", "-http-security")
"""Ends of the names of engines that change no answer of these calls, or have no filters at all."""


def calls(usual: int) -> int:
    """Return the number of calls: `DRAGOMAN_ORACLE` scales it, 0.1 for a tenth."""
    return max(1, round(usual * float(os.environ.get("DRAGOMAN_ORACLE", "1"))))


async def holds(driver: str, target: Target, count: int) -> Report:
    name, connection = target
    async with connection as rig:
        report = await run(driver, rig, name, seed=SEED, calls=count, say=lambda text: print(text, file=sys.stderr))
    print(report)
    assert not report.new
    return report


def judges_enough(report: Report) -> None:
    """An oracle that judges little says little."""
    answers, kinds = report.tally.answers, report.tally.kinds
    assert answers["exact"] > report.calls / 12
    assert answers["refused"] + answers["change refused"] < report.calls / 2
    assert min(kinds.values()) > report.calls / 100
    assert report.tally.unread.total() < report.calls / 4


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("driver", DRIVERS)
async def test_every_answer_holds_the_oracle(driver: str) -> None:
    """On a fake server; an entry of `known.py` that is no longer needed has to go."""
    target = on_fake(driver)
    report = await holds(driver, target, calls(FAKE))
    if report.calls >= FAKE:
        judges_enough(report)
        assert needless(driver, target[0], {*report.known}) == []


@pytest.mark.live("elasticsearch", "weaviate")
@pytest.mark.timeout(1_800)
async def test_every_answer_holds_the_oracle_on_a_server(live_server: dict[str, Any]) -> None:
    if live_server["type"] not in DRIVERS:
        pytest.skip("its records have an oracle of their own")
    if live_server["engine"].endswith(SETUPS):
        pytest.skip("another engine of this version holds it; keys and certificates change no answer")
    target = of_record(live_server)
    report = await holds(live_server["type"], target, calls(LIVE))
    if report.calls >= LIVE:
        judges_enough(report)
        assert needless(live_server["type"], target[0], {*report.known}) == []


@pytest.mark.parametrize(
    ("held", "limit", "null"),
    [
        (["long", "longer"], 3, None),
        (["long", "b"], 3, False),
        (["long"], None, False),
        ([None], 3, True),
        ([], None, True),
    ],
)
def test_only_strings_that_are_not_indexed_may_count_as_null(
    held: list[str | None], limit: int | None, null: bool | None
) -> None:
    """Where a filter row says that longer strings are not indexed; before 7.11, `null` does."""
    said = Said(exact=limit is None, admits=frozenset(["limit"] if limit else []), limit=limit)
    for op, expected in ((Op.NULL, null), (Op.NOT_NULL, None if null is None else not null)):
        assert Text(name="k", type="keyword").found(op, Filter("k", op), held, said) is expected


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [("-0", "-0.0", True), ("0", "-0.0", True), ("-0", "-0", True), ("0", "0.0", False), ("-1", "-1", False)],
)
def test_a_stored_minus_zero_may_be_either_zero(first: str, second: str, *, same: bool) -> None:
    """Elasticsearch keeps -0.0 of a double and makes 0.0 of -0, and orders one before the other."""
    assert zeros(Decimal(first), Decimal(second)) is same


@pytest.mark.parametrize("driver", DRIVERS)
async def test_a_few_calls_of_the_oracle_hold(driver: str) -> None:
    """What takes a second, each time."""
    await holds(driver, on_fake(driver), 60)
