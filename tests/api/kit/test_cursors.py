"""Cursors: one opens in its own query only, and not if it was cut or altered."""

from __future__ import annotations

import base64
import re
import shlex
import string
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dragoman_api import CompiledFilter, ExportRequest, PageRequest, QueryError, Sort, TimeRange
from dragoman_api.exports import ExportForm
from dragoman_api.kit import cursors
from dragoman_api.kit.cursors import query_of, seal, unseal

QUERY = query_of(PageRequest(object="books"))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text(), each, max_size=4),
    max_leaves=8,
)
QUERIES = st.dictionaries(st.sampled_from(["object", "filter", "sort", "tenant", "columns"]), VALUES, min_size=1)


def written(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


@given(QUERIES, VALUES)
def test_a_position_comes_back_through_a_text_that_needs_no_quoting(query: dict[str, Any], position: Any) -> None:
    text = seal(query, position)
    assert written(unseal(text, query, object)) == written(position)
    assert shlex.quote(text) == quote(text, safe="") == text
    assert not text.startswith("-")


@given(QUERIES, QUERIES, VALUES)
@example({"object": "a"}, {"filter": "a"}, 1)
@example({"object": "a", "sort": "b"}, {"object": "b", "sort": "a"}, 1)
def test_a_cursor_of_another_query_is_refused(query: dict[str, Any], other: dict[str, Any], position: Any) -> None:
    assume({name: written(value) for name, value in query.items()} != {k: written(v) for k, v in other.items()})
    with pytest.raises(QueryError) as caught:
        unseal(seal(query, position), other, object)
    assert caught.value.code == cursors.INVALID


RANGE = TimeRange(column="at", since="2026-01-01T00:00:00Z")
WHERE = CompiledFilter(object="books", body="1", rows=[])


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (kind, one, other)
        for kind in (PageRequest, ExportRequest)
        for one, other in [
            ({"object": "books"}, {"object": "Books"}),
            ({"filter": WHERE}, {}),
            ({"filter": WHERE}, {"filter": msgspec.structs.replace(WHERE, body="2")}),
            ({"tenant": "a"}, {"tenant": "b"}),
            ({"tenant": "a"}, {}),
            ({"time": RANGE}, {"time": msgspec.structs.replace(RANGE, since="2026-01-02T00:00:00Z")}),
            ({"time": RANGE}, {"time": msgspec.structs.replace(RANGE, until="2026-01-02T00:00:00Z")}),
            ({"time": RANGE}, {}),
            ({"columns": ["a", "b"]}, {"columns": ["a", "c"]}),
            ({"columns": ["a", "b"]}, {"columns": ["a"]}),
            ({"columns": []}, {}),
        ]
    ]
    + [
        (PageRequest, {"sort": [Sort("a"), Sort("b")]}, {"sort": [Sort("a"), Sort("c")]}),
        (PageRequest, {"sort": [Sort("a")]}, {"sort": [Sort("a", descending=True)]}),
        (PageRequest, {"sort": [Sort("a")]}, {}),
        (ExportRequest, {"form": ExportForm.ROWS}, {"form": ExportForm.DOCUMENTS}),
    ],
)
def test_a_cursor_belongs_to_each_part_of_its_query(kind: Any, one: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = (kind(**{"object": "books"} | more) for more in (one, other))
    for a, b in ((first, second), (second, first)):
        text = seal(query_of(a), 1)
        assert unseal(text, query_of(a), int) == 1
        with pytest.raises(QueryError) as caught:
            unseal(text, query_of(b), int)
        assert caught.value.code == cursors.INVALID


def test_a_cursor_is_of_any_order_of_columns_and_any_size_of_page() -> None:
    text = seal(query_of(PageRequest(object="books", columns=["b", "a", "b"], limit=5)), 1)
    assert unseal(text, query_of(PageRequest(object="books", columns=["a", "b"], limit=9, offset=5)), int) == 1


@given(VALUES, st.data())
def test_a_cut_or_altered_cursor_is_refused(position: Any, data: st.DataObject) -> None:
    text = seal(QUERY, position)
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from("0123456789ABCDEFabcdef-_=~ \né").filter(lambda char: char != text[at]))
    changed = (
        text[:at],
        text[at + 1 :],
        text[:at] + other + text[at + 1 :],
        text + other,
        text[:at] + other + text[at:],
    )
    for each in changed:
        with pytest.raises(QueryError) as caught:
            unseal(each, QUERY, object)
        assert caught.value.code == cursors.INVALID


@pytest.mark.parametrize("position", ["", "a", "ab"])
def test_a_text_of_the_same_bytes_in_another_spelling_is_refused(position: str) -> None:
    text = seal(QUERY, position)
    for char in {*string.ascii_letters} - {text[-1]}:
        with pytest.raises(QueryError):
            unseal(text[:-1] + char, QUERY, object)


@given(st.text())
@example("abc")
@example("")
@example("1")
@example("²")
@example("\udce9")
@example("1" + "A" * 100_000)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        unseal(text, QUERY, object)
    assert caught.value.code == cursors.INVALID


