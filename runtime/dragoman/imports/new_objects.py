"""New objects for a load: the types that the first rows of a table propose, and the creation that the driver plans."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from anyio.to_thread import run_sync

from dragoman.spellings import Quoted, did_you_mean, map_option, near_names
from dragoman_api.changes import NewColumn, NewObject
from dragoman_api.columns import ColumnKind, Description
from dragoman_api.console import ConsoleRequest
from dragoman_api.errors import ConfigurationError, QueryError, UnsupportedOperationError

from .records import DocumentInserts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from dragoman.sessions.session import Session
    from dragoman_api.changes import Plan, PlannedRequest

    from .readers import FileRows
    from .records import Record, Wishes


TYPES_UNCONFIRMED = "types-unconfirmed"
"""The code of the error for a new object whose types nobody has confirmed."""

SAMPLES = 200
"""The number of rows that show a driver what the object has to hold."""

_SAID = 1_000  # characters of a server's answer in a message


def sampled(records: Iterable[Record], wishes: Wishes, *, rows: bool) -> list[str]:
    """Return rows as JSON texts, with the new names of their columns; unreadable rows are left out."""
    maker, texts = DocumentInserts(wishes, Description(object=wishes.object, columns=[])), []
    for record in records:
        with suppress(ValueError, RecursionError):
            if record.fault or not isinstance(record.data, bytes):
                continue
            if rows:
                texts.append(record.data.rpartition(b"\n")[2].decode())
            else:
                maker.fill(record)
                texts.append(record.document or "")
    return texts


async def plan_for_rows(
    session: Session,
    rows: FileRows,
    wishes: Wishes,
    *,
    like: str,
    types: Mapping[str, str],
    confirm: Callable[[TypeProposal], Awaitable[None]] | None,
) -> tuple[PlannedRequest, TypeProposal | None]:
    """Return the request that creates an object as its first rows need it, and the proposal for a table's columns.

    Args:
        session: The open connection.
        rows: The rows, which are read again later.
        wishes: What the load says of the object and its columns.
        like: The structure of an object that the new one shall have; empty to look at the rows.
        types: The types that the caller says, by the new names of the columns.
        confirm: Awaited with the types of a table; raises an error if they are not wanted. None if nobody can be asked.

    Raises:
        ConfigurationError: The file cannot be used, or nobody has confirmed its types (code ``types-unconfirmed``).
        UnsupportedOperationError: The driver creates no objects.
        QueryError: The driver cannot create this one.
    """
    samples: list[str] = []
    columns: list[NewColumn] = []
    proposal: TypeProposal | None = None
    if not like and rows.names:
        proposal = await run_sync(propose, rows, wishes, types, abandon_on_cancel=True)
        if confirm is not None:
            await confirm(proposal)
        elif guessed := {column.name: str(column.type) for column in proposal.guessed}:
            text = f"{wishes.object!r} does not exist, and the file does not say of what types its columns are"
            hint = f"after a look at the file: types={guessed!r}"
            raise ConfigurationError(text, hint=hint, code=TYPES_UNCONFIRMED)
        columns = proposal.new_columns(wishes.id)
    elif not like:
        first = await run_sync(rows.look_ahead, SAMPLES, abandon_on_cancel=True)
        samples = sampled(first, wishes, rows=rows.format in ("rows", "bulk"))
    plan = await plan_new(session, NewObject(wishes.object, like, samples, columns))
    return plan.planned[0], proposal


async def plan_new(session: Session, new: NewObject) -> Plan:
    """Return the plan of the request that creates an object.

    Raises:
        UnsupportedOperationError: The driver creates no objects.
        QueryError: The driver cannot create this one.
    """
    plan = await session.plan(new=new)
    if not plan.planned:
        text = f"{new.name!r} does not exist, and the driver {session.plugin} does not make objects"
        raise UnsupportedOperationError(text, hint="make it first, then load the rows into it")
    return plan


async def make_object(session: Session, name: str, planned: PlannedRequest) -> None:
    """Send the request that creates an object; guards see it as a write.

    Raises:
        QueryError: The server refused the request.
        DragomanError: A guard vetoed the request, or no answer came.
    """
    answer = await session.execute(ConsoleRequest(request=planned.request, writes=True))
    if answer.failed or not 200 <= answer.status < 300:
        reason = answer.failed or " ".join(answer.text.split())[:_SAID]
        raise QueryError(f"{name!r} was not made: HTTP {answer.status} {reason}", details={"status": answer.status})


LOOKED_AT = 1_000
"""The number of a file's first rows that propose the types of columns."""

