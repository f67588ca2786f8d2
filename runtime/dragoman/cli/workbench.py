"""The command that serves the workbench: grid, console and marketplace in a browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .command_files import load_automation, load_distribution
from .options import Command, complete_connection
from .output import say
from .sample import load_servers
from .streams import told_to_end

if TYPE_CHECKING:
    from .options import Options

PACKAGE = "dragoman_workbench"
"""A wheel of its own, which this command needs and nothing else imports."""


@click.command("workbench", cls=Command)
@click.argument("connection", metavar="[CONNECTION]", required=False, shell_complete=complete_connection)
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0 picks a free port.")
@click.option("--no-browser", is_flag=True, help="Print the address instead of opening a browser.")
@click.option(
    "--export-to",
    metavar="DIR",
    type=click.Path(path_type=Path, resolve_path=True),
    help="Let exports be written into this folder; without it, the browser downloads them.",
)
@click.option(
    "--sample",
    is_flag=True,
    help="Show sample databases, in a home of its own that is removed at the end; saved connections stay untouched.",
)
@click.pass_obj
async def workbench(
    options: Options, *, connection: str | None, port: int, no_browser: bool, export_to: Path | None, sample: bool
) -> None:
    """Serve grid, console and marketplace to a browser on this machine, until it is interrupted."""
    import anyio.to_thread

    serving = _serving()
    home = Path(options.home) if options.home else None
    if sample:
        from dragoman.folders import scratch_folder

        if home:
            raise click.UsageError("--sample has a home of its own, and takes no --home")
        load_servers()
        home = options.cleanup.enter_context(scratch_folder()) / "home"
        options.say("loading the samples …")
    place: Any
    async with (
        serving(
            home,
            port=port,
            connection=connection or "",
            export_folder=export_to,
            sample=sample,
            use=[load_automation(path) for path in options.use],
            sandbox=options.sandbox,
            driver_log=options.driver_listener(),
        ) as place,
        told_to_end() as end,
    ):
        if options.events:
            place.runtime.add_sink(options.listener())
        if no_browser:
            address = place.address()
            options.result({"address": address, "url": place.url}, address)
        else:
            options.result({"file": str(place.file.path), "url": place.url}, f"serving {place.url}/")
            if not await anyio.to_thread.run_sync(_open, place.file.path, abandon_on_cancel=True):
                say(f"no browser could be opened; open this file in one: {place.file.path}")
        sys.stdout.flush()
        options.say("only this machine can reach it; Ctrl-C ends it")
        await end()
    options.say("ended")


def _serving() -> Any:
    """Return what serves the workbench. Raises ConfigurationError if its wheel is not installed."""
    from dragoman_worker.late_imports import late_certificates

    with late_certificates():  # aiohttp would load them at once, and nothing here speaks TLS
        module = load_distribution(
            f"{PACKAGE}.serving", reason="the workbench is not installed", requirement="dragoman[workbench]"
        )
    return module.serving


def _open(file: Path) -> bool:
    """Open the file that holds the token; its path alone is in the argument list of the browser."""
    import webbrowser

    return webbrowser.open(file.as_uri())
