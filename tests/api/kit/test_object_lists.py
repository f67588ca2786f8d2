"""The names of one part of a list of objects: parts tile the list, also while names come and go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import ObjectsRequest, QueryError
from dragoman_api.kit.object_lists import choose

NAMES = st.sets(st.text("aAbß:é", min_size=1, max_size=4), max_size=12)


def all_parts(groups, *, limit, contains="", between=lambda: None):
    """Return the parts from the first to the last, with something done after each."""
    parts, cursor = [], None
    while True:
        parts.append(choose(ObjectsRequest(limit=limit, contains=contains, cursor=cursor), *groups))
        if (cursor := parts[-1].next) is None:
            return parts
        between()


@given(collections=NAMES, aliases=NAMES, limit=st.integers(1, 30), contains=st.sampled_from(["", "A", "ss", ":", "éa"]))
def test_parts_of_a_list_tile_what_contains_the_text(collections, aliases, limit, contains):
    parts = all_parts([collections, aliases], limit=limit, contains=contains)
    expected = [
        [name for name in sorted(names) if contains.casefold() in name.casefold()] for names in (collections, aliases)
    ]
    assert [[name for part in parts for name in part.groups[group]] for group in (0, 1)] == expected
    assert {part.total for part in parts} == {sum(map(len, expected))}
    assert all(len(part.names) == limit for part in parts[:-1])
    assert len(parts[-1].names) <= limit


def test_names_that_come_or_go_between_parts_move_no_others():
    names = {f"n{number}" for number in range(9)}

    def change():
        names.discard("n0")
        names.discard("n3")
        names.add("a")

    parts = all_parts([names], limit=4, between=change)
    assert [name for part in parts for name in part.names] == [f"n{number}" for number in range(9)]


@pytest.mark.parametrize("cursor", ["", "a", ":a", "x:a", "-1:a", "1000:a"])
def test_a_text_that_no_part_gave_is_refused(cursor):
    with pytest.raises(QueryError) as caught:
        choose(ObjectsRequest(cursor=cursor), ["a"])
    assert caught.value.code == "cursor-invalid"
