"""Pages: REST or GraphQL, the same cells; the window said before it is hit; the three rules of right pages."""

from __future__ import annotations

import json
import re

import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.rig import TYPES, OnFake, OnServer, Rig, key
from drivers.weaviate.test_conformance import objects
from drivers.weaviate.views import view

from dragoman_api import CellRequest, CountRequest, Filter, FilterRequest, PageRequest, QueryError, Sort
from dragoman_api.errors import (
    AccessDeniedError,
    ObjectChangedError,
    ObjectNotFoundError,
    RowNotFoundError,
    WindowExceededError,
)
from dragoman_api.kit import cursors
from dragoman_api.remedies import Remedy
from dragoman_weaviate.grid import pages
from dragoman_weaviate.grid.filters import compile_filter

COUNT = {"data": {"Aggregate": {"Book": [{"meta": {"count": 3}}]}}}
EMPTY = {"data": {"Get": {"Book": []}}}
OFF = {"error": [{"message": "graphql api is disabled"}]}


def asked(*rows: Filter, sort=(), answers=None, of=None, **more):
    """Fetch a page from canned answers and give what was asked for."""
    seen = of or view()
    seen.counts.setdefault((more.get("tenant"), ""), 0)  # too few objects for windows of ids
    compiled = compile_filter(FilterRequest(object="Book", rows=list(rows)), seen) if rows else None
    plain = not rows and not any(each.column in ("title", "uuid", "pages") for each in sort)
    answers = answers or Answers(reply({"objects": []} if plain else EMPTY), reply(COUNT))
    page = answers.run(pages.page(PageRequest(object="Book", filter=compiled, sort=list(sort), **more), seen))
    return page, answers.asked


def query(requests) -> str:
    return json.loads(requests[0].body)["query"]


def test_a_page_of_a_collection_that_is_gone_says_so_and_what_to_do():
    with pytest.raises(ObjectNotFoundError, match="'Book' is gone") as caught:
        asked(answers=Answers(reply("", 404), reply(COUNT)))
    assert caught.value.remedies == (Remedy("list-objects"),)


# W2, W21: which way ---------------------------------------------------------------------------------------------------


def test_a_page_of_all_rows_is_read_by_rest():
    """W2, W21: `limit` is always sent, since its default is a setting of the server."""
    _, requests = asked(limit=25)
    assert str(requests[0]) == "GET /v1/objects?class=Book&limit=25&include=vector"
    _, requests = asked(limit=25, offset=50, columns=["title"])
    assert str(requests[0]) == "GET /v1/objects?class=Book&limit=25&offset=50"


def test_a_filtered_or_sorted_page_is_read_by_graphql():
    """W2, W21."""
    for page in (asked(Filter("pages", ">", 1)), asked(sort=[Sort("title")])):
        assert page[1][0].path == "/v1/graphql"
        assert query(page[1]).startswith("{Get{Book(limit:100,")


OLD = (1, 32, 9)
ONE_PART = {"shardingConfig": {"actualCount": 1}, "replicationConfig": {"factor": 1}}


@pytest.mark.parametrize(
    ("row", "clause"),
    [
        (Filter("sizes", "<", 1), '{path:["sizes"],operator:LessThan,valueInt:1}'),
        (Filter("pages", ">=", -(2**63)), '{path:["pages"],operator:GreaterThanEqual,valueInt:-9223372036854775808}'),
        (Filter("sizes", ">", 1), '{path:["sizes"],operator:GreaterThan,valueInt:1}'),
        (Filter("title", "contains", "tea"), '{path:["title"],operator:Like,valueText:"*tea*"}'),
        (Filter("tags", "not-empty"), '{path:["len(tags)"],operator:GreaterThan,valueInt:0}'),
        (
            Filter("published", ">", "2024-01-01T00:00:00Z"),
            '{path:["published"],operator:GreaterThan,valueDate:"2024-01-01T00:00:00Z"}',
        ),
    ],
)
def test_a_lone_clause_of_several_keys_is_negated_twice(row, clause):
    """W21, rule 1: alone it would stop reading before the rows are sorted; below 1.33 it is sent twice."""
    twice = f"where:{{operator:Not,operands:[{{operator:Not,operands:[{clause}]}}]}}"
    assert twice in query(asked(row)[1])
    old = query(asked(row, of=view(version=OLD))[1])
    assert f"where:{{operator:And,operands:[{clause},{clause}]}}" in old


