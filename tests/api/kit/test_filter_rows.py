"""Filter rows: one row that cannot run refuses the filter, and every refusal says which row, column and reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import CompiledFilter, Filter, FilterNotSupportedError, FilterRequest, QueryError, RawQuery
from dragoman_api import Operator as Op
from dragoman_api.errors import ObjectChangedError
from dragoman_api.json_text import encode
from dragoman_api.kit.filter_rows import body_of, compile_rows
from dragoman_api.remedies import Remedy, RemedyKind

ROWS = st.builds(Filter, st.sampled_from("abc"), st.sampled_from(Op), st.text(max_size=5)) | st.builds(
    RawQuery, st.text(max_size=5)
)


def compiled(rows, bad, match="all"):
    def one(number, row):
        if number in bad:
            raise ValueError(f"reason {number}")
        return number, row

    return compile_rows(FilterRequest(object="t", rows=rows, match=match), one, hint=lambda row: f"try {row}")


@given(st.lists(ROWS, min_size=1, max_size=5), st.sets(st.integers(0, 4)), st.sampled_from(["all", "any"]))
def test_a_filter_has_all_its_rows_or_is_refused(rows, bad, match):
    refused = sorted(number for number in bad if number < len(rows))
    if not refused:
        assert compiled(rows, bad, match) == list(enumerate(rows))
        return
    with pytest.raises(FilterNotSupportedError) as caught:
        compiled(rows, bad, match)
    first = rows[refused[0]]
    about = ("Raw SQL", None) if isinstance(first, RawQuery) else (first.column, str(first.op))
    details = caught.value.details
    assert details["row"] == refused[0]
    assert (details["column"], details["operator"]) == about
    assert details["reason"] == f"reason {refused[0]}"
    assert caught.value.hint == f"try {first}"
    assert all(f"reason {number}" in caught.value.message for number in refused)


@pytest.mark.parametrize(
    ("value", "typed"),
    [
        (["last 24h"], " last 24h"),
        ([1, None, True], " 1,null,true"),
        (False, " false"),
        (None, ""),
        ([], ""),
        ("a b", " a b"),
        ("x" * 200, " " + "x" * 200),
        ("x" * 201, " " + "x" * 200 + "…"),
        (0, " 0"),
    ],
)
def test_a_refused_row_is_shown_as_a_person_types_it(value, typed):
    with pytest.raises(FilterNotSupportedError) as caught:
        compiled([Filter("a", "in", value)], {0})
    assert caught.value.message == f"'a in{typed}': reason 0; nothing was sent"


def test_a_filter_without_rows_and_an_unknown_match_are_refused():
    for rows, match in (([], "all"), ([Filter("a", "=", 1)], "some"), ([Filter("a", "=", 1)], "")):
        with pytest.raises(FilterNotSupportedError):
            compiled(rows, set(), match)


def test_a_refusal_of_several_rows_has_the_remedies_of_the_first():
    remedies = {name: Remedy(RemedyKind.DESCRIBE_OBJECT, {"object": name}) for name in "ab"}
    request = FilterRequest(object="t", rows=[Filter("a", "=", 1), Filter("b", "=", 1)])

    def refuse(number, row):
        raise ValueError(f"reason {number}")

    with pytest.raises(FilterNotSupportedError) as caught:
        compile_rows(request, refuse, hint=lambda row: remedies[row.column])
    assert caught.value.remedies == (remedies["a"],)


def test_a_compiled_filter_of_a_name_in_other_letters_is_of_another_object():
    with pytest.raises(QueryError):
        body_of(CompiledFilter(object="t", body="{}", rows=[]), dict[str, int], object="T")


def test_a_compiled_filter_of_other_columns_is_not_used():
    compiled = CompiledFilter(object="t", body="{}", rows=[], revision="1")
    assert body_of(compiled, dict[str, int], object="t", revision="1") == {}
    assert body_of(compiled, dict[str, int], object="t") == {}
    for revision in ("2", ""):
        with pytest.raises(ObjectChangedError, match="compiled"):
            body_of(compiled, dict[str, int], object="t", revision=revision)


@given(st.text(), st.text(), st.dictionaries(st.text(), st.integers()))
def test_a_compiled_filter_is_used_for_its_object_only(made, asked, form):
    compiled = CompiledFilter(object=made, body=encode(form), rows=[])
    if made == asked:
        assert body_of(compiled, dict[str, int], object=asked) == form
    else:
        with pytest.raises(QueryError):
            body_of(compiled, dict[str, int], object=asked)
    assert body_of(None, dict[str, int], object=asked) is None
