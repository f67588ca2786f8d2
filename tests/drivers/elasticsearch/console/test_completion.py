"""Completion of console texts: what is suggested where, what is read for it, and that no text breaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, Rig, on_fake
from drivers.elasticsearch.test_objects import view
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import ObjectsRequest, QueryError
from dragoman_api.console import MAX_SUGGESTIONS, Completion, CompletionRequest, SuggestionKind
from dragoman_elasticsearch.connect import WORDS
from dragoman_querydsl.console_text import ask

if TYPE_CHECKING:
    from collections.abc import Sequence

PROPERTIES: dict[str, Any] = {
    "status": {"type": "keyword"}, "total": {"type": "long"},
    "title": {"type": "text", "fields": {"keyword": {"type": "keyword"}}},
}  # fmt: skip
CURSOR = "▮"


async def completed(es: Rig, marked: str) -> tuple[Completion, str]:
    """Complete at the mark; return the suggestions, and the text without it."""
    position = marked.index(CURSOR)
    text = marked.replace(CURSOR, "")
    found: Completion = await es.driver.complete_console(CompletionRequest(text=text, position=position))
    return found, text


async def texts(es: Rig, marked: str) -> list[str]:
    return [each.text for each in (await completed(es, marked))[0].suggestions]


async def accepted(es: Rig, marked: str) -> str:
    """Accept the first suggestion."""
    found, text = await completed(es, marked)
    first = found.suggestions[0]
    return text[: first.start] + first.text + text[first.end :]


class Rules:
    """What is suggested, whatever the server's version."""

    async def test_methods_paths_and_names(self, es: Rig) -> None:
        name = await es.index(PROPERTIES, [{"status": "open"}])
        assert await texts(es, CURSOR) == ["GET", "POST", "PUT", "DELETE", "HEAD"]
        assert await accepted(es, f"# first\nde{CURSOR}") == "# first\nDELETE"
        assert await accepted(es, f"GET /{name[:6]}{CURSOR}") == f"GET /{name}"
        assert await accepted(es, f"GET {name[:6]}{CURSOR}") == f"GET /{name}"
        assert await accepted(es, f"GET /{name}/_sea{CURSOR}") == f"GET /{name}/_search"
        assert await accepted(es, f"GET /{name}/_sea{CURSOR}rch\n") == f"GET /{name}/_search\n"
        assert await accepted(es, f"GET /other,{name[:6]}{CURSOR}/_search") == f"GET /other,{name}/_search"
        assert await accepted(es, f"GET /_cat/ind{CURSOR}") == "GET /_cat/indices?v"
        assert await accepted(es, f"GET /{name}/_search?rou{CURSOR}") == f"GET /{name}/_search?routing"
        found, _ = await completed(es, f"GET /{name[:6]}{CURSOR}")
        assert found.suggestions[0].kind is SuggestionKind.OBJECT

    async def test_members_clauses_and_fields_of_a_body(self, es: Rig) -> None:
        name = await es.index(PROPERTIES, [{"status": "open"}])
        head = f"GET /{name}/_search\n"
        assert await accepted(es, head + '{"que' + CURSOR) == head + '{"query'
        assert await accepted(es, head + "{que" + CURSOR) == head + '{"query"'
        assert await accepted(es, head + '{"query":{"bool":{"must":[{"ter' + CURSOR) == (
            head + '{"query":{"bool":{"must":[{"term'
        )
        found, _ = await completed(es, head + '{"query": {"term": {"st' + CURSOR + '"}}}')
        assert [(each.text, each.kind, each.detail) for each in found.suggestions] == [
            ("status", SuggestionKind.FIELD, "keyword")
        ]
        assert "title.keyword" in await texts(es, head + '{"sort": [{"ti' + CURSOR)
        assert await texts(es, head + '{"sort": [{"total": {"order": "de' + CURSOR) == ["desc"]
        assert '"gte"' in await texts(es, head + '{"query": {"range": {"total": {' + CURSOR)
        assert "total" in await texts(es, head + '{"aggs": {"a": {"max": {"field": "' + CURSOR)
        assert '"date_histogram"' in await texts(es, head + '{"aggs": {"a": {' + CURSOR)
        assert '"date_histogram"' in await texts(es, head + '{"aggregations": {"a": {' + CURSOR)
        assert "interval" in await texts(es, head + '{"aggs": {"a": {"histogram": {"int' + CURSOR)
        assert await texts(es, head + '{"aggs": {"' + CURSOR) == []
        assert await texts(es, "PUT /x\n" + '{"mappings":{"properties":{"a":{"type":"keyw' + CURSOR) == [
            "keyword", "constant_keyword",
        ]  # fmt: skip
        assert await texts(es, f"PUT /{name}/_mapping\n" + '{"properties": {"st' + CURSOR) == ["status"]
        assert await texts(es, head + '{"query": {}}  # no' + CURSOR) == []

    async def test_an_index_inside_a_body_is_completed_by_the_names_of_objects(self, es: Rig) -> None:
        name = await es.index(PROPERTIES, [])
        assert await texts(es, 'POST /_reindex\n{"source": {"index": "' + name[:6] + CURSOR) == [name]

    async def test_the_request_around_the_cursor_counts_not_its_neighbours(self, es: Rig) -> None:
        name = await es.index(PROPERTIES, [{"status": "open"}])
        other = await es.index({"else": {"type": "keyword"}}, [], name="other")
        text = f'GET /{other}/_search\n{{"query":{{}}}}\n\nPOST /{name}/_count\n{{"query":{{"term":{{"{CURSOR}"}}}}}}\n'
        found = await texts(es, f"{text}\nGET /{other}/_search\n")
        assert "status" in found
        assert "else" not in found


