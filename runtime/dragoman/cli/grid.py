"""Commands that read objects and rows: what there is, pages, counts, single cells."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import click
import msgspec
from msgspec.structs import replace

from dragoman.spellings import read_id
from dragoman_api.filters import Filter
from dragoman_api.grid import RowKey
from dragoman_api.wording import shell_line

from . import output
from .opening import opens
from .options import CONNECTION, OBJECT, Command, completed
from .queries import SAVE_AS, queried, with_defaults
from .read_options import (
    AS_CURL,
    FILTER,
    OPTIONS,
    REVISION,
    TIME,
    RowChoice,
    choosing,
    formatted,
    time_words,
    viewed,
    write_curl,
)
from .vertical_rows import write_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dragoman.sessions.session import Session
    from dragoman_api.columns import Column
    from dragoman_api.filters import CompiledFilter, RawQuery
    from dragoman_api.summaries import ColumnSummary

    from .options import Options

WIDEST_BAR = 40
NARROWEST_BAR = 5
_BLOCKS = " ▏▎▍▌▋▊▉█"


@click.command(cls=Command)
@CONNECTION
@OBJECT
@choosing(*OPTIONS)
@click.option("--limit", default=100, show_default=True, type=int, help="Number of rows on the page.")
@click.option("--offset", default=0, type=int, help="Number of rows to skip before the page.")
@click.option("--last", is_flag=True, help="Show the last rows instead of the first.")
@click.option("--cursor", metavar="NEXT", help="Continue after an earlier page: the value of its `next`.")
@click.option("--explain", is_flag=True, help="Explain how each filter row is applied.")
@click.option("--no-total", is_flag=True, help="Do not count all matching rows.")
@AS_CURL
@SAVE_AS
@formatted
@queried
@viewed
@opens
async def page(
    options: Options, session: Session, *, choice: RowChoice, limit: int, offset: int, cursor: str | None, last: bool,
    explain: bool, no_total: bool, as_curl: bool, format: str,
) -> None:  # fmt: skip
    """Show a page of rows."""
    from dragoman.sessions.driver_calls import APPROXIMATE
    from dragoman.sessions.relative_times import Span

    if last and (offset or cursor):
        raise click.UsageError("--last cannot be combined with --offset or --cursor")
    choice = await with_defaults(options, session.name, choice)
    rows = choice.rows(session)
    if last and rows.selection.residual is not None:
        raise click.UsageError("--last cannot be combined with --residual: it counts all rows")
    if as_curl:
        if last:
            raise click.UsageError("--last cannot be combined with --as-curl: it counts all rows first")
        requests = await rows.preview_page(limit=limit, offset=offset, total=not no_total, cursor=cursor)
        write_curl(options, session, requests)
        return
    rows = session.select(rows.selection.at())  # one instant for all calls of the command
    shape = options.format_or(format)
    compiled = None
    if explain and rows.selection.filters:
        compiled = await rows.explain()
        if shape != "json":
            _explain(rows.selection.filters, compiled)
    if last:
        number = await rows.count()
        offset = max(0, number - limit)
        rows = session.select(replace(rows.selection, span=Span.of(number.time)))  # the same, though time goes on
    row_page = await rows.page(limit=limit, offset=offset, total=not no_total, cursor=cursor)
    if last:
        row_page = replace(
            row_page, notes=[*(note for note in number.notes if note not in row_page.notes), *row_page.notes]
        )
    options.shown = row_page, limit
    if rows.selection.columns is None:
        from .known_names import note_columns

        await note_columns(options.paths(), session.name, rows.selection.object, row_page.columns)
    if shape == "json":
        output.write_json(output.page_document(row_page) | ({"explanation": compiled.rows} if compiled else {}))
        return
    write_rows(
        row_page, format=shape, more="choose some with --columns, or use --json", escape=options.escape_formulas,
        vertical=options.vertical, wide=options.wide,
    )  # fmt: skip
    output.say_notes([note for note in row_page.notes if not (compiled and note.code == APPROXIMATE)])
    first, end = row_page.offset + 1, row_page.offset + len(row_page.cells)
    of = "" if row_page.total is None else f" of {'' if row_page.total_exact else 'at least '}{row_page.total:,}"
    options.say(f"rows {first:,}–{end:,}{of}" if row_page.cells else f"no rows{of}")  # noqa: RUF001 - a range
    if row_page.next:
        words = shell_line([*time_words(row_page), "--cursor", row_page.next])
        options.say(f"next: {words}" if len(row_page.next) < 200 else "more: --json gives `next`")


def _explain(rows: Sequence[Filter | RawQuery], compiled: CompiledFilter) -> None:
    from dragoman.sessions.selection_codec import filter_text

    lines = []
    for explanation in compiled.rows:
        rare = f"exact but for rare values ({'; '.join(explanation.unlikely)})" if explanation.unlikely else "exact"
        meaning = f"approximate: {'; '.join(explanation.approximations)}" if explanation.approximations else rare
        if explanation.approximations and explanation.unlikely:
            meaning += f"; or for rare values ({'; '.join(explanation.unlikely)})"
        if same := [other + 1 for other in explanation.same_element if other < explanation.row]:
            meaning += f", same element as {', '.join(map(str, same))}"
        row = rows[explanation.row]
        text = filter_text(row) if isinstance(row, Filter) else f"raw {row.text}"
        lines.append([f"{explanation.row + 1} {text}", explanation.clause, meaning])
    first, second = (max((len(line[at]) for line in lines), default=0) for at in range(2))
    for text, clause, meaning in lines:
        output.say(f"{text:<{first}}   {clause:<{second}}   {meaning}")


@click.command(cls=Command)
@CONNECTION
@OBJECT
@choosing(*FILTER, "tenant", "revision", *TIME, "now")
@AS_CURL
@queried
@opens
async def count(options: Options, session: Session, *, choice: RowChoice, as_curl: bool) -> None:
    """Count rows."""
    rows = choice.rows(session)
    if as_curl:
        write_curl(options, session, await rows.preview_count())
        return
    rows = session.select(rows.selection.at())  # one instant for both calls
    number = await rows.count()
    notes = number.notes
    if choice.texts.raw and not number:  # only a page explains why it is empty
        empty = await rows.page(limit=1, total=False)
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
@click.argument("column", shell_complete=completed("column"))
@click.option("--routing", help="The value that the server needs besides the id to find the row.")
@REVISION
@opens
async def cell(
    options: Options, session: Session, *, object: str, id: str, column: str, routing: str | None, revision: str
) -> None:
    """Show the whole value of one cell, however long; nothing if the row lacks the field."""
    value = await session.rows(object, revision=revision).cell(RowKey(object, read_id(id), routing), column)
    if isinstance(value, tuple):
        options.say(f"the row has no '{column}'; a null would be printed as null")
    elif options.json:
        sys.stdout.write(output.dumps(value) + "\n")
    elif isinstance(value, str):
        output.write_text(value)
    else:
        sys.stdout.write(output.show(value) + "\n")


@click.command(cls=Command)
@CONNECTION
@click.option("--parent", metavar="OBJECT", shell_complete=completed("object"), help="Only what this object contains.")
@click.option("--contains", metavar="TEXT", default="", help="Only names with this text, on the first level shown.")
@click.option(
    "--limit", metavar="NUMBER", type=click.IntRange(min=1), help="Maximum number of objects; all by default."
)
@click.option("--cursor", metavar="NEXT", help="Continue after an earlier list: the value of its `next`.")
@formatted
@opens
async def objects(
    options: Options, session: Session, *, parent: str | None, contains: str, limit: int | None, cursor: str | None,
    format: str,
) -> None:  # fmt: skip
    """List the objects of a connection, each above what it contains."""
    from dragoman.sessions.object_lists import walk

    top = await session.objects(parent=parent, contains=contains, limit=limit, cursor=cursor)
    tree = [branch async for branch in walk(top, lambda name: session.objects(parent=name), limit=limit)]
    nodes = [node for _, node, _ in tree]
    notes = [*top.notes, *(note for _, _, below in tree for note in below)]
    if not (parent or contains or cursor or limit or top.next):
        from .known_names import note_objects

        await note_objects(options.paths(), session.name, (node.name for node in nodes))
    shape = options.format_or(format)
    if shape == "json":
        part = {"next": top.next, "total": top.total} if top.next else {}
        output.write_json({"objects": nodes} | part | ({"notes": notes} if notes else {}))
        return
    output.say_notes(notes)
    if shape == "table":
        names = ["  " * level + output.plain(node.name) for level, node, _ in tree]
        table = {"OBJECT": names, "ROWS": [output.show_count(node.rows) for node in nodes]}
        if any(node.size is not None for node in nodes):
            table["SIZE"] = [output.show_size(node.size) for node in nodes]
        if any(node.state for node in nodes):
            table["STATE"] = [output.show_condition(node.state) for node in nodes]
        right = [head in ("ROWS", "SIZE") for head in table]
        output.write_table([*table], [[*row] for row in zip(*table.values(), strict=True)], right=right)
    else:
        optional = [name for name in ("parent", "state") if any(getattr(node, name) for node in nodes)]
        columns = ["name", "rows", "size", "kind", *optional]
        output.write_records(
            [
                {name: getattr(node, name) for name in columns} | ({"state": node.state.word} if node.state else {})
                for node in nodes
            ],
            columns,
            format=shape,
            escape=options.escape_formulas,
        )
    if top.next:
        size = "" if top.total is None else f" of {top.total:,}"
        options.say(f"{len(top):,}{size} objects are listed; find others by name with --contains")
        options.say(f"next: {shell_line(['--cursor', top.next])}")


def _reasons(columns: Sequence[Column]) -> Iterator[str]:
    """Yield each reason why something cannot be done, with all its columns."""
    alike: dict[tuple[str, str], list[str]] = {}
    for column in columns:
        operations_by_reason: dict[str, list[str]] = {}
        for operation, why in column.reasons.items():
            operations_by_reason.setdefault(why, []).append("match any" if operation == "any" else operation)
        for why, operations in operations_by_reason.items():
            alike.setdefault((" ".join(operations), why), []).append(column.name)
    for (subject, why), names in alike.items():
        yield output.plain(f"no {subject} on {', '.join(names)}: {why}")


@click.command(cls=Command)
@CONNECTION
@OBJECT
@click.option("--structure", is_flag=True, help="The server's own definition instead of the columns.")
@opens
async def describe(options: Options, session: Session, *, object: str, structure: bool) -> None:
    """Describe the columns of an object: their types, what each supports, and why something is not supported."""
    from .known_names import note_columns

    description = await session.describe(object)
    await note_columns(options.paths(), session.name, object, description.columns)
    if options.json:
        output.write_json(description)
        return
    if structure:
        output.write_text(description.structure)
    else:
        rows = []
        for column in description.columns:
            restriction = {"insert": "insert-only", "never": "read-only"}.get(column.written, "")
            flags = " ".join(filter(None, (column.role, restriction, "sorts" if column.sortable else "")))
            rows.append([column.name, column.type, flags, " ".join(column.operators)])
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
@click.argument("column", shell_complete=completed("column"))
@choosing(*FILTER, "tenant", "revision", *TIME, "now")
@click.option(
    "--values", default=10, show_default=True, type=int, help="Number of the most frequent values, at most 100."
)
@click.option("--buckets", default=10, show_default=True, type=int, help="Maximum number of buckets, at most 50.")
@queried
@opens
async def summarize(
    options: Options, session: Session, *, choice: RowChoice, column: str, values: int, buckets: int
) -> None:
    """Summarize a column: frequent values, rows without a value, extremes, and how numbers and dates are spread."""
    rows = choice.rows(session)
    summary = await rows.summarize(column, values=values, buckets=buckets)
    if options.json:
        output.write_json(summary)
    else:
        room = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
        for line in drawn(summary, width=room, blocks=_takes_blocks()):
            output.write_text(line)
    output.say_notes(summary.notes)


@click.command(cls=Command)
@CONNECTION
@OBJECT
@click.argument("id", required=False)
@click.option("--vector", metavar="JSON", help="Rows near this vector, a list of numbers, instead of those near a row.")
@click.option("--text", help="Rows near this text, if the server makes vectors of texts.")
@click.option("--column", metavar="COLUMN", help="The column of vectors, COLUMN.NAME if it holds several.")
@click.option("--routing", help="The value that the server needs besides the id to find the row.")
@choosing(*FILTER, "columns", "tenant", "revision", *TIME, "now")
@click.option("--limit", default=10, show_default=True, type=int, help="Maximum number of rows, at most 1,000.")
@formatted
@queried
@opens
async def similar(
    options: Options, session: Session, *, choice: RowChoice, id: str | None, vector: str | None, text: str | None,
    column: str | None, routing: str | None, limit: int, format: str,
) -> None:  # fmt: skip
    """Show the rows nearest to a row, a vector or a text, with their distances."""
    if routing is not None and id is None:
        raise click.UsageError("--routing finds the row of an ID: name one, or omit it")
    rows = choice.rows(session)
    key = (
        None
        if id is None
        else RowKey(rows.selection.object, read_id(id), choice.texts.tenant if routing is None else routing)
    )
    numbers = None if vector is None else _read_vector(vector)
    row_page = await rows.similar(key, vector=numbers, text=text, column=column, limit=limit)
    shape = options.format_or(format)
    if shape == "json":
        output.write_json(output.page_document(row_page))
        return
    write_rows(
        row_page, format=shape, more="choose some with --columns, or use --json", escape=options.escape_formulas,
        vertical=options.vertical, wide=options.wide,
    )  # fmt: skip
    output.say_notes(row_page.notes)


def _read_vector(text: str) -> list[float]:
    try:
        return msgspec.json.decode(text, type=list[float])
    except ValueError as error:
        raise click.UsageError(f"--vector takes a list of numbers, such as [0.1, 0.5]: {error}") from error


def _takes_blocks() -> bool:
    try:
        _BLOCKS.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def drawn(summary: ColumnSummary, *, width: int, blocks: bool = True) -> list[str]:
    """Return a summary as lines for a terminal."""
    lines = [output.plain(f"{summary.column.name} ({summary.column.type})")]
    lines += _figures(summary)
    values = [(output.show(frequency.value), frequency.rows) for frequency in summary.values]
    if values:
        lines += ["", *_bars("VALUE", values, width=width, blocks=blocks, right=summary.column.kind.numeric)]
    buckets = [
        (f"{output.show(bucket.lower)} ≤ x < {output.show(bucket.upper)}", bucket.rows) for bucket in summary.buckets
    ]
    if not blocks:
        buckets = [(text.replace("≤", "<="), rows) for text, rows in buckets]
    if buckets:
        lines += ["", *_bars("RANGE", buckets, width=width, blocks=blocks, right=True)]
    remarks = [f"{figure} is approximate: {reason}" for figure, reason in summary.approximate.items()]
    remarks += [f"{figure} is not known: {reason}" for figure, reason in summary.absent.items()]
    return lines + (["", *map(output.plain, remarks)] if remarks else [])


def _figures(summary: ColumnSummary) -> list[str]:
    def about(name: str) -> str:
        return "~" if name in summary.approximate else ""

    counts = [f"{about('rows')}{output.show_rows(summary.rows)}"]
    if summary.missing is not None:
        counts.append(f"{about('missing')}{summary.missing:,} without a value")
    if summary.distinct is not None:
        counts.append(f"{about('distinct')}{summary.distinct:,} different")
    lines = [", ".join(counts)]
    if summary.minimum is not None or summary.maximum is not None:
        low, high = (
            output.show(extreme) if extreme is not None else "?" for extreme in (summary.minimum, summary.maximum)
        )
        lines.append(f"from {about('minimum')}{low} to {about('maximum')}{high}")
    return lines


def _bars(title: str, rows: Sequence[tuple[str, int]], *, width: int, blocks: bool, right: bool) -> list[str]:
    """Return one line per row: its label, cut to what fits, its number, and a bar in proportion to the greatest."""
    counts = [f"{number:,}" for _, number in rows]
    wide = max(map(len, [*counts, "ROWS"]))
    room = max(width - wide - 2 * len(output.GAP) - NARROWEST_BAR - 1, 1)
    labels = [output.fitted(label, room) for label, _ in rows]
    label = max(map(output.width_of, [*labels, title]))
    bar = max(min(WIDEST_BAR, width - label - wide - 2 * len(output.GAP) - 1), 0)
    maximum = max((number for _, number in rows), default=0)
    lines = [output.GAP.join([_padded(title, label, right=right), "ROWS".rjust(wide)])]
    for text, count, (_, number) in zip(labels, counts, rows, strict=True):
        drawing = _bar(number / maximum if maximum else 0, bar, blocks=blocks)
        line = output.GAP.join([_padded(text, label, right=right), count.rjust(wide), drawing])
        lines.append(line.rstrip())
    return lines


def _bar(share: float, width: int, *, blocks: bool) -> str:
    """Draw a share of a width; anything but nothing is visible."""
    if not blocks:
        return "#" * max(round(share * width), int(share > 0 and width > 0))
    eighths = max(round(share * width * 8), int(share > 0 and width > 0))
    return _BLOCKS[8] * (eighths // 8) + _BLOCKS[eighths % 8].strip()


def _padded(text: str, width: int, *, right: bool) -> str:
    blank = " " * max(width - output.width_of(text), 0)
    return blank + text if right else text + blank
