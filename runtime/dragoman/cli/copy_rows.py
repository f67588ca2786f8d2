"""The command `copy`: an export and an import in one, without a file between them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .common_arguments import complete_connection
from .global_options import Command
from .import_rows import announced, code_of, counts_of, progress_in, renamed_columns, tell
from .near_misses import suggesting_names
from .opening import tell_warnings, warm_runtime
from .output import plain, say, show_rows
from .read_options import FILTER, Choice, choosing
from .status_line import StatusLine
from .streams import attended

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from .options import Options


@click.command(cls=Command)
@click.argument("source", metavar="SOURCE", shell_complete=complete_connection)
@click.argument("object", metavar="OBJECT")
@click.argument("target", metavar="TARGET", shell_complete=complete_connection)
@click.argument("to", metavar="TARGET-OBJECT")
@choosing(*FILTER, "tenant")
@click.option("--on-conflict", default="fail", type=click.Choice(["fail", "skip", "overwrite"]),
              help="A row whose id exists: reject it, keep the stored row, or replace that row.")  # fmt: skip
@click.option("--map", "renamed", multiple=True, metavar="OLD=NEW", callback=renamed_columns,
              help="Rename a column, or a vector; OLD= leaves it out. Repeatable.")  # fmt: skip
@click.option("--batch", type=click.IntRange(1, 5_000), default=2_000, help="Maximum number of rows of a batch.")
@click.option("--to-tenant", metavar="NAME", help="The tenant that receives them; by default the same.")
@click.option("--create", is_flag=True, help="Make the target object as the source is, if it does not exist.")
@click.pass_obj
def copy(options: Options, /, **arguments: Any) -> Coroutine[Any, Any, int | None]:
    """Copy rows, with their ids and vectors, to TARGET-OBJECT, which must exist unless --create is given.

    Both connections have the same type. Rows that are not written go to TARGET-OBJECT.rejected.ndjson. After an
    interruption, the same command with --on-conflict skip copies the rest.
    """
    return _copy(options, **arguments)


async def _copy(
    options: Options, *, source: str, choice: Choice, target: str, to: str, on_conflict: str, renamed: dict[str, str],
    batch: int, to_tenant: str | None, create: bool,
) -> int | None:  # fmt: skip
    from dragoman.imports import Load, LoadOptions, make_pipe
    from dragoman.imports import copy as copy_rows

    selection = choice.texts.read()
    if (source, selection.object, selection.tenant) == (target, to, to_tenant or selection.tenant):
        raise click.UsageError("the rows would be copied onto themselves; name another object")
    async with AsyncExitStack() as stack:
        runtime = options.current or await stack.enter_async_context(warm_runtime(options))
        source_session = await stack.enter_async_context(runtime.open(source))
        target_session = source_session if source == target else await stack.enter_async_context(runtime.open(target))
        for session in {id(session): session for session in (source_session, target_session)}.values():
            tell_warnings(session)
        rows = source_session.select(selection)
        async with suggesting_names(source_session, selection.object):
            description = await source_session.describe(selection.object)
        if not create:
            async with suggesting_names(target_session, to):
                await target_session.describe(to)
        if attended() and not options.yes:
            question = f"Copy {plain(selection.object)} of {plain(source)} into {plain(to)} of {plain(target)}?"
            await options.agree(question, instead="--yes")
        pipe = make_pipe()
        like = description.structure if create else ""
        wishes = LoadOptions(
            format="rows", on_conflict=on_conflict, renamed=renamed, batch=batch, tenant=to_tenant, create=create,
            like=like, copied=True,
        )  # fmt: skip
        line = StatusLine(quiet=options.quiet)
        name = Path(to.replace("/", "_").replace("\\", "_"))
        announce = announced(options, to)
        load = Load(
            target_session, to, name, options=wishes, stdin=pipe[0], progress=progress_in(line, to), announce=announce
        )
        try:
            with line:
                await copy_rows(load, pipe, source=source_session, selection=rows.selection, target=target_session)
        except BaseException:
            if any(load.report.counts.values()):
                say(f"stopped after {show_rows(load.report.rows)}: {counts_of(load.report)}")
                say("to copy the rest, run the same command with --on-conflict skip")
            raise
    tell(options, target_session, load.report, sent=True)
    return code_of(load.report, on_conflict)
