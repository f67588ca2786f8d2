"""Pages: sorts, totals, the switch past 10,000 rows, windows, and what a page says of itself."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest
from aiohttp import web
from drivers.elasticsearch.rig import OnFake, OnServer, Rig, connected, on_fake, on_server, profile
from drivers.elasticsearch.test_objects import read, view
from drivers.replies import Answers, reply
from msgspec import Raw
from msgspec.structs import replace

from dragoman_api import CountRequest, Filter, FilterRequest, Page, PageRequest, QueryError, RawQuery, Sort, TimeRange
from dragoman_api.errors import ConnectionFailedError, WindowExceededError
from dragoman_api.grid import PreviewRequest
from dragoman_api.remedies import Remedy
from dragoman_elasticsearch.connect import POINTS, dialect_of
from dragoman_querydsl.columns import exactness
from dragoman_querydsl.grid import deep_pages, pages
from dragoman_querydsl.grid.deep_pages import reverse
from dragoman_querydsl.grid.filters import compile_filter
from dragoman_querydsl.grid.pages import compile_sort

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from wording import Wording

MODERN = dialect_of((8, 19, 0))
TEXT = {"type": "text", "fields": {"keyword": {"type": "keyword"}}}
KEYWORD = {"type": "keyword"}


def keys(*sorts: Sort, mappings: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    return compile_sort(sorts, view(*mappings), MODERN)[0]


def mapped(**properties: Any) -> dict[str, Any]:
    return {"properties": properties}


# sort keys


def test_E25_a_text_sorts_by_its_keyword() -> None:
    assert list(keys(Sort("t"), mappings=(mapped(t=TEXT),))[0]) == ["t.keyword"]


def test_E24_E37_what_does_not_sort_is_dropped_and_reported() -> None:
    nested = {"type": "nested", "properties": {"a": {"type": "long"}}}
    found = view(mapped(t={"type": "text"}, n=nested, o={"type": "object"}, k={"type": "keyword"}))
    asked = [Sort(name) for name in ("_id", "t", "n", "o", "_score", "k")]
    compiled, notes = compile_sort(asked, found, MODERN)
    assert [next(iter(key)) for key in compiled] == ["k"]
    assert {note.code for note in notes} == {"sort-dropped"}
    assert {note.column: note.reason for note in notes} == {
        "_id": "the server does not sort by _id",
        "t": "text field without a .keyword subfield",
        "n": "JSON column of a nested array; sort by one of its leaves",
        "o": "its values have no order",
        "_score": "the score orders a page that has no sort",
    }


def test_E37_a_sort_by_an_unknown_column_is_an_error_that_names_it() -> None:
    with pytest.raises(QueryError) as caught:
        compile_sort([Sort("k"), Sort("nope")], view(mapped(k={"type": "keyword"})), MODERN)
    assert caught.value.details == {"column": "nope"}


def test_rows_sort_by_their_index_in_both_directions() -> None:
    plain = (mapped(k={"type": "keyword"}),)
    assert keys(Sort("_index"), mappings=plain) == [{"_index": {"order": "asc"}}]
    assert keys(Sort("_index", descending=True), mappings=plain) == [{"_index": {"order": "desc"}}]


def test_E24_a_nested_leaf_names_its_array() -> None:
    """Without it 7.17 sorts by nothing and says nothing."""
    inner = {"type": "nested", "properties": {"c": {"type": "long"}}}
    found = mapped(n={"type": "nested", "properties": {"a": {"type": "long"}, "in": inner}})
    assert keys(Sort("n.a"), mappings=(found,))[0]["n.a"]["nested"] == {"path": "n"}
    assert keys(Sort("n.in.c"), mappings=(found,))[0]["n.in.c"]["nested"] == {"path": "n", "nested": {"path": "n.in"}}


def test_a_field_that_some_indices_lack_has_a_type_there() -> None:
    found = (mapped(k={"type": "keyword"}, t=TEXT), mapped(x={"type": "long"}))
    assert keys(Sort("k"), Sort("t"), Sort("x"), mappings=found) == [
        {"k": {"order": "asc", "missing": "_last", "mode": "min", "unmapped_type": "keyword"}},
        {"t.keyword": {"order": "asc", "missing": "_last", "mode": "min", "unmapped_type": "keyword"}},
        {"x": {"order": "asc", "missing": "_last", "mode": "min", "unmapped_type": "long"}},
    ]
    assert "unmapped_type" not in keys(Sort("k"), mappings=found[:1])[0]["k"]


def test_a_half_float_sorts_as_a_double_and_mixed_dates_as_nanoseconds() -> None:
    assert keys(Sort("h"), mappings=(mapped(h={"type": "half_float"}),))[0]["h"]["numeric_type"] == "double"
    both = (mapped(d={"type": "date"}), mapped(d={"type": "date_nanos"}))
    assert keys(Sort("d"), mappings=both)[0]["d"]["numeric_type"] == "date_nanos"
    assert keys(Sort("d", descending=True), mappings=both)[0]["d"]["missing"] == 0, "it is compared in nanoseconds"


@pytest.mark.parametrize(
    ("one", "two", "sorted_as", "approximate"),
    [
        ("integer", "long", "long", False),
        ("integer", "double", "double", False),
        ("half_float", "half_float", "double", False),
        ("long", "double", "double", True),
        ("long", "unsigned_long", "double", True),
        ("scaled_float", "integer", "double", True),
    ],
)
def test_numbers_of_several_types_sort_by_what_holds_them_or_it_is_said(
    one: str, two: str, sorted_as: str, *, approximate: bool
) -> None:
    found = view(*(mapped(x={"type": kind}, **{f"_{kind}": {"type": "long"}}) for kind in (one, two)))
    compiled, notes = compile_sort([Sort("x")], found, MODERN)
    assert compiled[0]["x"]["numeric_type"] == sorted_as
    assert [note.code for note in notes] == ["sort-approximate"] * approximate


_LOWERED = {"type": "keyword", "normalizer": "lowercase"}


@pytest.mark.parametrize(
    ("column", "properties", "names"),
    [
        ("x", {"x": {"type": "keyword", "null_value": "none"}}, ["null_value"]),
        ("x", {"x": {"type": "integer", "null_value": 0}}, ["null_value"]),
        ("x", {"x": _LOWERED}, ["normalizer"]),
        ("x", {"x": _LOWERED | {"null_value": "None"}}, ["null_value", "normalizer"]),
        ("x", {"x": {"type": "text", "fields": {"keyword": _LOWERED}}}, ["normalizer"]),
        ("y", {"x": _LOWERED, "y": {"type": "alias", "path": "x"}}, ["normalizer"]),
        ("x", {"x": {"type": "keyword"}, "y": {"type": "keyword", "copy_to": "x"}}, ["copy_to"]),
        ("x", {"x": {"type": "long", "script": {"source": "emit(1)"}}}, ["script"]),
        ("x", {"x": {"type": "constant_keyword", "value": "a"}}, ["constant_keyword"]),
        ("x", {"x": {"type": "token_count", "analyzer": "standard"}}, ["token_count"]),
        ("x.a", {"x": {"type": "flattened"}}, ["flattened, order"]),
        ("x", {"x": {"type": "keyword", "ignore_above": 3}}, []),
        ("x", {"x": {"type": "double"}}, []),
    ],
)
def test_a_sort_by_what_no_row_shows_says_so(column: str, properties: dict[str, Any], names: list[str]) -> None:
    """E24: what a filter row on the column calls approximate, and in the words of that filter row."""
    compiled, notes = compile_sort([Sort(column)], view(mapped(**properties)), MODERN)
    assert len(compiled) == 1
    starts = {each.name: each.reason.partition("{")[0] for each in exactness.TABLE}
    assert [(note.code, note.column) for note in notes] == [("sort-approximate", column)] * len(names)
    assert all(note.reason.startswith(starts[name]) for note, name in zip(notes, names, strict=True))


@pytest.mark.parametrize(
    ("version", "column", "said"),
    [
        ((7, 10, 2), "k", True),
        ((7, 10, 2), "t", True),
        ((7, 10, 2), "i", False),
        ((7, 11, 0), "k", False),
        ((7, 11, 0), "t", False),
        ((8, 19, 0), "n.k", True),
        ((8, 19, 0), "n.i", True),
        ((8, 19, 0), "n.plain", False),
    ],
)
def test_a_sort_says_that_rows_do_not_tell_what_is_not_indexed(
    version: tuple[int, int, int], column: str, *, said: bool
) -> None:
    """E24: a row has no `_ignored` for long strings before 7.11, nor ever for what is inside a nested array."""
    short, number = {"type": "keyword", "ignore_above": 3}, {"type": "integer", "ignore_malformed": True}
    nested = {"type": "nested", "properties": {"k": short, "i": number, "plain": {"type": "long"}}}
    text = {"type": "text", "fields": {"keyword": short}}
    found = view(mapped(k=short, t=text, i=number, n=nested))
    compiled, notes = compile_sort([Sort(column)], found, dialect_of(version))
    assert len(compiled) == 1
    assert [(note.code, note.column) for note in notes] == [("sort-approximate", column)] * said
    assert all("not indexed" in note.reason for note in notes)


def test_a_sort_says_what_the_mappings_do_not_tell() -> None:
    """E24: one index stores the column without a mapping, or the credentials may not read the mapping."""
    union = view(mapped(k={"type": "keyword"}), {"dynamic": False, "properties": {"x": {"type": "long"}}})
    caps = {"k": {"keyword": {"searchable": True, "aggregatable": True}}}
    hidden = read("x", None, {"indices": ["a"], "fields": caps})
    for found in (union, hidden):
        compiled, notes = compile_sort([Sort("k")], found, MODERN)
        assert (len(compiled), [(note.code, note.column) for note in notes]) == (1, [("sort-approximate", "k")])


def test_a_computed_column_sorts_by_what_it_shows() -> None:
    found = view({"runtime": {"x": {"type": "long", "script": {"source": "emit(1)"}}}, "properties": {}})
    compiled, notes = compile_sort([Sort("x")], found, MODERN)
    assert (len(compiled), notes) == (1, [])


def test_no_sort_key_has_a_format() -> None:
    assert "format" not in keys(Sort("d"), mappings=(mapped(d={"type": "date", "format": "epoch_second"}),))[0]["d"]


def test_a_reversed_sort_turns_order_and_missing_and_keeps_the_mode() -> None:
    forward = [*keys(Sort("k", descending=True), mappings=(mapped(k={"type": "long"}),)), *POINTS.order]
    assert reverse(forward) == [
        {"k": {"order": "asc", "missing": "_first", "mode": "max"}},
        {"_shard_doc": {"order": "desc"}},
    ]
    assert reverse(reverse(forward)) == forward


def test_a_missing_date_has_the_same_number_in_both_directions() -> None:
    """Backward too, rows without a date are at the end; a word would make the server leave some out."""
    forward = keys(Sort("d", descending=True), mappings=(mapped(d={"type": "date"}),))
    assert forward[0]["d"]["missing"] == -9223372036854775000
    assert reverse(forward)[0]["d"] == forward[0]["d"] | {"order": "asc"}


# a page that is right, or says that it is not


@pytest.mark.parametrize("cursor", ["abc", "", "20"])
def test_a_cursor_is_refused_since_no_page_gives_one(cursor: str) -> None:
    request = PageRequest(object="a", cursor=cursor)
    found = view(mapped(n={"type": "long"}))
    with pytest.raises(QueryError) as caught:
        pages.page_query(request, found, MODERN, window=10, preference="p")
    assert caught.value.code == "cursor-invalid"


async def answered(found: dict[str, Any]) -> Page:
    """Return the page that a driver makes of a search answer."""
    asked, seen = PageRequest(object="x"), view(mapped(n={"type": "long"}))
    grid = pages.page_query(asked, seen, MODERN, window=10_000, preference="p")
    return Answers(reply(found)).run(grid.shallow_page())


@pytest.mark.fake_only(reason="no engine here loses a shard on request")
@pytest.mark.parametrize(
    ("more", "said"),
    [({"_shards": {"total": 3, "failed": 1}}, "1 of 3 shards failed"), ({"timed_out": True}, "timed out")],
)
async def test_a_partial_answer_is_said(more: dict[str, Any], said: str) -> None:
    page = await answered({"hits": {"total": {"value": 0, "relation": "eq"}, "hits": []}} | more)
    assert [note.code for note in page.notes] == ["partial-result"]
    assert said in page.notes[0].reason


def test_E42_the_window_is_named_where_settings_may_not_be_read() -> None:
    asked, seen = PageRequest(object="x", offset=450, limit=100), view(mapped(n={"type": "long"}))
    grid = pages.page_query(asked, seen, MODERN, window=10_000, preference="p")
    text = "Result window is too large, from + size must be less than or equal to: [500] but was [550]."
    cause = {"type": "illegal_argument_exception", "reason": text}
    answers = Answers(reply({"error": cause | {"root_cause": [cause]}, "status": 400}, 400), reply("", 403))
    with pytest.raises(WindowExceededError, match=r"^'x' shows its first 500 rows only .* is 500\)"):
        answers.run(grid.shallow_page())


async def test_a_walk_keeps_to_the_copies_of_shards_that_the_connections_first_pages_use() -> None:
    async with on_fake("8.19.21", options={"window": "index"}) as es:
        rows, settings = [{"n": at} for at in range(15)], {"index.max_result_window": 10}
        name = await es.index({"n": {"type": "long"}}, rows, settings=settings)
        for offset in (0, 10):
            await es.page(name, offset=offset, limit=5)
        [shallow] = es.sent("POST", f"/{name}/_search?")
        [opened] = es.sent("POST", "/_pit?")
        [chosen] = parse_qs(urlsplit(shallow.path).query)["preference"]
        assert parse_qs(urlsplit(opened.path).query)["preference"] == [chosen]


async def small(es: Rig, name: str, window: int = 10) -> str:
    """Make an index of 15 rows with a small window."""
    rows, settings = [{"n": at} for at in range(15)], {"index.max_result_window": window}
    return await es.index({"n": {"type": "long"}}, rows, name=name, settings=settings)


@pytest.mark.parametrize("option", [None, "", "fixed", "10000", False])
async def test_E41_only_a_connection_that_asks_for_it_follows_the_window_of_an_index(option: Any) -> None:
    """And never past row 10,000."""
    async with on_fake("8.19.21", options={} if option is None else {"window": option}) as es:
        name = await small(es, "small")
        with pytest.raises(WindowExceededError):
            await es.page(name, offset=10, limit=1)
        assert es.sent("POST", "_pit") == []
    async with on_fake("8.19.21", options={"window": "index"}) as es:
        for window, switched in ((10, True), (20_000, False)):
            name = await small(es, f"w{window}", window)
            mark = len(es.sent("POST", "_pit"))
            await es.page(name, offset=10, limit=1)
            assert len(es.sent("POST", "_pit")) - mark == switched
        await es.page(name, offset=9_999, limit=2)
        assert len(es.sent("POST", "_pit")) == 2, "past row 10,000, whatever the index allows"


async def test_the_walk_that_was_used_longest_ago_makes_room_and_one_object_keeps_those_of_others() -> None:
    async with on_fake("8.19.21", options={"window": "index"}) as es:
        names = [await small(es, each) for each in "ab"]

        async def walk(name: str, *columns: str) -> None:
            await es.page(name, columns=[*columns], offset=10, limit=2)

        def walks() -> list[tuple[str, bool]]:
            return [(each.pager.name, bool(each.pager.close())) for each in es.driver._pagers.values()]

        for columns in (["n"], ["_id"], ["n", "_id"]):
            await walk(names[0], *columns)
        await walk(names[1], "n")
        await walk(names[0], "n")  # again, so that the second is the oldest
        mark = len(es.sent("DELETE", "/_pit"))
        keys_ = [*es.driver._pagers]
        await walk(names[0], "_index")
        assert [*es.driver._pagers] == [*keys_[1:], [*es.driver._pagers][-1]]
        assert (len(walks()), len(es.sent("DELETE", "/_pit")) - mark) == (4, 1)
        await es.driver.describe_object(names[0])
        assert walks() == [(names[1], True)]
        await es.driver.close()
        assert walks() == []
        assert len(es.sent("DELETE", "/_pit")) == len(es.sent("POST", "/_pit"))


async def test_a_preview_shows_what_is_sent_with_the_filter_and_the_range_of_time() -> None:
    async with on_fake("8.19.21") as es:
        name = await es.index({"n": {"type": "long"}, "@timestamp": {"type": "date"}}, [{"n": 1}])
        where = await es.filter(name, Filter("n", ">", 0))
        span = TimeRange(column="@timestamp", since="2024-12-31T00:00:00Z")
        for more in ({}, {"filter": where}, {"time": span}, {"filter": where, "time": span}):
            count, page = CountRequest(object=name, **more), PageRequest(object=name, limit=7, **more)
            previews = (PreviewRequest(count=count), PreviewRequest(page=page))
            calls = ((es.driver.count_rows, count), (es.driver.fetch_page, page))
            for preview, (call, request) in zip(previews, calls, strict=True):
                [shown] = await es.driver.preview_read(preview)
                await call(request)
                [sent] = [each for each in es.log[-3:] if each.path == shown.path][-1:]
                assert (sent.method, sent.body) == (shown.method, shown.body)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_E42_the_window_of_several_indices_is_the_smallest_of_them(order: tuple[int, ...]) -> None:
    """One was set, two have their defaults; a number is compared as a number."""
    key = "index.max_result_window"
    indices = [{"settings": {key: "900"}, "defaults": {}}, {"settings": {}, "defaults": {key: "10000"}}]
    indices.append({"settings": {key: "50000"}, "defaults": {}})
    answer = {f"i{at}": indices[at] for at in order}
    assert Answers(reply(answer)).run(pages.window_setting("i*")) == 900
    assert Answers(reply({"a": indices[1], "b": indices[2]})).run(pages.window_setting("i*")) == 10_000


def test_pages_share_a_walk_only_if_all_of_their_result_is_the_same() -> None:
    """Another part of it makes another result: rows of one would be shown for the other."""
    found = view(mapped(n={"type": "long"}, k={"type": "keyword"}, **{"@timestamp": {"type": "date"}}))

    def key(seen: Any = found, **more: Any) -> str:
        request = PageRequest(**{"object": "x", "offset": 20_000, "limit": 10} | more)
        return pages.page_query(request, seen, MODERN, window=10_000, preference="p").result_key

    filters = [compile_filter(FilterRequest(object="x", rows=[Filter("n", ">", at)]), found, MODERN) for at in (1, 2)]
    span = TimeRange(column="@timestamp", since="2024-12-31T00:00:00Z")
    others = [
        key(object="y"),
        key(view(mapped(n={"type": "long"}, k={"type": "keyword"}, o=KEYWORD))),
        key(columns=["n"]),
        key(columns=["k"]),
        key(columns=["n", "k"]),
        key(filter=filters[0]),
        key(filter=filters[1]),
        key(time=span),
        key(sort=[Sort("n")]),
        key(sort=[Sort("n", descending=True)]),
        key(sort=[Sort("n"), Sort("k")]),
        key(sort=[Sort("k"), Sort("n")]),
    ]
    assert len({key(), *others}) == len(others) + 1
    assert key(offset=30_000, limit=5, total=False) == key()


def test_what_a_server_says_of_a_later_row_is_said_of_the_page() -> None:
    """The first row is an ordinary one: its index, its document and its values."""
    found = view(mapped(n={"type": "long"}, k=KEYWORD), mapped(n={"type": "long"}))
    first = {"_index": "a", "_id": "1", "_source": {"n": 1}}
    second = {"_index": "b", "_id": "2", "_source": {"n": 1, "new": 5}, "_ignored": ["k"]}
    third = {"_index": "b", "_id": "3", "_ignored": ["n", "k.keyword", "unmapped"]}
    grid = pages.page_query(PageRequest(object="x"), found, MODERN, window=10_000, preference="p")
    page = Answers(reply({"hits": {"hits": [first, second, third]}})).run(grid.shallow_page())
    codes = [(note.code, note.column) for note in page.notes]
    assert sorted(codes, key=str) == [
        ("keys-left-out", None),
        ("source-missing", None),
        ("value-not-indexed", "k"),
        ("value-not-indexed", "k"),
        ("value-not-indexed", "n"),
    ]
    assert [row["n"] for row in page.rows] == [1, 1, None]
    alone = pages.page_query(PageRequest(object="x"), replace(found, objects=("x",), target="x"), MODERN,
                             window=10_000, preference="p")  # fmt: skip
    for rows in ([first, second], [first | {"_index": "x"}, second]):
        with pytest.raises(QueryError, match="'b', not of 'x'"):
            Answers(reply({"hits": {"hits": rows}})).run(alone.shallow_page())


def test_a_page_without_rows_lacks_nothing_and_a_later_sort_is_told_like_the_first() -> None:
    found = view(mapped(n={"type": "long"}, m={"type": "long"}, s=KEYWORD) | {"_source": {"excludes": ["s"]}})
    request = PageRequest(object="x", sort=[Sort("n"), Sort("m")], columns=["n", "m", "s"])
    for rows, notes in (
        ([], []),
        ([{"n": 1, "m": 1}, {"n": 1, "m": 1.5}], [("columns-left-out", "s"), ("sort-approximate", "m")]),
        ([{"n": "1", "m": 1}], [("columns-left-out", "s"), ("sort-approximate", "n")]),
    ):
        hits = [{"_index": "a", "_id": str(at), "_source": source} for at, source in enumerate(rows)]
        grid = pages.page_query(request, found, MODERN, window=10_000, preference="p")
        page = Answers(reply({"hits": {"hits": hits}})).run(grid.shallow_page())
        assert [(note.code, note.column) for note in page.notes] == notes


def test_every_index_that_explains_why_a_raw_row_finds_nothing_is_heard() -> None:
    causes = [f'MatchNoDocsQuery("cause {at}")' for at in range(5)]
    answer = {"explanations": [{"index": "a", "explanation": causes[0]}, {"index": "b", "error": causes[1]}]}
    notes = Answers(reply(answer)).run(pages.why_nothing("x", Raw(b"{}")))
    assert [note.reason.rpartition(": ")[2] for note in notes] == ["cause 0", "cause 1"]
    for text, told in (
        (f"{causes[0]} | n:1", []),
        (f"n:1 | {causes[0]}", []),
        (f"({causes[0]} | {causes[1]})", ["cause 0"]),
        (f"+({causes[0]} | n:1) +{causes[1]} +{causes[2]}", ["cause 1", "cause 2"]),
        (" ".join(f"+{cause}" for cause in causes), ["cause 0", "cause 1", "cause 2"]),
    ):
        notes = Answers(reply({"explanations": [{"explanation": text}]})).run(pages.why_nothing("x", Raw(b"{}")))
        assert [note.reason.rpartition(": ")[2] for note in notes] == told, text


async def test_a_walk_says_once_that_its_snapshot_is_a_newer_one_and_counts_only_if_it_is_asked_to() -> None:
    async with on_fake("8.19.21", options={"window": "index"}) as es:
        name = await small(es, "renewed")
        for total, rows in ((True, 15), (False, None)):
            page = await es.page(name, offset=10, limit=10, total=total)
            assert (page.total, len(page.cells)) == (rows, 5)
        [walk] = [each.pager for each in es.driver._pagers.values()]
        freed = walk.close()
        assert freed is not None
        await es.call(freed.method, freed.path, freed.body)
        codes = [[note.code for note in (await es.page(name, offset=10, limit=10)).notes] for _ in range(2)]
        assert codes == [["snapshot", "snapshot-renewed"], ["snapshot"]]


@pytest.mark.parametrize(("version", "size"), [((8, 19, 21), 5), ((7, 10, 2), 20)])
def test_a_walk_asks_with_the_newest_name_of_its_context_and_frees_that(
    version: tuple[int, int, int], size: int
) -> None:
    """The server may give another with every answer, and forgets the one before."""
    request = PageRequest(object="x", offset=20, limit=size, sort=[Sort("n")], columns=["_id"])
    query = pages.page_query(request, view(mapped(n={"type": "long"})), MODERN, window=10, preference="p")
    walk, total = query.pager(dialect_of(version)), {"value": 400 if size == 5 else 40, "relation": "eq"}

    def answer(name: str, first: int, size: int = 10) -> Any:
        rows = [{"_index": "a", "_id": str(at), "sort": [at, at]} for at in range(first, first + size)]
        return reply({"pit_id": name, "_scroll_id": name, "hits": {"total": total, "hits": rows}})

    if size == 5:
        script = Answers(reply({"id": "0"}), answer("1", 0, 0), answer("2", 0), answer("3", 10), answer("4", 20, 5))
    else:
        script = Answers(answer("1", 0), answer("2", 10), answer("3", 20), answer("4", 30))
    hits = script.run(walk.fetch(20, size, {}))
    assert [hit.id for hit in hits] == [str(at) for at in range(20, 20 + size)]
    bodies = [json.loads(each.body or "{}") for each in script.asked]
    names = [body["pit"]["id"] if "pit" in body else body.get("scroll_id") for body in bodies]
    assert names == ([None, "0", "1", "2", "3"] if size == 5 else [None, "1", "2", "3"])
    freed = walk.close()
    assert freed is not None
    assert '"4"' in str(freed.body)


async def test_every_search_refuses_partial_results() -> None:
    async with on_fake("8.19.21") as es:
        name = await es.index(documents=[{"n": 1}], properties={"n": {"type": "long"}})
        await es.page(name)
        await es.page(name, offset=10_000, limit=10)
        searches = es.sent("POST", "_search")
        assert searches
        assert all("allow_partial_search_results=false" in each.path for each in searches)


class PageRules:
    async def test_totals_are_exact_or_left_out(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(20)])
        page = await es.page(name, limit=5)
        assert (page.total, page.total_exact, len(page.cells)) == (20, True, 5)
        assert (await es.page(name, limit=5, total=False)).total is None
        assert (await es.page(name, Filter("n", "<", 7), limit=5)).total == 7

    async def test_a_page_carries_what_protects_a_change(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}])
        await es.call("PUT", f"/{name}/_doc/r?routing=a%2Fb&refresh=true", {"n": 2})
        keys_ = {key.id: key for key in (await es.page(name)).keys}
        assert keys_["0"].guard == {"seq_no": 0, "primary_term": 1}
        assert (keys_["r"].object, keys_["r"].routing) == (name, "a/b")

    async def test_E37_a_dropped_sort_leaves_the_order_unchanged(self, es: Rig) -> None:
        name = await es.index({"t": {"type": "text"}}, [{"t": text} for text in "cab"])
        plain = (await es.page(name)).keys
        page = await es.page(name, sort=[Sort("t"), Sort("_id", descending=True)])
        assert page.keys == plain
        assert [note.column for note in page.notes] == ["t", "_id"]

    @pytest.mark.parametrize(
        ("kind", "values"),
        [
            (TEXT, ["b", "a", None, "c"]),
            ({"type": "long"}, [2**62, -(2**63), None, 7]),
            ({"type": "half_float"}, [1.5, -2.0, None, 0.25]),
            ({"type": "double"}, [1e300, -1e300, None, 0.1]),
            ({"type": "boolean"}, [True, False, None, True]),
            ({"type": "date"}, ["2024-02-01", "1969-01-01", None, "2024-01-01"]),
            ({"type": "ip"}, ["10.0.0.2", "9.0.0.1", None, "::1"]),
        ],
    )
    async def test_sorts_order_rows_with_missing_values_last(self, es: Rig, kind: Any, values: list[Any]) -> None:
        """Both ways, missing values at the end."""
        documents = [{} if value is None else {"x": value} for value in values]
        name = await es.index({"x": kind}, documents)
        for descending in (False, True):
            page = await es.page(name, sort=[Sort("x", descending=descending)])
            got = [row["x"] for row in page.rows]
            assert got[-1] is None
            known = [value for value in values if value is not None]
            if kind["type"] != "ip":
                assert got[:-1] == sorted(known, reverse=descending)
            else:
                assert got[:-1] == (["10.0.0.2", "9.0.0.1", "::1"] if descending else ["::1", "9.0.0.1", "10.0.0.2"])

    async def test_E24_a_page_says_what_its_sort_takes_for_a_stored_null_and_a_capital(self, es: Rig) -> None:
        properties = {"void": {"type": "keyword", "null_value": "m"}, "folded": _LOWERED, "copied": {
            "type": "keyword", "copy_to": "gathered"}, "gathered": {"type": "keyword"}}  # fmt: skip
        rows = [{"void": "z", "folded": "a", "gathered": "z"}, {"void": None, "folded": "B", "copied": "m"},
                {"void": "a", "folded": "c", "gathered": "a"}]  # fmt: skip
        index = await es.index(properties, rows)
        for column, order in (("void", ["2", "1", "0"]), ("folded", ["0", "1", "2"]), ("gathered", ["2", "1", "0"])):
            page = await es.page(index, sort=[Sort(column)])
            assert [row["_id"] for row in page.rows] == order
            assert [(note.code, note.column) for note in page.notes] == [("sort-approximate", column)]

    async def test_E24_a_page_says_that_its_sort_takes_a_text_for_a_number(self, es: Rig) -> None:
        """The index holds the integer, the cell shows what is stored; a page without such a cell has no note."""
        rows = [{"n": "10"}, {"n": 9.7}, {"n": 8}, {"n": 7.0}, {"n": "2"}, {"n": [1.5]}, {}]
        index = await es.index({"n": {"type": "long"}, "m": {"type": "long", "coerce": False}}, rows)
        page = await es.page(index, sort=[Sort("n", descending=True)])
        assert [row["n"] for row in page.rows][:5] == ["10", 9.7, 8, 7.0, "2"]
        reasons = ["a stored number with decimals counts without them", "a stored text counts as the integer"]
        assert [(note.code, note.column) for note in page.notes] == [("sort-approximate", "n")] * 2
        assert all(note.reason.startswith(reason) for note, reason in zip(page.notes, reasons, strict=True))
        for request in (
            {"sort": [Sort("m")]},
            {"sort": [Sort("n")], "columns": ["_id"]},
            {"sort": [Sort("n", descending=True)], "offset": 2, "limit": 2},
        ):
            assert (await es.page(index, **request)).notes == []

    async def test_E24_nested_leaves_sort(self, es: Rig) -> None:
        """Without the array's name 7.17 sorts by nothing, 8.x refuses."""
        properties = {"n": {"type": "nested", "properties": {"q": {"type": "integer"}}}}
        rows = [{"n": [{"q": 5}, {"q": 1}]}, {"n": [{"q": 3}]}, {"n": []}]
        name = await es.index(properties, rows)
        assert await es.ids(name, sort=[Sort("n.q")]) == ["0", "1", "2"]
        assert await es.ids(name, sort=[Sort("n.q", descending=True)]) == ["0", "1", "2"]

    async def test_no_index_of_an_alias_drops_out_of_a_sort(self, es: Rig) -> None:
        one = await es.index({"a": {"type": "long"}}, [{"a": 1}])
        two = await es.index({"b": TEXT}, [{"b": "x"}])
        alias = f"{one}-both"
        for name in (one, two):
            await es.call("POST", "/_aliases", {"actions": [{"add": {"index": name, "alias": alias}}]})
        for column in ("a", "b"):
            page = await es.page(alias, sort=[Sort(column)])
            assert (page.total, len(page.cells)) == (2, 2)

    @pytest.mark.parametrize(("one", "two"), [("integer", "long"), ("byte", "short")])
    async def test_integers_of_several_types_behind_an_alias_sort_as_integers(
        self, es: Rig, one: str, two: str
    ) -> None:
        """As doubles, 2^53 and 2^53+1 would be equal, and in the order of their indices."""
        most = {"long": 2**53}.get(two, 2**14)
        values = {one: [5, None, -7], two: [most + 1, most, -most, -most - 1, None]}
        names = [
            await es.index({"x": {"type": kind}}, [{} if each is None else {"x": each} for each in some], name=kind)
            for kind, some in values.items()
        ]
        add = [{"add": {"index": name, "alias": f"{names[0]}-both"}} for name in names]
        await es.call("POST", "/_aliases", {"actions": add})
        for descending in (False, True):
            page = await es.page(f"{names[0]}-both", sort=[Sort("x", descending=descending)])
            known = sorted([5, -7, most + 1, most, -most, -most - 1], reverse=descending)
            assert [row["x"] for row in page.rows] == [*known, None, None]
            assert page.notes == []

    async def test_E41_the_switch_is_past_row_10000_whatever_the_index_says(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}], settings={"index.max_result_window": 20_000})

        def walked() -> bool:
            return any("_pit" in each.path or "scroll" in each.path for each in es.log)

        assert (await es.page(name, offset=9_990, limit=10)).notes == []
        assert not walked()
        page = await es.page(name, offset=9_991, limit=10)
        assert walked()
        assert [note.code for note in page.notes] == ["snapshot"]

    async def test_E42_a_lowered_window_is_the_clusters_error_with_the_remedy(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}], settings={"index.max_result_window": 500})
        with pytest.raises(WindowExceededError) as caught:
            await es.page(name, offset=450, limit=100)
        assert caught.value.message.startswith(
            f"'{name}' shows its first 500 rows only (index.max_result_window is 500); rows 451 to 550 were asked for."
        )
        assert "Result window is too large" in caught.value.message
        put = f'PUT /{name}/_settings {{"index.max_result_window":10000}}'
        setting, field = caught.value.remedies
        assert (setting.kind, setting.arguments["request"]) == ("raise-setting", put)
        assert field == Remedy("edit-field", {"field": "window", "value": "index"})
        assert (await es.page(name, offset=400, limit=100)).total == 1

    async def test_E42_the_opt_in_reads_the_setting_and_switches_there(self, es: Rig) -> None:
        documents = [{"n": at} for at in range(130)]
        name = await es.index({"n": {"type": "long"}}, documents, settings={"index.max_result_window": 50})
        old = es.driver._profile
        es.driver._profile = replace(old, options={**old.options, "window": "index"})
        got = []
        for offset in range(0, 130, 40):
            page = await es.page(name, sort=[Sort("n")], offset=offset, limit=40)
            got += [row["n"] for row in page.rows]
        assert got == list(range(130))

    @pytest.mark.parametrize(
        ("kind", "value"),
        [
            ("long", lambda at: 2**63 - 1 - at),
            ("unsigned_long", lambda at: 2**64 - 1 - at),
            ("double", lambda at: at / 3),
            ("half_float", lambda at: at % 4 + 0.5),
            ("date", lambda at: f"2024-01-{1 + at % 28:02}T10:00:00.{at:03}Z"),
            ("date_nanos", lambda at: f"2024-01-01T10:00:00.{at % 6:09}Z"),
            ("boolean", lambda at: at % 2 == 0),
            ("ip", lambda at: f"10.0.0.{at % 5}"),
            ("keyword", lambda at: f"k{at % 3}"),
        ],
    )
    async def test_no_row_is_lost_to_ties_or_missing_values(self, es: Rig, kind: str, value: Any) -> None:
        """Sort values go back as they came: sentinels, nanoseconds and integers of 64 bits among them."""
        if (await es.raw("PUT", "/t-kind", {"mappings": {"properties": {"x": {"type": kind}}}})).status != 200:
            pytest.skip(f"this build has no {kind}")
        await es.raw("DELETE", "/t-kind")
        rows = [{"x": value(at)} if at % 4 else {} for at in range(48)]
        settings = {"index.max_result_window": 10, "number_of_shards": 3}
        name = await es.index({"x": {"type": kind}}, rows, settings=settings)
        old = es.driver._profile
        es.driver._profile = replace(old, options={**old.options, "window": "index"})
        for descending in (False, True):
            sort = [Sort("x", descending=descending)]
            pages = {at: await es.page(name, sort=sort, offset=at, limit=7) for at in range(7, 48, 7)}
            keys_ = [key.id for page in pages.values() for key in page.keys]
            assert len(keys_) == len(set(keys_)) == 41
            for at in (35, 14, 42):
                assert (await es.page(name, sort=sort, offset=at, limit=7)).keys == pages[at].keys
            cells = [row["x"] for page in pages.values() for row in page.rows]
            assert cells[-12:] == [None] * 12, "missing values come last, as what they are"
            known = [cell for cell in cells if cell is not None]
            if kind != "ip":
                assert known == sorted(known, reverse=descending)

    async def test_a_deep_page_says_which_documents_it_rewrote_as_a_shallow_one_does(self, es: Rig) -> None:
        rows = [f'{{"x":{at}.10}}' for at in range(40)]
        name = await es.index({"x": {"type": "double"}}, rows, settings={"index.max_result_window": 10})
        assert (await es.raw("PUT", f"/{name}/_doc/25?refresh=true", '{"x":25.10 /* c */}')).status == 200
        old = es.driver._profile
        es.driver._profile = replace(old, options={**old.options, "window": "index"})
        codes = {}
        for offset in (10, 20, 30):
            page = await es.page(name, sort=[Sort("x")], offset=offset, limit=10, columns=["x"])
            assert [str(cell) for [cell] in page.cells] == [f"{offset + at}.10" for at in range(10)]
            codes[offset] = [note.code for note in page.notes]
        assert codes == {10: ["snapshot"], 20: ["snapshot", "documents-rewritten"], 30: ["snapshot"]}

    @pytest.mark.parametrize("limit", [1, 5])
    async def test_a_walk_goes_on_behind_a_document_that_ends_in_a_comment(self, es: Rig, limit: int) -> None:
        """The row's sort values, which lead to the next page, stand behind the comment."""
        rows = [{"n": at} for at in range(30)]
        name = await es.index({"n": {"type": "long"}}, rows, settings={"index.max_result_window": 10})
        assert (await es.raw("PUT", f"/{name}/_doc/14?refresh=true", '{"n":14} // c')).status == 200
        old = es.driver._profile
        es.driver._profile = replace(old, options={**old.options, "window": "index"})
        got = [await es.page(name, sort=[Sort("n")], offset=at, limit=limit) for at in range(10, 20, limit)]
        assert [row["n"] for page in got for row in page.rows] == [*range(10, 20)]

    @pytest.mark.parametrize("kind", ["date", "date_nanos"])
    @pytest.mark.parametrize("written", [None, "yyyy-MM-dd", "dd.MM.yyyy", "epoch_millis"])
    async def test_no_shard_is_left_out_of_a_sort_by_date(self, es: Rig, kind: str, written: str | None) -> None:
        """Few rows have a date, and some of the many shards have none; by offset, then past a small window."""
        moments = {at: datetime(2024, 1 + at % 12, 1 + at % 28, tzinfo=UTC) for at in range(0, 60, 9)}
        pattern = {"epoch_millis": "{0:.0f}000", "dd.MM.yyyy": "{1:%d.%m.%Y}"}.get(written or "", "{1:%Y-%m-%d}")
        texts = {at: pattern.format(moment.timestamp(), moment) for at, moment in moments.items()}
        spec = {"type": kind} | ({"format": written} if written else {})
        rows = [{"d": texts[at]} if at in texts else {} for at in range(60)]
        name = await es.index({"d": spec}, rows, settings={"number_of_shards": 9})
        old = es.driver._profile
        for window in (10_000, 7):
            await es.call("PUT", f"/{name}/_settings", {"index.max_result_window": window})
            es.driver._profile = replace(old, options={**old.options, "window": "index"})
            for descending in (False, True):
                sort = [Sort("d", descending=descending)]
                pages = [await es.page(name, sort=sort, offset=at, limit=6, total=False) for at in range(0, 60, 6)]
                ids = [key.id for page in pages for key in page.keys]
                ordered = sorted(moments, key=moments.__getitem__, reverse=descending)
                assert ids[: len(ordered)] == [str(at) for at in ordered]
                assert sorted(ids, key=int) == [str(at) for at in range(60)]

    @pytest.mark.parametrize(("offset", "limit"), [(-1, 10), (0, 0)])
    async def test_a_negative_offset_is_refused_here(self, es: Rig, offset: int, limit: int) -> None:
        name = await es.index({"n": {"type": "long"}})
        with pytest.raises(QueryError, match=rf"{offset}\D+{limit}$"):
            await es.page(name, offset=offset, limit=limit)

    async def test_an_unknown_column_is_told(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}})
        with pytest.raises(QueryError, match="'x', 'y'"):
            await es.page(name, columns=["n", "x", "y"])


