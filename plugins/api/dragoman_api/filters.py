"""Filter rows, and the compiled filter that a driver makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from .columns import Operator

Value = None | bool | int | float | str | list[bool | int | float | str | None]


class Filter(msgspec.Struct, frozen=True, tag="filter", forbid_unknown_fields=True):
    """One filter row of a grid.

    Attributes:
        column: The column's name.
        op: An operator, or its command line spelling.
        value: A scalar; for ``in``, ``not-in`` and ``between`` a list, or a comma-separated text; None if
            the operator takes no value. In a column of kind ``binary``, each value is base64 text; in one of kind
            ``timestamp``, it may be a period (``2026-11-23T00:00:00Z/2026-11-24T00:00:00Z``). ``near`` takes a
            latitude, a longitude and a distance (``52.52,13.405,5km``), ``in-box`` the latitude and the longitude of
            two corners (``south,west,north,east``).
        group: Rows with the same group on leaves of one nested array must hold for the same element (E35).
        case: True compares letter case, False ignores it, None leaves it to the operator.

    >>> Filter("price", ">=", 10).op
    <Operator.GE: '>='>
    """

    column: str
    op: Operator
    value: Value = None
    group: str | None = None
    case: bool | None = None

    if TYPE_CHECKING:  # Filter("price", ">=", 10) is the usual spelling

        def __init__(
            self,
            column: str,
            op: Operator | str,
            value: Value = None,
            group: str | None = None,
            case: bool | None = None,  # noqa: FBT001
        ) -> None: ...

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "op", Operator(self.op))


class TimeRange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rows of a span of time, beside the filter: a row must satisfy both. A row without a time is not in any range.

    Attributes:
        column: The time column, as `Description.time` names it.
        since: The first instant, RFC 3339 in UTC with at most nine digits of a fraction (``2026-11-23T12:00:00Z``);
            None for no lower bound.
        until: The instant after the last one; None for no upper bound.
    """

    column: str
    since: str | None = None
    until: str | None = None


class RawQuery(msgspec.Struct, frozen=True, tag="raw", forbid_unknown_fields=True):
    """The Raw row, which the rules call "Raw SQL": its text goes to the server in the server's own syntax (E36)."""

    text: str


class FilterRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The filter rows to compile for one object.

    Attributes:
        object: The object's name.
        rows: The filter rows, in the order in which they were written.
        match: With ``all``, every filter row must hold; with ``any``, one is enough.
        residual: For a page only: the most rows, 1 to 10,000, over which the driver itself may evaluate filter rows
            that the server cannot run. With None it refuses them.
        now: The instant of the call, RFC 3339 in UTC. The host has put instants, or periods such as
            ``2026-11-23T00:00:00Z/2026-11-24T00:00:00Z``, in place of the relative times that it knows; a driver whose
            server knows more of them lets these count from this instant, so that all pages of a walk show the same
            rows.
    """

    object: str
    rows: list[Filter | RawQuery]
    match: str = "all"
    residual: int | None = None
    now: str | None = None


class Explanation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one filter row was compiled.

    Attributes:
        row: The number of the filter row, from 0.
        clause: The clause that is sent, in the server's syntax.
        exact: The clause means exactly what the filter row says, whatever the rows hold.
        approximations: How the meaning of the clause differs, one sentence each. The host repeats them as notes of
            every page, count and export.
        unlikely: How it would differ for rare stored values, of which the driver has looked at rows and seen none; one
            sentence each. They make no notes, since a warning on nearly every filter is none, but `exact` is false.
        same_element: Numbers of the filter rows that must hold for the same array element.
    """

    row: int
    clause: str
    exact: bool = True
    approximations: list[str] = []
    unlikely: list[str] = []
    same_element: list[int] = []


class CompiledFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A filter that runs as asked: a driver refuses one that cannot run (E34, W38), and never widens it.

    Attributes:
        object: The object it was compiled for.
        body: The filter in the driver's own form, opaque to the host; grid requests pass it back.
        rows: One explanation per filter row.
        revision: What the driver knew of the object's columns; it refuses the filter once they have changed. Empty if
            the driver keeps nothing.
    """

    object: str
    body: str
    rows: list[Explanation]
    revision: str = ""
