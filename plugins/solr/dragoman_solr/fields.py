"""Fields as columns, and the values that Solr would store otherwise than they were written. Pure.

The rule of a measured fact is in parentheses, as in S7.
"""

from __future__ import annotations

import re
from base64 import b64encode
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import partial
from struct import pack, unpack
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api import Column, ColumnKind, Json, Note, Role, Written
from dragoman_api.columns import EMPTINESS, NULLS, ORDER, PATTERNS
from dragoman_api.columns import Operator as Op
from dragoman_api.json_text import encode
from dragoman_api.kit import operands
from dragoman_api.kit.page_columns import cell_of, columns_left_out
from dragoman_api.kit.summaries import instant_text
from dragoman_api.kit.views import digest

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from dragoman_api import Cell

VERSION, ROOT, NEST = "_version_", "_root_", "_nest_path_"
_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # what Solr reads as a name in a list of fields and in functions (S8)
_KINDS = {
    "StrField": ColumnKind.TEXT, "TextField": ColumnKind.TEXT, "SortableTextField": ColumnKind.TEXT,
    "IntPointField": ColumnKind.INTEGER, "LongPointField": ColumnKind.INTEGER, "FloatPointField": ColumnKind.FLOAT,
    "DoublePointField": ColumnKind.FLOAT, "DatePointField": ColumnKind.TIMESTAMP, "BoolField": ColumnKind.BOOLEAN,
    "BinaryField": ColumnKind.BINARY,
}  # fmt: skip
_EQUAL = (Op.EQ, Op.NE, Op.IN, Op.NOT_IN)
_OPERATORS: dict[ColumnKind, tuple[Op, ...]] = {
    ColumnKind.TEXT: (*_EQUAL, *ORDER, *PATTERNS, *EMPTINESS),
    ColumnKind.INTEGER: (*_EQUAL, *ORDER),
    ColumnKind.FLOAT: (*_EQUAL, *ORDER),
    ColumnKind.TIMESTAMP: (*_EQUAL, *ORDER),
    ColumnKind.BOOLEAN: (Op.EQ, Op.NE),
}


class Field(msgspec.Struct, frozen=True, rename="camel"):
    """A field as the schema resolves it."""

    name: str
    type: str
    indexed: bool = False
    stored: bool = False
    doc_values: bool = False
    multi_valued: bool = False
    uninvertible: bool = False
    tokenized: bool = False
    omit_norms: bool = False
    use_doc_values_as_stored: bool = False

    @property
    def simple(self) -> bool:
        """Whether a list of fields and a function can name it (S8)."""
        return _SIMPLE.fullmatch(self.name) is not None

    @property
    def returned(self) -> bool:
        """Whether the server returns it where nothing names it; it also survives an update then (S22)."""
        return self.stored or (self.doc_values and self.use_doc_values_as_stored)


class FieldType(msgspec.Struct, frozen=True, rename={"class_name": "class"}):
    """A type of fields."""

    name: str
    class_name: str


class Copy(msgspec.Struct, frozen=True, rename="camel"):
    """A field that the server fills from another one."""

    source: str
    dest: str
    max_chars: int = 0

    def makes(self, name: str) -> bool:
        """Return whether it fills a field."""
        return fnmatchcase(name, self.dest)


class Schema(msgspec.Struct, frozen=True, rename="camel"):
    """A schema with its types and copies."""

    field_types: list[FieldType]
    copy_fields: list[Copy] = []
    unique_key: str = ""


class IndexedField(msgspec.Struct, frozen=True, rename="camel"):
    """A field that documents of the index have, and the pattern that made it."""

    dynamic_base: str = ""


class View(msgspec.Struct, frozen=True):
    """A core as it was read.

    Attributes:
        name: Its name.
        key: The unique key; empty if it has none.
        columns: Its columns by name, the key first.
        fields: Its fields by name, those that no column shows, too.
        classes: The classes of the fields.
        lost: Fields that no answer returns, so that an update would lose them (S22).
        copied: Fields that answers return, with the copies that fill them anew in an update, whatever else they hold.
        remade: The same of fields that no answer returns.
        doubled: Fields that copies fill by a pattern of names: an update would fill them a second time.
        notes: Remarks on the columns.
        revision: Differs if the columns do.
        grow: Returns the view with columns for names that no document has yet, by the patterns of the schema (S5).
    """

    name: str
    key: str
    columns: dict[str, Column]
    fields: dict[str, Field]
    classes: dict[str, str]
    lost: list[str]
    copied: dict[str, list[Copy]]
    remade: list[str]
    doubled: list[str]
    notes: list[Note]
    revision: str
    grow: Any

    def writes(self, name: str) -> bool:
        """Return whether a change may name a field, other than its key."""
        return name in self.columns and self.columns[name].written is Written.ALWAYS

    def own_value(self, document: Mapping[str, Any]) -> str:
        """Return a field of a document that holds what no other field gives it, and an update would lose; or none."""
        for name, copies in self.copied.items():
            copied_values = [
                item
                for copy in copies for source, value in document.items() if fnmatchcase(source, copy.source)
                for item in _texts(value, copy.max_chars)
            ]  # fmt: skip
            if any(all(not _alike(item, other) for other in copied_values) for item in _texts(document.get(name))):
                return name
        return ""


