"""Commands about drivers: search, details, install, update, disable, roll back and so on."""

from __future__ import annotations

import sys
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, get_args

import click

from .errors import FAILED
from .options import Group
from .output import plain, say, show_size, write_markdown, write_table

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from dragoman.plugins.install_steps import AvailableUpdate
    from dragoman.plugins.lifecycle import Plugins
    from dragoman_registry.client.generation import Generation

    from .options import Options

    Work = Callable[..., Coroutine[Any, Any, int | None]]
    from dragoman.plugins.driver_views import DriverDetails, DriverVersion

ID = click.argument("id_", metavar="ID")
SHOWN = 100
"""Number of drivers that a terminal shows."""


@click.group("plugins", cls=Group)
def plugins() -> None:
    """Find, install and update drivers."""


def managed(work: Work) -> Work:
    """Make a command from a coroutine function that needs the plugins of a runtime."""

    @wraps(work)
    async def run(options: Options, **arguments: Any) -> int | None:
        async with options.runtime() as runtime:
            return await work(options, runtime.plugins, **arguments)

    return click.pass_obj(run)


@plugins.command("list")
@click.pass_obj
def list_(options: Options) -> None:
    """List the installed drivers, and the advisories on their versions."""
    from dragoman.plugins.advisory_cache import AdvisoryCache  # without a runtime: shell prompts run this often
    from dragoman.plugins.registries import Registries
    from dragoman_registry.client.installed_drivers import Store
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


@plugins.command
@ID
@click.option("--version", metavar="VERSION", help="This version instead of the newest that fits.")
@managed
async def install(options: Options, plugins: Plugins, *, id_: str, version: str | None) -> None:
    """Install a driver."""
    generation = await plugins.install(id_, version=version)
    options.result({"installed": _record(generation)}, f"installed {generation.plugin} {generation.version}")


SOME = click.argument("id_", metavar="[ID]", required=False)
DRY_RUN = click.option("--dry-run", is_flag=True, help="Show what would be done without doing it.")


@plugins.command
@SOME
@DRY_RUN
@managed
async def update(options: Options, plugins: Plugins, *, id_: str | None, dry_run: bool) -> int | None:
    """Update one driver, or all that are not pinned; wider permissions need your consent."""
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


@plugins.command
@ID
@managed
async def remove(options: Options, plugins: Plugins, *, id_: str) -> None:
    """Uninstall a driver; the next opening of its connections installs it again."""
    await options.agree(f"Remove the driver {id_}?", instead=f"dragoman plugins remove {id_} --yes")
    await plugins.remove(id_)
    options.result({"removed": id_}, f"removed {id_}")


@plugins.command
@ID
@managed
async def enable(options: Options, plugins: Plugins, *, id_: str) -> None:
    """Allow a disabled driver to run again."""
    await plugins.enable(id_)
    options.result({"enabled": id_}, f"enabled {id_}")


@plugins.command
@ID
@managed
async def disable(options: Options, plugins: Plugins, *, id_: str) -> None:
    """Keep a driver installed and do not run it."""
    await plugins.disable(id_)
    options.result({"disabled": id_}, f"disabled {id_}")


@plugins.command
@ID
@click.option("--version", metavar="VERSION", help="This version, instead of the previously active one.")
@managed
async def rollback(options: Options, plugins: Plugins, *, id_: str, version: str | None) -> None:
    """Go back to the previously active version."""
    generation = await plugins.rollback(id_, version=version)
    options.result({"rolled_back": _record(generation)}, f"rolled back to {generation.plugin} {generation.version}")


@plugins.command
@ID
@click.argument("version", required=False)
@managed
async def pin(options: Options, plugins: Plugins, *, id_: str, version: str | None) -> None:
    """Stay at the active version, or at VERSION."""
    active = {listing.id: listing.version for listing in plugins.installed()}
    if not (version or id_ in active):
        raise click.UsageError(f"{id_!r} is not installed; name the VERSION to stay at")
    await _pin(options, plugins, id_, version or active[id_])


@plugins.command
@ID
@managed
async def unpin(options: Options, plugins: Plugins, *, id_: str) -> None:
    """Follow new versions again."""
    await _pin(options, plugins, id_, None)


async def _pin(options: Options, plugins: Plugins, plugin: str, version: str | None) -> None:
    await plugins.pin(plugin, version)
    done = f"{'pinned' if version else 'unpinned'} {plugin} {version or ''}"
    options.result({"pinned": plugin, "version": version}, done)


@plugins.command
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


@plugins.command
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


@plugins.command
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


