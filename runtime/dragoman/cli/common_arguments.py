"""Arguments that many commands share, and how a shell completes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .options import Options

if TYPE_CHECKING:
    from collections.abc import Callable


def complete_connection(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the saved connections that begin with what was typed."""
    from dragoman.settings import read_toml

    saved = read_toml((context.obj or Options()).paths().connections)
    names = sorted(name for name, values in saved.items() if isinstance(values, dict) and name.isprintable())
    return [name for name in names if name.startswith(incomplete)]


def completed(what: str) -> Callable[[click.Context, click.Parameter, str], Any]:
    """Return the completion of `word_completion` that is called `complete_…`; it is imported when it is needed."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> Any:
        from . import word_completion

        return getattr(word_completion, f"complete_{what}")(context, parameter, incomplete)

    return complete


CONNECTION = click.argument("connection", metavar="NAME", shell_complete=complete_connection)
OBJECT = click.argument("object", metavar="OBJECT", shell_complete=completed("object"))
