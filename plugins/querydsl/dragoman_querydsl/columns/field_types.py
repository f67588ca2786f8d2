"""Field types: which filters, sorts and edits a field takes, why not the others, and what stored values show."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from dragoman_api import ColumnKind
from dragoman_api import Operator as Op
from dragoman_api.columns import EMPTINESS, NULLS, ORDER, PATTERNS, PLACES

EQUAL = (Op.EQ, Op.NE, Op.IN, Op.NOT_IN)
NEGATED = (Op.NE, Op.NOT_IN, Op.NOT_CONTAINS, Op.NULL)
MISORDERED = "the server orders arrays of unsigned_long by any of their values, and mixes rows without one in"


class Family(StrEnum):
    """Types that take the same clauses."""

    KEYWORD = "keyword"
    TEXT = "text"
    NUMBER = "number"
    DATE = "date"
    BOOLEAN = "boolean"
    IP = "ip"
    VERSION = "version"
    BINARY = "binary"
    RANGE = "range"
    POINT = "geo_point"
    GEO = "geo"
    OBJECT = "object"
    NESTED = "nested"
    FLATTENED = "flattened"
    KEYED = "keyed"  # a dotted key of a flattened field
    ID = "_id"
    INDEX = "_index"
    SCORE = "_score"
    MIXED = "mixed"
    OTHER = "other"


SPECIAL = (Family.ID, Family.INDEX, Family.SCORE)
"""Columns that every row has beside its document (E18)."""

_INTEGERS = {"byte": 7, "short": 15, "integer": 31, "long": 63}
BOUNDS: dict[str, tuple[int, int]] = {name: (-(2**bits), 2**bits - 1) for name, bits in _INTEGERS.items()}
BOUNDS["unsigned_long"] = (0, 2**64 - 1)
"""Smallest and largest value of the integer types; outside, 7.x answers 400 and 8.19 finds nothing."""

DATE_FORMAT = "strict_date_optional_time||epoch_millis"
"""The server's default format of dates: a year with as many of its parts as are known, or a number."""

_TYPES: dict[Family, tuple[str, ...]] = {
    Family.KEYWORD: ("keyword", "constant_keyword", "wildcard"),
    Family.TEXT: ("text", "match_only_text", "search_as_you_type", "annotated_text"),
    Family.NUMBER: (*BOUNDS, "half_float", "float", "double", "scaled_float", "token_count"),
    Family.DATE: ("date", "date_nanos"),
    Family.BOOLEAN: ("boolean",),
    Family.IP: ("ip",),
    Family.VERSION: ("version",),
    Family.BINARY: ("binary",),
    Family.RANGE: ("integer_range", "float_range", "long_range", "double_range", "date_range", "ip_range"),
    Family.POINT: ("geo_point",),
    Family.GEO: ("geo_shape", "point", "shape"),
    Family.OBJECT: ("object",),
    Family.NESTED: ("nested",),
    Family.FLATTENED: ("flattened", "flat_object"),
}
_FAMILY = {name: family for family, names in _TYPES.items() for name in names}

_KINDS = {
    Family.KEYWORD: ColumnKind.TEXT,
    Family.TEXT: ColumnKind.TEXT,
    Family.DATE: ColumnKind.TIMESTAMP,
    Family.BOOLEAN: ColumnKind.BOOLEAN,
    Family.IP: ColumnKind.TEXT,
    Family.VERSION: ColumnKind.TEXT,
    Family.BINARY: ColumnKind.BINARY,
    Family.RANGE: ColumnKind.RANGE,
    Family.POINT: ColumnKind.GEO,
    Family.GEO: ColumnKind.GEO,
    Family.OBJECT: ColumnKind.JSON,
    Family.NESTED: ColumnKind.JSON,
    Family.FLATTENED: ColumnKind.JSON,
    Family.KEYED: ColumnKind.TEXT,
    Family.ID: ColumnKind.TEXT,
    Family.INDEX: ColumnKind.TEXT,
    Family.SCORE: ColumnKind.FLOAT,
}
_POINTS = {"geo_point": ("lat", "lon"), "point": ("x", "y")}
_WHOLE = {*_INTEGERS, "token_count"}

