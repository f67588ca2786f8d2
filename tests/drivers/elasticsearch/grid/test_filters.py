"""Filter rows to clauses: what is sent, what is refused, what is approximate, and what the server makes of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, Rig, on_fake
from drivers.elasticsearch.test_objects import view
from msgspec.structs import replace

from dragoman_api import (
    CompiledFilter,
    Explanation,
    Filter,
    FilterNotSupportedError,
    FilterRequest,
    QueryError,
    RawQuery,
)
from dragoman_api.errors import DragomanError
from dragoman_api.remedies import Remedy
from dragoman_elasticsearch.connect import dialect_of
from dragoman_querydsl.grid.filters import compile_filter

if TYPE_CHECKING:
    from dragoman_querydsl.protocol import Dialect
    from wording import Wording

PROPERTIES: dict[str, Any] = {
    "k": {"type": "keyword"},
    "t": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 20}}},
    "p": {"type": "text"},
    "i": {"type": "integer"},
    "u": {"type": "unsigned_long"},
    "h": {"type": "half_float"},
    "f": {"type": "double"},
    "d": {"type": "date"},
    "e": {"type": "date", "format": "epoch_second"},
    "de": {"type": "date", "format": "dd.MM.yyyy"},
    "b": {"type": "boolean"},
    "ip": {"type": "ip"},
    "v": {"type": "version"},
    "fl": {"type": "flattened"},
    "nv": {"type": "keyword", "null_value": "none"},
    "n": {
        "type": "nested",
        "properties": {
            "a": {"type": "keyword"},
            "q": {"type": "integer"},
            "in": {"type": "nested", "properties": {"c": {"type": "keyword"}}},
        },
    },
    "m": {"type": "nested", "properties": {"a": {"type": "keyword"}}},
}
MODERN, OLD = dialect_of((8, 19, 21)), dialect_of((7, 9, 0))
DAY = "2024-01-05T00:00:00Z/2024-01-06T00:00:00Z"
"""A period, as the host writes it in place of `today`."""
NOW = "2024-01-05T10:00:00.5Z"


def compiled(*rows: Filter | RawQuery, match: str = "all", dialect: Dialect = MODERN) -> CompiledFilter:
    request = FilterRequest(object="x", rows=list(rows), match=match)
    return compile_filter(request, view({"properties": PROPERTIES}), dialect)


def query(*rows: Filter | RawQuery, match: str = "all", dialect: Dialect = MODERN) -> dict[str, Any]:
    return json.loads(compiled(*rows, match=match, dialect=dialect).body)["query"]  # type: ignore[no-any-return]


def explained(*rows: Filter | RawQuery, match: str = "all", dialect: Dialect = MODERN) -> list[Explanation]:
    return compiled(*rows, match=match, dialect=dialect).rows


def _name(given: object) -> str:
    """Name a case by its filter row, as the golden wording does."""
    text = f"{given.column} {given.op} {given.value}" if isinstance(given, Filter) else str(given)
    return text[:40]


def must_not(clause: dict[str, Any]) -> dict[str, Any]:
    return {"bool": {"must_not": [clause]}}


def nested(path: str, clause: dict[str, Any]) -> dict[str, Any]:
    return {"nested": {"path": path, "query": clause}}


def wildcard(field: str, pattern: str) -> dict[str, Any]:
    return {"wildcard": {field: {"value": pattern, "case_insensitive": True}}}


@pytest.mark.parametrize(
    ("row", "clause"),
    [
        (Filter("k", "=", "x"), {"term": {"k": "x"}}),
        (Filter("t", "=", "x"), {"term": {"t.keyword": "x"}}),
        (Filter("p", "=", "x y"), {"match_phrase": {"p": "x y"}}),
        (Filter("i", "=", "5"), {"term": {"i": 5}}),
        (Filter("i", "=", 5.0), {"term": {"i": 5}}),
        (Filter("f", "=", "1.10"), {"term": {"f": 1.10}}),
        (Filter("b", "=", "TRUE"), {"term": {"b": True}}),
        (Filter("ip", "=", "10.0.0.0/24"), {"term": {"ip": "10.0.0.0/24"}}),
        (Filter("k", "!=", "x"), must_not({"term": {"k": "x"}})),
        (Filter("k", "=", ""), {"term": {"k": ""}}),
        (Filter("i", ">", 5), {"range": {"i": {"gt": 5}}}),
        (Filter("i", ">=", 5), {"range": {"i": {"gte": 5}}}),
        (Filter("i", "<", 5), {"range": {"i": {"lt": 5}}}),
        (Filter("i", "<=", "-5"), {"range": {"i": {"lte": -5}}}),
        (Filter("k", ">", "m"), {"range": {"k": {"gt": "m"}}}),
        (Filter("i", "between", "1, 5"), {"range": {"i": {"gte": 1, "lte": 5}}}),
        (Filter("fl.a", "between", ["1", "5"]), {"range": {"fl.a": {"gte": "1", "lte": "5"}}}),
        (Filter("t", "contains", "x"), wildcard("t.keyword", "*x*")),
        (Filter("k", "starts", "x"), wildcard("k", "x*")),
        (Filter("k", "ends", "x"), wildcard("k", "*x")),
        (Filter("k", "not-contains", "x"), must_not(wildcard("k", "*x*"))),
        (Filter("k", "contains", "50%*?\\"), wildcard("k", "*50%\\*\\?\\\\*")),
        (Filter("k", "contains", "x", case=True), {"wildcard": {"k": {"value": "*x*"}}}),
        (Filter("k", "=", "x", case=False), {"term": {"k": {"value": "x", "case_insensitive": True}}}),
        (Filter("p", "contains", "x"), {"match_phrase": {"p": "x"}}),
        (Filter("i", "in", "1, 2"), {"terms": {"i": [1, 2]}}),
        (Filter("k", "in", ["a,b", "c"]), {"terms": {"k": ["a,b", "c"]}}),
        (Filter("k", "not-in", "a"), must_not({"terms": {"k": ["a"]}})),
        (Filter("t", "null"), must_not({"exists": {"field": "t"}})),
        (Filter("t", "not-null"), {"exists": {"field": "t"}}),
        (Filter("k", "empty"), {"term": {"k": ""}}),
        (
            Filter("k", "not-empty"),
            {"bool": {"filter": [{"exists": {"field": "k"}}], "must_not": [{"term": {"k": ""}}]}},
        ),
        (Filter("fl.a", "=", "x"), {"term": {"fl.a": "x"}}),
        (
            Filter("de", "=", "2024-01-05"),
            {
                "range": {
                    "de": {
                        "gte": "2024-01-05",
                        "lte": "2024-01-05",
                        "format": "strict_date_optional_time||dd.MM.yyyy",
                    }
                }
            },
        ),
        (Filter("de", "=", "05.01.2024"), {"term": {"de": "05.01.2024"}}),
        (Filter("_id", "in", "1,2"), {"terms": {"_id": ["1", "2"]}}),
        (Filter("_index", "starts", "Log"), {"wildcard": {"_index": {"value": "log*"}}}),
        (Filter("_index", "starts", "Log", case=True), {"wildcard": {"_index": {"value": "Log*"}}}),
        (Filter("f", "=", 0), {"range": {"f": {"gte": -0.0, "lte": 0}}}),
        (
            Filter("f", "in", [1, 0]),
            {
                "bool": {
                    "should": [{"terms": {"f": [1]}}, {"range": {"f": {"gte": -0.0, "lte": 0}}}],
                    "minimum_should_match": 1,
                }
            },
        ),
        (RawQuery("a:b AND c:>1"), {"query_string": {"query": "a:b AND c:>1", "lenient": True}}),
    ],
)
def test_E34_each_operator_has_its_clause(row: Filter | RawQuery, clause: dict[str, Any]) -> None:
    assert query(row) == clause


DAYS = "strict_date_optional_time||epoch_millis"
SPELLED = "strict_date_optional_time||dd.MM.yyyy"


def some(*clauses: dict[str, Any]) -> dict[str, Any]:
    return {"bool": {"should": [*clauses], "minimum_should_match": 1}}


def folded(field: str, text: str) -> dict[str, Any]:
    return {"term": {field: {"value": text, "case_insensitive": True}}}


@pytest.mark.parametrize(
    ("row", "clause"),
    [
        # the second of several values
        (
            Filter("d", "in", ["2024-12-31", "2024-12"]),
            some(
                {"term": {"d": "2024-12-31"}},
                {"range": {"d": {"gte": "2024-12||/M", "lt": "2024-12||+1M/M", "format": DAYS}}},
            ),
        ),
        (
            Filter("de", "in", ["31.12.2024", "2024-12-31"]),
            some(
                {"term": {"de": "31.12.2024"}},
                {"range": {"de": {"gte": "2024-12-31", "lte": "2024-12-31", "format": SPELLED}}},
            ),
        ),
        (
            Filter("de", "between", ["01.12.2024", "2024-12-31"]),
            {"range": {"de": {"gte": "01.12.2024", "lte": "2024-12-31", "format": SPELLED}}},
        ),
        (Filter("d", "between", ["now-1d", "now"]), {"range": {"d": {"gte": f"{NOW}||-1d", "lte": NOW}}}),
        (Filter("p", "in", ["a b", "c"]), some({"match_phrase": {"p": "a b"}}, {"match_phrase": {"p": "c"}})),
        # letter case of every kind of text
        (Filter("fl", "=", "x", case=False), folded("fl", "x")),
        (Filter("fl.a", "=", "x", case=False), folded("fl.a", "x")),
        (
            Filter("t", "in", ["x", ""], case=False),
            some(folded("t.keyword", "x"), {"term": {"t.keyword": {"value": ""}}}),
        ),
        (Filter("k", "=", "x", case=True), {"term": {"k": "x"}}),
        (Filter("k", "ends", "x", case=False), wildcard("k", "*x")),
        (Filter("i", "=", 1, case=False), {"term": {"i": 1}}),
        (Filter("v", "=", "1.0", case=False), {"term": {"v": "1.0"}}),
        (Filter("fl.a", "=", ""), {"term": {"fl.a": ""}}),
        # zero has a sign in a fraction only
        (Filter("f", "<", 0), {"range": {"f": {"lt": -0.0}}}),
        (Filter("f", ">=", 0), {"range": {"f": {"gte": -0.0}}}),
        (Filter("f", ">", 0), {"range": {"f": {"gt": 0}}}),
        (Filter("f", "<=", 0), {"range": {"f": {"lte": 0}}}),
        (Filter("f", "between", [0, 0]), {"range": {"f": {"gte": -0.0, "lte": 0}}}),
        (Filter("h", "in", [0, 1]), some({"terms": {"h": [1]}}, {"range": {"h": {"gte": -0.0, "lte": 0}}})),
        (Filter("i", "<", 0), {"range": {"i": {"lt": 0}}}),
        (Filter("i", "=", 0), {"term": {"i": 0}}),
        # as many as the server takes
        (Filter("k", "in", [str(at) for at in range(65_536)]), {"terms": {"k": [str(at) for at in range(65_536)]}}),
        (
            Filter("k", "in", [str(at) for at in range(1_024)], case=False),
            some(*(folded("k", str(at)) for at in range(1_024))),
        ),
    ],
    ids=_name,
)
def test_E34_every_value_of_a_row_and_every_kind_of_column_counts(row: Filter, clause: dict[str, Any]) -> None:
    request = FilterRequest(object="x", rows=[row], now=NOW)
    sent = json.loads(compile_filter(request, view({"properties": PROPERTIES}), MODERN).body)["query"]
    assert json.dumps(sent) == json.dumps(clause), "-0.0 equals 0"


@pytest.mark.parametrize("order", [1, -1])
def test_E34_the_type_and_the_format_of_each_index_count(order: int) -> None:
    """A value has to fit all types; bounds in ISO are named beside every format; -0.0 is asked for if one has it."""

    def sent(op: str, value: object, *specs: dict[str, Any]) -> Any:
        found = view(*({"properties": {"x": spec}} for spec in specs[::order]))
        return json.loads(compile_filter(FilterRequest(object="x", rows=[Filter("x", op, value)]), found, MODERN).body)[
            "query"
        ]

    whole, small, fraction = {"type": "long"}, {"type": "byte"}, {"type": "double"}
    for value in (200, -200):
        with pytest.raises(FilterNotSupportedError, match="out of range for a field of type byte"):
            sent("=", value, whole, small)
    assert sent("=", -128, whole, small) == {"term": {"x": -128}}
    assert json.dumps(sent("<", 0, whole, fraction)) == '{"range": {"x": {"lt": -0.0}}}', "-0.0 equals 0"
    milliseconds, nanoseconds = {"type": "date"}, {"type": "date_nanos"}
    for period in ("1960-01-05T00:00:00Z/2024-01-06T00:00:00Z", "2024-01-05T00:00:00Z/2300-01-06T00:00:00Z"):
        with pytest.raises(FilterNotSupportedError, match="a date_nanos holds 1970 to 2262"):
            sent("=", period, milliseconds, nanoseconds)
    formats = sent("=", "2024-12-31", *({"type": "date", "format": each} for each in ("dd.MM.yyyy", "yyyy/MM/dd")))
    assert {*formats["range"]["x"]["format"].split("||")} == {"strict_date_optional_time", "dd.MM.yyyy", "yyyy/MM/dd"}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (Filter("v", "=", "1", case=False), "letter case is compared"),
        (Filter("_id", "in", ["a", "b"], case=False), "letter case is compared"),
        (Filter("k", "in", ["a", "ü"], case=False), "letter case is ignored for ASCII letters only"),
        (Filter("e", "in", ["1", "2024"]), "'2024' is read in the field's own format, epoch_second"),
        (Filter("e", "between", ["1", "2024"]), "'2024' is read in the field's own format, epoch_second"),
        (Filter("k", "not-in", ["a"]), "rows without 'k' match too"),
        (Filter("k", "!=", "a"), "rows without 'k' match too"),
        (Filter("k", "not-contains", "a"), "rows without 'k' match too"),
        (RawQuery("n.q:1 OR n.a:2"), "'n.a' has no value for it"),
        (RawQuery("n.q:1 OR n.a:2"), "'n.q' has no value for it"),
    ],
    ids=_name,
)
def test_what_is_not_exact_in_one_of_several_values_is_said(row: Filter | RawQuery, said: str) -> None:
    [found] = explained(row)
    assert any(said in reason for reason in found.approximations), found.approximations
    assert not found.exact


def test_E34_a_refusal_looks_at_every_value() -> None:
    for row in (
        Filter("_index", "in", ["a", "b*"]),
        Filter("_index", "=", "a\\b"),
        Filter("_index", "contains", "a\\"),
        Filter("_index", "starts", "a?"),
        Filter("ip", "between", ["10.0.0.1", "10.0.0.0/8"]),
        Filter("i", "in", [1, 2**31]),
        Filter("d", "in", ["2024-12-31", "2024-12-32"]),
        Filter("f", "in", [1, float("inf")]),
        Filter("f", "=", float("-inf")),
        Filter("fl", "=", ""),
        Filter("v", "=", ""),
    ):
        with pytest.raises(FilterNotSupportedError):
            compiled(row)


def test_E35_rows_of_one_element_are_those_of_one_array_and_name_each_other() -> None:
    rows = tuple(Filter("n.q", ">", at, group="1") for at in range(3))
    assert [row.same_element for row in explained(*rows)] == [[1, 2], [0, 2], [0, 1]]
    assert len(query(*rows)["nested"]["query"]["bool"]["filter"]) == 3
    deeper = (Filter("n.a", "=", "x", group="1"), Filter("n.in.c", "=", "y", group="1"))
    assert query(*deeper) == query(Filter("n.a", "=", "x"), Filter("n.in.c", "=", "y"))
    assert [row.same_element for row in explained(*deeper)] == [[], []]
    apart = (Filter("n.a", "=", "x", group="1"), Filter("n.q", "=", 2, group="2"))
    assert [row.same_element for row in explained(*apart)] == [[], []]


def test_E35_an_array_with_a_field_that_some_index_lacks_is_ignored_there() -> None:
    whole = {"n": {"type": "nested", "properties": {"a": {"type": "keyword"}, "q": {"type": "integer"}}}}
    part = {"n": {"type": "nested", "properties": {"a": {"type": "keyword"}}}}
    rows = [Filter("n.a", "=", "x", group="1"), Filter("n.q", "=", 1, group="1")]
    for order in (rows, rows[::-1]):
        found = view({"properties": whole}, {"properties": part})
        body = json.loads(compile_filter(FilterRequest(object="x", rows=order), found, MODERN).body)
        assert body["query"]["nested"]["ignore_unmapped"] is True


def test_every_row_is_joined_and_one_raw_row_makes_a_query_raw() -> None:
    rows = [Filter("i", "=", at) for at in range(3)]
    raw = [RawQuery("a"), RawQuery("b")]
    for order in ([*rows, *raw], [*raw, *rows]):
        found = query(*order)["bool"]
        assert found["filter"] == [{"term": {"i": at}} for at in range(3)]
        assert [each["query_string"]["query"] for each in found["must"]] == ["a", "b"]
        assert json.loads(compiled(*order).body)["raw"] is True
        assert len(query(*order, match="any")["bool"]["should"]) == 5
    assert json.loads(compiled(*rows).body)["raw"] is False


def test_E34_an_alias_is_filtered_in_every_index_that_has_it() -> None:
    long = {"type": "long"}
    with_alias = {"x": long, "al": {"type": "alias", "path": "x"}}
    found = view({"properties": with_alias}, {"properties": with_alias | {"y": long}}, {"properties": {"x": long}})
    body = compile_filter(FilterRequest(object="x", rows=[Filter("al", "!=", 1)]), found, MODERN).body
    [[term, within]] = [each["bool"]["filter"] for each in json.loads(body)["query"]["bool"]["must_not"]]
    assert (term, {*within["terms"]["_index"]}) == ({"term": {"x": 1}}, {"a", "b"})


@pytest.mark.parametrize("value", [0, False, "", "A", None])
def test_a_refusal_offers_the_first_leaf_that_takes_the_operator_with_the_value_as_it_is(value: Any) -> None:
    op = "null" if value is None else "=" if isinstance(value, int) else "contains"
    with pytest.raises(FilterNotSupportedError) as caught:
        compiled(Filter("n", op, value))
    [remedy] = caught.value.remedies
    assert remedy.arguments.get("column") == "n.a"
    assert ("value" in remedy.arguments) is (value is not None)
    with pytest.raises(FilterNotSupportedError) as caught:
        compiled(Filter("n", ">", value if value is not None else 1))
    assert caught.value.remedies[0].arguments["column"] in ("n.a", "n.q")


def test_a_circle_and_a_box_of_points_have_clauses_of_their_own() -> None:
    """E34: two more than the five."""
    point, shape = ({"properties": {"x": {"type": kind}}} for kind in ("geo_point", "geo_shape"))

    def sent(op: str, value: str, *mappings: dict[str, Any]) -> Any:
        request = FilterRequest(object="x", rows=[Filter("x", op, value)])
        compiled = compile_filter(request, view(*mappings or [point]), MODERN)
        assert not compiled.rows[0].exact
        return json.loads(compiled.body)["query"]

    circle = {"distance": "5000.0m", "x": {"lat": 52.5, "lon": 13.25}}
    assert sent("near", "52.5,13.25,5km") == {"geo_distance": circle}
    corners = {"top_left": {"lat": 53, "lon": 170}, "bottom_right": {"lat": 52, "lon": -170}}
    assert sent("in-box", "52,170,53,-170") == {"geo_bounding_box": {"x": corners}}
    assert sent("near", "52.5,13.25,5km", point, {"properties": {}})["geo_distance"]["ignore_unmapped"]
    assert sent("in-box", "52,170,53,-170", point, {"properties": {}})["geo_bounding_box"]["ignore_unmapped"]
    for mapping, op, value, reason in (
        (point, "near", "52.5,13.25", "a latitude, a longitude and a distance"),
        (point, "in-box", "53,13,52,14", "is north of its north"),
        (point, "=", "52.5,13.25", "a geo_point takes near, in-box, null and not-null only"),
        (shape, "near", "52.5,13.25,5km", "only a geo_point takes it"),
    ):
        request = FilterRequest(object="x", rows=[Filter("x", op, value)])
        with pytest.raises(FilterNotSupportedError, match=reason):
            compile_filter(request, view(mapping), MODERN)


@pytest.mark.parametrize("kind", ["text", "match_only_text", "search_as_you_type", "annotated_text"])
@pytest.mark.parametrize(
    ("op", "said"), [("=", "compares words"), ("!=", "compares words"), ("contains", "finds whole")]
)
def test_every_kind_of_analysed_text_says_that_it_compares_words(kind: str, op: str, said: str) -> None:
    request = FilterRequest(object="x", rows=[Filter("x", op, "a")])
    [row] = compile_filter(request, view({"properties": {"x": {"type": kind}}}), MODERN).rows
    assert not row.exact
    assert any(said in each for each in row.approximations)


@pytest.mark.parametrize(
    ("row", "bounds"),
    [
        (Filter("d", "=", "2024-01"), {"gte": "2024-01||/M", "lt": "2024-01||+1M/M"}),
        (Filter("d", "=", "2024"), {"gte": "2024||/y", "lt": "2024||+1y/y"}),
        (Filter("d", ">", "2024-01"), {"gte": "2024-01||+1M/M"}),
        (Filter("d", ">=", "2024-01"), {"gte": "2024-01||/M"}),
        (Filter("d", "<", "2024-01"), {"lt": "2024-01||/M"}),
        (Filter("d", "<=", "2024-01"), {"lt": "2024-01||+1M/M"}),
        (Filter("d", "between", "2024-01,2024-03"), {"gte": "2024-01||/M", "lt": "2024-03||+1M/M"}),
        (Filter("d", "between", "2024-01-05,2024-03"), {"gte": "2024-01-05", "lt": "2024-03||+1M/M"}),
    ],
)
def test_a_month_and_a_year_are_taken_whole(row: Filter, bounds: dict[str, str]) -> None:
    """The server takes them for their first day; a day, an hour, a minute it takes whole by itself."""
    assert query(row) == {"range": {"d": bounds | {"format": "strict_date_optional_time||epoch_millis"}}}
    own = bounds | {"format": "strict_date_optional_time||dd.MM.yyyy"}
    assert query(replace(row, column="de")) == {"range": {"de": own}}


@pytest.mark.parametrize(
    ("row", "bounds"),
    [
        (Filter("d", "=", DAY), {"gte": DAY[:20], "lt": DAY[21:]}),
        (Filter("d", "in", [DAY]), {"gte": DAY[:20], "lt": DAY[21:]}),
        (Filter("d", ">", DAY), {"gte": DAY[21:]}),
        (Filter("d", ">=", DAY), {"gte": DAY[:20]}),
        (Filter("d", "<", DAY), {"lt": DAY[:20]}),
        (Filter("d", "<=", DAY), {"lt": DAY[21:]}),
        (Filter("d", "between", [DAY, "2024-03"]), {"gte": DAY[:20], "lt": "2024-03||+1M/M"}),
        (Filter("d", "=", "now-1d/d"), {"gte": f"{NOW}||-1d/d", "lt": f"{NOW}||-1d+1d/d"}),
        (Filter("d", "=", "now/M"), {"gte": f"{NOW}||/M", "lt": f"{NOW}||+1M/M"}),
        (Filter("d", "<=", "2024-01-05||/d"), {"lt": "2024-01-05||+1d/d"}),
        (Filter("d", ">", "now-1d/d"), {"gte": f"{NOW}||-1d+1d/d"}),
    ],
)
def test_a_period_and_rounded_date_maths_are_taken_whole_and_count_from_the_call(
    row: Filter, bounds: dict[str, str]
) -> None:
    """The server reads its own clock for each request, and rounds up to the last millisecond only."""
    sent = {}
    for column in ("d", "de"):
        request = FilterRequest(object="x", rows=[replace(row, column=column)], now=NOW)
        compiled = compile_filter(request, view({"properties": PROPERTIES}), MODERN)
        assert compiled.rows[0].exact
        sent[column] = json.loads(compiled.body)["query"]
    assert sent["d"] == {"range": {"d": bounds | {"format": "strict_date_optional_time||epoch_millis"}}}
    assert sent["de"] == {"range": {"de": bounds | {"format": "strict_date_optional_time||dd.MM.yyyy"}}}


def test_date_maths_that_end_in_an_instant_count_from_the_call_or_else_from_the_servers_clock() -> None:
    def sent(row: Filter, now: str | None) -> Any:
        request = FilterRequest(object="x", rows=[row], now=now)
        compiled = compile_filter(request, view({"properties": PROPERTIES}), MODERN)
        assert compiled.rows[0].approximations == ["dates are compared to the millisecond"]
        return json.loads(compiled.body)["query"]

    assert sent(Filter("d", ">", "now-1M"), NOW) == {"range": {"d": {"gt": f"{NOW}||-1M"}}}
    assert sent(Filter("d", "=", "now"), NOW) == {"term": {"d": NOW}}
    assert sent(Filter("d", ">", "now-1M"), None) == {"range": {"d": {"gt": "now-1M"}}}
    both = {"gt": f"{NOW}||-1d/d+8h", "format": "strict_date_optional_time||dd.MM.yyyy"}
    assert sent(Filter("de", ">", "now-1d/d+8h"), NOW) == {"range": {"de": both}}


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("date", "2024-01-06T00:00:00Z/2024-01-05T00:00:00Z", "it ends before it begins"),
        ("date", "2024-01-05/2024-01-06", "is not a date in the format"),
        ("date_nanos", "1960-01-05T00:00:00Z/2024-01-06T00:00:00Z", "a date_nanos holds 1970 to 2262"),
        ("date_nanos", "2024-01-05T00:00:00Z/2300-01-06T00:00:00Z", "a date_nanos holds 1970 to 2262"),
    ],
)
def test_a_period_that_cannot_be_is_refused(kind: str, value: str, reason: str) -> None:
    """The server would fail the page of a date_nanos."""
    request = FilterRequest(object="x", rows=[Filter("x", "=", value)])
    with pytest.raises(FilterNotSupportedError, match=reason):
        compile_filter(request, view({"properties": {"x": {"type": kind}}}), MODERN)


@pytest.mark.parametrize(
    ("formats", "value", "own"),
    [
        ("epoch_second", "2024", "epoch_second"),
        ("epoch_second", "2024-05", None),
        ("HHmm", "2024", "HHmm"),
        ("YYYY-ww", "2024-05", "YYYY-ww"),
        ("yyyy-MM", "2024-05", None),
        ("yyyy||epoch_millis", "2024", None),
        ("epoch_millis||strict_date_optional_time", "2024", "epoch_millis"),
        ("date_optional_time||epoch_millis", "2024", None),
        ("dd.MM.yyyy", "2024", None),
    ],
)
def test_what_is_no_month_in_the_fields_own_format_is_said(formats: str, value: str, own: str | None) -> None:
    """In one index; behind an alias, another index may read it as a month: then all of them do, and differ in that."""

    def told(*each: str) -> list[tuple[str, bool, list[str]]]:
        request = FilterRequest(object="x", rows=[Filter("x", "=", value), Filter("x", ">", value)])
        found = view(*({"properties": {"x": {"type": "date", "format": name}}} for name in each))
        rows = compile_filter(request, found, MODERN).rows
        return [(row.clause, row.exact, row.approximations) for row in rows]

    said = [f"'{value}' is read in the field's own format, {own}, not as a month or a year"] if own else []
    assert told(formats) == [("term x" if own else "range x", own is None, said), ("range x", own is None, said)]
    said = [f"the indices behind this name read dates in different formats: {formats}, yyyy-MM-dd"]
    assert told(formats, "yyyy-MM-dd") == [("range x", False, said)] * 2


def test_days_go_as_they_are_and_so_do_numbers_in_fields_of_seconds() -> None:
    assert query(Filter("d", "=", "2024-01-05")) == {"term": {"d": "2024-01-05"}}
    assert query(Filter("d", ">", "2024-01-05")) == {"range": {"d": {"gt": "2024-01-05"}}}
    assert query(Filter("e", "=", "2024")) == {"term": {"e": "2024"}}
    several = query(Filter("d", "in", "2024-01,2024-02-03"))
    assert several["bool"]["should"][1] == {"term": {"d": "2024-02-03"}}
    assert several["bool"]["minimum_should_match"] == 1


@pytest.mark.parametrize(
    "row",
    [
        Filter("n", "contains", "A"),
        Filter("n", "null"),
        Filter("nope", "=", 1),
        Filter("k", "regex", "a.*"),
        Filter("p", ">", "a"),
        Filter("p", "empty"),
        Filter("p", "=", ""),
        Filter("i", "contains", "1"),
        Filter("d", "starts", "2024"),
        Filter("b", ">", True),
        Filter("i", "=", "x"),
        Filter("i", "=", True),
        Filter("i", "=", "1_000"),
        Filter("f", "=", float("nan")),
        Filter("i", "=", 2**31),
        Filter("u", "=", -1),
        Filter("h", "=", 70000),
        Filter("b", "=", "yes"),
        Filter("ip", "=", "300.1.1.1"),
        Filter("ip", ">", "10.0.0.0/8"),
        Filter("k", "contains", ""),
        Filter("k", "=", None),
        Filter("i", "between", "1"),
        Filter("i", "between", "1,"),
        Filter("i", "between", [1, None]),
        Filter("i", "in", []),
        Filter("k", "in", "a,,b"),
        Filter("k", "in", ["a", None]),
        Filter("k", "in", [str(at) for at in range(65_537)]),
        Filter("k", "in", [str(at) for at in range(1_025)], case=False),
        Filter("_id", "contains", "x"),
        Filter("_id", ">", "x"),
        Filter("_id", "null"),
        Filter("_index", "null"),
        Filter("_index", "=", "log-*"),
        Filter("_score", ">", 1),
        Filter("fl.a", "contains", "x"),
        Filter("fl.a", ">", "x"),
        Filter("k", "=", "a\ud800"),
        Filter("t", "=", "a\ud800"),
        Filter("k", "=", "x", group="1"),
        RawQuery("  "),
    ],
    ids=_name,
)
def test_E24_E34_what_cannot_run_is_refused_with_its_reason(wording: Wording, row: Filter | RawQuery) -> None:
    """Among them numbers of clauses and terms, `_index` and `_id`, and numbers out of range."""
    with pytest.raises(FilterNotSupportedError) as caught:
        compiled(row, Filter("i", "=", 1))
    wording(caught.value.message)
    assert caught.value.message.endswith("; nothing was sent")
    if isinstance(row, Filter):
        assert (caught.value.details["column"], caught.value.details["operator"]) == (row.column, str(row.op))
    assert caught.value.details["reason"]


def test_a_refusal_names_a_filter_that_works(wording: Wording) -> None:
    with pytest.raises(FilterNotSupportedError) as caught:
        compiled(Filter("n", "contains", "A"))
    wording(caught.value.message)
    arguments = {"object": "x", "column": "n.a", "operator": "contains", "value": "A"}
    assert caught.value.remedies == (Remedy("filter-rows", arguments),)


def test_all_refused_rows_are_told_at_once(wording: Wording) -> None:
    with pytest.raises(FilterNotSupportedError) as caught:
        compiled(Filter("i", "=", "x"), Filter("k", "=", "ok"), Filter("b", "=", "yes"))
    wording(caught.value.message)


def test_another_way_to_join_rows_is_refused(wording: Wording) -> None:
    with pytest.raises(FilterNotSupportedError) as caught:
        compiled(Filter("i", "=", 1), match="none")
    wording(caught.value.message)


# joining


def test_rows_are_joined_by_all_without_scores_and_by_any_with_a_minimum() -> None:
    one, two, raw = Filter("i", "=", 1), Filter("k", "!=", "x"), RawQuery("a")
    clauses = [{"term": {"i": 1}}, must_not({"term": {"k": "x"}})]
    string = {"query_string": {"query": "a", "lenient": True}}
    assert query(one, two) == {"bool": {"filter": clauses}}
    assert query(one, raw, two) == {"bool": {"filter": clauses, "must": [string]}}
    assert query(one, two, match="any") == {"bool": {"should": clauses, "minimum_should_match": 1}}


def test_E35_rows_on_nested_leaves_stand_alone_and_negation_is_outside() -> None:
    assert query(Filter("n.a", "!=", "x")) == must_not(nested("n", {"term": {"n.a": "x"}}))
    assert query(Filter("n.a", "null")) == must_not(nested("n", {"exists": {"field": "n.a"}}))
    both = query(Filter("n.a", "=", "x"), Filter("n.q", ">", 2))
    assert both["bool"]["filter"] == [nested("n", {"term": {"n.a": "x"}}), nested("n", {"range": {"n.q": {"gt": 2}}})]


def test_E35_rows_of_one_element_share_a_wrapper_and_negation_is_inside() -> None:
    rows = (Filter("n.a", "=", "x", group="1"), Filter("i", "=", 1), Filter("n.q", "!=", 2, group="1"))
    inner = {"bool": {"filter": [{"term": {"n.a": "x"}}, must_not({"term": {"n.q": 2}})]}}
    assert query(*rows) == {"bool": {"filter": [nested("n", inner), {"term": {"i": 1}}]}}
    inner = {"bool": {"should": [{"term": {"n.a": "x"}}, must_not({"term": {"n.q": 2}})], "minimum_should_match": 1}}
    assert query(*rows, match="any")["bool"]["should"][0] == nested("n", inner)
    assert [row.same_element for row in explained(*rows)] == [[2], [], [0]]


def test_E35_a_lone_row_of_an_element_is_an_ordinary_row() -> None:
    assert query(Filter("n.a", "!=", "x", group="1")) == query(Filter("n.a", "!=", "x"))


def test_E35_elements_of_different_arrays_are_different_and_that_is_said() -> None:
    rows = (Filter("n.a", "=", "x", group="1"), Filter("m.a", "=", "y", group="1"))
    assert query(*rows) == query(Filter("n.a", "=", "x"), Filter("m.a", "=", "y"))
    assert explained(*rows)[0].approximations == ["no other row of element 1 is on 'n'"]


def test_nested_in_nested_has_the_outer_array_outside() -> None:
    assert query(Filter("n.in.c", "=", "x")) == nested("n", nested("n.in", {"term": {"n.in.c": "x"}}))


def test_an_array_that_some_indices_lack_is_ignored_there() -> None:
    found = view({"properties": {"n": PROPERTIES["n"]}}, {"properties": {"k": {"type": "keyword"}}})
    request = FilterRequest(object="x", rows=[Filter("n.a", "=", "x")])
    body = json.loads(compile_filter(request, found, MODERN).body)
    assert body["query"]["nested"]["ignore_unmapped"] is True
    assert "ignore_unmapped" not in query(Filter("n.a", "=", "x"))["nested"]


# explanations


@pytest.mark.parametrize(
    ("row", "clause", "exact"),
    [
        (Filter("i", "=", 1), "term i", False),
        (Filter("i", ">=", 1), "range i", True),
        (Filter("n.a", "null"), "nested(n): not exists n.a", True),
        (Filter("n.in.c", "in", "a,b"), "nested(n.in): terms n.in.c", True),
        (Filter("k", "!=", "x"), "not term k", False),
        (Filter("p", "contains", "x"), "match_phrase p", False),
        (Filter("t", "contains", "x"), "wildcard t.keyword", False),
        (Filter("t", "=", "x" * 21), "term t.keyword", False),
        (Filter("t", "=", "x" * 20), "term t.keyword", True),
        (Filter("k", "contains", "ü"), "wildcard k", False),
        (Filter("nv", "null"), "not exists nv", False),
        (Filter("fl", "=", "x"), "term fl", False),
        (Filter("_id", "=", "x", case=False), "term _id", False),
        (Filter("d", "in", "2024-01,2024-02"), "range d", True),
        (Filter("k", "not-empty"), "exists k", True),
        (RawQuery("x"), "query_string", True),
        (RawQuery("x AND n.a:5"), "query_string", False),
    ],
    ids=_name,
)
def test_a_row_is_explained_in_the_servers_words_with_what_is_not_exact(
    wording: Wording, row: Filter | RawQuery, clause: str, exact: bool
) -> None:
    [found] = explained(row)
    assert found.clause == clause
    assert found.exact is exact
    wording(*found.approximations)


def test_letter_case_below_7_10_is_compared_and_that_is_said(wording: Wording) -> None:
    row = Filter("k", "contains", "x")
    assert query(row, dialect=OLD) == {"wildcard": {"k": {"value": "*x*"}}}
    wording(*explained(row, dialect=OLD)[0].approximations)


# on servers

ROWS: list[dict[str, Any]] = [
    {"k": "Apple", "t": "Red Apple", "p": "a red apple", "i": 1, "f": 1.5, "d": "2024-01-05T10:00:00Z", "b": True,
     "ip": "10.0.0.1", "n": [{"a": "x", "q": 1}, {"a": "y", "q": 5}]},
    {"k": "apple*", "t": "Green pear", "p": "a green pear", "i": 2, "f": 2.5, "d": "2024-01-31T23:59:59Z", "b": False,
     "ip": "10.0.1.1", "n": [{"a": "x", "q": 5}]},
    {"k": "", "t": "z" * 30, "p": "", "i": 3, "d": "2024-02-01T00:00:00Z", "n": [{"q": 7}], "nv": None},
    {"i": -4, "k": ["one", "two"], "n": []},
    {"k": "ÜBER", "d": "2025-03-01"},
]  # fmt: skip


class FilterRules:
    @pytest.fixture
    async def books(self, es: Rig) -> str:
        known = {name: spec for name, spec in PROPERTIES.items() if name not in ("u", "v", "fl")}
        return await es.index(known, ROWS)

    @pytest.mark.parametrize(
        ("row", "ids"),
        [
            (Filter("k", "=", "Apple"), "0"),
            (Filter("k", "=", "apple"), ""),
            (Filter("k", "=", "apple", case=False), "0"),
            (Filter("k", "=", "", case=False), "2"),
            (Filter("k", "in", ["", "APPLE"], case=False), "02"),
            (Filter("k", "contains", "APPLE"), "01"),
            (Filter("k", "contains", "apple", case=True), "1"),
            (Filter("k", "ends", "*"), "1"),
            (Filter("k", "starts", "t"), "3"),
            (Filter("k", "contains", "ü"), ""),  # ASCII only
            (Filter("k", "!=", "one"), "0124"),
            (Filter("k", "empty"), "2"),
            (Filter("k", "not-empty"), "0134"),
            (Filter("k", "in", "Apple, two"), "03"),
            (Filter("t", "=", "Red Apple"), "0"),
            (Filter("t", "not-contains", "apple"), "1234"),
            (Filter("t", "null"), "34"),
            (Filter("t", "not-null"), "012"),  # the parent sees what is over ignore_above
            (Filter("p", "contains", "red apple"), "0"),
            (Filter("p", "contains", "apple red"), ""),
            (Filter("i", ">=", 2), "12"),
            (Filter("i", "between", [-4, 1]), "03"),
            (Filter("i", "=", "1.5"), ""),
            (Filter("f", "<", "2.5"), "0"),
            (Filter("d", "=", "2024-01"), "01"),
            (Filter("d", "=", "2024-01-05"), "0"),
            (Filter("d", ">", "2024-01"), "24"),
            (Filter("d", "<=", "2024-01"), "01"),
            (Filter("d", "=", "2024"), "012"),
            (Filter("d", "in", "2024-02,2025"), "24"),
            (Filter("b", "=", False), "1"),
            (Filter("d", "=", DAY), "0"),
            (Filter("d", "!=", DAY), "1234"),
            (Filter("d", "in", [DAY, "2025"]), "04"),
            (Filter("d", ">", DAY), "124"),
            (Filter("d", "<=", DAY), "0"),
            (Filter("d", "=", "2024-01-31T12:00:00Z||/d"), "1"),
            (Filter("d", "=", "2024-01-05||/w"), "0"),
            (Filter("d", "<", "now-1d/d"), "0124"),
            (Filter("ip", "=", "10.0.0.0/24"), "0"),
            (Filter("ip", "!=", "10.0.0.0/24"), "1234"),
            (Filter("ip", "in", "10.0.0.0/24,10.0.1.1"), "01"),
            (Filter("ip", "not-in", "10.0.0.0/16"), "234"),
            (Filter("ip", ">", "10.0.0.1"), "1"),
            (Filter("n.a", "=", "x"), "01"),
            (Filter("n.a", "!=", "x"), "234"),
            (Filter("n.a", "null"), "234"),
            (Filter("n.q", ">", 4), "012"),
            (Filter("_id", "in", "0,4"), "04"),
            (Filter("_index", "ends", "-BOOKS"), "01234"),
            (RawQuery("k:Apple OR i:>2"), "02"),
        ],
    )
    async def test_E34_E36_rows_find_what_they_say(self, es: Rig, books: str, row: Filter | RawQuery, ids: str) -> None:
        """Among them months and years, and letter case, which is ignored for ASCII letters only."""
        assert await es.ids(books, row) == list(ids)

    @pytest.mark.parametrize("written", ["yyyy/MM/dd||yyyy-MM", "dd.MM.yyyy", "epoch_second", "yyyyMMdd||yyyy-MM"])
    async def test_a_month_is_whole_in_any_format_and_behind_an_alias(self, es: Rig, written: str) -> None:
        """The server takes it for its first day, as soon as one of the field's formats takes it at all."""
        moments = [datetime(2024, *parts, tzinfo=UTC) for parts in ((4, 30), (5, 1), (5, 31), (6, 1))]
        pattern = {"dd.MM.yyyy": "{1:%d.%m.%Y}", "epoch_second": "{0:.0f}", "yyyyMMdd||yyyy-MM": "{1:%Y%m%d}"}
        texts = [pattern.get(written, "{1:%Y/%m/%d}").format(each.timestamp(), each) for each in moments]
        name = await es.index({"d": {"type": "date", "format": written}}, [{"d": text} for text in texts])
        other = await es.index({"d": {"type": "date"}}, [{"d": f"{each:%Y-%m-%d}"} for each in moments], name="others")
        add = [{"add": {"index": each, "alias": f"{name}-both"}} for each in (name, other)]
        await es.call("POST", "/_aliases", {"actions": add})
        for op, value, ids in (
            ("=", "2024-05", "12"), (">", "2024-05", "3"), ("<=", "2024-05", "012"), ("in", "2024-04,2024-06", "03"),
            ("between", f"{texts[1]},2024-05", "12"), ("!=", "2024-05", "03"),
        ):  # fmt: skip
            assert await es.ids(name, Filter("d", op, value)) == list(ids), (op, value)
            if texts[1] not in value:  # else it is a text that only one of the formats takes
                assert await es.ids(f"{name}-both", Filter("d", op, value)) == sorted(ids * 2), (op, value)
        assert await es.ids(f"{name}-both", Filter("d", "=", "2024")) == sorted("0123" * 2)

    async def test_E35_the_same_element_or_any_element(self, es: Rig, books: str) -> None:
        apart = (Filter("n.a", "=", "x"), Filter("n.q", "=", 5))
        bound = tuple(Filter(row.column, row.op, row.value, group="1") for row in apart)
        assert await es.ids(books, *apart) == ["0", "1"]
        assert await es.ids(books, *bound) == ["1"]
        some = (Filter("n.q", "=", 5, group="1"), Filter("n.a", "!=", "x", group="1"))
        assert await es.ids(books, *some) == ["0"], "inside one element the negation speaks of that element"

    async def test_rows_join_by_all_or_any(self, es: Rig, books: str) -> None:
        rows = (Filter("i", ">=", 2), Filter("b", "=", False), RawQuery("p:red"))
        assert await es.ids(books, *rows) == []
        assert await es.ids(books, *rows[:2]) == ["1"]
        assert await es.ids(books, *rows, match="any") == ["0", "1", "2"]

    @pytest.mark.parametrize(
        ("text", "cause"),
        [
            ("i:abc", "number_format_exception"),
            ("i:abc AND k:Apple", "number_format_exception"),
            ("nosuch:5", "unmapped fields [nosuch]"),
            ("k:nothing", None),
            ("nothing", None),  # some fields cannot hold the word, others could
        ],
    )
    async def test_a_raw_row_that_can_find_nothing_says_why(
        self, es: Rig, books: str, text: str, cause: str | None
    ) -> None:
        """`lenient` answers bad values with 200 and no hits."""
        page = await es.page(books, RawQuery(text))
        assert page.total == 0
        assert [(note.code, note.column) for note in page.notes] == [("raw-query-void", None)] * bool(cause)
        assert all(cause is not None and cause in note.reason for note in page.notes)

    async def test_only_an_empty_page_with_a_raw_row_is_asked_why(self, es: Rig, books: str) -> None:
        await es.page(books, RawQuery("k:Apple"))
        await es.page(books, Filter("k", "=", "nothing"))
        await es.page(books, RawQuery("k:Apple"), offset=10)
        assert es.sent("POST", "_validate") == []

    async def test_a_syntax_error_is_told_with_its_place(self, es: Rig, books: str) -> None:
        with pytest.raises(QueryError, match=r"Failed to parse query \[k:\(\]: Cannot parse 'k:\(': Encountered"):
            await es.page(books, RawQuery("k:("))

    async def test_a_pattern_that_is_too_long_is_told(self, es: Rig, books: str) -> None:
        if es.fake or es.version < (7, 11):
            pytest.skip("patterns of any length are taken")
        with pytest.raises(QueryError) as caught:
            await es.page(books, Filter("k", "contains", "x" * 2000))
        assert "pattern is too long" in caught.value.hint

    async def test_a_bad_date_is_refused_with_the_formats_before_it_is_sent(self, es: Rig, books: str) -> None:
        for operator, value in (("=", "soon"), (">", "31.01.2024"), ("in", "2024-01-01,2024-13-01")):
            with pytest.raises(FilterNotSupportedError, match="is not a date in the format strict_date_optional_time"):
                await es.page(books, Filter("d", operator, value))
        for value in ("now-1d", "2024-01-01||/M", "2024", "1706702400000"):
            await es.page(books, Filter("d", ">=", value))

    async def test_a_count_is_of_the_filter(self, es: Rig, books: str) -> None:
        from dragoman_api import CountRequest

        compiled = await es.filter(books, Filter("i", ">", 0))
        assert await es.driver.count_rows(CountRequest(object=books, filter=compiled)) == 3
        assert await es.driver.count_rows(CountRequest(object=books)) == 5

    async def test_a_filter_of_another_object_is_refused(self, es: Rig, books: str) -> None:
        from dragoman_api import PageRequest

        compiled = await es.filter(books, Filter("i", ">", 0))
        other = await es.index({"i": {"type": "long"}})
        before = len(es.sent("POST", "_search"))
        with pytest.raises(QueryError, match="was compiled for"):
            await es.driver.fetch_page(PageRequest(object=other, filter=compiled))
        assert len(es.sent("POST", "_search")) == before

    async def test_flattened_keys(self, es: Rig) -> None:
        probe = await es.raw("PUT", "/t-probe", {"mappings": {"properties": {"x": {"type": "flattened"}}}})
        await es.raw("DELETE", "/t-probe")
        if probe.status != 200:
            pytest.skip("this build has no flattened fields")
        name = await es.index({"fl": {"type": "flattened"}}, [{"fl": {"a": "x", "b": "y"}}, {"fl": {"a": "z"}}, {}])
        assert await es.ids(name, Filter("fl.a", "=", "x")) == ["0"]
        assert await es.ids(name, Filter("fl.a", "between", "y,zz")) == ["1"]
        assert await es.ids(name, Filter("fl.b", "null")) == ["1", "2"]
        assert await es.ids(name, Filter("fl", "contains", "Y")) == ["0"]


