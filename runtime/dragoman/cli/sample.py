"""The command that serves sample databases, for somebody who has no server to try."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from .command_files import load_distribution
from .options import Command
from .output import write_json, write_text
from .streams import told_to_end

if TYPE_CHECKING:
    from .options import Options

PACKAGE = "dragoman_sample"
"""A wheel of its own, which this command needs and nothing else imports."""


@click.command("sample", cls=Command)
@click.argument("names", metavar="[NAME]...", nargs=-1, type=click.Choice(["shop", "library", "metrics"]))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The first port to try; 0 picks free ones. By default each sample has the usual port of its server.",
)
@click.pass_obj
async def sample(options: Options, *, names: tuple[str, ...], port: int | None) -> None:
    """Serve sample databases on this machine until Ctrl-C: a bookshop, a library with vectors, and metrics.

    They hold what was loaded at the start and what you change, and forget it at the end. The commands that it prints
    save a connection to each and read rows of it.
    """
    servers = load_servers()
    options.say("loading the samples …")
    async with servers.serving(names, port=port) as samples, told_to_end() as end:
        saved = _saved_places(options)
        documents = [_document(sample, saved) for sample in samples]
        if options.json:
            write_json({"samples": documents})
        else:
            for sample, document in zip(samples, documents, strict=True):
                lines = [f"{document['url']}  {sample.type}  {sample.holds}", *document["commands"]]
                write_text("\n  ".join(lines) + "\n")
        sys.stdout.flush()
        options.say("Type the commands in another terminal. Only this machine can reach the samples; Ctrl-C ends them.")
        await end()
    options.say("ended")


def load_servers() -> Any:
    """Return the module that serves samples. Raises ConfigurationError if its wheel is not installed."""
    return load_distribution(
        f"{PACKAGE}.servers", reason="the samples are not installed", requirement="dragoman[sample]"
    )


def _saved_places(options: Options) -> dict[str, tuple[Any, ...]]:
    """Return what saved connections lead to, by name."""
    from dragoman.settings import read_toml

    entries = read_toml(options.paths().connections)
    return {
        name: tuple(values.get(key) for key in ("type", "host", "port")) if isinstance(values, dict) else ()
        for name, values in entries.items()
    }


def _document(sample: Any, saved: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
    """Describe a sample with the commands that read it: a name that is taken is not used for it."""
    place = (sample.type, sample.host, sample.port)
    same = next((name for name, saved_place in saved.items() if saved_place == place), None)
    name = same or next(
        free
        for number in range(len(saved) + 1)
        if (free := f"{sample.name}{f'-sample-{number}' if number else ''}") not in saved
    )
    words = ["dragoman", "connections", "add", name, "--type", sample.type, "--host", sample.host]
    words += ["--port", str(sample.port), "--auth", "none", "--yes"]
    commands = [] if same else [shlex.join(words)]
    commands += [f"dragoman objects {shlex.quote(name)}", sample.read.format(name=shlex.quote(name))]
    url = f"http://{sample.host}:{sample.port}"
    return {"name": name, "type": sample.type, "port": sample.port, "url": url, "commands": commands}