class TestOnFake(OnFake, Rules):
    """The rules on fakes."""


class TestOnServer(OnServer, Rules):
    """The rules on real servers."""


class TestReads:
    """What is read, and when."""

    async def test_names_and_columns_are_read_once_not_for_each_key(self) -> None:
        async with on_fake("8.19.21") as es:
            name = await es.index(PROPERTIES, [{"status": "open"}])
            marked = f'GET /{name}/_search\n{{"query":{{"term":{{"st{CURSOR}'
            for text in (f"GET /t{CURSOR}", marked):
                await texts(es, text)
                assert es.log is not None
                mark = len(es.log)
                assert await texts(es, text) == await texts(es, text) != []
                assert len(es.log) == mark

    async def test_a_list_of_objects_renews_the_names(self) -> None:
        async with on_fake("8.19.21") as es:
            await texts(es, f"GET /{CURSOR}")
            name = await es.index(PROPERTIES, [])
            assert f"{name}" not in await texts(es, f"GET /{name}{CURSOR}")
            await es.driver.list_objects(ObjectsRequest())
            assert await texts(es, f"GET /{name}{CURSOR}") == [name]

    async def test_an_index_that_is_not_there_is_asked_for_once_and_words_are_suggested_all_the_same(self) -> None:
        async with on_fake("8.19.21") as es:
            for _ in range(3):
                assert await texts(es, 'GET /nope/_search\n{"query": {"matc' + CURSOR) != []
            assert es.log is not None
            about = [each.path for each in es.log if "nope" in each.path]
            assert len(about) == len(set(about)) == 3  # its mapping, its types and its settings

    async def test_a_place_outside_of_the_text_is_an_error(self) -> None:
        async with on_fake("8.19.21") as es:
            for position in (-1, 4):
                with pytest.raises(QueryError):
                    await es.driver.complete_console(CompletionRequest(text="GET", position=position))


PIECES = st.sampled_from(
    ["GET", "POST ", "/", "orders", "_search", "\n", "{", "}", "[", "]", '"', '"""', ":", ",", "#", "//", "/*", "*/",
     " ", "\\", "query", "bool", "must", "term", "aggs", "a", "1", "ä", "😀", "\ud800", "\x00", "?", "sort"]
)  # fmt: skip


def complete(text: str, position: int, names: Sequence[str]) -> Completion:
    return ask(CompletionRequest(text=text, position=position), WORDS).complete(names)


