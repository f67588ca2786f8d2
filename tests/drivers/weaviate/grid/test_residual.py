"""Residual filters and sorts: the page is what plain Python makes of the rows that were read, and says how many."""

from __future__ import annotations

import random
from datetime import datetime
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from drivers.weaviate.rig import OnFake, OnServer, Rig, key, on_fake, on_server, ordinary
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman_api import CountRequest, ExportRequest, Filter, FilterNotSupportedError, FilterRequest, PageRequest, Sort
from dragoman_api import Operator as Op
from dragoman_api.errors import QueryError

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from dragoman_api import CompiledFilter, Page

BARE = {"indexFilterable": False, "indexSearchable": False, "indexRangeFilters": False}
TYPES: dict[str, Any] = {
    "note": {"dataType": ["text"], "tokenization": "word", **BARE},
    "cost": {"dataType": ["number"], "indexFilterable": False},
    "sizes": "int[]",
    "days": "date[]",
    "shelf": "uuid",
    "pages": "int",
}
NOTES = ["green tea", "Tea!", "a-tea", "", "war", "日本"]
DAYS = ["2024-01-01T00:00:00Z", "2024-01-01T02:00:00+01:00", "2024-03-01T00:00:00Z", "2025-01-01T00:00:00Z"]
ROWS = 40


def rows(count: int = ROWS) -> list[dict[str, Any]]:
    chance = random.Random(5)
    made = []
    for number in range(count):
        row = {
            "note": chance.choice(NOTES),
            "cost": chance.choice([0.1, 1.10, 2.5, 1e21, -3.0]),
            "sizes": chance.choices([1, 5, 9, 2**40], k=chance.randint(1, 3)),
            "days": chance.choices(DAYS, k=chance.randint(1, 2)),
            "shelf": key(chance.randint(0, 5)),
            "pages": chance.randint(0, 4),
        }
        made.append({"id": key(number)} | {name: each for name, each in row.items() if chance.random() < 0.85})
    return sorted(made, key=lambda row: row["id"])