_OPERATORS: dict[Family, tuple[Op, ...]] = {
    Family.KEYWORD: (*EQUAL, *ORDER, *PATTERNS, *NULLS, *EMPTINESS),
    Family.TEXT: (*EQUAL, *PATTERNS, *NULLS),
    Family.NUMBER: (*EQUAL, *ORDER, *NULLS),
    Family.DATE: (*EQUAL, *ORDER, *NULLS),
    Family.BOOLEAN: (*EQUAL, *NULLS),
    Family.IP: (*EQUAL, *ORDER, *NULLS),
    Family.VERSION: (*EQUAL, *ORDER, *NULLS),
    Family.POINT: (*PLACES, *NULLS),
    Family.FLATTENED: (*EQUAL, *PATTERNS, *NULLS),
    Family.KEYED: (*EQUAL, Op.BETWEEN, *NULLS, *EMPTINESS),
    Family.ID: EQUAL,
    Family.INDEX: (*EQUAL, *PATTERNS),
    Family.SCORE: (),
    Family.OBJECT: (),
    Family.NESTED: (),
}
_SORTED = (Family.KEYWORD, Family.NUMBER, Family.DATE, Family.BOOLEAN, Family.IP, Family.VERSION, Family.KEYED)


def family_of(kind: str) -> Family:
    """Return the family of a server's type; an unknown type takes `exists` only."""
    return _FAMILY.get(kind, Family.OTHER)


class Gap(NamedTuple):
    """A way in which the index of a field differs from the stored documents.

    Attributes:
        name: Of a row of `exactness.TABLE`.
        details: What the mappings say, one for each different one.
    """

    name: str
    details: tuple[Any, ...]


