"""Commands that write rows, objects and change files, previewed as exact requests and reported row by row."""

from __future__ import annotations

import re
import shlex
import sys
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Raw

from dragoman.spellings import read_id, spell_id, value_of
from dragoman_api.changes import Delete, Drop, Insert, Update, object_of
from dragoman_api.errors import ConfigurationError
from dragoman_api.grid import RowKey
from dragoman_api.json_text import decode

from .command_files import command_file
from .errors import NOT_APPLIED
from .opening import near_columns, opens
from .options import CONNECTION, OBJECT, Command, completed, take_pairs
from .output import dumps, plain, request_document, say, say_hint, say_notes, write_json, write_request, write_table
from .progress import StatusLine
from .read_options import AS_CURL, TENANT, write_curl
from .streams import attended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dragoman.changes.sets import ChangeReport, ChangeSet, LineOutcome
    from dragoman.sessions.session import Session
    from dragoman_api.changes import Change, Outcome, Plan, Values
    from dragoman_api.columns import Column

    from .options import Options

DRY_RUN = click.option("--dry-run", is_flag=True, help="Show the exact requests without sending them.")
SET = click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="COL=VALUE",
    shell_complete=completed("assignment"),
    help="A value; COL:=JSON for JSON. Repeatable.",
)
ROUTING = click.option("--routing", help="The value that the server needs besides the id to find the row.")
_RARE = ("refused", "unknown")  # outcomes that the summary names only if there are any


_TEXTS = ("text", "timestamp", "date", "time", "binary")
"""Kinds of columns whose values are typed as they stand."""
_JSON = ("json", "range", "geo", "other")
"""Kinds of columns whose values are JSON."""


class Guarded(Command):
    """A command that takes ``--if-NAME VALUE``: the state the row must still have for the change to be sent."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Extract the guards before the known options are parsed."""
        rest, guards = take_pairs(args, is_known=lambda name: not name.startswith("--if-"))
        if empty := [name for name, value in guards.items() if value is True]:
            raise click.UsageError(f"--{empty[0].replace('_', '-')} needs a value", ctx)
        super_rest = super().parse_args(ctx, rest)
        ctx.params["guard"] = {name.removeprefix("if_"): _number(str(value)) for name, value in guards.items()}
        return super_rest


