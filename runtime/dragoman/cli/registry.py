"""Commands on registries: choosing the sources of drivers, and running a registry."""

from __future__ import annotations

import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from dragoman_api.errors import ConfigurationError

from .command_files import command_file
from .errors import FAILED, NOT_APPLIED
from .key_options import KEYS, signing
from .options import PATH_TYPE, Group
from .output import say, show_size
from .streams import attended

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.plugins.registries import Registries
    from dragoman.settings import RegistryEntry
    from dragoman_registry.index.catalog import Release
    from dragoman_registry.publisher.publish import Status

    from .options import Options

FOLDER = click.argument("folder", type=PATH_TYPE)
DAYS = click.option(
    "--days", type=click.IntRange(1), help="Days for which the registry's own signatures are valid; 365 for a folder."
)
SHORTEST = 16
"""Minimum length of a token."""


@click.group("registry", cls=Group)
def registry() -> None:
    """Choose the sources of drivers, or run a registry, which is a folder of files."""


def _registries(options: Options) -> Registries:
    from dragoman.plugins.registries import Registries

    return Registries(options.paths())


@registry.command("add")
@click.argument("location")
@click.option("--name", help="Its name; by default the folder's name.")
@click.option("--root", metavar="SHA256", default="", help="The digest of its root, which anchors its signatures.")
@click.pass_obj
def add(options: Options, location: str, name: str | None, root: str) -> None:
    """Add a source of drivers: a folder, a bundle, or the address of one on a web server.

    The root of a folder is trusted and shown; for a web address, dragoman asks for it unless you pass --root.
    """
    from dragoman_registry.sources import on_the_web

    if not root and on_the_web(location) and attended():
        root = click.prompt("The digest of its root, from its operator", err=True).strip()
    entry = _registries(options).add(location, name=name, root=root.removeprefix("sha256:").lower())
    options.say(f"its root is {entry.root}")
    options.result({"added": entry}, f"added {entry.name}  {entry.location}")


@registry.command("list")
@click.pass_obj
def list_(options: Options) -> None:
    """List the registries in lookup order."""
    entries = _registries(options).list()
    rows = [[entry.name, entry.location, _root(entry)] for entry in entries]
    nothing = "No registries. To add one: dragoman registry add FOLDER"
    options.listing({"registries": entries}, ["NAME", "LOCATION", "ROOT"], rows, nothing=nothing)


def _root(entry: RegistryEntry) -> str:
    from dragoman.plugins.registries import BUNDLED
    from dragoman_registry.trust.trust import Pinned

    if entry.name == BUNDLED:
        return f"pinned by dragoman ({Pinned(Path(entry.location)).pins.label})"
    return f"{entry.root[:12]}…" if entry.root else "the first one seen"


@registry.command("remove")
@click.argument("name")
@click.pass_obj
def remove(options: Options, name: str) -> None:
    """Remove a source of drivers; drivers installed from it stay."""
    _registries(options).remove(name)
    options.result({"removed": name}, f"removed {name}")


@registry.command("init")
@FOLDER
@KEYS
@DAYS
@signing
@click.pass_obj
def init(options: Options, folder: Path, keys: Path | None, days: int | None) -> None:
    """Create an empty registry, and its keys beside it."""
    from dragoman_registry.publisher import publish
    from dragoman_registry.trust.keys import beside
    from dragoman_registry.trust.roles import YEAR

    root = publish.init(folder, keys=keys, days=days or YEAR)
    options.say(f"its keys are in {keys or beside(folder)}: keep them secret, with a copy in another safe place")
    options.say(f"others add it with: dragoman registry add LOCATION --root {root}")
    options.result({"registry": str(folder), "root": root}, f"initialized {folder}")


@registry.command("build")
@click.argument("wheels", nargs=-1, required=True, type=PATH_TYPE)
@click.option("--to", required=True, metavar="FOLDER", type=PATH_TYPE, help="The registry.")
@click.option("--sign", metavar="KEY", type=PATH_TYPE, help="The publisher's key.")
@KEYS
@signing
@click.pass_obj
def build(options: Options, wheels: tuple[Path, ...], to: Path, sign: Path | None, keys: Path | None) -> None:
    """Publish wheels into a registry, all or none."""
    from dragoman_registry.publisher import publish

    releases = publish.build(wheels, to=to, keys=keys, sign=sign)
    nothing = "None of these wheels is a driver. Nothing was published."
    options.listing({"published": releases}, [], _rows(releases, publish.published(to)), nothing=nothing)


