"""The schema as the server writes it: collections and their properties."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

_COLLECTION = re.compile(r"[A-Za-z][_0-9A-Za-z]{0,254}")
_PROPERTY = re.compile(r"[_A-Za-z][_0-9A-Za-z]{0,230}")

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A count, or a time in milliseconds; anything else in an answer is invalid."""


def is_collection(name: str) -> bool:
    """Return whether a text can be a collection's name; nothing else may go into a path or a query."""
    return _COLLECTION.fullmatch(name) is not None


class PropertyBase(msgspec.Struct, rename="camel"):
    """The common part of properties and keys of objects."""

    name: str
    data_type: list[str] = []
    nested_properties: list[Nested] | None = None

    @property
    def nested(self) -> list[Nested]:
        """The keys of an object."""
        return self.nested_properties or []

    @property
    def odd(self) -> list[str]:
        """The invalid names in it: its own, those of its keys, and those of collections it refers to."""
        names = [] if _PROPERTY.fullmatch(self.name) else [self.name]
        names += [type_name for type_name in self.data_type if not is_collection(type_name.removesuffix("[]"))]
        return [*names, *(name for nested in self.nested for name in nested.odd)]


class Nested(PropertyBase):
    """A key of an object."""


class TextAnalyzer(msgspec.Struct, rename="camel"):
    """How the texts of a property are compared, besides their tokenization."""

    ascii_fold: bool = False
    stopword_preset: str = ""


class Property(PropertyBase, rename="camel"):
    """One property; the server leaves out a flag that is false."""

    tokenization: str = ""
    text_analyzer: TextAnalyzer = msgspec.field(default_factory=TextAnalyzer)
    filterable: bool = msgspec.field(name="indexFilterable", default=False)
    searchable: bool = msgspec.field(name="indexSearchable", default=False)
    ranged: bool = msgspec.field(name="indexRangeFilters", default=False)


_ENGLISH = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with"
)
"""The server's preset of stopwords `en`."""


class Stopwords(msgspec.Struct):
    """Words that the server ignores in texts and filters."""

    preset: str = "en"
    additions: list[str] | None = None
    removals: list[str] | None = None

    @property
    def words(self) -> frozenset[str]:
        """The stopwords; one with a capital never meets a word of a text, which is in lower case."""
        usual = frozenset(_ENGLISH.split() if self.preset == "en" else ())
        return (usual | {*(self.additions or [])}) - {*(self.removals or [])}


class InvertedIndex(msgspec.Struct, rename="camel"):
    """What a collection indexes besides values."""

    index_null_state: bool = False
    index_property_length: bool = False
    stopwords: Stopwords = msgspec.field(default_factory=Stopwords)
    stopword_presets: dict[str, list[str]] = {}

    def stopwords_of(self, analyzer: TextAnalyzer) -> frozenset[str]:
        """Return the stopwords of a property, which may have a preset of its own."""
        if not (preset := analyzer.stopword_preset):
            return self.stopwords.words
        own = self.stopword_presets.get(preset)
        return Stopwords(preset).words if own is None else frozenset(own)


class _Tenancy(msgspec.Struct):
    enabled: bool = False


class _Sharding(msgspec.Struct, rename="camel"):
    actual_count: int = 0


class _Replication(msgspec.Struct):
    factor: int = 0


class _ManyVectors(msgspec.Struct):
    enabled: bool = False


class _VectorIndex(msgspec.Struct):
    multivector: _ManyVectors | None = None


class _Vector(msgspec.Struct):
    vectorizer: dict[str, object] | str = ""
    index: _VectorIndex | None = msgspec.field(name="vectorIndexConfig", default=None)


class Collection(msgspec.Struct, rename="camel"):
    """One collection."""

    name: str = msgspec.field(name="class")
    properties: list[Property] | None = None
    vectorizer: str = ""
    vector_config: dict[str, _Vector] | None = None
    index: InvertedIndex = msgspec.field(name="invertedIndexConfig", default_factory=InvertedIndex)
    tenancy: _Tenancy = msgspec.field(name="multiTenancyConfig", default_factory=_Tenancy)
    sharding: _Sharding | None = msgspec.field(name="shardingConfig", default=None)
    replication: _Replication | None = msgspec.field(name="replicationConfig", default=None)

    @property
    def odd(self) -> list[str]:
        """The invalid names in it, which cannot go into a path or a query."""
        names = [] if is_collection(self.name) else [self.name]
        names += [vector_name for vector_name in self.vector_config or {} if not _PROPERTY.fullmatch(vector_name)]
        return [*names, *(name for spec in self.properties or [] for name in spec.odd)]

    @property
    def one_shard(self) -> bool:
        """Whether one shard holds all objects that a request reads; a tenant is a shard."""
        return self.tenancy.enabled or (self.sharding is not None and self.sharding.actual_count == 1)

    @property
    def one_part(self) -> bool:
        """Whether one shard on one node holds all objects that a search reads."""
        return self.one_shard and self.replication is not None and self.replication.factor == 1

    @property
    def single_vectors(self) -> list[str]:
        """The names of its vectors, if they have names and each is one vector; several per object are a matrix."""
        indexes = {name: vector.index for name, vector in (self.vector_config or {}).items()}
        many = any(index and index.multivector and index.multivector.enabled for index in indexes.values())
        return [] if many else list(indexes)

    @property
    def vectorizers(self) -> list[str]:
        """The modules that compute vectors whenever an object is written."""
        modules = [vector.vectorizer for vector in (self.vector_config or {}).values()]
        names = [
            self.vectorizer,
            *(next(iter(module), "") if isinstance(module, dict) else module for module in modules),
        ]
        return sorted({name for name in names if name not in ("", "none")})


class Schema(msgspec.Struct):
    """All collections of a server."""

    classes: list[Collection] | None