def test_a_lone_clause_of_one_key_is_sent_as_it_is():
    """W21, rule 1: it is read to the end; up to 1.23, NotEqual reads all other keys."""
    cases = [
        ("pages", "=", 1),
        ("pages", "!=", 1),
        ("pages", "in", "1,2"),
        ("pages", "null"),
        ("title", "not-contains", "t"),
    ]
    for row in (Filter(*each) for each in cases):
        where = compile_filter(FilterRequest(object="Book", rows=[row]), view()).rows[0].clause
        assert f"where:{where}," in query(asked(row)[1])
    old = query(asked(Filter("pages", "!=", 1), of=view(version=(1, 23, 9)))[1])
    assert old.count("NotEqual") == 2


@pytest.mark.parametrize("op", [">", ">=", "<", "<="])
@pytest.mark.parametrize("column", ["pages", "price"])
def test_a_bound_of_numbers_is_read_in_their_order(column, op):
    """W21, rule 1: the first keys that are read are the first rows, so nothing else needs to be read."""
    clause = compile_filter(FilterRequest(object="Book", rows=[Filter(column, op, 1)]), view()).rows[0].clause
    order = f'sort:[{{path:["{column}"],order:asc}},{{path:["_id"],order:asc}}]'
    for sort in ((), [Sort(column)]):
        text = query(asked(Filter(column, op, 1), sort=sort, columns=["uuid"])[1])
        assert f"where:{clause},{order}" in text
        assert f"){{{column} _additional" in text  # rule 3
    for other in (
        query(asked(Filter(column, op, 1), sort=[Sort(column, descending=True)])[1]),
        query(asked(Filter(column, op, 1), sort=[Sort("title")])[1]),
        query(asked(Filter(column, op, 1), of=view(version=(1, 37, 9)))[1]),
    ):
        assert "operator:Not,operands:[{operator:Not" in other
    spec = {"dataType": ["int"], "indexRangeFilters": True}
    assert "operator:Not" in query(asked(Filter("n", op, 1), of=view({"n": spec}))[1])


OVERFLOWN = '{path:["pages"],operator:Equal,valueInt:-9223372036854775808}'


@pytest.mark.parametrize("op", ["<", "<="])
def test_an_upper_bound_of_integers_counts_those_that_are_out_of_order(op):
    """W21, rule 1: the largest integers are read first and sorted last; numbers and lower bounds have none of them."""
    tenants = {"multiTenancyConfig": {"enabled": True}}
    row = Filter("pages", op, 5)
    assert query(asked(row)[1]).endswith(f"}}}}Aggregate{{Book(where:{OVERFLOWN}){{meta{{count}}}}}}}}")
    of_tenant = query(asked(row, of=view(**tenants), tenant="ann")[1])
    assert f'Aggregate{{Book(where:{OVERFLOWN},tenant:"ann")' in of_tenant
    others = [asked(Filter("price", op, 5)), asked(Filter("pages", ">", 5)), asked(row, sort=[Sort("title")])]
    assert not any("Aggregate" in query(requests) for _, requests in others)


@pytest.mark.parametrize(
    "first",
    [
        {"data": EMPTY["data"] | {"Aggregate": {"Book": [{"meta": {"count": 1}}]}}},
        {"data": EMPTY["data"] | {"Aggregate": {"Book": None}}, "errors": [{"message": "no"}]},
        {"data": EMPTY["data"] | {"Aggregate": {}}},
    ],
)
def test_where_integers_are_out_of_order_the_filter_is_read_to_its_end(first):
    """W21, rule 1: so it is where they could not be counted."""
    rows = {"data": {"Get": {"Book": [{"pages": 1, "_additional": {"id": key(1)}}]}}}
    answers = Answers(reply(first), reply(rows))
    page, requests = asked(Filter("pages", "<", 5), answers=answers, columns=["uuid"], total=False)
    assert [each.id for each in page.keys] == [key(1)]
    again = query(requests[1:])
    assert "where:{operator:Not,operands:[{operator:Not,operands:[" in again
    assert "Aggregate" not in again


def test_integers_in_their_order_are_asked_for_once():
    """W21, rule 1: a refused search stays refused."""
    none = {"Aggregate": {"Book": [{"meta": {"count": 0}}]}}
    more = {"columns": ["uuid"], "total": False}
    page, requests = asked(Filter("pages", "<", 5), answers=Answers(reply({"data": EMPTY["data"] | none})), **more)
    assert (len(requests), page.keys) == (1, [])
    failed = Answers(reply({"data": {"Get": {"Book": None}} | none, "errors": [{"message": "out of memory"}]}))
    with pytest.raises(QueryError, match="out of memory"):
        asked(Filter("pages", "<", 5), answers=failed, **more)


