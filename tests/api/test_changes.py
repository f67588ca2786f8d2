"""Changes: which values they take, whatever becomes of them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from uuid import uuid4

import pytest

from dragoman_api import Insert, RowKey, Update
from dragoman_api.cells import MISSING, CutBytes, CutJson, CutText, Json


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
