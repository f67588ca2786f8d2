"""The progress of installations and exports, told from events: live on a terminal, one line elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from dragoman_api import events

from .output import plain, show_count

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID


class Progress:
    """An event sink that narrates on stderr."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._total: int | None = None
        self._resumed = 0
        self._began = 0.0
        self._what = ""

    def show(self, event: events.Event) -> None:
        """Tell an event, if it is about an installation or an export."""
        match event:
            case events.PluginInstallStarted():
                purpose = f" for {plain(event.connection)}" if event.connection else ""
                self._begin(f"installing {plain(event.plugin)} {plain(event.version)}{purpose}")
            case events.PluginInstallProgressed():
                self._advance(f"{self._what} … {plain(event.phase)}", event.done, event.total or None)
            case events.PluginInstalled():
                done = f"({event.seconds:.1f} s)"
                if " for " in self._what:
                    self._end(f"{self._what} … done {done}")
                else:
                    self._end(f"installed {plain(event.plugin)} {plain(event.version)} {done}")
            case events.PluginInstallFailed():
                self._end(f"{self._what} … failed")
            case events.RegistryFailed():
                self._end(f"registry {plain(event.registry)} was left out: {plain(event.reason)}")
            case events.ExportStarted():
                if event.replaced is not None:
                    rows = f" of {show_count(event.replaced)} rows" if event.replaced else ""
                    self._end(f"this replaces an unfinished export{rows}")
                self._total, self._resumed, self._began = None, event.resumed, time.monotonic()
                self._begin(plain(event.object), done=event.resumed)
            case events.ExportProgressed():
                self._total = event.total
                seconds = time.monotonic() - self._began
                self._advance(f"{self._what}  {self._rows(event.rows, seconds)}", event.rows, event.total)
            case events.ExportFinished():
                self._end(f"{self._what}  {self._rows(event.rows, event.seconds)}  done")
            case events.ExportFailed():
                self._end(f"{self._what}  failed" if "BrokenPipe" not in event.reason else "")

    def _rows(self, rows: int, seconds: float) -> str:
        """Say how far an export is and how fast this run of it goes."""
        rate = float(f"{(rows - self._resumed) / max(seconds, 1e-6):.2g}")
        return f"{show_count(rows)}/{show_count(self._total)}  {rate:,.0f} rows/s"

    def close(self) -> None:
        """Take a bar that still moves off the terminal: what it showed was interrupted."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _begin(self, what: str, *, done: int | None = None) -> None:
        self._what = what
        if not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        clock = TimeElapsedColumn() if done is None else TimeRemainingColumn()
        columns = (TextColumn("  {task.description}", markup=False), BarColumn(), clock)
        self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(what, total=None, completed=done or 0)
        self._bar.start()

    def _advance(self, what: str, done: int, total: int | None) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=what, completed=done, total=total)

    def _end(self, line: str) -> None:
        self.close()
        if line:
            sys.stderr.write(f"  {line}\n")
            sys.stderr.flush()