def holds(row: Filter, item: dict[str, Any]) -> bool:
    """Tell whether an object satisfies one filter row, plainly."""
    value = item.get(row.column)
    elements = [] if value is None else value if isinstance(value, list) else [value]
    if row.op is Op.NOT_CONTAINS:
        return not any(row.value.lower() in each.lower() for each in elements)
    if row.op is Op.CONTAINS:
        return any(row.value.lower() in each.lower() for each in elements)
    if row.op is Op.NE:
        return row.value not in elements
    if row.op is Op.EQ:
        return row.value in elements
    low, high = row.value if row.op is Op.BETWEEN else (row.value, None)
    if row.column == "days":
        elements, low, high = [moment(each) for each in elements], moment(low), moment(high)
    return any(low <= each and (high is None or each <= high) for each in elements)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def bounds(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(values, min_size=2, max_size=2)


PARTS = st.sampled_from(["tea", "A-", "!"])
NUMBERS = st.sampled_from([-3.0, 0.1, 1.1, 2.0, 1e21])
LEFT = st.one_of(
    st.builds(Filter, st.just("note"), st.sampled_from([Op.CONTAINS, Op.NOT_CONTAINS]), PARTS),
    st.builds(Filter, st.just("cost"), st.sampled_from([Op.GE, Op.EQ, Op.NE]), NUMBERS),
    st.builds(Filter, st.just("cost"), st.just(Op.BETWEEN), bounds(NUMBERS)),
    st.builds(Filter, st.just("sizes"), st.just(Op.BETWEEN), bounds(st.sampled_from([0, 1, 4, 6, 2**40]))),
    st.builds(Filter, st.just("days"), st.just(Op.BETWEEN), bounds(st.sampled_from(DAYS))),
)  # fmt: skip
COMPILED = st.builds(Filter, st.just("pages"), st.sampled_from([Op.GE, Op.NE]), st.integers(0, 4))


async def compiled(wv: Rig, name: str, *filters: Filter, match: str = "all", residual: int | None) -> CompiledFilter:
    await wv.driver.describe_object(name)
    return await wv.driver.compile_filter(
        FilterRequest(object=name, rows=list(filters), match=match, residual=residual)
    )


async def fetched(wv: Rig, name: str, *filters: Filter, residual: int | None, match: str = "all", **more: Any) -> Page:
    given = await compiled(wv, name, *filters, match=match, residual=residual) if filters else None
    return await wv.driver.fetch_page(PageRequest(object=name, filter=given, residual=residual, **more))


def check(connection: AbstractAsyncContextManager[Rig], *, examples: int) -> None:
    """Hold the law over one collection of one shard, whose rows come in the order of their ids."""
    items = rows()

    async def run(
        wv: Rig, name: str, left: list[Filter], more: list[Filter], match: str, by: list[Sort], most: int
    ) -> None:
        filters = [*more, *left]
        compiled_by_server = [] if match == "any" and left else more
        read = [item for item in items if all(holds(row, item) for row in compiled_by_server)]
        page = await fetched(
            wv, name, *filters, residual=most, match=match, sort=by, columns=["pages"], offset=1, limit=7
        )
        whole = len(read) <= most
        codes = [note.code for note in page.notes]
        assert codes.count("residual-filter") == bool(left)
        assert codes.count("residual-sort") == bool(by)
        assert all(bool(note.hint) is not whole for note in page.notes if note.code.startswith("residual"))
        assert [column.name for column in page.columns] == ["pages"]
        ids = [each.id for each in page.keys]
        if not whole and more:  # a filter without a sort: which of the matching rows come first is the server's choice
            join = all if match == "all" else any
            fitting = {item["id"] for item in items if join(holds(row, item) for row in filters)}
            assert {*ids} <= fitting
            return
        join = all if match == "all" else any
        due = [item for item in read[:most] if not filters or join(holds(row, item) for row in filters)]
        for each in reversed(by):
            due = ordered(due, each)
        if by or not more:
            # The order in which a filter's rows come is the server's own, and so is that of equal ones.
            keys = {item["id"]: [item.get(each.column) for each in by] if more else item["id"] for item in items}
            assert [keys[each] for each in ids] == [keys[item["id"]] for item in due][1:8], (filters, match, by, most)
        assert len({*ids} & {item["id"] for item in due}) == len(ids) == len(due[1:8])
        assert page.total == (len(due) if left else len(read))
        assert page.total_exact is (whole or not left)

    with anyio.from_thread.start_blocking_portal() as portal, portal.wrap_async_context_manager(connection) as wv:
        name = portal.call(lambda: wv.collection(TYPES, items))

        @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
        @given(
            st.lists(LEFT, max_size=2),
            st.lists(COMPILED, max_size=1),
            st.sampled_from(["all", "any"]),
            st.booleans(),
            st.booleans(),
            st.integers(1, ROWS + 5),
        )
        def law(left, more, match, sorts, down, most) -> None:
            by = [Sort("shelf", down), Sort("pages", not down)] if sorts else []
            if left or by:
                portal.call(run, wv, name, left, more, match, by, most)

        law()


def ordered(items: list[dict[str, Any]], sort: Sort) -> list[dict[str, Any]]:
    held = [item for item in items if sort.column in item]
    held.sort(key=lambda item: item[sort.column], reverse=sort.descending)
    return [*held, *(item for item in items if sort.column not in item)]


def test_a_page_evaluated_here_holds_the_oracle() -> None:
    check(on_fake(), examples=150)


@pytest.mark.live("weaviate")
def test_a_page_evaluated_here_holds_the_oracle_on_a_server(live_server: dict[str, Any]) -> None:
    ordinary(live_server)
    check(on_server(live_server), examples=60)


REFUSED = [Filter("shelf", "regex", "a.*"), Filter("note", "regex", "t.*"), Filter("note", "=", "tea"),
           Filter("cost", "contains", "1"), Filter("note", ">", "a"), Filter("sizes", "null"),
           Filter("note", "empty"), Filter("vector", "=", "1"), Filter("nope", "=", "1")]  # fmt: skip
LEFT_OVER = Filter("note", "contains", "tea")


class Rules:
    @pytest.mark.parametrize("row", REFUSED, ids=lambda row: f"{row.column} {row.op}")
    async def test_W14_W15_W18_W19_W20_W38_what_has_to_be_refused_is_refused_with_leave_too(self, wv: Rig, row):
        name = await wv.collection(TYPES, rows(3), index={})
        with pytest.raises(FilterNotSupportedError) as caught:
            await compiled(wv, name, row, residual=100)
        assert caught.value.details["reason"]

    async def test_W38_without_leave_a_row_is_refused_and_a_sort_is_dropped(self, wv: Rig):
        name = await wv.collection(TYPES, rows(5))
        with pytest.raises(FilterNotSupportedError):
            await compiled(wv, name, LEFT_OVER, residual=None)
        page = await fetched(wv, name, residual=None, sort=[Sort("shelf")])
        assert [note.code for note in page.notes] == ["sort-dropped"]

    async def test_counts_exports_and_pages_without_leave_refuse_the_filter(self, wv: Rig):
        name = await wv.collection(TYPES, rows(5))
        given = await compiled(wv, name, LEFT_OVER, residual=100)
        assert [(told.row, told.exact) for told in given.rows] == [(0, False)]
        with pytest.raises(FilterNotSupportedError) as caught:
            await wv.driver.count_rows(CountRequest(object=name, filter=given))
        assert caught.value.details["column"] == "note"
        with pytest.raises(FilterNotSupportedError):
            await wv.driver.fetch_page(PageRequest(object=name, filter=given))
        with pytest.raises(FilterNotSupportedError):
            async for _ in wv.driver.export_rows(ExportRequest(object=name, filter=given)):
                pass

    async def test_a_page_never_reads_more_rows_than_both_its_parts_allow(self, wv: Rig):
        name = await wv.collection(TYPES, rows(9))
        given = await compiled(wv, name, Filter("cost", ">=", -9), residual=4)
        page = await wv.driver.fetch_page(PageRequest(object=name, filter=given, residual=9))
        assert len(page.keys) <= 4
        assert not page.total_exact

    @pytest.mark.parametrize("more", [{"residual": 0}, {"residual": 10_001}, {"residual": 5, "cursor": key(1)}])
    async def test_a_bound_out_of_range_and_a_cursor_are_refused(self, wv: Rig, more):
        name = await wv.collection(TYPES, rows(3))
        await wv.driver.describe_object(name)
        with pytest.raises(QueryError):
            await wv.driver.fetch_page(PageRequest(object=name, sort=[Sort("shelf")], **more))

    async def test_the_explanations_come_in_the_order_of_the_rows_whoever_evaluates_them(self, wv: Rig):
        name = await wv.collection(TYPES, rows(3))
        filters = [LEFT_OVER, Filter("pages", ">", 1), Filter("cost", ">", 1), Filter("pages", "<", 3)]
        given = await compiled(wv, name, *filters, residual=100)
        assert [(told.row, told.clause.startswith("evaluated here")) for told in given.rows] == [
            (0, True), (1, False), (2, True), (3, False),
        ]  # fmt: skip
        assert given.revision
        for call in (
            wv.driver.count_rows(CountRequest(object=name, filter=given)),
            wv.driver.fetch_page(PageRequest(object=name, filter=given)),
        ):
            with pytest.raises(FilterNotSupportedError) as caught:
                await call
            assert caught.value.details["row"] == 0

    async def test_a_page_may_read_as_many_rows_as_the_window_holds(self, wv: Rig):
        name = await wv.collection(TYPES, rows(3))
        assert len((await fetched(wv, name, LEFT_OVER, residual=10_000)).notes) == 1


class TestOnFake(OnFake, Rules):
    pass


@pytest.mark.one_engine
class TestOnServer(OnServer, Rules):
    pass
