"""Drivers: what there is, and what is known of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .lifecycle import ID, managed, verbs
from .options import Group, Options
from .output import show_size

if TYPE_CHECKING:
    from dragoman.plugins import Plugins


@click.group("plugins", cls=Group, commands=verbs.commands)
def plugins() -> None:
    """Find drivers, install them, keep them up to date."""


@plugins.command
@click.argument("words", nargs=-1)
@click.option("--type", "kind", metavar="TYPE", help="Only drivers for this database type.")
@managed
async def browse(options: Options, plugins: Plugins, *, words: tuple[str, ...], kind: str | None) -> None:
    """List the drivers that the registries offer."""
    found = await plugins.browse(" ".join(words), type=kind)
    head = ["ID", "LABEL", "TYPE", "VERSION", "STATE", "REACHES"]
    rows = [[one.id, one.label, ",".join(one.types), one.version, one.state, one.reaches] for one in found]
    nothing = "no registry offers such a driver; try: dragoman registry list"
    options.listing({"plugins": found}, head, rows, nothing=nothing)


@plugins.command
@ID
@managed
async def show(options: Options, plugins: Plugins, *, id_: str) -> None:
    """Show what a driver is, what it may do, and its versions."""
    found = await plugins.show(id_)
    one, manifest = found.listing, found.manifest
    rows = {
        "id": one.id,
        "label": one.label,
        "summary": one.summary,
        "types": ", ".join(one.types),
        "version": f"{one.version} ({show_size(one.size)})",
        "state": one.state,
        "versions": ", ".join(found.versions),
        "skipped": "; ".join(found.skipped),
        "reaches": one.reaches,
        "permissions": "; ".join(found.permissions),
        "not on": ", ".join(one.excluded_surfaces),
        "servers": ", ".join(manifest.server_versions),
        "hooks": ", ".join(manifest.hooks),
        "form": ", ".join(field.label for field in manifest.form),
        "licence": manifest.licence,
    }
    options.listing(found, [], [[name, value] for name, value in rows.items() if value])
