"""Plans of copies to a connection of another type: what becomes of each column, told before anything is written.

The columns of the source say the types; its first rows tell arrays from single values, and whether ids are UUIDs. What
is left out or changes its meaning has a reason, and somebody has to agree to it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import msgspec
from anyio.to_thread import run_sync

from dragoman.spellings import did_you_mean, near_names
from dragoman_api.changes import NewObject, PlannedRequest
from dragoman_api.columns import Column, Note, Role
from dragoman_api.errors import ConfigurationError, ObjectNotFoundError
from dragoman_api.kit.page_columns import columns_left_out

from .copies import (
    check_copy,
    first_lines,
    notes_on,
    stored_columns,
    why_lost,
    with_whole_arrays,
)
from .copy_columns import (
    KEPT_APART,
    ColumnFate,
    check_collisions,
    choose_types,
    drafted,
    match_columns,
    plan_with_columns,
)
from .new_objects import plan_new
from .records import has_uuids
from .translations import ObjectReader, Passage, Translation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman.sessions.rows import Rows
    from dragoman.sessions.session import Session
    from dragoman_api.changes import Plan
    from dragoman_api.columns import Description

IDS = ("keep", "derive", "new")
"""What becomes of the ids of rows."""

UUIDS = "ids-are-uuids"
"""The code of the note by which a driver's plan of a new object says that the ids of its rows are UUIDs."""

COPY_UNCONFIRMED = "copy-unconfirmed"
"""The code of the error for a copy that leaves out or changes what nobody has agreed to."""

Ids = Literal["keep", "derive", "new"]

_IDS_TOLD = {
    "keep": "the rows keep their ids",
    "derive": "each row gets the UUID that is derived from its id (version 5), the same in each copy",
    "new": "the rows get new ids, so that a second copy adds them again",
}


class CopyPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a copy to a connection of another type would do; nothing is written.

    Attributes:
        object: The object that receives the rows.
        exists: It exists.
        rows: The number of rows that were looked at.
        columns: What becomes of each column.
        ids: What becomes of the ids: the rows ``keep`` them, get UUIDs that are derived from them (``derive``), or get
            ``new`` ones.
        ids_reason: The same as a sentence.
        ids_consent: The caller said so, or nothing else is possible without a loss.
        notes: Further notes: of the target's driver on what it would make, and on fields that no column shows.
        making: The request that makes the object; None if it exists.
        passages: The columns that are carried.
        id_column: The column of the ids that are carried; None for new ids.
        lost: The columns that are left out under any name.
    """

    object: str
    exists: bool
    rows: int
    columns: list[ColumnFate]
    ids: Ids
    ids_reason: str
    ids_consent: bool
    notes: list[Note]
    making: PlannedRequest | None
    passages: list[Passage]
    id_column: Column | None
    lost: frozenset[str] = frozenset()

    @property
    def doubtful(self) -> list[ColumnFate]:
        """The columns that are left out or changed, which nobody has agreed to."""
        return [column for column in self.columns if column.reason and not column.consent]

    @property
    def left_out(self) -> list[Note]:
        """Notes on the columns that are left out."""
        return columns_left_out({column.column: column.reason for column in self.columns if not column.name})

    @property
    def document(self) -> dict[str, Any]:
        """The plan as a document that a program reads."""
        parts: dict[str, Any] = {name: getattr(self, name) for name in _TOLD}
        request = self.making and self.making.request
        return parts | {
            "making": request and {"method": request.method, "path": request.path, "body": request.body},
        }

    def translation(self, description: Description) -> Translation:
        """Return what makes rows of a table of the source's rows."""
        return Translation(self.passages, description, id_column=self.id_column, derives=self.ids == "derive")

    def check_confirmed(self) -> None:
        """Check that the caller has agreed to all that is left out or changed.

        Raises:
            ConfigurationError: It has not (code ``copy-unconfirmed``); the hint names the arguments that agree.
        """
        columns = self.doubtful
        if not columns and self.ids_consent:
            return
        parts = [f"{column.column!r}: {column.reason}" for column in columns]
        parts += [] if self.ids_consent else [f"ids: {self.ids_reason}"]
        left_out = {column.column: column.name for column in columns}
        hints = [f"renamed={left_out!r}"] if left_out else []
        hints += [] if self.ids_consent else [f"ids={self.ids!r}"]
        text = f"a copy into {self.object!r} would leave out or change something: {'; '.join(parts)}"
        raise ConfigurationError(text, hint=f"to agree to it: {', '.join(hints)}", code=COPY_UNCONFIRMED)