@given(st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join)), st.data())
def test_no_text_and_no_position_breaks_it_and_ranges_lie_in_the_text(text: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(text)))
    found = complete(text, position, ["orders", "a" * 2_000, *(f"i{at}" for at in range(300))])
    assert len(found.suggestions) <= MAX_SUGGESTIONS
    for each in found.suggestions:
        assert 0 <= each.start <= position <= each.end <= len(text)
        assert len(each.text) <= 1_000


@given(st.lists(PIECES, max_size=40).map("".join), st.integers())
def test_a_position_that_is_not_in_the_text_is_a_query_error(text: str, position: int) -> None:
    if 0 <= position <= len(text):
        complete(text, position, [])
    else:
        with pytest.raises(QueryError):
            complete(text, position, [])


FIELDS = {"status", "total", "title", "title.keyword"}
SEARCH = "GET /a/_search\n"


OF_A_FIELD = {
    "term": {"value", "case_insensitive"}, "match_phrase": {"query", "boost"}, "prefix": {"value", "boost"},
    "match_phrase_prefix": {"query", "boost"}, "range": {"gte", "boost"},
    "regexp": {"value", "max_determinized_states"}, "fuzzy": {"value", "transpositions"},
    "terms_set": {"terms", "minimum_should_match_field"},
    "intervals": {"match", "any_of"}, "geo_distance": {"lat", "lon"}, "geo_bounding_box": {"top_left", "bottom_right"},
}  # fmt: skip
OF_A_CLAUSE = {
    "nested": {"path", "inner_hits"}, "constant_score": {"filter", "boost"}, "dis_max": {"queries", "tie_breaker"},
    "function_score": {"query", "boost"}, "script_score": {"query", "min_score"},
    "query_string": {"query", "analyze_wildcard"}, "simple_query_string": {"query", "lenient"},
    "has_child": {"type", "max_children"}, "has_parent": {"parent_type", "score"},
    "boosting": {"positive", "negative_boost"}, "more_like_this": {"fields", "max_query_terms"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "offered", "others"),
    [
        ('POST /a/_doc\n{"', FIELDS, {"_score", "query"}),
        ('PUT /a/_create/1\n{"', FIELDS, {"_score", "query"}),
        ('POST /a/_source/1\n{"', FIELDS, {"_score"}),
        ('POST /a/_bulk\n{"', {*FIELDS, "index", "doc_as_upsert"}, {"query"}),
        ('PUT /a\n{"', {"settings", "mappings", "aliases"}, {"query", "status"}),
        (SEARCH + '{"', {"query", "aggs", "knn"}, {"status", "settings"}),
        ('GET /a/_search?x=/_bulk\n{"', {"query"}, {"doc_as_upsert"}),
        ("GET /a/_search?", {"routing", "_source"}, {"a1", "_count"}),
        ("GET /a/_search?pretty&", {"routing"}, {"a1"}),
        ("GET /a1,", {"b2"}, {"/b2", "_search", "/_search"}),
        ("GET /", {"a1", "b2", "_search", "_template"}, {"/a1"}),
        ("GET ", {"/a1", "/_search"}, {"a1"}),
        ("GET /_cat/", {"indices?v"}, {"a1", "_search"}),
        ("GET /a/_val", {"_validate/query?explain"}, {"a1"}),
        ("GET /a/_doc/", set(), {"a1", "_search"}),
        (SEARCH + '{"sort":["', FIELDS, {"_score"}),
        (SEARCH + '{"sort":[{"', {*FIELDS, "_score", "_doc"}, {"order"}),
        (SEARCH + '{"fields":["', FIELDS, {"query"}),
        (SEARCH + '{"_source":["', FIELDS, set()),
        (SEARCH + '{"docvalue_fields":["', FIELDS, set()),
        (SEARCH + '{"highlight":{"fields":{"', FIELDS, {"pre_tags"}),
        (SEARCH + '{"runtime_mappings":{"', FIELDS, set()),
        (SEARCH + '{"query":{"', {"bool", "knn"}, FIELDS),
        (SEARCH + '{"post_filter":{"', {"bool"}, FIELDS),
        (SEARCH + '{"query":{"bool":{"', {"must", "must_not"}, {"term"}),
        (SEARCH + '{"query":{"bool":{"must_not":{"', {"term", "nested"}, FIELDS),
        (SEARCH + '{"query":{"match":{"status":{"', {"query", "zero_terms_query"}, FIELDS),
        *((SEARCH + f'{{"query":{{"{clause}":{{"total":{{"', words, FIELDS) for clause, words in OF_A_FIELD.items()),
        *((SEARCH + f'{{"query":{{"{clause}":{{"', words, FIELDS) for clause, words in OF_A_CLAUSE.items()),
        (SEARCH + '{"query":{"multi_match":{"', {"query", "fields", "tie_breaker"}, {"bool", *FIELDS}),
        (SEARCH + '{"query":{"exists":{"field":"', FIELDS, {"query"}),
        (SEARCH + '{"query":{"range":{"', FIELDS, {"gte"}),
        (SEARCH + '{"aggs":{"x":{"', {"terms", "avg", "aggs"}, FIELDS),
        (SEARCH + '{"aggs":{"x":{"terms":{"', {"field", "size", "shard_size"}, {"script", "interval"}),
        (SEARCH + '{"aggs":{"x":{"avg":{"', {"field", "missing", "script"}, {"size"}),
        (SEARCH + '{"aggs":{"x":{"filter":{"', {"term"}, {"script"}),
        (SEARCH + '{"aggs":{"', set(), {*FIELDS, "terms"}),
        (SEARCH + '{"type":"', set(), {"keyword", "long"}),
        ('PUT /a\n{"mappings":{"properties":{"x":{"type":"', {"keyword", "long", "ip_range"}, {"a1"}),
        ('PUT /a\n{"mappings":{"properties":{"x":{"', {"type", "null_value"}, FIELDS),
        ('POST /a/_update/1\n{"', {"doc", "upsert", "script"}, FIELDS),
        ('POST /a/_update/1\n{"doc":{"', FIELDS, {"doc"}),
        ('POST /a/_update/1\n{"upsert":{"', FIELDS, {"doc"}),
        ('POST /_reindex\n{"source":{"index":"', {"a1", "b2"}, FIELDS),
        ('POST /_bulk\n{"index":{"_index":"', {"a1", "b2"}, set()),
        (SEARCH + '{"sort":[{"total":{"missing":"', {"_last", "_first"}, FIELDS),
    ],
)  # fmt: skip
def test_each_place_offers_its_own_words(text: str, offered: set[str], others: set[str]) -> None:
    """And none of another place, however alike it looks."""
    place = ask(CompletionRequest(text=text, position=len(text)), WORDS)
    found = place.complete(["a1", "b2"], view({"properties": PROPERTIES}))
    words = {each.text.strip('"') for each in found.suggestions}
    assert offered <= words
    assert words.isdisjoint(others)


