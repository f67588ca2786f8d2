"""Rows near a row or a vector: by the server's index of vectors, else by a script that compares every vector.

What the scores are is measured for `knn`, and documented for the functions of scripts:
https://www.elastic.co/guide/en/elasticsearch/reference/current/dense-vector.html#dense-vector-similarity and
https://www.elastic.co/guide/en/elasticsearch/reference/current/query-dsl-script-score-query.html#vector-functions
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from msgspec import Raw
from msgspec.structs import replace

from dragoman_api import Note, PageRequest
from dragoman_api.errors import QueryError, UnsupportedOperationError
from dragoman_api.kit import similar_rows
from dragoman_querydsl.columns.mapping import SPACES
from dragoman_querydsl.protocol import target
from dragoman_querydsl.search import READ, search

from .cells import CellReader
from .pages import nested_names, page_query, stored_hit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dragoman_api import Page
    from dragoman_api.grid import SimilarRequest
    from dragoman_api.kit.exchanges import Exchange
    from dragoman_querydsl.columns.field_types import Field, VectorMapping
    from dragoman_querydsl.columns.grid_columns import View
    from dragoman_querydsl.protocol import Dialect

COSINE, EUCLIDEAN, DOT, PRODUCT = "cosine", "l2_norm", "dot_product", "max_inner_product"
"""What the server calls the ways to compare vectors; `dot_product` is for vectors of length 1, or of bytes."""

MEASURES = {
    COSINE: "distances are cosine distances, 1 - cosine: 0 for the same direction, 2 for the opposite one",
    EUCLIDEAN: "distances are Euclidean, the square root of the sum of squared differences: 0 for equal vectors",
    DOT: "distances are negative dot products: the smaller, the nearer",
    PRODUCT: "distances are negative dot products: the smaller, the nearer",
}
"""What the distances are, for people."""

_SCRIPTS = {
    COSINE: "double s = cosineSimilarity(params.vector, {}); return Double.isNaN(s) ? 0 : s + 2",
    EUCLIDEAN: "return 1 / (1 + l2norm(params.vector, {}))",
    DOT: "double s = dotProduct(params.vector, {}); return s < 0 ? 1 / (1 - s) : s + 1",
}
"""A score must not be negative. The cosine of a vector of zeros is no number: it gets a score below all others."""
_TINY = 1e-45  # the smallest score above 0
_LEAST = 0.5  # the score that every row with a cosine exceeds
_OFF = ("script_lang not supported", "cannot execute", "search.allow_expensive_queries")
"""What the server says if it runs no such script."""

_CANDIDATES, _MOST_CANDIDATES = 100, 10_000  # of each shard; the server takes no more
_TIMES = 4  # more candidates than rows, of which the server returns the nearest
_QUANTIZED = Note(
    code="distance-approximate",
    reason="the index of vectors keeps fewer digits (quantization): distances, and the order of rows that are about as "
    "near, may be slightly wrong",
)
_HINT = "index the vectors (8.4 or newer), or let the cluster run painless scripts"


def similar(request: SimilarRequest, view: View, dialect: Dialect, *, preference: str) -> Exchange[Page]:
    """Find the rows nearest to a row or a vector.

    Raises:
        RowNotFoundError: The row is gone.
        UnsupportedOperationError: There are no vectors, a text is given, the server cannot compare these vectors, or
            runs no scripts where it needs one.
        QueryError: It is not clear which vectors are meant, the row has none, or the vector does not fit.
    """
    column, _ = similar_rows.vector_column(request, view.columns.values())
    field = view.fields[column.name]
    mapping = _comparable(field)
    if request.text is not None:
        reason = f"the server makes no vector of a text for a column of type {field.type}"
        raise UnsupportedOperationError(reason, hint="give the vector of the text")
    similar_rows.check_length(request, field.dimensions)
    vector = request.vector or (yield from _vector_of(request, view, field))
    limit = request.limit + (request.key is not None)  # the row itself is found, too
    rows = PageRequest(
        object=request.object, columns=request.columns, filter=request.filter, time=request.time, limit=limit
    )
    query = page_query(rows, view, dialect, window=limit, preference=preference)
    indexed = dialect.finds_near and mapping.indexed and not field.partial
    if indexed or dialect.nears_by_clause:
        measure, distance = _by_index(mapping, len(vector))
        body = (_near if indexed else _scored)(field, vector, query.query, limit, dialect)
    else:
        measure, distance = _by_script(mapping)
        body = _compare(field, vector, query.query, measure)
    if measure == COSINE and not any(vector):
        raise QueryError("a vector of zeros has no direction, by which rows are near", details={"column": column.name})
    path = f"/{target(request.object)}/_search?allow_partial_search_results=false&preference={preference}"
    try:
        answer = yield from search(path, {**body, "size": limit, "track_total_hits": False, **query.options()}, READ)
    except QueryError as error:
        if indexed or not any(words in error.message for words in _OFF):
            raise
        cause = "that searches take" if mapping.indexed else "of these vectors"
        reason = f"there is no index {cause}, and the server runs no script that compares them: {error.message}"
        raise UnsupportedOperationError(reason, hint=_HINT) from error
    key = request.key
    origin = (key.object, key.text, key.routing) if key is not None else None
    hits = [hit for hit in answer.hits.hits if (hit.index, hit.id, hit.routing) != origin][: request.limit]
    if any(hit.score is None for hit in hits):
        raise QueryError("the server's answer is wrong: a row has no score")
    notes = [Note(code="distance-measure", reason=MEASURES[measure]), *answer.notes()]
    if indexed:
        notes += [similar_rows.MISSED, *([_QUANTIZED] if mapping.quantized else ())]
    page = query.page_of(hits, notes, None)
    distances = [distance(hit.score or 0.0) for hit in hits]
    return similar_rows.nearest(replace(request, key=None, text=None, vector=vector), page, distances, view.columns)


def _comparable(field: Field) -> VectorMapping:
    """Return how the vectors of a field are kept; refuse those that one search cannot compare."""
    reason = ""
    if field.nested:
        reason = f"the vectors of {field.name!r} are in a nested array, so that a row has several"
    elif field.conflict or len({(mapping.similarity, mapping.bytes) for mapping in field.vectors}) != 1:
        reason = f"the indices behind this name keep and compare the vectors of {field.name!r} in different ways"
    if reason:
        raise UnsupportedOperationError(reason, hint="ask for the rows of one index")
    first = field.vectors[0]
    return first._replace(
        indexed=all(mapping.indexed for mapping in field.vectors),
        quantized=any(mapping.quantized for mapping in field.vectors),
    )


def _vector_of(request: SimilarRequest, view: View, field: Field) -> Exchange[list[float]]:
    key = request.key
    assert key is not None
    hit = yield from stored_hit(key)
    if hit.source is None:
        raise QueryError("the index does not keep documents (_source), so the row's vector cannot be read")
    value = CellReader([field], nested_names(view)).columns([hit])[0][0]
    if not isinstance(value, list) or not value:
        raise QueryError(f"the row {key.text!r} has no vector {field.name!r}", details={"column": field.name})
    return [float(bytes(number)) if isinstance(number, Raw) else number for number in value]


def _near(field: Field, vector: Sequence[float], query: Raw, limit: int, dialect: Dialect) -> dict[str, Any]:
    candidates = min(_MOST_CANDIDATES, max(_CANDIDATES, _TIMES * limit))
    if dialect.nears_by_clause:
        return {"query": {"knn": {field.field: {"vector": vector, "k": candidates, "filter": query}}}}
    return {
        "knn": {
            "field": field.field, "query_vector": vector, "k": limit, "num_candidates": candidates, "filter": query,
        }
    }  # fmt: skip


def _scored(field: Field, vector: Sequence[float], query: Raw, _limit: int, _dialect: Dialect) -> dict[str, Any]:
    """Compare all vectors by the script of the k-NN plugin, whose scores are those of its index."""
    space = next(space for space, measure in SPACES.items() if measure == field.vectors[0].similarity)
    having = {"bool": {"filter": [query, {"exists": {"field": field.field}}]}}
    params = {"field": field.field, "query_value": vector, "space_type": space}
    return {
        "query": {"script_score": {"query": having, "script": {"lang": "knn", "source": "knn_score", "params": params}}}
    }


def _compare(field: Field, vector: Sequence[float], query: Raw, measure: str) -> dict[str, Any]:
    having = {"bool": {"filter": [query, {"exists": {"field": field.field}}]}}
    name = field.field.replace("\\", "\\\\").replace("'", "\\'")
    script = {"source": _SCRIPTS[measure].format(f"'{name}'"), "params": {"vector": vector}}
    least = {"min_score": _LEAST} if measure == COSINE else {}
    return {"query": {"script_score": {"query": having, "script": script, **least}}}


def _by_index(mapping: VectorMapping, dimensions: int) -> tuple[str, Callable[[float], float]]:
    """Return the measure of an index, and what turns its scores into distances."""
    measure = mapping.similarity or COSINE
    if measure == EUCLIDEAN:
        return measure, lambda score: math.sqrt(max(0.0, 1 / max(score, _TINY) - 1))
    if measure == DOT and mapping.bytes:
        return measure, lambda score: (0.5 - score) * 32_768 * dimensions
    if measure == DOT:
        return measure, lambda score: 1 - 2 * score
    if measure == PRODUCT:
        return measure, _product
    if measure != COSINE:
        raise UnsupportedOperationError(f"the index compares vectors by {measure}, which this driver does not know")
    return measure, lambda score: max(0.0, 2 - 2 * score)


def _by_script(mapping: VectorMapping) -> tuple[str, Callable[[float], float]]:
    """Return the measure of a script, and what turns its scores into distances."""
    if mapping.similarity == EUCLIDEAN:
        return EUCLIDEAN, lambda score: max(0.0, 1 / max(score, _TINY) - 1)
    if mapping.similarity in (DOT, PRODUCT):
        return DOT, _product
    return COSINE, lambda score: max(0.0, 3 - score)


def _product(score: float) -> float:
    return 1 / max(score, _TINY) - 1 if score < 1 else 1 - score
