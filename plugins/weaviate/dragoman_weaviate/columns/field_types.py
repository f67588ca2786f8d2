"""Field types: the server's definition of a collection, which filters, sorts and edits its properties take, why not.

Also the values of filters (W12).
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import msgspec

from dragoman_api import Column, ColumnKind, Role, Written
from dragoman_api import Operator as Op
from dragoman_api.columns import NULLS, PATTERNS, PLACES
from dragoman_api.kit import operands

if TYPE_CHECKING:
    from dragoman_weaviate.protocol import Features

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


class Family(StrEnum):
    """Types that are filtered, sorted and edited alike."""

    ID = "id"
    TEXT = "text"
    INT = "int"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    UUID = "uuid"
    GEO = "geoCoordinates"
    PHONE = "phoneNumber"
    BLOB = "blob"
    OBJECT = "object"
    REFERENCE = "reference"
    VECTOR = "vector"
    OTHER = "other"


_FAMILIES = {family.value: family for family in Family} | {"string": Family.TEXT, "blobHash": Family.BLOB}
_KINDS = {
    Family.ID: ColumnKind.TEXT,
    Family.TEXT: ColumnKind.TEXT,
    Family.INT: ColumnKind.INTEGER,
    Family.NUMBER: ColumnKind.FLOAT,
    Family.BOOLEAN: ColumnKind.BOOLEAN,
    Family.DATE: ColumnKind.TIMESTAMP,
    Family.UUID: ColumnKind.TEXT,
    Family.GEO: ColumnKind.GEO,
    Family.BLOB: ColumnKind.BINARY,
    Family.OTHER: ColumnKind.OTHER,
}

EQUALITY = (Op.EQ, Op.NE)
LISTS = (Op.IN, Op.NOT_IN)
COMPARISONS = (Op.GT, Op.GE, Op.LT, Op.LE)
NEGATED = (Op.NE, Op.NOT_IN, Op.NOT_CONTAINS)

ORDERED = (Family.INT, Family.NUMBER, Family.DATE)
WORDWISE = ("word", "lowercase", "whitespace")
"""Tokenizations that split a text into words."""


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One column and its property.

    Attributes:
        name: The column's name.
        prop: The property's name; empty for the uuid and the vector.
        type: The server's type, with ``[]`` for an array.
        family: The family, which decides how it is filtered, sorted and edited.
        array: It holds several values.
        members: The names of the vectors that it holds.
        spec: The property's definition, None for the uuid and the vector.
        index: The collection's inverted index.
    """

    name: str
    prop: str = ""
    type: str
    family: Family
    array: bool = False
    members: tuple[str, ...] = ()
    spec: Property | None = None
    index: InvertedIndex = msgspec.field(default_factory=InvertedIndex)

    @property
    def path(self) -> list[str]:
        """The path by which filters and sorts name the column."""
        return ["id"] if self.family is Family.ID else [self.prop]

    @property
    def range_only(self) -> bool:
        """Whether only the index for ranges exists; NotEqual then misses rows without a value."""
        return self.spec is not None and self.spec.ranged and not self.spec.filterable

    @property
    def exact_tokens(self) -> bool:
        """Whether a text is kept as one token, in its letter case."""
        return self.spec is not None and self.spec.tokenization == "field"

    @property
    def folded(self) -> bool:
        """Whether texts are compared without their accents."""
        return self.spec is not None and self.spec.text_analyzer.ascii_fold

    @property
    def stopwords(self) -> frozenset[str]:
        """Words that an equality leaves out."""
        return self.index.stopwords_of(self.spec.text_analyzer) if self.spec is not None else frozenset()

    @property
    def sort_reason(self) -> str:
        """Why the column does not sort; empty if it does."""
        if self.family in (Family.ID, Family.TEXT, Family.BOOLEAN, *ORDERED) and not self.array:
            return ""
        return f"Weaviate does not sort by a property of type {self.type}" if self.prop else "vectors have no order"

    @property
    def edit_reason(self) -> str:
        """Why the column cannot be edited; empty if it can."""
        if self.family is Family.REFERENCE:
            return "the server appends references instead of replacing them: use the console, PUT …/references/NAME"
        if self.type == "blobHash":
            return "the server computes it"
        return "the uuid of a row cannot be changed; a new row takes one" if self.family is Family.ID else ""

    @property
    def written(self) -> Written:
        """Which changes may name the column."""
        if self.family is Family.ID:
            return Written.INSERT
        return Written.NEVER if self.edit_reason else Written.ALWAYS

    def support(self, features: Features) -> tuple[tuple[Op, ...], dict[str, str]]:
        """Return the operators that the column takes, and the reason against each other one."""
        if blanket := self._no_filter():
            return (), {"filter": blanket}
        reasons = {op: reason for op in Op if (reason := self._reason(op, features))}
        return tuple(op for op in Op if op not in reasons), {str(op): reason for op, reason in reasons.items()}

    def column(self, features: Features) -> Column:
        """Describe the column."""
        operators, reasons = self.support(features)
        column_reasons = {"sort": self.sort_reason, "edit": self.edit_reason}
        kind = _KINDS.get(self.family, ColumnKind.JSON)
        vector = ("vectors",) if self.array else ("vector",)
        path = {Family.ID: ("id",), Family.VECTOR: vector}.get(self.family, ("properties", self.prop))
        return Column(
            name=self.name,
            type=self.type,
            kind=kind,
            repeated=self.array and kind is not ColumnKind.JSON,
            role=Role.KEY if self.family is Family.ID else Role.NONE,
            written=self.written,
            sortable=not self.sort_reason,
            operators=operators,
            reasons=reasons | {name: reason for name, reason in column_reasons.items() if reason},
            path=path,
            members=("latitude", "longitude") if self.family is Family.GEO else self.members,
            dimensions=0 if self.family is Family.VECTOR and (self.members or not self.array) else None,
        )

    def _no_filter(self) -> str:
        match self.family:
            case Family.ID:
                return ""
            case Family.VECTOR:
                return "vectors take no filter; search by vector in the console, with nearVector"
            case Family.REFERENCE:
                return "it refers to other objects; filter it by a path in the console"
            case Family.PHONE | Family.BLOB | Family.OTHER:
                return f"Weaviate does not filter properties of type {self.type}"
            case Family.OBJECT:
                return "Weaviate does not filter inside objects (a preview, WEAVIATE_PREVIEW_NESTED_FILTERING)"
        spec = self.spec
        if spec is None or not (spec.filterable or spec.searchable or spec.ranged):
            return "it has no inverted index (indexFilterable, indexSearchable and indexRangeFilters are off)"
        if not spec.filterable and not (self.family is Family.TEXT or spec.ranged):
            return "it is not indexed for filters (indexFilterable is off)"
        return ""

    def _reason(self, op: Op, features: Features) -> str:
        """Return why the column does not take an operator; empty if it does."""
        if op is Op.REGEX:
            return "Weaviate has no equivalent of regular expressions; use contains, starts or ends"
        if op in PLACES or self.family is Family.GEO:
            return self._no_place(op)
        if op in EQUALITY or op in LISTS:
            return self._no_equality(op, features)
        if op in COMPARISONS or op is Op.BETWEEN:
            if self.family not in ORDERED:
                return "greater and less compare numbers and dates only"
            return "two bounds may hold for different elements of an array" if self.array and op is Op.BETWEEN else ""
        if op in PATTERNS:
            return self._no_pattern(op, features)
        if op in NULLS:
            return self._no_null()
        return self._no_emptiness()

    def _no_place(self, op: Op) -> str:
        if self.family is not Family.GEO:
            return "only coordinates take it"
        if op is Op.IN_BOX:
            return f"Weaviate has no filter by a box; use {Op.NEAR}"
        return "" if op is Op.NEAR else f"coordinates take only {Op.NEAR}; the server answers others with nothing"

    def _no_equality(self, op: Op, features: Features) -> str:
        if op in NEGATED and self.array and not features.complement:
            return "below 1.24 the server's NotEqual means that another element exists"
        if op in NEGATED and self.range_only and not features.negation:
            return "with the index for ranges alone, below 1.33, rows without a value would be missing"
        return ""

    def _no_pattern(self, op: Op, features: Features) -> str:
        if self.family is not Family.TEXT:
            return "it compares text only"
        tokenization = self.spec.tokenization if self.spec else ""
        if tokenization not in (*WORDWISE, "field"):
            return f"the tokenization {tokenization!r} splits texts into pieces that patterns cannot match"
        if op is Op.NOT_CONTAINS and not features.negation:
            return "Not does not work on servers below 1.33"
        return ""

    def _no_null(self) -> str:
        if self.family is Family.ID:
            return "every row has a uuid"
        return "" if self.index.index_null_state else "the collection does not index nulls (indexNullState is off)"

    def _no_emptiness(self) -> str:
        if self.family is Family.ID or (self.family is Family.UUID and not self.array):
            return "a uuid has no length; the server's answer would be wrong"
        if self.family is not Family.TEXT and not self.array:
            return f"a value of type {self.type} has no length"
        if self.index.index_property_length:
            return ""
        return "the collection does not index lengths (indexPropertyLength is off)"


