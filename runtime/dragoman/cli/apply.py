"""The command that applies a change file: review, apply, report by line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .command_files import command_file
from .common_arguments import CONNECTION
from .errors import NOT_APPLIED
from .global_options import Command
from .opening import opens
from .output import dumps, plain, request_document, say, say_notes, write_json, write_request, write_table
from .status_line import StatusLine
from .streams import attended

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.changes import ChangeReport, ChangeSet, LineOutcome
    from dragoman.sessions.session import Session

    from .options import Options

_RARE = ("refused", "unknown")  # outcomes that the summary names only if there are any


@click.command(cls=Command)
@CONNECTION
@click.argument("file", metavar="FILE.ndjson|-", callback=command_file())
@click.option("--undo", metavar="FILE", callback=command_file(written=True),
              help="Write an undo file, a change file that takes these changes back.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show the exact requests without sending them.")
@opens
async def apply(options: Options, session: Session, *, file: str, undo: str | None, dry_run: bool) -> int | None:
    """Apply a file of changes, one JSON object per line.

    {"op":"update","object":"books","id":"17","set":{"price":12.5}}, or "insert", or "delete". Bad lines are
    listed, and then nothing is applied.
    """
    from dragoman.changes import ChangeSet

    stdin = sys.stdin.buffer if file == "-" else None
    target = Path(undo) if undo and not dry_run else None
    with StatusLine(quiet=options.quiet) as line:
        progress = _progress_in(line)
        async with ChangeSet(session, Path(file), stdin=stdin, undo=target, progress=progress) as changes:
            await changes.plan()
            if dry_run:
                await _preview(options, changes)
                return NOT_APPLIED if changes.refused else None
            await _review(options, changes)
            report = await changes.apply()
    _tell(options, session, report)
    return NOT_APPLIED if report.left else None


def _progress_in(line: StatusLine) -> Callable[[str, int, int], None]:
    """Return what shows progress in a line, which disappears at the end."""

    def show(activity: str, done: int, total: int) -> None:
        line.show(f"  {activity} {done:,}/{total:,}") if done < total else line.clear()

    return show


async def _preview(options: Options, changes: ChangeSet) -> None:
    notes = list(changes.notes.values())
    if options.json:
        sys.stdout.write('{"requests":[')
        comma = ""
        async for planned in changes.planned():
            sys.stdout.write(comma + dumps(request_document(planned)))
            comma = ","
        sys.stdout.write(f'],"refusals":{dumps(changes.refused)},"notes":{dumps(notes)}}}\n')
        return
    async for planned in changes.planned():
        write_request(planned)
    _lines(changes.refused)
    say_notes(notes)
    options.say("not sent (--dry-run)")


async def _review(options: Options, changes: ChangeSet) -> None:
    """Show what will be done, and ask for consent on a terminal."""
    if options.yes or not attended():
        return
    for (name, kind), count in sorted(changes.file.kinds.items()):
        say(f"{plain(name)}: {count:,} {kind}{'s' if count > 1 else ''}")
    for left in changes.refused[:10]:
        say(f"not sent: line {left.line}: {left.reason}")
    if (remainder := len(changes.refused) - 10) > 0:
        say(f"not sent: {remainder:,} more lines; --dry-run shows all")
    say_notes(list(changes.notes.values()))
    count = changes.file.lines - len(changes.refused)
    await options.agree(f"Apply {count:,} change{'' if count == 1 else 's'}?", instead="--yes")


def _tell(options: Options, session: Session, report: ChangeReport) -> None:
    if options.json:
        return write_json(report)
    counts = [(status, count) for status, count in report.counts.items() if count or status not in _RARE]
    text = " · ".join(f"{status} {count:,}" for status, count in counts)
    if len(report.left) == 1 and not options.quiet:
        [left] = report.left
        text += f"      (line {left.line} {left.status}: {plain(left.reason)})"
    else:
        _lines(report.left)
    options.say(text)
    say_notes(report.notes)
    if report.undo is not None:
        options.say(f"to take it back: dragoman apply {plain(session.name)} {plain(report.undo)}")
    return None


def _lines(left: list[LineOutcome]) -> None:
    if left:
        rows = [
            [f"line {outcome.line}", plain(outcome.id or "-"), outcome.status, plain(outcome.reason)]
            for outcome in left
        ]
        write_table([], rows)
