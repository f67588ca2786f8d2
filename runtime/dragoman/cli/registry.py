"""Registries: the ones drivers come from, and making one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .errors import FAILED
from .options import Group, Options, attended
from .serve import inbox, serve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.plugins import Registries
    from dragoman.settings import RegistryEntry
    from dragoman_registry.index import Release
    from dragoman_registry.publish import Status

FOLDER = click.argument("folder", type=click.Path(path_type=Path))
KEYS = click.option(
    "--keys", metavar="DIR", type=click.Path(path_type=Path), help="The private keys; FOLDER.keys when left out."
)
DAYS = click.option(
    "--days", type=click.IntRange(1), help="For how many days the registry's own signatures hold; 365 for a folder."
)


@click.group("registry", cls=Group)
def registry() -> None:
    """Choose where drivers come from, or make a registry: a folder of files."""


for _command in (serve, inbox):
    registry.add_command(_command)


def _registries(options: Options) -> Registries:
    from dragoman.plugins import Registries

    return Registries(options.paths())


@registry.command("add")
@click.argument("location")
@click.option("--name", help="What to call it; the folder's name when left out.")
@click.option("--root", metavar="SHA256", default="", help="Its root, from which all its signatures follow.")
@click.pass_obj
def add(options: Options, location: str, name: str | None, root: str) -> None:
    """Ask a further registry for drivers: a folder, a bundle, or the address of one on a web server.

    A folder's root is taken as it is and shown; that of an address on the web must be given, or is asked for.
    """
    if not root and location.startswith(("http:", "https:")) and attended():
        root = click.prompt("The digest of its root, from whoever runs it", err=True).strip()
    entry = _registries(options).add(location, name=name, root=root.removeprefix("sha256:").lower())
    options.say(f"it begins with the root {entry.root}")
    options.result({"added": entry}, f"added {entry.name}  {entry.location}")


@registry.command("list")
@click.pass_obj
def list_(options: Options) -> None:
    """List the registries in the order they are asked."""
    found = _registries(options).list()
    rows = [[entry.name, entry.location, _root(entry)] for entry in found]
    nothing = "none; try: dragoman registry add FOLDER"
    options.listing({"registries": found}, ["NAME", "LOCATION", "ROOT"], rows, nothing=nothing)


def _root(entry: RegistryEntry) -> str:
    from dragoman.plugins.registries import BUNDLED
    from dragoman_registry.trust import Pinned

    if entry.name == BUNDLED:
        return f"pinned by dragoman ({Pinned(Path(entry.location)).pins.label})"
    return f"{entry.root[:12]}…" if entry.root else "the first it was met with"


@registry.command("remove")
@click.argument("name")
@click.pass_obj
def remove(options: Options, name: str) -> None:
    """Ask a registry no longer; what was installed from it stays."""
    _registries(options).remove(name)
    options.result({"removed": name}, f"removed {name}")


@registry.command("init")
@FOLDER
@KEYS
@DAYS
@click.pass_obj
def init(options: Options, folder: Path, keys: Path | None, days: int | None) -> None:
    """Make an empty registry, and its keys beside it."""
    from dragoman_registry import publish
    from dragoman_registry.trust.keys import beside
    from dragoman_registry.trust.roles import YEAR

    root = publish.init(folder, keys=keys, days=days or YEAR)
    options.say(f"its keys are in {keys or beside(folder)}: keep them from others, and a copy where nothing burns")
    options.say(f"others add it with: dragoman registry add LOCATION --root {root}")
    options.result({"registry": str(folder), "root": root}, f"initialised {folder}")


@registry.command("build")
@click.argument("wheels", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--to", required=True, metavar="FOLDER", type=click.Path(path_type=Path), help="The registry.")
@click.option("--sign", metavar="KEY", type=click.Path(path_type=Path), help="The publisher's key.")
@KEYS
@click.pass_obj
def build(options: Options, wheels: tuple[Path, ...], to: Path, sign: Path | None, keys: Path | None) -> None:
    """Publish wheels into a registry: all of them, or none."""
    from dragoman_registry import publish

    _published(options, publish.build(wheels, to=to, keys=keys, sign=sign), publish.published(to))


def _published(options: Options, releases: list[Release], there: Mapping[str, str]) -> None:
    rows = [
        [
            "published" if all(wheel.file in there for wheel in one.wheels) else "waits to be accepted",
            one.plugin,
            one.version,
            " ".join(f"sha256:{wheel.sha256[:12]}…" for wheel in one.wheels),
        ]
        for one in releases
    ]
    options.listing({"published": releases}, [], rows, nothing="nothing was published: no driver is among these wheels")


@registry.command("accept")
@FOLDER
@KEYS
@click.pass_obj
def accept(options: Options, folder: Path, keys: Path | None) -> None:
    """Check what publishers have signed since, and offer it."""
    from dragoman_registry import publish
    from dragoman_registry.inbox import Inbox

    inbox = Inbox(folder)
    releases = publish.accept(folder, keys=keys, uploads=[inbox.path(upload) for upload in inbox.waiting()])
    inbox.sweep()
    there = publish.published(folder)
    if releases:
        _published(options, releases, there)
    else:
        options.result({"published": []}, "nothing waits")


@registry.command("add-publisher")
@FOLDER
@click.argument("name")
@click.option("--key", required=True, metavar="KEY.pub", type=click.Path(path_type=Path), help="Their public key.")
@click.option("--project", "projects", multiple=True, help="A distribution they may publish.")
@click.option("--type", "types", multiple=True, help="A database type the first project serves.")
@click.option("--rebind", is_flag=True, help="Take the types from the projects that serve them.")
@KEYS
@click.pass_obj
def add_publisher(
    options: Options,
    folder: Path,
    name: str,
    key: Path,
    projects: tuple[str, ...],
    types: tuple[str, ...],
    rebind: bool,
    keys: Path | None,
) -> None:
    """Let the holder of a key publish projects; one who is there gets this key in place of the one before."""
    from dragoman_registry import publish

    who = publish.add_publisher(folder, name, key=key, projects=projects, types=types, rebind=rebind, keys=keys)
    done = " ".join([who.name, "may publish", ", ".join(projects) or "as before,", f"with the key {who.keys[0][:12]}…"])
    options.result({"publisher": who, "projects": projects, "types": types}, done)


@registry.command("mark")
@FOLDER
@click.argument("id_", metavar="ID")
@click.argument("version")
@click.argument("status", type=click.Choice(["active", "yanked", "deprecated", "quarantined"]))
@click.option("--reason", default="", help="Why; people see it.")
@click.option("--replaced-by", default="", metavar="ID", help="What to use instead of a deprecated one.")
@KEYS
@click.pass_obj
def mark(
    options: Options,
    folder: Path,
    id_: str,
    version: str,
    status: Status,
    reason: str,
    replaced_by: str,
    keys: Path | None,
) -> None:
    """Take a version back, or offer it again: yanked, deprecated, quarantined, active."""
    from dragoman_registry import publish

    one = publish.mark(
        folder, project=id_, version=version, status=status, reason=reason, replaced_by=replaced_by, keys=keys
    )
    options.result({"marked": one, "status": status}, f"{one.plugin} {one.version} is {status}")


@registry.command("sign")
@FOLDER
@click.option("--sign", metavar="KEY", type=click.Path(path_type=Path), help="A publisher's key, for their own part.")
@click.option("--rotate", metavar="ROLE", multiple=True, help="Make a new key for a role, and the old one worthless.")
@DAYS
@KEYS
@click.pass_obj
def sign(
    options: Options, folder: Path, sign: Path | None, rotate: tuple[str, ...], days: int | None, keys: Path | None
) -> None:
    """Renew the signatures that end soon; a registry is offered no longer once they have expired."""
    from dragoman_registry import publish

    done = publish.sign(folder, keys=keys, sign=sign, rotate=rotate, days=days)
    options.result({"signed": done}, f"signed {', '.join(done)}" if done else "nothing ends soon")


@registry.command("mirror")
@click.argument("source")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--bundle", metavar="FILE.zip", type=click.Path(path_type=Path), help="Write it as one file.")
@click.option("--root", metavar="SHA256", default="", help="The source's root; one that is configured is known.")
@KEYS
@click.pass_obj
def mirror(
    options: Options, source: str, folder: Path | None, bundle: Path | None, root: str, keys: Path | None
) -> None:
    """Copy a registry, verified, with its authors' signatures: into a folder, or one file for where no network is."""
    from dragoman.plugins.registries import Signed, locate
    from dragoman.settings import RegistryEntry
    from dragoman_registry.mirror import mirror as copy
    from dragoman_registry.mirror import pack

    if folder is None and bundle is None:
        raise click.UsageError("name a folder, or --bundle FILE.zip")
    known = {entry.name: entry for entry in _registries(options).list()}
    entry = known.get(source) or RegistryEntry("mirrored", locate(source), root)
    with tempfile.TemporaryDirectory() as temporary:
        target = folder or Path(temporary) / "mirror"
        digest = copy(entry.location, to=target, trust=Signed(options.paths(), entry), keys=keys or _beside(bundle))
        if bundle is not None:
            pack(target, bundle)
    where = bundle or folder
    options.say(f"others add it with: dragoman registry add {where} --root {digest}")
    options.result({"mirror": str(where), "root": digest}, f"mirrored {entry.location} to {where}")


def _beside(bundle: Path | None) -> Path | None:
    from dragoman_registry.trust.keys import beside

    return beside(bundle) if bundle else None


@registry.command("verify")
@FOLDER
@KEYS
@click.pass_obj
def verify(options: Options, folder: Path, keys: Path | None) -> int | None:
    """Check every signature and every file of a registry."""
    from dragoman_registry import verification

    faults = verification.verify(folder, keys=keys)
    options.listing({"faults": faults}, [], [[one.code, one.where, one.reason] for one in faults], nothing="no faults")
    return FAILED if faults else None
