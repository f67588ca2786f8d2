"""Parts of lines: every line whole, in order and once; every part bounded."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman_api import Note
from dragoman_api.cells import MISSING, Json
from dragoman_api.kit import line_parts
from dragoman_api.kit.line_parts import RowLines, export_parts, rows_that_fit, split_lines

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


def test_the_first_part_has_the_notes_and_the_last_the_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint behind an earlier part would leave out the rows between."""
    monkeypatch.setattr(line_parts, "split_lines", lambda data: split_lines(data, most=4))
    note = Note(code="a", reason="b")
    parts = [*export_parts(b"1\n2\n3\n4\n5\n", total=9, checkpoint="c", notes=[note])]
    assert [(part.data, part.rows) for part in parts] == [(b"1\n2\n", 2), (b"3\n4\n", 2), (b"5\n", 1)]
    assert [part.checkpoint for part in parts] == [None, None, "c"]
    assert [part.notes for part in parts] == [[note], [], []]
    assert {part.total for part in parts} == {9}
    assert [*export_parts(b"", total=0, checkpoint="c")] == []


def test_notes_without_a_line_have_a_part_of_their_own():
    note = Note(code="remark", reason="all rows are left out")
    [part] = export_parts(b"", total=0, checkpoint=None, notes=[note])
    assert (part.data, part.rows, part.total, part.notes) == (b"", 0, 0, [note])


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


def test_lines_that_are_short_go_together() -> None:
    lines = b"12345678\n" * 1_000
    assert [part.rows for part in split_lines(lines)] == [1_000]


@pytest.mark.parametrize(
    ("paths", "values", "line"),
    [
        ([("a",), ("b",)], [1, MISSING], b'{"a":1}'),
        ([("a", "b"), ("a", "c")], [1, None], b'{"a":{"b":1,"c":null}}'),
        ([("a", "b", "c"), ("a", "d")], [1, 2], b'{"a":{"b":{"c":1},"d":2}}'),
        ([("a", "b"), ("a",)], [1, Json('{"c": 1.10}')], b'{"a":{"c":1.10,"b":1}}'),
        ([("a", "b"), ("a",)], [1, Json('[{"b": 2}]')], b'{"a":[{"b": 2}]}'),
        ([("a",), ("a",)], [MISSING, 2], b'{"a":2}'),
        ([("a",), ("a",)], [2, MISSING], b'{"a":2}'),
    ],
)
def test_a_row_is_a_line_with_each_value_at_its_path(paths: list[tuple[str, ...]], values: list[object], line: bytes):
    assert RowLines(paths).line(values) == line + b"\n"


@pytest.mark.parametrize(
    ("paths", "values"),
    [
        ([("a",), ("a",)], [1, 2]),
        ([("a",), ("a",), ("b",), ("b",)], [1, 1, 1, 2]),
        ([("a",), ("a", "b")], ["text", 1]),
        ([("a",)], []),
        ([("a",)], [1, 2]),
    ],
)
def test_values_that_have_no_room_beside_each_other_make_no_line(paths: list[tuple[str, ...]], values: list[object]):
    with pytest.raises(ValueError, match="value"):
        RowLines(paths).line(values)
