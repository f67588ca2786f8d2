"""The data: collections, their tenants and shards, and the objects in them."""

from __future__ import annotations

import time
import uuid
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass
class Stored:
    """One object, with its properties in the form in which they come back.

    Attributes:
        noted: The properties of which the index knows whether the object has a value: those that the class had when the
            object was made, and those that it was given since.
    """

    id: str
    doc: int
    properties: dict[str, Any]
    vector: list[float] | None
    vectors: dict[str, Any]
    created: int
    updated: int
    tenant: str = ""
    noted: frozenset[str] = frozenset()


@dataclass
class Shard:
    """Objects of one shard; `version` changes with every write, so that an index knows when it is out of date."""

    objects: dict[str, Stored] = field(default_factory=dict)
    version: int = 0
    documents: int = 0
    buckets: dict[tuple[str, str], tuple[int, Any]] = field(default_factory=dict)
    _sorted: tuple[int, list[str]] = (-1, [])

    def ids(self) -> list[str]:
        """Return the ids in the order of their bytes."""
        if self._sorted[0] != self.version:
            self._sorted = (self.version, sorted(self.objects))
        return self._sorted[1]

    def after(self, last: str, limit: int) -> list[Stored]:
        """Return the next objects after an id, which need not exist."""
        ids = self.ids()
        start = bisect_right(ids, last)
        return [self.objects[object_id] for object_id in ids[start : start + limit]]

    def put(self, item: Stored, properties: Iterable[str]) -> None:
        """Store an object of a class with these properties under a document number of its own."""
        old = self.objects.get(item.id)
        item.noted = (old.noted if old else frozenset(properties)) | item.properties.keys()
        item.doc = self.documents
        self.documents += 1
        self.objects[item.id] = item
        self.version += 1

    def remove(self, identifier: str) -> None:
        """Remove an object, if it is there."""
        if self.objects.pop(identifier, None):
            self.version += 1


@dataclass
class Collection:
    """A class: its definition as the schema shows it, and its shards; with tenants, one shard for each."""

    definition: dict[str, Any]
    shards: list[Shard]
    tenants: dict[str, str] = field(default_factory=dict)
    of_tenant: dict[str, Shard] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the class name."""
        return str(self.definition["class"])

    @property
    def has_tenants(self) -> bool:
        """Tell whether every object belongs to a tenant."""
        return bool(self.definition["multiTenancyConfig"]["enabled"])

    @property
    def properties(self) -> dict[str, dict[str, Any]]:
        """Return the properties by name."""
        return {definition["name"]: definition for definition in self.definition["properties"] or ()}

    @property
    def named_vectors(self) -> dict[str, Any]:
        """Return the configuration of the named vectors, if there are any."""
        return dict(self.definition.get("vectorConfig") or {})

    def parts(self, tenant: str) -> list[Shard]:
        """Return the shards that a request reads."""
        return [self.of_tenant[tenant]] if self.has_tenants else self.shards

    def shard_of(self, identifier: str, tenant: str) -> Shard:
        """Return the shard of an object."""
        if self.has_tenants:
            return self.of_tenant[tenant]
        # The real server's hash sends an id to a shard of its own choosing; that they are spread is what matters.
        return self.shards[uuid.UUID(identifier).int % 2_147_483_647 % len(self.shards)]

    def find(self, identifier: str, tenant: str) -> Stored | None:
        """Return an object."""
        return self.shard_of(identifier, tenant).objects.get(identifier)

    def indexes(self, name: str) -> bool:
        """Tell whether the inverted index keeps `NullState`, `PropertyLength` or `Timestamps`."""
        return bool(self.definition["invertedIndexConfig"].get(f"index{name}"))


@dataclass
class Database:
    """Everything one server holds."""

    collections: dict[str, Collection] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    schema_version: int = 0
    types: tuple[int, Any] | None = None
    _clock: int = 0

    def resolve(self, name: str) -> Collection | None:
        """Find a class by name, whose first letter may be small, or by alias."""
        name = name[:1].upper() + name[1:]
        return self.collections.get(self.aliases.get(name, name))

    def everywhere(self) -> Iterator[Collection]:
        """Return all classes."""
        yield from self.collections.values()

    def now(self) -> int:
        """Return the time in milliseconds, later than at every call before."""
        self._clock = max(self._clock + 1, time.time_ns() // 1_000_000)
        return self._clock
