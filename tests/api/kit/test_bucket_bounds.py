"""The bounds of buckets are round, in order, around everything, and not more than were asked for."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api.kit.summaries import instant_bounds, instant_text, number_bounds

NUMBERS = st.one_of(
    st.integers(-(2**64), 2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(allow_nan=False, allow_infinity=False),
)
CALENDAR = st.integers(-62135596800000, 253402300799999)


@given(NUMBERS, NUMBERS, st.integers(1, 50))
def test_numbers_lie_in_buckets_that_share_their_bounds(one, other, most):
    low, high = sorted((one, other), key=lambda each: Decimal(repr(each)) if isinstance(each, float) else Decimal(each))
    bounds = [Decimal(repr(each)) if isinstance(each, float) else each for each in number_bounds(low, high, most=most)]
    low, high = (Decimal(repr(each)) if isinstance(each, float) else each for each in (low, high))
    assert 2 <= len(bounds) <= most + 1
    assert bounds[0] <= low
    assert bounds[-1] > high
    assert all(a < b for a, b in pairwise(bounds))


@given(st.integers(-(2**64), 2**64), st.integers(-(2**64), 2**64), st.integers(2, 50))
def test_integers_have_integers_as_bounds_equally_far_apart(one, other, most):
    bounds = number_bounds(min(one, other), max(one, other), most=most, whole=True)
    assert {type(each) for each in bounds} == {int}
    assert len({b - a for a, b in pairwise(bounds)}) == 1
    assert bounds[0] <= min(one, other)
    assert bounds[-1] > max(one, other)
    assert len(bounds) <= most + 1


def test_bounds_are_round_and_few_values_get_a_bucket_each():
    assert number_bounds(1, 3, most=50, whole=True) == [1, 2, 3, 4]
    assert number_bounds(5, 5, most=50, whole=True) == [5, 6]
    assert number_bounds(0, 99, most=20, whole=True) == list(range(0, 101, 5))
    assert number_bounds(-3.5, 12, most=4) == [-5.0, 0.0, 5.0, 10.0, 15.0]
    assert number_bounds(9.5, 9.5, most=4) == [9.5, 9.6]
    assert number_bounds(2**63 - 3, 2**63 - 1, most=3, whole=True) == [2**63 - 3, 2**63 - 2, 2**63 - 1, 2**63]


def test_one_bucket_goes_around_everything_and_none_has_no_bounds():
    assert number_bounds(-1, 1, most=1, whole=True) == [-1, 2]
    assert number_bounds(1, 2, most=0) == instant_bounds(1, 2, most=0) == []
    [first, last] = instant_bounds(-1, 1, most=1)
    assert first <= -1 < 1 < last


@given(CALENDAR, CALENDAR, st.integers(1, 50))
def test_instants_lie_in_buckets_or_the_calendar_ends(one, other, most):
    low, high = min(one, other), max(one, other)
    bounds = instant_bounds(low, high, most=most)
    if not bounds:
        assert instant_text(high) >= "5000"  # the last of few buckets may be long
        return
    assert 2 <= len(bounds) <= most + 1
    assert bounds[0] <= low
    assert bounds[-1] > high
    assert all(a < b for a, b in pairwise(bounds))
    begin = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    written = [(datetime.fromisoformat(instant_text(each)) - begin) / timedelta(milliseconds=1) for each in bounds]
    assert written == bounds


def test_buckets_up_to_a_day_have_the_sizes_that_clocks_show():
    sizes = [1, 2, 5, 10, 20, 50, 100, 200, 500]
    sizes += [1_000 * size for unit in (1, 60) for size in (unit, 2 * unit, 5 * unit, 10 * unit, 15 * unit, 30 * unit)]
    sizes += [3_600_000 * size for size in (1, 2, 3, 6, 12, 24)]
    for size in sizes:
        assert instant_bounds(0, 4 * size - 1, most=4) == [0, size, 2 * size, 3 * size, 4 * size]
        assert instant_bounds(0, 4 * size, most=4)[1] > size


@pytest.mark.parametrize(
    ("days", "most", "texts"),
    [
        (0.5, 6, ["2026-11-22T12:00:00Z", "2026-11-22T14:00:00Z"]),
        (3, 4, ["2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"]),
        (30, 6, ["2026-10-19T00:00:00Z", "2026-10-26T00:00:00Z"]),
        (300, 12, ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"]),
        (300, 5, ["2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z"]),
        (3_000, 10, ["2018-01-01T00:00:00Z", "2019-01-01T00:00:00Z"]),
        (300, 3, ["2026-01-01T00:00:00Z", "2026-07-01T00:00:00Z"]),
        (3_000, 5, ["2018-01-01T00:00:00Z", "2020-01-01T00:00:00Z"]),
        (10_000, 7, ["1995-01-01T00:00:00Z", "2000-01-01T00:00:00Z"]),
        (30_000, 10, ["1940-01-01T00:00:00Z", "1950-01-01T00:00:00Z"]),
        (100_000, 15, ["1740-01-01T00:00:00Z", "1760-01-01T00:00:00Z"]),
        (100_000, 6, ["1750-01-01T00:00:00Z", "1800-01-01T00:00:00Z"]),
        (300_000, 10, ["1200-01-01T00:00:00Z", "1300-01-01T00:00:00Z"]),
        (700_000, 11, ["0001-01-01T00:00:00Z", "0200-01-01T00:00:00Z"]),
        (700_000, 5, ["0001-01-01T00:00:00Z", "0500-01-01T00:00:00Z"]),
        (700_000, 3, ["0001-01-01T00:00:00Z", "1000-01-01T00:00:00Z"]),
        (700_000, 2, ["0001-01-01T00:00:00Z", "2000-01-01T00:00:00Z"]),
    ],
)
def test_instants_have_units_of_the_calendar(days, most, texts):
    now = 1_795_392_000_000  # 2026-11-23, a Monday
    found = instant_bounds(now - int(days * 86_400_000), now - 1, most=most)
    assert [instant_text(each) for each in found[:2]] == texts


def test_an_instant_is_written_to_the_millisecond_and_may_lie_outside_of_the_calendar():
    assert instant_text(-1) == "1969-12-31T23:59:59.999Z"
    assert instant_text(-62135596800000) == "0001-01-01T00:00:00Z"
    with pytest.raises(OverflowError):
        instant_text(-62135596800001)
    assert instant_bounds(-(10**17), 0, most=5) == []


def test_no_bucket_ends_after_the_last_year():
    end = 253_402_300_800_000  # the year 10000
    assert instant_bounds(end - 5, end - 2, most=9)[-1] == end - 1
    assert instant_bounds(end - 5, end - 1, most=9) == []
    assert instant_bounds(end - 2 * 86_400_000, end - 1, most=2) == []