_TOLD = ("object", "exists", "rows", "columns", "ids", "ids_reason", "notes")


async def plan_copy(
    rows: Rows,
    target: Session,
    object: str,  # noqa: A002 - the design's word
    *,
    renamed: Mapping[str, str] | None = None,
    types: Mapping[str, str] | None = None,
    ids: str | None = None,
    create: bool = False,
) -> CopyPlan:
    """Return what a copy of rows to a connection of another type would do; nothing is written.

    Args:
        rows: The rows.
        target: The connection that receives them.
        object: The object that receives them.
        renamed: New names of columns by their old ones; an empty name leaves the column out.
        types: The types of columns of an object that is made, by their new names.
        ids: ``keep``, ``derive`` or ``new``; None to choose what loses nothing, else to ask.
        create: The object may be made.

    Raises:
        ConfigurationError: An argument names what is not there, or two columns would become one.
        ObjectNotFoundError: An object is missing, and `create` is not set.
        UnsupportedOperationError: The object is missing, and the target's driver makes none.
        QueryError: The driver cannot make this object.
    """
    check_copy(rows)
    renamed, types = renamed or {}, types or {}
    if ids is not None and ids not in IDS:
        raise ConfigurationError(f"ids is {ids!r}; it can be {', '.join(IDS)}")
    description = await rows.describe()
    existing: Description | None = None
    try:
        existing = await target.describe(object)
    except ObjectNotFoundError:
        if not create:
            raise
    if rows.type == target.type:
        if ids not in (None, "keep") or types:
            text = f"{rows.connection} and {target.name} are {target.type}: a copy keeps ids and types"
            raise ConfigurationError(text, hint="leave out what says another")
        return await _plan_like(description, existing, target, object, renamed)
    columns, lost = stored_columns(description)
    lines = await first_lines(rows, description)
    keys = [column for column in description.columns if column.is_key and column.path]
    columns, samples = await run_sync(_read, columns, keys, lines)
    _check_names(renamed, [*columns, *lost, *keys])
    key = keys[0] if len(keys) == 1 else None
    if key is not None and renamed.get(key.name):  # the ids go into a column, too
        columns = [key, *columns]
    elif len(keys) > 1:
        columns = [*keys, *columns]
    drafts = [drafted(column, renamed, samples.get(column.name, [])) for column in columns]
    plan: Plan | None = None
    if existing is not None:
        if types:
            raise ConfigurationError(f"types are for an object that is made, and {object!r} exists")
        match_columns(drafts, existing)
    else:
        choose_types(drafts, types)
        plan = await plan_with_columns(target, object, drafts, fixed={*renamed})
    check_collisions(drafts)
    notes = [note for note in (plan.notes if plan else ()) if note.code not in (UUIDS, KEPT_APART)]
    uuids = has_uuids(existing) if existing else plan is not None and any(note.code == UUIDS for note in plan.notes)
    leaves_ids = key is not None and renamed.get(key.name) == ""
    chosen, reason, consent = _ids(
        "new" if leaves_ids and ids is None else ids, key, samples.get(key.name, []) if key else [], uuids=uuids
    )
    notes += await run_sync(notes_on, lines, description)
    fates = [draft.fate() for draft in drafts]
    fates += [
        ColumnFate(
            column=column.name, type=column.type, reason=why_lost(column), consent=renamed.get(column.name) == ""
        )
        for column in lost
    ]
    return CopyPlan(
        object=object, exists=existing is not None, rows=len(lines), columns=fates, ids=chosen, ids_reason=reason,
        ids_consent=consent, notes=notes, making=plan.planned[0] if plan else None,
        passages=[
            Passage(source=draft.source, name=draft.name, kind=draft.kind, repeated=draft.repeated)
            for draft in drafts if draft.name
        ],
        id_column=None if chosen == "new" else key, lost=frozenset(column.name for column in lost),
    )  # fmt: skip


