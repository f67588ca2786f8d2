"""A summary that is made of cells counts what is there."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dragoman_api.cells import Json
from dragoman_api.columns import Column, ColumnKind
from dragoman_api.kit.summaries import summarize_cells
from dragoman_api.summaries import Bucket, Figure, SummaryRequest, ValueCount


def summarized(kind, cells, **more):
    return summarize_cells(SummaryRequest(object="o", column="c", **more), Column(name="c", type="t", kind=kind), cells)


def test_numbers_are_counted_ordered_and_spread():
    found = summarized(ColumnKind.INTEGER, [3, 1, None, 3, 9], values=2, buckets=5)
    assert (found.rows, found.missing, found.present, found.distinct) == (5, 1, 4, 3)
    assert found.values == [ValueCount(3, 2), ValueCount(1, 1)]
    assert (found.minimum, found.maximum) == (1, 9)
    assert found.buckets == [
        Bucket(0, 2, 1), Bucket(2, 4, 2), Bucket(4, 6, 0), Bucket(6, 8, 0), Bucket(8, 10, 1),
    ]  # fmt: skip


def test_only_buckets_of_whole_numbers_begin_at_whole_numbers():
    for kind in (ColumnKind.INTEGER, ColumnKind.UNSIGNED):
        assert [each.lower for each in summarized(kind, [0, 1], buckets=10).buckets] == [0, 1]
    for kind, one in ((ColumnKind.FLOAT, 1.0), (ColumnKind.DECIMAL, Decimal("1.0"))):
        assert summarized(kind, [one - one, one], buckets=10).buckets[1].lower == 0.2


@pytest.mark.parametrize("cells", [[], [None, None]])
@pytest.mark.parametrize("kind", [ColumnKind.TEXT, ColumnKind.FLOAT, ColumnKind.TIMESTAMP])
def test_a_column_without_values_has_no_figures_but_its_rows(kind, cells):
    found = summarized(kind, iter(cells))
    assert (found.rows, found.missing, found.present) == (len(cells), len(cells), 0)
    assert (found.values, found.distinct, found.minimum, found.maximum, found.buckets) == ([], 0, None, None, [])


def test_instants_are_spread_over_the_calendar_and_shown_as_they_are():
    cells = ["2026-01-31T23:00:00-02:00", "2026-03-01", "2026-03-31T12:00:00"]
    found = summarized(ColumnKind.TIMESTAMP, cells, buckets=3)
    assert found.buckets == [
        Bucket("2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", 1),
        Bucket("2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", 2),
    ]
    assert (found.minimum, found.maximum) == (cells[0], cells[2])


def test_texts_have_no_buckets():
    found = summarized(ColumnKind.TEXT, ["b", "a", "b"], values=1)
    assert (found.values, found.distinct, found.buckets) == ([ValueCount("b", 2)], 2, [])
    assert (found.minimum, found.maximum) == ("a", "b")


@pytest.mark.parametrize("kind", [ColumnKind.TIMESTAMP, ColumnKind.DATE])
def test_days_and_instants_are_spread_over_the_calendar(kind):
    """The last days of a year and of a month are in it."""
    found = summarized(kind, ["2025-12-31", "2026-01-01", "2026-01-31", "2026-02-01"], buckets=3)
    assert [(each.lower[:10], each.upper[:10], each.rows) for each in found.buckets] == [
        ("2025-12-01", "2026-01-01", 1), ("2026-01-01", "2026-02-01", 2), ("2026-02-01", "2026-03-01", 1),
    ]  # fmt: skip


STRAYS = [
    (ColumnKind.INTEGER, [2, "3", True], 2, 2),
    (ColumnKind.FLOAT, [float("nan"), 1.5, float("-inf"), "NaN"], 1.5, 1.5),
    (ColumnKind.TEXT, ["b", 5, Json('{"a":1}'), "a", b"c"], "a", "b"),
    (ColumnKind.TIMESTAMP, ["2026-01-02T00:00:00Z", "soon", 7], "2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z"),
    (ColumnKind.DATE, ["2026-01-02", "2026-13-01"], "2026-01-02", "2026-01-02"),
    (ColumnKind.BINARY, [b"b", "a"], b"b", b"b"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "cells", "minimum", "maximum"), STRAYS)
def test_a_value_of_another_kind_counts_as_a_value_and_has_no_place_in_an_order(kind, cells, minimum, maximum):
    summary = summarized(kind, [*cells, None])
    assert (summary.rows, summary.missing, summary.distinct) == (len(cells) + 1, 1, len(cells))
    assert (summary.minimum, summary.maximum) == (minimum, maximum)
    assert {*summary.approximate} == {Figure.MINIMUM, Figure.MAXIMUM, Figure.BUCKETS}
    assert sum(bucket.rows for bucket in summary.buckets) in (0, 1)


def test_values_that_python_takes_for_equal_are_counted_apart():
    summary = summarized(ColumnKind.INTEGER, [1, True, 1, 0, False])
    assert [(value.value, value.rows) for value in summary.values] == [(1, 2), (True, 1), (0, 1), (False, 1)]
    assert [type(value.value) for value in summary.values] == [int, bool, int, bool]


def test_every_nan_is_the_same_value():
    summary = summarized(ColumnKind.FLOAT, [float("nan"), 1.5, float("nan"), float("nan")])
    assert (summary.distinct, [value.rows for value in summary.values]) == (2, [3, 1])


def test_instants_are_ordered_by_their_time_and_not_by_their_text():
    cells = ["2026-01-01T01:00:00+02:00", "2026-01-01T00:00:00Z"]
    assert summarized(ColumnKind.TIMESTAMP, cells).maximum == cells[1]
