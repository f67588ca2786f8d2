"""Where an index differs from the documents stored in it, and which filter rows that makes approximate: one table.

A filter row without an approximation finds the rows that an evaluation of the stored documents finds. Facts measured on
7.17.29 and 8.19.21.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api import Operator as Op
from dragoman_api.columns import EMPTINESS, NULLS, ORDER, PATTERNS
from dragoman_api.kit.operands import period
from dragoman_querydsl.protocol import Dialect

from . import dates
from .field_types import BOUNDS, EQUAL, PRECISION, Family, Field, Gap, Look, has_decimals, is_empty, is_long

if TYPE_CHECKING:
    from collections.abc import Iterable


_VALUES = frozenset((*EQUAL, *ORDER, *PATTERNS, *EMPTINESS))
_INSTANT = re.compile(r"now.*|-?\d{9,}(\.\d+)?|.*:\d{2}[.,]\d.*")  # not a second, a day or another span

_EXAMPLE = 60  # characters of a value in a sentence
_FINER = re.compile(r"\.\d{3}\d*[1-9]\d*(Z|[+-][\d:]+)(/|\Z)")  # than a millisecond


class Indexed(msgspec.Struct, frozen=True, kw_only=True):
    """How one mapping indexes a field.

    Attributes:
        spec: Its part of the mapping, or that of its `.keyword` sub-field if filters use that, with the defaults that
            index settings give.
        copied: The fields whose values `copy_to` adds.
        hidden: The mapping may not be read.
        unmapped: The index stores the field without a mapping.
        read: Searches read it from the stored documents: a runtime field without a script.
    """

    spec: Mapping[str, Any]
    copied: tuple[str, ...] = ()
    hidden: bool = False
    unmapped: bool = False
    read: bool = False

    @property
    def type(self) -> str:
        """The server's type."""
        return str(self.spec.get("type", "object"))


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One filter row: its operator, its values as the server gets them, its column, and a look at stored rows."""

    op: Op
    values: tuple[Any, ...]
    field: Field
    dialect: Dialect
    look: Look = msgspec.field(default_factory=Look)

    @property
    def nulls(self) -> bool:
        """Whether the row asks if there is a value at all."""
        return self.op in (*NULLS, Op.NOT_EMPTY)


def _always(_condition: Asked, _details: tuple[Any, ...]) -> bool:
    return True


def _by_value(condition: Asked, _details: tuple[Any, ...]) -> bool:
    return condition.op in _VALUES


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table.

    Attributes:
        name: What causes the gap: a parameter of the mapping, or a type.
        read_detail: Reads it from a mapping; None if it is not there.
        touches: Whether it makes a filter row approximate.
        reason: How the meaning differs; ``{}`` is what was read.
        sorts: Whether a sort too orders rows by something other than what they show.
        shown_by: Whether a stored value, or one of the filter row, is such that rows differ; None if most values are,
            or if documents do not tell.
        reported: The rows that differ are those of which the server reports a value that it left out.
    """

    name: str
    read_detail: Callable[[Indexed], Any]
    touches: Callable[[Asked, tuple[Any, ...]], bool]
    reason: str
    sorts: bool = False
    shown_by: Callable[[Any, tuple[Any, ...]], bool] | None = None
    reported: bool = False


def _typed(*types: str) -> Callable[[Indexed], Any]:
    return lambda mapping: mapping.type if mapping.type in types else None


def _length(value: object) -> int:
    return len(str(value).encode("utf-16-le")) // 2  # the server counts as Java does


def _too_long(condition: Asked, limits: tuple[Any, ...]) -> bool:
    if condition.nulls:
        return not (condition.field.keyword or ignored(condition.field, condition.dialect))
    if condition.op is Op.EMPTY:
        return False
    return condition.op not in EQUAL or any(_length(value) > min(limits) for value in condition.values)


def _malformed(condition: Asked, _details: tuple[Any, ...]) -> bool:
    if condition.nulls:
        return not ignored(condition.field, condition.dialect)
    # A text that is not a number is unequal and unordered, but a number that is too large has an order.
    ordered = condition.op in ORDER or any(dates.period_of(str(value)) for value in condition.values)
    return ordered and condition.field.family in (Family.NUMBER, Family.DATE)


def _counts_as_null(condition: Asked, details: tuple[Any, ...]) -> bool:
    if condition.nulls:
        return not condition.field.keyword  # the text itself has no null_value
    if condition.op is Op.EMPTY:
        return "" in details
    family = condition.field.family
    if condition.op not in EQUAL or family not in (Family.KEYWORD, Family.KEYED, Family.TEXT, Family.NUMBER):
        return True
    same = _number if family is Family.NUMBER else _folded
    return not {same(value) for value in condition.values}.isdisjoint(same(detail) for detail in details)


