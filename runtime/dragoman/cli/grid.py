"""Commands that read: objects, columns, pages, counts, single cells."""

from __future__ import annotations

import shlex
import sys
from contextlib import asynccontextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from dragoman.near_names import did_you_mean, near_names

from . import output
from .global_options import CONNECTION, OBJECT, Command
from .opening import opens

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from dragoman.session import Session
    from dragoman.time_spans import Span
    from dragoman_api.columns import Column
    from dragoman_api.filters import CompiledFilter, Filter, RawQuery

    from .options import Options

F = TypeVar("F", bound="Callable[..., Any]")
COLUMNS = click.option("--columns", metavar="A,B,…", help="Only these columns, in this order.")
ESCAPE = click.option("--escape-formulas", is_flag=True, expose_value=False, callback=lambda *given: _escape(*given),
                      help="CSV: put an apostrophe before texts that a spreadsheet would run as formulas.")  # fmt: skip
TENANT = click.option("--tenant", metavar="NAME", help="The tenant, if the object has tenants.")
REVISION = click.option("--revision", default="", help="As the rows were then: `revision` of an earlier page.")


def _escape(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    context.obj.escape_formulas = value


def formatted(function: F) -> F:
    """Add the options for the output of rows to a command."""
    option = click.option(
        "--format", default="table", type=click.Choice(output.FORMATS), help="The output format of rows."
    )
    return option(ESCAPE(function))


def filtered(function: F) -> F:
    """Add the options of a filter to a command."""
    for option in (
        click.option(
            "--match",
            default="all",
            type=click.Choice(["all", "any"]),
            help="Whether all filter rows must match, or any.",
        ),
        click.option("--raw", multiple=True, metavar="TEXT", help="A filter in the server's own syntax. Repeatable."),
        click.option("--filter", "filters", multiple=True, metavar="ROW", help="COLUMN OP VALUE [@GROUP]. Repeatable."),
    ):
        function = option(function)
    return function


def timed(function: F) -> F:
    """Add the options of a span of time to a command, which receives it as `span`."""

    @wraps(function)
    def run(*args: Any, since: str | None, until: str | None, all_time: bool, **more: Any) -> Any:
        from dragoman.time_spans import Span

        return function(*args, span=Span(since=since, until=until, all_time=all_time), **more)

    for option in (
        click.option("--all-time", is_flag=True, help="All rows, also where only the newest are read by default."),
        click.option("--until", metavar="TIME", help="Only rows before this time, written as for --since."),
        click.option("--since", metavar="TIME", help="Only rows from this time on: 2026-11-23T12:00:00Z, -1h, now-7d."),
    ):
        run = option(run)
    return cast("F", run)


def parse_names(text: str | None) -> list[str] | None:
    """Read the names of columns; None if the option is absent."""
    return [name.strip() for name in text.split(",")] if text else None


@asynccontextmanager
async def suggesting_names(session: Session, object: str) -> AsyncIterator[None]:
    """Add near names to an error about an unknown column or object."""
    from dragoman_api.errors import DragomanError, ObjectNotFoundError

    try:
        yield
    except DragomanError as error:
        wanted = str(error.details.get("column") or (object if isinstance(error, ObjectNotFoundError) else ""))
        if wanted:
            known = await _known_names(session, object, objects=isinstance(error, ObjectNotFoundError))
            if wanted not in known:
                error.message += did_you_mean(near_names(wanted, known))
                look = ["objects"] if isinstance(error, ObjectNotFoundError) else ["describe", object]
                error.advise(shlex.join(["dragoman", look[0], session.name, *look[1:]]))
        raise


async def _known_names(session: Session, object: str, *, objects: bool) -> list[str]:
    from dragoman_api.errors import DragomanError

    try:
        if objects:
            return [one.name for one in await session.objects()]
        return [column.name for column in (await session.describe(object)).columns]
    except DragomanError:  # report the first error
        return []


@click.command(cls=Command)
@CONNECTION
@click.option("--parent", metavar="OBJECT", help="Only what this object contains.")
@click.option("--contains", metavar="TEXT", default="", help="Only names with this text, on the first level shown.")
@formatted
@opens
async def objects(options: Options, session: Session, *, parent: str | None, contains: str, format: str) -> None:
    """List the objects of a connection, each above what it contains."""
    from dragoman.object_lists import walk

    top = await session.objects(parent=parent, contains=contains)
    tree = [each async for each in walk(top, lambda name: session.objects(parent=name))]
    found = [one for _, one, _ in tree]
    notes = [*top.notes, *(note for _, _, below in tree for note in below)]
    shape = options.format_or(format)
    if shape == "json":
        output.write_json({"objects": found} | ({"notes": notes} if notes else {}))
        return
    output.say_notes(notes)
    if shape == "table":
        head, right = ["OBJECT", "ROWS", "SIZE"], [False, True, True]
        rows = [
            ["  " * level + output.plain(one.name), output.show_count(one.rows), output.show_size(one.size)]
            for level, one, _ in tree
        ]
        shown = 3 if any(one.size is not None for one in found) else 2
        output.write_table(head[:shown], [row[:shown] for row in rows], right=right[:shown])
    else:
        columns = ["name", "rows", "size", "kind", *(["parent"] if any(one.parent for one in found) else [])]
        output.write_records(
            [{name: getattr(one, name) for name in columns} for one in found],
            columns,
            format=shape,
            escape=options.escape_formulas,
        )


def _reasons(columns: Sequence[Column]) -> Iterator[str]:
    """Yield each reason why something cannot be done, with all its columns."""
    alike: dict[tuple[str, str], list[str]] = {}
    for column in columns:
        abouts: dict[str, list[str]] = {}
        for about, why in column.reasons.items():
            abouts.setdefault(why, []).append("match any" if about == "any" else about)
        for why, named in abouts.items():
            alike.setdefault((" ".join(named), why), []).append(column.name)
    for (what, why), names in alike.items():
        yield output.plain(f"no {what} on {', '.join(names)}: {why}")


@click.command(cls=Command)
@CONNECTION
@OBJECT
@click.option("--structure", is_flag=True, help="The server's own definition instead of the columns.")
@opens
async def describe(options: Options, session: Session, *, object: str, structure: bool) -> None:
    """Describe the columns of an object: their types, what each supports, and why something is not supported."""
    async with suggesting_names(session, object):
        description = await session.describe(object)
    if options.json:
        output.write_json(description)
        return
    if structure:
        output.write_text(description.structure)
    else:
        rows = []
        for column in description.columns:
            kept = {"insert": "insert-only", "never": "read-only"}.get(column.written, "")
            shown = " ".join(filter(None, (column.role, kept, "sorts" if column.sortable else "")))
            rows.append([column.name, column.type, shown, " ".join(column.operators)])
        output.write_table(["COLUMN", "TYPE", "FLAGS", "OPERATORS"], [[*map(output.plain, row)] for row in rows])
        for line in _reasons(description.columns):
            output.write_text(line)
        if (time := description.time) is not None:
            window = "" if time.window is None else f"; only the last {time.window:,} s are read by default"
            output.write_text(output.plain(f"time column: {time.column}{window}"))
    output.say_notes(description.notes)


@click.command(cls=Command)
@CONNECTION
@OBJECT
@filtered
@click.option("--sort", multiple=True, metavar="[-]COL", help="A column; with a hyphen, descending. Repeatable.")
@click.option("--limit", default=100, show_default=True, type=int, help="Number of rows on the page.")
@click.option("--offset", default=0, type=int, help="Number of rows to skip before the page.")
@click.option("--last", is_flag=True, help="Show the last rows instead of the first.")
@COLUMNS
@TENANT
@REVISION
@timed
@click.option("--cursor", metavar="NEXT", help="Continue after an earlier page: the value of its `next`.")
@click.option("--explain", is_flag=True, help="Explain how each filter row is applied.")
@click.option(
    "--residual",
    metavar="ROWS",
    type=int,
    help="Filter and sort here what the server cannot, over at most this many rows that it returns.",
)
@click.option("--no-total", is_flag=True, help="Do not count all matching rows.")
@formatted
@opens
async def page(
    options: Options, session: Session, *, object: str, filters: tuple[str, ...], raw: tuple[str, ...], match: str,
    sort: tuple[str, ...], limit: int, offset: int, columns: str | None, tenant: str | None,
    revision: str, span: Span, cursor: str | None, last: bool, explain: bool, residual: int | None, no_total: bool,
    format: str,
) -> None:  # fmt: skip
    """Show a page of rows."""
    from dragoman.filter_notes import APPROXIMATE

    from .filters import parse_rows, parse_sort

    if last and (offset or cursor):
        raise click.UsageError("--last cannot be combined with --offset or --cursor")
    if last and residual is not None:
        raise click.UsageError("--last cannot be combined with --residual: it counts all rows")
    rows, sorts = parse_rows(filters, raw), parse_sort(sort)
    shape = options.format_or(format)
    compiled = None
    async with suggesting_names(session, object):
        if explain and rows:
            compiled = await session.compile(object, filters=rows, match=match, residual=residual)
            if shape != "json":
                _explain(rows, compiled)
        if last:
            number = await session.count(object, filters=rows, match=match, tenant=tenant, revision=revision, span=span)
            offset = max(0, number - limit)
        found = await session.page(
            object, filters=rows, match=match, sort=sorts, offset=offset, limit=limit,
            columns=parse_names(columns), total=not no_total, cursor=cursor, tenant=tenant,
            revision=revision, span=span, residual=residual,
        )  # fmt: skip
    options.shown = found, limit
    if shape == "json":
        output.write_json(output.page_document(found) | ({"explanation": compiled.rows} if compiled else {}))
        return
    more = "choose some with --columns, or use --json"
    output.write_page(found, format=shape, more=more, escape=options.escape_formulas)
    output.say_notes([note for note in found.notes if not (compiled and note.code == APPROXIMATE)])
    first, end = found.offset + 1, found.offset + len(found.cells)
    of = "" if found.total is None else f" of {'' if found.total_exact else 'at least '}{found.total:,}"
    options.say(f"rows {first:,}–{end:,}{of}" if found.cells else f"no rows{of}")  # noqa: RUF001 - a range
    if found.next:
        options.say(f"next: --cursor {found.next}" if len(found.next) < 200 else "more: --json gives `next`")


def _explain(rows: list[Filter | RawQuery], compiled: CompiledFilter) -> None:
    from .filters import show_row

    lines = []
    for told in compiled.rows:
        meaning = "exact" if told.exact else "approximate: " + "; ".join(told.approximations)
        if same := [other + 1 for other in told.same_element if other < told.row]:
            meaning += f", same element as {', '.join(map(str, same))}"
        lines.append([f"{told.row + 1} {show_row(rows[told.row])}", told.clause, meaning])
    first, second = (max((len(line[at]) for line in lines), default=0) for at in range(2))
    for row, clause, meaning in lines:
        output.say(f"{row:<{first}}   {clause:<{second}}   {meaning}")


@click.command(cls=Command)
@CONNECTION
@OBJECT
@filtered
@TENANT
@REVISION
@timed
@opens
async def count(
    options: Options, session: Session, *, object: str, filters: tuple[str, ...], raw: tuple[str, ...], match: str,
    tenant: str | None, revision: str, span: Span,
) -> None:  # fmt: skip
    """Count rows exactly."""
    from .filters import parse_rows

    rows = parse_rows(filters, raw)
    async with suggesting_names(session, object):
        asked: dict[str, Any] = {"filters": rows, "match": match, "tenant": tenant, "revision": revision, "span": span}
        number = await session.count(object, **asked)
        notes = number.notes
        if raw and not number:  # only a page explains why it is empty
            empty = await session.page(object, limit=1, total=False, **asked)
            notes = empty.notes
    output.say_notes(notes)
    if options.json:
        output.write_json({"count": number} | ({"notes": notes} if notes else {}))
    else:
        sys.stdout.write(f"{number}\n")


@click.command(cls=Command)
@CONNECTION
@OBJECT
@click.argument("id")
@click.argument("column")
@click.option("--routing", help="The value that the server needs besides the id to find the row.")
@REVISION
@opens
async def cell(
    options: Options, session: Session, *, object: str, id: str, column: str, routing: str | None, revision: str
) -> None:
    """Show the whole value of one cell, of any length."""
    from dragoman.row_ids import read_id
    from dragoman_api.grid import RowKey

    async with suggesting_names(session, object):
        value = await session.cell(RowKey(object, read_id(id), routing), column, revision=revision)
    if options.json:
        sys.stdout.write(output.dumps(value) + "\n")
    elif isinstance(value, str):
        output.write_text(value)
    else:
        sys.stdout.write(output.show(value) + "\n")
