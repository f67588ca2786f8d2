"""The columns of a page: all that were asked for, or an error; a dropped sort key is always said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import QueryError, Sort
from dragoman_api.columns import MAX_COLUMNS
from dragoman_api.kit.page_columns import choose, sortable

NAMES = st.sampled_from("abcdef")
KNOWN = {name: name.upper() for name in "abcd"} | {"d": ""}  # a driver's columns may be false


@given(st.lists(NAMES))
def test_chosen_columns_come_in_the_order_of_the_request_each_once(names):
    if {*names} <= {*KNOWN}:
        assert choose(names, KNOWN, object="t") == [KNOWN[name] for name in dict.fromkeys(names)]
        return
    with pytest.raises(QueryError) as caught:
        choose(names, KNOWN, object="t")
    assert caught.value.details["column"] == next(name for name in names if name not in KNOWN)


def test_all_columns_are_as_many_as_a_page_holds():
    assert choose(None, KNOWN, object="t") == [*KNOWN.values()]
    assert len(choose(None, {str(at): at for at in range(MAX_COLUMNS + 5)}, object="t")) == MAX_COLUMNS


def test_a_column_that_is_not_listed_may_be_found():
    assert choose(["a.key"], {}, object="t", find=lambda name: name if name.startswith("a.") else None) == ["a.key"]


@given(st.lists(st.builds(Sort, NAMES, st.booleans())))
def test_a_sort_key_is_sent_or_said_to_be_dropped_or_unknown(sorts):
    def reason(column):
        return "no order" if column == "B" else ""

    if unknown := [sort.column for sort in sorts if sort.column not in KNOWN]:
        with pytest.raises(QueryError, match="no column") as caught:
            sortable(sorts, KNOWN.get, reason)
        assert caught.value.details == {"column": unknown[0]}
        return
    keys, notes = sortable(sorts, KNOWN.get, reason)
    assert [sort for sort, _ in keys] == [sort for sort in sorts if sort.column in "acd"]
    assert all(KNOWN[sort.column] == column for sort, column in keys)
    assert [note.column for note in notes] == [sort.column for sort in sorts if sort.column == "b"]
    assert all(note.code == "sort-dropped" and note.reason for note in notes)
