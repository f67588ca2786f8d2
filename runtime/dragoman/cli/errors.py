"""The display of failures on a terminal, and exit codes."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING

from dragoman_api.errors import (
    AuthenticationError,
    ConfigurationError,
    ConnectionFailedError,
    DragomanError,
    WheelRejectedError,
)
from dragoman_api.wording import failure

from .advice import advice, remedy_command
from .output import plain, plain_lines, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

OK, FAILED, USAGE, CONNECTION, NOT_APPLIED, INTERRUPTED = 0, 1, 2, 3, 4, 130
STOPPED = {"timed-out": 124, "terminated": 143}
"""Exit codes of commands stopped from outside, as in a shell and timeout(1)."""


def exit_code(error: DragomanError) -> int:
    """Return the exit code of an error: 2 configuration, 3 connection, `STOPPED`, 1 everything else."""
    if error.code in STOPPED:
        return STOPPED[error.code]
    if isinstance(error, AuthenticationError | ConnectionFailedError):
        return CONNECTION
    return USAGE if isinstance(error, ConfigurationError) else FAILED


def report(error: BaseException, *, as_json: bool, command: str = "dragoman") -> int:
    """Report an error on stderr, without a traceback, and return the exit code.

    Raises:
        BaseException: The error itself, if DRAGOMAN_DEBUG asks for the traceback.
    """
    import click

    error = _innermost(error)
    _drain()
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        sys.stderr.write(f"{error.format_message()}\n")
        return USAGE
    if isinstance(error, KeyboardInterrupt | click.Abort):
        sys.stderr.write("\n  interrupted\n")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):  # `| head` has seen enough
        return OK
    if os.environ.get("DRAGOMAN_DEBUG") == "1":
        raise error
    dragoman_error = error if isinstance(error, DragomanError) else _translate(error, command)
    if as_json:
        data = dragoman_error.to_dict()
        if dragoman_error.remedies:
            data["remedies"] = [
                {"kind": remedy.kind, "arguments": remedy.arguments, "command": remedy_command(remedy)}
                for remedy in dragoman_error.remedies
            ]
        write_json({"error": data}, out=sys.stderr)
    else:
        _tell(dragoman_error)
    return USAGE if isinstance(error, click.UsageError) else exit_code(dragoman_error)


def _drain() -> None:
    """Flush stdout; a broken one must not fail again when the interpreter exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _innermost(error: BaseException) -> BaseException:
    """Unwrap the most important error from task groups' exception groups."""
    leaves = list(_leaves(error))
    return next((leaf for leaf in leaves if isinstance(leaf, DragomanError)), leaves[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _translate(error: BaseException, command: str) -> DragomanError:
    import click

    if isinstance(error, click.UsageError):
        hint = f"{error.ctx.command_path if error.ctx else command} --help"
        return DragomanError(error.format_message(), hint=hint, code="usage")
    if isinstance(error, click.ClickException):
        return DragomanError(error.format_message(), code="usage")
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else "stdout: " if error.errno == errno.EBADF else ""
        from dragoman_registry.files import remedy

        return DragomanError(f"{where}{error.strerror}", hint=remedy(error), code="system")

    hint = "run it again with DRAGOMAN_DEBUG=1 to see where"
    return DragomanError(f"unexpected {failure(error)}", hint=hint, code="internal")


def _tell(error: DragomanError) -> None:
    bold, red, off = ("\x1b[1m", "\x1b[31m", "\x1b[0m") if _coloured() else ("", "", "")
    message = error.message
    if isinstance(error, WheelRejectedError) and error.faults:  # the first one is also listed below, with its code
        message = message.partition(f": {error.faults[0][1]}")[0]
    message = plain_lines(message).replace("\n", "\n    | ")  # else a driver could forge lines of output
    lines = [f"{red}error[{plain(error.code)}]{off}: {bold}{message}{off}"]
    if isinstance(error, WheelRejectedError):
        lines += [f"  {plain(code)}: {plain(reason)}" for code, reason in error.faults]
    lines += [f"  {plain(line)}" for line in advice(error)]
    sys.stderr.write("\n".join(lines) + "\n")


def _coloured() -> bool:
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
