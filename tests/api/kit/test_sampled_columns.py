"""Columns of rows without a schema: no value contradicts the kind of its column, and no value is lost in its cell."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api.cells import Json, is_cut
from dragoman_api.columns import ColumnKind
from dragoman_api.json_text import exact_number
from dragoman_api.kit.page_columns import cell_of, kinds_of

FITTING = {
    ColumnKind.TEXT: (str,),
    ColumnKind.BOOLEAN: (bool,),
    ColumnKind.INTEGER: (int,),
    ColumnKind.FLOAT: (int, float, Decimal, Json),
    ColumnKind.JSON: (list, dict),
    ColumnKind.BINARY: (bytes,),
}
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3), st.binary(max_size=3),
    st.sampled_from([Decimal("1.10"), exact_number("1e99999999999999999999")]),
    st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)  # fmt: skip


@given(st.lists(st.dictionaries(st.sampled_from("abc"), VALUES), max_size=5))
def test_a_kind_fits_every_value_that_was_seen(rows: list[dict[str, Any]]) -> None:
    kinds = kinds_of(rows)
    assert list(kinds) == list(dict.fromkeys(name for row in rows for name in row))
    for name, kind in kinds.items():
        types = {type(row[name]) for row in rows if row.get(name) is not None}
        if kind is ColumnKind.OTHER:
            assert not any(types and types <= {*fitting} for fitting in FITTING.values())
        else:
            assert types
            assert types <= {*FITTING[kind]}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], ColumnKind.INTEGER),
        ([1, True], ColumnKind.OTHER),
        ([1, Decimal("1.10")], ColumnKind.FLOAT),
        ([[1], {"a": 1}], ColumnKind.JSON),
        (["a", ["a"]], ColumnKind.OTHER),
        ([None], ColumnKind.OTHER),
    ],
)
def test_kinds_of_one_column(values: list[Any], kind: ColumnKind) -> None:
    assert kinds_of([{"a": value} for value in values]) == {"a": kind}


@given(VALUES)
def test_a_cell_holds_the_whole_value(value: Any) -> None:
    cell = cell_of(value)
    if isinstance(value, list | dict):
        assert isinstance(cell, Json)
        assert msgspec.json.decode(cell.encode()) == value
    else:
        assert cell is value


def test_a_long_array_is_not_cut_and_keeps_its_digits() -> None:
    cell = cell_of([Decimal("1.10")] * 20_000)
    assert not is_cut(cell)
    assert str(cell) == "[" + ",".join(["1.10"] * 20_000) + "]"
