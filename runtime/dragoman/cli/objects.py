"""Commands on objects: list them, describe the columns of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import output
from .common_arguments import CONNECTION, OBJECT, completed
from .global_options import Command
from .opening import opens
from .read_options import formatted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dragoman.sessions.session import Session
    from dragoman_api.columns import Column

    from .options import Options


@click.command(cls=Command)
@CONNECTION
@click.option("--parent", metavar="OBJECT", shell_complete=completed("object"), help="Only what this object contains.")
@click.option("--contains", metavar="TEXT", default="", help="Only names with this text, on the first level shown.")
@formatted
@opens
async def objects(options: Options, session: Session, *, parent: str | None, contains: str, format: str) -> None:
    """List the objects of a connection, each above what it contains."""
    from dragoman.sessions.object_lists import walk

    top = await session.objects(parent=parent, contains=contains)
    tree = [each async for each in walk(top, lambda name: session.objects(parent=name))]
    found = [one for _, one, _ in tree]
    notes = [*top.notes, *(note for _, _, below in tree for note in below)]
    if parent is None and not contains:
        from .known_names import note_objects

        await note_objects(options, session.name, (one.name for one in found))
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
    from .known_names import note_columns

    description = await session.describe(object)
    await note_columns(options, session.name, object, description.columns)
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