def _number(value: object) -> Decimal:
    return Decimal(str(value))


def _folded(value: object) -> str:
    return str(value).casefold()


def _coerced(condition: Asked, _details: tuple[Any, ...]) -> bool:
    """Return whether cutting decimals off towards zero can move a stored number across a bound."""
    bounds = {Op.BETWEEN: (Op.GE, Op.LE)}.get(condition.op, (condition.op,))
    return condition.op in _VALUES and not all(
        value == int(value) and (value >= 1 if op in (Op.GE, Op.LT) else op in (Op.GT, Op.LE) and value <= -1)
        for op, value in zip(bounds, condition.values, strict=False)
    )


def _imprecise(condition: Asked, details: tuple[Any, ...]) -> bool:
    if condition.op not in _VALUES:
        return False
    return details != (PRECISION["double"],) or any(
        abs(value) >= 2**53 or Decimal(repr(float(value))) != value for value in condition.values
    )


def _instant(condition: Asked, _details: tuple[Any, ...]) -> bool:
    iso = all(name.startswith(("strict_date_optional_time", "date_optional_time")) for name in condition.field.formats)
    return any(
        period(text) is not None and _FINER.search(text)  # what the server rounds is whole milliseconds
        if dates.period_of(text)
        else _INSTANT.fullmatch(text) or (not iso and text.isdigit() and len(text) != 4)  # years are taken whole
        for text in map(str, condition.values)
    )


