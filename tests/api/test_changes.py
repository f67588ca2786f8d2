"""Changes: which values and ids they take, whatever becomes of them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from uuid import uuid4

import msgspec
import pytest

from dragoman_api import HttpRequest, Insert, RowKey, Update
from dragoman_api.cells import MISSING, CutBytes, CutJson, CutText, Json, as_bytes
from dragoman_api.changes import InsertBatch, Plan, PlannedRequest
from dragoman_api.grid import check_id


class Colour(StrEnum):
    RED = "red"


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        None, True, 1, 2**70, 1.5, float("nan"), "a", b"a", Decimal("1.10"), Json("[1]"), CutJson("[1"), CutText("a"),
        CutBytes(b"a"), [], {}, [1, [None, {"a": b"x"}]], {"a": {"b": Decimal(1)}}, (1, 2),
    ],
)  # fmt: skip
def test_a_change_takes_what_travels_to_a_driver(value):
    assert Insert("o", {"x": value}).values["x"] is value
    assert Update(RowKey("o", "1"), {"x": value}).values["x"] is value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (MISSING, "no MISSING"), (datetime.now(UTC), "no datetime; give its text, such as value.isoformat"),
        (date(2024, 1, 31), "no date; give its text"), (timedelta(1), "no timedelta; give"), ({1}, "no set; give"),
        (uuid4(), "no UUID"), (Colour.RED, "no Colour"), (1j, "no complex"), (object(), "no object"),
        (bytearray(b"a"), "no bytearray"), ([1, {"a": [{2}]}], "no set"), ({1: "a"}, "keys of an object are texts"),
        ({"a": {None: 1}}, "keys of an object are texts"), (nested(100_000), "nested too deeply"),
    ],
)  # fmt: skip
def test_a_value_that_can_be_stored_nowhere_is_refused_before_it_travels(value, reason):
    for make in (lambda: Insert("o", {"y": 1, "x": value}), lambda: Update(RowKey("o", "1"), {"y": 1, "x": value})):
        with pytest.raises(ValueError, match=f"x: .*{reason}"):
            make()


@pytest.mark.parametrize("value", [None, 1, "?", "AP8", Json('"AP8="'), ["AP8="]])
def test_nothing_but_bytes_and_base64_text_is_the_value_of_a_binary_column(value):
    with pytest.raises(ValueError, match="base64"):
        as_bytes(value)


@pytest.mark.parametrize("row", [None, 1, True, 1.5, [], [None], [True], [1.5], [["a"]], [2**64], ["a"] * 33, {}])
def test_nothing_but_a_text_bytes_and_a_list_of_such_parts_is_an_id(row):
    """Of a driver, a person or a script: the struct refuses it when it is made and when it is read."""
    with pytest.raises(ValueError, match="an id is"):
        check_id(row)
    with pytest.raises(ValueError, match="an id is"):
        RowKey("o", row)
    if row != [2**64]:  # msgpack has no such integer
        with pytest.raises(msgspec.ValidationError):
            msgspec.msgpack.decode(msgspec.msgpack.encode({"object": "o", "id": row}), type=RowKey)


@pytest.mark.parametrize(
    ("values", "given", "row"),
    [
        ({"a": "x", "b": 1}, None, ["x", 1]),
        ({"a": "x", "b": b"y"}, ["x", b"y"], ["x", b"y"]),
        ({"c": 1}, ["x", 1], ["x", 1]),
        ({"c": 1}, None, None),
        ({"a": None, "b": None}, None, None),
    ],
)
def test_an_insert_may_name_its_key_by_columns(values, given, row):
    change = Insert("o", {**values, "c": 2}, given).with_key("a", "b")
    assert (change.id, change.values) == (row, {"c": 2})


@pytest.mark.parametrize(
    ("values", "given"), [({"a": "x"}, None), ({"a": "x", "b": 1}, ["x", 2]), ({"a": 1, "b": 2}, "x")]
)
def test_an_insert_that_names_its_key_in_part_or_twice_is_refused(values, given):
    with pytest.raises(ValueError, match=r"key|id"):
        Insert("o", values, given).with_key("a", "b")


def test_an_empty_id_names_a_row_as_any_other():
    with pytest.raises(ValueError, match="the row's id is '', but its columns a say 'x'"):
        Insert("o", {"a": "x"}, "").with_key("a")
    assert Insert("o", {"a": ""}, "").with_key("a").id == ""


@pytest.mark.parametrize(("part", "said"), [(1 << 64, "65 bits"), (-(1 << 63) - 1, "64 bits"), (True, "boolean")])
def test_a_part_of_a_key_that_cannot_be_one_is_named_by_its_column(part, said):
    with pytest.raises(ValueError, match=f"^b is .*{said}"):
        Insert("o", {"a": "x", "b": part}).with_key("a", "b")


def test_a_part_of_a_key_with_thousands_of_digits_is_not_printed():
    with pytest.raises(ValueError, match=r"^b is an integer of 16610 bits"):
        Insert("o", {"a": "x", "b": 10**5_000}).with_key("a", "b")


def test_the_only_column_of_a_key_may_hold_any_integer():
    assert Insert("o", {"a": 1 << 64}).with_key("a").id == "18446744073709551616"


@pytest.mark.parametrize(("body", "shown"), [(None, ""), ("", "\n"), ("{}", "\n{}")])
def test_a_request_as_text_tells_an_empty_body_from_none(body, shown):
    assert str(HttpRequest("PUT", "/a", body)) == f"PUT /a{shown}"


def test_a_plan_shows_all_of_its_requests_in_their_order():
    requests = [HttpRequest("PUT", f"/{number}") for number in range(3)]
    planned = [PlannedRequest(request=request, changes=[at]) for at, request in enumerate(requests)]
    assert Plan(planned=planned).requests == requests


def test_a_batch_is_a_sequence_of_the_inserts_of_its_rows():
    batch = InsertBatch(
        "o", documents=["{}", None], values=[{}, {"a": 1}], ids=["1", None], tenants=[None, "t"], routings=["r", None],
        replace=[True, False],
    )  # fmt: skip
    inserts = [Insert("o", {}, "1", replace=True, routing="r", document="{}"), Insert("o", {"a": 1}, tenant="t")]
    assert (len(batch), [*batch], batch[1]) == (2, inserts, inserts[1])
    assert [*InsertBatch("o", documents=["{}"])] == [Insert("o", document="{}")]
    assert [*InsertBatch("o")] == []
    with pytest.raises(ValueError, match="columns of a batch"):
        InsertBatch("o", documents=["{}"], ids=["1", "2"])
    with pytest.raises(ValueError, match="takes no date"):
        InsertBatch("o", values=[{"a": date(2024, 1, 1)}])