@pytest.mark.parametrize(
    ("text", "target", "names"),
    [
        (SEARCH + '{"', "a", False), ('GET /_search\n{"', "", False), ('GET a/_search?x=1\n{"', "a", False),
        ('GET /a?x=1\n{"', "a", False), ('POST /a/_doc\n{"index":"', "a", True), ('POST /_bulk\n{"_index":"', "", True),
        ('POST /a/_doc\n{"x":"', "a", False), ("GET /a/", "", False), ("GET /a,b", "", True), ("GET /a,b?", "", False),
        ("GET /a/b,c", "", False), ("", "", False),
    ],
)  # fmt: skip
def test_what_has_to_be_known_for_a_place_is_asked_for_and_no_more(text: str, target: str, *, names: bool) -> None:
    place = ask(CompletionRequest(text=text, position=len(text)), WORDS)
    assert (place.target, place.names) == (target, names)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("GET /", True), ("GET /ord", True), ("GET a,b", True), ("GET /orders/_se", False), ("GET /orders?", False)],
)
def test_names_are_wanted_only_where_one_may_stand(text: str, *, wanted: bool) -> None:
    assert ask(CompletionRequest(text=text, position=len(text)), WORDS).names is wanted


def test_more_than_a_person_can_choose_from_is_said() -> None:
    found = complete("GET /", 5, [f"i{at}" for at in range(300)])
    assert (len(found.suggestions), found.more) == (MAX_SUGGESTIONS, True)
