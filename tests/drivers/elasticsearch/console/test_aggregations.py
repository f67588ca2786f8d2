"""Aggregations as tables, when a request asks for them."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, Rig
from drivers.replies import Answers, reply

from dragoman_api import AnswerKind, ConsoleRequest, ConsoleText, HttpRequest
from dragoman_api.cells import MISSING
from dragoman_api.grid import MAX_ROWS
from dragoman_querydsl import console_answers as answers

if TYPE_CHECKING:
    from dragoman_api import Answer

SEARCH = HttpRequest("POST", "/x/_search")


def answered(body: Any, *, tabular: bool = True, request: HttpRequest = SEARCH) -> Answer:
    asked = ConsoleRequest(request=request, writes=False, tabular=tabular)
    return Answers(reply(body)).run(answers.execute(asked))


def tabled(aggregations: Any, **more: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the title and the rows of each table; a field that a row lacks is left out."""
    body = aggregations if isinstance(aggregations, str) else json.dumps(aggregations)
    return read(answered(f'{{"hits":{{"hits":[]}},"aggregations":{body}}}', **more))


def read(answer: Answer | None) -> list[tuple[str, list[dict[str, Any]]]]:
    found = []
    while answer is not None:
        assert answer.page is not None
        found.append((answer.title, [row.to_dict(missing=False) for row in answer.page.rows]))
        answer = answer.next
    return found


def terms(*buckets: dict[str, Any], others: int = 0, error: int = 0) -> dict[str, Any]:
    return {"doc_count_error_upper_bound": error, "sum_other_doc_count": others, "buckets": list(buckets)}


def test_E38_aggregations_stay_json_unless_tables_are_asked_for() -> None:
    body = {"hits": {"hits": []}, "aggregations": {"kinds": terms({"key": "a", "doc_count": 2})}}
    assert answered(body, tabular=False).kind is AnswerKind.JSON
    found = answered(body)
    assert found.kind is AnswerKind.TABLE
    assert json.loads(found.text) == body, "expectations read the whole answer"


def test_nested_buckets_are_rows_that_repeat_the_buckets_around_them() -> None:
    def days(*numbers: int) -> dict[str, Any]:
        return {
            "buckets": [
                {"key": at, "key_as_string": f"day {at}", "doc_count": at, "load": {"value": at / 2}} for at in numbers
            ]
        }

    found = tabled(
        {
            "kinds": terms(
                {"key": "a", "doc_count": 3, "days": days(1, 2), "best": {"value": 7.0}},
                {"key": "b", "doc_count": 0, "days": days(), "best": {"value": None}},
            )
        }
    )
    outer = {"kinds": "a", "kinds.doc_count": 3, "best": 7.0}
    assert found == [
        (
            "",
            [
                outer | {"days": 1, "days.key_as_string": "day 1", "days.doc_count": 1, "load": 0.5},
                outer | {"days": 2, "days.key_as_string": "day 2", "days.doc_count": 2, "load": 1.0},
                {"kinds": "b", "kinds.doc_count": 0, "best": None},
            ],
        )
    ]


@pytest.mark.parametrize(
    ("buckets", "roles"),
    [
        ([{"key": "a", "doc_count": 1}], {"b": "key"}),
        ([{"key": 1, "key_as_string": "true", "doc_count": 1}], {"b": "server", "b.key_as_string": "key"}),
        ([{"key": "a", "from": 1, "to": 2, "doc_count": 1}], {"b": "key", "b.from": "server", "b.to": "server"}),
        ([{"key": {"x": "a", "y": 1}, "doc_count": 1}], {"b.x": "key", "b.y": "key"}),
        ({"one": {"doc_count": 1}}, {"b": "key"}),
        ([{"doc_count": 1}], {"b": "key"}),
        ([{"key": "a", "doc_count": 1, "c": terms({"key": 1, "doc_count": 1})}], {"b": "key", "c": "key"}),
    ],
)
def test_a_table_says_which_columns_name_its_buckets(buckets: Any, roles: dict[str, str]) -> None:
    found = answered({"hits": {"hits": []}, "aggregations": {"b": {"buckets": buckets}}}).page
    assert found is not None
    assert {column.name: column.role for column in found.columns if column.role} == roles


