"""What the first rows of a table propose: how its fields are read, and the types of the columns of a new object.

Nothing is guessed in silence: a person, or the caller, confirms a proposal before anything is written.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from anyio.to_thread import run_sync
from msgspec.structs import replace

from dragoman.spellings import Quoted, did_you_mean, map_option, near_names
from dragoman_api.columns import Column, ColumnKind, Written
from dragoman_api.errors import ConfigurationError

from .new_objects import READINGS_UNCONFIRMED, TYPES_UNCONFIRMED, ColumnProposal, TypeProposal
from .reading_trials import (
    Fits,
    abridged,
    choice_of,
    fits_of_columns,
    fits_of_types,
    offer_nearest,
    settle,
    try_reading,
    try_usual,
)
from .readings import (
    DECIMAL_COMMA,
    DECIMAL_POINT,
    NUMBERS,
    PLAIN,
    READ_KINDS,
    USUAL,
    reading_named,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from dragoman_api.columns import Description

    from .readers import FileRows
    from .records import Wishes


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
_PARTED = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")


async def confirmed_proposal(
    rows: FileRows,
    wishes: Wishes,
    *,
    types: Mapping[str, str],
    readings: Mapping[str, str],
    description: Description | None,
    confirm: Callable[[TypeProposal], Awaitable[None]] | None,
) -> TypeProposal:
    """Return how the fields of a table are read and typed, once somebody has confirmed it.

    Args:
        rows: The rows, which are read again later.
        wishes: What the load says of the object and its columns.
        types: The types that the caller says, by the new names of the columns.
        readings: The readings that the caller says, by the file's columns.
        description: The object that receives the rows; None if it is to be made.
        confirm: Awaited with the proposal; raises an error if it is not wanted. None if nobody can be asked.

    Raises:
        ConfigurationError: The file cannot be used, or nobody has confirmed its types or readings (codes
            ``types-unconfirmed`` and ``readings-unconfirmed``).
    """
    proposal = await run_sync(propose, rows, wishes, types, readings, description, abandon_on_cancel=True)
    if confirm is not None:
        await confirm(proposal)
        return proposal
    unsaid = {column.column: column.likely_reading for column in proposal.unsaid}
    if guessed := {column.name: str(column.type) for column in proposal.guessed}:
        text = f"{wishes.object!r} does not exist, and the file does not say of what types its columns are"
        also = f", readings={unsaid!r}" if unsaid else ""
        hint = f"after a look at the file: types={guessed!r}{also}"
        raise ConfigurationError(text, hint=hint, code=TYPES_UNCONFIRMED)
    if unsaid:
        column = proposal.unsaid[0]
        text = (
            column.doubt or f"fields of {column.column!r} do not stand for themselves, such as {column.examples[0]!r}"
        )
        hint = f"after a look at the file: readings={unsaid!r}"
        raise ConfigurationError(text, hint=hint, code=READINGS_UNCONFIRMED)
    return proposal


def propose(
    rows: FileRows,
    wishes: Wishes,
    types: Mapping[str, str],
    readings: Mapping[str, str],
    description: Description | None = None,
) -> TypeProposal:
    """Look at the first rows of a table, and propose how its fields are read and of what types its columns are.

    Args:
        rows: The table, whose rows can be read again.
        wishes: The new names of the columns.
        types: The types that the caller says, by the new names.
        readings: The readings that the caller says, by the file's columns.
        description: The object that receives the rows; None if it is to be made.

    Raises:
        ConfigurationError: There is no such type, reading or column, a column does not take what a reading makes of its
            fields, or the file is damaged.
    """
    from dragoman.exports.csv_lines import unescaped

    if readings and rows.spelled is None:
        text = f"a reading is for fields that are texts, and the file is read as {rows.format}"
        raise ConfigurationError(text, hint="only CSV and TSV have such fields", code="value-invalid")
    first = rows.look_ahead(LOOKED_AT + 1)
    sample = first[:LOOKED_AT]
    table = [record.data for record in sample if not record.fault and isinstance(record.data, list)]
    names = {name: unescaped(name) if rows.spelled is not None else name for name in rows.names}
    targets = {name: wishes.renamed.get(name, wishes.renamed.get(plain, plain)) for name, plain in names.items()}
    if description is None:
        _check_names(names, wishes, types, targets)
    _check_known(readings, names)
    existing = {} if description is None else {column.name: column for column in description.columns}
    columns: list[ColumnProposal] = []
    for commas in (False, True):  # once one column has decimal commas, points between digits part thousands, perhaps
        if commas and not any(map(_has_commas, columns)):
            break
        columns = []
        for at, (name, target) in enumerate(targets.items()):
            reading = readings.get(name, readings.get(names[name]))
            is_id = wishes.id in (name, names[name])
            if not target or (description is not None and not _is_read(existing.get(target), reading, is_id=is_id)):
                continue
            samples = _Samples(name, target, [fields[at] for fields in table if fields[at] is not None])
            wish = _Wish(types.get(target), reading, existing.get(target), is_id=is_id)
            columns.append(_column(samples, wish, rows, commas=commas, exists=description is not None))
    return TypeProposal(
        object=wishes.object,
        rows=len(sample),
        whole=len(first) == len(sample) and not rows.cut,
        columns=tuple(columns),
        exists=description is not None,
    )


def _has_commas(column: ColumnProposal) -> bool:
    """Return whether fields of a column have decimal commas, even if the column is not read so."""
    names = {choice.reading for choice in column.readings}
    return column.reading == DECIMAL_COMMA or (
        not column.reading and names & {DECIMAL_COMMA, DECIMAL_POINT} == {DECIMAL_COMMA}
    )


def _is_read(column: Column | None, reading: str | None, *, is_id: bool) -> bool:
    """Return whether fields of a column that exists are looked at."""
    if reading is not None and reading != PLAIN:
        return True
    return (
        column is not None
        and column.kind in READ_KINDS
        and not (column.repeated or column.is_key or is_id)
        and column.written is not Written.NEVER
    )


def _check_known(columns: Iterable[str], names: Mapping[str, str]) -> None:
    """Raise ConfigurationError if the file does not have these columns."""
    column_names = list(dict.fromkeys([*names, *names.values()]))
    if unknown := next((name for name in columns if name not in column_names), None):
        text = f"the file has no column {unknown!r}{did_you_mean(near_names(unknown, column_names))}"
        raise ConfigurationError(text, hint=f"its columns are {', '.join(column_names)}", code="column-unknown")


def _check_names(
    names: Mapping[str, str], wishes: Wishes, types: Mapping[str, str], targets: Mapping[str, str]
) -> None:
    """Refuse what would be refused once the object is there, which nobody wants to find empty."""
    if unknown := next((name for name in types if name not in targets.values()), None):
        text = f"the file has no column {unknown!r}{did_you_mean(near_names(unknown, [*targets.values()]))}"
        hint = f"its columns are {', '.join(targets.values())}"
        raise ConfigurationError(text, hint=hint, code="column-unknown")
    _check_known([*wishes.renamed, *filter(None, [wishes.id])], names)
    sources: dict[str, str] = {}
    for name, target in targets.items():
        if target and (other := sources.setdefault(target, name)) != name:
            text = f"the columns {other!r} and {name!r} of the file would both become {target!r}"
            hint = f"{map_option(other)} or {map_option(name)} leaves one of them out"
            raise ConfigurationError(text, hint=hint, code="columns-collide")


class _Samples(msgspec.Struct, frozen=True):
    """The values of a column of the file in the first rows, and its name in the object."""

    column: str
    name: str
    values: list[Any]

    @property
    def texts(self) -> list[str]:
        """The values as texts."""
        return [str(value) for value in self.values]


class _Wish(msgspec.Struct, frozen=True):
    """What the caller or the object says of a column; `column` is None for one that is to be made."""

    type: str | None
    reading: str | None
    column: Column | None
    is_id: bool


def _column(samples: _Samples, wish: _Wish, rows: FileRows, *, commas: bool, exists: bool) -> ColumnProposal:
    """Propose how a column is read and typed."""
    texts, name = samples.texts, samples.column
    kind, source = _said_kind(samples, wish, rows, exists=exists)
    base = ColumnProposal(
        column=name,
        name=samples.name,
        type=kind or ColumnKind.TEXT,
        repeated=(file_type := rows.types.get(name)) is not None and file_type.repeated,
        source=source,
        values=len(texts),
        examples=tuple(abridged(text) for text in dict.fromkeys(texts))[:_EXAMPLES],
        consent=wish.reading is not None,
    )
    if file_type is not None:
        return base
    fits = fits_of_columns() if source == "object" else fits_of_types()
    if wish.reading is not None and wish.reading != PLAIN:
        return _with_reading(base, wish, texts, kind, fits)
    is_text = any(isinstance(value, Quoted) for value in samples.values)
    plain = _as_it_stands(base, kind, [] if is_text else texts, fits)
    parted = commas and not plain.misfits and plain.type in NUMBERS and any(map(_PARTED.fullmatch, texts))
    exact = rows.spelled is None or rows.spelled.exact
    if is_text or exact or not texts or wish.is_id or (kind or ColumnKind.TEXT) not in (*READ_KINDS, ColumnKind.TEXT):
        return plain
    if kind is ColumnKind.TEXT or (not plain.misfits and not parted and plain.type is not ColumnKind.TEXT):
        return plain
    trials = try_usual(texts, kind, fits)
    choices = offer_nearest(trials, texts)
    if wish.reading == PLAIN:
        return replace(plain, readings=choices)
    settled, doubt = settle([trial for trial in trials if not trial.misfits(texts)], texts, typed=kind is not None)
    if parted:
        comma = next((trial for trial in trials if trial.reading.name == DECIMAL_COMMA), None)
        if comma is None or comma.misfits(texts):
            return plain
        example = next(text for text in texts if _PARTED.fullmatch(text))
        doubt = f"the point in {abridged(example)!r} may part thousands: {DECIMAL_COMMA}, or {PLAIN}"
        return replace(plain, type=kind or ColumnKind.TEXT, readings=choices, doubt=doubt)
    if settled is not None:
        return replace(base, type=settled.kind, reading=settled.reading.name, readings=choices)
    if doubt:
        return replace(plain, readings=choices, doubt=doubt)
    nearest = min(trials, key=lambda trial: len(trial.misfits(texts)), default=None)
    if nearest is not None:
        misfits, usual = nearest.misfits(texts), kind or plain.nearly
        fewest = len(_misfits(texts, usual, fits)) if usual is not None else len(texts)
        if 0 < len(misfits) <= (1 - _NEARLY) * len(texts) and len(misfits) < fewest:
            if kind is not None:
                names = " or ".join(choice.reading for choice in choices)
                count = f"{len(texts) - len(misfits):,} of {len(texts):,} values"
                doubt = f"{count} fit {names}, though {abridged(misfits[0])!r} does not; fewer fit {PLAIN}"
                return replace(plain, readings=choices, doubt=doubt)
            return replace(
                plain, nearly=nearest.kind, nearly_reading=nearest.reading.name, misfits=_examples(misfits),
                readings=choices,
            )  # fmt: skip
    return replace(plain, readings=choices)


def _said_kind(
    samples: _Samples, wish: _Wish, rows: FileRows, *, exists: bool
) -> tuple[ColumnKind | None, Literal["rows", "file", "caller", "object"]]:
    """Return the type of a column that the object, the caller or the file says, and who does; None if nobody does."""
    if exists:
        return (ColumnKind.TEXT if wish.column is None else wish.column.kind), "object"
    if wish.type is not None:
        return kind_named(wish.type, samples.name), "caller"
    if (file_type := rows.types.get(samples.column)) is None:
        return None, "rows"
    if file_type.kind is None:
        text = f"{samples.column!r} holds objects, and a new object gets columns of single values from a table"
        raise ConfigurationError(text, hint=f"{map_option(samples.column)} leaves it out", code="value-invalid")
    return file_type.kind, "file"


def _with_reading(
    base: ColumnProposal, wish: _Wish, texts: Sequence[str], kind: ColumnKind | None, fits: Fits
) -> ColumnProposal:
    """Return the proposal for a column whose reading the caller says. Raises ConfigurationError if it has none."""
    reading = reading_named(wish.reading or "")
    if wish.is_id or (wish.column is not None and wish.column.is_key):
        text = f"{base.column!r} holds the ids of the rows, which are read as they stand"
        raise ConfigurationError(text, hint=f"leave out the reading {reading.name}", code="value-invalid")
    if kind is not None and kind is not ColumnKind.TEXT and kind not in reading.kinds:
        text = f"{reading.name} reads {reading.kinds[0]} values, and {base.name!r} has the type {kind}"
        raise ConfigurationError(text, hint="name another reading, or plain", code="value-invalid")
    trial = try_reading(reading, texts, kind, fits, is_wished=True)
    trials = try_usual(texts, kind, fits)
    if trial is None:
        kind, misfits, choices = kind or reading.kinds[0], [*texts], offer_nearest(trials, texts)
    else:
        kind, misfits = trial.kind, trial.misfits(texts)
        choices = offer_nearest([other for other in trials if other.reading is not reading], texts)
        names = [*USUAL, reading.name]  # the order stays when another one is chosen
        choices = tuple(sorted((*choices, choice_of(trial, texts)), key=lambda choice: names.index(choice.reading)))
    return replace(base, type=kind, reading=reading.name, misfits=_examples(misfits), readings=choices)


def _as_it_stands(base: ColumnProposal, kind: ColumnKind | None, texts: Sequence[str], fits: Fits) -> ColumnProposal:
    """Return the proposal for a column whose fields stand for themselves."""
    if kind is not None:
        return replace(base, misfits=_examples(_misfits(texts, kind, fits)))
    nearly, near_misfits, tolerated = None, list[str](), int((1 - _NEARLY) * len(texts))
    for narrow_kind, suits in fits.items() if texts else ():
        misfits = [*islice((text for text in texts if not suits(text)), tolerated + 1)]
        if not misfits:
            return replace(base, type=narrow_kind)
        if len(misfits) <= tolerated:
            nearly, near_misfits, tolerated = narrow_kind, misfits, len(misfits) - 1
    return replace(base, nearly=nearly, misfits=_examples(near_misfits))


def kind_named(name: str, column: str) -> ColumnKind:
    """Return the type of a new column that a name stands for. Raises ConfigurationError if there is none."""
    with suppress(ValueError):
        if (kind := ColumnKind(name)) in TYPES:
            return kind
    text = f"{name[:_SHOWN]!r} is no type of a new column, as {column!r} is to have"
    raise ConfigurationError(text, hint=f"use one of: {', '.join(TYPES)}", code="value-invalid")


def _misfits(texts: Sequence[str], kind: ColumnKind, fits: Fits) -> list[str]:
    suits = fits.get(kind)
    return [] if suits is None else [text for text in texts if not suits(text)]


def _examples(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(abridged(text) for text in dict.fromkeys(texts))[:_EXAMPLES]
