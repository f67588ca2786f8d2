"""Files that one command line names, each distinct from the events file and the standard streams; code of others."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import redirect_stdout, suppress
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

import click

from dragoman_api.errors import ConfigurationError, DragomanError
from dragoman_api.wording import failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType


foreign_code: list[str] = []
"""What this process has loaded of others: scripts, automations, and distributions beside the host."""


class CommandFile(NamedTuple):
    """A file that a command reads or writes.

    Attributes:
        by: The words of the command line that name it.
        beside: Returns the files that are written with it.
    """

    by: str
    path: Path
    written: bool
    beside: Callable[[Path], tuple[Path, ...]] = lambda _path: ()


class FileOptions(Protocol):
    """The options of one command line that determine where it writes.

    Attributes:
        events: The file of the events, `-` for standard output.
        driver_log: The file of what drivers print, `-` for standard error.
        reserved: Standard output, if it is reserved for events.
    """

    events: str | None
    driver_log: str | None
    files: tuple[CommandFile, ...]
    reserved: BinaryIO | None


def command_file(
    *, written: bool = False, beside: Callable[[Path], tuple[Path, ...]] = lambda _path: ()
) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Make the callback of a parameter that names a file, and reject it if it has another use."""

    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if value is not None and str(value) != "-":
            words = f"{parameter.opts[0]} {value}" if isinstance(parameter, click.Option) else str(value)
            note_files(context.obj, [CommandFile(words, Path(value), written, beside)])
        return value

    return keep


def note_files(options: FileOptions, files: list[CommandFile]) -> None:
    """Record files. Raises ConfigurationError if one has another use already."""
    options.files += tuple(files)
    check_apart(options)


def check_apart(options: FileOptions) -> None:
    """Refuse to use one file for two of: events, the log of drivers, the command's output, standard streams.

    Raises:
        ConfigurationError: One file has two uses; nothing was opened.
    """
    for file in options.files:
        if file.written and (stream := _stream_of(file.path, options)):
            hint = f"omit {file.by.partition(' ')[0]}, or name another file"
            raise ConfigurationError(f"{file.by} is also the file of standard {stream}", hint=hint)
    files = [*options.files]
    for option, name, stdio in (
        ("--events", options.events, "to reserve stdout for events"),
        ("--driver-log", options.driver_log, "for stderr"),
    ):
        if not name or name == "-":
            continue
        path = Path(name)
        if stream := _stream_of(path, options):
            hint = f"use {option} - {stdio}, or name another file"
            raise ConfigurationError(f"{option} {path} is also the file of standard {stream}", hint=hint)
        for file in files:
            if any(_same(path, other) for other in (file.path, *file.beside(file.path))):
                does = "written" if file.written else "read"
                text = f"{option} {path} is {does} by {file.by} too; nothing was opened"
                raise ConfigurationError(text, hint=f"name another file for {option}")
        files.append(CommandFile(f"{option} {path}", path, written=True))


def open_to_append(path: Path) -> BinaryIO:
    """Open a file for appending events or a log; only its owner can access a new one.

    Raises:
        PermissionError: It is a link of another user.
        OSError: It cannot be written.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    if path.is_symlink():
        if path.lstat().st_uid not in (0, os.geteuid()):
            raise PermissionError(None, "it is a link of another user", str(path))
    else:
        flags |= os.O_NOFOLLOW  # it may have become one since
    # Unbuffered: after a failed write, closing a buffer would fail again.
    return os.fdopen(os.open(path, flags, 0o600), "ab", buffering=0)


def _same(path: Path, other: Path) -> bool:
    """Return whether two paths lead to one file, or will once it exists."""
    if (status := _status(path)) and (other_status := _status(other)):
        return os.path.samestat(status, other_status) and not stat.S_ISCHR(status.st_mode)
    return os.path.normcase(os.path.realpath(path)) == os.path.normcase(os.path.realpath(other))


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _stream_of(path: Path, options: FileOptions) -> str:
    """Return the standard stream that is this file; empty for none. A terminal and the null device may be shared."""
    path_status = _status(path)
    if path_status is None or stat.S_ISCHR(path_status.st_mode):
        return ""
    for stream, status in _streams(options):
        if os.path.samestat(path_status, status) and (stream == "output" or stat.S_ISREG(path_status.st_mode)):
            return stream
    return ""


def _streams(options: FileOptions) -> Iterator[tuple[str, os.stat_result]]:
    with suppress(OSError):  # closed, or replaced by an object without a descriptor
        yield "output", os.fstat(1 if options.reserved is None else options.reserved.fileno())
    with suppress(OSError):
        yield "error", os.fstat(2)


def load_file(path: str) -> ModuleType:
    """Import a Python file by its path: an automation, or a script for `run`.

    Raises:
        ConfigurationError: It is missing, others can change it, or importing it fails.
    """
    from importlib.util import module_from_spec, spec_from_file_location

    from dragoman.folders import check_own, shared

    foreign_code.append(path)
    file = Path(path)
    spec = spec_from_file_location(f"_dragoman_file_{file.stem}", file)
    if spec is None or not isinstance(spec.loader, SourceFileLoader) or not file.is_file():
        raise ConfigurationError(f"{path} is not a readable Python file", hint="name the path of a .py file")
    check_own(file, chosen=file)
    folder, before = file.resolve().parent, [*sys.path]
    if not shared(folder):  # as /tmp, where others can put a module of any name
        check_own(folder / "__pycache__", chosen=file)
        sys.path.insert(0, str(folder))
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        # Never a compiled file beside it, which another user may have written.
        exec(spec.loader.source_to_code(file.read_bytes(), str(file)), module.__dict__)  # noqa: S102
    except Exception as error:
        raise _script_failed(file, error) from error
    finally:
        if str(folder) in sys.path and str(folder) not in before:
            sys.path.remove(str(folder))
    return module


def load_automation(path: str) -> ModuleType:
    """Import an automation, whose prints are not data. Raises ConfigurationError."""
    try:
        with redirect_stdout(sys.stderr):
            return load_file(path)
    except (KeyboardInterrupt, DragomanError):
        raise
    except BaseException as error:  # only a script of `run` may end the process
        raise _script_failed(Path(path), error) from error


def _script_failed(file: Path, error: BaseException) -> ConfigurationError:
    hint = f"correct it; python {file} shows whether it can be read"
    return ConfigurationError(script_fault(file, error), hint=hint, code="script-failed")


def script_fault(file: Path, error: BaseException) -> str:
    """Describe in one line where a person's own script failed."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"{file}:{error.lineno}: {type(error).__name__}: {error.msg}"
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{file}{f':{line}' if line else ''}: {failure(error)}"


def load_distribution(module: str, *, reason: str, requirement: str) -> Any:
    """Import a module of a distribution beside the host, which only the commands that need it know.

    Raises:
        ConfigurationError: The distribution is not installed (code ``extra-missing``).
    """
    try:
        foreign_code.append(module)
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        from dragoman_api.installation import packages_missing

        raise packages_missing(reason, requirement) from error