def family_of(types: list[str]) -> tuple[Family, bool]:
    """Return the family of a data type, and whether it is an array.

    A type that begins with a capital is the name of a collection, so the property is a cross-reference.
    """
    if not types:
        return Family.OTHER, False
    if types[0][:1].isupper():
        return Family.REFERENCE, False
    return _FAMILIES.get(types[0].removesuffix("[]"), Family.OTHER), types[0].endswith("[]")


Scalar = bool | int | float | str
EXACT = 2**53
"""Integers up to this one are stored and compared exactly; larger ones become 64-bit floats."""

VALUES = {
    Family.ID: "valueText",
    Family.TEXT: "valueText",
    Family.UUID: "valueText",
    Family.INT: "valueInt",
    Family.NUMBER: "valueNumber",
    Family.BOOLEAN: "valueBoolean",
    Family.DATE: "valueDate",
}
"""Names of values in a filter; an array uses its elements' name."""


def typed(field: Field, value: object) -> Scalar:
    """Convert one value to what the server compares with the column, or with one element of it.

    Raises:
        ValueError: The value does not fit the column; the message says why.
    """
    value = operands.single(value)
    match field.family:
        case Family.INT:
            return operands.integer(value)
        case Family.NUMBER:
            return operands.floating(value)
        case Family.BOOLEAN:
            return operands.boolean(value, digits=True)
        case Family.DATE:
            return operands.timestamp(value)
        case Family.ID | Family.UUID:  # the server compares bytes, and upper case matches nothing
            return operands.uuid(value)
    return operands.text(value)
