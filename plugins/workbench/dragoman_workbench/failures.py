"""Errors as the page shows them: what failed, what to do, and a button where the page itself can do it."""

from __future__ import annotations

import re

from dragoman_api.errors import DRIVER, AuthenticationError, ConnectionFailedError, DragomanError, Refused
from dragoman_api.remedies import RemedyKind

from .messages.base import Action, RequestFailure

_COMMANDS: tuple[tuple[str, str, str], ...] = (
    (r"dragoman plugins install (\S+)(?: --version \S+)?(?: --yes)?", "install", "Install it"),
    (r"dragoman plugins update (\S+)(?: --yes)?", "update", "Update it"),
    (r"dragoman plugins repair (\S+)(?: --yes)?", "repair", "Repair it"),
    (r"dragoman plugins enable (\S+)", "enable", "Enable it"),
    (r"dragoman connections edit (\S+).*", "edit", "Edit the connection"),
    (r"dragoman connections add (\S+).*", "new", "New connection"),
    (r"dragoman connections show (\S+)\nthen repeat the command", "edit", "Look at the connection"),
    (r"dragoman plugins (?:show|remove) (\S+)(?: --yes)?", "drivers", "Show the driver"),
    (r"dragoman plugins (?:browse|list)()", "drivers", "Show all drivers"),
)
"""Commands of hints that the page can carry out itself."""
_RESUME = "resume=True"
"""What the hint of an interrupted export or import asks of a script; the page has a button for it."""
_LONGEST = 4_000
"""Characters of one text of a failure; a server wrote some of them."""
_INSTALLED = frozenset({"extra-missing", "release-incompatible", "state-newer"})
"""Codes of errors whose hint is a command that installs something."""
CLOSED = "connection-closed"
"""Code of the error of a connection that is not open."""


def failure_of(error: DragomanError, *, connection: str = "") -> RequestFailure:
    """Return an error as the page shows it."""
    remedy = _remedy(error, connection)
    details = {key: _bounded(str(value)) for key, value in error.details.items()}
    row = error.details.get("row")
    return RequestFailure(
        code=error.code,
        message=_bounded(error.message),
        hint=_bounded(_hint(error, remedy)),
        hint_from=error.hint_from,
        details=details,
        field=_field(error),
        row=row if isinstance(row, int) and not isinstance(row, bool) else None,
        remedy=remedy,
        remedies=list(error.remedies),
    )


def _bounded(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _field(error: DragomanError) -> str:
    """Return the field of the form that can mend an error."""
    field = error.details.get("field")
    if isinstance(field, str) and error.hint_from != DRIVER:
        return field
    if isinstance(error, AuthenticationError):
        return "auth_method"
    if isinstance(error, ConnectionFailedError):
        return "ssl_mode" if re.search(r"certificate|TLS|SSL", error.message) else "host"
    return ""


def _hint(error: DragomanError, remedy: Action | None) -> str:
    """Return the hint in words; a command, an argument of Python, or what the button says already, is none."""
    hint = str(error.to_dict()["hint"])
    if remedy is not None and remedy.action in ("command", "objects"):
        return ""
    if _RESUME in hint and error.hint_from != DRIVER:
        return ""
    by_button = remedy is not None and error.hint_from != DRIVER and hint.startswith("dragoman ")
    return "" if by_button else hint


def _remedy(error: DragomanError, connection: str) -> Action | None:
    unlocks = any(remedy.kind == RemedyKind.UNLOCK for remedy in error.remedies)
    if unlocks and connection and isinstance(error, Refused):
        return Action(action="unlock", label="Unlock", target=connection)
    if error.code == CLOSED and connection:
        return Action(action="open", label="Open it", target=connection)
    if connection and any(remedy.kind == RemedyKind.LIST_OBJECTS for remedy in error.remedies):
        return Action(action="objects", label="Show all objects", target=connection)
    edited = next((remedy for remedy in error.remedies if remedy.kind == RemedyKind.EDIT_FIELD), None)
    own = error.hint_from != DRIVER
    if edited is not None and (name := connection or (str(edited.arguments.get("connection", "")) if own else "")):
        return Action(action="edit", label="Edit the connection", target=name)
    if not own:
        return None  # a driver's words are shown, and nothing follows from them
    for pattern, action, label in _COMMANDS:
        if match := re.fullmatch(pattern, error.hint):
            return Action(action=action, label=label, target=match[1])  # type: ignore[arg-type]
    if (error.hint.startswith("dragoman ") or error.code in _INSTALLED) and "\n" not in error.hint:
        return Action(action="command", label="Copy the command", target=error.hint)
    return None