def test_rows_of_one_shard_on_one_node_need_no_order():
    """W21, rule 2: a tenant is a shard; what the definition does not say counts as several."""
    tenants = {"multiTenancyConfig": {"enabled": True}, "shardingConfig": {"actualCount": 0}}
    cases = [
        (ONE_PART, False),
        (ONE_PART | tenants, False),
        ({}, True),
        ({"shardingConfig": None, "replicationConfig": None}, True),
        (ONE_PART | {"shardingConfig": {"actualCount": 3}}, True),
        (ONE_PART | {"replicationConfig": {"factor": 3}}, True),
        (ONE_PART | tenants | {"replicationConfig": {"factor": 2}}, True),
        ({"replicationConfig": {"factor": 1}}, True),
    ]
    for more, sorts in cases:
        of = view(**more)
        tenant = "ann" if "multiTenancyConfig" in more else None
        text = query(asked(Filter("title", "=", "tea"), of=of, tenant=tenant)[1])
        assert ("sort:" in text) is sorts, more
        text = query(asked(Filter("title", "=", "tea"), sort=[Sort("title")], of=of, tenant=tenant)[1])
        assert '{path:["_id"],order:asc}]' in text


def counted(number: int) -> dict:
    return {"data": {"Aggregate": {"Book": [{"meta": {"count": number}}]}}}


def found(*numbers: int) -> dict:
    return {"data": {"Get": {"Book": [{"_additional": {"id": key(each)}} for each in numbers]}}}


def windowed(*replies: dict, sort=(), row=None, of=None, **more) -> tuple:
    """Fetch ten rows of a collection of which nothing is known; give the rows, and the texts of the requests."""
    seen = of or view()
    rows = [row or Filter("title", "=", "tea")] if row is not ... else []
    compiled = compile_filter(FilterRequest(object="Book", rows=rows), seen) if rows else None
    more = {"limit": 10, "total": False, "columns": ["uuid"]} | more
    request = PageRequest(object="Book", filter=compiled, sort=list(sort), **more)
    answers = Answers(*map(reply, replies))
    page = answers.run(pages.page(request, seen))
    return len(page.keys), [query([each]) for each in answers.asked]


TEA = '{path:["title"],operator:Equal,valueText:"tea"}'
BY_ID = '{path:["_id"],order:asc}'


def test_rows_in_the_order_of_ids_are_looked_for_among_the_lowest_ids():
    """W21, rule 2: to sort all that match would take seconds; the number of objects tells how many ids are enough."""
    seen = view()
    rows, (count, text) = windowed(counted(100_000), found(*range(10)), of=seen)
    assert rows == 10
    assert count == "{Aggregate{Book{meta{count}}}}"
    low = re.search(rf"where:{{operator:And,operands:\[{re.escape(TEA)},(.*?)\]}},sort:\[{re.escape(BY_ID)}\]", text)[1]
    assert re.fullmatch(r'{path:\["id"\],operator:LessThan,valueText:"00cc78e9-.*"}', low)  # 26 rows of each 8 objects
    rows, [text] = windowed(found(*range(10)), of=seen, offset=20)
    assert 'operator:LessThan,valueText:"0169' in text
    assert "offset:20" in text


def test_the_highest_ids_come_first_where_the_order_descends():
    """W21, rule 2: without a filter, all objects of a window match."""
    last_first = [Sort("uuid", descending=True)]
    _, (_, text) = windowed(counted(100_000), found(*range(10)), sort=last_first, of=view(**ONE_PART))
    assert 'operator:GreaterThanEqual,valueText:"ff3' in text
    assert 'sort:[{path:["_id"],order:desc}]' in text
    _, (_, text) = windowed(counted(100_000), found(*range(10)), sort=last_first, row=...)
    assert 'where:{operator:Not,operands:[{operator:Not,operands:[{path:["id"],operator:GreaterThanEqual' in text
    assert 'valueText:"ffe6' in text


def test_where_a_window_does_not_fill_the_page_more_ids_are_read():
    """W21, rule 2: as many as its rows suggest, once; then all."""
    few, many = found(*range(20)), found(*range(50))
    rows, (_, first, second) = windowed(counted(100_000), few, many, limit=50)
    assert rows == 50
    assert 'LessThan,valueText:"0207' in first
    assert 'LessThan,valueText:"079a' in second  # 50 rows instead of 20, and a half more
    rows, texts = windowed(counted(100_000), few, few, many, limit=50)
    assert rows == 50
    assert f"where:{TEA},sort:" in texts[-1]
    rows, (_, _, second) = windowed(counted(100_000), found(*range(20)), found(*range(40)), limit=40, offset=10)
    assert rows == 40
    assert 'LessThan,valueText:"0511' in second  # 50 rows again, of which the window held 30
    for none in (found(), found(*range(15))):
        rows, texts = windowed(counted(100_000), none, found(1, 2), limit=50)
        assert (rows, len(texts)) == (2, 3)
        assert f"where:{TEA},sort:" in texts[-1]