TYPES = (
    ColumnKind.TEXT, ColumnKind.INTEGER, ColumnKind.FLOAT, ColumnKind.BOOLEAN, ColumnKind.TIMESTAMP, ColumnKind.DATE,
    ColumnKind.BINARY,
)  # fmt: skip
"""The types that a column of a new object can have."""

_NEARLY = 0.9  # of the values: a type that fits so many is worth a word
_EXAMPLES = 3
_SHOWN = 80  # characters of an example
_DIGITS = 17  # of a number that a float of 64 bits keeps
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")


class ColumnProposal(msgspec.Struct, frozen=True, kw_only=True):
    """The type of one column of a new object.

    Attributes:
        column: The column of the file.
        name: Its name in the object.
        type: The type. A proposed one fits every value that was looked at.
        repeated: Every value is an array of such values.
        source: Who says so: the values that were looked at (``rows``), the file itself, or the caller.
        values: How many of the rows have a value.
        examples: Some values.
        nearly: Another type, which fits most values; None if there is none.
        misfits: Some values that do not fit `nearly`; if there is none, those that do not fit `type`, and are rejected.
    """

    column: str
    name: str
    type: ColumnKind
    repeated: bool = False
    source: Literal["rows", "file", "caller"]
    values: int
    examples: tuple[str, ...] = ()
    nearly: ColumnKind | None = None
    misfits: tuple[str, ...] = ()


class TypeProposal(msgspec.Struct, frozen=True, kw_only=True):
    """The types of the columns of a new object.

    Attributes:
        object: The name of the object.
        rows: The number of rows that were looked at.
        whole: These are all rows of the file.
        columns: The columns that are written.
    """

    object: str
    rows: int
    whole: bool
    columns: tuple[ColumnProposal, ...]

    @property
    def guessed(self) -> list[ColumnProposal]:
        """The columns whose type neither the file nor the caller says."""
        return [column for column in self.columns if column.source == "rows"]

    def new_columns(self, row_id: str | None) -> list[NewColumn]:
        """Return the columns as a driver makes them; the values of the file's column `row_id` become the ids."""
        return [
            NewColumn(column.name, column.type, repeated=column.repeated, is_id=column.column == row_id)
            for column in self.columns
        ]


def propose(rows: FileRows, wishes: Wishes, types: Mapping[str, str]) -> TypeProposal:
    """Look at the first rows of a table, and propose the types of its columns.

    Args:
        rows: The table, whose rows can be read again.
        wishes: The new names of the columns.
        types: The types that the caller says, by the new names.

    Raises:
        ConfigurationError: There is no such type, no such column, or the file is damaged.
    """
    from dragoman.exports.csv_lines import unescaped

    first = rows.look_ahead(LOOKED_AT + 1)
    sample = first[:LOOKED_AT]
    table = [record.data for record in sample if not record.fault and isinstance(record.data, list)]
    names = {name: unescaped(name) if rows.spelled is not None else name for name in rows.names}
    targets = {name: wishes.renamed.get(name, wishes.renamed.get(plain, plain)) for name, plain in names.items()}
    _check_names(names, wishes, types, targets)
    columns = []
    for at, name in enumerate(rows.names):
        if target := targets[name]:
            values = [fields[at] for fields in table if fields[at] is not None]
            columns.append(_column(name, target, values, rows=rows, wished_type=types.get(target)))
    return TypeProposal(object=wishes.object, rows=len(sample), whole=len(first) == len(sample), columns=tuple(columns))


def _check_names(
    names: Mapping[str, str], wishes: Wishes, types: Mapping[str, str], targets: Mapping[str, str]
) -> None:
    """Refuse what would be refused once the object is there, which nobody wants to find empty."""
    wished = [*wishes.renamed, *filter(None, [wishes.id])]
    for wished_names, column_names in (
        (types, [*targets.values()]),
        (wished, list(dict.fromkeys([*names, *names.values()]))),
    ):
        if unknown := next((name for name in wished_names if name not in column_names), None):
            text = f"the file has no column {unknown!r}{did_you_mean(near_names(unknown, column_names))}"
            raise ConfigurationError(text, hint=f"its columns are {', '.join(column_names)}", code="column-unknown")
    sources: dict[str, str] = {}
    for name, target in targets.items():
        if target and (other := sources.setdefault(target, name)) != name:
            text = f"the columns {other!r} and {name!r} of the file would both become {target!r}"
            hint = f"{map_option(other)} or {map_option(name)} leaves one of them out"
            raise ConfigurationError(text, hint=hint, code="columns-collide")


