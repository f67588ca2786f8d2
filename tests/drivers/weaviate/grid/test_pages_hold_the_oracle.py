"""Every page, filtered and sorted in any way, is what plain Python makes of the same objects, or a refusal (W21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from drivers.weaviate.grid import oracle
from drivers.weaviate.rig import OnFake, OnServer, Rig, key, on_fake, on_server, ordinary
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman_api import Filter, FilterNotSupportedError, PageRequest, Sort
from dragoman_api import Operator as Op
from dragoman_api.exports import ExportForm
from dragoman_weaviate import export
from dragoman_weaviate.grid import pages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "title": st.sampled_from([*oracle.WORDS, "tea time", "te", "TEA", "!", ""]),
    "code": st.sampled_from([*oracle.CODES, "A", "1", "wo"]),
    "spaced": st.sampled_from([*oracle.WORDS, "@", "a@b", "tea sea"]),
    "i": st.sampled_from(oracle.INTS) | st.integers(-10, 3000),
    "ranged": st.integers(-6, 6),
    "n": st.sampled_from(oracle.NUMBERS),
    "b": st.booleans(),
    "d": st.sampled_from(oracle.DATES),
    "u": st.sampled_from([*oracle.UUIDS, oracle.UUIDS[3].upper()]),
    "uuid": st.integers(0, 50).map(oracle.key),
    "tags": st.sampled_from([*oracle.WORDS, "te"]),
    "sizes": st.sampled_from(oracle.INTS),
    "o": st.just({"k": 1}),
}
LISTS = (Op.IN, Op.NOT_IN)
NONE = (Op.NULL, Op.NOT_NULL, Op.EMPTY, Op.NOT_EMPTY)
SORTABLE = ["title", "code", "i", "ranged", "n", "b", "d", "uuid"]


@st.composite
def filter_row(draw: st.DrawFn) -> Filter:
    column, op = draw(st.sampled_from(list(VALUES))), draw(st.sampled_from(list(Op)))
    value = VALUES[column]
    if op in NONE:
        return Filter(column, op)
    if op is Op.BETWEEN:
        return Filter(column, op, draw(st.lists(value, min_size=2, max_size=2)))
    return Filter(column, op, draw(st.lists(value, min_size=1, max_size=4) if op in LISTS else value))


SORTS = st.lists(
    st.builds(Sort, st.sampled_from(SORTABLE), descending=st.booleans()), max_size=2, unique_by=lambda each: each.column
)


def check(
    connection: AbstractAsyncContextManager[Rig], *, rows: int, shards: Sequence[int], examples: int, page: int
) -> None:
    """Hold the law over one set of objects, stored in collections with different numbers of shards."""
    outcomes = {"ran": 0, "refused": 0}
    items = oracle.objects(rows)

    async def fill(wv: Rig) -> list[str]:
        return [await wv.collection(oracle.TYPES, items, shards=each) for each in shards]

    async def run(wv: Rig, name: str, filters: list[Filter], match: str, sort: list[Sort], size: int) -> None:
        try:
            compiled = await wv.filter(name, *filters, match=match) if filters else None
        except FilterNotSupportedError as refusal:
            outcomes["refused"] += bool(refusal.details["reason"])
            return
        join = all if match == "all" else any
        due = [item for item in items if not filters or join(oracle.holds(row, item) for row in filters)]
        want = [item["id"] for item in oracle.ordered(due, sort)]
        found: list[str] = []
        while True:
            request = PageRequest(
                object=name, filter=compiled, sort=sort, offset=len(found), limit=size, columns=["uuid"]
            )
            got = await wv.driver.fetch_page(request)
            found += [each.id for each in got.keys]
            assert got.total == len(want), (filters, match)
            if len(got.keys) < size:
                break
        if filters and not sort:  # the rows are in an order of the server's, each of them once
            found, want = sorted(found), sorted(want)
        assert found == want, (name, filters, match, sort)
        if compiled is not None and size % 4 == 0:  # an export goes another way to the same rows
            lines = await wv.export(name, *filters, match=match, form=ExportForm.ROWS)
            assert sorted(line["id"] for line in lines) == sorted(want), (name, filters, match)
        outcomes["ran"] += 1

    with anyio.from_thread.start_blocking_portal() as portal, portal.wrap_async_context_manager(connection) as wv:
        names = portal.call(fill, wv)

        @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
        @given(
            st.sampled_from(names),
            st.lists(filter_row(), max_size=2),
            st.sampled_from(["all", "any"]),
            SORTS,
            st.integers(page // 2, page * 2),
        )
        def law(name: str, filters: list[Filter], match: str, sort: list[Sort], size: int) -> None:
            portal.call(run, wv, name, filters, match, sort, size)

        law()
    assert min(outcomes.values()) > examples / 10, outcomes


FAR = ["9999-12-31T00:00:00Z", "1000-01-01T00:00:00Z"]
EDGES = [2**63 - 1, -(2**63), 2**53, 0]


def rows_at_the_edges(count: int) -> list[dict[str, Any]]:
    """Make rows with ties, in no order, and with values whose keys overflow."""
    rows = []
    for at in range(count):
        mixed = at * 7919 % count
        row = {"i": EDGES[at % 4] if at % 29 == 0 else mixed // 3, "n": (mixed - count / 2) / 7, "t": f"w{mixed % 90}"}
        row["m"] = (mixed - count // 2) // 3  # none of whose keys overflows
        row |= {
            "sizes": [mixed % 50, mixed],
            "d": FAR[at % 2] if at % 31 == 0 else f"2024-01-{1 + mixed % 28:02}T00:00:00Z",
        }
        rows.append(row if at % 11 else {"t": "none"})
    return rows


def smaller(value: int) -> int:
    """Return an integer as the index has it."""
    return value if value < 2**63 - 512 else -(2**63)


LONE: list[tuple[Filter, Callable[[dict[str, Any]], bool]]] = [
    (Filter("i", ">", 20), lambda row: smaller(row.get("i", 0)) > 20),
    (Filter("i", ">=", -(2**63)), lambda row: "i" in row),
    (Filter("i", ">", -(2**63)), lambda row: "i" in row and smaller(row["i"]) > -(2**63)),
    (Filter("i", "<", 150), lambda row: "i" in row and smaller(row["i"]) < 150),
    (Filter("i", "<=", -(2**63)), lambda row: "i" in row and smaller(row["i"]) == -(2**63)),
    (Filter("m", "<", 150), lambda row: row.get("m", 150) < 150),
    (Filter("m", "<=", -3), lambda row: row.get("m", 0) <= -3),
    (Filter("n", "<", 0), lambda row: row.get("n", 0) < 0),
    (Filter("i", "=", 0), lambda row: row.get("i") == 0),
    (Filter("i", "!=", 0), lambda row: row.get("i") != 0),
    (Filter("n", ">=", -20.5), lambda row: "n" in row and row["n"] >= -20.5),
    (Filter("n", "<=", 20.5), lambda row: "n" in row and row["n"] <= 20.5),
    (Filter("t", "contains", "w1"), lambda row: row["t"].startswith("w1")),
    (Filter("t", "=", "none"), lambda row: row["t"] == "none"),
    (Filter("sizes", ">", 10), lambda row: max(row.get("sizes", [0])) > 10),
    (Filter("sizes", "not-empty"), lambda row: "sizes" in row),
    (Filter("d", ">", "2024-01-03T00:00:00Z"), lambda row: "d" in row and far(row["d"]) > "2024-01-03T00:00:00Z"),
    (Filter("uuid", "!=", key(5)), lambda row: True),
    (Filter("i", "null"), lambda row: "i" not in row),
    (Filter("i", "in", [1, 2, 3, 2**53]), lambda row: row.get("i") in (1, 2, 3, 2**53)),
]


def far(text: str) -> str:
    """Return a date as the index has it: the year 9999 compares as 1816, the year 1000 as 2169."""
    return {FAR[0]: "1816", FAR[1]: "2169"}.get(text, text)


class Lone:
    @pytest.mark.slow
    @pytest.mark.parametrize("shards", [1, 3])
    async def test_pages_of_a_lone_clause_hold_each_row_once(self, wv: Rig, shards: int) -> None:
        """W21: read to its end by offset, with any size of page, a filter gives every matching row exactly once."""
        rows = rows_at_the_edges(400)
        types = {"i": "int", "m": "int", "n": "number", "t": "text", "sizes": "int[]", "d": "date"}
        name = await wv.collection(types, rows, shards=shards)
        for filter_row, matches in LONE:
            due = sorted(key(at) for at, row in enumerate(rows) if matches(row))
            if filter_row.column == "uuid":
                due.remove(key(5))
            compiled = await wv.filter(name, filter_row)
            for sort in ([], [Sort(filter_row.column)], [Sort(filter_row.column, descending=True), Sort("t")]):
                found: list[str] = []
                while len(page := await self._page(wv, name, compiled, sort, len(found))) == 23:
                    found += page
                assert sorted([*found, *page]) == due, (filter_row, sort)

    async def _page(self, wv: Rig, name: str, compiled: Any, sort: list[Sort], offset: int) -> list[str]:
        request = PageRequest(
            object=name, filter=compiled, sort=sort, offset=offset, limit=23, columns=["uuid"], total=False
        )
        return [each.id for each in (await wv.driver.fetch_page(request)).keys]


class TestLoneOnFake(OnFake, Lone):
    pass


@pytest.mark.one_engine
class TestLoneOnServer(OnServer, Lone):
    pass


@pytest.mark.slow
def test_every_page_holds_the_oracle() -> None:
    """W21: on a fake that gives the wrong pages a real server gives."""
    check(on_fake(), rows=40, shards=(1, 3), examples=100, page=4)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pages and exports of few rows read windows of ids, most of them too small."""
    monkeypatch.setattr(pages, "EVERY", 1)
    monkeypatch.setattr(pages, "_FEW", 1)
    monkeypatch.setattr(pages, "_MOST", 0.99)
    monkeypatch.setattr(export, "_MOST", 5)


@pytest.mark.slow
@pytest.mark.usefixtures("narrow")
def test_every_page_in_windows_of_ids_holds_the_oracle() -> None:
    """W21."""
    check(on_fake(), rows=40, shards=(1, 3), examples=100, page=4)


@pytest.mark.live("weaviate")
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("narrow")
def test_every_page_in_windows_of_ids_holds_the_oracle_on_a_server(live_server: dict[str, Any]) -> None:
    """W21."""
    ordinary(live_server)
    if live_server["engine"].endswith(("-rbac", "-tls", "-tenants", "-open")):
        pytest.skip("one engine holds it; keys and certificates change no page")
    check(on_server(live_server), rows=60, shards=(1, 3), examples=100, page=4)


@pytest.mark.live("weaviate")
@pytest.mark.timeout(600)
def test_every_page_holds_the_oracle_on_a_server(live_server: dict[str, Any]) -> None:
    """W21: a few thousand objects, one shard and three."""
    ordinary(live_server)
    if live_server["engine"].endswith(("-rbac", "-tls", "-tenants", "-open")):
        pytest.skip("one engine holds it; keys and certificates change no page")
    check(on_server(live_server), rows=2_000, shards=(1, 3), examples=100, page=400)