class TestPagesOnFake(PageRules, OnFake):
    pass


class TestPagesOnServer(PageRules, OnServer):
    pass


# beyond the window


@dataclass(frozen=True)
class Deep:
    """A big index, and the window that pages reach by offset."""

    es: Rig
    name: str
    window: int

    @property
    def many(self) -> int:
        return self.window + self.window * 64 // 1_000

    async def page(self, offset: int, limit: int, *rows: Filter | RawQuery, **more: Any) -> Page:
        return await self.es.page(self.name, *rows, offset=offset, limit=limit, **{"columns": ["_id"], **more})

    @classmethod
    async def of(cls, es: Rig, window: int) -> Deep:
        properties = {
            "n": {"type": "long"},
            "g": {"type": "keyword"},
            "t": {"type": "text"},
            "h": {"type": "half_float"},
        }
        many = cls(es, "", window).many
        rows = ({"n": at, "g": f"g{at % 7}", "t": "word " * (at % 3), "h": at % 5 + 0.5} for at in range(many))
        sparse = [{name: value for name, value in row.items() if (row["n"] + len(name)) % 11} for row in rows]
        settings = {"number_of_shards": 2, "index.max_result_window": window}
        return cls(es, await es.index(properties, sparse, settings=settings), window)


class DeepRules:
    """One big index per server; the walks of each test are its own."""

    @pytest.fixture(scope="class")
    @classmethod
    def anyio_backend(cls) -> str:
        return "asyncio"

    @pytest.fixture
    async def big(self, deep: Deep) -> Deep:
        await deep.es.driver.close()  # the walks of an earlier test, whichever it was
        return deep

    @pytest.mark.parametrize(
        "sort",
        [(), (Sort("h"), Sort("g", descending=True))],
        ids=["unsorted", "sorted"],
    )
    async def test_E41_pages_tile_the_result_forward_backward_and_on_jumps(
        self, big: Deep, sort: tuple[Sort, ...]
    ) -> None:
        size = big.window * 133 // 1_000

        async def page(offset: int) -> list[str]:
            got = await big.page(offset, size, sort=sort)
            assert got.total == big.many
            return [str(key.id) for key in got.keys]

        offsets = list(range(0, big.many, size))
        forward = {offset: await page(offset) for offset in offsets}
        tiled = [key for offset in offsets for key in forward[offset]]
        assert len(tiled) == len(set(tiled)) == big.many
        for offset in reversed(offsets[-3:]):
            assert await page(offset) == forward[offset]
        for offset in (big.window + 5, big.many - 4, big.window - 10, big.window + 40):
            got = await page(offset)
            assert got == tiled[offset : offset + size]
        assert await page(big.many + 5) == []

    async def test_E41_a_fresh_connection_jumps_to_the_end_from_the_end(self, big: Deep) -> None:
        """The last page is reached from the end, not by reading everything before it."""
        if not big.es.driver._exchanges.dialect.point_in_time:
            pytest.skip("scrolls go forward only")
        mark = len(big.es.log)
        page = await big.page(big.many - 10, 100, sort=[Sort("n")])
        assert len(page.keys) == 10
        sizes = [json.loads(each.body or "{}").get("size") for each in big.es.log[mark:] if "_search" in each.path]
        assert sizes == [0, 10]

    async def test_E41_a_reader_who_turns_back_does_not_begin_anew(self, big: Deep) -> None:
        """From a bookmark, by the reversed sort; below 7.12 out of the rows that are still in hand."""
        there = await big.page(big.window + 5, 10, sort=[Sort("n")])
        mark = len(big.es.log)
        back = await big.page(big.window - 5, 10, sort=[Sort("n")])
        assert len({key.id for key in [*back.keys, *there.keys]}) == 20
        asked = [each for each in big.es.log[mark:] if "search" in each.path]
        assert len(asked) == (1 if big.es.driver._exchanges.dialect.point_in_time else 0)

    async def test_rows_that_are_passed_over_bring_neither_document_nor_id(self, big: Deep) -> None:
        if not big.es.driver._exchanges.dialect.point_in_time:
            pytest.skip("a scroll shows what it passes over")
        mark = len(big.es.log)
        page = await big.page(big.many // 2, big.window // 2 + 5, sort=[Sort("n")], columns=["n"])
        assert all(key.id for key in page.keys)
        bodies = [json.loads(each.body or "{}") for each in big.es.log[mark:] if each.path.startswith("/_search")]
        passed = [body for body in bodies if body.get("stored_fields") == "_none_"]
        assert [body["size"] for body in passed] in ([big.many // 2], [big.many - big.many // 2 - big.window // 2 - 5])
        assert all(body["_source"] is False for body in passed)

    async def test_a_raw_query_keeps_its_order_of_score_past_the_switch(self, big: Deep) -> None:
        size, half = big.window // 10, big.window // 20
        raw, columns = RawQuery("n:>=0 OR t:word"), ["_id", "_score"]
        shallow = await big.page(big.window - size, size, raw, columns=columns)
        deep = await big.page(big.window - half, size, raw, columns=columns)
        if big.es.driver._exchanges.dialect.point_in_time:  # a scroll computes the same scores and does not show them
            assert [row["_score"] for row in deep.rows] == sorted((row["_score"] for row in deep.rows), reverse=True)
        assert [key.id for key in deep.keys][:half] == [key.id for key in shallow.keys][half:]

    async def test_what_a_walk_holds_on_the_server_is_freed(self, big: Deep) -> None:
        es, mark = big.es, len(big.es.log)
        for at in range(6):  # more results than walks are kept
            await big.page(big.window, 5, Filter("n", ">=", at))
        await es.driver.close()
        opened = [
            each
            for each in es.log[mark:]
            if each.method == "POST" and ("/_pit?" in each.path or "?scroll=" in each.path)
        ]
        closed = [
            each for each in es.log[mark:] if each.method == "DELETE" and each.path in ("/_pit", "/_search/scroll")
        ]
        assert len(opened) == len(closed)

    async def test_an_expired_context_is_renewed_and_said(self, big: Deep) -> None:
        es, offset = big.es, big.window + 10
        before = await big.page(offset, 15, sort=[Sort("g")])
        [walking] = [each.pager for each in es.driver._pagers.values()]
        request = walking.close()
        assert request is not None
        await es.call(request.method, request.path, request.body)
        after = await big.page(offset + 15, 15, sort=[Sort("g")])
        again = await big.page(offset, 15, sort=[Sort("g")])
        assert again.keys == before.keys
        assert {key.id for key in after.keys}.isdisjoint(key.id for key in before.keys)
        said = {note.code for page in (after, again) for note in page.notes}
        assert "snapshot-renewed" in said or not es.driver._exchanges.dialect.point_in_time

    async def test_an_object_may_be_described_several_times_at_once(
        self, big: Deep, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await big.page(big.window, 5)
        pagers = big.es.driver._pagers
        [open_pager] = pagers.values()
        pagers.update({("another", at): open_pager for at in range(2)})  # as other filters' pages leave them
        free = big.es.driver._free

        async def slowly(held: Any) -> None:
            await anyio.sleep(0.1)
            await free(held)

        monkeypatch.setattr(big.es.driver, "_free", slowly)
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(big.es.driver.describe_object, big.name)

    async def test_describing_an_object_again_lets_its_snapshots_go(self, big: Deep) -> None:
        await big.page(big.window, 5)
        await big.es.driver.describe_object(big.name)
        assert big.es.log[-1].method == "DELETE"
        assert not big.es.driver._pagers

    async def test_pages_may_span_what_the_server_hands_out_at_once(self, big: Deep) -> None:
        """A scroll hands out 1,000 rows at once."""
        await big.es.driver.close()
        begin, size = big.window - big.window // 50, big.window * 6 // 100
        whole = await big.page(begin, size, sort=[Sort("g")])
        await big.es.driver.close()
        for part in (10, 15, 30, 5):
            offset = begin + big.window * part // 1_000
            page = await big.page(offset, size // 2, sort=[Sort("g")])
            assert page.keys == whole.keys[offset - begin :][: size // 2]
        await big.es.driver.close()

    async def test_two_pages_at_once_share_a_walk_and_are_both_right(self, big: Deep) -> None:
        got: dict[int, list[str]] = {}

        async def fetch(offset: int) -> None:
            page = await big.page(offset, 10, sort=[Sort("n")], columns=["n"])
            got[offset] = [key.id for key in page.keys]

        async with anyio.create_task_group() as group:
            for offset in (30, 0, 20, 10):
                group.start_soon(fetch, big.window + offset)
        assert len({key for keys_ in got.values() for key in keys_}) == 40


class TestDeepOnFake(DeepRules):
    """With a tenth of the window, which the option takes from the index: the walks are the same."""

    @pytest.fixture(scope="class", params=["8.19.21", "7.10.2"])
    @classmethod
    async def deep(cls, request: pytest.FixtureRequest, anyio_backend: str) -> AsyncIterator[Deep]:
        async with on_fake(request.param, options={"window": "index"}) as es:
            yield await Deep.of(es, 1_000)


@pytest.mark.live("elasticsearch")
class TestDeepOnServer(DeepRules):
    @pytest.fixture(scope="class")
    @classmethod
    async def deep(cls, live_server: dict[str, Any], anyio_backend: str) -> AsyncIterator[Deep]:
        async with on_server(live_server) as es:
            yield await Deep.of(es, 10_000)


def test_a_search_after_of_another_length_is_never_sent(wording: Wording) -> None:
    """The server takes it, and silently loses the ties."""
    walk = deep_pages.PointInTimePager(
        "x", Raw(b"{}"), [{"n": {"order": "asc"}}], 10_000, "p", pit="1", total=50, points=POINTS
    )
    with pytest.raises(QueryError) as caught:
        next(walk._ask(walk._sorted(walk.keys), 10, (Raw(b"1"),), {}))
    wording(caught.value.message)


@pytest.mark.parametrize("size", [1, 10])
def test_a_page_that_the_server_repeats_is_refused(size: int) -> None:
    """As where something on the way drops `search_after`: the same rows come again, and end in the bookmark."""
    rows = [{"_index": "x", "_id": str(at), "sort": [at, at]} for at in range(size)]
    answers, mark = Answers(reply({"hits": {"hits": rows}})), (Raw(b"%d" % (size - 1)),) * 2
    walk = deep_pages.PointInTimePager(
        "x", Raw(b"{}"), [{"n": {"order": "asc"}}], 10, "p", pit="1", total=40, _bookmarks={size: mark}, points=POINTS
    )
    with pytest.raises(QueryError, match="the server repeated rows"):
        answers.run(walk.fetch(size, size, {}))


def test_each_document_of_a_walk_that_was_rewritten_has_its_note() -> None:
    hit = '{{"_index":"x","_id":"{0}","_source":{{{1}}},"sort":[{0},{0}]}}'
    rows = [hit.format(at, comment) for at, comment in enumerate(("/* c */", "", "/* c */"))]
    walk = deep_pages.PointInTimePager(
        "x", Raw(b"{}"), [{"n": {"order": "asc"}}], 10, "p", pit="1", total=3, points=POINTS
    )
    Answers(reply(f'{{"hits":{{"hits":[{",".join(rows)}]}}}}')).run(walk.fetch(0, 3, {}))
    assert {*walk.odd} == {("x", "0"), ("x", "2")}


def test_bookmarks_of_an_expired_context_are_void() -> None:
    """Sort values mean nothing in another point in time, whose shards hold their documents in other places."""
    lost = {"type": "search_context_missing_exception", "reason": "No search context found for id [5]"}
    gone = reply({"error": {"root_cause": [lost], "type": "search_phase_execution_exception", "reason": ""}}, 404)
    hit = {"_index": "x", "_id": "1", "sort": [1, 1]}
    pages = [reply({"hits": {"hits": [hit | {"sort": [at, at]}] * 10}}) for at in (1, 2)]
    answers = Answers(gone, reply({"id": "new"}), reply({"hits": {"total": {"value": 40}, "hits": []}}), *pages)
    mark = (Raw(b"7"), Raw(b"7"))
    walk = deep_pages.PointInTimePager(
        "x", Raw(b"{}"), [{"n": {"order": "asc"}}], 10, "p", pit="old", total=40, _bookmarks={10: mark}, points=POINTS
    )
    assert len(answers.run(walk.fetch(10, 10, {}))) == 10
    bodies = [json.loads(each.body or "{}") for each in answers.asked]
    assert bodies[0]["search_after"] == [7, 7]
    assert "search_after" not in bodies[3], "the new walk begins at the beginning"
    assert bodies[4]["search_after"] == [1, 1]
    assert walk.renewed


def test_every_walk_ends_in_the_tiebreaker() -> None:
    for sort in ([], [{"n": {"order": "asc"}}]):
        walk = deep_pages.PointInTimePager("x", Raw(b"{}"), sort, 10_000, "p", pit="1", points=POINTS)
        assert walk._sorted(walk.keys)[-1] == {"_shard_doc": {"order": "asc"}}


@pytest.mark.fake_only(reason="a network that fails in the middle of a walk")
@pytest.mark.parametrize("version", ["8.19.21", "7.10.2"])
async def test_a_walk_goes_on_after_the_network_failed(version: str) -> None:
    async with on_fake(version, options={"window": "index"}) as es:
        assert es.fake is not None
        big = await Deep.of(es, 1_000)
        whole = (await big.page(1_000, 40, sort=[Sort("n")])).keys
        await es.driver.close()
        point = es.driver._exchanges.dialect.point_in_time
        es.fake.misbehave("cut", on="/_search" if point else "/_search/scroll", after=2 if point else 0, times=1)
        with pytest.raises(ConnectionFailedError):
            await big.page(1_000, 20, sort=[Sort("n")])
        first = await big.page(1_000, 20, sort=[Sort("n")])
        second = await big.page(1_020, 20, sort=[Sort("n")])
        assert [*first.keys, *second.keys] == whole


@asynccontextmanager
async def busy_server(kind: str) -> AsyncIterator[tuple[str, list[str]]]:
    """Serve just enough to connect; every first request of a path is answered with 429 and this error type."""
    asked: list[str] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.append(request.path)
        headers = {"X-Elastic-Product": "Elasticsearch"}
        if request.path == "/":
            return web.json_response({"version": {"number": "8.19.21", "build_flavor": "default"}}, headers=headers)
        if asked.count(request.path) > 1:
            return web.json_response({"count": 3}, headers=headers)
        error = {"type": kind, "reason": "no"}
        return web.json_response({"error": {"root_cause": [error], **error}, "status": 429}, status=429)

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    finally:
        await runner.cleanup()


@pytest.mark.fake_only(reason="no engine here is busy on request")
async def test_a_busy_server_is_asked_again_and_a_blocked_index_is_not() -> None:
    request = CountRequest(object="x")
    async with busy_server("es_rejected_execution_exception") as (url, asked):
        async with connected(profile(url), version="8.19.21") as es:
            assert await es.driver.count_rows(request) == 3
        assert asked.count("/x/_count") == 2
    async with busy_server("cluster_block_exception") as (url, asked):
        async with connected(profile(url), version="8.19.21") as es:
            with pytest.raises(QueryError, match="cluster_block_exception"):
                await es.driver.count_rows(request)
        assert asked.count("/x/_count") == 1


@pytest.mark.fake_only(reason="no engine here is busy on request")
async def test_a_write_is_not_sent_again_to_a_busy_server() -> None:
    async with busy_server("es_rejected_execution_exception") as (url, asked):
        async with connected(profile(url), version="8.19.21") as es:
            [found] = await es.console('POST /x/_doc {"n":1}')
            assert found.status == 429
        assert asked.count("/x/_doc") == 1


class LeftOutRules:
    """What a page of all columns leaves out is said once."""

    @pytest.mark.parametrize(
        ("mapping", "documents", "codes", "words"),
        [
            ({"properties": {"m": KEYWORD}}, [{"m": "a"}, {"m": None, "x": None}], [], ()),
            ({"dynamic": False, "properties": {"m": KEYWORD}}, [{"m": 1, "x": 5, "o": {"y": 1}}, {"x": 1}],
             ["keys-left-out"], ("2 rows", "'x' (2)", "'o' (1)")),
            ({"dynamic": False}, [{"x": 5}], ["keys-left-out"], ("'x'",)),
            ({"properties": {"o": {"dynamic": False, "properties": {"m": KEYWORD}}}}, [{"o": [{"m": 1}, {"x": 1}]}],
             ["keys-left-out"], ("'o.x' (1)",)),
            ({"properties": {"o": {"type": "object", "enabled": False}}}, [{"o": {"x": 1}}], [], ()),
            ({"properties": {"a": {"properties": {"b": KEYWORD}}}}, [{"a.b": "x", "a": {"b": "y"}}],
             ["values-left-out"], ("'a.b' (1)",)),
            ({"properties": {"a": {"properties": {"b": KEYWORD}}}}, [{"a.b": "x"}, {"a": {"b": "y"}}], [], ()),
            ({"_source": {"excludes": ["s", "o.*"]}, "properties": {
                "m": KEYWORD, "s": KEYWORD, "o": {"properties": {"x": KEYWORD}}}}, [{"m": "a", "s": "b"}],
             ["columns-left-out"], ("'o.x', 's'", "_source.excludes: s, o.*")),
            ({"_source": {"includes": ["m"]}, "properties": {"m": KEYWORD, "s": KEYWORD}}, [{"m": "a", "s": "b"}],
             ["columns-left-out"], ("_source.includes: m",)),
        ],
    )  # fmt: skip
    async def test_a_page_of_all_columns_says_what_it_leaves_out_and_one_of_named_columns_what_those_lack(
        self,
        es: Rig,
        mapping: dict[str, Any],
        documents: list[dict[str, Any]],
        codes: list[str],
        words: tuple[str, ...],
    ) -> None:
        name = await es.index(mapping=mapping, documents=documents)
        page = await es.page(name)
        assert [note.code for note in page.notes] == codes
        assert all(word in note.reason for note in page.notes for word in words)
        named = await es.page(name, columns=[column.name for column in page.columns])
        assert [note.code for note in named.notes] == [code for code in codes if code == "columns-left-out"]
        assert (await es.page(name, columns=["_id"])).notes == []


class TestLeftOutOnFake(LeftOutRules, OnFake):
    pass


class TestLeftOutOnServer(LeftOutRules, OnServer):
    async def test_a_key_beyond_the_limit_of_fields_is_left_out_and_not_called_malformed(self, es: Rig) -> None:
        if es.version < (8, 14):
            pytest.skip("ignore_dynamic_beyond_limit")
        limit = {f"index.mapping.total_fields.{key}": value for key, value in (
            ("limit", 2), ("ignore_dynamic_beyond_limit", True))}  # fmt: skip
        name = await es.index({"a": KEYWORD}, [{"a": "x", "b": "y", "c": "z"}], settings=limit)
        [note] = (await es.page(name)).notes
        assert note.code == "keys-left-out"
        assert "'b' (1), 'c' (1)" in note.reason


def test_a_page_of_all_columns_says_that_it_is_cut() -> None:
    seen = view({"properties": {f"f{at}": {"type": "long"} for at in range(4100)}})
    for names, codes in ((None, ["columns-cut"]), (["f1"], [])):
        query = pages.page_query(PageRequest(object="a", columns=names), seen, MODERN, window=10, preference="p")
        made = Answers(reply({"hits": {"hits": [], "total": {"value": 0, "relation": "eq"}}})).run(query.shallow_page())
        assert [note.code for note in made.notes] == codes
