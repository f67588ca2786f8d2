"""Serving a registry over HTTP, and what was uploaded to it."""

from __future__ import annotations

import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import Command, Options
from .output import say, show_size

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = click.argument("folder", type=click.Path(path_type=Path))
SHORTEST = 16
"""Characters of a token at least."""


@click.command("serve", cls=Command)
@FOLDER
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; this machine alone.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0 takes a free one.")
@click.option("--upload", is_flag=True, help="Take uploads of twine and uv into an inbox beside the folder.")
@click.option(
    "--token",
    "tokens",
    multiple=True,
    metavar="NAME=REFERENCE",
    help="Who may upload, and where the token is kept: file:PATH, env:NAME, command:… or keyring:…. Repeatable.",
)
@click.pass_obj
async def serve(options: Options, folder: Path, host: str, port: int, upload: bool, tokens: tuple[str, ...]) -> None:
    """Serve a registry over HTTP until it is interrupted."""
    import anyio

    from dragoman_api.errors import ConfigurationError
    from dragoman_registry.serving import root_digest, serving

    if upload != bool(tokens):
        hint = "dragoman registry serve FOLDER --upload --token me=file:token.txt"
        raise ConfigurationError("uploads need --upload and at least one --token", hint=hint)
    known = await anyio.to_thread.run_sync(_tokens, options, tokens)
    if not _loopback(host):
        say(f"warning: everybody who reaches {host} can read this registry, and tokens travel unencrypted")
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with serving(folder, host=host, port=port, tokens=known, on_event=options.listener()) as url:
            _tell(options, folder, url, upload=upload, root=await anyio.to_thread.run_sync(root_digest, folder))
            async for _ in signals:
                break
    options.say("ended")


def _tokens(options: Options, given: tuple[str, ...]) -> Mapping[str, str]:
    """Read the tokens: name → token."""
    from dragoman.connections import Connections
    from dragoman_api.errors import ConfigurationError

    found, connections = dict[str, str](), Connections(options.paths())
    for each in given:
        name, _, reference = each.partition("=")
        if not name or reference.partition(":")[0] not in ("env", "file", "command", "keyring"):
            # What stands there may be the token itself.
            hint = "--token me=file:token.txt"
            raise ConfigurationError("a --token names no place where the token is kept", hint=hint)
        found[name] = connections.resolve_secret(reference, field="token", connection=name)
        if len(found[name]) < SHORTEST:
            make = "python -c 'import secrets; print(secrets.token_urlsafe())'"
            raise ConfigurationError(f"the token of {name} is shorter than {SHORTEST} characters", hint=make)
    return found


def _loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


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


@click.command("inbox", cls=Command)
@FOLDER
@click.option("--drop", metavar="FILE", help="Throw a wheel that waits away.")
@click.pass_obj
def inbox(options: Options, folder: Path, drop: str | None) -> None:
    """List the wheels that were uploaded and wait: from whom, for how long, for what."""
    from dragoman_registry.inbox import RETENTION, Inbox

    box = Inbox(folder)
    if drop is not None:
        gone = box.drop(drop)
        options.result({"dropped": gone}, f"dropped {gone.file}")
        return
    for each in box.sweep():
        options.say(f"dropped {each.file}: it is published, or waited more than {RETENTION.days} days")
    waiting, faults, signed = box.waiting(), box.faults(), box.signed()
    for_what = {each.file: [f"{fault.code}: {fault.reason}" for fault in faults[each.file]] for each in waiting}
    for file, reasons in for_what.items():
        reasons.append(f"dragoman registry accept {folder}" if file in signed else "the author's signature")
    rows = [
        [each.file, show_size(each.size), each.publisher, _age(each.at), "; ".join(for_what[each.file])]
        for each in waiting
    ]
    document = [
        {"upload": each, "path": str(box.path(each)), "faults": faults[each.file], "signed": signed.get(each.file)}
        for each in waiting
    ]
    options.listing({"waiting": document}, ["FILE", "SIZE", "FROM", "AGE", "WAITS FOR"], rows, nothing="nothing waits")


def _age(since: datetime) -> str:
    age = datetime.now(UTC) - since
    return f"{age.days} d" if age.days else f"{age.seconds // 3600} h {age.seconds % 3600 // 60} min"
