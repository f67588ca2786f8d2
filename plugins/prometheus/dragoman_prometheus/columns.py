"""The columns of a metric, their values, and the order of rows by one."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import islice
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from dragoman_api import (
    Column,
    ColumnKind,
    Description,
    Role,
    TimeColumn,
    Written,
)
from dragoman_api.columns import MAX_COLUMNS, NULLS, ORDER
from dragoman_api.columns import Operator as Op
from dragoman_api.kit.page_columns import columns_cut
from dragoman_api.kit.views import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


WINDOW = 3_600
"""Seconds before now that are read if nobody names a time (M5)."""

TIME, VALUE, SERIES = "timestamp", "value", "series"
_EQUAL = (Op.EQ, Op.NE, Op.IN, Op.NOT_IN)
_LABEL = (*_EQUAL, Op.CONTAINS, Op.NOT_CONTAINS, Op.STARTS, Op.ENDS, Op.REGEX, *NULLS)
_EDIT = "the server stores what it scrapes, and its API changes no sample"
_CLASSIC = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Sample(NamedTuple):
    """One row: milliseconds since 1970, the text of its series, the labels, and a number or a histogram's JSON."""

    at: int
    series: str
    labels: dict[str, str]
    value: Any


class View(msgspec.Struct, frozen=True):
    """What was read of a metric, or of a group of metrics.

    Attributes:
        name: The object's name.
        matcher: The matcher of its names.
        labels: All label names, by the names of their columns (M7).
        columns: The columns, by name.
        quotes: The server takes a label name in quotation marks.
    """

    name: str
    matcher: str
    labels: dict[str, str]
    columns: dict[str, Column]
    quotes: bool

    @property
    def revision(self) -> str:
        """What a filter depends on."""
        return digest(sorted(self.labels))

    def spell(self, label: str) -> str:
        """Return the name of a label as a query spells it; empty if it cannot (M11)."""
        return label if _CLASSIC.fullmatch(label) else quote(label) if self.quotes else ""

    def describe(self) -> Description:
        """Describe the object."""
        columns, time = [*self.columns.values()], TimeColumn(column=TIME, window=WINDOW)
        return Description(object=self.name, columns=columns, notes=columns_cut(len(self.labels) + 3), time=time)


def column_names(labels: Iterable[str]) -> dict[str, str]:
    """Return the labels by the names of their columns, sorted: one that is called like another column has a prefix.

    >>> column_names(["le", "value"])
    {'le': 'le', 'label:value': 'value'}
    """
    return {f"label:{label}" if label in (TIME, VALUE, SERIES) or label.startswith("label:") else label: label
            for label in sorted(labels)}  # fmt: skip


def make_view(name: str, matcher: str, labels: Iterable[str], *, quotes: bool) -> View:
    """Build the view of an object: its time and value, the labels, and last the whole series, a part of the key."""
    names = column_names(labels)
    columns = [
        _column(TIME, "timestamp", ColumnKind.TIMESTAMP, (*_EQUAL, *ORDER), role=Role.KEY),
        _column(VALUE, "sample", ColumnKind.FLOAT, (*_EQUAL, *ORDER)),
        *(_column(column, "label", ColumnKind.TEXT, _LABEL, path=("labels", label))
          for column, label in islice(names.items(), MAX_COLUMNS - 3)),
    ]  # fmt: skip
    series = _column(SERIES, "series", ColumnKind.TEXT, (), role=Role.KEY, filter="filter by the labels of the series")
    return View(name, matcher, names, {c.name: c for c in [*columns, series]}, quotes)


def _column(name: str, server_type: str, kind: ColumnKind, operators: tuple[Op, ...], *, role: Role = Role.NONE,
            path: tuple[str, ...] = (), **reasons: str) -> Column:  # fmt: skip
    reasons |= {"edit": _EDIT}
    return Column(name=name, type=server_type, kind=kind, role=role, written=Written.NEVER, sortable=True,
                  operators=operators, reasons=reasons, path=path or (name,))  # fmt: skip


def quote(value: str) -> str:
    r"""Write a text as PromQL and MetricsQL read it.

    >>> print(quote('a"b\\'))
    "a\"b\\"
    """
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def pattern(value: str) -> str:
    """Escape a text for a regular expression of Go (RE2), which is always anchored."""
    return _SPECIAL.sub(r"\\\g<0>", value)


def instant_text(at: int) -> str:
    """Return milliseconds since 1970 as RFC 3339 in UTC. Raises OverflowError outside of the years 1 to 9999."""
    return (_EPOCH + timedelta(milliseconds=at)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def stored(sample: Sample, column: str, view: View) -> object:
    """Return the stored value of a column; None for a label that a series lacks."""
    if column == VALUE:
        return sample.value
    return instant_text(sample.at) if column == TIME else sample.labels.get(view.labels[column])


def order(column: str, view: View) -> Callable[[Sample], Any]:
    """Return the sort key of a column: texts by code points; None, which comes last, for NaN and what has no value."""
    if column == TIME:
        return lambda sample: sample.at
    if column == SERIES:
        return lambda sample: sample.series
    if column == VALUE:
        return lambda sample: None if isinstance(sample.value, str) or isnan(sample.value) else sample.value
    label = view.labels[column]
    return lambda sample: sample.labels.get(label)
