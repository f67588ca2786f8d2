"""Trials: what readings make of the first values of a column, which one they settle, and which types values fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from dragoman_api.columns import ColumnKind

from .new_objects import ReadingChoice
from .readings import NUMBERS, TIMES, USUAL, FieldReading, reading_named

if TYPE_CHECKING:
    from collections.abc import Sequence

Fits = dict[ColumnKind, Callable[[str], bool]]
"""What tells whether a text fits a type, by type; other types fit any text."""

_SHOWN = 80  # characters of an example
_DIGITS = 17  # of a number that a float of 64 bits keeps
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_HEAD = 50  # values of which a reading fits one, or it is not tried
_OCTET = "(?:1[0-9]{2}|2[0-4][0-9]|25[0-5])"
_ADDRESS = re.compile(rf"(?:[1-9]?[0-9]|{_OCTET})(?:\.{_OCTET}){{3}}")
_ISO = re.compile(r"[+-]?[0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}(T.*)?")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")


class Trial(msgspec.Struct, frozen=True):
    """What a reading makes of the values of a column of a type; None for one that does not fit."""

    reading: FieldReading
    kind: ColumnKind
    values: list[str | None]

    def misfits(self, texts: Sequence[str]) -> list[str]:
        """Return the texts that do not fit."""
        return [text for text, value in zip(texts, self.values, strict=True) if value is None]

    def respells(self, texts: Sequence[str]) -> bool:
        """Return whether a value has another spelling, apart from its sign and from blanks."""
        pairs = zip(texts, self.values, strict=True)
        return any(value is not None and _digits(text) != _digits(value) for text, value in pairs)


def try_usual(texts: Sequence[str], kind: ColumnKind | None, fits: Fits) -> list[Trial]:
    """Return what the usual readings make of texts, if they fit half of them and spell some otherwise."""
    trials = (try_reading(reading_named(reading), texts, kind, fits) for reading in USUAL)
    half = len(texts) // 2
    return [trial for trial in trials if trial and trial.values.count(None) <= half and trial.respells(texts)]


def offer_nearest(trials: Sequence[Trial], texts: Sequence[str]) -> tuple[ReadingChoice, ...]:
    """Return the readings that fit most texts, to choose from."""
    least = min((len(trial.misfits(texts)) for trial in trials), default=0)
    return tuple(choice_of(trial, texts) for trial in trials if len(trial.misfits(texts)) == least)


def choice_of(trial: Trial, texts: Sequence[str]) -> ReadingChoice:
    """Return a trial as a choice, with a text that it respells, or the first one that fits, as the example."""
    pairs = [(text, value) for text, value in zip(texts, trial.values, strict=True) if value is not None]
    field, value = next(((text, value) for text, value in pairs if text != value), pairs[0])
    return ReadingChoice(
        reading=trial.reading.name, type=trial.kind, field=abridged(field), value=abridged(value),
        misfits=len(texts) - len(pairs),
    )  # fmt: skip


def try_reading(
    reading: FieldReading, texts: Sequence[str], kind: ColumnKind | None, fits: Fits, *, is_wished: bool = False
) -> Trial | None:
    """Return what a reading makes of texts, in the type that fits most of them; None if it fits none."""
    if kind is not None and kind not in reading.kinds and not is_wished:
        return None
    trials = []
    for possible_kind in (kind,) if kind is not None else reading.kinds:
        if possible_kind not in fits and possible_kind is not ColumnKind.TEXT:
            continue
        head = texts if is_wished else texts[:_HEAD]
        if not any(_respelled(reading, text, possible_kind, fits) is not None for text in head):
            continue
        values = [_respelled(reading, text, possible_kind, fits) for text in texts]
        trials.append(Trial(reading, possible_kind, values))
    return min(trials, key=lambda trial: trial.values.count(None), default=None)


def _respelled(reading: FieldReading, text: str, kind: ColumnKind, fits: Fits) -> str | None:
    """Return what a reading makes of a text; None if that does not fit the type."""
    try:
        value = reading.respell(text, kind)
    except ValueError:
        return None
    return value if (suits := fits.get(kind)) is None or suits(value) else None


def settle(trials: Sequence[Trial], texts: Sequence[str], *, typed: bool) -> tuple[Trial | None, str]:
    """Return the one of the readings that fit all values which some value settles; else a reason for doubt.

    Args:
        trials: What the readings make of the values.
        texts: The values.
        typed: The type of the column is known, so that fewer values are enough.
    """
    numbers = [trial for trial in trials if trial.reading.kinds == NUMBERS]
    times = [trial for trial in trials if trial.reading.kinds == TIMES]
    if len(numbers) > 1 and numbers[0].values != numbers[1].values:
        return None, _either(numbers, texts)
    telephones, addresses = any(text[:1] == "+" for text in texts), all(map(_ADDRESS.fullmatch, texts))
    if numbers and (typed or not (telephones or addresses)):
        swiss = any("'" in text or "\u2019" in text for text in texts)
        return numbers[-1 if swiss else 0], ""
    if len(times) > 1:
        return None, _either(times, texts)
    if times:
        return times[0], ""
    words = [trial for trial in trials if typed or (len({*trial.values}) == 2 and not trial.reading.fills)]
    return next((trial for trial in words if trial.reading.kinds not in (NUMBERS, TIMES)), None), ""


def _either(trials: Sequence[Trial], texts: Sequence[str]) -> str:
    """Return why no reading is proposed where several fit."""
    rows = zip(texts, *(trial.values for trial in trials), strict=True)
    text = next((text for text, *values in rows if len({*values}) > 1), texts[0])
    return f"{abridged(text)!r} can be {' or '.join(trial.reading.name for trial in trials)}, and no row settles which"


def _digits(text: str) -> str:
    """Return a number without its sign and the blanks around it."""
    return text.strip().lstrip("+-\u2212")


def abridged(text: str) -> str:
    """Return the beginning of a value, as an example shows it."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@cache
def fits_of_types() -> Fits:
    """Return what tells whether a field fits a type, the narrowest type first; other types fit any text."""
    from dragoman_api.kit import operands

    return {
        ColumnKind.BOOLEAN: _reads(operands.boolean),
        ColumnKind.INTEGER: _is_integer,
        ColumnKind.FLOAT: _is_float,
        ColumnKind.TIMESTAMP: _reads(operands.timestamp),
        ColumnKind.DATE: _reads(operands.day),
    }


@cache
def fits_of_columns() -> Fits:
    """Return what tells whether a column that exists takes a field as it stands; servers may read more times."""
    from dragoman_api.kit import operands

    def is_whole(text: str) -> bool:
        with suppress(ValueError):
            return isinstance(operands.decimal(text), int)
        return False

    def is_time(text: str) -> bool:
        return _ISO.fullmatch(text) is not None

    fits: Fits = dict.fromkeys(NUMBERS, _reads(operands.decimal, blanks=True))
    fits |= {ColumnKind.INTEGER: is_whole, ColumnKind.UNSIGNED: is_whole, ColumnKind.BOOLEAN: _reads(operands.boolean)}
    return fits | dict.fromkeys(TIMES, is_time)


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


def _reads(read: Callable[[object], object], *, blanks: bool = False) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return blanks or text == text.strip()

    return fits
