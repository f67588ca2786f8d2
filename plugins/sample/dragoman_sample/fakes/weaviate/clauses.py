"""A filter that has been understood: what each clause reads from the index, and where it stops too early."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate.errors import InvalidError, not_reproduced
from dragoman_sample.fakes.weaviate.index import bucket, has_length
from dragoman_sample.fakes.weaviate.store import Collection
from dragoman_sample.fakes.weaviate.tokens import like, like_prefix

if TYPE_CHECKING:
    from dragoman_sample.fakes.weaviate.index import Bucket
    from dragoman_sample.fakes.weaviate.store import Shard

_COMPARISONS = {"GreaterThan", "GreaterThanEqual", "LessThan", "LessThanEqual"}


@dataclass
class Found:
    """Documents, or with `deny` all but these."""

    documents: set[int]
    deny: bool = False


class Clause:
    """One node of a filter."""

    def documents(self, collection: Collection, shard: Shard, *, limit: int) -> set[int]:
        """Return the documents that match, or enough of them for a limit that is not 0.

        Raises:
            InvalidError: an index is missing.
        """
        try:
            result = self.resolve(collection, shard, limit)
        except InvalidError as reason:
            raise InvalidError(f"resolve doc ids for prop/value pair: {reason}") from None
        if result.deny:
            return {item.doc for item in shard.objects.values()} - result.documents
        return result.documents

    def resolve(self, collection: Collection, shard: Shard, limit: int) -> Found:
        """Return the documents of this node; only a node without siblings may stop at the limit."""
        raise NotImplementedError


@dataclass
class Leaf(Clause):
    """A comparison with one key of one index."""

    operator: str
    kind: str
    name: str
    key: Any
    definition: dict[str, Any] = field(default_factory=dict)

    def resolve(self, collection: Collection, shard: Shard, limit: int) -> Found:
        """Read the keys; this is where a limit makes a filter stop before everything was seen."""
        self._check_index(collection)
        rows = bucket(collection, shard, self.kind, self.name)
        only_ranges = bool(
            self.kind == "value" and self.definition.get("indexRangeFilters") and not self.definition["indexFilterable"]
        )
        if self.operator == "NotEqual":
            if only_ranges:  # knows nothing of documents without a value
                return Found(rows.read(rows.keys, 0) - rows.equal(self.key))
            return Found(rows.equal(self.key), deny=True)
        if self.operator in ("Equal", "IsNull"):
            return Found(rows.equal(self.key))
        if self.operator in _COMPARISONS:
            ranges = self.kind == "value" and self.definition.get("indexRangeFilters")
            return Found(rows.read(rows.compared(self.operator, self.key), 0 if ranges else limit))
        if self.operator == "Like":
            return Found(self._like(rows, limit))
        raise not_reproduced(f"operator {self.operator} here")

    def _like(self, rows: Bucket, limit: int) -> set[int]:
        pattern = like(self.key)
        prefix = like_prefix(self.key)
        keys = (key for key in rows.keys if key.startswith(prefix) and pattern.match(key))
        return rows.read(keys, limit)

    def _check_index(self, collection: Collection) -> None:
        if self.kind == "length" and not collection.indexes("PropertyLength"):
            raise InvalidError(
                "Property length must be indexed to be filterable! add `IndexPropertyLength: true` to the"
                f" invertedIndexConfig in {collection.name}.  Geo-coordinates, phone numbers and data blobs are not"
                " supported by property length."
            )
        if self.kind == "null" and not collection.indexes("NullState"):
            raise InvalidError(
                "Nullstate must be indexed to be filterable! Add `indexNullState: true` to the invertedIndexConfig"
            )
        if self.kind == "time" and not collection.indexes("Timestamps"):
            raise InvalidError(
                "Timestamps must be indexed to be filterable! Add `IndexTimestamps: true` to the InvertedIndexConfig in"
                f" {collection.name}"
            )
        missing = self.kind == "length" and not has_length(self.definition["dataType"][0])
        if missing or (self.kind in ("null", "length") and not is_indexed(self.definition)):
            suffix = {"null": "nullState", "length": "propertyLength"}[self.kind]
            raise InvalidError(f"bucket for prop {self.name}_{suffix} not found - is it indexed?")


@dataclass
class Compound(Clause):
    """And, Or or Not over other clauses."""

    operator: str
    children: Sequence[Clause]

    def resolve(self, collection: Collection, shard: Shard, limit: int) -> Found:
        """Combine; two or more children, and the one of a Not, are read without a limit."""
        if self.operator == "Not":
            if len(self.children) > 1:
                raise InvalidError(f'too many children for operator "Not". Expected 1, given {len(self.children)}')
            try:
                inner = self.children[0].resolve(collection, shard, 0)
            except InvalidError as reason:
                raise InvalidError(f"nested NOT query: {reason}") from None
            return Found(inner.documents, deny=not inner.deny)
        if len(self.children) == 1:
            return self.children[0].resolve(collection, shard, limit)
        parts, wrong = [], []
        for position, child in enumerate(self.children):
            try:
                parts.append(child.resolve(collection, shard, 0))
            except InvalidError as reason:
                wrong.append(f"nested child {position}: {reason}")
        if wrong:
            raise InvalidError("nested AND/OR query: " + ", ".join(wrong))
        merge = _both if self.operator == "And" else _either
        result = parts[0]
        for part in parts[1:]:
            result = merge(result, part)
        return result


def _both(left: Found, right: Found) -> Found:
    if left.deny and right.deny:
        return Found(left.documents | right.documents, deny=True)
    if left.deny or right.deny:
        allow, deny = (right, left) if left.deny else (left, right)
        return Found(allow.documents - deny.documents)
    return Found(left.documents & right.documents)


def _either(left: Found, right: Found) -> Found:
    opposite = _both(Found(left.documents, deny=not left.deny), Found(right.documents, deny=not right.deny))
    return Found(opposite.documents, deny=not opposite.deny)


_NEAREST = 800


@dataclass
class Within(Clause):
    """A circle around a place."""

    name: str
    latitude: float
    longitude: float
    metres: float

    def resolve(self, collection: Collection, shard: Shard, limit: int) -> Found:
        """Measure every distance; the index of a shard returns the nearest ones only."""
        places = ((item, item.properties.get(self.name)) for item in shard.objects.values())
        far = sorted((self._distance(place), item.doc) for item, place in places if place)
        return Found({doc for distance, doc in far[:_NEAREST] if distance <= self.metres})

    def _distance(self, place: dict[str, float]) -> float:
        latitude, longitude = struct.unpack("ff", struct.pack("ff", self.latitude, self.longitude))
        own_latitude, other_latitude = math.radians(latitude), math.radians(place["latitude"])
        across = math.radians(place["longitude"] - longitude)
        half = (
            math.sin((other_latitude - own_latitude) / 2) ** 2
            + math.cos(own_latitude) * math.cos(other_latitude) * math.sin(across / 2) ** 2
        )
        return 2 * 6_371_000 * math.asin(math.sqrt(half))


@dataclass
class Referring(Clause):
    """A clause on the objects that a property refers to."""

    name: str
    inner: Clause
    target: Callable[[], Collection]

    def resolve(self, collection: Collection, shard: Shard, limit: int) -> Found:
        """Find the targets, then those that refer to one of them."""
        target, suffixes = self.target(), set()
        for part in target.shards:
            documents = self.inner.documents(target, part, limit=0)
            suffixes |= {f"/{item.id}" for item in part.objects.values() if item.doc in documents}
        numbers = set()
        for item in shard.objects.values():
            if any(part["beacon"][-37:] in suffixes for part in item.properties.get(self.name) or ()):
                numbers.add(item.doc)
        return Found(numbers)


def is_indexed(definition: dict[str, Any]) -> bool:
    """Tell whether a property has any inverted index."""
    return any(definition.get(name) for name in ("indexFilterable", "indexSearchable", "indexRangeFilters"))
