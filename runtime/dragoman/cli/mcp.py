"""The command that serves connections to agents, over the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .command_files import load_automation, load_distribution
from .options import Command, complete_connection

if TYPE_CHECKING:
    from .options import Options

PACKAGE = "dragoman_mcp"
"""A wheel of its own, which this command needs and nothing else imports."""


@click.command("mcp", cls=Command)
@click.option(
    "--connection",
    "connections",
    metavar="NAME",
    multiple=True,
    shell_complete=complete_connection,
    help="A connection that agents may use; by default those that config.toml names.",
)
@click.option(
    "--allow",
    type=click.Choice(["read", "plan", "write"]),
    help="What agents may do at most; by default what config.toml says, else read.",
)
@click.pass_obj
async def mcp(options: Options, *, connections: tuple[str, ...], allow: str | None) -> None:
    """Serve connections to an agent on standard input and output, until it closes them.

    Rules below [connections.NAME.agents] in config.toml say which objects and columns agents see.
    """
    module = load_distribution(
        f"{PACKAGE}.serving", reason="the server for agents is not installed", install="pip install 'dragoman[mcp]'"
    )
    if options.reserved or options.events == "-":
        raise click.UsageError("standard output is the agent's; name a file for the events: --events FILE")
    await module.serve_stdio(
        Path(options.home) if options.home else None,
        connections=connections,
        allow=allow,
        use=[load_automation(path) for path in options.use],
        sinks=[options.listener()] if options.events else [],
        sandbox=options.sandbox,
        driver_log=options.driver_listener(),
    )