class TestFiltersOnFake(FilterRules, OnFake):
    pass


class TestFiltersOnServer(FilterRules, OnServer):
    async def test_expensive_queries_switched_off_are_told(self, es: Rig) -> None:
        name = await es.index({"k": {"type": "keyword"}}, [{"k": "a"}])
        setting = "search.allow_expensive_queries"
        await es.call("PUT", "/_cluster/settings", {"transient": {setting: False}})
        try:
            with pytest.raises(QueryError, match="allow_expensive_queries"):
                await es.page(name, Filter("k", "contains", "a"))
        finally:
            await es.call("PUT", "/_cluster/settings", {"transient": {setting: None}})


@pytest.mark.fake_only(reason="no engine here refuses or delays one request only")
@pytest.mark.parametrize("how", ["cut", "hang"])
async def test_a_reason_that_is_not_to_be_had_does_not_fail_the_page(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman_querydsl.driver._WHY_SECONDS", 0.2)
    async with on_fake("8.19.21") as es:
        assert es.fake is not None
        name = await es.index({"i": {"type": "long"}}, [{"i": 1}])
        es.fake.misbehave(how, on=f"/{name}/_validate", times=9)
        page = await es.page(name, RawQuery("i:abc"))
        assert (page.total, page.notes) == (0, [])
        assert es.sent("POST", "_validate")


async def test_compiling_without_a_description_is_refused(wording: Wording) -> None:
    async with on_fake("8.19.21") as es:
        with pytest.raises(DragomanError) as caught:
            await es.driver.compile_filter(FilterRequest(object="x", rows=[Filter("a", "=", 1)]))
        wording(caught.value.message)
