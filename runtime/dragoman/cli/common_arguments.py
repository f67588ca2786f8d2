"""Arguments that many commands share, and how a shell completes them."""

from __future__ import annotations

import click

from .options import Options


def complete_connection(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the saved connections that begin with what was typed."""
    from dragoman.settings import read_toml

    saved = read_toml((context.obj or Options()).paths().connections)
    return [name for name in sorted(saved) if name.startswith(incomplete)]


CONNECTION = click.argument("connection", metavar="NAME", shell_complete=complete_connection)
OBJECT = click.argument("object", metavar="OBJECT")