def view_of(
    name: str,
    schema: Schema,
    declared: Sequence[Field],
    patterns: Sequence[Field],
    index: Mapping[str, IndexedField],
    *,
    names: Collection[str] = (),
) -> View:
    """Return the view of a core: its declared fields, and those that documents or further names have by a pattern."""
    bases = {pattern.name: pattern for pattern in sorted(patterns, key=lambda pattern: -len(pattern.name))}
    fields = {field.name: field for field in declared}
    for new in names:  # the longest pattern wins
        base = next((base for base in bases if fnmatchcase(new, base)), "")
        index = {new: IndexedField(base), **index}
    for indexed_name, entry in index.items():
        if indexed_name not in fields and entry.dynamic_base in bases:
            fields[indexed_name] = msgspec.structs.replace(bases[entry.dynamic_base], name=indexed_name)
    classes = {kind.name: kind.class_name.rpartition(".")[2] for kind in schema.field_types}
    copies = {
        name: own_copies for name in fields if (own_copies := [copy for copy in schema.copy_fields if copy.makes(name)])
    }
    rules = {rule.name for rule in (*declared, *patterns) if not (rule.indexed or rule.returned or rule.doc_values)}
    hidden = {field for field in fields.values() if not field.returned and not (field.doc_values and field.simple)}
    unseen = [name for name in fields if name in index and not fields[name].returned]
    own = (ROOT, NEST, VERSION)
    lost = [name for name in unseen if name not in own
            and (name not in copies or any(copy.source in rules for copy in copies[name]))]  # fmt: skip
    doubled = [name for name, own_copies in copies.items() if name not in [copy.dest for copy in own_copies]]
    copied = {name: own_copies for name, own_copies in copies.items() if fields[name].returned and name not in doubled}
    remade = [name for name in unseen if name in copies and name not in lost]
    edit = ""
    if not schema.unique_key or VERSION not in fields:
        edit = f"the schema has no unique key or no field {VERSION}, so that no change can name or guard a row"
    columns = {
        field.name: _column(field, classes.get(field.type, ""), schema.unique_key, copies.get(field.name), edit)
        for field in fields.values()
        if field not in hidden
    }
    key = columns.pop(schema.unique_key, None)
    columns = {**({key.name: key} if key else {}), **columns}
    reasons = {field.name: "the field is neither stored nor kept as a column of values" for field in hidden}
    reasons.pop(ROOT, None)
    notes = columns_left_out(reasons, hint="a Raw row finds words in it, such as text:word")
    grow = partial(_grown, name, schema, declared, patterns, index)
    of_fields = {field.name: classes.get(field.type, "") for field in fields.values()}
    return View(
        name=name, key=schema.unique_key, columns=columns, fields=fields, classes=of_fields, lost=lost, copied=copied,
        remade=remade, doubled=doubled, notes=notes, revision=digest([*columns.values()]), grow=grow,
    )  # fmt: skip


def _texts(value: Any, length: int = 0) -> list[str]:
    """Return the values of a field as texts, as far as a copy takes them."""
    items = value if isinstance(value, list) else [] if value is None else [value]
    texts = [item if isinstance(item, str) else encode(item) for item in items]
    return [text[:length] for text in texts] if length else texts


def _alike(left: str, right: str) -> bool:
    """Return whether two texts are the same value of some field: numbers have several spellings."""
    try:
        return left == right or float(left) == float(right)
    except ValueError:
        return False


def _grown(*source: Any) -> View:
    *parts, names = source
    return view_of(*parts, names=names)


