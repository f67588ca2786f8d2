"""What becomes of an installed driver: install, keep up to date, switch off, take back."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from .options import Group, Options

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from dragoman.plugins import Plugins
    from dragoman_registry.store import Generation

    Work = Callable[..., Coroutine[Any, Any, None]]

ID = click.argument("id_", metavar="ID")
verbs = Group("plugins")
"""The commands of this room; the group that people see takes them over."""


def managed(work: Work) -> Work:
    """Make a command of a coroutine function that needs the plugins of a runtime."""

    @wraps(work)
    async def run(options: Options, **arguments: Any) -> None:
        async with options.runtime() as runtime:
            await work(options, runtime.plugins, **arguments)

    return click.pass_obj(run)


@verbs.command("list")
@click.pass_obj
def list_(options: Options) -> None:
    """List the installed drivers."""
    from dragoman_registry.store import Store  # and no runtime: this is asked at every prompt

    nothing = "no driver is installed; opening a connection installs its own; try: dragoman plugins browse"
    _list(options, Store(options.paths().data).installed(), nothing)


def _list(options: Options, found: Sequence[Generation], nothing: str) -> None:
    records = [_record(generation) for generation in found]
    keys = ("id", "label", "types", "version", "state", "registry", "pin")
    head = ["ID", "LABEL", "TYPE", "VERSION", "STATE", "REGISTRY", "PIN"]
    rows = [[str(one[key] or "") for key in keys] for one in records]
    options.listing({"plugins": records}, head, rows, nothing=nothing)


def _record(generation: Generation) -> dict[str, object]:
    return {
        "id": generation.plugin,
        "label": generation.label,
        "types": ",".join(kind.name for kind in generation.manifest.types),
        "version": generation.version,
        "state": generation.state,
        "registry": generation.registry,
        "pin": generation.pin,
        "sha256": generation.sha256,
    }


@verbs.command
@ID
@click.option("--version", metavar="VERSION", help="This version instead of the newest that fits.")
@managed
async def install(options: Options, plugins: Plugins, *, id_: str, version: str | None) -> None:
    """Install a driver."""
    one = await plugins.install(id_, version=version)
    options.result({"installed": _record(one)}, f"installed {one.plugin} {one.version}")


@verbs.command
@click.argument("id_", metavar="[ID]", required=False)
@managed
async def update(options: Options, plugins: Plugins, *, id_: str | None) -> None:
    """Update one driver, or all of them; pinned ones stay."""
    _list(options, await plugins.update(id_), "everything is up to date")


@verbs.command
@ID
@managed
async def remove(options: Options, plugins: Plugins, *, id_: str) -> None:
    """Uninstall a driver; the next opening of its connections installs it again."""
    await options.agree(f"Remove the driver {id_}?", instead=f"dragoman plugins remove {id_} --yes")
    await plugins.remove(id_)
    options.result({"removed": id_}, f"removed {id_}")


@verbs.command
@ID
@managed
async def enable(options: Options, plugins: Plugins, *, id_: str) -> None:
    """Allow a disabled driver to run again."""
    await plugins.enable(id_)
    options.result({"enabled": id_}, f"enabled {id_}")


@verbs.command
@ID
@managed
async def disable(options: Options, plugins: Plugins, *, id_: str) -> None:
    """Keep a driver installed and do not run it."""
    await plugins.disable(id_)
    options.result({"disabled": id_}, f"disabled {id_}")


@verbs.command
@ID
@managed
async def rollback(options: Options, plugins: Plugins, *, id_: str) -> None:
    """Go back to the version that was active before."""
    one = await plugins.rollback(id_)
    options.result({"rolled_back": _record(one)}, f"rolled back to {one.plugin} {one.version}")


@verbs.command
@ID
@click.argument("version", required=False)
@click.option("--off", is_flag=True, help="Follow new versions again.")
@managed
async def pin(options: Options, plugins: Plugins, *, id_: str, version: str | None, off: bool) -> None:
    """Stay at a version: the active one, or VERSION."""
    if off and version:
        raise click.UsageError("give either VERSION or --off")
    active = {one.id: one.version for one in plugins.installed()}
    if not (off or version or id_ in active):
        raise click.UsageError(f"{id_!r} is not installed; name the VERSION to stay at")
    kept = None if off else version or active[id_]
    await plugins.pin(id_, kept)
    options.result({"pinned": id_, "version": kept}, f"{'pinned' if kept else 'unpinned'} {id_} {kept or ''}")
