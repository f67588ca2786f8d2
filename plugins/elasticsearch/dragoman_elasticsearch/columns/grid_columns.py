"""One object as the grid sees it: its columns, and the field behind each."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from dragoman_api import Column, Description, Note, Role, TimeColumn, Written
from dragoman_api.columns import MAX_COLUMNS

from .field_types import Family, Field

_COMPUTED = (
    "_type", "_version", "_seq_no", "_primary_term", "_score", "_ignored", "_explanation", "_shard", "_node", "found",
    "sort", "fields", "highlight", "matched_queries", "inner_hits", "ignored_field_values",
)  # fmt: skip
"""Members of a search hit, or of a document's own answer, that the server makes of the document and the request."""


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
    routed: bool = False
    hidden: bool
    identity: str = ""
    time: str = ""

    def find(self, name: str) -> Field | None:
        """Find a column by name; a dotted key of a flattened field counts as a column."""
        if (found := self.fields.get(name)) is not None:
            return found
        parts = name.split(".")
        for end in range(len(parts) - 1, 0, -1):
            root = self.fields.get(".".join(parts[:end]))
            if root is not None and root.family is Family.FLATTENED and all(parts):
                keys = (*root.keys, *parts[end:])
                return replace(root, name=name, field=name, family=Family.KEYED, types=("flattened",), keys=keys)
        return None

    def describe(self) -> Description:
        """Describe the columns in grid order, as many as a page can hold."""
        columns, notes = list(self.columns.values()), list(self.notes)
        if len(columns) > MAX_COLUMNS:
            reason = f"{len(columns)} columns are mapped; the first {MAX_COLUMNS} are shown"
            notes.append(Note(code="columns-cut", reason=reason))
        return Description(
            object=self.target,
            columns=columns[:MAX_COLUMNS],
            structure=self.structure,
            notes=notes,
            time=TimeColumn(column=self.time) if self.time else None,
            object_member="_index",
            server_members=_COMPUTED,
        )


def column(each: Field, *, stored: bool = True, time: bool = False) -> Column:
    """Describe a field as a column, with what it takes and why it does not take the rest; `time` if it orders rows."""
    operators, reasons, sortable = each.support
    return Column(
        name=each.name,
        type=each.type,
        kind=each.kind,
        multiple=each.family not in (Family.ID, Family.INDEX, Family.SCORE),
        role=Role.KEY if each.family is Family.ID else Role.TIME if time else Role.NONE,
        written=Written.INSERT if each.family is Family.ID else Written.NEVER if "edit" in reasons else Written.ALWAYS,
        sortable=sortable,
        operators=operators,
        reasons=reasons,
        path=_exported(each, stored=stored),
        arrays=each.nested,
        members=each.members,
        dimensions=each.dimensions,
    )


def _exported(each: Field, *, stored: bool) -> tuple[str, ...]:
    """Return the path of a field in an exported row; computed fields have none."""
    if each.family in (Family.ID, Family.INDEX):
        return (each.name,)
    return () if each.family is Family.SCORE or each.runtime or not stored else ("_source", each.field)