@pytest.mark.parametrize(
    ("more", "requests"),
    [
        ({"of": view(**ONE_PART)}, 1),  # the order of writing is cheaper
        ({"row": Filter("pages", ">", 1)}, 1),  # so is that of the index
        ({"sort": [Sort("title")]}, 1),
        ({"sort": [Sort("uuid"), Sort("title")]}, 1),
        ({"answers": [counted(1_247)]}, 2),  # a window would hold a quarter of all ids
        ({"answers": [{"errors": [{"message": "no right to count"}]}]}, 2),
        ({"answers": [counted(0)]}, 2),
    ],
)
def test_all_ids_are_read_where_a_window_would_not_help(more, requests):
    answers = more.pop("answers", [])
    rows, texts = windowed(*answers, found(1), **more)
    assert (rows, len(texts)) == (1, requests)
    assert 'path:["id"]' not in texts[-1]


def test_the_number_of_objects_is_taken_from_every_total_that_tells_it():
    """An unfiltered total tells how many there are; a filtered one how many match, and at least so many there are."""
    seen = view(multiTenancyConfig={"enabled": True}, replicationConfig={"factor": 3})
    plain = PageRequest(object="Book", tenant="ann", limit=10)
    Answers(reply({"objects": []}), reply(counted(50_000))).run(pages.page(plain, seen))
    ann = {"of": seen, "tenant": "ann"}
    _, [text, _] = windowed(found(*range(10)), counted(60_000), total=True, **ann)
    assert (
        'operator:LessThan,valueText:"0198' in text
    )  # 26 rows of 50,000, of which one of 8 may match, and a half more
    _, [text] = windowed(found(*range(10)), **ann)
    assert 'operator:LessThan,valueText:"002a' in text  # of 60,000 that match
    _, [text] = windowed(found(*range(10)), row=Filter("title", "=", "war"), **ann)
    assert 'operator:LessThan,valueText:"0154' in text  # of 60,000
    _, [count, _] = windowed(counted(10), found(1), of=seen, tenant="bob")
    assert count == '{Aggregate{Book(tenant:"bob"){meta{count}}}}'


def test_no_more_numbers_of_objects_are_remembered_than_a_person_needs():
    seen = view()
    for at in range(1_000):
        windowed(
            *([] if at else [counted(9)]), found(), counted(at), of=seen, total=True, row=Filter("title", "=", f"t{at}")
        )
        seen.counts.setdefault((None, ""), 9)
    assert 1 < len(seen.counts) < 110


def test_several_clauses_are_sent_once():
    """W21, rule 1."""
    _, requests = asked(Filter("pages", ">", 1), Filter("price", "<", 2))
    assert query(requests).count("GreaterThan") == 1


def test_the_last_sort_key_is_the_id():
    """W21, rule 2: with several shards, ties double rows."""
    assert 'sort:[{path:["_id"],order:asc}]' in query(asked(Filter("sizes", "<", 1))[1])
    _, requests = asked(sort=[Sort("title", descending=True)])
    assert 'sort:[{path:["title"],order:desc},{path:["_id"],order:asc}]' in query(requests)
    _, requests = asked(sort=[Sort("uuid", descending=True)])
    assert 'sort:[{path:["_id"],order:desc}]' in query(requests)


def test_every_sorted_property_is_selected():
    """W21, rule 3: the merge of shards sorts by what is selected."""
    _, requests = asked(sort=[Sort("title"), Sort("pages")], columns=["uuid"])
    assert re.search(r"\{title pages _additional\{id", query(requests))


def test_a_count_goes_along_with_its_page():
    page, requests = asked(Filter("pages", ">", 1))
    assert page.total == 3
    assert (
        query(requests[1:]) == '{Aggregate{Book(where:{path:["pages"],operator:GreaterThan,valueInt:1}){meta{count}}}}'
    )
    assert len(asked(total=False, answers=Answers(reply({"objects": []})))[1]) == 1


def test_every_type_is_selected_with_its_parts():
    types = TYPES | {"by": {"dataType": ["Author", "Editor"]}}
    text = query(asked(Filter("pages", ">", 1), of=view(types))[1])
    assert "place{latitude longitude}" in text
    assert "phone{input internationalFormatted nationalFormatted national valid countryCode defaultCountry}" in text
    assert "author{name born}" in text
    assert "by{...on Author{__typename _additional{id}} ...on Editor{__typename _additional{id}}}" in text
    assert "_additional{id creationTimeUnix lastUpdateTimeUnix vector}" in text


def test_vectors_are_asked_for_only_where_they_are_shown():
    assert "vector" not in query(asked(Filter("pages", ">", 1), columns=["pages"])[1])
    named = view({"t": "text"}, vectorConfig={"front": {}, "back": {}})
    assert "vectors{front back}" in query(asked(Filter("t", "=", "tea"), of=named)[1])


# W39: the window ------------------------------------------------------------------------------------------------------


