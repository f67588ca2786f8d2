"""The command that serves sample databases, for somebody who has no server to try."""

from __future__ import annotations

import re
import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from dragoman.connections.saved_connections import OBJECTS, QUERIES
from dragoman.settings import read_toml
from dragoman_api.errors import ConfigurationError

from .command_files import load_distribution
from .options import Command
from .output import write_json, write_text
from .streams import told_to_end

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .options import Options

PACKAGE = "dragoman_sample"
"""A wheel of its own, which this command needs and nothing else imports."""
USUAL_PORTS = (8080, 9090, 9200)
"""The ports that samples have by default."""

_SAVED = [{"host": "127.0.0.1", "auth_method": "none"} | security for security in ({}, {"ssl_mode": "disabled"})]
"""The fields of a saved sample beside its type and port, as the workbench and the command line write them."""
_HOST = r"(?:localhost|127(?:\.[0-9]+){1,3}|\[?::1\]?|0\.0\.0\.0)\.?"
_LOOPBACK = re.compile(_HOST, re.IGNORECASE)
_ADDRESS = re.compile(rf"(?i)(?<![\w.-]){_HOST}:([0-9]{{1,5}})(?![0-9])")


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
    entries = read_toml(options.paths().connections)
    expected = ports_led_to(entries)
    if port in expected:
        reason = f"connection {expected[port]!r} leads to port {port} of this machine; a sample would take the place"
        raise ConfigurationError(f"{reason} of its server", hint="choose another port, or leave --port out")
    options.say("loading the samples …")
    async with servers.serving(names, port=port, avoided=expected) as samples, told_to_end() as end:
        documents = [_document(sample, entries) for sample in samples]
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


def _is_sample(values: object) -> bool:
    """Whether a saved connection is what the printed commands save, and so leads to no other server."""
    if not isinstance(values, dict):
        return False
    fields = {key: value for key, value in values.items() if key not in (QUERIES, OBJECTS)}
    port, kind = fields.pop("port", None), fields.pop("type", None)
    return type(port) is int and isinstance(kind, str) and fields in _SAVED


def ports_led_to(entries: Mapping[str, Any]) -> dict[int, str]:
    """Return the ports of this machine at which connections expect servers of their own, each with one connection."""
    return {port: name for name, values in entries.items() if not _is_sample(values) for port in _ports(values)}


def _ports(values: object) -> Iterator[int]:
    """Find the ports of this machine in a table of a connection; one without a port may mean each of the usual ones."""
    if not isinstance(values, dict):
        return
    if _LOOPBACK.fullmatch(str(values.get("host", "localhost"))):
        port = str(values.get("port", ""))
        yield from [int(port)] if re.fullmatch(r"[0-9]{1,5}", port) else USUAL_PORTS
    for value in values.values():
        if isinstance(value, dict):
            yield from _ports({"host": "", **value})
        else:
            yield from map(int, _ADDRESS.findall(str(value)))


def _document(sample: Any, entries: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a sample with the commands that read it: a name that is taken is not used for it."""
    place = (sample.type, sample.port)
    same = next(
        (name for name, values in entries.items() if _is_sample(values) and (values["type"], values["port"]) == place),
        None,
    )
    name = same or next(
        free
        for number in range(len(entries) + 1)
        if (free := f"{sample.name}{f'-sample-{number}' if number else ''}") not in entries
    )
    words = ["dragoman", "connections", "add", name, "--type", sample.type, "--host", sample.host]
    words += ["--port", str(sample.port), "--auth", "none", "--yes"]
    commands = [] if same else [shlex.join(words)]
    commands += [f"dragoman objects {shlex.quote(name)}", sample.read.format(name=shlex.quote(name))]
    url = f"http://{sample.host}:{sample.port}"
    return {"name": name, "type": sample.type, "port": sample.port, "url": url, "commands": commands}