FILTER = CompiledFilter(object="books", body="price > 1", rows=[])
OTHERS: dict[str, dict[str, Any]] = {
    "object": {"object": "films"},
    "filter": {"filter": FILTER},
    "sort": {"sort": [Sort("title", descending=True)]},
    "tenant": {"tenant": "acme"},
    "choice of columns": {"columns": ["title"]},
}


@pytest.mark.parametrize("part", OTHERS)
def test_each_part_of_a_query_binds_a_cursor_and_is_named(part: str) -> None:
    text = seal(QUERY, "x")
    with pytest.raises(QueryError, match=f"another {part}$"):
        unseal(text, query_of(PageRequest(**{"object": "books"} | OTHERS[part])), str)


def test_what_moves_no_row_binds_no_cursor() -> None:
    more: dict[str, Any] = {"offset": 20, "limit": 7, "total": False, "cursor": "x"}
    assert query_of(PageRequest(object="books", columns=["b", "a"], **more)) == query_of(
        PageRequest(object="books", columns=["a", "b"])
    )


def test_a_driver_that_goes_by_offset_refuses_any_cursor() -> None:
    cursors.refuse(PageRequest(object="books", offset=3))
    with pytest.raises(QueryError) as caught:
        cursors.refuse(PageRequest(object="books", cursor=""))
    assert caught.value.code == cursors.INVALID


def test_pages_and_exports_do_not_share_positions() -> None:
    export = query_of(ExportRequest(object="books"))
    assert export != query_of(ExportRequest(object="books", form=ExportForm.ROWS))
    with pytest.raises(QueryError):
        unseal(seal(export, "x"), QUERY, str)


def test_a_position_of_another_type_is_refused_under_the_callers_words() -> None:
    text = seal(QUERY, {"rows": 1})
    with pytest.raises(QueryError, match="the checkpoint") as caught:
        unseal(text, QUERY, list[int], what="checkpoint", code="export-not-resumable", hint="export again")
    assert (caught.value.code, caught.value.hint) == ("export-not-resumable", "export again")


def test_every_digit_of_a_position_is_kept() -> None:
    assert unseal(seal(QUERY, [2**70, Decimal("1.10")]), QUERY, tuple[int, Decimal]) == (2**70, Decimal("1.10"))


def test_a_long_position_is_packed_and_bounded() -> None:
    position = "node-1 " * 10_000
    assert len(text := seal(QUERY, position)) < 1_000
    assert unseal(text, QUERY, str) == position
    with pytest.raises(ValueError, match="64,000"):
        seal(QUERY, base64.b85encode(bytes(at * at % 251 for at in range(200_000))).decode() + str([*range(90_000)]))
    with pytest.raises(ValueError, match="characters"):
        seal(QUERY, " " * (2**20 + 1))


def test_a_packed_position_that_unfolds_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = seal(QUERY, "x" * 5_000)
    monkeypatch.setattr(cursors, "_MOST", 1_000)
    with pytest.raises(QueryError, match="longer"):
        unseal(text, QUERY, str)


def test_a_position_that_says_it_is_packed_and_is_not_is_refused() -> None:
    sealed = bytes([len(QUERY)]) + b"".join(cursors._digests(QUERY).values()) + b"\1not packed"
    with pytest.raises(QueryError, match="does not hold a position of this query"):
        unseal(cursors._write(cursors._checksum(sealed) + sealed), QUERY, str)


def test_a_position_needs_few_characters() -> None:
    assert re.fullmatch(r"1[\w-]{80,100}", seal(QUERY, "00000000-0000-4000-8000-000000000001"), re.ASCII)


TIMES = [None, *(TimeRange(column=column, since=since) for column in "ab" for since in (None, "2026-11-23T12:00:00Z"))]


def test_a_cursor_of_another_time_range_is_refused() -> None:
    for kind in (PageRequest, ExportRequest):
        for time in TIMES:
            text = seal(query_of(kind(object="books", time=time)), 1)
            for other in TIMES:
                query = query_of(kind(object="books", time=other))
                if other == time:
                    assert unseal(text, query, int) == 1
                else:
                    with pytest.raises(QueryError, match="another time range"):
                        unseal(text, query, int)


def test_a_cursor_continues_at_its_own_revision_only() -> None:
    assert cursors.revision_of(PageRequest(object="books"), "r1") == "r1"
    assert cursors.revision_of(PageRequest(object="books", revision="r1"), "r1") == "r1"
    with pytest.raises(QueryError, match="another revision") as caught:
        cursors.revision_of(PageRequest(object="books", revision="r2"), "r1")
    assert caught.value.code == cursors.INVALID


def test_an_export_continues_behind_its_own_checkpoint_only() -> None:
    request = ExportRequest(object="books")
    sealed = seal(query_of(request), [7, "x"])
    assert cursors.continued(request, tuple[int, str]) is None
    assert cursors.continued(msgspec.structs.replace(request, checkpoint=sealed), tuple[int, str]) == (7, "x")
    other = ExportRequest(object="other", checkpoint=sealed)
    with pytest.raises(QueryError, match="checkpoint belongs to another object") as caught:
        cursors.continued(other, tuple[int, str])
    assert (caught.value.code, caught.value.hint) == (
        "export-not-resumable",
        "export again, without the checkpoint",
    )
