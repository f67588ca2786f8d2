"""A search for what is near to a vector or to an object: every distance is measured, where the server has an index."""

from __future__ import annotations

import struct
from math import sqrt
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate.errors import InvalidError, not_reproduced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_sample.fakes.weaviate.clauses import Clause
    from dragoman_sample.fakes.weaviate.store import Collection, Stored

_FAILED = "explorer: get class: "
_SEARCH = f"{_FAILED}concurrentTargetVectorSearch): {_FAILED}"
_ONE = f"{_FAILED}validate target vector: multiple vectorizers configuration found, please specify target vector name"


class VectorError(InvalidError):
    """There is nothing that objects could be near to."""


def rows(
    collection: Collection, tenant: str, arguments: dict[str, Any], where: Clause | None
) -> list[tuple[Stored, float | None]]:
    """Return the objects of a filter, the nearest first, with their distances; those without a vector are left out.

    Raises:
        VectorError: the server answers this error in place of the class.
    """
    if "nearVector" in arguments and "nearObject" in arguments:
        raise not_reproduced("nearVector beside nearObject")
    search = arguments.get("nearVector") or arguments["nearObject"]
    names = search.get("targetVectors") or []
    if len(names) > 1:
        raise not_reproduced("several target vectors")
    name = names[0] if names else ""
    if collection.named_vectors and not name:
        raise VectorError(_ONE)
    shards = collection.parts(tenant)
    if name and name not in collection.named_vectors:
        at = f"vector search: object vector search at index {collection.name.lower()}: shard "
        at += f"{collection.name.lower()}_shard: "
        raise VectorError(f'{_SEARCH}{at}index for target vector "{name}" not found')
    origin = search["vector"] if "nearVector" in arguments else _vector_of(collection, tenant, search["id"], name)
    if not origin:
        raise not_reproduced("an empty vector, near which the server finds any objects")
    distances: list[tuple[Stored, float]] = []
    for shard in shards:
        documents = where.documents(collection, shard, limit=0) if where is not None else None
        for item in shard.objects.values():
            vector = _vector(item, name)
            if vector and (documents is None or item.doc in documents):
                if len(vector) != len(origin):
                    at = f"vector search: object vector search at index {collection.name.lower()}: shard "
                    at += (
                        f"{collection.name.lower()}_shard: vector search: knn search: distance between entrypoint and "
                    )
                    lengths = f"query node: {len(vector)} vs {len(origin)}: vector lengths don't match"
                    raise VectorError(f"{_SEARCH}{at}{lengths}")
                distances.append((item, _cosine(vector, origin)))
    return [*sorted(distances, key=lambda pair: pair[1])]


def _vector(item: Stored, name: str) -> Any:
    return item.vectors.get(name) if name else item.vector


def _vector_of(collection: Collection, tenant: str, identifier: str, name: str) -> list[float]:
    item = collection.find(identifier, tenant)
    at = f"{_SEARCH}vectorize search vector: nearObject params: "
    if item is None or (name and not item.vectors.get(name)):
        raise VectorError(f"{at}vector not found" + (f" for target: {name}" if name else ""))
    vector = _vector(item, name)
    if not vector:
        raise VectorError(f"{at}nearObject search-object with id {identifier} has no vector")
    return list(vector)


def _cosine(vector: Sequence[float], other: Sequence[float]) -> float:
    """Return the distance that is the default, as a float of 32 bits."""
    lengths = sqrt(sum(number * number for number in vector)) * sqrt(sum(number * number for number in other))
    product = sum(a * b for a, b in zip(vector, other, strict=True))
    distance: float = struct.unpack("<f", struct.pack("<f", 1 - product / lengths if lengths else 1.0))[0]
    return max(distance, 0.0)
