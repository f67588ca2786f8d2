"""Rows near a vector: which column of vectors is meant, and the page of what a server found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman_api.columns import Column, ColumnKind, Note, Written
from dragoman_api.errors import QueryError, UnsupportedOperationError
from dragoman_api.grid import DISTANCE, Page

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dragoman_api.grid import SimilarRequest

MISSED = Note(code="nearest-approximate", reason="the server's index of vectors may miss rows that are near")
"""For a server whose index finds nearly all near rows."""


def vector_column(request: SimilarRequest, columns: Iterable[Column]) -> tuple[Column, str]:
    """Return the column of vectors that a request means, and the name of one of its several vectors, or an empty text.

    >>> from dragoman_api.grid import SimilarRequest
    >>> shapes = Column(name="shapes", type="vectors", members=("front", "side"), dimensions=0)
    >>> vector_column(SimilarRequest(object="films", column="shapes.side", text="round"), [shapes])[1]
    'side'

    Raises:
        UnsupportedOperationError: The object has no column of vectors.
        QueryError: There is no such column of vectors, or none is named and there are several.
    """
    choices = {
        f"{column.name}.{member}" if member else column.name: (column, member)
        for column in columns
        if column.dimensions is not None
        for member in column.members or ("",)
    }
    if not choices:
        raise UnsupportedOperationError(f"{request.object!r} has no vectors, by which rows are similar")
    name = request.column if request.column is not None or len(choices) > 1 else next(iter(choices))
    if name in choices:
        return choices[name]
    names = ", ".join(choices)
    if name is None:
        hint = f"name one of them: {names}"
        raise QueryError(f"{request.object!r} has several vectors, and none was named", hint=hint)
    reason = f"{request.object!r} has no vectors of the name {name!r}"
    raise QueryError(reason, hint=f"its vectors: {names}", details={"column": name})


def check_length(request: SimilarRequest, dimensions: int | None) -> None:
    """Refuse a vector of another length than the column's; 0 and None for any.

    Raises:
        QueryError: It has another length.
    """
    if dimensions and request.vector is not None and len(request.vector) != dimensions:
        raise QueryError(f"the vectors of {request.object!r} have {dimensions:,} numbers, not {len(request.vector):,}")


def nearest(request: SimilarRequest, page: Page, distances: Sequence[float], names: Iterable[str]) -> Page:
    """Return a page of similar rows: without the row that they are similar to, and with the distances as a column.

    A server that is asked for the rows near a row finds that row, too: ask for one more than `SimilarRequest.limit`.

    Args:
        request: The request.
        page: The rows, in the server's order, with their keys.
        distances: The distance of each.
        names: All columns of the object, also those that the page lacks.

    Raises:
        QueryError: The server found more rows than that.
    """
    limit = request.limit + (request.key is not None)
    if len(distances) > limit:
        raise QueryError(f"the server's answer is wrong: it has {len(distances):,} rows, and {limit:,} were asked for")
    column_names, name = {*names}, DISTANCE
    while name in column_names:
        name = f"_{name}"
    column = Column(name=name, type="distance", kind=ColumnKind.FLOAT, written=Written.NEVER)
    origin = None if request.key is None else (request.key.id, request.key.routing)
    order = sorted(range(len(distances)), key=lambda at: distances[at])
    places = [at for at in order if (page.keys[at].id, page.keys[at].routing) != origin][: request.limit]
    return replace(
        page,
        columns=[*page.columns, column],
        cells=[[*page.cells[at], distances[at]] for at in places],
        keys=[page.keys[at] for at in places],
    )
