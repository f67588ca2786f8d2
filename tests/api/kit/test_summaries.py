"""A summary that is made of cells counts what is there."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dragoman_api.columns import Column, ColumnKind
from dragoman_api.kit.summaries import summarize_cells
from dragoman_api.summaries import Bucket, SummaryRequest, ValueCount


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
