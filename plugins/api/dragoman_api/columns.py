"""Objects and their columns: what the sidebar and the head of a grid show."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

MAX_COLUMNS = 4_096
"""Columns of one page at most."""

MAX_OBJECTS = 100_000
"""Objects of one connection at most."""


class Operator(StrEnum):
    """The operators of a filter row, spelled as the command line spells them."""

    EQ = "="
    NE = "!="
    GT = ">"
    GE = ">="
    LT = "<"
    LE = "<="
    CONTAINS = "contains"
    NOT_CONTAINS = "not-contains"
    STARTS = "starts"
    ENDS = "ends"
    IN = "in"
    NOT_IN = "not-in"
    BETWEEN = "between"
    NULL = "null"
    NOT_NULL = "not-null"
    EMPTY = "empty"
    NOT_EMPTY = "not-empty"
    REGEX = "regex"


class ColumnKind(StrEnum):
    """Families of types that a grid shows and edits alike; the server's own name is `Column.type`."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    BINARY = "binary"
    RANGE = "range"
    GEO = "geo"
    JSON = "json"
    OTHER = "other"


class Object(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One browsable object: an index, a collection.

    Attributes:
        name: The name by which requests address it.
        rows: Number of rows, None when unknown.
        size: Bytes on the server's disk, None when unknown.
        kind: What the server calls it, for listings that hold several sorts.
    """

    name: str
    rows: int | None = None
    size: int | None = None
    kind: str = "table"


class Column(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One column of an object.

    Attributes:
        name: Dotted path or special name; unique within the object.
        type: The server's own name of the type, or ``mixed``.
        kind: The family it is shown and edited as.
        key: It is the primary key.
        read_only: No change may name it.
        sortable: A sort on it has an effect.
        operators: Filter operators that run on it.
        reasons: Why something does not work: an operator, ``sort``, ``filter`` or ``edit`` → one sentence.
        path: Members that lead to the value in a row of an export, the last one a dotted name that is looked up as
            it stands first; empty for a column that an export does not hold.
    """

    name: str
    type: str
    kind: ColumnKind = ColumnKind.OTHER
    key: bool = False
    read_only: bool = False
    sortable: bool = False
    operators: tuple[Operator, ...] = ()
    reasons: dict[str, str] = {}
    path: tuple[str, ...] = ()


class Note(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something a caller must know about a result: dropped, cut, partial, approximate.

    Attributes:
        code: Stable kebab-case identifier, for example ``sort-dropped``.
        reason: One sentence.
        column: The column it is about, None for the whole result.
        hint: What to do, if there is something to do.
    """

    code: str
    reason: str
    column: str | None = None
    hint: str = ""


class Description(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a driver knows of one object.

    Attributes:
        object: The name that was asked for.
        columns: In the order a grid shows them.
        structure: The server's own definition as JSON text, for a structure view.
        notes: Conflicts between types, missing rights.
    """

    object: str
    columns: Annotated[list[Column], msgspec.Meta(max_length=MAX_COLUMNS)]
    structure: str = ""
    notes: list[Note] = []
