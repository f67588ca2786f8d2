"""Sanitising a driver's answers: own error classes, bounded and harmless texts, marked hints, known remedies."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar
from unicodedata import category

from msgspec.structs import replace

from dragoman.spellings import python_call
from dragoman_api.changes import Outcome, Plan
from dragoman_api.columns import MAX_OBJECTS, Condition, Description, Note, ObjectList
from dragoman_api.connections import Health, Server, ServerNode, ServerStatus
from dragoman_api.console import Answer, Completion
from dragoman_api.errors import (
    DRIVER,
    ConfigurationError,
    DragomanError,
    DriverError,
    DriverFaultError,
    UnsupportedOperationError,
    tree,
)
from dragoman_api.exports import ExportPart, ExportSplit
from dragoman_api.filters import CompiledFilter
from dragoman_api.grid import Page
from dragoman_api.masking import is_secret
from dragoman_api.remedies import ABOUT_PLUGINS, MOST, RemedyKind
from dragoman_api.summaries import ColumnSummary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dragoman_api.remedies import Remedy
    from dragoman_worker.wire import Failure

    Clean = Callable[[str], str]

S = TypeVar("S")

SENTENCE, HINT, NAME = 4_000, 500, 200
"""Maximum lengths of a driver's reasons, hints and names, in characters."""

_CODE, _LONGEST_CODE = re.compile("[a-z]+(-[a-z0-9]+)*"), 50

_BREAKS = ("Cc", "Zl", "Zp")  # control characters and separators of lines

ERRORS = 400
"""The lowest HTTP status that means failure."""

NODES = 1_000
"""Nodes per status of a server; a final note counts those beyond."""

NOTES = 5_000
"""Notes per result; a final note counts those beyond."""

CROSSING = frozenset({*tree(DriverError), ConfigurationError, UnsupportedOperationError, DriverFaultError})
"""The classes that a driver may raise: server errors, missing settings, unsupported operations, own faults."""

RESERVED = frozenset(kind.code for kind in tree(DragomanError) if kind not in CROSSING) | {
    "address-refused", "argument-invalid", "ask", "asyncio-needed", "bad-request", "build-failed", "bundle-damaged",
    "cancelled", "certificate-changed", "certificate-untrusted", "change-file-invalid", "change-set-closed",
    "cluster-lost", "column-masked", "column-unknown", "columns-collide", "conformance-failed", "connection-closed",
    "connection-unknown", "copy-unconfirmed", "delimiter-unknown", "dependency-missing", "disk-full", "enable",
    "expectation-syntax", "export-running", "extra-missing", "file-exists", "filter-syntax", "format-unknown",
    "handle-unknown", "import-file-damaged", "import-running", "import-unfinished", "inbox-full", "install", "internal",
    "key-exposed", "key-invalid", "key-locked", "key-missing", "length-required", "limit-exceeded", "link-broken",
    "name-invalid", "name-not-typed", "not-allowed", "not-confirmed", "not-found", "not-production", "not-signed",
    "offline-missing", "other-loop", "parts-differ", "path-refused", "plan-gone", "process-forked", "production-locked",
    "quarantined", "readings-unconfirmed", "ready", "refuse", "registry-not-written", "registry-stale",
    "registry-unreachable", "repair", "repair-needed", "resume-refused", "rollback", "root-mismatch", "root-unknown",
    "routing-empty", "runtime-closed", "sandbox-insufficient", "script-failed", "secret-in-query", "server-busy",
    "server-ends", "sign-in-not-agreed", "snapshot-lost", "state-damaged", "state-newer", "state-unreadable", "stopped",
    "surface-excluded", "system", "target-occupied", "tenant-empty", "terminated", "tests-not-run", "timed-out",
    "token-unknown", "too-large", "too-many", "trust-cache", "types-unconfirmed", "unknown-type", "unreadable",
    "update-host", "upload-conflict", "upload-invalid", "upload-too-large", "upload-too-slow", "usage", "value-invalid",
    "values-misfit", "variable-unknown", "work-ended", "worker-differs", "worker-failed",
}  # fmt: skip
"""Codes reserved for the host, because scripts and exit codes depend on them."""


HOSTS_OWN = frozenset({*ABOUT_PLUGINS, RemedyKind.SIGN_IN, RemedyKind.UNLOCK, RemedyKind.PIN_CERTIFICATE})
"""Kinds of remedies that only the host suggests: they install code, or agree to something."""

WHERE_IT_LEADS = frozenset(
    ("host", "hosts", "port", "token_url", "cloud_id", "proxy", "proxy_user", "ssh", "ssh_identity", "sign_in_at")
)
"""Fields that decide which server gets the credentials; a driver may name one of them, but suggests no value."""


