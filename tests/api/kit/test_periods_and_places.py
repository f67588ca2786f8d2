"""Periods of time, circles and boxes as operands of filter rows."""

from __future__ import annotations

import pytest

from dragoman_api import Filter
from dragoman_api import Operator as Op
from dragoman_api.kit.operands import Box, Circle, Period, box, circle, conditions, period
from dragoman_api.kit.residual import ResidualRow
from dragoman_api.kit.row_evaluation import ValueKind

A, B = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
DAY = f"{A}/{B}"
CELLS = ("2025-12-31T23:59:59.9Z", A, "2026-01-01T23:59:59Z", B, None, ["2025-01-01T00:00:00Z", "2027-01-01T00:00:00Z"])


@pytest.mark.parametrize(
    ("op", "value", "found"),
    [
        ("=", DAY, [1, 2]),
        ("!=", DAY, [0, 3, 4, 5]),
        ("in", [DAY, "2027-01-01T00:00:00Z"], [1, 2, 5]),
        ("in", f"{DAY},2027-01-01T00:00:00Z", [1, 2, 5]),
        ("not-in", [DAY, B], [0, 4, 5]),
        (">", DAY, [3, 5]),
        (">=", DAY, [1, 2, 3, 5]),
        ("<", DAY, [0, 5]),
        ("<=", DAY, [0, 1, 2, 5]),
        ("between", [DAY, DAY], [1, 2]),
        ("between", ["2025-12-31T23:59:59.9Z", DAY], [0, 1, 2]),
        ("between", [DAY, B], [1, 2, 3]),
    ],
)
def test_a_row_compares_with_the_whole_period_and_one_element_must_be_in_it(op, value, found):
    holds = ResidualRow(0, Filter("at", op, value), ValueKind.TIMESTAMP, "").test()
    assert [at for at, cell in enumerate(CELLS) if holds(cell)] == found


@pytest.mark.parametrize("value", ["", A, "2026-01-01/2026-01-02", f"{DAY}/{B}", f"{A}/", 7, None, "05/2026"])
def test_anything_else_is_no_period(value):
    assert period(value) is None


def test_a_period_ends_after_it_begins():
    assert period(DAY) == Period(A, B)
    for value in (f"{B}/{A}", f"{A}/{A}"):
        with pytest.raises(ValueError, match="ends before it begins"):
            period(value)
        with pytest.raises(ValueError, match="ends before it begins"):
            conditions(Op.EQ, value)


def test_a_circle_and_a_box_are_read_from_a_text_or_a_list():
    assert circle("52.5,-13.25,1.5km") == circle([52.5, "-13.25", " 1500 m"]) == Circle(52.5, -13.25, 1500.0)
    assert [circle(f"0,0,1{unit}").metres for unit in ("m", "km", "mi", "nmi", "ft")] == [
        1,
        1000,
        1609.344,
        1852,
        0.3048,
    ]
    assert circle("-90,-180,.5km") == Circle(-90, -180, 500)
    assert circle("90,180,20100km") == Circle(90, 180, 20_100_000)
    assert box("-90,-180,90,180") == Box(-90, -180, 90, 180)
    assert box("-1,170,1,-170") == box([-1, 170, "1", -170]) == Box(-1, 170, 1, -170)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("52.5,13.25", "latitude, a longitude and a distance"),
        ("52.5,13.25,5", "not a distance such as"),
        ("52.5,13.25,5 parsecs", "not a distance such as"),
        ("52.5,13.25,-5km", "not a distance such as"),
        ("52.5,13.25,0km", "more than 0"),
        ("52.5,13.25,30000km", "half the way around"),
        ("91,13.25,5km", "no latitude"),
        ("-90.1,13.25,5km", "no latitude"),
        ("52.5,181,5km", "no longitude"),
        ("52.5,-180.1,5km", "no longitude"),
        ("52.5,13.25,20101km", "half the way around"),
        ("north,13.25,5km", "not a number"),
        (["1", None, "5km"], "not a number"),
    ],
)
def test_what_is_no_circle_is_refused(value, reason):
    with pytest.raises(ValueError, match=reason):
        circle(value)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("1,2,3", "south,west,north,east"),
        ("2,1,1,2", "north of its north"),
        ("1,1,1,2", "a height"),
        ("1,2,2,2", "a width"),
        ("1,180,2,-180", "a width"),
        ("-91,1,2,3", "no latitude"),
        ("1,2,91,3", "no latitude"),
        ("1,-181,2,3", "no longitude"),
        ("1,2,3,999", "no longitude"),
    ],
)
def test_what_is_no_box_is_refused(value, reason):
    with pytest.raises(ValueError, match=reason):
        box(value)
