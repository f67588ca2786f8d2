"""The meaning of filter rows for cells of bytes: their operands are base64 texts, their order is that of the bytes."""

from __future__ import annotations

import operator
from base64 import b64encode
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api.columns import Operator
from dragoman_api.filters import Filter
from dragoman_api.kit.filter_rows import holds

if TYPE_CHECKING:
    from collections.abc import Callable

BYTES = st.binary(max_size=3)


def base64(value: bytes) -> str:
    return b64encode(value).decode()


@pytest.mark.parametrize(
    ("op", "meant"),
    [
        ("=", operator.eq),
        ("!=", operator.ne),
        (">", operator.gt),
        (">=", operator.ge),
        ("<", operator.lt),
        ("<=", operator.le),
        ("starts", bytes.startswith),
        ("ends", bytes.endswith),
        ("contains", operator.contains),
    ],
)
@given(cell=BYTES, value=BYTES)
def test_bytes_are_compared_as_bytes(op: str, meant: Callable[[bytes, bytes], bool], cell: bytes, value: bytes) -> None:
    assert holds(Filter("a", op, base64(value)), cell) is meant(cell, value)


@given(cell=BYTES, values=st.lists(BYTES, min_size=2, max_size=2))
def test_bytes_lie_between_bounds_or_in_a_list(cell: bytes, values: list[bytes]) -> None:
    operands: list[bool | int | float | str | None] = [base64(value) for value in values]
    assert holds(Filter("a", "between", operands), cell) is (values[0] <= cell <= values[1])
    assert holds(Filter("a", "in", operands), cell) is (cell in values)


@pytest.mark.parametrize("op", [Operator.REGEX, Operator.EMPTY])
def test_what_has_no_meaning_for_bytes_is_left_open(op: Operator) -> None:
    assert holds(Filter("a", op, "AA=="), b"\0") is None
