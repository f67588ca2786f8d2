"""One object as the grid sees it: its columns, and the field behind each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from dragoman_api import Column, Description, Note, Role, TimeColumn, Written
from dragoman_api.columns import MAX_COLUMNS
from dragoman_api.kit.page_columns import columns_cut, columns_left_out

from .field_types import Family, Field

if TYPE_CHECKING:
    from collections.abc import Iterable

COMPUTED = (
    "_type", "_version", "_seq_no", "_primary_term", "_score", "_ignored", "_explanation", "_shard", "_node", "found",
    "sort", "fields", "highlight", "matched_queries", "inner_hits", "ignored_field_values",
)  # fmt: skip
"""Members of a search hit, or of a document's own answer, that the server makes of the document and the request."""
_ROLES = {Family.ID: Role.KEY, Family.INDEX: Role.SERVER, Family.SCORE: Role.SERVER}
_EXCLUDED = "stored documents leave it out ({}), though filters and sorts use its values"
_REBUILT = (
    "the index {} its vectors apart from its documents ({}): documents with one come back as the server puts them "
    "together, with numbers in another spelling, vectors behind the other members, and normalized ones rounded"
)
_SYNTHETIC = (
    "the index rebuilds its documents (synthetic _source): arrays come back sorted and without repeats, objects in an "
    "array as one object of arrays, and numbers in another spelling"
)
_NOT_STORED = "a script computes it for a page, and an export holds what is stored"


class View(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One object as the grid sees it: an index, or the union of all that its name resolves to (E17).

    Attributes:
        target: The name requests use.
        objects: The concrete indices that its name covers.
        fields: By column name, in grid order.
        columns: The described columns, by name.
        revision: A digest of the mappings; of the field capabilities if the mappings are hidden.
        structure: The mappings as JSON text.
        notes: Conflicts, missing rights.
        synthetic: The server rebuilds documents, so they come back changed.
        pruned: What stored documents leave out, in the words of the mapping; empty if nothing.
        excluded: The words of the mapping, by the names of the columns that stored documents leave out.
        vectors_apart: The indexed vectors that the server keeps apart from documents, and puts back into answers; if
            the mappings are hidden, those of which it may do so.
        routed: Every row needs a routing (`_routing.required`): the server refuses one without.
        hidden: The credentials may not read the mappings.
        identity: The ids of the indices, if the mappings are too large to be read again for every call.
        time: The name of the time column, empty if there is none.
    """

    target: str
    objects: tuple[str, ...]
    fields: dict[str, Field]
    columns: dict[str, Column]
    revision: str
    structure: str = ""
    notes: tuple[Note, ...] = msgspec.field(default=())
    synthetic: bool = False
    pruned: str = ""
    excluded: dict[str, str] = msgspec.field(default_factory=dict)
    vectors_apart: tuple[str, ...] = ()
    routed: bool = False
    hidden: bool
    identity: str = ""
    time: str = ""

    def find(self, name: str) -> Field | None:
        """Find a column by name; a dotted key of a flattened field counts as a column."""
        if (field := self.fields.get(name)) is not None:
            return field
        parts = name.split(".")
        for end in range(len(parts) - 1, 0, -1):
            root = self.fields.get(".".join(parts[:end]))
            if root is not None and root.family is Family.FLATTENED and all(parts):
                keys = (*root.keys, *parts[end:])
                return replace(root, name=name, field=name, family=Family.KEYED, types=root.types, keys=keys)
        return None

    def left_out(self, names: Iterable[str]) -> list[Note]:
        """Return notes on the columns among these that stored documents leave out; the index holds their values."""
        return columns_left_out(
            {name: _EXCLUDED.format(self.excluded[name]) for name in names if name in self.excluded}
        )

    def document_notes(self) -> list[Note]:
        """Return the notes on what stored documents leave out, in whichever column, and on what changes in them."""
        pruned = columns_left_out(dict.fromkeys(self.excluded, _EXCLUDED.format(self.pruned))) if self.pruned else []
        return [*pruned, *self.rebuilt_notes()]

    def rebuilt_notes(self) -> list[Note]:
        """Return notes on documents that the server puts together anew, from its index or with vectors kept apart."""
        reasons = [_SYNTHETIC] if self.synthetic else []
        if self.vectors_apart:
            first, *others = self.vectors_apart
            names = repr(first) + (f" and {len(others)} more" if others else "")
            reasons.append(_REBUILT.format("may keep" if self.hidden else "keeps", names))
        return [Note(code="documents-rebuilt", reason=reason) for reason in reasons]

    def describe(self) -> Description:
        """Describe the columns in grid order, as many as a page can hold."""
        columns = list(self.columns.values())
        notes = [*self.notes, *self.rebuilt_notes(), *columns_cut(len(self.columns))]
        return Description(
            object=self.target,
            columns=columns[:MAX_COLUMNS],
            structure=self.structure,
            notes=notes,
            time=TimeColumn(column=self.time) if self.time else None,
            object_member="_index",
            server_members=COMPUTED,
        )


def column(field: Field, *, stored: bool = True, excluded: str = "", time: bool = False) -> Column:
    """Describe a field as a column, with what it takes and why it does not take the rest.

    Args:
        field: The field.
        stored: Some stored document may hold it.
        excluded: The words of the mapping that leave it out of stored documents.
        time: It orders rows in time.
    """
    operators, reasons, sortable = field.support
    if field.computed:
        reasons = {**reasons, "export": _NOT_STORED}
    elif excluded and not stored:
        reasons = {**reasons, "export": _EXCLUDED.format(excluded)}
    return Column(
        name=field.name,
        type=field.type,
        kind=field.kind,
        multiple=field.family not in (Family.ID, Family.INDEX, Family.SCORE),
        role=_ROLES.get(field.family, Role.TIME if time else Role.NONE),
        written=Written.INSERT if field.family is Family.ID else Written.NEVER if "edit" in reasons else Written.ALWAYS,
        sortable=sortable,
        operators=operators,
        reasons=reasons,
        path=_exported(field, stored=stored),
        arrays=field.nested,
        members=field.members,
        dimensions=field.dimensions,
    )


def _exported(field: Field, *, stored: bool) -> tuple[str, ...]:
    """Return the path of a field in an exported row; computed fields have none."""
    if field.family in (Family.ID, Family.INDEX):
        return (field.name,)
    return () if field.family is Family.SCORE or field.computed or not stored else ("_source", field.field)