def test_the_window_is_said_before_the_server_is_asked():
    """W39: row 10,000 is the last; the message names the setting and what to do."""
    for rows in ([], [Filter("pages", ">", 1)]):
        with pytest.raises(WindowExceededError) as caught:
            asked(*rows, offset=9_950, limit=51, answers=Answers())
        assert "QUERY_MAXIMUM_RESULTS" in caught.value.message
        assert caught.value.details["window"] == 10_000
        assert "export" in caught.value.hint
    asked(offset=9_950, limit=50)


def test_a_lower_limit_of_the_server_is_told_with_its_number():
    """W39: it says it in words."""
    text = (
        "msg:offset or limit code:400 err:query maximum results exceeded: the total limit calculated from the provided "
        "offset '0' and limit '100' exceeds the configured value for QUERY_MAXIMUM_RESULTS '50'."
    )
    with pytest.raises(WindowExceededError) as caught:
        asked(answers=Answers(reply({"error": [{"message": text}]}, status=422), reply(COUNT)))
    assert (caught.value.details["window"], caught.value.details["asked"]) == (50, 100)


def test_a_cursor_reaches_past_the_window_without_a_filter():
    """W39."""
    cursor = cursors.seal(cursors.query_of(PageRequest(object="Book")), key(1))
    _, requests = asked(offset=20_000, cursor=cursor)
    assert str(requests[0]) == f"GET /v1/objects?class=Book&limit=100&after={key(1)}&include=vector"
    for more in ({"sort": [Sort("title")]}, {}):
        rows = [] if more else [Filter("pages", ">", 1)]
        with pytest.raises(QueryError, match="no filter, no sort"):
            asked(*rows, cursor=cursor, answers=Answers(), **more)


def test_a_server_without_cursors_gets_none():
    """W39: below 1.18 it would answer with the first rows again."""
    cursor = cursors.seal(cursors.query_of(PageRequest(object="Book")), key(1))
    with pytest.raises(QueryError) as caught:
        asked(cursor=cursor, answers=Answers(), of=view(version=(1, 17, 9)))
    assert caught.value.code == cursors.INVALID


@pytest.mark.parametrize("more", [{"cursor": "abc"}, {"cursor": key(1)}, {"cursor": ""}, {"columns": ["title"]}])
def test_what_is_no_cursor_of_this_query_is_refused_and_nothing_is_sent(more):
    """W39: a server may take any text for the beginning."""
    cursor = cursors.seal(cursors.query_of(PageRequest(object="Book")), key(1))
    with pytest.raises(QueryError) as caught:
        asked(**{"cursor": cursor, "answers": Answers()} | more)
    assert caught.value.code == cursors.INVALID


@pytest.mark.parametrize(("offset", "limit"), [(-1, 10), (0, 0), (0, -5)])
def test_a_page_of_nothing_is_refused(wording, offset, limit):
    """The server answers negative numbers with 200 and an empty body."""
    with pytest.raises(QueryError) as caught:
        asked(offset=offset, limit=limit, answers=Answers())
    wording(caught.value.message)


# what goes wrong ------------------------------------------------------------------------------------------------------


def test_without_graphql_pages_of_all_rows_work_and_the_total_is_unknown():
    page, _ = asked(answers=Answers(reply({"objects": []}), reply(OFF, status=422)))
    assert page.total is None
    assert [note.code for note in page.notes] == ["total-unknown"]


def test_without_graphql_a_filter_says_so_and_what_still_works(wording):
    with pytest.raises(QueryError) as caught:
        asked(Filter("pages", ">", 1), answers=Answers(reply(OFF, status=422), reply(OFF, status=422)))
    assert caught.value.code == "graphql-unavailable"
    wording(caught.value.hint)


def test_partial_data_with_errors_is_an_error(wording):
    """A 200 with errors is no page."""
    body = {"data": {"Get": {"Book": [{"_additional": {"id": key(0)}}]}}, "errors": [{"message": "a shard is down"}]}
    with pytest.raises(QueryError) as caught:
        asked(Filter("pages", ">", 1), answers=Answers(reply(body), reply(COUNT)))
    wording(caught.value.message)


@pytest.mark.parametrize("body", ["", "<html>", "[]", '{"objects": 7}'])
def test_a_success_with_another_body_is_an_error(body):
    with pytest.raises(QueryError):
        asked(answers=Answers(reply(body), reply(COUNT)))


