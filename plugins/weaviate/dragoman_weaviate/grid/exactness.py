"""The table of differences: where the server compares something other than what a filter row says (W12 to W19, W38).

Each difference refuses the filter row or makes it approximate, and says why. A filter row without a difference is
exact: it finds the rows that a comparison of the stored objects finds. A test repeats each on a real server.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from dragoman_api import Operator as Op
from dragoman_api.columns import NULLS, PATTERNS
from dragoman_weaviate.columns.field_types import (
    COMPARISONS,
    EQUALITY,
    EXACT,
    LISTS,
    NEGATED,
    WORDWISE,
    Family,
    Field,
    Scalar,
)
from dragoman_weaviate.protocol import Features

_RANGES = (*COMPARISONS, Op.BETWEEN)
_VALUED = (*EQUALITY, *LISTS, *_RANGES, *PATTERNS)
_CASED = ("field", "whitespace")
_DOTTED = "İ"
_OLD_LITERAL = re.compile(r"[\w\s*?-]*")
_SMALLEST_DATE, _LARGEST_DATE = datetime(1677, 9, 22, tzinfo=UTC), datetime(2262, 4, 11, tzinfo=UTC)
EMPTY_IS_NULL = "empty values count as null too"
"""Why `null` is approximate for texts and arrays."""

_EXAMPLE = 60  # characters of a value in a sentence
_LINE_BREAK = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_DATES = "1677-09-22 to 2262-04-10"  # whole days of 64 bits of nanoseconds since 1970


Sample = Mapping[str, Sequence[Sequence[Any]]]
"""What a look at stored rows saw: by the names of columns, the values of each row that has any."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One filter row with one of its values.

    Attributes:
        op: The operator.
        field: The column.
        features: What the server's version can do.
        case: Whether the filter row compares letter case, None if it leaves that open.
        value: The value as it is sent, None for an operator without one.
        written: The value as it was written.
        sample: What a look at stored rows saw; None if nobody looked.
    """

    op: Op
    field: Field
    features: Features
    case: bool | None = None
    value: Scalar | None = None
    written: object = None
    sample: Sample | None = None

    @property
    def tokenization(self) -> str:
        """How the server splits the column's texts."""
        return self.field.spec.tokenization if self.field.spec is not None else ""

    @property
    def text(self) -> str:
        """The value of a filter row on a text."""
        return str(self.value)

    @property
    def lowered(self) -> str:
        """The text in lower case as the server writes it, which has a plain i for İ."""
        return self.text.replace(_DOTTED, "i").lower()

    @property
    def words(self) -> list[str]:
        """What the server compares of a text: its words, or its pieces."""
        match self.tokenization:
            case "field":
                return [self.text.strip()]
            case "whitespace":
                return self.text.split()
            case "lowercase":
                return self.lowered.split()
        words = re.findall(r"[^\W_]+", self.lowered)
        if self.tokenization != "trigram":
            return words
        joined = "".join(words)
        return [joined[at : at + 3] for at in range(len(joined) - 2)]

    @property
    def whole(self) -> bool:
        """Whether a pattern is compared as it is, not in parts."""
        return self.text.isalnum() if self.tokenization == "word" else not any(map(str.isspace, self.text))

    @property
    def split(self) -> bool:
        """Whether the value is compared in several parts."""
        return not self.whole if self.op in PATTERNS else len(self.words) > 1

    @property
    def stopwords(self) -> frozenset[str]:
        """Words that the server leaves out of an equality."""
        return self.field.stopwords if self.tokenization == "word" and self.op not in PATTERNS else frozenset()


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One difference between what a filter row says and what the server compares.

    Attributes:
        name: What it is about; unique.
        ops: The operators it concerns.
        families: The types it concerns.
        when: Whether it concerns a filter row with one of its values.
        reason: One sentence; it may name the column, the operator, the value and the unit of comparison.
        refused: The filter row is refused, not approximate.
        shown_by: Whether a stored value is one of the few that make a difference; None if most are.
    """

    name: str
    ops: Collection[Op] = _VALUED
    families: Collection[Family] = (Family.TEXT,)
    when: Callable[[Comparison], bool] = lambda _: True
    reason: str
    refused: bool = False
    shown_by: Callable[[Any], bool] | None = None

    def concerns(self, comparison: Comparison) -> bool:
        """Whether the filter row is one of those that it is about."""
        return comparison.op in self.ops and comparison.field.family in self.families and self.when(comparison)

    def reason_for(self, comparison: Comparison) -> str:
        """Return the reason for one filter row."""
        units = {"trigram": "pieces of three letters"} | dict.fromkeys(WORDWISE, "words")
        return self.reason.format(
            name=comparison.field.name,
            op=comparison.op,
            value=comparison.value,
            written=comparison.written,
            unit=units.get(comparison.tokenization, "pieces of words"),
        )


def _field(comparison: Comparison) -> bool:
    return comparison.field.exact_tokens


def _tokenized(comparison: Comparison) -> bool:
    return not comparison.field.exact_tokens


def _only_stopwords(comparison: Comparison) -> bool:
    return bool(comparison.words) and comparison.stopwords.issuperset(comparison.words)


def _without_characters(comparison: Comparison) -> bool:
    return not comparison.text.strip(" *?\t\r\n") or (_tokenized(comparison) and not comparison.words)


def comparable(date: str) -> bool:
    """Return whether the server compares a date, as RFC 3339, as the one that it is."""
    return _SMALLEST_DATE <= datetime.fromisoformat(re.sub(r"\.\d+", "", date)) < _LARGEST_DATE


def _outside(comparison: Comparison) -> bool:
    return not comparable(comparison.text)


def _absent_counts(comparison: Comparison) -> bool:
    return comparison.field.index.index_null_state


def _has_margins(value: Any) -> bool:
    return isinstance(value, str) and value != value.strip()


def _has_lines(value: Any) -> bool:
    return isinstance(value, str) and _LINE_BREAK.search(value) is not None


def _overflows(value: Any) -> bool:
    return isinstance(value, int | float) and value >= 2**63 - 512


def _is_negative_zero(value: Any) -> bool:
    return value == 0 and math.copysign(1, value) < 0


def _is_far(value: Any) -> bool:
    try:
        return isinstance(value, str) and not comparable(value)
    except (ValueError, OverflowError):  # a year that Python has not
        return True


_LISTED = (Op.EQ, Op.IN)

TABLE: tuple[Difference, ...] = (
    Difference(
        name="absent",
        ops=NEGATED,
        families={*Family} - {Family.ID},
        reason="rows without '{name}' match too",
    ),
    # texts
    Difference(
        name="case kept",
        when=lambda comparison: comparison.case is False and comparison.tokenization in _CASED,
        reason="letter case is compared",
    ),
    Difference(
        name="case lost",
        when=lambda comparison: comparison.case is True and comparison.tokenization not in _CASED,
        reason="letter case is not compared",
    ),
    Difference(
        name="dotted capital",
        when=lambda comparison: _DOTTED in comparison.text and comparison.tokenization not in _CASED,
        reason=f"{_DOTTED} is compared as i",
    ),
    Difference(
        name="accents",
        when=lambda comparison: comparison.field.folded,
        reason="accents are not compared: é is e, ß is ss",
    ),
    Difference(
        name="white space", when=_field, reason="white space around the text is not compared", shown_by=_has_margins
    ),
    Difference(
        name="no word",
        ops=(*EQUALITY, *LISTS),
        when=lambda comparison: not comparison.words and comparison.tokenization != "trigram",
        reason="{value!r} contains no word, and the collection compares words",
        refused=True,
    ),
    Difference(
        name="no trigram",
        ops=(*EQUALITY, *LISTS),
        when=lambda comparison: not comparison.words and comparison.tokenization == "trigram",
        reason="{value!r} has fewer than three letters, and the collection compares pieces of three",
        refused=True,
    ),
    Difference(
        name="only stopwords",
        ops=(*EQUALITY, *LISTS),
        when=_only_stopwords,
        reason="{value!r} contains only words that the collection does not index (stopwords)",
        refused=True,
    ),
    Difference(
        name="stopwords",
        ops=(*EQUALITY, *LISTS),
        when=lambda comparison: not comparison.stopwords.isdisjoint(comparison.words),
        reason="words that are not indexed (stopwords) are left out",
    ),
    Difference(
        name="all words",
        ops=_LISTED,
        when=_tokenized,
        reason="compares {unit}: a text that contains them all matches, in any order",
    ),
    Difference(
        name="any word left out",
        ops=NEGATED,
        when=lambda comparison: (
            _tokenized(comparison)
            and (comparison.op is Op.NE or (comparison.op is Op.NOT_IN and not comparison.features.negation))
        ),
        reason="compares {unit}: a text that contains one of them is left out",
    ),
    Difference(
        name="all words left out",
        ops=(Op.NOT_IN,),
        when=lambda comparison: _tokenized(comparison) and comparison.features.negation,
        reason="compares {unit}: a text that contains all of one value is left out, in any order",
    ),
    Difference(
        name="no characters",
        ops=PATTERNS,
        when=_without_characters,
        reason="{value!r} contains nothing to search for; the server would find every text",
        refused=True,
    ),
    Difference(
        name="old patterns",
        ops=PATTERNS,
        when=lambda comparison: (
            not comparison.features.literal_patterns and not _OLD_LITERAL.fullmatch(comparison.text)
        ),
        reason="this version of the server treats characters other than letters and digits as a pattern",
        refused=True,
    ),
    Difference(
        name="wildcards",
        ops=PATTERNS,
        when=lambda comparison: "*" in comparison.text or "?" in comparison.text,
        reason="* and ? stand for any characters; they cannot be escaped",
    ),
    Difference(
        name="line breaks",
        ops=(Op.CONTAINS, Op.STARTS, Op.ENDS),
        when=_field,
        reason="texts with line breaks may be missed",
        shown_by=_has_lines,
    ),
    Difference(
        name="line breaks left in",
        ops=(Op.NOT_CONTAINS,),
        when=_field,
        reason="texts with line breaks match although they contain it",
        shown_by=_has_lines,
    ),
    Difference(
        name="parts of a pattern",
        ops=PATTERNS,
        when=lambda comparison: _tokenized(comparison) and not comparison.whole,
        reason="compares words: finds them in any order, anywhere in the text",
    ),
    Difference(
        name="any word",
        ops=(Op.STARTS, Op.ENDS),
        when=lambda comparison: _tokenized(comparison) and comparison.whole,
        reason="finds texts in which any word {op} with it",
    ),
    Difference(
        name="several elements",
        when=lambda comparison: comparison.field.array and _tokenized(comparison) and comparison.split,
        reason="the {unit} may be in different elements",
    ),
    # numbers
    Difference(
        name="smallest integer",
        families=(Family.INT,),
        when=lambda comparison: float(comparison.value or 0) == 2.0**63,
        reason="{value} compares as the smallest integer, -2^63",
        refused=True,
    ),
    Difference(
        name="rounded integer",
        families=(Family.INT,),
        when=lambda comparison: abs(int(comparison.value or 0)) > EXACT,
        reason="integers beyond 2^53 are compared as 64-bit floats",
    ),
    Difference(
        name="overflow",
        families=(Family.INT,),
        when=lambda comparison: (
            comparison.op in COMPARISONS or float(comparison.value or 0) == -(2.0**63)  # two bounds leave it out
        ),
        reason="stored integers from 2^63 - 512 on compare as the smallest",
        shown_by=_overflows,
    ),
    Difference(
        name="rounded number",
        families=(Family.NUMBER,),
        when=lambda comparison: Decimal(str(comparison.written).strip()) != Decimal(repr(comparison.value)),
        reason="{written} is compared as {value}, the nearest 64-bit float",
    ),
    Difference(
        name="negative zero",
        families=(Family.NUMBER,),
        when=lambda comparison: not comparison.features.zeros,
        reason="below 1.38, -0.0 is not 0.0 and compares as the smallest number",
        shown_by=_is_negative_zero,
    ),
    # dates
    Difference(
        name="far bound",
        ops=_RANGES,
        families=(Family.DATE,),
        when=_outside,
        reason=f"{{value}} is outside {_DATES}, so it compares as another date",
        refused=True,
    ),
    Difference(
        name="far dates",
        families=(Family.DATE,),
        reason=f"dates outside {_DATES} compare as other dates",
        shown_by=_is_far,
    ),
    Difference(
        name="digits of a second",
        families=(Family.DATE,),
        when=lambda comparison: re.search(r"\.\d{9}\d*[1-9]", comparison.text) is not None,
        reason="digits beyond nanoseconds are not compared",
    ),
    # places
    Difference(
        name="nearest",
        ops=(Op.NEAR,),
        families=(Family.GEO,),
        reason="at most the nearest 800 rows of a shard are found, by an index that is approximate",
    ),
    Difference(
        name="coordinates",
        ops=(Op.NEAR,),
        families=(Family.GEO,),
        reason="coordinates are compared as 32-bit floats, to about two metres",
    ),
    # nothing
    Difference(
        name="empty is null",
        ops=NULLS,
        families={*Family},
        when=lambda comparison: comparison.field.array or comparison.field.family is Family.TEXT,
        reason=EMPTY_IS_NULL,
    ),
    Difference(
        name="null is empty",
        ops=(Op.EMPTY,),
        families={*Family},
        when=_absent_counts,
        reason="rows without '{name}' match too",
    ),
    Difference(
        name="null before the property",
        ops=(Op.NULL, Op.EMPTY),
        families={*Family},
        when=lambda comparison: not comparison.features.negation and _absent_counts(comparison),
        reason="rows written before '{name}' was added to the collection are missing",
    ),
)
"""All differences, those of one column type together, refusals before the approximations that they make needless."""


class Judgement(msgspec.Struct):
    """Why a filter row is not exact, one sentence each.

    Attributes:
        approximations: What concerns the rows as they are, or as nobody looked.
        unlikely: What concerns values of which a look at stored rows saw none.
        undecided: A look would have told more.
    """

    approximations: list[str] = msgspec.field(default_factory=list)
    unlikely: list[str] = msgspec.field(default_factory=list)
    undecided: bool = False

    def add(self, other: Judgement) -> None:
        """Add what another judgement of the same row says."""
        self.approximations = list(dict.fromkeys([*self.approximations, *other.approximations]))
        self.unlikely = list(dict.fromkeys([*self.unlikely, *other.unlikely]))
        self.undecided |= other.undecided


def judge(comparisons: Sequence[Comparison]) -> Judgement:
    """Judge a filter row by each of its values; one without a value comes as such.

    Raises:
        ValueError: It is refused; the message says why.
    """
    concerning = [
        (difference, comparison)
        for difference in TABLE
        for comparison in comparisons
        if difference.concerns(comparison)
    ]
    for difference, comparison in concerning:
        if difference.refused:
            raise ValueError(difference.reason_for(comparison))
    judgement = Judgement()
    for difference, comparison in concerning:
        judgement.add(_judged(difference, comparison))
    return judgement


def _judged(difference: Difference, comparison: Comparison) -> Judgement:
    reason, shown_by = difference.reason_for(comparison), difference.shown_by
    if shown_by is None or (comparison.value is not None and shown_by(comparison.value)):
        return Judgement([reason])
    if comparison.sample is None:
        return Judgement([reason], undecided=True)
    if not (rows := comparison.sample.get(comparison.field.name)):
        return Judgement([reason])
    for value in (value for row in rows for value in row):
        if shown_by(value):
            return Judgement([f"{reason}; a row holds {repr(value)[:_EXAMPLE]}"])
    return Judgement([], [f"{reason}; none in {len(rows):,} rows with a value"])
