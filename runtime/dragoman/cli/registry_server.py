"""Commands that serve a registry over HTTP, and list uploads to it."""

from __future__ import annotations

import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .global_options import Command
from .output import say, show_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .options import Options

FOLDER = click.argument("folder", type=click.Path(path_type=Path))
SHORTEST = 16
"""Minimum length of a token."""


@click.command("serve", cls=Command)
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
    options: Options,
    folder: Path,
    host: str,
    port: int,
    names: tuple[str, ...],
    upload: bool,
    tokens: tuple[str, ...],
) -> None:
    """Serve a registry over HTTP until it is interrupted."""
    import anyio

    from dragoman_api.errors import ConfigurationError
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
    from dragoman.secret_references import resolve, typed
    from dragoman_api.errors import ConfigurationError

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


@click.command("inbox", cls=Command)
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