@pytest.mark.parametrize(
    "row",
    [
        {"title": "a"}, {"_additional": {}}, {"_additional": 1}, {"strange": 1, "_additional": {"id": "a"}},
        {"_additional": {"id": "a", "creationTimeUnix": "x"}}, {"phone": 1, "_additional": {"id": "a"}},
    ],
)  # fmt: skip
def test_rows_of_another_form_than_was_asked_for_are_an_error(wording, row):
    strange = Answers(reply({"data": {"Get": {"Book": [row]}}}), reply(COUNT))
    with pytest.raises(QueryError) as caught:
        asked(Filter("pages", ">", 1), answers=strange, of=view({"pages": "int", "phone": "phoneNumber"}), total=True)
    wording(caught.value.hint)


def test_a_value_that_is_no_object_is_shown_as_it_came():
    row = {"author": "Ada", "_additional": {"id": key(1)}}
    answers = Answers(reply({"data": {"Get": {"Book": [row]}}}), reply(COUNT))
    page, _ = asked(Filter("pages", ">", 1), answers=answers, columns=["author"])
    assert [row["author"] for row in page.rows] == ["Ada"]


def test_a_phone_keeps_what_is_false_zero_or_empty_but_neither_what_is_missing_nor_an_empty_country():
    phone = {"input": "+0", "valid": False, "national": 0, "countryCode": 0, "internationalFormatted": ""}
    row = {"phone": {**phone, "nationalFormatted": None, "defaultCountry": ""}, "_additional": {"id": key(1)}}
    answers = Answers(reply({"data": {"Get": {"Book": [row]}}}), reply(COUNT))
    page, _ = asked(Filter("pages", ">", 1), answers=answers, columns=["phone"])
    assert [json.loads(row["phone"]) for row in page.rows] == [phone]


@pytest.mark.parametrize("counted", [{"Other": [{"meta": {"count": 3}}]}, {"Book": [{"meta": {}}]}, {"Book": 3}])
def test_a_count_of_another_form_leaves_the_total_unknown_and_is_an_error_where_it_is_asked_for(counted):
    answer = reply({"data": {"Aggregate": counted}})
    page, _ = asked(answers=Answers(reply({"objects": []}), answer), total=True)
    assert (page.total, [note.code for note in page.notes]) == (None, ["total-unknown"])
    with pytest.raises(QueryError):
        Answers(answer).run(pages.count(CountRequest(object="Book"), view()))


def test_a_right_that_graphql_wants_is_named(wording):
    text = "due to GraphQL introspection, this role must have the permission to `read_collections` on `*`: rbac: no"
    refused = reply({"error": [{"message": text}]}, status=403)
    with pytest.raises(AccessDeniedError) as caught:
        asked(Filter("pages", ">", 1), answers=Answers(refused, refused))
    wording(caught.value.hint)


def test_columns_that_do_not_sort_are_dropped_and_said():
    names = ["shelf", "tags", "sizes", "place", "phone", "cover", "author", "vector"]
    page, requests = asked(sort=[Sort(name) for name in names])
    assert [note.column for note in page.notes if note.code == "sort-dropped"] == names
    assert requests[0].path.startswith("/v1/objects")


def test_a_sort_of_texts_says_that_the_server_sorts_them_whatever_their_case():
    page, _ = asked(sort=[Sort("pages"), Sort("title"), Sort("uuid")])
    assert [(note.code, note.column) for note in page.notes] == [("sort-approximate", "title")]


def test_a_sort_by_an_unknown_column_is_an_error_that_names_it():
    with pytest.raises(QueryError) as caught:
        asked(sort=[Sort("pages"), Sort("nope")])
    assert caught.value.details == {"column": "nope"}


