"""The Arrow schema of an object's columns, from its description alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa

from dragoman_api.columns import ColumnKind

from . import kinds
from .kinds import ArrowKind, Member, list_of, many_of, struct_of, vector_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dragoman_api.columns import Column

MISFITS = "_misfits"
"""The column that holds what does not fit its type: one JSON object per row, from column to value as stored."""

MISFIT = (ValueError, TypeError, ArithmeticError, RecursionError)
"""What is raised for a value that does not fit; pyarrow's errors are among them."""

_PANDAS = {pa.int64(): "Int64", pa.uint64(): "UInt64", pa.bool_(): "boolean"}
"""Types of pandas with missing values, where its usual one would round the numbers beside them."""

ROLE = "misfits"
"""What the metadata of that column call it, whatever its name."""

_SCALARS = {
    ColumnKind.TEXT: kinds.TEXT,
    ColumnKind.INTEGER: kinds.INTEGER,
    ColumnKind.UNSIGNED: kinds.UNSIGNED,
    ColumnKind.FLOAT: kinds.FLOAT,
    ColumnKind.DECIMAL: kinds.DECIMAL,
    ColumnKind.BOOLEAN: kinds.BOOLEAN,
    ColumnKind.TIMESTAMP: kinds.INSTANT,
    ColumnKind.DATE: kinds.DAY,
    ColumnKind.TIME: kinds.CLOCK,
    ColumnKind.BINARY: kinds.BINARY,
}
"""Kinds with a type of their own; values of the others stay JSON text, as stored."""


class TableColumn(NamedTuple):
    """One column of a table.

    Attributes:
        column: The described column.
        kind: The kind of its values.
        leaf: The kind of one value in the arrays around it; without arrays, that of its values.
        lists: The values are lists; a single value counts as a list of one.
        begins: The bytes that JSON texts of such values begin with.
        decoder: Decodes one value.
    """

    column: Column
    kind: ArrowKind
    leaf: ArrowKind
    lists: bool
    begins: bytes
    decoder: msgspec.json.Decoder[Any]

    def value(self, text: bytes) -> Any:
        """Return one JSON text as `ArrowKind.build` takes it.

        Raises:
            Exception: One of `MISFIT`, if it does not fit.
        """
        if text[:1] not in self.begins:
            raise ValueError
        if self.many:
            [value] = kinds.opened([self.decoder.decode(text)])
            return None if value is None else self.kind.mend(value)
        value = self.decoder.decode(b"[%b]" % text if self.lists and text[:1] != b"[" else text)
        return None if value is None else self.kind.mend(value)

    @property
    def many(self) -> bool:
        """Whether the values are lists of which a row may hold one without an array around it."""
        return bool(self.column.many)

    @property
    def is_gathered(self) -> bool:
        """Whether such a list may be the values of the objects in an array, one of each."""
        return self.many and "." in self.column.path[-1]

    def is_aside(self, value: Any) -> bool:
        """Return whether a value of such lists is none that a list of one stands for, so that it is kept beside it."""
        if value.__class__ is list:
            return self.column.many == "value" and len(value) == 1
        return value is not None and self.column.many == "array"

    @property
    def field(self) -> pa.Field:
        """The column in a schema; metadata name the server's type, JSON text as such, and what a list of one is."""
        metadata = {"type": self.column.type} | ({"values": "json"} if self.kind is kinds.JSON else {})
        if self.many:
            metadata["one"] = self.column.many
        return pa.field(self.column.name, self.kind.type, metadata=metadata)


def may_be_lists(column: Column) -> bool:
    """Return whether some rows may hold an array of a column's values, and others one of them."""
    plain = not (column.many or column.repeated or column.arrays) and column.dimensions is None
    return plain and column.multiple and (bool(column.members) or column.kind in _SCALARS)


def without_leaves(columns: Sequence[Column]) -> list[Column]:
    """Leave out the leaves of arrays that are columns themselves, whose objects hold them."""
    places = {_place(column) for column in columns}
    return [column for column in columns if not (column.arrays and (column.path[:-1], column.arrays[0]) in places)]