async def _plan_like(
    description: Description, existing: Description | None, target: Session, name: str, renamed: Mapping[str, str]
) -> CopyPlan:
    """Plan a copy of rows as they are, into an object that exists or is made like theirs."""
    plan = None if existing else await plan_new(target, NewObject(name, description.structure))
    types = {column.name: column.type for column in existing.columns} if existing else {}
    columns = []
    for column in description.columns:
        if not column.path or column.is_key or column.role is Role.SERVER:
            continue
        column_name = renamed.get(column.name, column.name)
        target_type = types.get(column_name, "") if existing else column.type
        reason = ""
        if existing and not column_name:
            reason = "left out, as you asked"
        elif existing and column_name not in types:
            reason = "there is no such column: the server adds it, or refuses the row"
        elif target_type != column.type:
            reason = "a value that does not fit makes a rejected row"
        columns.append(
            ColumnFate(
                column=column.name, type=column.type, name=column_name, target=target_type, reason=reason, consent=True
            )
        )
    return CopyPlan(
        object=name, exists=existing is not None, rows=0, columns=columns, ids="keep", ids_reason=_IDS_TOLD["keep"],
        ids_consent=True, notes=[], making=plan.planned[0] if plan else None, passages=[], id_column=None,
    )  # fmt: skip


# the columns


def _read(
    columns: list[Column], keys: Sequence[Column], lines: Sequence[bytes]
) -> tuple[list[Column], dict[str, list[bytes | None]]]:
    """Return the columns, with one for each array of objects, and the values of these and of the keys in some rows."""
    columns = with_whole_arrays(columns, lines)
    reader = ObjectReader([*keys, *columns])
    rows = [reader.read(line)[0] for line in lines]
    return columns, {column.name: [row[at] for row in rows] for at, column in enumerate([*keys, *columns])}


def _check_names(renamed: Mapping[str, str], columns: Sequence[Column]) -> None:
    names = [column.name for column in columns]
    if unknown := next((name for name in renamed if name not in names), None):
        text = f"the source has no column {unknown!r}{did_you_mean(near_names(unknown, names))}"
        raise ConfigurationError(text, hint=f"its columns are {', '.join(names)}", code="column-unknown")


def _ids(
    wished: str | None, key: Column | None, texts: Sequence[bytes | None], *, uuids: bool
) -> tuple[Ids, str, bool]:
    """Return what becomes of the ids, the same as a sentence, and whether nobody has to agree."""
    if key is None:
        if wished in ("keep", "derive"):
            text = "the source has no single column of ids to keep"
            raise ConfigurationError(text, hint="--ids new")
        return "new", _IDS_TOLD["new"], True
    are_uuids = all(text is not None and _is_uuid(text) for text in texts)
    rejects = "; a row whose id is no UUID is rejected, because ids there are UUIDs"
    if wished == "keep" or (wished is None and (not uuids or (are_uuids and bool(texts)) or key.type == "uuid")):
        return "keep", _IDS_TOLD["keep"] + (rejects if uuids and key.type != "uuid" else ""), True
    if wished == "new":
        return "new", _IDS_TOLD["new"], True
    if wished == "derive":
        return "derive", _IDS_TOLD["derive"], True
    return "derive", f"ids there are UUIDs, and these are not: {_IDS_TOLD['derive']}", False


def _is_uuid(text: bytes) -> bool:
    """Return whether a text is a UUID in its usual spelling, which a server of UUIDs does not change."""
    with suppress(ValueError):
        return text[:1] == b'"' and str(UUID(text[1:-1].decode())) == text[1:-1].decode()
    return False
