"""Commands that change installed drivers: install, update, disable, roll back and so on."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from .errors import FAILED
from .global_options import Group
from .output import plain, say, show_size

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from dragoman.plugins import AvailableUpdate, Plugins
    from dragoman_registry.client.generation import Generation

    from .options import Options

    Work = Callable[..., Coroutine[Any, Any, int | None]]

ID = click.argument("id_", metavar="ID")
verbs = Group("plugins")
"""The commands of this module, which the visible group takes over."""


def managed(work: Work) -> Work:
    """Make a command from a coroutine function that needs the plugins of a runtime."""

    @wraps(work)
    async def run(options: Options, **arguments: Any) -> int | None:
        async with options.runtime() as runtime:
            return await work(options, runtime.plugins, **arguments)

    return click.pass_obj(run)


@verbs.command("list")
@click.pass_obj
def list_(options: Options) -> None:
    """List the installed drivers, and the advisories on their versions."""
    from dragoman.plugins import Registries
    from dragoman.plugins.advisory_cache import AdvisoryCache  # without a runtime: shell prompts run this often
    from dragoman_registry.client.store import Store
    from dragoman_registry.names import marked

    store = Store(options.paths().data)
    advisories = AdvisoryCache(store, Registries(options.paths()))
    advisories.refresh()
    installed = store.installed()
    records = []
    for generation in installed:
        standing = advisories.standing(generation)
        quarantine = f"{generation.plugin} {generation.version} is quarantined: {standing.quarantined}"
        notices = [*([quarantine] if standing.quarantined else []), *standing.notices]
        records.append(_record(generation) | {"quarantined": standing.quarantined, "notices": notices})
        if standing.quarantined and generation.state == "installed":
            records[-1]["state"] = "quarantined"
    keys = ("id", "label", "types", "version", "state", "registry", "pin")
    rows = [
        [marked(str(record[key] or "")) if key == "label" else str(record[key] or "") for key in keys]
        for record in records
    ]
    nothing = "No installed drivers. Opening a connection installs its driver. To see them: dragoman plugins browse"
    head = ["ID", "LABEL", "TYPE", "VERSION", "STATE", "REGISTRY", "PIN"]
    options.listing({"plugins": records}, head, rows, nothing=nothing)
    for plugin, version in store.unreadable().items():
        options.say(f"{plugin} {version} cannot be read")
        options.say("try: dragoman plugins repair")
    for notice in [notice for record in records for notice in record["notices"]] if not options.json else ():
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
    generation = await plugins.install(id_, version=version)
    options.result({"installed": _record(generation)}, f"installed {generation.plugin} {generation.version}")


SOME = click.argument("id_", metavar="[ID]", required=False)
DRY_RUN = click.option("--dry-run", is_flag=True, help="Show what would be done without doing it.")


@verbs.command
@SOME
@click.option("--all", "every", is_flag=True, help="Update all drivers that are not pinned; the same as naming none.")
@DRY_RUN
@managed
async def update(options: Options, plugins: Plugins, *, id_: str | None, every: bool, dry_run: bool) -> int | None:
    """Update one driver, or all that are not pinned; wider permissions need your consent."""
    if id_ and every:
        raise click.UsageError("use either ID or --all")
    updates = await plugins.update(id_, dry_run=dry_run)

    def more(candidate: AvailableUpdate) -> str:
        signed = f"is signed by {candidate.publisher}" if candidate.publisher else ""
        return "; ".join(filter(None, (*candidate.permissions, signed, candidate.reason)))

    head = ["ID", "FROM", "TO", "STATE", "NEW"]
    rows = [
        [candidate.plugin, candidate.before, candidate.version, candidate.state, more(candidate)]
        for candidate in updates
    ]
    options.listing({"updates": updates}, head, rows, nothing="Everything is up to date.")
    return FAILED if any(candidate.state == "failed" for candidate in updates) else None


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
@click.option("--version", metavar="VERSION", help="This version, instead of the previously active one.")
@managed
async def rollback(options: Options, plugins: Plugins, *, id_: str, version: str | None) -> None:
    """Go back to the previously active version."""
    generation = await plugins.rollback(id_, version=version)
    options.result({"rolled_back": _record(generation)}, f"rolled back to {generation.plugin} {generation.version}")


@verbs.command
@ID
@click.argument("version", required=False)
@click.option("--off", is_flag=True, help="Follow new versions again, as `unpin` does.")
@managed
async def pin(options: Options, plugins: Plugins, *, id_: str, version: str | None, off: bool) -> None:
    """Stay at the active version, or at VERSION."""
    if off and version:
        raise click.UsageError("use either VERSION or --off")
    active = {listing.id: listing.version for listing in plugins.installed()}
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
    """Check every installed file for changes since it was unpacked."""
    verifications = await plugins.verify(id_)
    documents = [_record(generation) | {"faults": faults} for generation, faults in verifications]
    rows = [
        [generation.plugin, generation.version, str(fault)] for generation, faults in verifications for fault in faults
    ]
    options.listing({"plugins": documents}, [], rows, nothing=f"{len(verifications)} verified, no faults")
    damaged = [generation.plugin for generation, faults in verifications if faults]
    for plugin in damaged:
        options.say(f"try: dragoman plugins repair {plugin}")
    return FAILED if damaged else None


@verbs.command
@SOME
@managed
async def repair(options: Options, plugins: Plugins, *, id_: str | None) -> int | None:
    """Replace a damaged driver, or one that does not fit this host; without ID, repair everything.

    Repairing everything starts with the state database; a damaged one is kept under another name.
    """
    if id_ is not None:
        generation = await plugins.repair(id_)
        options.result({"repaired": _record(generation)}, f"{generation.plugin} {generation.version} was repaired")
        return None
    done = await plugins.repair_all()
    rows = [["restored", str(done.aside)]] if done.aside else []
    rows += [["fetched", f"{generation.plugin} {generation.version}"] for generation in done.made]
    rows += [["left", f"{plugin}: {error.message}"] for plugin, error in done.left.items()]
    document = {
        "damaged": done.aside and str(done.aside), "copied": done.copied,
        "repaired": [_record(generation) for generation in done.made],
        "left": {plugin: error.to_dict() for plugin, error in done.left.items()},
    }  # fmt: skip
    options.listing(document, [], rows, nothing="Nothing is damaged.")
    if done.aside and not done.copied:
        options.say("no intact copy of the state was found; plugins.lock was followed instead")
        options.say("pins, disabled drivers and the versions to roll back to were lost")
    for error in done.left.values():
        options.hint(error.hint)
    return FAILED if done.left else None


@verbs.command
@click.option("--frozen", is_flag=True, help="Compare without changing anything.")
@managed
async def sync(options: Options, plugins: Plugins, *, frozen: bool) -> int | None:
    """Install exactly what plugins.lock names; drivers that fail are skipped and listed, with exit code 1."""
    installed, differences, skipped = await plugins.sync(frozen=frozen)
    document = {
        "installed": [_record(generation) for generation in installed], "differences": differences,
        "skipped": {plugin: error.to_dict() for plugin, error in skipped.items()},
    }  # fmt: skip
    rows = [["installed", f"{generation.plugin} {generation.version}"] for generation in installed]
    rows += [["differs", text] for text in differences]
    rows += [["skipped", f"{plugin}: {error.message}"] for plugin, error in skipped.items()]
    options.listing(document, [], rows, nothing="The installed drivers match plugins.lock.")
    for hint in dict.fromkeys(error.hint for error in skipped.values() if error.hint):
        options.hint(hint)
    return FAILED if skipped or (differences and frozen) else None


@verbs.command
@DRY_RUN
@managed
async def gc(options: Options, plugins: Plugins, *, dry_run: bool) -> None:
    """Remove old versions, except active, previously active, pinned and running ones.

    Leftover state files of killed processes are removed too.
    """
    leftovers = await plugins.collect(dry_run=dry_run)
    documents = [
        {"plugin": leftover.plugin, "version": leftover.version, "path": str(leftover.path), "size": leftover.size}
        for leftover in leftovers
    ]
    rows = [
        [leftover.plugin or "abandoned", leftover.version, show_size(leftover.size), _short(leftover.path.name)]
        for leftover in leftovers
    ]
    options.listing({"collected": documents, "dry_run": dry_run}, [], rows, nothing="Nothing to collect.")
    if leftovers:
        options.say(
            f"{show_size(sum(leftover.size for leftover in leftovers))} {'would be' if dry_run else 'were'} freed"
        )


def _short(name: str) -> str:
    return name if name.endswith(".tmp") else name[:12]


@verbs.command
@ID
@managed
async def why(options: Options, plugins: Plugins, *, id_: str) -> None:
    """Explain the installed version: who asked for it, when, its source, and the versions passed over."""
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
    lines += [
        ["kept", f"{generation.version}, {generation.origin.asked}, {_time(generation)}"] for generation in others
    ]
    keep = [
        _record(generation)
        | {"origin": generation.origin, "installed_at": generation.installed_at, "active": generation.active}
        for generation in (active, *others)
    ]
    options.listing({"why": keep}, [], lines)


def _time(generation: Generation) -> str:
    from datetime import datetime

    return f"{datetime.fromtimestamp(generation.installed_at).astimezone():%Y-%m-%d %H:%M}"