def _column(field: Field, kind_name: str, key: str, copies: list[Copy] | None, edit: str) -> Column:
    kind = _KINDS.get(kind_name, ColumnKind.OTHER)
    searched = field.indexed or field.doc_values
    operators, reasons = _OPERATORS.get(kind, ()) if searched else (), dict[str, str]()
    if kind is ColumnKind.TEXT and field.tokenized:
        operators = (Op.CONTAINS, Op.NOT_CONTAINS) if searched else ()
    if operators and not (field.tokenized and field.omit_norms):
        operators = (*operators, *NULLS)
    if not operators:
        reasons["filter"] = (
            f"Solr compares no values of {kind_name or 'this type'} here" if searched else "the field is not indexed"
        )
    orders = kind is not ColumnKind.OTHER and kind is not ColumnKind.BINARY and not field.multi_valued and field.simple
    sortable = orders and (field.doc_values or (field.indexed and field.uninvertible and not field.tokenized))
    if not sortable:
        several = "the field may have several values" if field.multi_valued else ""
        reasons["sort"] = several or "Solr keeps no order of the field: it is split into words, or has no docValues"
    role, written = Role.NONE, Written.ALWAYS
    if field.name == key:
        role, written = Role.KEY, Written.INSERT
        reasons["edit"] = "the key of a document cannot be changed"
    elif field.name in (VERSION, NEST) or copies or edit:
        role = Role.VERSION if field.name == VERSION else role
        written = Written.NEVER
        reasons["edit"] = edit or (
            f"the server copies it from '{copies[0].source}'" if copies else "the server keeps it"
        )
    return Column(
        name=field.name, type=field.type, kind=kind, repeated=field.multi_valued, role=role, written=written,
        sortable=sortable, operators=operators, reasons=reasons, path=(field.name,),
    )  # fmt: skip


def cell(value: Any) -> Cell:
    """Return a value of an answer as a cell."""
    cell_value = cell_of(value)
    return Json(cell_value) if isinstance(value, list | dict) and isinstance(cell_value, str) else cell_value


def scalar(value: object, column: Column, class_name: str) -> Any:
    """Return one value as Solr keeps it, in the spelling of its answers; the server would cut or round others (S10).

    Raises:
        ValueError: The field holds no such value.
    """
    if column.kind is ColumnKind.TEXT:
        return operands.text(value)
    if column.kind is ColumnKind.BOOLEAN:
        return operands.boolean(value)
    if column.kind is ColumnKind.INTEGER:
        whole = operands.integer(value)
        if class_name == "IntPointField" and not -(1 << 31) <= whole < 1 << 31:
            raise ValueError(f"{whole} is beyond the 32 bits of the field")
        return whole
    if column.kind is ColumnKind.FLOAT:
        exact, close = operands.decimal(value), operands.floating(value)
        if class_name == "FloatPointField":
            close = _single(close)
        if Decimal(repr(close)) != exact:
            raise ValueError(f"the field would hold {close!r} in place of {exact}")
        return close
    milliseconds = operands.instant(value) * 1000
    if milliseconds != int(milliseconds):
        raise ValueError("Solr keeps instants in milliseconds, and cuts the rest off")
    return instant_text(int(milliseconds))


def _single(close: float) -> float:
    """Return a number as 32 bits hold it, in the fewest digits that say which."""
    try:
        (single,) = unpack("f", pack("f", close))
    except OverflowError:
        raise ValueError("the field holds 32-bit floats, and the number is too large") from None
    shortest = (float(f"{single:.{digits}g}") for digits in range(1, 10))
    return next(text for text in shortest if unpack("f", pack("f", text)) == (single,))


def stored(name: str, value: object, view: View) -> Any:
    """Return the value of a change as the server keeps it.

    Raises:
        ValueError: It would keep another one, or take the value for an instruction.
    """
    column, field, class_name = view.columns[name], view.fields[name], view.classes[name]
    if value is None or value == []:
        return None
    items = value if isinstance(value, list) else [value]
    if isinstance(value, list) and not column.repeated:
        raise ValueError("the field has one value")
    if any(item is None or isinstance(item, dict | list) for item in items):
        raise ValueError("a value is neither null nor an object nor an array here")
    if column.kind is ColumnKind.BINARY:
        items = [b64encode(item).decode() if isinstance(item, bytes) else item for item in items]
    elif column.kind is not ColumnKind.OTHER:
        items = [scalar(item, column, class_name) for item in items]
    if column.repeated and not field.stored and items != sorted(set(items)):
        raise ValueError("the server keeps the values of this field in order, and each once; write them so")
    return items if column.repeated else items[0]