TABLE: tuple[Cause, ...] = (
    Cause(
        name="hidden",
        read_detail=lambda mapping: mapping.hidden or None,
        touches=_always,
        reason="the mapping is hidden: what the index changes or leaves out is unknown",
        sorts=True,
    ),
    Cause(
        name="dynamic",
        read_detail=lambda mapping: mapping.unmapped or None,
        touches=_always,
        reason="an index behind this name stores the field without a mapping: its rows count as rows without it",
        sorts=True,
    ),
    Cause(
        name="copy_to",
        read_detail=lambda mapping: ", ".join(mapping.copied) or None,
        touches=_always,
        reason="values of {} count too (copy_to)",
        sorts=True,
    ),
    Cause(
        name="script",
        read_detail=lambda mapping: "script" in mapping.spec or None,
        touches=_always,
        reason="a script computes the values when a row is stored",
        sorts=True,
    ),
    Cause(
        name="constant_keyword",
        read_detail=_typed("constant_keyword"),
        touches=_always,
        reason="every row of an index counts as having its constant, stored or not",
        sorts=True,
    ),
    Cause(
        name="text",
        read_detail=_typed("text", "match_only_text", "search_as_you_type", "annotated_text"),
        touches=lambda condition, _: condition.op in EQUAL,
        reason="analysed text: compares words, not the exact text",
    ),
    Cause(
        name="text, parts",
        read_detail=_typed("text", "match_only_text", "search_as_you_type", "annotated_text"),
        touches=lambda condition, _: condition.op in PATTERNS,
        reason="analysed text: finds whole words in this order, anywhere in the text",
    ),
    Cause(
        name="flattened",
        read_detail=_typed("flattened", "flat_object"),
        touches=lambda condition, _: condition.field.family is Family.FLATTENED and condition.op in _VALUES,
        reason="compares the values of all keys",
    ),
    Cause(
        name="flattened, null",
        read_detail=_typed("flattened", "flat_object"),
        touches=lambda condition, _: condition.nulls,
        reason="an object counts as null where it has no value of its own",
    ),
    Cause(
        name="flattened, order",
        read_detail=_typed("flattened", "flat_object"),
        touches=lambda condition, _: condition.op in ORDER,
        reason="compares texts: 10 comes before 9",
        sorts=True,
    ),
    Cause(
        name="ignore_above",
        read_detail=lambda mapping: limit if isinstance(limit := mapping.spec.get("ignore_above"), int) else None,
        touches=_too_long,
        reason="strings longer than {} characters are not indexed",
        reported=True,
    ),
    Cause(
        name="ignore_malformed",
        read_detail=lambda mapping: mapping.spec.get("ignore_malformed") in (True, "true") or None,
        touches=_malformed,
        reason="values that the type cannot hold are not indexed (ignore_malformed)",
        reported=True,
    ),
    Cause(
        name="runtime",
        read_detail=lambda mapping: mapping.read or None,
        touches=_malformed,
        reason="values that the type cannot hold count as absent (runtime field)",
        sorts=True,
    ),
    Cause(
        name="null_value",
        read_detail=lambda mapping: None if (value := mapping.spec.get("null_value")) is None else _scalar(value),
        touches=_counts_as_null,
        reason="stored nulls count as the value {} (null_value)",
        sorts=True,
    ),
    Cause(
        name="normalizer",
        read_detail=lambda mapping: str(mapping.spec["normalizer"]) if "normalizer" in mapping.spec else None,
        touches=_by_value,
        reason="texts are compared as the normalizer {} changes them",
        sorts=True,
    ),
    Cause(
        name="token_count",
        read_detail=_typed("token_count"),
        touches=_by_value,
        reason="compares the number of words",
        sorts=True,
    ),
    Cause(
        name="floats",
        read_detail=lambda mapping: PRECISION.get(mapping.type),
        touches=_imprecise,
        reason="{}",
        shown_by=is_long,
    ),
    Cause(
        name="scaled_float",
        read_detail=lambda mapping: (
            str(mapping.spec.get("scaling_factor", "?")) if mapping.type == "scaled_float" else None
        ),
        touches=_by_value,
        reason="numbers are compared as multiples of 1/{}",
    ),
    Cause(
        name="coerce",
        read_detail=lambda mapping: _cut_off(mapping) or None,
        touches=_coerced,
        reason="a stored number with decimals counts without them (coerce)",
        shown_by=has_decimals,
    ),
    Cause(
        name="boolean",
        read_detail=_typed("boolean"),
        touches=lambda condition, _: False in condition.values,
        reason="a stored empty text counts as false",
        shown_by=is_empty,
    ),
    Cause(
        name="geo_point",
        read_detail=_typed("geo_point"),
        touches=lambda condition, _: condition.op is Op.NEAR,
        reason="distances are computed to about half a metre: a point at the border may count as on its other side",
    ),
    Cause(
        name="geo_point, box",
        read_detail=_typed("geo_point"),
        touches=lambda condition, _: condition.op is Op.IN_BOX,
        reason="points are kept to about a centimetre: one at the border may count as on its other side",
    ),
    Cause(
        name="date",
        read_detail=_typed("date"),
        touches=_instant,
        reason="dates are compared to the millisecond",
    ),
    Cause(
        name="format",
        read_detail=lambda mapping: (
            str(mapping.spec.get("format", "the default")) if mapping.type.startswith("date") else None
        ),
        touches=lambda condition, details: condition.op in _VALUES and len(details) > 1,
        reason="the indices behind this name read dates in different formats: {}",
    ),
)
"""Every parameter and type that makes an index differ from its documents; what is absent makes no difference.

So do `index`, `doc_values`, `enabled`, `norms`, `store`, `similarity` and `ignore_z_value`: whether a column takes a
filter at all is told by its capabilities. Ranges, shapes and other types take `null` only.
"""


def _scalar(value: object) -> Any:
    return value if isinstance(value, (str, int, float)) else str(value)


def _cut_off(mapping: Indexed) -> bool:
    return (
        mapping.type in BOUNDS
        and mapping.type != "unsigned_long"
        and mapping.spec.get("coerce") not in (False, "false")
    )


_MALFORMABLE = {*BOUNDS, *PRECISION, "scaled_float", "date", "date_nanos", "ip", "boolean", "geo_point", "geo_shape"}
_LIMITED = {"keyword", "wildcard", "flattened"}


def with_settings(spec: Mapping[str, Any], settings: Mapping[str, str]) -> Mapping[str, Any]:
    """Add what a field's mapping leaves to the settings of its index, which the mapping does not repeat."""
    logs = settings.get("index.mode") == "logsdb"
    defaults: dict[str, Any] = {}
    if spec.get("type") in _MALFORMABLE:
        defaults["ignore_malformed"] = settings.get("index.mapping.ignore_malformed", "true" if logs else "false")
        defaults["coerce"] = settings.get("index.mapping.coerce", "true")
    if spec.get("type") in _LIMITED and (limit := settings.get("index.mapping.ignore_above", "8191" if logs else "")):
        defaults["ignore_above"] = int(limit)
    return {**defaults, **spec}