def test_sibling_aggregations_are_a_table_each() -> None:
    inner = {"x": terms({"key": 1, "doc_count": 1}), "y": terms({"key": 2, "doc_count": 1})}
    found = tabled({"a": terms({"key": "k", "doc_count": 1, **inner}), "b": terms(), "n": {"value": 3},
                    "m": {"value": 4.5}})  # fmt: skip
    assert [(title, len(rows)) for title, rows in found] == [("n, m", 1), ("a > x", 1), ("a > y", 1), ("b", 0)]
    assert found[0][1] == [{"n": 3, "m": 4.5}]
    assert found[1][1] == [{"a": "k", "a.doc_count": 1, "x": 1, "x.doc_count": 1}]


def test_numbers_keep_their_digits() -> None:
    text = '{"k":{"buckets":[{"key":9007199254740993,"doc_count":1,"s":{"value":1.10}}]},"t":{"value":1E400}}'
    [(_, [total]), (_, [row])] = tabled(text)
    assert (row["k"], str(row["s"])) == (2**53 + 1, "1.10")
    assert total["t"] == Decimal("1E400")


@pytest.mark.parametrize(
    ("result", "row"),
    [
        ({"count": 2, "min": 1.0, "std": {"upper": 3.0, "lower": None}},
         {"m.count": 2, "m.min": 1.0, "m.std.upper": 3.0, "m.std.lower": None}),
        ({"values": {"50.0": 1.5, "99.0": None}}, {"m.50.0": 1.5, "m.99.0": None}),
        ({"values": [{"key": 50.0, "value": 1.5, "value_as_string": "x"}]}, {"m.50.0": 1.5, "m.50.0_as_string": "x"}),
        ({"value": 5.0, "keys": ["a"]}, {"m": 5.0, "m.keys": '["a"]'}),
        ({"count": 0, "std": {"upper": {}, "lower": []}}, {"m.count": 0, "m.std.upper": "{}", "m.std.lower": "[]"}),
        ({"value": 5.0, "value_as_string": "five", "meta": {"why": 1}}, {"m": 5.0, "m.value_as_string": "five"}),
        ({"hits": {"total": {"value": 1}, "hits": [{"_id": "1"}]}}, {"m": '[{"_id":"1"}]'}),
        ({"doc_count": 4, "deep": {"value": 1}, "more": {"doc_count": 2}},
         {"m.doc_count": 4, "deep": 1, "more.doc_count": 2}),
        ({"bounds": {"top_left": {"lat": 1.0, "lon": 2.0}}},
         {"m.bounds.top_left.lat": 1.0, "m.bounds.top_left.lon": 2.0}),
    ],
)  # fmt: skip
def test_every_value_of_a_metric_is_a_column(result: dict[str, Any], row: dict[str, Any]) -> None:
    assert tabled({"m": result}) == [("", [row])]