def _rows(releases: list[Release], published_digests: Mapping[str, str]) -> list[list[str]]:
    return [
        [
            "published" if all(wheel.file in published_digests for wheel in release.wheels) else "waits to be accepted",
            release.plugin,
            release.version,
            " ".join(f"sha256:{wheel.sha256[:12]}…" for wheel in release.wheels),
        ]
        for release in releases
    ]


@registry.command("accept")
@FOLDER
@KEYS
@signing
@click.pass_obj
def accept(options: Options, folder: Path, keys: Path | None) -> int | None:
    """Check and offer what publishers have newly signed; a refused release does not stop the others (exit code 4)."""
    from dragoman_registry.publisher import publish
    from dragoman_registry.publisher.inbox import Inbox

    inbox = Inbox(folder)
    done = publish.accept(folder, keys=keys, uploads=[inbox.path(upload) for upload in inbox.waiting()])
    inbox.sweep()
    rows = _rows(done.releases, publish.published(folder))
    document = {"published": done.releases, "refused": done.refused}
    refused = [["refused", fault.where, f"{fault.code}: {fault.reason}"] for fault in done.refused]
    options.listing(document, [], rows, nothing="" if refused else "nothing waits")
    if not options.json:
        options.listing(document, [], refused)
    return NOT_APPLIED if done.refused else None


@registry.command("add-publisher")
@FOLDER
@click.argument("name")
@click.option("--key", required=True, metavar="KEY.pub", type=PATH_TYPE, help="The publisher's public key.")
@click.option("--project", "projects", multiple=True, help="A distribution they may publish.")
@click.option("--type", "types", multiple=True, help="A database type that the first project serves.")
@click.option("--rebind", is_flag=True, help="Reassign types that other projects serve.")
@KEYS
@signing
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
    """Let the holder of a key publish projects; the key of a known publisher is replaced."""
    from dragoman_registry.publisher import publish

    who = publish.add_publisher(folder, name, key=key, projects=projects, types=types, rebind=rebind, keys=keys)
    done = " ".join([who.name, "may publish", ", ".join(projects) or "as before,", f"with the key {who.keys[0][:12]}…"])
    options.result({"publisher": who, "projects": projects, "types": types}, done)


@registry.command("mark")
@FOLDER
@click.argument("id_", metavar="ID")
@click.argument("version")
@click.argument("status", type=click.Choice(["active", "yanked", "deprecated", "quarantined"]))
@click.option("--reason", default="", help="The reason, which users see.")
@click.option("--replaced-by", default="", metavar="ID", help="The replacement of a deprecated version.")
@KEYS
@signing
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
    """Mark a version: yanked, deprecated, quarantined, or active again."""
    from dragoman_registry.publisher import publish

    release = publish.mark(
        folder, project=id_, version=version, status=status, reason=reason, replaced_by=replaced_by, keys=keys
    )
    options.result({"marked": release, "status": status}, f"{release.plugin} {release.version} is {status}")


@registry.command("sign")
@FOLDER
@click.option("--sign", metavar="KEY", type=PATH_TYPE, help="A publisher's key, to renew their own signatures.")
@click.option("--rotate", metavar="ROLE", multiple=True, help="Replace the key of a role; the old one becomes invalid.")
@click.option("--key", "new_keys", metavar="KEY", type=PATH_TYPE, multiple=True,
              help="The key that the role gets; by default it is made. Repeated three times for root.")  # fmt: skip
