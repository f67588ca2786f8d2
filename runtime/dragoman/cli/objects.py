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
    tree = [branch async for branch in walk(top, lambda name: session.objects(parent=name))]
    nodes = [node for _, node, _ in tree]
    notes = [*top.notes, *(note for _, _, below in tree for note in below)]
    if parent is None and not contains:
        from .known_names import note_objects

        await note_objects(options, session.name, (node.name for node in nodes))
    shape = options.format_or(format)
    if shape == "json":
        output.write_json({"objects": nodes} | ({"notes": notes} if notes else {}))
        return
    output.say_notes(notes)
    if shape == "table":
        head, right = ["OBJECT", "ROWS", "SIZE"], [False, True, True]
        rows = [
            ["  " * level + output.plain(node.name), output.show_count(node.rows), output.show_size(node.size)]
            for level, node, _ in tree
        ]
        column_count = 3 if any(node.size is not None for node in nodes) else 2
        output.write_table(head[:column_count], [row[:column_count] for row in rows], right=right[:column_count])
    else:
        columns = ["name", "rows", "size", "kind", *(["parent"] if any(node.parent for node in nodes) else [])]
        output.write_records(
            [{name: getattr(node, name) for name in columns} for node in nodes],
            columns,
            format=shape,
            escape=options.escape_formulas,
        )


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
    await note_columns(options, session.name, object, description.columns)
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
