"""Promises about summaries of columns and completion in a console."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from dragoman_api.cells import Json, is_cut
from dragoman_api.columns import ColumnKind, Operator
from dragoman_api.console import MAX_SUGGESTIONS, SUGGESTION_TEXT, Completion, CompletionRequest, SuggestionKind
from dragoman_api.errors import QueryError, UnsupportedOperationError
from dragoman_api.filters import CompiledFilter, Filter
from dragoman_api.summaries import ColumnSummary, Figure, SummaryRequest

if TYPE_CHECKING:
    from dragoman_api.cells import Cell
    from dragoman_api.columns import Column
    from dragoman_api.testing.target import Target

_SCALARS = (ColumnKind.TEXT, ColumnKind.BOOLEAN)


class SummaryConformance:
    """Promises about a column at a glance, and about completion while a person types."""

    async def test_a_summary_counts_the_rows_that_pages_show(self, target: Target) -> None:
        """A figure that is not named in `approximate` is the figure of the cells of all rows.

        A column that cannot be summarized raises UnsupportedOperationError with a reason.
        """
        target.needs("describe_object", "fetch_page", "summarize_column")
        columns = (await target.describe()).columns
        rows = await target.all_rows()
        summarized = 0
        for column in columns:
            summary = await _summary(target, column)
            if summary is not None:
                summarized += 1
                _check(summary, column, [row[column.name] for row in rows])
        assert summarized, "no column can be summarized"

    async def test_a_summary_goes_by_its_filter(self, target: Target) -> None:
        """A summary under a filter is of the rows that the filter selects."""
        target.needs("describe_object", "compile_filter", "fetch_page", "summarize_column")
        for column in (await target.describe()).columns:
            if Operator.NOT_NULL not in column.operators:
                continue
            where = await target.compile(Filter(column.name, Operator.NOT_NULL))
            if (summary := await _summary(target, column, where)) is not None:
                assert summary.rows == await target.count(where=where), column.name
                if Figure.MISSING not in summary.approximate and summary.missing is not None:
                    assert summary.missing == 0, column.name

    async def test_a_summary_has_no_more_than_was_asked_for(self, target: Target) -> None:
        """`values` and `buckets` bound the lists of a summary, and 0 means none; an unknown column is a QueryError."""
        target.needs("describe_object", "summarize_column")
        for column in (await target.describe()).columns:
            for limit in (0, 1):
                if (summary := await _summary(target, column, values=limit, buckets=limit)) is not None:
                    assert max(len(summary.values), len(summary.buckets)) <= limit, column.name
        with pytest.raises(QueryError):
            await target.driver.summarize_column(SummaryRequest(object=target.object, column="no such column"))

    async def test_suggestions_replace_characters_of_the_text(self, target: Target) -> None:
        """At any place of any text, suggestions are bounded, and replace characters of the text around the place."""
        target.needs("complete_console")
        target.given("reads")
        for text in ["", *target.reads, *target.writes, *(text for text, _, _ in target.broken)]:
            for position in {*range(0, len(text), 7), len(text)}:
                completion = await _complete(target, text, position)
                assert len(completion.suggestions) <= MAX_SUGGESTIONS
                for suggestion in completion.suggestions:
                    assert 0 <= suggestion.start <= position <= suggestion.end <= len(text), (text, position)
                    assert 0 < len(suggestion.text) <= SUGGESTION_TEXT
                    assert not {*suggestion.text} & {*"\r\n"}, suggestion.text
            for position in (-1, len(text) + 1):
                with pytest.raises(QueryError):
                    await _complete(target, text, position)

    async def test_the_name_of_the_object_is_completed_and_read_once(self, target: Target) -> None:
        """The beginning of an object's name in a reading request is completed; the second time, nothing is sent."""
        target.needs("complete_console")
        target.given("reads")
        texts = [text for text in target.reads if target.object in text]
        if not texts:
            pytest.skip("no reading request names the object")
        text = texts[0]
        at = text.index(target.object)
        for begun in (text[: at + 1], text[: at + len(target.object)]):
            await _complete(target, begun, len(begun))
            mark = target.sent()
            completion = await _complete(target, begun, len(begun))
            assert target.since(mark) == []
            completed = {
                begun[: suggestion.start] + suggestion.text + begun[suggestion.end :]
                for suggestion in completion.suggestions
                if suggestion.kind is SuggestionKind.OBJECT
            }
            assert text[: at + len(target.object)] in completed or completion.more, begun


async def _summary(
    target: Target, column: Column, where: CompiledFilter | None = None, **options: Any
) -> ColumnSummary | None:
    request = SummaryRequest(object=target.object, column=column.name, filter=where, **options)
    try:
        summary: ColumnSummary = await target.driver.summarize_column(request)
    except UnsupportedOperationError as error:
        refusal = error
    else:
        assert summary.column.name == column.name
        return summary
    assert refusal.message.strip(), f"{column.name}: a refusal says why"
    return None


async def _complete(target: Target, text: str, position: int) -> Completion:
    completion: Completion = await target.driver.complete_console(CompletionRequest(text=text, position=position))
    return completion


def _check(summary: ColumnSummary, column: Column, cells: list[Cell]) -> None:
    name, exact = column.name, {*Figure} - {*summary.approximate, *summary.absent}
    if Figure.ROWS in exact:
        assert summary.rows == len(cells), name
    for bucket, other in pairwise(summary.buckets):
        assert bucket.upper == other.lower, f"{name}: a gap between buckets"
    counts = [value_count.rows for value_count in summary.values]
    assert min([*counts, *(bucket.rows for bucket in summary.buckets)], default=0) >= 0, name
    assert counts == sorted(counts, reverse=True) or Figure.VALUES not in exact, f"{name}: not the most frequent first"
    if any(isinstance(cell, Json) or is_cut(cell) for cell in cells):
        return  # an array is not a cell of its elements
    frequencies: Counter[Any] = Counter(cell for cell in cells if cell is not None)
    if Figure.MISSING in exact and summary.missing is not None:
        assert summary.missing == len(cells) - frequencies.total(), name
    if Figure.DISTINCT in exact and summary.distinct is not None:
        assert summary.distinct == len(frequencies), name
    if Figure.VALUES in exact and (column.kind in _SCALARS or column.kind.numeric):
        assert {value_count.value: value_count.rows for value_count in summary.values}.items() <= frequencies.items(), (
            name
        )
        assert counts == [number for _, number in frequencies.most_common(len(counts))], name
    numbers = [cell for cell in frequencies if isinstance(cell, int | float | Decimal)]
    if column.kind.numeric and numbers and len(numbers) == len(frequencies):
        _check_numbers(summary, name, exact, frequencies)


def _check_numbers(summary: ColumnSummary, name: str, exact: set[Figure], frequencies: Counter[Any]) -> None:
    if Figure.MINIMUM in exact:
        assert summary.minimum == min(frequencies), name
    if Figure.MAXIMUM in exact:
        assert summary.maximum == max(frequencies), name
    if Figure.BUCKETS in exact:
        for bucket in summary.buckets:
            low, high = bucket.lower, bucket.upper
            assert isinstance(low, int | float | Decimal)
            assert isinstance(high, int | float | Decimal)
            assert low < high, name
            assert bucket.rows == sum(n for cell, n in frequencies.items() if low <= cell < high), name
        assert sum(bucket.rows for bucket in summary.buckets) == frequencies.total(), name