@DAYS
@KEYS
@signing
@click.pass_obj
def sign(
    options: Options,
    folder: Path,
    sign: Path | None,
    rotate: tuple[str, ...],
    new_keys: tuple[Path, ...],
    days: int | None,
    keys: Path | None,
) -> None:
    """Renew signatures that expire soon; hosts reject a registry whose signatures have expired."""
    from dragoman_registry.publisher import publish

    if new_keys and len(rotate) != 1:
        raise click.UsageError("--key goes with one --rotate ROLE")
    done = publish.sign(folder, keys=keys, sign=sign, rotate=rotate, new_keys=new_keys, days=days)
    options.result(
        {"signed": done}, f"signed {', '.join(done)}" if done else "No signature expires soon. Nothing was changed."
    )


@registry.command("mirror")
@click.argument("source")
@click.argument("folder", required=False, type=PATH_TYPE)
@click.option("--bundle", metavar="FILE.zip", type=PATH_TYPE, callback=command_file(written=True),
              help="Write it as one file.")  # fmt: skip
@click.option("--root", metavar="SHA256", default="", help="The source's root; known if it is configured.")
@KEYS
@signing
@click.pass_obj
def mirror(
    options: Options, source: str, folder: Path | None, bundle: Path | None, root: str, keys: Path | None
) -> int | None:
    """Copy a verified registry with its authors' signatures into a folder, or into one file for offline machines.

    Records with invalid names, and releases with missing or damaged files, are left out and listed, and the exit
    code is 1; all others are copied.
    """
    from dragoman.folders import scratch_folder
    from dragoman.plugins.registries import Signed, locate
    from dragoman.settings import RegistryEntry
    from dragoman_registry.publisher.mirror import mirror as copy
    from dragoman_registry.publisher.mirror import pack

    if folder is None and bundle is None:
        raise click.UsageError("name a folder, or --bundle FILE.zip")
    entries_by_name = {entry.name: entry for entry in _registries(options).list()}
    entry = entries_by_name.get(source) or RegistryEntry("mirrored", locate(source), root)
    with scratch_folder() as temporary:
        target = folder or temporary / "mirror"
        mirrored = copy(entry.location, to=target, trust=Signed(options.paths(), entry), keys=keys or _beside(bundle))
        if bundle is not None:
            pack(target, bundle)
    where = bundle or folder
    for fault in mirrored.left_out:
        options.say(f"left out: {fault}")
    options.say(f"others add it with: dragoman registry add {where} --root {mirrored.root}")
    result = {"mirror": str(where), "root": mirrored.root, "left_out": mirrored.left_out}
    options.result(result, f"mirrored {entry.location} to {where}")
    return FAILED if mirrored.left_out else None


def _beside(bundle: Path | None) -> Path | None:
    from dragoman_registry.trust.keys import beside

    return beside(bundle) if bundle else None


@registry.command("verify")
@FOLDER
@KEYS
@click.pass_obj
def verify(options: Options, folder: Path, keys: Path | None) -> int | None:
    """Check every signature and every file of a registry."""
    from dragoman_registry.publisher import verify

    findings = verify.verify(folder, keys=keys)
    faults = [finding for finding in findings if finding.code != verify.LEFTOVER]
    left = [finding for finding in findings if finding.code == verify.LEFTOVER]
    rows = [[finding.code, finding.where, finding.reason] for finding in [*faults, *left]]
    options.listing({"faults": faults, "leftovers": left}, [], rows, nothing="no faults")
    if left:
        options.say(f"leftover files do no harm; to remove them: dragoman registry sign {quote(str(folder))}")
    return FAILED if faults else None


@registry.command("serve")
@FOLDER
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on; the default admits this machine only.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0 picks a free port.")
@click.option(
    "--name", "names", multiple=True, metavar="HOST", help="A host name that clients use, for example behind a proxy."
)
@click.option("--upload", is_flag=True, help="Accept uploads from twine and uv into an inbox beside the folder.")
@click.option(
    "--token",
    "tokens",
    multiple=True,
    metavar="NAME=REFERENCE",
    help="A user who may upload, and where the token is kept: file:PATH, env:NAME, command:… or keyring:…. Repeatable.",
)
@click.pass_obj
async def serve(
    options: Options, folder: Path, host: str, port: int, names: tuple[str, ...], upload: bool, tokens: tuple[str, ...]
) -> None:
    """Serve a registry over HTTP until it is interrupted."""
    import anyio
    import anyio.to_thread

    from dragoman_registry.publisher.serve import is_loopback, root_digest, serving

    if upload != bool(tokens):
        hint = "dragoman registry serve FOLDER --upload --token me=file:token.txt"
        raise ConfigurationError("uploads need --upload and at least one --token", hint=hint)
    tokens_by_name = await anyio.to_thread.run_sync(_tokens, tokens)
    if not is_loopback(host):
        say(f"warning: everyone who reaches {host} can read this registry, and tokens travel unencrypted")
    heard = options.listener()
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with serving(folder, host=host, port=port, names=names, tokens=tokens_by_name, on_event=heard) as url:
            _tell(options, folder, url, upload=upload, root=await anyio.to_thread.run_sync(root_digest, folder))
            async for _ in signals:
                break
    options.say("ended")


