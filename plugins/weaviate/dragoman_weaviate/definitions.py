"""Collections and properties as the server writes them."""

from __future__ import annotations

import msgspec


class Named(msgspec.Struct, rename="camel"):
    """What properties and keys of objects have in common."""

    name: str
    data_type: list[str] = []
    nested_properties: list[Nested] | None = None

    @property
    def nested(self) -> list[Nested]:
        """Give the keys of an object."""
        return self.nested_properties or []


class Nested(Named):
    """A key of an object."""


class Property(Named, rename="camel"):
    """One property; the server leaves out a flag that is false."""

    tokenization: str = ""
    filterable: bool = msgspec.field(name="indexFilterable", default=False)
    searchable: bool = msgspec.field(name="indexSearchable", default=False)
    ranged: bool = msgspec.field(name="indexRangeFilters", default=False)


_ENGLISH = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with"
)
"""The server's preset of stopwords `en`."""


class Stopwords(msgspec.Struct):
    """Words that the server leaves out of texts and filters alike."""

    preset: str = "en"
    additions: list[str] | None = None
    removals: list[str] | None = None

    @property
    def words(self) -> frozenset[str]:
        """Give them in lower case."""
        usual = frozenset(_ENGLISH.split() if self.preset == "en" else ())
        return (usual | {*map(str.lower, self.additions or [])}) - {*map(str.lower, self.removals or [])}


class Index(msgspec.Struct, rename="camel"):
    """What a collection indexes besides values."""

    index_null_state: bool = False
    index_property_length: bool = False
    stopwords: Stopwords = msgspec.field(default_factory=Stopwords)


class _Tenancy(msgspec.Struct):
    enabled: bool = False


class _Vector(msgspec.Struct):
    vectorizer: dict[str, object] | str = ""


class Collection(msgspec.Struct, rename="camel"):
    """One collection."""

    name: str = msgspec.field(name="class")
    properties: list[Property] | None = None
    vectorizer: str = ""
    vector_config: dict[str, _Vector] | None = None
    index: Index = msgspec.field(name="invertedIndexConfig", default_factory=Index)
    tenancy: _Tenancy = msgspec.field(name="multiTenancyConfig", default_factory=_Tenancy)

    @property
    def vectorizers(self) -> list[str]:
        """Name the modules that compute vectors whenever an object is written."""
        given = [each.vectorizer for each in (self.vector_config or {}).values()]
        names = [self.vectorizer, *(next(iter(each), "") if isinstance(each, dict) else each for each in given)]
        return sorted({name for name in names if name not in ("", "none")})
