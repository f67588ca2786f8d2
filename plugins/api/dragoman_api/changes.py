"""Changes as values: planned as exact requests first, then sent as planned."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from .cells import Cell
from .columns import Note
from .grid import RowKey

Values = dict[str, Cell | list[object] | dict[str, object]]


class Insert(msgspec.Struct, frozen=True, tag="insert", forbid_unknown_fields=True):
    """A new row; the server makes an id where none is given.

    Attributes:
        object: Where it goes.
        values: By column name.
        id: Its primary key, None to let the server make one.
        replace: It may take the place of a row with that id.
        tenant: Whose row it is, where the object has tenants.
        routing: What the server needs besides the id to find it again, as in `RowKey`.
        guard: What the row whose place it takes must still be, as in `RowKey`; only with `replace`.
        document: The whole row as the server stores it, as JSON text that goes out as it stands; without `values`.
    """

    object: str
    values: Values = {}
    id: str | None = None
    replace: bool = False
    tenant: str | None = None
    routing: str | None = None
    guard: dict[str, int | str] = {}
    document: str | None = None


class Update(msgspec.Struct, frozen=True, tag="update", forbid_unknown_fields=True):
    """New values for some columns of one row."""

    key: RowKey
    values: Values


class Delete(msgspec.Struct, frozen=True, tag="delete", forbid_unknown_fields=True):
    """The end of one row."""

    key: RowKey


class Drop(msgspec.Struct, frozen=True, tag="drop", forbid_unknown_fields=True):
    """The end of a whole object."""

    object: str


Change = Insert | Update | Delete | Drop


class HttpRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One exact request: what a preview shows is what is sent, byte for byte.

    Attributes:
        method: In capitals.
        path: Percent-encoded, with its query string, from the first slash.
        body: The bytes that are sent, as text; None for no body.
        content_type: Of the body.
    """

    method: str
    path: str
    body: str | None = None
    content_type: str = "application/json"

    def __str__(self) -> str:
        return f"{self.method} {self.path}" + (f"\n{self.body}" if self.body is not None else "")


class OutcomeStatus(StrEnum):
    """What became of one change."""

    APPLIED = "applied"
    SKIPPED = "skipped"
    REFUSED = "refused"
    CONFLICT = "conflict"
    FAILED = "failed"


class Outcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of one change, and why.

    Attributes:
        change: Its number in the plan's changes, from 0.
        status: Applied, or why not.
        id: The row's id, as far as there is one.
        reason: One sentence; empty when applied as asked.
        key: Where the row now is, with the guard for a further change.
        doubt: A failure after which it is not known whether the change was carried out.
    """

    change: int
    status: OutcomeStatus
    id: str | None = None
    reason: str = ""
    key: RowKey | None = None
    doubt: bool = False


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes to plan together; `changes[n]` is what outcome n speaks of.

    Several changes of one row are carried out in their order.

    Attributes:
        changes: What is to be done.
        undo: What takes each row back is wanted as well; every new row gets its id in the plan.
    """

    changes: list[Change]
    undo: bool = False


class PlannedRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request of a plan and the changes it carries out.

    Attributes:
        request: Exactly what is sent.
        changes: The numbers of its changes.
        rows: The same by row, in the order of the request, where it carries several rows; their changes end alike.
    """

    request: HttpRequest
    changes: list[int]
    rows: list[list[int]] = []

    @property
    def by_row(self) -> list[list[int]]:
        """Give the changes of each row, in the order of the request."""
        return self.rows or [self.changes]


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What applying would send, and what it would leave out.

    Attributes:
        planned: Exact requests, in the order they are sent.
        refusals: Outcomes of the changes that are not sent: skipped or refused, with the reason.
        notes: What a person should know before sending.
        changes: What was planned; the host fills it in, outcomes count from it.
        undo: What takes the rows back, one change for each row of each request in order, guarded so that it only
            finds a row as the plan leaves it; empty unless asked for.
    """

    planned: list[PlannedRequest]
    refusals: list[Outcome] = []
    notes: list[Note] = []
    changes: list[Change] = []
    undo: list[Change] = []

    @property
    def requests(self) -> list[HttpRequest]:
        """Give the exact requests, in the order they are sent."""
        return [planned.request for planned in self.planned]
