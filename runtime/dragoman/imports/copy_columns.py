"""Columns of a copy to a connection of another type: the name and the type that each gets there, and why.

The driver of the target judges: what it has no type or name for is carried in the next best way.
"""

from __future__ import annotations

import re
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.spellings import did_you_mean, map_option, near_names
from dragoman_api.changes import NewColumn, NewObject
from dragoman_api.columns import Column, ColumnKind, Written
from dragoman_api.errors import ConfigurationError, QueryError

from .column_mapping import MemberPlaces
from .new_objects import plan_new
from .proposals import kind_named
from .translations import NESTED_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman.sessions.session import Session
    from dragoman_api.changes import Plan
    from dragoman_api.columns import Description

KEPT_APART = "column-kept-apart"
"""The code of the note by which a driver's plan of a new object names a column that the object does not get."""

_AS_TEXT = "as its JSON text, because there is no such type"
_AS_NUMBERS = "as an array of numbers, in which no vectors are searched"
_KINDS = {
    ColumnKind.UNSIGNED: (ColumnKind.INTEGER, "as an integer with a sign: a value from 2^63 on is rejected"),
    ColumnKind.DECIMAL: (ColumnKind.TEXT, "as a text of its digits"),
    ColumnKind.TIME: (ColumnKind.TEXT, "as a text"),
}