class Rules:
    @pytest.mark.parametrize("shards", [1, 3])
    async def test_cells_are_the_same_whichever_way_they_came(self, wv: Rig, shards: int):
        """W21: REST and GraphQL; small integers, so that nothing is read again."""
        rows = [each | {"pages": 1, "sizes": [1]} for each in objects(30)]
        name = await wv.collection(TYPES, rows, shards=shards)
        plain = await wv.page(name)
        mark = len(wv.log)
        found = await wv.page(name, Filter("pages", "=", 1), sort=[Sort("title")])
        assert not [each for each in wv.log[mark:] if each.path.startswith(f"/v1/objects/{name}/")]
        assert {row["uuid"]: row.to_dict() for row in found.rows} == {row["uuid"]: row.to_dict() for row in plain.rows}
        assert {each.id: each for each in found.keys} == {each.id: each for each in plain.keys}

    @pytest.mark.parametrize("further", [0, 4])  # so many that a search tells them from rows without a value
    async def test_integers_that_graphql_loses_are_read_again(self, wv: Rig, further: int):
        """W21: beyond 32 bits they are null there, in arrays and objects too; the page says it."""
        types = {"i": "int", "many": "int[]", "t": "text"}
        inner = [{"name": "k", "dataType": ["int"]}, {"name": "t", "dataType": ["text"]}]
        types |= {"o": {"dataType": ["object"], "nestedProperties": inner}}
        types |= {"os": {"dataType": ["object[]"], "nestedProperties": inner}}
        rows = [
            {"t": "x", "i": 2**31, "many": [1], "o": {"k": 1, "t": "a"}},
            {"t": "x", "i": 1, "many": [1, -(2**40)], "o": {"k": 1}},
            {"t": "x", "i": 1, "o": {"k": 2**53}},
            {"t": "x", "o": {"t": "only"}},
            {"t": "x", "i": 1, "os": [{"k": 1, "t": "a"}, {"k": 2**40}]},
            *[{"t": "x"}, {"t": "x", "i": -(2**31) - 1}] * further,
        ]
        name = await wv.collection(types, rows)
        plain, found = await wv.page(name), await wv.page(name, Filter("t", "=", "x"), sort=[Sort("uuid")])
        assert [row.to_dict() for row in found.rows] == [row.to_dict() for row in plain.rows]
        assert [note.code for note in found.notes] == ["integers-repaired"]
        assert f": {4 + further} rows were read again" in found.notes[0].reason
        assert {row["i"] for row in found.rows} == {2**31, 1, None} | ({-(2**31) - 1} if further else set())

    @pytest.mark.parametrize("indexed", [True, False])
    async def test_W21_a_search_shows_references_to_objects_that_are_gone_as_a_list_does(self, wv: Rig, indexed: bool):
        """GraphQL leaves them out without a word; whether they can be counted or not."""
        one = await wv.collection({"t": "text"}, [{"t": "a", "id": key(0)}])
        two = await wv.collection({"t": "text"}, [{"t": "b", "id": key(1)}])
        name = await wv.collection({"t": "text", "n": "int", "r": {"dataType": [one, two], "indexFilterable": indexed}})
        beacons = [{"beacon": f"weaviate://localhost/{target}/{key(at)}"} for at, target in enumerate((one, two))]
        for at, references in enumerate([beacons, beacons[1:], beacons[:1], []]):
            values = {"t": "x", "n": at} | ({"r": references} if references else {})
            await wv.call("POST", "/v1/objects", {"class": name, "id": key(at), "properties": values})
        selected = Filter("t", "=", "x")
        assert (await wv.page(name, selected)).notes == []
        await wv.call("DELETE", f"/v1/objects/{two}/{key(1)}")
        plain = [row.to_dict() for row in (await wv.page(name)).rows]
        plain.sort(key=lambda row: row["n"])
        assert [str(row["r"]).count("beacon") for row in plain] == [2, 1, 1, 0]
        for page in (await wv.page(name, selected, sort=[Sort("uuid")]), await wv.page(name, sort=[Sort("n")])):
            assert sorted((row.to_dict() for row in page.rows), key=lambda row: row["n"]) == plain
            assert [note.code for note in page.notes] == ["references-repaired"]
            assert " 2 rows " in page.notes[0].reason
        assert (await wv.page(name, selected, columns=["t"])).notes == []

    async def test_the_server_stores_no_null_so_every_absent_value_is_null(self, wv: Rig):
        """An empty text and an empty array are stored, so the cells tell them from null by both ways of reading."""
        objects = [{"t": None, "n": 1}, {"n": 2}, {"t": "", "many": [], "n": 3}]
        name = await wv.collection({"t": "text", "many": "text[]", "n": "int"}, objects)
        stored = [(await wv.stored(name, key(number)) or {})["properties"] for number in range(3)]
        assert stored == [{"n": 1}, *objects[1:]]
        for more in ([], [Filter("n", ">", 0)]):
            rows = {row["n"]: row for row in (await wv.page(name, *more)).rows}
            assert {n: (row["t"], row["many"]) for n, row in rows.items()} == {
                1: (None, None), 2: (None, None), 3: ("", "[]"),
            }  # fmt: skip
            assert not any(row.is_missing("t") for row in rows.values())

    async def test_missing_integers_do_not_cost_a_request_each(self, wv: Rig):
        """One search tells which rows hold what GraphQL could not say."""
        rows = [{"t": "tea"} | ({"i": 2**40} if at == 7 else {} if at % 2 else {"i": at}) for at in range(60)]
        name = await wv.collection({"i": "int", "t": "text"}, rows)
        mark = len(wv.log)
        found = await wv.page(name, Filter("t", "=", "tea"))
        assert {row.key.id: row["i"] for row in found.rows} == {key(at): row.get("i") for at, row in enumerate(rows)}
        assert [each.path for each in wv.log[mark:] if each.method == "GET"][2:] == [f"/v1/objects/{name}/{key(7)}"]

    @pytest.mark.parametrize(
        "ids", ["spread", *(pytest.param(each, marks=pytest.mark.slow) for each in ("lowest", "highest"))]
    )
    async def test_pages_in_the_order_of_ids_are_right_wherever_the_ids_are(self, wv: Rig, ids: str):
        """W21, rule 2: ids that begin alike, as with a time in them, make windows useless, not pages wrong."""
        start = {"spread": "", "lowest": "0" * 8, "highest": "f" * 8}[ids]
        rows = [{"id": start + key(at)[len(start) :], "k": "few" if at % 40 == 0 else "many"} for at in range(1_300)]
        name = await wv.collection({"k": {"dataType": ["text"], "tokenization": "field"}}, rows, shards=3)
        mark = len(wv.log)
        for kind in ("many", "few", ""):
            due = sorted(each["id"] for each in rows if not kind or each["k"] == kind)
            where = [Filter("k", "=", kind)] if kind else []
            orders = [([], due)] if kind else []
            orders += [([Sort("uuid")], due), ([Sort("uuid", descending=True)], due[::-1])]
            for sort, wanted in orders:
                for offset in (0, 7, len(due) - 3):
                    page = await wv.page(name, *where, sort=sort, offset=offset, limit=7)
                    assert [each.id for each in page.keys] == wanted[offset : offset + 7], (kind, sort, offset)
                    assert page.total == len(due)
        sent = [each.body for each in wv.log[mark:] if each.body]
        assert sum('path:[\\"id\\"],operator:' in each for each in sent) > 5

    async def test_a_page_goes_on_where_a_cursor_points(self, wv: Rig):
        """W39."""
        name = await wv.collection({"i": "int"}, [{"i": at} for at in range(25)])
        seen, cursor = [], None
        while True:
            page = await wv.driver.fetch_page(PageRequest(object=name, limit=10, offset=len(seen), cursor=cursor))
            seen += [each.id for each in page.keys]
            if (cursor := page.next) is None:
                break
        assert seen == sorted(key(at) for at in range(25))

    async def test_a_count_is_exact(self, wv: Rig):
        name = await wv.collection({"i": "int"}, [{"i": at % 5} for at in range(25)], shards=3)
        compiled = await wv.filter(name, Filter("i", ">", 2))
        assert await wv.driver.count_rows(CountRequest(object=name, filter=compiled)) == 10
        assert await wv.driver.count_rows(CountRequest(object=name)) == 25

    async def test_a_whole_vector_is_one_cell(self, wv: Rig):
        """W10: a JSON array of numbers, whole however long."""
        name = await wv.collection({"i": "int"}, [{"i": 1, "vector": [0.1] * 2000}])
        [row] = (await wv.page(name)).rows
        assert json.loads(row["vector"]) == [0.1] * 2000
        assert not row.is_cut("vector")
        assert await wv.driver.fetch_cell(CellRequest(key=row.key, column="vector")) == row["vector"]

    async def test_a_missing_row_and_a_dropped_collection_are_told(self, wv: Rig):
        name = await wv.collection({"i": "int"}, [{"i": 1}])
        [row] = (await wv.page(name)).rows
        await wv.call("DELETE", f"/v1/objects/{name}/{row.key.id}")
        with pytest.raises(RowNotFoundError):
            await wv.driver.fetch_cell(CellRequest(key=row.key, column="i"))
        await wv.call("DELETE", f"/v1/schema/{name}")
        with pytest.raises(ObjectNotFoundError):
            await wv.driver.fetch_page(PageRequest(object=name))

    async def test_a_collection_that_changed_under_us_says_so(self, wv: Rig):
        name = await wv.collection({"i": "int", "gone": "text"}, [{"i": 1}])
        compiled = await wv.filter(name, Filter("i", ">", 0))
        await wv.call("DELETE", f"/v1/schema/{name}")
        await wv.call("POST", "/v1/schema", {"class": name, "properties": [{"name": "i", "dataType": ["int"]}]})
        with pytest.raises(ObjectChangedError, match="gone: 'gone'") as caught:
            await wv.driver.fetch_page(PageRequest(object=name, filter=compiled))
        assert "compile the filter" in caught.value.hint
        assert (await wv.page(name, Filter("i", ">", 0))).cells == []

    async def test_awkward_values_come_through_filters(self, wv: Rig):
        """W12: quotes, backslashes, line breaks, emoji, wildcards."""
        texts = ['say "hi"', "back\\slash", "two\nlines", "emoji😀end", "star*", "q?", "tab\there", "ünï", "$var {x}"]
        name = await wv.collection({"t": {"dataType": ["text"], "tokenization": "field"}}, [{"t": t} for t in texts])
        for number, text in enumerate(texts):
            assert await wv.numbers(name, Filter("t", "=", text)) == [number]
            assert await wv.numbers(name, Filter("t", "in", [text])) == [number]


class TestPagesOnFake(OnFake, Rules):
    pass


class TestPagesOnServer(OnServer, Rules):
    pass
