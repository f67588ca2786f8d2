"""The command that serves connections to agents, over the Model Context Protocol."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .command_files import load_automation, load_distribution
from .options import Command, complete_connection
from .output import write_json
from .streams import told_to_end

if TYPE_CHECKING:
    from collections.abc import Coroutine

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
@click.option(
    "--http",
    "port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help="Serve over HTTP on this machine until Ctrl-C, instead of on standard input and output; 0 picks a free port.",
)
@click.option(
    "--export-to",
    metavar="DIR",
    type=click.Path(path_type=Path, resolve_path=True),
    help="Let agents export rows into new files of this folder.",
)
@click.option(
    "--print-config",
    type=click.Choice(["claude", "cursor", "vscode"]),
    help="Print what an agent's program needs to start this server, and end.",
)
@click.pass_obj
def mcp(
    options: Options,
    *,
    connections: tuple[str, ...],
    allow: str | None,
    port: int | None,
    export_to: Path | None,
    print_config: str | None,
) -> Coroutine[Any, Any, None] | None:
    """Serve connections to an agent on standard input and output, until it closes them; or to agents over HTTP.

    Rules below [connections.NAME.agents] in config.toml say which objects and columns agents see.
    """
    if print_config is None:
        return _serve(options, port, connections=connections, allow=allow, export_to=export_to)
    words = [word for name in connections for word in ("--connection", name)]
    words += ["--allow", allow] if allow else []
    words += ["--export-to", str(export_to)] if export_to else []
    server: dict[str, object] = {"command": sys.executable, "args": ["-m", "dragoman", "mcp", *words]}
    if home := options.home or os.environ.get("DRAGOMAN_HOME"):
        server["env"] = {"DRAGOMAN_HOME": str(Path(home).absolute())}
    write_json({"servers" if print_config == "vscode" else "mcpServers": {"dragoman": server}})
    return None


async def _serve(options: Options, port: int | None, **settings: Any) -> None:
    module = load_distribution(
        f"{PACKAGE}.serving", reason="the server for agents is not installed", requirement="dragoman[mcp]"
    )
    if port is None and (options.reserved or options.events == "-"):
        raise click.UsageError("standard output is the agent's; name a file for the events: --events FILE")
    settings |= {
        "use": [load_automation(path) for path in options.use],
        "sinks": [options.listener()] if options.events else [],
        "sandbox": options.sandbox,
        "driver_log": options.driver_listener(),
    }
    home = Path(options.home) if options.home else None
    if port is None:
        await module.serve_stdio(home, **settings)
        return
    async with told_to_end() as end, module.serving_http(home, port=port, **settings) as (url, token):
        options.result({"url": url, "token": token}, f"{url}\nAuthorization: Bearer {token}")
        sys.stdout.flush()
        options.say("only this machine can reach it; Ctrl-C ends it")
        await end()
    options.say("ended")
