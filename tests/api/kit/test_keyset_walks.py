"""Walks: a row that is there all the time is read exactly once, whatever is written meanwhile."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import QueryError
from dragoman_api.kit import cursors
from dragoman_api.kit.cursors import Walk, beyond, read_pages

if TYPE_CHECKING:
    from collections.abc import Sequence

Key = tuple[int, str]
KEYS = st.tuples(st.integers(0, 3), st.text("abcdef", min_size=1, max_size=2))  # many ties
WRITES = st.lists(st.lists(st.tuples(st.booleans(), KEYS), max_size=6), max_size=30)


@dataclass
class Server:
    """Rows that are written between pages: inserted (True) or deleted."""

    rows: set[Key]
    writes: list[list[tuple[bool, Key]]]
    descending: bool = False
    standing: set[Key] = field(init=False)

    def __post_init__(self) -> None:
        self.standing = set(self.rows)

    async def fetch(self, after: Key | None, limit: int) -> Sequence[Key]:
        """Answer as a server does that compares column by column, then let others write."""
        found = sorted(self.rows, reverse=self.descending)
        if after is not None:
            alternatives = beyond([("n", self.descending), ("id", self.descending)], after)
            found = [row for row in found if any(all(_holds(row, each) for each in every) for every in alternatives)]
        for inserted, row in self.writes.pop() if self.writes else ():
            (self.rows.add if inserted else self.rows.discard)(row)
            self.standing.discard(row)
        return found[:limit]


def _holds(row: Key, condition: tuple[str, str, object]) -> bool:
    column, comparison, value = condition
    mine = row[("n", "id").index(column)]
    return {"<": operator.lt, ">": operator.gt, "=": operator.eq}[comparison](mine, value)


@given(st.sets(KEYS, max_size=40), WRITES, st.integers(1, 7), st.booleans())
def test_an_export_loses_and_doubles_no_standing_row(
    rows: set[Key], writes: list[list[tuple[bool, Key]]], limit: int, descending: bool
) -> None:
    server = Server(set(rows), writes, descending)
    walk: Walk[Key, Key] = Walk(key=lambda row: row, before=operator.gt if descending else operator.lt)

    async def run() -> list[Key]:
        return [row async for page in read_pages(walk, server.fetch, limit=limit) for row in page]

    found = anyio.run(run)
    assert len(found) == len(set(found)), "no row is doubled"
    assert server.standing <= set(found), "no standing row is lost"
    assert found == sorted(found, reverse=descending)


@given(st.sets(KEYS, max_size=40), WRITES, st.integers(1, 7))
def test_pages_by_cursor_lose_and_double_no_standing_row(
    rows: set[Key], writes: list[list[tuple[bool, Key]]], limit: int
) -> None:
    server, query = Server(set(rows), writes), {"object": "books", "sort": ["n", "id"]}
    found: list[Key] = []

    async def page(cursor: str | None) -> str | None:
        position = None if cursor is None else cursors.unseal(cursor, query, Key)
        walk: Walk[Key, Key] = Walk(key=lambda row: row, position=position)
        found.extend(walk.accept(await server.fetch(walk.position, limit), limit))
        return None if walk.ended else cursors.seal(query, walk.position)

    async def run() -> None:
        cursor = await page(None)
        while cursor is not None:
            cursor = await page(cursor)

    anyio.run(run)
    assert len(found) == len(set(found))
    assert server.standing <= set(found)


@given(
    st.sets(st.integers(0, 60), max_size=40), st.lists(st.integers(0, 60), max_size=4, unique=True), st.integers(1, 5)
)
def test_ranges_divide_the_rows(rows: set[int], bounds: list[int], limit: int) -> None:
    async def fetch(after: int | None, limit: int) -> list[int]:
        return sorted(row for row in rows if after is None or row > after)[:limit]

    async def run() -> list[int]:
        edges = [None, *sorted(bounds), None]
        walks = [Walk(key=int, position=low, until=high) for low, high in pairwise(edges)]
        return [row for walk in walks async for page in read_pages(walk, fetch, limit=limit) for row in page]

    assert anyio.run(run) == sorted(rows)


def test_a_walk_ends_at_its_bound_with_a_shorter_answer_or_with_none() -> None:
    for answer, until, rows, ended in (
        ([1, 2], None, [1, 2], False), ([1], None, [1], True), ([], None, [], True), ([1, 2], 2, [1, 2], True),
        ([1, 2], 3, [1, 2], False), ([1, 3], 2, [1], True), ([3, 4], 2, [], True), ([-1, 0], 0, [-1, 0], True),
    ):  # fmt: skip
        walk: Walk[int, int] = Walk(key=int, until=until)
        assert (walk.accept(answer, 2), walk.ended) == (rows, ended)
    walk = Walk(key=int, position=0)
    with pytest.raises(QueryError):
        walk.accept([0], 1)


@pytest.mark.parametrize("answer", [[5, 6], [4, 5], [7, 7], [8, 7], [6, 7, 8]])
def test_an_answer_that_repeats_rows_or_has_too_many_is_an_error_and_moves_nothing(answer: list[int]) -> None:
    walk: Walk[int, int] = Walk(key=int, position=5)
    with pytest.raises(QueryError):
        walk.accept(answer, 2)
    assert (walk.position, walk.ended) == (5, False)


@pytest.mark.parametrize("position", [[1], [1, None], [None, "a"], [1, "a", 2]])
def test_a_position_with_a_null_or_of_another_length_finds_nothing_beyond(position: list[object]) -> None:
    with pytest.raises(ValueError, match="null"):
        beyond([("n", False), ("id", False)], position)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=1),
    st.tuples(*[st.booleans()] * 3),
)
def test_what_is_beyond_a_position_is_what_comes_after_it(
    rows: list[tuple[int, int, int]], descending: tuple[bool, bool, bool]
) -> None:
    def place(row: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(-value if down else value for value, down in zip(row, descending, strict=True))

    keys = list(zip("abc", descending, strict=True))
    compare = {"<": operator.lt, ">": operator.gt, "=": operator.eq}
    for row in rows:
        alternatives = beyond(keys, rows[0])
        found = any(
            all(compare[op](row["abc".index(name)], value) for name, op, value in each) for each in alternatives
        )
        assert found == (place(row) > place(rows[0]))