def gaps(mappings: Iterable[Indexed]) -> tuple[Gap, ...]:
    """Read from every mapping of a field where its index differs from the documents."""
    mappings = list(mappings)
    read = (
        (cause, [detail for mapping in mappings if (detail := cause.read_detail(mapping)) is not None])
        for cause in TABLE
    )
    return tuple(Gap(cause.name, tuple(dict.fromkeys(details))) for cause, details in read if details)


_CAUSES = {cause.name: cause for cause in TABLE}


def _reports(field: Field) -> bool:
    """Return whether `_ignored` can name a field; not inside nested arrays, nor if it is flattened."""
    gaps = {gap.name for gap in field.gaps}
    return not field.nested and "runtime" not in gaps and field.family not in (Family.FLATTENED, Family.KEYED)


def ignored(field: Field, dialect: Dialect) -> bool:
    """Return whether the server reports in `_ignored` which rows have values that are not indexed.

    Some servers do not for long strings.
    """
    gap_names = {gap.name for gap in field.gaps}
    if field.keyword or not _reports(field):  # of a sub-field it does, but not whether the field has a value
        return False
    return "ignore_malformed" in gap_names or ("ignore_above" in gap_names and dialect.finds_ignored)


class Differences(msgspec.Struct):
    """How the meaning of a filter row differs from an evaluation of the stored documents, one sentence each.

    Attributes:
        approximations: What concerns rows as they are, or as nobody looked.
        unlikely: What concerns rows with a value of which a look at stored rows saw none.
    """

    approximations: list[str] = msgspec.field(default_factory=list)
    unlikely: list[str] = msgspec.field(default_factory=list)


def differences(condition: Asked) -> Differences:
    """Return how the meaning of a filter row differs from an evaluation of the stored documents."""
    remarks = Differences()
    for gap in condition.field.gaps:
        if not (cause := _CAUSES[gap.name]).touches(condition, gap.details):
            continue
        example, seen = _seen(cause, gap, condition)
        if example or not seen:
            remarks.approximations.append(_explain(gap) + example)
        else:
            remarks.unlikely.append(_explain(gap) + seen)
    return remarks


def _seen(cause: Cause, gap: Gap, condition: Asked) -> tuple[str, str]:
    """Return the example of a difference that a look saw, or how it saw none; neither if nobody looked."""
    if PRECISION["half_float"] in gap.details:
        return "", ""  # an operand is rounded otherwise than the values (measured from 7.10.2 to 9.5.3)
    if cause.shown_by is not None and gap.details != (PRECISION["double"],):
        return _seen_value(cause.shown_by, gap, condition)
    if cause.reported and _reports(condition.field) and condition.dialect.finds_ignored:
        return _seen_ignored(condition)
    return "", ""


def _seen_value(shown_by: Callable[[Any, tuple[Any, ...]], bool], gap: Gap, condition: Asked) -> tuple[str, str]:
    if gap.name == "floats" and any(shown_by(value, gap.details) for value in condition.values):
        return "", ""  # such a value differs from what rows hold, whichever they are
    if (sample := condition.look.sample) is None:
        condition.look.needs_sample = True
        return "", ""
    if (stored := sample.columns.get(condition.field.name)) is None:
        return "", ""
    for value in stored.values:
        if shown_by(value, gap.details):
            text = bytes(value).decode() if isinstance(value, msgspec.Raw) else repr(value)
            return f"; a row holds {text[:_EXAMPLE]}", ""
    return "", f"; none in {stored.rows:,} rows with a value"


def _seen_ignored(condition: Asked) -> tuple[str, str]:
    """Look for a value that was left out; rows inside nested arrays and old servers do not tell."""
    if (sample := condition.look.sample) is None:
        condition.look.needs_sample = True
        return "", ""
    if (row := sample.ignored.get(condition.field.whole)) is not None:
        return f"; so in row {row[:_EXAMPLE]!r}", ""
    return "", "; no row has one" if sample.complete else ""


def sort_approximations(field: Field, dialect: Dialect) -> list[str]:
    """Return how the order of a sort differs from the order of the stored values; the digits of numbers aside.

    Values that are not indexed sort as if absent. Rows say which have them (`_ignored`), so that the page does; where
    rows do not, the sort says that there may be some.
    """
    if field.computed:
        return []
    silent = set() if dialect.finds_ignored else {"ignore_above"}
    silent |= {"ignore_above", "ignore_malformed"} if field.nested else set()
    return [_explain(gap) for gap in field.gaps if _CAUSES[gap.name].sorts or gap.name in silent]


def _explain(gap: Gap) -> str:
    return _CAUSES[gap.name].reason.format(", ".join(map(str, gap.details)))
