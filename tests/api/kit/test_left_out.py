"""What a call leaves out of its rows: counted for each row, said in one note for each kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api.columns import MAX_COLUMNS
from dragoman_api.kit.page_columns import (
    COLUMNS,
    CUT,
    KEYS,
    NAMES,
    VALUES,
    LeftOut,
    ShownKeys,
    columns_cut,
    columns_left_out,
    joined,
)

SHOWN = ShownKeys(["a", "o.x", "o.y.z", "whole", "whole.leaf", "m.time", "m.time.max"])


def counted(*documents, shown=SHOWN):
    left_out = LeftOut()
    for document in documents:
        shown.add(document, left_out)
    at_once = LeftOut()
    shown.add_all(documents, at_once)
    assert at_once == left_out
    return left_out.names


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"a": 1, "o": {"x": 1, "y": {"z": 2}}},
        {"a": {"anything": {"inside": 1}}},
        {"o": [{"x": 1}, {"x": 2}, None], "whole": [{"leaf": 1, "other": 2}]},
        {"o.x": 1, "o.y.z": 2},
        {"o": {"x": 1, "y.z": 1}},
        {"o.y": {"z": 1}, "o": {"x": 1}},
        {"extra": None, "o": {"extra": None}},
        {"m.time": 1, "m.time.max": 2},
        {"m": {"time": 1, "time.max": 2}},
        {"o": [{"x": 1, "y.z": 1}, {"y": {"z": 1}}]},
    ],
)
def test_a_document_that_columns_show_whole_leaves_nothing_out(document):
    assert counted(document) == {}
    assert SHOWN.missed(document) == (set(), set())


@pytest.mark.parametrize(
    ("document", "names"),
    [
        ({"extra": 1}, {"extra"}),
        ({"extra": []}, {"extra"}),
        ({"o": {"extra": 1, "x": 2}}, {"o.extra"}),
        ({"o": {"y": {"extra": 1}}}, {"o.y.extra"}),
        ({"o.extra": 1}, {"o.extra"}),
        ({"o": [{"x": 1}, {"extra": 1}, {"extra": 2}]}, {"o.extra"}),
        ({"o": [[{"extra": 1}]]}, {"o.extra"}),
        ({"o": 5}, {"o"}),
        ({"o": [{"x": 1}, "text"]}, {"o"}),
        ({"o": {"y": False}}, {"o.y"}),
        ({"o.y": {"extra": 1}}, {"o.y.extra"}),
        ({"m": {"max": 1}}, {"m.max"}),
    ],
)
def test_keys_that_no_column_shows_are_counted_by_name_once_for_each_row(document, names):
    assert counted(document) == {KEYS: dict.fromkeys(names, 1)}
    assert {joined(*pair) for pair in SHOWN.missed(document)[0]} == names


@pytest.mark.parametrize(
    ("document", "names"),
    [
        ({"o.x": 1, "o": {"x": 2}}, {"o.x"}),
        ({"o": {"y.z": 1, "y": {"z": 2}}}, {"o.y.z"}),
        ({"o.y": {"z": 1}, "o": {"y": {"z": 2}}}, {"o.y.z"}),
        ({"o.y.z": 1, "o": [{"x": 1}, {"y.z": 2}], "o.x": 3}, {"o.x", "o.y.z"}),
        ({"o.x": 1, "o": {"x": None, "y": {"z": 1}}, "o.y": {"z": 5}}, {"o.y.z"}),
    ],
)
def test_a_value_that_stands_twice_is_counted(document, names):
    assert counted(document) == {VALUES: dict.fromkeys(names, 1)}


def test_one_note_for_each_kind_names_what_most_rows_hold_and_how_many_rows():
    left_out = LeftOut()
    for number in range(30):
        left_out.add(KEYS, [f"k{at}" for at in range(number + 1)])
    left_out.add(VALUES, ["a.b"])
    keys, values = left_out.notes()
    assert (keys.code, values.code) == (KEYS, VALUES)
    assert keys.reason.startswith("30 rows hold keys that no column shows: 'k0' (30), 'k1' (29)")
    assert keys.reason.endswith(" and 10 more")
    assert values.reason.startswith("1 row holds a value twice")
    assert LeftOut().notes() == []


def test_names_are_bounded_in_number_and_length():
    left_out = LeftOut()
    for number in range(NAMES + 5):
        ShownKeys([]).add({f"{number}": 1, "k" * 10_000: 2}, left_out)
    [note] = left_out.notes()
    assert left_out.full
    assert len(left_out.names[KEYS]) == NAMES
    assert note.reason.startswith("at least ")
    assert len(note.reason) < 1_000


@given(st.lists(st.sets(st.sampled_from("abcdef")), max_size=8), st.integers(0, 8))
def test_readers_of_parts_count_together_what_one_reader_counts(rows, end):
    together, first, second = LeftOut(), LeftOut(), LeftOut()
    for at, names in enumerate(rows):
        together.add(KEYS, names)
        (first if at < end else second).add(KEYS, names)
    first.merge(second)
    assert first.notes() == together.notes()


def test_columns_beyond_the_limit_are_counted_in_a_note():
    assert columns_cut(MAX_COLUMNS) == []
    [note] = columns_cut(MAX_COLUMNS + 1)
    assert note.code == CUT
    assert note.reason.startswith("1 of 4,097 columns")


def test_columns_that_a_result_lacks_are_noted_once_for_each_reason():
    notes = columns_left_out({"a": "computed", "b": "computed", "c": "excluded"})
    assert [(note.code, note.column, note.reason) for note in notes] == [
        (COLUMNS, None, "'a', 'b': computed"),
        (COLUMNS, "c", "excluded"),
    ]


def test_a_name_of_very_many_parts_costs_no_more_than_its_length():
    name = ".".join(["k"] * 30_000)
    shown = ShownKeys([name, "k.other"])
    assert counted({"k": {"k": {"deep": 1}}, name: 1, "x": 1}, shown=shown) == {KEYS: {"x": 1}}
    assert sum(map(len, shown.known)) < 100


def test_counts_of_several_readers_are_one_by_rows_and_by_names():
    first, second = LeftOut(), LeftOut()
    first.add(KEYS, ["a", "b"], rows=2)
    second.add(KEYS, ["b"], rows=3)
    second.add(VALUES, ["c"])
    first.merge(second)
    assert (first.rows, first.names) == ({KEYS: 5, VALUES: 1}, {KEYS: {"a": 2, "b": 5}, VALUES: {"c": 1}})
    keys, values = first.notes()
    assert keys.reason == "5 rows hold keys that no column shows: 'b' (5), 'a' (2)"  # the most frequent first
    assert values.code == VALUES
    for full in (False, True):
        second.full = full
        first.merge(second)
        assert first.full is full
        assert first.notes()[0].reason.startswith("at least ") is full
