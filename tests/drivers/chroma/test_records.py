"""Columns, conditions and edited values: what the driver decides without a server."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec import json as msgspec_json

from dragoman_api import Filter, FilterNotSupportedError, FilterRequest, Json
from dragoman_api.columns import Operator
from dragoman_api.kit.form_blocks import address, every_request, tls
from dragoman_chroma.columns import columns_of, survives
from dragoman_chroma.filters import comparable, compile_filter
from dragoman_chroma.queries import FilterBody, StoredRecord
from dragoman_chroma.writing import stored_embedding, stored_metadata

MANIFEST = Path(__file__).parents[3] / "plugins/chroma/dragoman_chroma/driver.json"
COLUMNS = columns_of([{"s": "a", "i": 1, "f": 1.5, "b": True, "t": ["x"], "n": [1], "m": 1, "id": "x"}, {"m": "a"}], 3)


def where(*rows: Filter, match: str = "all", residual: int | None = None) -> FilterBody:
    request = FilterRequest(object="c", rows=list(rows), match=match, residual=residual)
    return msgspec_json.decode(compile_filter(request, COLUMNS, "r").body, type=FilterBody)


@pytest.mark.parametrize(
    ("row", "condition"),
    [
        (Filter("s", "=", "a"), {"s": {"$eq": "a"}}),
        (Filter("s", "in", ["a", ""]), {"$or": [{"s": {"$eq": "a"}}, {"s": {"$eq": ""}}]}),
        (Filter("s", "not-in", "a,b"), {"$and": [{"s": {"$ne": "a"}}, {"s": {"$ne": "b"}}]}),
        (Filter("s", "empty"), {"s": {"$eq": ""}}),
        (Filter("i", "=", "7"), {"i": {"$eq": 7}}),
        (Filter("i", "between", "1,2"), {"$and": [{"i": {"$gte": 1}}, {"i": {"$lte": 2}}]}),
        (Filter("f", ">", 0.5), {"f": {"$gt": 0.5}}),
        (Filter("f", ">=", 0.5), {"$and": [{"f": {"$gte": 0.5}}, {"f": {"$ne": 0}}]}),
        (Filter("f", "<", 0.5), {"$or": [{"f": {"$lt": 0.5}}, {"f": {"$eq": 0}}]}),
        (Filter("f", ">", -0.5), {"$or": [{"f": {"$gt": -0.5}}, {"f": {"$eq": 0}}]}),
        (Filter("f", "<=", -0.5), {"$and": [{"f": {"$lte": -0.5}}, {"f": {"$ne": 0}}]}),
        (Filter("f", "!=", 1.5), {"$or": [{"f": {"$ne": 1.5}}, {"f": {"$eq": 1}}]}),
        (Filter("b", "!=", "true"), {"b": {"$ne": True}}),
        (Filter("t", "=", "x"), {"t": {"$contains": "x"}}),
        (Filter("n", "!=", 1), {"$and": [{"n": {"$not_contains": 1}}, {"n": {"$not_contains": 1.0}}]}),
        (Filter("document", "contains", "a"), {"#document": {"$contains": "a"}}),
        (Filter("document", "null"), {"#document": {"$not_contains": ""}}),
        (Filter("metadata.id", "=", "x"), {"id": {"$eq": "x"}}),
    ],
)
def test_a_filter_row_is_one_condition(row: Filter, condition: dict[str, Any]) -> None:
    """C14-C16, C20-C22."""
    assert json.loads(where(row).where) == condition


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (Filter("s", ">", "a"), "no such condition"),
        (Filter("s", "null"), "no such condition"),
        (Filter("s", "=", "a", case=False), "letter case"),
        (Filter("uri", "=", "a"), "evaluated here"),
        (Filter("m", "=", 1), "several kinds"),
        (Filter("embedding", "=", 1), "vectors"),
        (Filter("i", "=", 2**53 + 1), "exactly with floats"),
        (Filter("i", "=", 2**64), "exactly with floats"),
        (Filter("f", "=", "0.1000000000000000001"), "another number"),
        (Filter("f", "=", 1e300), "another number"),
        (Filter("f", "=", -7.312715117751976e-237), "another number"),
        (Filter("nokey", "=", 1), "no such column"),
        (Filter("s", "=", "a", group="1"), "group"),
    ],
)
def test_what_cannot_run_is_refused_with_its_reason(row: Filter, reason: str) -> None:
    """C17-C19, C23, C25: never approximated, never left out."""
    with pytest.raises(FilterNotSupportedError, match=reason):
        where(row)


def test_ids_narrow_and_join_by_and_only() -> None:
    """C24, C26: two rows of ids leave those of both."""
    both = where(Filter("id", "in", ["a", "b", "a"]), Filter("id", "in", ["b", "c"]), Filter("i", ">", 1))
    assert (both.ids, json.loads(both.where)) == (["b"], {"i": {"$gt": 1}})
    assert where(Filter("id", "=", "a"), match="any").ids == ["a"]
    with pytest.raises(FilterNotSupportedError, match="'and' only"):
        where(Filter("id", "=", "a"), Filter("i", ">", 1), match="any")


def test_rows_that_are_evaluated_here_compare_letter_case_as_the_server_does() -> None:
    """C23: with `any`, all rows are evaluated together."""
    body = where(Filter("s", "starts", "A"), Filter("i", ">", 1), match="any", residual=10)
    assert (body.where, body.ids) == ("", None)
    assert body.residual is not None
    assert [(row.row.op, row.row.case) for row in body.residual.rows] == [(Operator.STARTS, True), (Operator.GT, True)]


def test_a_float_that_the_server_reads_otherwise_is_known() -> None:
    """C18: each of these was stored on the real server."""
    assert all(map(survives, (0.0, 0.1, 1.25, -1e22, 1e300, 7.420659367359407e-08)))
    assert not any(map(survives, (-7.312715117751976e-237, -1.3446586418989325e-299, 3.9166573353688696e-29)))
    assert comparable("1e3") == 1000
    assert comparable(Decimal("0.5")) == 0.5


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("s", "12", "12"),
        ("s", 12, 12),
        ("i", "12", 12),
        ("i", "1.5", 1.5),
        ("i", Json('"12"'), "12"),
        ("b", "true", True),
        ("t", '["a"]', ["a"]),
        ("t", ["a", "b"], ["a", "b"]),
        ("n", [1, 2.5], [1, 2.5]),
        ("new", "12", "12"),
        ("new", Json("[true]"), [True]),
        ("i", None, None),
        ("i", Decimal("1.5"), 1.5),
    ],
)
def test_a_value_keeps_its_kind(name: str, value: Any, stored: Any) -> None:
    """C36: a text is read by the kind of its column; null removes the key."""
    got = stored_metadata(name, COLUMNS.get(name), value)
    assert (got, type(got)) == (stored, type(stored))


@pytest.mark.parametrize("value", ["[]", "[1,2]", '["a",1,2]', [True, 1, 2], [1, 2, 1e39], "x", None, {"a": 1}])
def test_an_embedding_is_an_array_of_numbers_of_its_dimension(value: Any) -> None:
    """C13."""
    with pytest.raises(ValueError, match=r"."):
        stored_embedding(value, 3)
    assert stored_embedding(Json("[1.10, 2, 3]"), 3) == "[1.10, 2, 3]"


def test_a_guard_differs_if_anything_stored_differs() -> None:
    """C33: the embedding as 32-bit floats, however they are spelled."""
    record = StoredRecord("a", "d", "u", {"a": 1}, "[1.0,0.1]")
    same = StoredRecord("a", "d", "u", {"a": 1}, "[1,0.10000000149011612]")
    assert record.guard == same.guard
    others = [
        StoredRecord("a", "e", "u", {"a": 1}, "[1.0,0.1]"),
        StoredRecord("a", "d", None, {"a": 1}, "[1.0,0.1]"),
        StoredRecord("a", "d", "u", {"a": 1.0}, "[1.0,0.1]"),
        StoredRecord("a", "d", "u", {}, "[1.0,0.1]"),
        StoredRecord("a", "d", "u", {"a": 1}, "[1.0,0.2]"),
    ]
    assert all(other.guard != record.guard for other in others)


def test_the_form_holds_the_usual_blocks() -> None:
    """C3: host and port; TLS and extra headers as in every form."""
    fields = json.loads(MANIFEST.read_text())["form"]
    names = [field["name"] for field in fields]
    blocks = [field.name for block in (address(8000), tls(), every_request()) for field in block.fields]
    assert [name for name in names if name in blocks] == blocks
    assert [field["default"] for field in fields[:2]] == ["localhost", 8000]
