"""Selections that tests draw: every field, with texts that are hard to spell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from dragoman import Filter, RawQuery, RowSelection, Sort, Span
from dragoman_api.columns import LISTS, VALUELESS, Operator

VALUES = set(Operator) - {*VALUELESS}
SCALARS = sorted(VALUES - {*LISTS})
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = TEXTS.filter(bool)
NASTY = [
    "-x",
    "+x",
    "@x",
    "@1",
    "+case",
    "-case",
    "a,b",
    " a ",
    "*",
    '"',
    "it's",
    "\\",
    "last 24h",
    "now",
    "and",
    "\x1f",
]
INSTANTS = st.integers(0, 10**12).map(lambda number: datetime(2000, 1, 1, tzinfo=UTC) + timedelta(milliseconds=number))


@st.composite
def filter_rows(draw: Any) -> Filter:
    """Draw a filter row whose values are texts, as every face but Python makes them."""
    text, op = st.sampled_from(NASTY) | TEXTS, draw(st.sampled_from(Operator))
    value = None if op in VALUELESS else draw(text)
    if op in LISTS:
        value = draw(st.lists(text, min_size=2, max_size=2 if op == "between" else 3))
    group, case = draw(st.none() | text), draw(st.sampled_from([None, True, False]))
    return Filter(draw(st.sampled_from(NASTY) | NAMES), op, value, group, case)


FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "object": st.sampled_from(NASTY) | NAMES,
    "filters": st.tuples(
        st.lists(filter_rows(), max_size=3), st.lists(NAMES.filter(str.strip).map(RawQuery), max_size=2)
    ).map(lambda rows: (*rows[0], *rows[1])),
    "match": st.sampled_from(["all", "any"]),
    "sort": st.lists(st.builds(Sort, st.sampled_from(NASTY) | NAMES, st.booleans()), max_size=3).map(tuple),
    "columns": st.none() | st.lists(st.sampled_from(NASTY) | NAMES, max_size=3).map(tuple),
    "tenant": st.none() | TEXTS.filter(bool),
    "revision": TEXTS,
    "span": st.builds(Span, since=st.none() | TEXTS, until=st.none() | TEXTS, all_time=st.booleans()),
    "now": st.none() | INSTANTS,
    "residual": st.none() | st.integers(1, 10_000),
}
SELECTIONS = st.builds(RowSelection, **FIELDS)
FULL = RowSelection(
    object="orders",
    filters=(Filter("a", "in", ["1", "2"], "g", case=False), RawQuery("raw")),
    match="any",
    sort=(Sort("a", descending=True),),
    columns=("a", "b,c"),
    tenant="north",
    revision="r7",
    span=Span(since="-1h", until="now", all_time=True),
    now=datetime(2026, 11, 27, tzinfo=UTC),
    residual=500,
)
