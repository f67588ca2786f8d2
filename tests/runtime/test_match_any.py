"""Columns that do not combine by any: alone or under all they are free, beside another row they are refused."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from dragoman.sessions.driver_calls import check_any, excluded
from dragoman_api import Filter, FilterNotSupportedError, FilterRequest, RawQuery
from dragoman_api.columns import Column, Description

TAG, OTHER, RAW = Filter("host", "=", "a"), Filter("load", ">", 1), RawQuery("x")


def column(name, **reasons):
    return Column(name=name, type="text", reasons=reasons)


def test_only_a_reason_against_any_excludes_a_column():
    columns = [column("host", any="a tag"), column("load", sort="no index"), column("rack", any="another tag")]
    assert excluded(Description(object="cpu", columns=columns)) == {"host": "a tag", "rack": "another tag"}


@pytest.mark.parametrize(
    ("rows", "match", "refused"),
    [
        ([TAG], "any", None),
        ([TAG, OTHER], "all", None),
        ([OTHER, OTHER], "any", None),
        ([RAW, OTHER], "any", None),
        ([TAG, OTHER], "any", 0),
        ([OTHER, TAG], "any", 1),
        ([RAW, OTHER, TAG], "any", 2),
    ],
)
def test_an_excluded_column_is_refused_beside_another_row(rows, match, refused):
    request = FilterRequest(object="cpu", rows=rows, match=match)
    with nullcontext() if refused is None else pytest.raises(FilterNotSupportedError) as caught:
        check_any(request, {"host": "a tag"})
    if refused is not None:
        assert caught.value.message.startswith(f"filter row {refused + 1}: host does not combine")
        assert caught.value.details == {"row": refused, "column": "host", "operator": "=", "reason": "a tag"}
        assert caught.value.hint
