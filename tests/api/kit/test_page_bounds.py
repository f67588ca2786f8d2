"""Bounds of a page: both drivers refuse what a server would answer wrongly."""

from __future__ import annotations

import pytest

from dragoman_api import PageRequest
from dragoman_api.errors import QueryError
from dragoman_api.kit.page_columns import check_bounds


@pytest.mark.parametrize(("offset", "limit"), [(-1, 1), (0, 0), (0, -1)])
def test_a_page_before_the_first_row_or_without_rows_is_refused(offset, limit):
    with pytest.raises(QueryError, match=rf"not {offset} and {limit}$"):
        check_bounds(PageRequest(object="books", offset=offset, limit=limit))


def test_the_first_row_alone_is_a_page():
    check_bounds(PageRequest(object="books", offset=0, limit=1))
