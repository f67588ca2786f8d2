"""The main job of an installed dragoman, done by its own program: connect, page, filter, edit, export.

Whoever installs it differently calls `do` with the program that came of it: other versions, other tools, another user.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECONDS = 90
ORDERS = 12_003
"""Rows of the sample's largest object."""
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "smoke", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
SCRIPT = """
import dragoman
shop = dragoman.connect("shop")  # it closes with the interpreter
print(len(shop.rows("books").page(limit=7).rows))
"""
FRAMES = """
import dragoman, dragoman_dask
with dragoman.connect("shop") as shop:
    print(len(dragoman_dask.read(shop.rows("books"), parts=2).compute(scheduler="sync")))
"""


class JobError(Exception):
    """The installed program did something else than its job."""


@dataclass(frozen=True)
class Installed:
    """An installed dragoman.

    Attributes:
        program: Its command.
        folder: Where it works; its home is in it.
        port: Of the sample cluster.
        become: Words before each command, which make it another user's.
        environment: All variables that it sees besides its home.
    """

    program: Path
    folder: Path
    port: int
    become: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: {"PATH": os.environ["PATH"]})

    @property
    def variables(self) -> dict[str, str]:
        """The environment of its commands."""
        home = {"HOME": str(self.folder), "DRAGOMAN_HOME": str(self.folder / "dragoman")}
        return {"LANG": "C.UTF-8", **self.environment, **home}

    @property
    def python(self) -> Path:
        """The interpreter that runs it."""
        return self.program.resolve().with_name("python")

    def run(self, *words: str, code: int = 0, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command of it. Raises JobError where it ends otherwise than it should."""
        return self.run_program(self.program, *words, code=code, given=given)

    def run_program(
        self, program: Path, *words: str, code: int = 0, given: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run another program in its folder and environment."""
        command = [*self.become, str(program), *words]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.variables,
            input=given,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode != code or "Traceback" in done.stderr:
            text = f"{' '.join(words)} ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
            raise JobError(text)
        return done


def require(truth: object, what: str) -> None:
    """Raise JobError unless something holds."""
    if not truth:
        raise JobError(what)


def connect_page_edit_export(installed: Installed) -> None:
    """Do the main job: the driver installs itself; a page, a filter, a refusal, an edit, an export."""
    where = ["--type", "elasticsearch", "--host", "127.0.0.1", "--port", str(installed.port), "--auth", "none"]
    added = installed.run("connections", "add", "shop", *where, "--yes")
    require("connected: Elasticsearch" in added.stdout + added.stderr, f"not connected: {added}")
    page = json.loads(
        installed.run("page", "shop", "orders", "--filter", "total >= 100", "--limit", "3", "--json").stdout
    )
    totals = [float(row["total"]) for row in page["rows"]]
    require(len(totals) == 3 and min(totals) >= 100, f"other rows than the filter selects: {totals}")
    refused = installed.run("page", "shop", "orders", "--filter", "items contains A", code=1)
    require("error[filter-not-supported]" in refused.stderr, f"not refused: {refused}")
    usage = installed.run("page", "shop", "--no-such-option", code=2)
    require("no-such-option" in usage.stderr, f"no usage error: {usage}")
    installed.run("update", "shop", "books", "17", "--set", "price=12.5")
    book = json.loads(installed.run("page", "shop", "books", "--filter", "_id = 17", "--json").stdout)
    require([float(row["price"]) for row in book["rows"]] == [12.5], f"not edited: {book['rows']}")
    installed.run("export", "shop", "orders", "-o", "orders.ndjson")
    count = len((installed.folder / "orders.ndjson").read_bytes().splitlines())
    require(count == ORDERS, f"exported {count} rows")
    script = installed.run_program(installed.python, "-c", SCRIPT)
    require(script.stdout.split() == ["7"], f"a script saw other rows: {script.stdout}")


def serve_the_page(installed: Installed) -> None:
    """Start the workbench, and ask it for its page."""
    command = [*installed.become, str(installed.program), "workbench", "--no-browser"]
    with subprocess.Popen(
        command,
        cwd=installed.folder,
        env={**installed.variables, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        assert server.stdout
        try:
            lines = []
            for line in server.stdout:
                lines.append(line)
                if address := re.search(r"http://127\.0\.0\.1:\d+/\S*", line):
                    break
            else:
                raise JobError(f"the workbench said no address: {lines}")
            with urllib.request.urlopen(address[0], timeout=30) as answer:
                require(b"<script" in (page := answer.read()), f"no page: {page[:500]!r}")
        finally:
            server.terminate()


def serve_agents(installed: Installed) -> None:
    """Speak with the server for agents on its standard streams."""
    command = [*installed.become, str(installed.program), "mcp", "--connection", "shop"]
    with subprocess.Popen(
        command,
        cwd=installed.folder,
        env=installed.variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write("".join(f"{json.dumps(line)}\n" for line in (HELLO, READY, LIST)))
        server.stdin.flush()
        for line in server.stdout:  # closing its input earlier would end it before it answers
            if (answer := json.loads(line)).get("id") == LIST["id"]:
                break
        else:
            raise JobError("the server for agents ended without an answer")
    tools = [tool["name"] for tool in answer["result"]["tools"]]
    require(len(tools) > 3, f"tools for agents: {tools}")


def export_parts(installed: Installed) -> None:
    """Export in parts, and compute a dataframe."""
    installed.run("export", "shop", "orders", "--parts", "2", "-o", "parts")
    files = [*(installed.folder / "parts").glob("*.ndjson")]
    count = sum(len(file.read_bytes().splitlines()) for file in files)
    require(count == ORDERS, f"exported {count} rows in {len(files)} parts")
    read = installed.run_program(installed.python, "-c", FRAMES)
    require(read.stdout.split() == ["480"], f"a dataframe of other rows: {read.stdout}")


def export_on_a_cluster(installed: Installed) -> None:
    """Let the processes of a local Dask cluster export."""
    cluster = ["--cluster", "local", "--workers", "1"]
    installed.run("export", "shop", "orders", "--parts", "2", *cluster, "-o", "on-cluster")


def write_tables(installed: Installed) -> None:
    """Export a Parquet file."""
    installed.run("export", "shop", "orders", "-o", "orders.parquet")
    require((installed.folder / "orders.parquet").read_bytes().startswith(b"PAR1"), "no Parquet file")


def compress(installed: Installed) -> None:
    """Export a file compressed with zstd."""
    installed.run("export", "shop", "orders", "-o", "orders.ndjson.zst")
    require((installed.folder / "orders.ndjson.zst").read_bytes().startswith(b"\x28\xb5\x2f\xfd"), "no zstd file")


def author_a_driver(installed: Installed) -> None:
    """Write, test and publish a driver, as an author does, and install it from the registry, as others do."""
    installed.run("driver", "new", "acme", "--port", "7700")
    author = Installed(installed.program, installed.folder / "dragoman-acme", installed.port, installed.become)
    author.run("driver", "test")
    author.run("driver", "key", "../me.pem")
    author.run("registry", "init", "../team")
    bound = ["--project", "dragoman-acme", "--type", "acme"]
    author.run("registry", "add-publisher", "../team", "me", "--key", "../me.pub", *bound)
    author.run("driver", "publish", "--to", "../team", "--sign", "../me.pem")
    author.run("registry", "accept", "../team")
    installed.run("registry", "add", "team")
    installed.run("plugins", "install", "acme", "--yes")


def trace(installed: Installed) -> None:
    """Run a command with the automation that makes spans."""
    (installed.folder / "dragoman/config/config.toml").write_text('automations = ["otel"]\n')
    installed.run("count", "shop", "orders")


EXTRAS: dict[str, Callable[[Installed], None]] = {
    "workbench": serve_the_page,
    "mcp": serve_agents,
    "dask": export_parts,
    "cluster": export_on_a_cluster,
    "arrow": write_tables,
    "zstd": compress,
    "author": author_a_driver,
    "otel": trace,
}
"""What each extra adds to the job; `dask` is the distribution of that name, which
`cluster` also is."""


def do(installed: Installed, extras: Sequence[str] = ()) -> None:
    """Do the main job and what some extras add. Raises JobError at the first thing that fails."""
    connect_page_edit_export(installed)
    for extra in extras:
        EXTRAS[extra](installed)


@contextmanager
def sample_cluster() -> Iterator[int]:
    """Serve the sample cluster in a process of its own, and yield its port."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests/support")])}
    command = [sys.executable, "-m", "dragoman", "sample", "shop", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as server:
        try:
            assert server.stdout
            yield json.loads(server.stdout.readline())["samples"][0]["port"]
        finally:
            server.kill()  # it keeps nothing; `tests/fakes/test_samples.py` holds that it ends when it is asked to
