"""Objects and their columns, as the sidebar and the head of a grid show them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

MAX_COLUMNS = 4_096
"""Maximum number of columns of one page."""

MAX_OBJECTS = 100_000
"""Maximum number of objects of one connection."""


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
        name: The name that requests use.
        rows: Number of rows, None when unknown.
        size: Bytes on the server's disk, None when unknown.
        kind: The server's word for it, for listings of several kinds.
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
        kind: The family of types, which decides how it is shown and edited.
        key: The column is the primary key.
        read_only: No change may name the column.
        sortable: A sort on it has an effect.
        operators: Filter operators that the column supports.
        reasons: Why an operator, ``sort``, ``filter`` or ``edit`` does not work, one sentence each, by that name.
        path: Member names that lead to the value in a row of an export. The last may be a dotted name, which is
            first looked up as one name. Empty for a column that exports lack.
        arrays: Beginnings of that dotted name at which each row has an array, outermost first. A row may hold a single
            object there; it counts as an array of one.
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
    arrays: tuple[str, ...] = ()


class Note(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A remark about a result that a caller must know: dropped, cut, partial, approximate.

    Attributes:
        code: Stable kebab-case identifier, for example ``sort-dropped``.
        reason: One sentence.
        column: The column concerned, None for the whole result.
        hint: What to do; empty if nothing can be done.
        hint_from: ``driver`` if a driver wrote the hint; the host fills it in.
    """

    code: str
    reason: str
    column: str | None = None
    hint: str = ""
    hint_from: str = ""


class Description(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A driver's description of one object.

    Attributes:
        object: The requested name.
        columns: The columns in the order of the grid.
        structure: The server's own definition as JSON text, for a structure view.
        notes: Conflicts between types, missing rights.
    """

    object: str
    columns: Annotated[list[Column], msgspec.Meta(max_length=MAX_COLUMNS)]
    structure: str = ""
    notes: list[Note] = []