class VectorMapping(NamedTuple):
    """How a mapping has the server keep the vectors of a field.

    Attributes:
        similarity: What the server compares them by; empty if the mapping does not say, as for vectors without an
            index.
        bytes: Their numbers are whole, of one byte each.
        indexed: There is an index that finds near ones.
        quantized: The index keeps them with fewer digits.
    """

    similarity: str = ""
    bytes: bool = False
    indexed: bool = False
    quantized: bool = False


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One column and the facts that requests need.

    Attributes:
        name: The column's name.
        types: The server's types, several if the indices of a target disagree.
        family: The family, which decides the clauses it takes.
        field: The name requests use: an alias's target, else the column's own.
        keys: The path in the stored document, as the mapping spells it.
        keyword: Its sub-field `.keyword`, which compares and sorts whole strings.
        nested: Nested arrays around it, outermost first.
        searchable: It takes `term` and similar clauses.
        aggregatable: The server can sort by it.
        exists: It takes `exists`, which silently finds nothing on a field with neither index nor doc values.
        alias: It is the server's `alias` of another field.
        within: The indices that have this alias, if some lack it.
        computed: Its values are not stored.
        gaps: Where the index differs from the stored documents.
        formats: The formats of its dates, one per mapping; each may name several, of which the first that fits counts.
        partial: Some index of the target does not map it.
        arrayless: Some index of the target lacks a nested array around it.
        dimensions: The number of dimensions of its vectors, 0 if the server does not say; None if it holds none.
        vectors: How the mappings keep its vectors, each different way once; none if it holds none.
        conflict: Why the indices of a target make it unusable; empty if they do not.
        misordered: The server sorts its type in a wrong order.
    """

    name: str
    types: tuple[str, ...]
    family: Family
    field: str
    keys: tuple[str, ...] = ()
    keyword: str | None = None
    nested: tuple[str, ...] = ()
    searchable: bool = True
    aggregatable: bool = True
    exists: bool = True
    alias: bool = False
    within: tuple[str, ...] = ()
    computed: bool = False
    gaps: tuple[Gap, ...] = ()
    formats: tuple[str, ...] = (DATE_FORMAT,)
    partial: bool = False
    arrayless: bool = False
    dimensions: int | None = None
    vectors: tuple[VectorMapping, ...] = ()
    conflict: str = ""
    misordered: bool = False

    @property
    def type(self) -> str:
        """The type as a column shows it."""
        return self.types[0] if len(self.types) == 1 else "mixed"

    @property
    def kind(self) -> ColumnKind:
        """What its values are."""
        if self.family is not Family.NUMBER:
            return _KINDS.get(self.family, ColumnKind.OTHER)
        if {*self.types} == {"unsigned_long"}:
            return ColumnKind.UNSIGNED
        return ColumnKind.INTEGER if {*self.types} <= {*_WHOLE, "unsigned_long"} else ColumnKind.FLOAT

    @property
    def members(self) -> tuple[str, ...]:
        """The members of a point that is stored as an object."""
        return _POINTS.get(self.type, ())

    @property
    def formats_known(self) -> bool:
        """Whether the mapping, which names the formats, may be read."""
        return all(gap.name != "hidden" for gap in self.gaps)

    @property
    def whole(self) -> str:
        """The field that holds whole strings: the keyword sub-field, else the field."""
        return self.keyword or self.field

    @property
    def support(self) -> tuple[tuple[Op, ...], dict[str, str], bool]:
        """The operators, the reasons against others (and `sort`, `filter`, `edit`), and whether it sorts."""
        # A text with a keyword sub-field takes what a keyword takes.
        family = Family.KEYWORD if self.keyword else self.family
        special = "nested" if self.nested else "alias" if self.alias else ""
        special = "computed" if self.computed else special
        unsorted = "" if self.aggregatable else "it has no doc values, which a sort needs"
        if self.misordered:
            unsorted = MISORDERED
        if self.within:
            unsorted = "an index behind this name lacks the alias, and would be sorted by the field it stands for"
        if self.arrayless:  # a sort has no `ignore_unmapped`: the whole search would fail
            unsorted = "an index behind this name has no such array, and the server would not sort it"
        return _support(family, self.searchable, unsorted, self.exists, special, self.conflict)


@lru_cache(maxsize=512)
def _support(
    family: Family,
    searchable: bool,  # noqa: FBT001 - the key of a cache
    unsorted: str,
    exists: bool,  # noqa: FBT001
    special: str,
    conflict: str,
) -> tuple[tuple[Op, ...], dict[str, str], bool]:
    against = {op: _against(op, family, searchable=searchable, exists=exists) for op in Op}
    operators = () if conflict else tuple(op for op, reason in against.items() if not reason)
    reasons: dict[str, str] = (
        {str(op): reason for op, reason in against.items()} if operators else {"filter": conflict or against[Op.EQ]}
    )
    reasons["sort"] = conflict or _against_sort(family) or unsorted
    reasons["edit"] = _NOT_EDITABLE.get(family, "") or _NOT_EDITABLE_WHEN.get(special, "")
    return operators, {key: reason for key, reason in reasons.items() if reason}, not reasons["sort"]


_NOT_EDITABLE = {
    Family.ID: "the _id of a row cannot be changed; a new row takes one",
    Family.INDEX: "a document cannot move to another index",
    Family.SCORE: "the score is computed",
}
_NOT_EDITABLE_WHEN = {
    "nested": "a leaf of a nested array is edited through the array's JSON column",
    "alias": "an alias is not stored; edit the field it stands for",
    "computed": "a runtime field with a script is computed, not stored",
}


def _against(op: Op, family: Family, *, searchable: bool, exists: bool) -> str:
    if family is Family.NESTED:
        return "it is the JSON column of a nested array"
    if family is Family.OBJECT:
        return "it is an object without mapped fields, which the server cannot search"
    if family is Family.SCORE:
        return "the score is computed after filtering"
    if op in NULLS and family not in (Family.ID, Family.INDEX):
        return "" if exists else "it has neither index nor doc values, so the server cannot tell whether a row has it"
    if op is Op.REGEX:
        return "regular expressions are not supported in a filter row; use the Raw row (field:/…/) or the console"
    if op in _OPERATORS.get(family, NULLS):
        return "" if searchable else "it is not indexed"
    return _refusal(op, family)


def _refusal(op: Op, family: Family) -> str:
    if family is Family.POINT:
        return f"a geo_point takes {Op.NEAR}, {Op.IN_BOX}, {Op.NULL} and {Op.NOT_NULL} only"
    if op in PLACES:
        return "only a geo_point takes it"
    if family is Family.TEXT:
        return "it is analysed text without a .keyword subfield: it has neither order nor empty strings"
    if family is Family.MIXED:
        return "the indices behind this name map it to types that take different clauses"
    if family in (Family.FLATTENED, Family.KEYED):
        return "a flattened field does not take it"
    if family in (Family.ID, Family.INDEX):
        return f"{family.value} takes whole values only" if op in PATTERNS or op in ORDER else "every row has it"
    if family in (Family.BINARY, Family.RANGE, Family.GEO, Family.OTHER):
        return f"a field of this type takes {Op.NULL} and {Op.NOT_NULL} only"
    if op in PATTERNS or op in EMPTINESS:
        return "only strings take it"
    return f"a {family.value} has no order"


def _against_sort(family: Family) -> str:
    if family is Family.TEXT:
        return "text field without a .keyword subfield"
    if family is Family.NESTED:
        return "JSON column of a nested array; sort by one of its leaves"
    if family is Family.ID:
        return "the server does not sort by _id"
    # field_caps calls geo, range and completion fields aggregatable, but sorting by them fails or is meaningless.
    if family not in (*_SORTED, Family.INDEX):
        return "the score orders a page that has no sort" if family is Family.SCORE else "its values have no order"
    return ""


PRECISION = {
    "half_float": "numbers are compared with 11 bits, about 3 digits",
    "float": "numbers are compared with 24 bits, about 7 digits",
    "double": "numbers are compared with 53 bits, about 15 digits",
}
"""How the server compares the numbers of a type that are not whole."""

_SHORT = {PRECISION["half_float"]: (3, Decimal("6.2e-5")), PRECISION["float"]: (6, Decimal("1.2e-38"))}
"""The digits that every number of a type keeps, and the smallest number that keeps them."""


class StoredValues(msgspec.Struct, frozen=True):
    """The values of one column in the rows of a look, and how many rows have one."""

    values: tuple[Any, ...]
    rows: int


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """What a look saw.

    Attributes:
        columns: The values of the columns that it read, by name; none of a column of which it read no value.
        ignored: Of each field of which the server left out a value, the id of a row.
        complete: `ignored` holds every such field, unless more than a look's rows crowd it out.
    """

    columns: dict[str, StoredValues]
    ignored: dict[str, str]
    complete: bool


class Look(msgspec.Struct):
    """The sample that explanations are based on.

    Attributes:
        sample: None if there was no look.
        needs_sample: Receives whether a sample would have told more.
    """

    sample: Sample | None = None
    needs_sample: bool = False


def _decimal(value: object) -> Decimal | None:
    if isinstance(value, (bool, dict)):
        return None
    text = bytes(value).decode() if isinstance(value, msgspec.Raw) else str(value)
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def has_decimals(value: object, _details: tuple[Any, ...]) -> bool:
    """Return whether a number loses decimals in an integer field."""
    return (number := _decimal(value)) is not None and number != number.to_integral_value()


def is_long(value: object, details: tuple[Any, ...]) -> bool:
    """Return whether a number has more digits than its type keeps; a shorter one differs from all other such."""
    number = _decimal(value)
    if not number:
        return False
    digits, least = max((_SHORT.get(detail, (0, Decimal(0))) for detail in details), key=lambda precision: precision[1])
    return abs(number) < least or len(number.normalize().as_tuple().digits) > digits


def is_empty(value: object, _details: tuple[Any, ...]) -> bool:
    """Return whether a value is the empty text."""
    return value == ""
