"""Collections that are made for a load: only with columns that every collection has."""

from __future__ import annotations

import pytest

from dragoman_api import QueryError
from dragoman_api.changes import NewColumn, NewObject
from dragoman_api.columns import ColumnKind
from dragoman_chroma.writing import plan_creation


def test_a_collection_is_made_only_with_columns_that_it_has_from_the_start():
    own = [NewColumn("document", ColumnKind.TEXT), NewColumn("sku", ColumnKind.TEXT, is_id=True)]
    [planned] = plan_creation("/c", "books", NewObject("books", columns=own)).planned
    assert (planned.request.path, planned.request.body) == ("/c", '{"name":"books"}')
    with pytest.raises(QueryError, match="a new collection has no column 'year'"):
        plan_creation("/c", "books", NewObject("books", columns=[*own, NewColumn("year", ColumnKind.INTEGER)]))