@pytest.mark.parametrize(
    ("result", "rows"),
    [
        ({"buckets": {"late": {"doc_count": 1}, "_other_": {"doc_count": 2}}},
         [{"b": "late", "b.doc_count": 1}, {"b": "_other_", "b.doc_count": 2}]),
        ({"buckets": [{"doc_count": 1}, {"doc_count": 2}]}, [{"b": 0, "b.doc_count": 1}, {"b": 1, "b.doc_count": 2}]),
        ({"buckets": [{"key": "*-5.0", "to": 5.0, "doc_count": 1}, {"key": "5.0-*", "from": 5.0, "doc_count": 0}]},
         [{"b": "*-5.0", "b.to": 5.0, "b.doc_count": 1}, {"b": "5.0-*", "b.from": 5.0, "b.doc_count": 0}]),
        ({"buckets": {"2020": {"key_as_string": "2020", "key": 7, "doc_count": 1}}},
         [{"b": 7, "b.key_as_string": "2020", "b.doc_count": 1}]),
        ({"after_key": {"k": "x", "d": None}, "buckets": [{"key": {"k": "x", "d": None}, "doc_count": 3}]},
         [{"b.k": "x", "b.d": None, "b.doc_count": 3}]),
        ({"buckets": [{"key": ["a", 1], "key_as_string": "a|1", "doc_count": 1}]},
         [{"b": '["a",1]', "b.key_as_string": "a|1", "b.doc_count": 1}]),
    ],
)  # fmt: skip
def test_every_kind_of_bucket_is_a_row(result: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    assert tabled({"b": result}) == [("", rows)]


def test_buckets_within_a_single_bucket_repeat_its_values() -> None:
    inner = {"doc_count": 9, "low": {"value": 1}, "k": terms({"key": "a", "doc_count": 2})}
    assert tabled({"items": inner}) == [("", [{"items.doc_count": 9, "low": 1, "k": "a", "k.doc_count": 2}])]


def test_columns_of_one_name_are_told_apart_by_what_is_around_them() -> None:
    deep = terms({"key": 1, "doc_count": 1, "n": {"value": 5}})
    [(_, [row])] = tabled({"n": terms({"key": 2, "doc_count": 2, "n": deep})})
    assert row == {"n": 2, "n.doc_count": 2, "n>n": 1, "n>n.doc_count": 1, "n>n>n": 5}
    [(_, [row])] = tabled({"a": {"x": 1}, "a.x": {"value": 2}})
    assert row == {"a.x": 1, "a.x'": 2}


def test_what_the_server_leaves_out_or_estimates_is_said() -> None:
    after = {"buckets": [{"key": {"k": "x"}, "doc_count": 1}], "after_key": {"k": "x"}}
    found = answered(
        {"aggregations": {"a": terms({"key": 1, "doc_count": 1}, others=1234, error=3), "c": after, "b": terms()}}
    )
    told = {note.code: note.reason for note in found.notes}
    assert list(told) == ["buckets-cut", "buckets-approximate", "buckets-continue"]
    assert "a: 1,234 documents" in told["buckets-cut"]
    assert [note.hint for note in found.notes if note.code == "buckets-continue"] == ['"after": {"k":"x"}']


def test_what_is_left_out_of_several_buckets_is_added_up_and_an_unknown_error_is_one() -> None:
    def outer(*inner: dict[str, Any]) -> list[Any]:
        buckets = ({"key": at, "doc_count": 1, "k": each} for at, each in enumerate(inner))
        return [(note.code, note.reason) for note in answered({"aggregations": {"o": terms(*buckets)}}).notes]

    row = {"key": "a", "doc_count": 1}
    cut = ("buckets-cut", "o > k: 5 documents are in buckets that the answer leaves out")
    unsure = ("buckets-approximate", "o > k: the server only estimates the numbers of documents")
    assert outer(terms(row, others=2), terms(row, others=3)) == [cut]
    assert outer(terms(row), terms(row, error=-1)) == [unsure]
    assert outer(terms(row, others=5, error=1), terms(row)) == [cut, unsure]
    assert outer(terms(row, others=-1), terms(row)) == []
    last = {"buckets": [], "after_key": {"k": "x"}}
    assert outer(last, last) == [], "there are no more"


def test_every_bucket_row_and_value_of_several_is_there() -> None:
    single = {"doc_count": 9, "low": {"value": 1}, "high": {"value": 5}}
    assert tabled({"m": single}) == [("", [{"m.doc_count": 9, "low": 1, "high": 5}])]
    values = [{"key": 50.0, "value": 1.5}, {"key": 95.0, "value": 2.5}]
    assert tabled({"m": {"values": values}}) == [("", [{"m.50.0": 1.5, "m.95.0": 2.5}])]
    inner = terms({"key": "x", "doc_count": 1}, {"key": "y", "doc_count": 2})
    both = terms({"key": 1, "doc_count": 3, "k": inner, "n": {"value": 7}}, {"key": 2, "doc_count": 3, "k": inner})
    [(title, rows)] = tabled({"o": both})
    assert (title, [(row["o"], row.get("n"), row["k"], row["k.doc_count"]) for row in rows]) == (
        "", [(1, 7, "x", 1), (1, 7, "y", 2), (2, None, "x", 1), (2, None, "y", 2)],
    )  # fmt: skip
    beside = {"low": {"value": 1}, "deep": terms({"key": "a", "doc_count": 1}), "doc_count": 9}
    assert tabled({"m": beside}) == [("", [{"m.doc_count": 9, "low": 1, "deep": "a", "deep.doc_count": 1}])]
    three = {name: terms({"key": 1, "doc_count": 1, "n": {"value": at}}) for at, name in enumerate("abc")}
    assert [(title, rows[0]["n"]) for title, rows in tabled(three)] == [("a", 0), ("b", 1), ("c", 2)]
    nested = {"a": {"x": 1, "x'": 3}, "a.x": {"value": 2}}
    assert tabled(nested) == [("", [{"a.x": 1, "a.x'": 3, "a.x''": 2}])]


def test_hits_beside_aggregations_are_the_first_table() -> None:
    hit = {"_index": "x", "_id": "1", "_source": {"n": 1}}
    found = answered({"hits": {"hits": [hit]}, "aggregations": {"a": {"value": 1}}, "suggest": {"s": []}})
    assert [title for title, _ in read(found)] == ["hits", "a"]
    assert [note.code for note in found.notes] == ["suggestions-left-out"]


def test_several_searches_give_the_tables_of_each() -> None:
    one = {"hits": {"hits": []}, "aggregations": {"a": terms(), "b": {"value": 1}}}
    found = answered({"responses": [one, one]}, request=HttpRequest("POST", "/_msearch"))
    assert [title for title, _ in read(found)] == [
        "search 1 of 2: b", "search 1 of 2: a", "search 2 of 2: b", "search 2 of 2: a",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "aggregations",
    [5, [], {}, {"a": {"buckets": 5}}, {"a": {"buckets": [5]}}, {"a": {"values": [5]}}, {"a": {"buckets": {"k": 5}}}],
)
def test_what_makes_no_table_stays_json(aggregations: Any) -> None:
    assert answered({"aggregations": aggregations}).kind is AnswerKind.JSON


def test_nesting_rows_and_tables_are_bounded() -> None:
    deep: dict[str, Any] = {"value": 1}
    for _ in range(40):
        deep = terms({"key": 1, "doc_count": 1, "k": deep})
    assert answered({"aggregations": {"k": deep}}).kind is AnswerKind.JSON
    many = terms(*({"key": at, "doc_count": 1} for at in range(MAX_ROWS + 1)))
    page = answered({"aggregations": {"k": many}}).page
    assert page is not None
    assert (len(page.cells), [note.code for note in page.notes]) == (MAX_ROWS, ["rows-cut"])
    found = answered({"aggregations": {f"k{at}": terms() for at in range(answers.MAX_TABLES + 1)}})
    assert (len(read(found)), [note.code for note in found.notes]) == (answers.MAX_TABLES, ["answers-cut"])


def test_a_failed_shard_fails_the_request_as_table_too() -> None:
    shards = {"_shards": {"total": 2, "failed": 1, "failures": []}}
    assert answered({"aggregations": {"a": {"value": 1}}} | shards).failed == "1 of 2 shards failed"


def test_a_field_that_a_row_lacks_is_missing() -> None:
    page = answered(
        {"aggregations": {"b": terms({"key": 1, "doc_count": 1, "to": 5}, {"key": 2, "doc_count": 1})}}
    ).page
    assert page is not None
    assert page.cells[1][-1] is MISSING


async def tables(es: Rig, text: str) -> list[tuple[str, list[dict[str, Any]]]]:
    [request] = await es.driver.parse_console(ConsoleText(text))
    return read(await es.driver.execute_console(msgspec.structs.replace(request, tabular=True)))


PROPERTIES = {"kind": {"type": "keyword"}, "n": {"type": "long"}, "at": {"type": "date"},
              "items": {"type": "nested", "properties": {"sku": {"type": "keyword"}}}}  # fmt: skip
DOCUMENTS = [
    {"kind": "a", "n": 1, "at": "2026-01-01", "items": [{"sku": "x"}, {"sku": "y"}]},
    {"kind": "a", "n": 3, "at": "2026-02-01", "items": [{"sku": "x"}]},
    {"kind": "b", "n": 5, "at": "2026-02-02"},
]


class Rules:
    async def test_the_tables_of_real_answers(self, es: Rig) -> None:
        name = await es.index(PROPERTIES, DOCUMENTS)
        asked = {
            "kinds": {"terms": {"field": "kind"}, "aggs": {"top": {"max": {"field": "n"}}}},
            "items": {"nested": {"path": "items"}, "aggs": {"skus": {"terms": {"field": "items.sku"}}}},
            "all": {"sum": {"field": "n"}},
        }
        found = await tables(es, f"POST /{name}/_search\n{json.dumps({'size': 0, 'aggs': asked})}")
        assert dict(found) == {
            "all": [{"all": 9.0}],
            "kinds": [
                {"kinds": "a", "kinds.doc_count": 2, "top": 3.0},
                {"kinds": "b", "kinds.doc_count": 1, "top": 5.0},
            ],
            "items > skus": [
                {"items.doc_count": 3, "skus": "x", "skus.doc_count": 2},
                {"items.doc_count": 3, "skus": "y", "skus.doc_count": 1},
            ],
        }  # fmt: skip


class TestOnFake(Rules, OnFake):
    pass


class TestOnServer(Rules, OnServer):
    async def test_every_kind_of_aggregation_that_the_guide_names(self, es: Rig) -> None:
        name = await es.index(PROPERTIES, DOCUMENTS)
        months = {"field": "at", "calendar_interval": "month", "format": "yyyy-MM"}
        asked: dict[str, Any] = {
            "months": {"date_histogram": months, "aggs": {"n": {"stats": {"field": "n"}}}},
            "pages": {"composite": {"sources": [{"k": {"terms": {"field": "kind"}}}]}},
            "sizes": {"range": {"field": "n", "ranges": [{"to": 3}, {"from": 3}]}},
            "named": {"filters": {"filters": {"a": {"term": {"kind": "a"}}}}},
            "none": {"missing": {"field": "kind"}},
            "load": {"percentiles": {"field": "n", "percents": [50]}},
        }
        found = dict(await tables(es, f"POST /{name}/_search\n{json.dumps({'size': 0, 'aggs': asked})}"))
        assert [(row["months.key_as_string"], row["months.doc_count"], row["n.max"]) for row in found["months"]] == [
            ("2026-01", 1, 1.0), ("2026-02", 2, 5.0),
        ]  # fmt: skip
        assert found["pages"] == [{"pages.k": "a", "pages.doc_count": 2}, {"pages.k": "b", "pages.doc_count": 1}]
        assert [(row["sizes"], row["sizes.doc_count"]) for row in found["sizes"]] == [("*-3.0", 1), ("3.0-*", 2)]
        assert found["named"] == [{"named": "a", "named.doc_count": 2}]
        [alone] = [rows for title, rows in found.items() if sorted(title.split(", ")) == ["load", "none"]]
        assert alone == [{"none.doc_count": 0, "load.50.0": 3.0}]  # in the order of the server
