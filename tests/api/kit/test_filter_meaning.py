"""The meaning of a filter row for one cell: true, false, or a matter of the database."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dragoman_api.cells import MISSING, CutJson, Json
from dragoman_api.filters import Filter, TimeRange
from dragoman_api.kit.filter_rows import holds, within


@pytest.mark.parametrize(
    ("op", "value", "cell", "meaning"),
    [
        ("=", 1, 1.0, True),
        ("=", 1, 2, False),
        ("=", 1, True, None),
        ("=", "1", 1, None),
        ("=", 2**70, 2**70, True),
        ("=", 0.1, Decimal("0.1"), False),
        ("=", True, True, True),
        ("=", True, False, False),
        ("=", True, 1, None),
        ("=", 1.5, Decimal("1.5"), True),
        ("<", Decimal("1.5"), 1, True),
        ("<", Decimal("1.5"), "1", None),
        (">", True, True, None),
        ("=", "A", "a", None),
        ("=", "A", "b", False),
        ("!=", "A", "A", False),
        ("!=", 1, None, None),
        (">", 1, None, False),
        (">=", 5, 5, True),
        ("<", 5, 5, False),
        (">", "a", "b", None),
        ("between", [1, 3], 3, True),
        ("between", [1, 3], 4, False),
        ("between", [1], 4, None),
        ("between", [1, "x"], 4, None),
        ("between", ["x", 3], 4, None),
        ("between", [5, "x"], 4, None),
        ("in", [1, "x"], 2, None),
        ("in", ["x", 2], 2, True),
        ("in", ["A", "b"], "a", None),
        ("in", 2, 2, True),
        ("not-in", [1, "x"], 2, None),
        ("in", [1, 2], 2, True),
        ("in", [1, 2], 3, False),
        ("not-in", [1, 2], 2, False),
        ("contains", "ea", "Tea", True),
        ("not-contains", "ea", "Tea", False),
        ("starts", "T", "Tea", True),
        ("ends", "x", "Tea", False),
        ("regex", "T.*", "Tea", True),
        ("regex", "e", "Tea", False),
        ("null", None, None, True),
        ("null", None, MISSING, True),
        ("not-null", None, MISSING, False),
        ("=", 1, MISSING, False),
        ("!=", 1, MISSING, None),
        ("not-in", [1], MISSING, None),
        ("not-contains", "a", MISSING, None),
        ("empty", None, MISSING, None),
        ("null", None, Json("[]"), False),
        ("not-null", None, 0, True),
        ("empty", None, "", True),
        ("not-empty", None, "", False),
        ("empty", None, None, None),
        ("=", "a", Json('["a"]'), None),
        ("contains", "a", CutJson('["a...'), None),
        ("=", b"ab", b"ab", True),
        ("=", b"ab", b"abc", False),
        (">", b"ab", b"abc", True),
        ("<=", b"ab", b"abc", False),
        ("starts", b"ab", b"abc", True),
        ("starts", b"bc", b"abc", False),
        ("ends", b"bc", b"abc", True),
        ("ends", b"ab", b"abc", False),
        ("contains", b"b", b"abc", True),
        ("contains", b"x", b"abc", False),
        ("regex", b"a.*", b"abc", None),
    ],
)
def test_a_filter_row_means_what_it_says(op, value, cell, meaning):
    assert holds(Filter("x", op, value), cell) is meaning


@pytest.mark.parametrize(
    ("since", "until", "lies"),
    [
        (None, None, True),
        ("2026-11-23T12:00:00Z", None, True),
        ("2026-11-23T12:00:00.000000001Z", None, False),
        (None, "2026-11-23T12:00:00.000000001Z", True),
        (None, "2026-11-23T12:00:00Z", False),
        ("2026-11-23T12:00:00Z", "2026-11-23T12:00:00Z", False),
    ],
)
def test_a_time_range_begins_with_its_first_instant_and_ends_before_its_last(since, until, lies):
    time = TimeRange(column="at", since=since, until=until)
    assert within(time, "2026-11-23T14:00:00+02:00") is lies
    assert within(time, None) is False
    with pytest.raises(ValueError, match="''"):
        within(time, "")


def test_letter_case_counts_as_the_row_says():
    assert holds(Filter("x", "=", "A", case=True), "a") is False
    assert holds(Filter("x", "=", "A", case=False), "a") is True
    assert holds(Filter("x", "regex", r"\D+", case=False), "Tea") is True
    assert holds(Filter("x", "regex", "t.*A", case=False), "Tea") is True
    assert holds(Filter("x", "regex", r"\D+"), "Tea") is True
