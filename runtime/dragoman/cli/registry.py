"""Registries: the ones drivers come from, and making one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .errors import FAILED
from .options import Group, Options
from .serve import inbox, serve

if TYPE_CHECKING:
    from dragoman.registries import Registries

FOLDER = click.argument("folder", type=click.Path(path_type=Path))


@click.group("registry", cls=Group)
def registry() -> None:
    """Choose where drivers come from, or make a registry: a folder of files."""


for _command in (serve, inbox):
    registry.add_command(_command)


def _registries(options: Options) -> Registries:
    from dragoman.registries import Registries

    return Registries(options.paths())


@registry.command("add")
@click.argument("location")
@click.option("--name", help="What to call it; the folder's name when left out.")
@click.pass_obj
def add(options: Options, location: str, name: str | None) -> None:
    """Ask a further registry for drivers: a folder, or the address of one on a web server."""
    entry = _registries(options).add(location, name=name)
    options.result({"added": entry}, f"added {entry.name}  {entry.location}")


@registry.command("list")
@click.pass_obj
def list_(options: Options) -> None:
    """List the registries in the order they are asked."""
    found = _registries(options).list()
    rows = [[entry.name, entry.location] for entry in found]
    nothing = "none; try: dragoman registry add FOLDER"
    options.listing({"registries": found}, ["NAME", "LOCATION"], rows, nothing=nothing)


@registry.command("remove")
@click.argument("name")
@click.pass_obj
def remove(options: Options, name: str) -> None:
    """Ask a registry no longer; what was installed from it stays."""
    _registries(options).remove(name)
    options.result({"removed": name}, f"removed {name}")


@registry.command("init")
@FOLDER
@click.pass_obj
def init(options: Options, folder: Path) -> None:
    """Make an empty registry."""
    from dragoman_registry import publish

    publish.init(folder)
    options.result({"registry": str(folder)}, f"initialised {folder}")


@registry.command("build")
@click.argument("wheels", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--to", required=True, metavar="FOLDER", type=click.Path(path_type=Path), help="The registry.")
@click.pass_obj
def build(options: Options, wheels: tuple[Path, ...], to: Path) -> None:
    """Publish wheels into a registry: all of them, or none."""
    from dragoman_registry import publish

    releases = publish.build(wheels, to=to)
    rows = [
        ["published", one.plugin, one.version, " ".join(f"sha256:{wheel.sha256[:12]}…" for wheel in one.wheels)]
        for one in releases
    ]
    options.listing({"published": releases}, [], rows, nothing="nothing was published: no driver is among these wheels")


@registry.command("verify")
@FOLDER
@click.pass_obj
def verify(options: Options, folder: Path) -> int | None:
    """Check every file of a registry."""
    from dragoman_registry import publish

    faults = publish.verify(folder)
    options.listing({"faults": faults}, [], [[one.code, one.where, one.reason] for one in faults], nothing="no faults")
    return FAILED if faults else None