@plugins.command
@DRY_RUN
@managed
async def gc(options: Options, plugins: Plugins, *, dry_run: bool) -> None:
    """Remove old versions, except active, previously active, pinned and running ones.

    Leftover state files of killed processes, and damaged state files older than 90 days, are removed too.
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
    return name if "." in name else name[:12]


@plugins.command
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
    return f"{datetime.fromtimestamp(generation.installed_at).astimezone():%Y-%m-%d %H:%M}"


@plugins.command
@click.argument("words", nargs=-1)
@click.option("--type", "kind", metavar="TYPE", help="Only drivers for this database type.")
@click.option("--capability", metavar="CAPABILITY", help="Only drivers that can do this: browse, edit, export, …")
@click.option("--compatible", is_flag=True, help="Only drivers with a version that fits this host.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    help=f"Only the N best matches; by default {SHOWN} on a terminal, else all.",
)
@managed
async def browse(
    options: Options,
    plugins: Plugins,
    *,
    words: tuple[str, ...],
    kind: str | None,
    capability: str | None,
    compatible: bool,
    limit: int | None,
) -> None:
    """Find drivers in the registries whose id, label, types or summary contain all WORDS."""
    from dragoman_registry.names import marked

    _check_capability(capability)
    matches = await plugins.browse(" ".join(words), type=kind, capability=capability, compatible=compatible)
    terminal = sys.stdout.isatty() and not options.json
    listings = matches[: limit or (SHOWN if terminal else None)]
    head = ["ID", "LABEL", "TYPE", "VERSION", "STATE", "REACHES"]
    rows = [
        [listing.id, marked(listing.label), ",".join(listing.types), listing.version, listing.state, listing.reaches]
        for listing in listings
    ]
    # Redundant columns would take space on a terminal.
    if terminal and all(listing.types == (listing.id,) for listing in listings):
        head, *rows = ([*row[:2], *row[3:]] for row in [head, *rows])
    nothing = "No matching drivers. To see the registries: dragoman registry list"
    options.listing({"plugins": listings}, head, rows, nothing=nothing)
    if hidden := len(matches) - len(listings):
        options.say(f"… {hidden:,} more; add WORDS to narrow the list, or --limit {len(matches)}")


def _check_capability(name: str | None) -> None:
    from dragoman_registry.wheels.manifest import Capability

    capabilities = get_args(Capability)
    if name not in (None, *capabilities):
        raise click.UsageError(f"{name!r} is not a capability; choose one of: {', '.join(capabilities)}")


@plugins.command
@ID
@managed
async def show(options: Options, plugins: Plugins, *, id_: str) -> None:
    """Show a driver's details: permissions, publisher, versions, changelog and readme."""
    details = await plugins.show(id_)
    options.listing(details, [], [[name, value] for name, value in _facts(details).items() if value])
    if options.json:
        return
    sys.stdout.write("\n")
    head = ["VERSION", "PUBLISHED", "SIZE", "API", "STATE"]
    rows = [
        [release.version, release.uploaded[:10], _size(release.size), release.host_api, _standing(release)]
        for release in details.versions
    ]
    write_table(head, [[*map(plain, row)] for row in rows], wrap=True)
    for title, text in (("Changelog", details.changelog), ("Readme", details.readme)):
        if text.strip():
            sys.stdout.write("\n")
            write_markdown(title, text)


def _facts(details: DriverDetails) -> dict[str, str]:
    from dragoman_registry.names import marked

    listing, manifest = details.listing, details.manifest
    report = details.report
    return {
        "id": listing.id,
        "label": marked(listing.label),
        "summary": listing.summary,
        "types": ", ".join(listing.types),
        "version": f"{listing.version} ({_size(listing.size)})".removesuffix(" ()"),
        "state": listing.state,
        "registry": listing.registry,
        "skipped": "; ".join(details.skipped),
        "vouched for by": details.publisher,
        "reaches": listing.reaches,
        "permissions": "; ".join(details.permissions),
        "can do": ", ".join(listing.capabilities),
        "not on": ", ".join(listing.excluded_surfaces),
        "servers": ", ".join(manifest.server_versions),
        "hooks": ", ".join(manifest.hooks),
        "form": ", ".join(field.label for field in manifest.form),
        "conformance": str(report) if report else "no published report",
        "failures": "; ".join((*report.failures, *report.denied)) if report else "",
        "licence": manifest.licence,
        "documentation": manifest.docs,
    }


def _size(size: int) -> str:
    return show_size(size) if size else ""


def _standing(release: DriverVersion) -> str:
    standing = (
        f"{release.state}: {release.reason}" if release.reason else "" if release.state == "offered" else release.state
    )
    return ", ".join(filter(None, ("installed" if release.installed else "", standing)))
