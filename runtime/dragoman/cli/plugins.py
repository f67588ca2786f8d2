"""Drivers: what there is, and what is known of each."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from .lifecycle import ID, managed, verbs
from .options import Group, Options
from .output import plain, show_size, write_markdown, write_table

if TYPE_CHECKING:
    from dragoman.plugins import Details, Plugins, Version

SHOWN = 100
"""Drivers a terminal shows at once."""


@click.group("plugins", cls=Group, commands=verbs.commands)
def plugins() -> None:
    """Find drivers, install them, keep them up to date."""


@plugins.command
@click.argument("words", nargs=-1)
@click.option("--type", "kind", metavar="TYPE", help="Only drivers for this database type.")
@click.option("--capability", metavar="CAPABILITY", help="Only drivers that can do this: browse, edit, export, …")
@click.option("--compatible", is_flag=True, help="Only drivers of which a version fits this host.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help=f"The N best; {SHOWN} on a terminal, else all.")
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
    """Find drivers that the registries offer: all of WORDS occur in a driver's id, label, types or summary."""
    _check_capability(capability)
    found = await plugins.browse(" ".join(words), type=kind, capability=capability, compatible=compatible)
    terminal = sys.stdout.isatty() and not options.json
    shown = found[: limit or (SHOWN if terminal else None)]
    head = ["ID", "LABEL", "TYPE", "VERSION", "STATE", "REACHES"]
    rows = [[one.id, one.label, ",".join(one.types), one.version, one.state, one.reaches] for one in shown]
    if terminal and all(one.types == (one.id,) for one in shown):  # a terminal has better use for the room
        head, *rows = ([*row[:2], *row[3:]] for row in [head, *rows])
    nothing = "no registry offers such a driver; try: dragoman registry list"
    options.listing({"plugins": shown}, head, rows, nothing=nothing)
    if hidden := len(found) - len(shown):
        options.say(f"… {hidden:,} more; give WORDS that tell them apart, or --limit {len(found)}")


def _check_capability(name: str | None) -> None:
    from typing import get_args

    from dragoman_registry.manifest import Capability

    known = get_args(Capability)
    if name not in (None, *known):
        raise click.UsageError(f"{name!r} is no capability; there are: {', '.join(known)}")


@plugins.command
@ID
@managed
async def show(options: Options, plugins: Plugins, *, id_: str) -> None:
    """Show what a driver is and may do, who vouches for it, its versions, changelog and readme."""
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


def _facts(found: Details) -> dict[str, str]:
    one, manifest = found.listing, found.manifest
    report = found.report
    return {
        "id": one.id,
        "label": one.label,
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
        "conformance": str(report) if report else "no report was published",
        "failures": "; ".join((*report.failures, *report.denied)) if report else "",
        "licence": manifest.licence,
        "documentation": manifest.docs,
    }


def _size(size: int) -> str:
    return show_size(size) if size else ""


def _standing(one: Version) -> str:
    held = f"{one.state}: {one.reason}" if one.reason else "" if one.state == "offered" else one.state
    return ", ".join(filter(None, ("installed" if one.installed else "", held)))
