"""The progress of work on stderr: a line that moves, or a bar per export."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api import events

from .output import plain, show_count, show_rows

if TYPE_CHECKING:
    from typing import Self

    from rich.progress import Progress as Bar

_PATIENCE = 1.0
"""Seconds after which a line of progress stands beside what the reader of a pipe writes."""
_PAUSE = 0.1
"""Seconds between two texts."""


class _Task(msgspec.Struct):
    """One installation or export under way."""

    title: str
    began: float
    resumed: int = 0
    total: int | None = None
    bar_task: Any = None

    def rows(self, rows: int, seconds: float) -> str:
        """Describe the progress of an export and the speed of this run."""
        rate = float(f"{(rows - self.resumed) / max(seconds, 1e-6):.2g}")
        return f"{self.title}  {show_count(rows)}/{show_count(self.total)}  {rate:,.0f} rows/s"


class Progress:
    """An event sink that reports progress on stderr; a script may run several tasks at once."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._line: StatusLine | None = None
        self._tasks: dict[tuple[str, ...], _Task] = {}

    def show(self, event: events.Event) -> None:
        """Report an event of an installation or an export."""
        match event:
            case events.PluginInstallStarted():
                purpose = f" for {plain(event.connection)}" if event.connection else ""
                self._begin((event.plugin,), f"installing {plain(event.plugin)} {plain(event.version)}{purpose}")
            case events.PluginInstallProgressed():
                task = self._task((event.plugin,))
                self._advance(task, f"{task.title} … {plain(event.phase)}", event.done, event.total or None)
            case events.PluginInstalled():
                title, done = self._task((event.plugin,)).title, f"({event.seconds:.1f} s)"
                installed = f"installed {plain(event.plugin)} {plain(event.version)} {done}"
                self._end((event.plugin,), f"{title} … done {done}" if " for " in title else installed)
            case events.PluginInstallFailed():
                self._end((event.plugin,), f"{self._task((event.plugin,)).title} … failed")
            case events.RegistryFailed():
                self._say(f"registry {plain(event.registry)} was left out: {plain(event.reason)}")
            case events.RegistryRecordHidden():
                subject = f"{plain(event.record)} of registry {plain(event.registry)}"
                self._say(f"{subject} was left out: {plain(event.reason)}")
            case events.ExportStarted() | events.ExportProgressed() | events.ExportFinished() | events.ExportFailed():
                self._show_export(event, (event.connection, event.object))

    def _show_export(self, event: events.Event, key: tuple[str, ...]) -> None:
        match event:
            case events.ExportStarted():
                if event.replaced is not None:
                    rows = f" of {show_rows(event.replaced)}" if event.replaced else ""
                    self._say(f"this replaces an unfinished export{rows}")
                self._begin(key, plain(event.object), resumed=event.resumed)
            case events.ExportProgressed():
                task = self._task(key)
                task.total = event.total
                text = task.rows(event.rows, time.monotonic() - task.began)
                self._advance(task, text, event.rows, event.total)
            case events.ExportFinished():
                self._end(key, f"{self._task(key).rows(event.rows, event.seconds)}  done")
            case events.ExportFailed():
                became = "stopped" if event.code == "stopped" else "failed"
                self._end(key, f"{self._task(key).title}  {became}" if "BrokenPipe" not in event.reason else "")

    def close(self) -> None:
        """Remove an unfinished bar or line from the terminal: its task was interrupted."""
        if self._line is not None:
            self._line.clear()
            self._line = None
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _task(self, key: tuple[str, ...]) -> _Task:
        return self._tasks.get(key) or _Task(plain(key[-1]), time.monotonic())

    def _begin(self, key: tuple[str, ...], title: str, *, resumed: int | None = None) -> None:
        task = self._tasks[key] = _Task(title, time.monotonic(), resumed or 0)
        if not sys.stderr.isatty():
            return
        if _piped():
            self._line = self._line or StatusLine(patience=_PATIENCE)
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            clock = TimeElapsedColumn() if resumed is None else TimeRemainingColumn()
            columns = (TextColumn("  {task.description}", markup=False), BarColumn(), clock)
            # What a script prints while the bar moves goes above it, but to stdout where that is a file.
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty())
            self._bar.start()
        task.bar_task = self._bar.add_task(title, total=None, completed=resumed or 0)

    def _advance(self, task: _Task, text: str, done: int, total: int | None) -> None:
        if self._bar is not None and task.bar_task is not None:
            self._bar.update(task.bar_task, description=text, completed=done, total=total)
        elif self._line is not None:
            self._line.show(f"  {text}")

    def _end(self, key: tuple[str, ...], line: str) -> None:
        task = self._tasks.pop(key, None)
        if not self._tasks:
            self.close()
        elif self._bar is not None and task is not None and task.bar_task is not None:
            self._bar.remove_task(task.bar_task)
        self._say(line)

    def _say(self, line: str) -> None:
        if not line:
            return
        if self._line is not None:
            self._line.clear()
        if self._bar is not None:  # above the moving bar
            self._bar.console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
        else:
            sys.stderr.write(f"  {line}\n")
            sys.stderr.flush()


def _piped() -> bool:
    """Return whether stdout is a pipe."""
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):  # it is closed, or has no descriptor
        return False


class StatusLine:
    """A line on stderr that each text replaces, if stderr is a terminal that shows lines; a context clears it.

    The first text waits for `patience`, in seconds.
    """

    def __init__(self, *, quiet: bool = False, patience: float = 0.0) -> None:
        self._live = sys.stderr.isatty() and not quiet
        self._next = time.monotonic() + patience
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, text: str) -> None:
        """Show a text, unless the last one is too new to be replaced."""
        if not self._live or time.monotonic() < self._next or _taken():
            return
        self._next = time.monotonic() + _PAUSE
        self._write(text[: shutil.get_terminal_size().columns - 1])
        self._shown = True

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            self._shown = False
            self._write("")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def _taken() -> bool:
    """Return whether another program reads single keys from the terminal, as a pager does, and so draws on it."""
    import termios

    with suppress(OSError, ValueError, termios.error):  # it is closed, or has no descriptor
        return not termios.tcgetattr(sys.stderr.fileno())[3] & termios.ICANON
    return False
