"""Vectors: how near documents are to one, by `knn` and by the scripts that compare vectors."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.elasticsearch.errors import ServerError, illegal, not_reproduced

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman_sample.fakes.elasticsearch.fields import Field
    from dragoman_sample.fakes.elasticsearch.queries import Clause, Scope
    from dragoman_sample.fakes.elasticsearch.store import Doc

_MEMBERS = {"field", "query_vector", "k", "num_candidates", "filter"}
_SCRIPTS = {
    "double s = cosineSimilarity(params.vector, '{}'); return Double.isNaN(s) ? 0 : s + 2": "cosine",
    "return 1 / (1 + l2norm(params.vector, '{}'))": "l2",
    "double s = dotProduct(params.vector, '{}'); return s < 0 ? 1 / (1 - s) : s + 1": "dot",
}
_NAME = re.compile(r"'([^']+)'")


def check(knn: Any, release: tuple[int, ...]) -> None:
    """Refuse what the parser of `knn` does not take.

    Raises:
        ServerError: As a fault, except for too many candidates.
    """
    if release < (8, 4) or not isinstance(knn, dict):
        raise ServerError("parsing_exception", "Unknown key for a START_OBJECT in [knn].", fault=True)
    if {*knn} - _MEMBERS or {*knn} < _MEMBERS - {"filter"}:
        raise not_reproduced(f"a knn search with {', '.join(knn)}")
    if knn["num_candidates"] > 10_000:
        raise illegal("[num_candidates] cannot exceed [10000]")
    if knn["num_candidates"] < knn["k"]:
        raise illegal("[num_candidates] cannot be less than [k]")


def clause(knn: dict[str, Any], scope: Scope) -> Clause:
    """Compile a `knn` search for one index: the documents with a vector that its filter selects, and their scores."""
    from dragoman_sample.fakes.elasticsearch import queries

    inner, score_of = queries.build(knn.get("filter", {"match_all": {}}), scope), near(knn, scope)
    return replace(inner, test=lambda doc, node: inner.test(doc, node) and score_of(doc) is not None, score_of=score_of)


def near(knn: dict[str, Any], scope: Scope) -> Callable[[Doc], float | None]:
    """Return the score of a document as `knn` gives it; None for one without a vector.

    Raises:
        ServerError: What the shards of this index answer.
    """
    vector, field = knn["query_vector"], _field(knn["field"], scope)
    if field.params.get("index", scope.index.release.parts >= (8, 11)) not in (True, "true"):
        raise illegal(f"to perform knn search on field [{field.path}], its mapping must have [index] set to [true]")
    _check_length(vector, field)
    similarity, byte = field.params.get("similarity", "cosine"), field.params.get("element_type") == "byte"
    if byte and any(number != int(number) for number in vector):
        raise illegal("element_type [byte] vectors only support non-decimal values but found a decimal value")
    if similarity == "cosine" and not any(vector):
        raise illegal("The [cosine] similarity does not support vectors with zero magnitude.")
    if similarity == "dot_product" and not byte and abs(math.hypot(*vector) - 1) > 1e-3:
        raise illegal("The [dot_product] similarity can only be used with unit-length vectors.")

    def score(doc: Doc) -> float | None:
        if (own := _stored(doc, field)) is None:
            return None
        product = _product(vector, own)
        if similarity == "cosine":
            return (1 + product / math.hypot(*vector) / math.hypot(*own)) / 2
        if similarity == "l2_norm":
            return 1 / (1 + math.dist(vector, own) ** 2)
        if similarity == "max_inner_product":
            return 1 / (1 - product) if product < 0 else product + 1
        return 0.5 + product / (32_768 * len(own)) if byte else (1 + product) / 2

    return score


def compared(script: Any, scope: Scope) -> Callable[[Doc], float]:
    """Return the score of a document as a script gives it.

    Raises:
        ServerError: The server has no such language; the script is none that is known here.
    """
    if not scope.cluster.painless:
        raise illegal("script_lang not supported [painless]")
    source, vector = script["source"], script["params"]["vector"]
    if (name := _NAME.search(source)) is None or (kind := _SCRIPTS.get(_NAME.sub("'{}'", source))) is None:
        raise not_reproduced("such a script")
    field = scope.field(name[1])

    def score(doc: Doc) -> float:
        own = _stored(doc, field) if field is not None else None
        if own is None:
            raise ServerError("script_exception", "A document doesn't have a value for a vector field!")
        _check_length(vector, field)
        if kind == "l2":
            return 1 / (1 + math.dist(vector, own))
        product = _product(vector, own)
        if kind == "dot":
            return 1 / (1 - product) if product < 0 else product + 1
        length = math.hypot(*vector) * math.hypot(*own)
        return product / length + 2 if length else 0

    return score


def _field(name: str, scope: Scope) -> Field:
    field = scope.field(name)
    if field is None or field.type != "dense_vector":
        raise illegal(f"[knn] queries are only supported on [dense_vector] fields: [{name}]")
    return field


def _check_length(vector: list[float], field: Any) -> None:
    if len(vector) != (size := int(field.params.get("dims", len(vector)))):
        raise illegal(
            f"The query vector has a different number of dimensions [{len(vector)}] than the document vectors [{size}]."
        )


def _stored(doc: Doc, field: Any) -> list[float] | None:
    values = doc.node.values.get(field.path)
    return [float(number) for number in json.loads(values[0])] if values else None


def _product(first: list[float], second: list[float]) -> float:
    return sum(number * other for number, other in zip(first, second, strict=True))