def _number(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?[0-9]+", text) else text


def parse_values(pairs: Iterable[str], columns: Mapping[str, Column]) -> Values:
    """Read assignments: ``COL=VALUE`` by the column's kind alone, ``COL:=JSON`` as JSON.

    A text stays the text it is, even if it looks like an array; a column of arrays or objects takes JSON either way.

    Raises:
        ConfigurationError: One is not of that form, or a column is named twice.
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        match = re.fullmatch(r"([^=]*?)(:?=)(.*)", pair, re.DOTALL)
        if not match or not match[1]:
            raise ConfigurationError(f"--set {pair!r} is not of the form COL=VALUE", hint="--set price=12.5")
        column, sign, text = match.groups()
        if column in values:
            raise ConfigurationError(f"--set names the column {column!r} twice", hint="keep one of the two")
        values[column] = _value(text, column=column, must=sign == ":=", definition=columns.get(column))
    return values


def _value(text: str, *, column: str, must: bool, definition: Column | None) -> object:
    if not must and (definition is None or (definition.kind in _TEXTS and not definition.repeated)):
        return text
    spelled = text.strip(" \t\r\n").encode()
    try:
        decode(text, Raw)
    except ValueError as error:
        if must:
            reason = f"--set {column}:= has the value {text!r}, which is not JSON"
            raise ConfigurationError(reason, hint=f"for a text: --set {column}={text}") from error
        return text
    if must or definition is None or definition.kind in _JSON:
        return value_of(spelled)
    if spelled[:1] == b'"':
        return decode(text, str)
    if spelled[:1] in (b"[", b"{") and not (definition.repeated or definition.multiple):
        return text
    value = value_of(spelled)
    return Decimal(spelled.decode()) if definition.kind == "decimal" and type(value) in (int, float) else value


async def _values(session: Session, object: str, pairs: tuple[str, ...]) -> Values:
    description = await session.describe(object)
    return parse_values(pairs, {column.name: column for column in description.columns})


@click.command(cls=Command)
@CONNECTION
@OBJECT
@SET
@click.option("--id", "id_", metavar="ID", help="The row's id; the server makes one if you leave it out.")
@click.option("--replace", is_flag=True, help="Replace the row if it exists.")
@TENANT
@DRY_RUN
@AS_CURL
@opens
async def insert(
    options: Options, session: Session, *, object: str, pairs: tuple[str, ...], id_: str | None, replace: bool,
    tenant: str | None, dry_run: bool, as_curl: bool,
) -> int | None:  # fmt: skip
    """Write a new row."""
    key = None if id_ is None else read_id(id_)
    change = Insert(object, await _values(session, object, pairs), key, replace=replace, tenant=tenant)
    return await _carry_out(options, session, change, dry_run=dry_run, as_curl=as_curl)


@click.command(cls=Guarded)
@CONNECTION
@OBJECT
@click.argument("id")
@SET
@ROUTING
@DRY_RUN
@AS_CURL
@opens
async def update(
    options: Options, session: Session, *, object: str, id: str, pairs: tuple[str, ...], routing: str | None,
    guard: dict[str, int | str], dry_run: bool, as_curl: bool,
) -> int | None:  # fmt: skip
    """Change columns of one row.

    --if-NAME VALUE sends the change only if the row is unchanged: --if-seq-no 41 --if-primary-term 1.
    """
    if not pairs:
        raise click.UsageError("nothing to change: add --set COL=VALUE")
    change = Update(RowKey(object, read_id(id), routing, guard), await _values(session, object, pairs))
    return await _carry_out(options, session, change, dry_run=dry_run, as_curl=as_curl)


@click.command(cls=Guarded)
@CONNECTION
@OBJECT
@click.argument("id")
@ROUTING
@DRY_RUN
@AS_CURL
@opens
async def delete(
    options: Options, session: Session, *, object: str, id: str, routing: str | None, guard: dict[str, int | str],
    dry_run: bool, as_curl: bool,
) -> int | None:  # fmt: skip
    """Delete one row; takes --if-NAME VALUE as update does."""
    return await _carry_out(
        options, session, Delete(RowKey(object, read_id(id), routing, guard)), dry_run=dry_run, as_curl=as_curl
    )


@click.command(cls=Command)
@CONNECTION
@OBJECT
@DRY_RUN
@AS_CURL
@partial(opens, describes=False)
async def drop(options: Options, session: Session, *, object: str, dry_run: bool, as_curl: bool) -> int | None:
    """Delete a whole object, after a person has typed its name again."""
    plan = await session.plan(Drop(object))
    if plan.planned and not (dry_run or as_curl):
        first = plan.planned[0]
        statement = f"  # {first.statement}" if first.statement else ""
        text = f"Send  {first.request}{statement}  to {_address(options, session)}?"
        instead = shlex.join(["dragoman", "drop", session.name, object, "--yes"])
        await options.agree(text, object=object, instead=instead)
    return await _carry_out(options, session, Drop(object), dry_run=dry_run, as_curl=as_curl, plan=plan)


def _address(options: Options, session: Session) -> str:
    assert options.current is not None
    values = options.current.connections.get(session.name).values
    return plain(f"{values.get('host', 'localhost')}:{values.get('port', '')}".rstrip(":"))


async def _carry_out(
    options: Options, session: Session, change: Change, *, dry_run: bool, as_curl: bool, plan: Plan | None = None
) -> int | None:
    plan = plan or await session.plan(change)
    if dry_run or as_curl:
        _preview(options, session, plan, as_curl=as_curl)
        await _suggest(options, session, change, plan.refusals)
        return NOT_APPLIED if plan.refusals else None
    outcomes = await session.apply(plan)
    failed = [outcome for outcome in outcomes if outcome.status != "applied"]
    if options.json:
        write_json({"requests": [*map(request_document, plan.planned)], "outcomes": outcomes, "notes": plan.notes})
    elif isinstance(change, Drop) and not failed:
        sys.stdout.write(f"dropped {plain(change.object)}\n")
    else:
        _show(outcomes)
        say_notes(plan.notes)
        _advise(session, change, failed)
    await _suggest(options, session, change, failed)
    return NOT_APPLIED if failed else None


async def _suggest(options: Options, session: Session, change: Change, failed: list[Outcome]) -> None:
    if failed and isinstance(change, Insert | Update) and not options.json:
        for line in await near_columns(session, object_of(change), change.values):
            say(line)


def _preview(options: Options, session: Session, plan: Plan, *, as_curl: bool) -> None:
    if as_curl:
        write_curl(options, session, plan.requests, refusals=plan.refusals)
        say_notes(plan.notes)
        return
    if options.json:
        requests = [*map(request_document, plan.planned)]
        write_json({"requests": requests, "refusals": plan.refusals, "notes": plan.notes})
        return
    for planned in plan.planned:
        write_request(planned)
    _show(plan.refusals)
    say_notes(plan.notes)
    options.say("not sent (--dry-run)")


def _show(outcomes: list[Outcome]) -> None:
    if outcomes:
        row_ids = [spell_id(outcome.id) if outcome.id else "-" for outcome in outcomes]
        lines = zip(row_ids, outcomes, strict=True)
        write_table([], [[plain(row), outcome.status, plain(outcome.reason)] for row, outcome in lines])


def _advise(session: Session, change: Change, failed: list[Outcome]) -> None:
    from dragoman.sessions.driver_calls import HINT

    if any(outcome.status == "unknown" for outcome in failed):
        say(f"  {HINT}")
    if failed and failed[0].status == "conflict" and isinstance(change, Update):
        from dragoman.spellings import cell_command

        column = next(iter(change.values))
        say_hint(cell_command(session.name, change.key.object, change.key.id, column), indent="  ")


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
    from dragoman.changes.sets import ChangeSet

    stdin = sys.stdin.buffer if file == "-" else None
    target = Path(undo) if undo and not dry_run else None
    with StatusLine(quiet=options.quiet) as line:
        progress = _progress_in(line)
        async with ChangeSet(session, Path(file), stdin=stdin, undo=target, progress=progress) as changes:
            await changes.plan()
            if dry_run:
                await _preview_file(options, changes)
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


async def _preview_file(options: Options, changes: ChangeSet) -> None:
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