class ColumnFate(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one column in a copy to a connection of another type.

    Attributes:
        column: The column of the source.
        type: Its type there.
        name: The column that receives its values; empty if it is left out.
        target: The type of that column, or the one that it gets.
        reason: Why it is left out, or what changes; empty if it is carried as it is.
        consent: The caller asked for that, so nobody else has to agree.
    """

    column: str
    type: str
    name: str = ""
    target: str = ""
    reason: str = ""
    consent: bool = False


class ColumnDraft(msgspec.Struct):
    """One column while a copy is planned; `reason` with an empty `name` means that it is left out."""

    source: Column
    name: str
    kind: ColumnKind | None = None
    repeated: bool = False
    dimensions: int | None = None
    target: str = ""
    reason: str = ""
    consent: bool = False

    def restore(self, other: ColumnDraft) -> None:
        """Take over what is said of the target."""
        for name in ("name", "kind", "dimensions", "reason", "consent"):
            setattr(self, name, getattr(other, name))

    def name_it(self, name: str, *, because: str) -> None:
        """Give the column there another name, which nobody has agreed to yet, and say why."""
        reason = f"under another name: {because}"
        self.name, self.reason = name, f"{self.reason}; {reason}" if self.reason else reason
        self.consent = False

    def fate(self) -> ColumnFate:
        """Return what becomes of the column, as callers see it."""
        return ColumnFate(
            column=self.source.name, type=self.source.type, name=self.name, target=self.target, reason=self.reason,
            consent=self.consent,
        )  # fmt: skip


def drafted(column: Column, renamed: Mapping[str, str], texts: Sequence[bytes | None]) -> ColumnDraft:
    """Return a column with the name that the caller wishes; values of some rows tell arrays and sizes of vectors."""
    name = renamed.get(column.name, column.name)
    if not name:
        return ColumnDraft(column, "", reason="left out, as you asked", consent=True)
    vector = column.dimensions is not None
    lists = not vector and column.multiple and any(text is not None and text[:1] == b"[" for text in texts)
    nests = column.kind in NESTED_KINDS and not vector
    repeated = vector or ((column.repeated or lists) and not nests)
    draft = ColumnDraft(column, name, repeated=repeated, consent=column.name in renamed)
    if vector:
        sizes = {
            len(msgspec.json.decode(text, type=list[Any])) for text in texts if text is not None and text[:1] == b"["
        }
        draft.dimensions = column.dimensions or (sizes.pop() if len(sizes) == 1 else 0)
    return draft


def choose_types(drafts: Sequence[ColumnDraft], types: Mapping[str, str]) -> None:
    """Choose the types of the columns of an object that is to be made."""
    names = [draft.name for draft in drafts if draft.name]
    if unknown := next((name for name in types if name not in names), None):
        text = f"no column of the new object is called {unknown!r}{did_you_mean(near_names(unknown, names))}"
        raise ConfigurationError(text, hint=f"its columns are {', '.join(names)}", code="column-unknown")
    for draft in drafts:
        source = draft.source
        if not draft.name:
            continue
        if draft.name in types:
            draft.kind, draft.dimensions, draft.consent = kind_named(types[draft.name], draft.name), None, True
        elif draft.dimensions is not None:
            draft.kind = ColumnKind.FLOAT
        elif source.kind in NESTED_KINDS:
            draft.kind = ColumnKind.JSON
        else:
            draft.kind, draft.reason = _KINDS.get(source.kind, (source.kind, ""))


async def plan_with_columns(target: Session, name: str, drafts: Sequence[ColumnDraft], *, fixed: set[str]) -> Plan:
    """Plan the object; what its driver has no type or name for is carried in the next best way, with the reason."""
    failure: QueryError | None = None
    originals = [msgspec.structs.replace(draft) for draft in drafts]
    changes = (_nested_as_text, _vectors_as_numbers, _names_as_words)
    for chosen in chain.from_iterable(combinations(changes, count) for count in range(len(changes) + 1)):
        for draft, original in zip(drafts, originals, strict=True):
            draft.restore(original)
        effects = [change(drafts, fixed) for change in chosen]
        if not all(effects):
            continue
        check_collisions(drafts)
        try:
            plan = await _plan_columns(target, name, drafts, fixed)
        except QueryError as error:
            failure = failure or error
            continue
        for draft in drafts:
            if draft.name:
                draft.target = _type_of(draft)
        return plan
    assert failure is not None
    raise failure


async def _plan_columns(target: Session, name: str, drafts: Sequence[ColumnDraft], fixed: set[str]) -> Plan:
    """Plan the object with these columns; those that bear the name of one that the server keeps itself get another."""
    for _ in range(2):
        columns = [
            NewColumn(
                draft.name, draft.kind or ColumnKind.TEXT, repeated=draft.repeated, dimensions=draft.dimensions
            )
            for draft in drafts if draft.name
        ]  # fmt: skip
        plan = await plan_new(target, NewObject(name, columns=columns))
        kept_apart = {note.column for note in plan.notes if note.code == KEPT_APART}
        own = [draft for draft in drafts if draft.name and draft.name in kept_apart]
        if not own:
            return plan
        if any(draft.source.name in fixed for draft in own):
            break
        for draft in own:
            draft.name_it(f"{draft.name}_", because="a column of that name is the server's own")
        check_collisions(drafts)
    source = own[0].source.name
    text = f"{name!r} has a column {own[0].name!r} of its own, which takes no values of {source!r}"
    hint = f"{map_option(source, 'NAME')} gives it another name, and {map_option(source)} leaves it out"
    raise ConfigurationError(text, hint=hint, code="columns-collide")


def _type_of(draft: ColumnDraft) -> str:
    if draft.dimensions is not None:
        return f"vector of {draft.dimensions:,} numbers" if draft.dimensions else "vector"
    return f"{draft.kind}{'[]' if draft.repeated else ''}"


def _nested_as_text(drafts: Sequence[ColumnDraft], _fixed: set[str]) -> bool:
    chosen = [draft for draft in drafts if draft.name and draft.kind is ColumnKind.JSON]
    for draft in chosen:
        draft.kind, draft.reason = ColumnKind.TEXT, _AS_TEXT
    days = [draft for draft in drafts if draft.name and draft.kind is ColumnKind.DATE and not draft.consent]
    for draft in days:
        draft.kind, draft.reason = ColumnKind.TIMESTAMP, "as the midnight (UTC) with which the day begins"
    return bool(chosen or days)


def _names_as_words(drafts: Sequence[ColumnDraft], fixed: set[str]) -> bool:
    """Rename columns whose names are no plain words; return whether there are any."""
    changed = False
    for draft in drafts:
        if draft.name and draft.source.name not in fixed and (word := word_of(draft.name)) != draft.name:
            draft.name_it(word, because="the driver refuses this one")
            changed = True
    return changed


def word_of(name: str) -> str:
    """Return a name of letters, digits and underscores that begins with none of the digits and no capital.

    >>> word_of("address.city"), word_of("2nd place"), word_of("Title"), word_of("id")
    ('address_city', '_2nd_place', 'title', 'id_')
    """
    word = re.sub(r"[^0-9A-Za-z_]", "_", name)
    word = f"_{word}" if word[:1].isdigit() else word[:1].lower() + word[1:]
    return f"{word}_" if word == "id" else word


def _vectors_as_numbers(drafts: Sequence[ColumnDraft], _fixed: set[str]) -> bool:
    chosen = [draft for draft in drafts if draft.name and draft.dimensions is not None]
    for draft in chosen:
        draft.dimensions = None
        draft.reason = f"{draft.reason}; {_AS_NUMBERS}" if draft.reason else _AS_NUMBERS
    return bool(chosen)


def match_columns(drafts: Sequence[ColumnDraft], existing: Description) -> None:
    """Find the columns of an object that exists."""
    columns = {column.name: column for column in existing.columns}
    places = MemberPlaces(existing)
    vectors = [draft for draft in drafts if draft.name and draft.source.dimensions is not None]
    vector_columns = [
        column for column in existing.columns
        if column.dimensions is not None and not column.members and column.written is not Written.NEVER
    ]  # fmt: skip
    if len(vectors) == len(vector_columns) == 1 and not vectors[0].consent and vectors[0].name not in columns:
        vectors[0].name = vector_columns[0].name
        vectors[0].reason = f"into {vector_columns[0].name!r}, the only vector there"
    for draft in drafts:
        if not draft.name:
            continue
        column = columns.get(draft.name)
        if column is None and (place := places.find(draft.name)) is not None:
            draft.target, draft.repeated = "vector" if draft.source.dimensions is not None else place.column, False
        elif column is None:
            reason = f"left out: {existing.object!r} has no such column"
            draft.name, draft.reason, draft.consent = "", reason, False
        elif column.is_key or column.written is Written.NEVER:
            reason = "it is the id there" if column.is_key else column.reasons.get("edit", "no change can write it")
            draft.name, draft.reason, draft.consent = "", f"left out: {reason}", False
        else:
            _fit(draft, column)


def _fit(draft: ColumnDraft, column: Column) -> None:
    draft.kind, draft.target = column.kind, column.type
    draft.repeated = column.repeated and column.dimensions is None
    source = draft.source
    nests = source.kind in NESTED_KINDS and source.dimensions is None
    if nests and column.kind is ColumnKind.TEXT:
        draft.reason = "as its JSON text"
    elif source.dimensions is not None and column.dimensions is None and column.kind is not ColumnKind.JSON:
        draft.reason = _AS_NUMBERS
    elif source.dimensions is None and (nests != (column.kind in NESTED_KINDS) or source.kind is not column.kind):
        draft.reason = "a value that does not fit makes a rejected row"


def check_collisions(drafts: Sequence[ColumnDraft]) -> None:
    """Raise ConfigurationError if two columns have one name (code ``columns-collide``)."""
    firsts: dict[str, ColumnDraft] = {}
    for draft in drafts:
        if draft.name and (first := firsts.setdefault(draft.name, draft)) is not draft:
            source, other = draft.source.name, first.source.name
            text = f"the columns {other!r} and {source!r} would both become {draft.name!r}"
            hint = f"{map_option(source, 'NAME')} gives one of them another name, and {map_option(other)} leaves it out"
            raise ConfigurationError(text, hint=hint, code="columns-collide")
