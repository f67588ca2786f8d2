"""Objects and their columns, as the sidebar and the head of a grid show them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from .remedies import Remedy

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_COLUMNS = 4_096
"""Maximum number of columns of one page."""

MAX_DIMENSIONS = 65_536
"""Maximum number of dimensions of a vector."""

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
    NEAR = "near"
    IN_BOX = "in-box"


NULLS = (Operator.NULL, Operator.NOT_NULL)
EMPTINESS = (Operator.EMPTY, Operator.NOT_EMPTY)
VALUELESS = (*NULLS, *EMPTINESS)
"""Operators that take no value."""
LISTS = (Operator.IN, Operator.NOT_IN, Operator.BETWEEN)
"""Operators that take a list of values."""
PATTERNS = (Operator.CONTAINS, Operator.NOT_CONTAINS, Operator.STARTS, Operator.ENDS)
ORDER = (Operator.GT, Operator.GE, Operator.LT, Operator.LE, Operator.BETWEEN)
PLACES = (Operator.NEAR, Operator.IN_BOX)


class ColumnKind(StrEnum):
    """What the values of a column are, in Arrow's names where it has one; the server's own name is `Column.type`.

    ``INTEGER`` has a sign, ``UNSIGNED`` has none; either may exceed 64 bits. ``DECIMAL`` is exact, as a number or as
    its text. ``TIMESTAMP`` is an instant, ``DATE`` a day, ``TIME`` a time of day, each as an ISO 8601 text with up to
    nine fractional digits. ``BINARY`` is base64 wherever it is text.
    """

    TEXT = "text"
    INTEGER = "integer"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    DATE = "date"
    TIME = "time"
    BINARY = "binary"
    RANGE = "range"
    GEO = "geo"
    JSON = "json"
    OTHER = "other"

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers."""
        return self in (ColumnKind.INTEGER, ColumnKind.UNSIGNED, ColumnKind.FLOAT, ColumnKind.DECIMAL)


class Role(StrEnum):
    """What a column is for, beyond its values.

    Several columns with the role ``KEY`` are the parts of a composite key, in order. ``VERSION`` counts or names the
    states of a row, ``TIME`` places a row in time. ``EXPIRY`` says when the server removes the row: seconds left in a
    numeric column, an instant in one of kind ``timestamp``; null if it stays. Setting it is an ordinary edit.
    ``SERVER`` is what the server says of a row, beside what the row holds: where it lies, how well it matches. Grids
    show such columns last.
    """

    NONE = ""
    KEY = "key"
    VERSION = "version"
    TIME = "time"
    EXPIRY = "expiry"
    SERVER = "server"


class Written(StrEnum):
    """Which changes may name a column: inserts and updates, only inserts, or none, because the server keeps it."""

    ALWAYS = "always"
    INSERT = "insert"
    NEVER = "never"


class ConditionLevel(StrEnum):
    """How good a condition is, which decides how it is shown: nothing wrong, works with less, or does not work."""

    UNKNOWN = ""
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a server, a node or an object is, such as ``yellow``.

    Attributes:
        word: The server's own word for it, one or two words.
        level: How good it is; unknown for a word that says neither, such as ``closed``.
    """

    word: str
    level: ConditionLevel = ConditionLevel.UNKNOWN


class Object(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One browsable object: an index, a collection.

    Attributes:
        name: The name that requests use.
        rows: Number of rows, None when unknown.
        size: Bytes on the server's disk, None when unknown.
        kind: The server's word for it, for listings of several kinds.
        parent: The name of the object that contains it; None at the top.
        branch: It contains further objects; a request with it as `parent` lists them.
        state: Its condition, if a listing tells it without a further request; None when unknown.
    """

    name: str
    rows: int | None = None
    size: int | None = None
    kind: str = "table"
    parent: str | None = None
    branch: bool = False
    state: Condition | None = None


class ObjectsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One level of the tree of objects. A driver may ignore what it cannot do: the host leaves out what does not match.

    Attributes:
        parent: The object whose children are wanted; None for the top.
        contains: Only objects whose name contains this text, ignoring case; empty for all.
        cursor: `ObjectList.next` of an earlier list, to continue after it.
        limit: The maximum number of objects that are wanted. If there are more, a driver returns `ObjectList.next`.
        counts: Whether rows and sizes are wanted. If not, a driver leaves out what costs further requests.
    """

    parent: str | None = None
    contains: str = ""
    cursor: str | None = None
    limit: int = 10_000
    counts: bool = True


class Column(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One column of an object.

    Attributes:
        name: Dotted path or special name; unique within the object.
        type: The server's own name of the type, or ``mixed``.
        kind: What its values are, which decides how they are shown, read and exported.
        repeated: Every value is an array whose elements have the kind.
        multiple: A value may be an array of such values, although a single one needs none; the description cannot tell.
            The host looks at some rows, and reads the column as lists where they hold arrays.
        many: The values of a column that is `multiple` are lists in a table: with ``array`` a list of one stands for
            an array of one, with ``value`` for the value alone. Empty if the host decides.
        role: What the column is for; only inserts may name a key column.
        written: Which changes may name the column.
        sortable: A sort on it has an effect.
        operators: Filter operators that the column supports.
        reasons: Why an operator, ``sort``, ``filter``, ``edit``, ``export`` or ``any`` does not work, one sentence
            each, by that name. With ``export``, exports lack values that rows may have, and say so. With ``any``, no
            filter of several rows that matches any of them may name the column; the host refuses it.
        path: Member names that lead to the value in a row of an export. The last may be a dotted name, which is
            first looked up as one name. Empty for a column that exports lack.
        arrays: Beginnings of that dotted name at which each row has an array, outermost first. A row may hold a single
            object there; it counts as an array of one.
        members: The names of the numbers that each value is an object of, such as the ``lat`` and ``lon`` of a point;
            with `dimensions` the names of vectors, of which a value may lack some. Empty for other values.
        dimensions: Each value is a vector: an array of so many 32-bit floats, 0 if the server does not say how many.
            None for other values.
    """

    name: str
    type: str
    kind: ColumnKind = ColumnKind.OTHER
    repeated: bool = False
    multiple: bool = False
    many: Literal["", "array", "value"] = ""
    role: Role = Role.NONE
    written: Written = Written.ALWAYS
    sortable: bool = False
    operators: tuple[Operator, ...] = ()
    reasons: dict[str, str] = {}
    path: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    dimensions: Annotated[int, msgspec.Meta(ge=0, le=MAX_DIMENSIONS)] | None = None

    @property
    def is_key(self) -> bool:
        """Whether the column is the key, or a part of it."""
        return self.role is Role.KEY


class Note(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A remark about a result that a caller must know: dropped, cut, partial, approximate.

    Attributes:
        code: Stable kebab-case identifier, for example ``sort-dropped``.
        reason: One sentence.
        column: The column concerned, None for the whole result.
        hint: What to do, in words; empty if nothing can be done, or the remedies say it.
        hint_from: ``driver`` if hint and remedies are a driver's; the host fills it in.
        remedies: What to do, as data that each surface shows in its own way.
    """

    code: str
    reason: str
    column: str | None = None
    hint: str = ""
    hint_from: str = ""
    remedies: tuple[Remedy, ...] = ()


class TimeColumn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The column that orders the rows of an object in time.

    Attributes:
        column: Its name; requests may carry a `TimeRange` of it.
        window: Seconds before now that the host reads if a caller names no range; None for all rows. The driver never
            applies it: the host puts the range into `time` of each request, where the driver finds either absolute
            instants or None.
    """

    column: str
    window: Annotated[int, msgspec.Meta(ge=1, le=10**10)] | None = None


class ObjectList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The objects of one level, or a part of them; iterating over it yields them.

    Attributes:
        objects: In the order a sidebar shows them.
        notes: What could not be listed or counted, and why.
        next: The cursor of the next part; None at the end.
        total: The number of objects of this level, in all parts, that match the request; None if unknown, as for a
            driver that ignores `ObjectsRequest.contains`.
    """

    objects: list[Object]
    notes: list[Note] = []
    next: str | None = None
    total: Annotated[int, msgspec.Meta(ge=0)] | None = None

    def __iter__(self) -> Iterator[Object]:
        return iter(self.objects)

    def __len__(self) -> int:
        return len(self.objects)


class Description(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A driver's description of one object.

    Attributes:
        object: The requested name.
        columns: The columns in the order of the grid.
        structure: The server's own definition as JSON text, for a structure view.
        notes: Conflicts between types, missing rights.
        time: The time column, if the manifest has the capability ``time-range`` and the object has such a column.
        object_member: The member of an exported row that names the row's object; empty if rows have none.
        server_members: Members of an exported row, or of a search hit, that the server computes for every row, so that
            no change can write them. An import leaves them out with a note, and refuses a row with any other member
            that it cannot write.
        tenants: The object has tenants, and its rows are those of one; None if the driver does not tell.

    Raises:
        ValueError: Two columns have one name: their cells could not be told apart.
    """

    object: str
    columns: Annotated[list[Column], msgspec.Meta(max_length=MAX_COLUMNS)]
    structure: str = ""
    notes: list[Note] = []
    time: TimeColumn | None = None
    object_member: str = ""
    server_members: tuple[str, ...] = ()
    tenants: bool | None = None

    def __post_init__(self) -> None:
        names = set[str]()
        for column in self.columns:
            if column.name in names:
                raise ValueError(f"two columns of {self.object!r} are called {column.name!r}")
            names.add(column.name)