_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)|[\x90\x98\x9d-\x9f].*?(?:\x07|\x9c|\x1b\\|$)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    """Strip terminal escapes, control characters and bidi controls; tabs and newlines stay."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def driver_error(failure: Failure, clean: Clean, *, connection: str = "") -> DragomanError:
    """Build the error for a driver's failure; a driver cannot raise the host's own error classes.

    Args:
        failure: The failure as received.
        clean: Removes terminal control sequences and secrets from a text.
        connection: The connection's name, which belongs to its remedies.
    """
    family = failure.family or failure.code
    kind = next((kind for kind in tree(DragomanError) if kind.code == family), DriverError)
    message, code = _cut(clean(failure.message), SENTENCE), clean(failure.code)
    if kind not in CROSSING or code in RESERVED:
        claimed = code if code in RESERVED else kind.code
        message = f"the driver raised {claimed}, which only the host may raise: {message}"
        kind = kind if kind in CROSSING else DriverError
        code = kind.code
    code = code if _is_code(code) else kind.code
    details = {
        clean(name): _cut(clean(value), SENTENCE) if isinstance(value, str) else value
        for name, value in failure.details.items()
    }
    error = kind(message, code=code, details=details)
    error.hint = _cut(clean(failure.hint), HINT)
    error.remedies = _remedies(failure.remedies, clean, connection)
    error.hint_from = DRIVER if error.hint or error.remedies else ""
    for call in map(python_call, error.remedies):
        if call:
            error.add_note(f"the driver suggests: {call}")
    return error


def received(value: S, clean: Clean, mask: Clean = str, *, connection: str = "") -> S:
    """Return a result whose driver texts are bounded, harmless and marked; data is unchanged.

    Args:
        value: Any hook's result.
        clean: Removes terminal control sequences and secrets from a text.
        mask: Removes only secrets from a server's error, which may echo the request.
        connection: The connection's name, which belongs to its remedies.
    """
    result: Any = value
    match result:
        case Page() if result.notes:
            result = replace(result, notes=_notes(result.notes, clean, connection))
        case ObjectList():
            result = _objects(result, clean, connection)
        case ServerStatus():
            result = _status(result, clean, connection)
        case Description() | ExportPart() | ExportSplit() | Plan() if result.notes:
            result = replace(result, notes=_notes(result.notes, clean, connection))
        case Answer():
            result = _answer(result, clean, mask, connection)
        case ColumnSummary():
            result = replace(
                result,
                approximate={name: _cut(clean(text), SENTENCE) for name, text in result.approximate.items()},
                absent={name: _cut(clean(text), SENTENCE) for name, text in result.absent.items()},
                notes=_notes(result.notes, clean, connection),
            )
        case Completion():
            suggestions = [
                replace(suggestion, detail=_name(suggestion.detail, clean)) for suggestion in result.suggestions
            ]
            # A text that is not harmless is not made so: what a person accepts must be what was suggested.
            result = replace(
                result, suggestions=[suggestion for suggestion in suggestions if _is_line(suggestion.text, clean)]
            )
        case Server():
            notes = [_cut(clean(note), SENTENCE) for note in result.notes[:NAME]]
            result = Server(_name(result.product, clean), _name(result.version, clean), notes)
        case Health():
            code = _name(result.code, clean)
            code = "" if code in RESERVED or not _is_code(code) else code
            result = replace(result, reason=_cut(clean(result.reason), SENTENCE), code=code)
        case CompiledFilter():
            rows = [
                replace(
                    row,
                    approximations=[_cut(clean(text), SENTENCE) for text in row.approximations],
                    unlikely=[_cut(clean(text), SENTENCE) for text in row.unlikely],
                )
                for row in result.rows
            ]
            result = replace(result, rows=rows)
        case [Outcome(), *_]:
            result = [_outcome(outcome, clean) for outcome in result]
    if isinstance(result, Plan):
        planned = [replace(request, statement=_cut(clean(request.statement), SENTENCE)) for request in result.planned]
        result = replace(result, planned=planned, refusals=[_outcome(outcome, clean) for outcome in result.refusals])
    return result  # type: ignore[no-any-return]


def _objects(listed: ObjectList, clean: Clean, connection: str) -> ObjectList:
    conditions = _conditions((item.state for item in listed), clean)
    if conditions:
        objects = [replace(item, state=conditions[item.state]) if item.state else item for item in listed]
        listed = replace(listed, objects=objects)
    return replace(listed, notes=_notes(listed.notes, clean, connection)) if listed.notes else listed


def _status(status: ServerStatus, clean: Clean, connection: str) -> ServerStatus:
    nodes, notes = status.nodes[:NODES], _notes(status.notes, clean, connection)
    if (surplus := len(status.nodes) - NODES) > 0:
        notes.append(Note(code="nodes-cut", reason=f"the driver returned {surplus:,} more nodes, which are hidden"))
    objects = dict(islice(status.objects.items(), MAX_OBJECTS))
    if (surplus := len(status.objects) - MAX_OBJECTS) > 0:
        notes.append(Note(code="states-cut", reason=f"the driver returned {surplus:,} more states, which are hidden"))
    conditions = _conditions((status.state, *(node.state for node in nodes), *objects.values()), clean)
    return ServerStatus(
        state=conditions[status.state] if status.state else None,
        nodes=[_node(node, conditions, clean) for node in nodes],
        objects={name: conditions[state] for name, state in objects.items()},
        notes=notes,
    )


def _node(node: ServerNode, conditions: Mapping[Condition, Condition], clean: Clean) -> ServerNode:
    return replace(
        node,
        name=_name(node.name, clean),
        state=conditions[node.state] if node.state else None,
        roles=_name(node.roles, clean),
        version=_name(node.version, clean),
    )


def _conditions(driver_conditions: Iterable[Condition | None], clean: Clean) -> dict[Condition, Condition]:
    """Return each condition as it may be shown: many objects share few."""
    return {
        condition: replace(condition, word=_name(condition.word, clean))
        for condition in {condition for condition in driver_conditions if condition}
    }


def _answer(answer: Answer, clean: Clean, mask: Clean, connection: str) -> Answer:
    """Process all answers of one request from the last to the first: each holds the next one."""
    chain = [answer]
    while (following := chain[-1].next) is not None:
        chain.append(following)
    head: Answer | None = None
    for link in reversed(chain):
        echoes = max(link.status, answer.status) >= ERRORS
        head = replace(
            link,
            text=mask(link.text) if echoes else link.text,
            title=_name(link.title, clean),
            failed=_cut(clean(link.failed), SENTENCE),
            notes=_notes(link.notes, clean, connection),
            page=None if link.page is None else _page(link.page, clean, mask if echoes else None, connection),
            next=head,
        )
    return head or answer


def _page(page: Page, clean: Clean, mask: Clean | None, connection: str) -> Page:
    page = received(page, clean, connection=connection)
    if mask is None:
        return page
    cells = [[type(cell)(mask(cell)) if isinstance(cell, str) else cell for cell in row] for row in page.cells]
    return replace(page, cells=cells)


def _notes(notes: Sequence[Note], clean: Clean, connection: str) -> list[Note]:
    harmless_notes = [
        replace(
            note,
            code=_name(note.code, clean),
            reason=_cut(clean(note.reason), SENTENCE),
            column=_column(note.column, clean),
            hint=_cut(clean(note.hint), HINT),
            hint_from=DRIVER if note.hint or note.remedies else "",
            remedies=_remedies(note.remedies, clean, connection) if note.remedies else (),
        )
        for note in notes[:NOTES]
    ]
    if (surplus := len(notes) - NOTES) > 0:
        harmless_notes.append(
            Note(code="notes-cut", reason=f"the driver returned {surplus:,} more notes, which are hidden")
        )
    return harmless_notes


def _remedies(remedies: Sequence[Remedy], clean: Clean, connection: str) -> tuple[Remedy, ...]:
    """Return the remedies that a driver may suggest, for its own connection, whatever it says about that.

    A text that is not harmless is not made so: it would name something else.
    """
    fitting = (remedy.of(connection) for remedy in remedies[:MOST] if _may_suggest(remedy, clean))
    return tuple(fitting)


def _may_suggest(remedy: Remedy, clean: Clean) -> bool:
    if remedy.fault or remedy.kind in HOSTS_OWN:
        return False
    field = str(remedy.arguments.get("field", ""))
    if "value" in remedy.arguments and (field in WHERE_IT_LEADS or (field and is_secret(field))):
        return False
    if field and not field.isidentifier():
        return False
    own = (value for name, value in remedy.arguments.items() if name != "connection")
    return all(_is_line(value, clean) for value in own if isinstance(value, str))


def _outcome(outcome: Outcome, clean: Clean) -> Outcome:
    return replace(outcome, reason=_cut(clean(outcome.reason), SENTENCE)) if outcome.reason else outcome


def _is_line(text: str, clean: Clean) -> bool:
    return clean(text) == text and not any(category(character) in _BREAKS for character in text)


def _is_code(text: str) -> bool:
    """Return whether a text can be an error's code: no sentence and no value, since codes go where those do not."""
    return len(text) <= _LONGEST_CODE and _CODE.fullmatch(text) is not None


def _column(name: str | None, clean: Clean) -> str | None:
    """Return the column that a note is about; None for a name that is not harmless, as a harmless one is another's."""
    return name if name is not None and len(name) <= SENTENCE and clean(name) == name else None


def _name(text: str, clean: Clean) -> str:
    return _cut(clean(text), NAME)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
