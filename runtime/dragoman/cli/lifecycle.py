"""What becomes of an installed driver: install, keep up to date, switch off, take back."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from .errors import FAILED
from .options import Group, Options
from .output import plain, say, show_size

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from dragoman.plugins import Plugins, Update
    from dragoman_registry.generation import Generation

    Work = Callable[..., Coroutine[Any, Any, int | None]]

ID = click.argument("id_", metavar="ID")
verbs = Group("plugins")
"""The commands of this room; the group that people see takes them over."""


def managed(work: Work) -> Work:
    """Make a command of a coroutine function that needs the plugins of a runtime."""

    @wraps(work)
    async def run(options: Options, **arguments: Any) -> int | None:
        async with options.runtime() as runtime:
            return await work(options, runtime.plugins, **arguments)

    return click.pass_obj(run)


@verbs.command("list")
@click.pass_obj
def list_(options: Options) -> None:
    """List the installed drivers, and what is held against their versions."""
    from dragoman.plugins import Registries
    from dragoman.plugins.advisories import Advisories  # and no runtime: this is asked at every prompt
    from dragoman_registry.store import Store

    store = Store(options.paths().data)
    advisories = Advisories(store, Registries(options.paths()))
    advisories.refresh()
    installed = store.installed()
    records = []
    for one in installed:
        standing = advisories.standing(one)
        more = f"{one.plugin} {one.version} is quarantined: {standing.quarantined}"
        notices = [*([more] if standing.quarantined else []), *standing.notices]
        records.append(_record(one) | {"quarantined": standing.quarantined, "notices": notices})
        if standing.quarantined and one.state == "installed":
            records[-1]["state"] = "quarantined"
    keys = ("id", "label", "types", "version", "state", "registry", "pin")
    rows = [[str(one[key] or "") for key in keys] for one in records]
    nothing = "no driver is installed; opening a connection installs its own; try: dragoman plugins browse"
    head = ["ID", "LABEL", "TYPE", "VERSION", "STATE", "REGISTRY", "PIN"]
    options.listing({"plugins": records}, head, rows, nothing=nothing)
    for notice in [notice for one in records for notice in one["notices"]] if not options.json else ():
        say(plain(notice))


def _record(generation: Generation) -> dict[str, Any]:
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


SOME = click.argument("id_", metavar="[ID]", required=False)
DRY_RUN = click.option("--dry-run", is_flag=True, help="Only say what would be done.")


@verbs.command
@SOME
@click.option("--all", "every", is_flag=True, help="All that are not pinned; the same as naming none.")
@DRY_RUN
@managed
async def update(options: Options, plugins: Plugins, *, id_: str | None, every: bool, dry_run: bool) -> int | None:
    """Update one driver, or all of them; pinned ones stay, and wider permissions are asked about."""
    if id_ and every:
        raise click.UsageError("give either ID or --all")
    found = await plugins.update(id_, dry_run=dry_run)

    def more(one: Update) -> str:
        signed = f"is signed by {one.publisher}" if one.publisher else ""
        return "; ".join(filter(None, (*one.permissions, signed, one.reason)))

    head = ["ID", "FROM", "TO", "STATE", "NEW"]
    rows = [[one.plugin, one.before, one.version, one.state, more(one)] for one in found]
    options.listing({"updates": found}, head, rows, nothing="everything is up to date")
    return FAILED if any(one.state == "failed" for one in found) else None


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
@click.option("--version", metavar="VERSION", help="This one, instead of the one that was active before.")
@managed
async def rollback(options: Options, plugins: Plugins, *, id_: str, version: str | None) -> None:
    """Go back to the version that was active before."""
    one = await plugins.rollback(id_, version=version)
    options.result({"rolled_back": _record(one)}, f"rolled back to {one.plugin} {one.version}")


@verbs.command
@ID
@click.argument("version", required=False)
@click.option("--off", is_flag=True, help="Follow new versions again, as `unpin` does.")
@managed
async def pin(options: Options, plugins: Plugins, *, id_: str, version: str | None, off: bool) -> None:
    """Stay at a version: the active one, or VERSION."""
    if off and version:
        raise click.UsageError("give either VERSION or --off")
    active = {one.id: one.version for one in plugins.installed()}
    if not (off or version or id_ in active):
        raise click.UsageError(f"{id_!r} is not installed; name the VERSION to stay at")
    await _pin(options, plugins, id_, None if off else version or active[id_])


@verbs.command
@ID
@managed
async def unpin(options: Options, plugins: Plugins, *, id_: str) -> None:
    """Follow new versions again."""
    await _pin(options, plugins, id_, None)


async def _pin(options: Options, plugins: Plugins, plugin: str, version: str | None) -> None:
    await plugins.pin(plugin, version)
    done = f"{'pinned' if version else 'unpinned'} {plugin} {version or ''}"
    options.result({"pinned": plugin, "version": version}, done)


@verbs.command
@SOME
@managed
async def verify(options: Options, plugins: Plugins, *, id_: str | None) -> int | None:
    """Compare every file of what is installed with what was unpacked."""
    found = await plugins.verify(id_)
    documents = [_record(one) | {"faults": faults} for one, faults in found]
    rows = [[one.plugin, one.version, str(fault)] for one, faults in found for fault in faults]
    options.listing({"plugins": documents}, [], rows, nothing=f"{len(found)} verified, no faults")
    damaged = [one.plugin for one, faults in found if faults]
    for plugin in damaged:
        options.say(f"try: dragoman plugins repair {plugin}")
    return FAILED if damaged else None


@verbs.command
@ID
@managed
async def repair(options: Options, plugins: Plugins, *, id_: str) -> None:
    """Fetch a damaged driver again, or a version that fits this host."""
    one = await plugins.repair(id_)
    options.result({"repaired": _record(one)}, f"{one.plugin} {one.version} is whole")


@verbs.command
@click.option("--frozen", is_flag=True, help="Only compare; change nothing.")
@managed
async def sync(options: Options, plugins: Plugins, *, frozen: bool) -> int | None:
    """Install exactly what plugins.lock names."""
    made, differences = await plugins.sync(frozen=frozen)
    records = [_record(one) for one in made]
    rows = [["installed", one.plugin, one.version] for one in made] + [["differs", text] for text in differences]
    nothing = "what is installed is what plugins.lock names"
    options.listing({"installed": records, "differences": differences}, [], rows, nothing=nothing)
    return FAILED if differences and frozen else None


@verbs.command
@DRY_RUN
@managed
async def gc(options: Options, plugins: Plugins, *, dry_run: bool) -> None:
    """Remove versions nobody goes back to: not active, not the one before, not pinned, and not in use."""
    found = await plugins.collect(dry_run=dry_run)
    documents = [
        {"plugin": one.plugin, "version": one.version, "path": str(one.path), "size": one.size} for one in found
    ]
    rows = [[one.plugin or "abandoned", one.version, show_size(one.size), one.path.name[:12]] for one in found]
    options.listing({"collected": documents, "dry_run": dry_run}, [], rows, nothing="nothing to collect")
    if found:
        options.say(f"{show_size(sum(one.size for one in found))} {'would be' if dry_run else 'were'} freed")


@verbs.command
@ID
@managed
async def why(options: Options, plugins: Plugins, *, id_: str) -> None:
    """Say why the installed version is here: who asked, when, from where, and what was passed over."""
    active, *others = await plugins.why(id_)
    origin = active.origin
    rows = {
        "version": f"{active.version} ({active.state})",
        "asked for": f"{origin.asked or 'not recorded'}{f', by {origin.who}' if origin.who else ''}, {_time(active)}",
        "registry": active.registry,
        "sha256": active.sha256,
        "signed by": f"{origin.publisher} ({', '.join(key[:12] for key in origin.keys)})" if origin.publisher else "",
        "consent": "given, or covered by a lock or a known publisher" if active.trusted else "not needed",
        "pinned": active.pin or "",
    }
    lines = [[name, value] for name, value in rows.items() if value]
    lines += [["passed over", text] for text in origin.skipped]
    lines += [["kept", f"{one.version}, {one.origin.asked}, {_time(one)}"] for one in others]
    keep = [
        _record(one) | {"origin": one.origin, "installed_at": one.installed_at, "active": one.active}
        for one in (active, *others)
    ]
    options.listing({"why": keep}, [], lines)


def _time(generation: Generation) -> str:
    from datetime import datetime

    return f"{datetime.fromtimestamp(generation.installed_at).astimezone():%Y-%m-%d %H:%M}"
