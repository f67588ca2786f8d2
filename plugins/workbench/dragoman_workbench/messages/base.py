"""The parts that all messages share: cells, names, failures, and how a tab enters."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from msgspec import Meta, Struct, convert

from dragoman_api.remedies import Remedy

CellTag = Literal["integer", "decimal", "json", "bytes", "cut-text", "cut-json", "cut-bytes", "missing"]
Tagged = tuple[CellTag, str]
Cell = None | bool | str | Tagged

MAX_WORD, MAX_NAME, MAX_TEXT = 64, 4_096, 65_536
"""Characters of a short word, of the name of an object or a column, and of any other text."""
Name = Annotated[str, Meta(min_length=1, max_length=MAX_WORD)]
ObjectName = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
ColumnName = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
Text = Annotated[str, Meta(max_length=MAX_TEXT)]
Key = Annotated[str, Meta(min_length=2, max_length=65_536)]
Ticket = Annotated[str, Meta(min_length=1, max_length=128)]


class RouteAnswer(Struct, frozen=True, kw_only=True):
    """An answer, or a part of one."""


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a request."""


Answer = TypeVar("Answer", bound=RouteAnswer)


def answer_of(kind: type[Answer], value: object) -> Answer:
    """Return an answer with the members that a value of the host has under the same names."""
    return convert(value, kind, from_attributes=True)


class Action(RouteAnswer, frozen=True, kw_only=True):
    """What the page offers as a button beside a failure.

    Attributes:
        action: What the button does: ``command`` copies `target`; ``edit``, ``new``, ``objects`` and ``drivers`` show
            that view; the others call that route with `target`.
        target: A plugin's id, a connection's name, or the command to copy; empty for all drivers.
    """

    action: Literal[
        "install", "update", "repair", "enable", "edit", "unlock", "open", "command", "new", "objects", "drivers"
    ]
    label: str
    target: str


class RequestFailure(RouteAnswer, frozen=True, kw_only=True):
    """Why a request failed; a person can act on it.

    Attributes:
        code: Stable identifier, as of `dragoman_api.errors`, or ``bad-request``, ``not-found``, ``too-large``,
            ``too-many``, ``no-secret``, ``foreign``.
        hint: What to do; empty if nothing can be done.
        hint_from: ``driver`` if a driver wrote the hint, which is then shown as its words; else empty.
        field: The field of the form that can mend it; empty if there is none.
        row: The filter row or change that it is about, from 0; None for none.
        remedy: A button; None for none.
    """

    code: str
    message: str
    hint: str = ""
    hint_from: str = ""
    details: dict[str, str] = {}
    field: str = ""
    row: int | None = None
    remedy: Action | None = None
    remedies: list[Remedy] = []


class Failed(RouteAnswer, frozen=True, kw_only=True):
    """The body of every answer with a status of 400 or more."""

    error: RequestFailure


class Done(RouteAnswer, frozen=True, kw_only=True):
    """It was done."""

    done: bool = True


class Empty(Request, frozen=True, kw_only=True):
    """A request without parameters: ``{}``."""


class Enter(Request, frozen=True, kw_only=True):
    """The exchange of a one-time token, from the address's fragment (``/#token=…``), for a secret."""

    token: Annotated[str, Meta(min_length=1, max_length=128)]


class Entered(RouteAnswer, frozen=True, kw_only=True):
    """The secret for the header."""

    secret: str


class NewToken(RouteAnswer, frozen=True, kw_only=True):
    """A one-time token, with which the page opens a further tab: ``/#token=…``; it holds a minute."""

    token: str