def table_columns(columns: Iterable[Column], *, described: Sequence[Column]) -> list[TableColumn]:
    """Choose the type of each column.

    Args:
        columns: The columns of the table.
        described: All columns of the object: those inside an array are the members of its objects.
    """
    typed_columns = []
    for column in columns:
        inner = leaf = _kind(column, described)
        lists = column.repeated or bool(column.arrays) or _is_array(column, described)
        for _ in column.arrays:
            inner = list_of(inner)
        begins = kinds.ANY if lists else inner.begins
        decoder = msgspec.json.Decoder(kinds.optional(inner.decoded))
        typed_columns.append(TableColumn(column, inner, leaf, lists, begins, decoder))
    return typed_columns


def schema_of(columns: Sequence[TableColumn]) -> pa.Schema:
    """Return the schema, whose last field is the column of misfits; a column of that name gives it underscores."""
    names = {column.column.name for column in columns}
    name = MISFITS
    while name in names:
        name = f"_{name}"
    fields = [
        *(column.field for column in columns),
        pa.field(name, pa.string(), metadata={"values": "json", "role": ROLE}),
    ]
    return pa.schema(fields, metadata={"pandas": _pandas_types(fields)})


def _pandas_types(fields: Sequence[pa.Field]) -> bytes:
    """Return the metadata by which `to_pandas`, and pandas for a Parquet file, choose types that keep every integer.

    https://pandas.pydata.org/docs/development/developer.html
    """
    columns = [
        {"name": field.name, "field_name": field.name, "pandas_type": str(field.type), "numpy_type": name}
        | {"metadata": None}
        for field in fields
        if (name := _PANDAS.get(field.type))
    ]
    return msgspec.json.encode({"index_columns": [], "column_indexes": [], "columns": columns, "pandas_version": "2.0"})


def _place(column: Column) -> tuple[tuple[str, ...], str]:
    return column.path[:-1], column.path[-1] if column.path else ""


def _inside(column: Column, described: Sequence[Column]) -> list[Column]:
    """List the columns directly inside an array: not those of arrays in it."""
    if not column.path:
        return []
    arrays = (*column.arrays, column.path[-1])
    return [member for member in described if member.arrays == arrays and member.path[:-1] == column.path[:-1]]


def _is_array(column: Column, described: Sequence[Column]) -> bool:
    return bool(_inside(column, described))


def _kind(column: Column, described: Sequence[Column]) -> ArrowKind:
    """Return the kind of a column's values, not counting the arrays around it."""
    if column.dimensions is not None:
        vector = vector_of(column.dimensions)
        return struct_of([Member(name, vector) for name in column.members]) if column.members else vector
    if column.members:
        kind = struct_of([Member(name, kinds.FLOAT, required=True) for name in column.members])
    elif inside := _inside(column, described):
        object_kind = _objects(column, inside, described)
        return kinds.JSON if object_kind is None else list_of(object_kind)
    else:
        kind = _SCALARS.get(column.kind, kinds.JSON)
    if column.many:
        return many_of(kind)
    return list_of(kind) if column.repeated else kind


def _objects(column: Column, inside: Sequence[Column], described: Sequence[Column]) -> ArrowKind | None:
    """Return the kind of the objects in an array; None if a name in it stands for a value and an object at once."""
    tree: dict[str, Any] = {}
    for member in inside:
        *groups, last = member.path[-1].removeprefix(f"{column.path[-1]}.").split(".")
        node = tree
        for group in groups:
            node = node.setdefault(group, {})
            if not isinstance(node, dict):
                return None
        if isinstance(node.setdefault(last, member), dict):
            return None
    return _struct(tree, described)


def _struct(tree: dict[str, Any], described: Sequence[Column]) -> ArrowKind:
    members = []
    for name, node in tree.items():
        kind = _struct(node, described) if isinstance(node, dict) else _kind(node, described)
        members.append(Member(name, kind))
    return struct_of(members)