def _column(
    name: str, target: str, values: Sequence[Any], *, rows: FileRows, wished_type: str | None
) -> ColumnProposal:
    texts = [str(value) for value in values]
    is_text = any(isinstance(value, Quoted) for value in values)
    examples = tuple(abridged(text) for text in dict.fromkeys(texts))[:_EXAMPLES]
    if (file_type := rows.types.get(name)) is not None and wished_type is None:
        if file_type.kind is None:
            text = f"{name!r} holds objects, and a new object gets columns of single values from a table"
            raise ConfigurationError(text, hint=f"{map_option(name)} leaves it out", code="value-invalid")
        return ColumnProposal(
            column=name,
            name=target,
            type=file_type.kind,
            repeated=file_type.repeated,
            source="file",
            values=len(values),
            examples=examples,
        )
    if wished_type is not None:
        kind = kind_named(wished_type, target)
        misfits = [] if file_type is not None else _misfits(texts, kind)
        return ColumnProposal(
            column=name,
            name=target,
            type=kind,
            repeated=file_type is not None and file_type.repeated,
            source="caller",
            values=len(values),
            examples=examples,
            misfits=_examples(misfits),
        )
    best, nearly, near_misfits = ColumnKind.TEXT, None, list[str]()
    for kind in _fits() if texts and not is_text else ():
        misfits = _misfits(texts, kind)
        if not misfits:
            best, nearly, near_misfits = kind, None, []
            break
        if len(misfits) <= (1 - _NEARLY) * len(texts) and (nearly is None or len(misfits) < len(near_misfits)):
            nearly, near_misfits = kind, misfits
    return ColumnProposal(
        column=name,
        name=target,
        type=best,
        source="rows",
        values=len(values),
        examples=examples,
        nearly=nearly,
        misfits=_examples(near_misfits),
    )


def kind_named(name: str, column: str) -> ColumnKind:
    """Return the type of a new column that a name stands for. Raises ConfigurationError if there is none."""
    with suppress(ValueError):
        if (kind := ColumnKind(name)) in TYPES:
            return kind
    text = f"{name[:_SHOWN]!r} is no type of a new column, as {column!r} is to have"
    raise ConfigurationError(text, hint=f"use one of: {', '.join(TYPES)}", code="value-invalid")


def _misfits(texts: Sequence[str], kind: ColumnKind) -> list[str]:
    fits = _fits().get(kind)
    return [] if fits is None else [text for text in texts if not fits(text)]


def _examples(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(abridged(text) for text in dict.fromkeys(texts))[:_EXAMPLES]


def abridged(text: str) -> str:
    """Return the beginning of a value, as an example shows it."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _is_integer(text: str) -> bool:
    """Return whether a text is an integer of 64 bits whose digits come back: no sign and no zeros lead."""
    return _INTEGER.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63


def _is_float(text: str) -> bool:
    """Return whether a text is a number all of whose digits a float of 64 bits keeps."""
    if _FLOAT.fullmatch(text) is None:
        return False
    from dragoman_api.kit.operands import floating

    digits = re.sub(r"[eE].*|[-.]", "", text).lstrip("0")
    return len(digits) <= _DIGITS and _reads(floating)(text)


def _reads(read: Callable[[object], object]) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return text == text.strip()

    return fits


@cache
def _fits() -> dict[ColumnKind, Callable[[str], bool]]:
    """Return what tells whether a field fits a type, the narrowest type first; other types fit any text."""
    from dragoman_api.kit import operands

    return {
        ColumnKind.BOOLEAN: _reads(operands.boolean),
        ColumnKind.INTEGER: _is_integer,
        ColumnKind.FLOAT: _is_float,
        ColumnKind.TIMESTAMP: _reads(operands.timestamp),
        ColumnKind.DATE: _reads(operands.day),
    }
