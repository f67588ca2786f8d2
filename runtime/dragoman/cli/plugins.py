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
    found = await plugins.browse(" ".join(words), type=kind, capability=capability, compatible=compatible)
    terminal = sys.stdout.isatty() and not options.json
    shown = found[: limit or (SHOWN if terminal else None)]
    head = ["ID", "LABEL", "TYPE", "VERSION", "STATE", "REACHES"]
    rows = [[one.id, marked(one.label), ",".join(one.types), one.version, one.state, one.reaches] for one in shown]
    if terminal and all(one.types == (one.id,) for one in shown):  # redundant columns would take space on a terminal
        head, *rows = ([*row[:2], *row[3:]] for row in [head, *rows])
    nothing = "No matching drivers. To see the registries: dragoman registry list"
    options.listing({"plugins": shown}, head, rows, nothing=nothing)
    if hidden := len(found) - len(shown):
        options.say(f"… {hidden:,} more; add WORDS to narrow the list, or --limit {len(found)}")


def _check_capability(name: str | None) -> None:
    from typing import get_args

    from dragoman_registry.wheels.manifest import Capability

    known = get_args(Capability)
    if name not in (None, *known):
        raise click.UsageError(f"{name!r} is not a capability; choose one of: {', '.join(known)}")


@plugins.command
@ID
@managed
async def show(options: Options, plugins: Plugins, *, id_: str) -> None:
    """Show a driver's details: permissions, publisher, versions, changelog and readme."""
    found = await plugins.show(id_)
    options.listing(found, [], [[name, value] for name, value in _facts(found).items() if value])
    if options.json:
        return
    sys.stdout.write("\n")
    head = ["VERSION", "PUBLISHED", "SIZE", "API", "STATE"]
    rows = [[one.version, one.uploaded[:10], _size(one.size), one.host_api, _standing(one)] for one in found.versions]
    write_table(head, [[*map(plain, row)] for row in rows], wrap=True)
    for title, text in (("Changelog", found.changelog), ("Readme", found.readme)):
        if text.strip():
            sys.stdout.write("\n")
            write_markdown(title, text)


def _facts(found: DriverDetails) -> dict[str, str]:
    from dragoman_registry.names import marked

    one, manifest = found.listing, found.manifest
    report = found.report
    return {
        "id": one.id,
        "label": marked(one.label),
        "summary": one.summary,
        "types": ", ".join(one.types),
        "version": f"{one.version} ({_size(one.size)})".removesuffix(" ()"),
        "state": one.state,
        "registry": one.registry,
        "skipped": "; ".join(found.skipped),
        "vouched for by": found.publisher,
        "reaches": one.reaches,
        "permissions": "; ".join(found.permissions),
        "can do": ", ".join(one.capabilities),
        "not on": ", ".join(one.excluded_surfaces),
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


def _standing(one: DriverVersion) -> str:
    held = f"{one.state}: {one.reason}" if one.reason else "" if one.state == "offered" else one.state
    return ", ".join(filter(None, ("installed" if one.installed else "", held)))
