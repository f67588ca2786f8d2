"""Commands that show drivers: search, and details of one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from .global_options import Group
from .installed_plugins import ID, managed, verbs
from .output import plain, show_size, write_markdown, write_table

if TYPE_CHECKING:
    from dragoman.plugins import DriverDetails, DriverVersion, Plugins

    from .options import Options

SHOWN = 100
"""Number of drivers that a terminal shows."""


@click.group("plugins", cls=Group, commands=verbs.commands)
def plugins() -> None:
    """Find, install and update drivers."""


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
    from typing import get_args

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
