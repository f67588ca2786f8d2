"""A driver's exceptions as errors, with hints for what its libraries lack in the sandbox."""

from __future__ import annotations

import traceback

from dragoman_api.errors import DragomanError, DriverFaultError
from dragoman_api.wording import failure

_LACKS = {
    "temporary directory": "a driver cannot write files: keep the data in memory (io.BytesIO)",
    "getpwuid": "a driver's process knows no users: take the name from the profile",
    "username": "a driver's process knows no users: take the name from the profile",
    "home directory": "a driver has no home directory: ask for a file in the form, with the permission fs:read=FIELD",
    # A resolver's error numbers are negative.
    "[Errno -": "the host resolves names: use the Http that connect receives, or asyncio's own streams",
}
"""Hints for what libraries lack in the sandbox, by words of their errors."""
_FAULT_TEXT = 500  # characters of a foreign exception that leave the process


def describe(error: BaseException, what: str) -> DragomanError:
    """Return the error for a driver's exception; print the traceback of one that is not a DragomanError.

    Args:
        error: The exception.
        what: The clause that the message begins with.
    """
    if isinstance(error, DragomanError):
        return error
    traceback.print_exception(error)  # into the log, whose last lines the host shows
    reason = failure(error)[:_FAULT_TEXT]
    lacks = [hint for words, hint in _LACKS.items() if words in reason]
    if isinstance(error, PermissionError):
        lacks.append("in the sandbox a driver may only read its own files and reach its server")
    return DriverFaultError(f"{what}: {reason}", hint=lacks[0] if lacks else "")