def _tokens(arguments: tuple[str, ...]) -> Mapping[str, str]:
    """Read the tokens: name → token."""
    from dragoman.connections.secrets import resolve
    from dragoman.references import typed

    tokens = dict[str, str]()
    for argument in arguments:
        name, _, where = argument.partition("=")
        if not name or (reference := typed(where)) is None:
            # Do not show the value: it may be the token itself.
            hint = "--token me=file:token.txt"
            raise ConfigurationError("a --token does not say where the token is kept", hint=hint)
        tokens[name] = resolve(reference, where=f"the token of {name}")
        if len(tokens[name]) < SHORTEST:
            make = "python -c 'import secrets; print(secrets.token_urlsafe())'"
            raise ConfigurationError(f"the token of {name} is shorter than {SHORTEST} characters", hint=make)
    return tokens


def _tell(options: Options, folder: Path, url: str, *, upload: bool, root: str) -> None:
    simple, address = f"{url}/targets/simple/", f"{url}/upload" if upload else None
    rows = [
        ["serving", f"{folder} at {url}/"],
        ["dragoman", f"dragoman registry add {url} --root {root}"],
        ["pip, uv", f"{simple} is the index"],
    ]
    if address:
        rows += [
            ["twine", f"--repository-url {address} --username __token__"],
            ["uv publish", f"--publish-url {address}"],
        ]
    options.listing({"url": url, "root": root, "simple": simple, "upload": address}, [], rows)
    sys.stdout.flush()


@registry.command("inbox")
@FOLDER
@click.option("--drop", metavar="FILE", help="Discard a waiting wheel.")
@click.pass_obj
def inbox(options: Options, folder: Path, drop: str | None) -> None:
    """List the uploaded wheels that wait: their sender, age, and reason."""
    from dragoman_registry.publisher.inbox import RETENTION, Inbox

    box = Inbox(folder)
    if drop is not None:
        gone = box.drop(drop)
        options.result({"dropped": gone or {"file": drop}}, f"dropped {drop}")
        return
    for upload in box.sweep():
        options.say(f"dropped {upload.file}: it is published, or waited more than {RETENTION.days} days")
    waiting, faults, signed = box.waiting(), box.faults(), box.signed()
    for_what = {upload.file: [f"{fault.code}: {fault.reason}" for fault in faults[upload.file]] for upload in waiting}
    for file, reasons in for_what.items():
        reasons.append(f"dragoman registry accept {folder}" if file in signed else "the author's signature")
    rows = [
        [upload.file, show_size(upload.size), upload.publisher, _age(upload.at), "; ".join(for_what[upload.file])]
        for upload in waiting
    ]
    document = [
        {
            "upload": upload,
            "path": str(box.path(upload)),
            "faults": faults[upload.file],
            "signed": signed.get(upload.file),
        }
        for upload in waiting
    ]
    damaged = box.damaged()
    head = ["FILE", "SIZE", "FROM", "AGE", "WAITS FOR"]
    options.listing({"waiting": document, "damaged": damaged}, head, rows, nothing="No waiting wheels.")
    for fault in damaged if not options.json else ():
        options.say(f"{fault.reason}; to throw it away: dragoman registry inbox {folder} --drop {fault.where}")


def _age(since: datetime) -> str:
    age = datetime.now(UTC) - since
    return f"{age.days} d" if age.days else f"{age.seconds // 3600} h {age.seconds % 3600 // 60} min"
