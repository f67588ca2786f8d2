"""Parts of lines: every line whole, in order and once; every part bounded."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman_api.kit.line_parts import rows_that_fit, split_lines

LINES = st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b" ") + b"\n"), max_size=40)


@given(LINES, st.integers(1, 100))
@example([b"\n"], 1)
@example([b"12\n", b"12\n"], 3)
def test_parts_hold_every_line_whole_and_in_order(lines: list[bytes], most: int) -> None:
    parts = list(split_lines(b"".join(lines), most=most))
    assert b"".join(part.data for part in parts) == b"".join(lines)
    assert sum(part.rows for part in parts) == len(lines)
    for part in parts:
        assert part.data.endswith(b"\n")
        assert part.rows == part.data.count(b"\n") >= 1
        assert len(part.data) <= most or part.rows == 1
    for part, after in pairwise(parts):
        assert len(part.data) + after.data.index(b"\n") + 1 > most, "a part is as long as it may be"


def test_half_a_line_is_not_a_part() -> None:
    with pytest.raises(ValueError, match="line break"):
        list(split_lines(b"1\n2"))


@given(st.integers(1, 10**8), st.integers(0, 10**5), st.integers(0, 10**9), st.integers(1, 10**5), st.integers(1, 50))
def test_the_next_answer_fits_within_the_limits(room: int, rows: int, size: int, most: int, least: int) -> None:
    found = rows_that_fit(room, rows=rows, size=size, most=most, least=least)
    assert min(most, least) <= found <= most
    assert found <= least or found * size <= room * rows


def test_a_row_longer_than_the_room_is_asked_for_alone() -> None:
    assert rows_that_fit(10, rows=1, size=10**6, most=5) == 1
