"""`make demo`: the whole story on a sample cluster, or on a real one named by DRAGOMAN_DEMO_URL.

Every step runs the command it prints, in a home of its own; nothing is left behind.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import textwrap
import time
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from . import sample

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ
BOLD, DIM, OFF = ("\x1b[1m", "\x1b[2m", "\x1b[0m") if COLOUR else ("", "", "")
REAL_PREFIX = "dragoman-demo-"


@dataclass(frozen=True)
class Cluster:
    """Where the story happens: address, credentials, and what stands before the names of its indices."""

    host: str
    port: int
    https: bool
    user: str
    password: str
    prefix: str
    what: str


@asynccontextmanager
async def sample_cluster() -> AsyncIterator[Cluster]:
    async with aclosing(sample.serve("8.19.21", sample.free_port(9200))) as ports:
        async for port in ports:
            yield Cluster("127.0.0.1", port, False, "", "", "", "a sample cluster on this machine")
            return


@asynccontextmanager
async def real_cluster(url: str) -> AsyncIterator[Cluster]:
    parts = urlsplit(url)
    await sample.load(url, prefix=REAL_PREFIX, verify=False)
    try:
        https = parts.scheme == "https"
        port = parts.port or (443 if https else 80)
        names = (parts.username or "", parts.password or "", REAL_PREFIX, f"the cluster at {parts.hostname}:{port}")
        yield Cluster(parts.hostname or "localhost", port, https, *names)
    finally:
        with anyio.CancelScope(shield=True):
            await sample.remove(url, prefix=REAL_PREFIX, verify=False)


class Story:
    """Tells a step and runs the command a person would type for it."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self._folder = folder
        self._step = 0
        self._environment = {
            **os.environ,
            "DRAGOMAN_HOME": str(folder / "home"),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
            "DEMO_PASSWORD": cluster.password,
        }

    def save_connection(self, cluster: Cluster) -> None:
        """Write the file that a person would bring along."""
        lines = ["[shop]", 'type = "elasticsearch"', f'host = "{cluster.host}"', f"port = {cluster.port}"]
        if cluster.https:
            lines.append('ssl_mode = "required-skip-verify"')
        if cluster.user:
            user, password = f'username = "{cluster.user}"', 'password = "env:DEMO_PASSWORD"'
            lines += ['auth_method = "username-password"', user, password]
        file = self._folder / "home/config/connections.toml"
        file.parent.mkdir(parents=True)
        file.write_text("\n".join(lines) + "\n")

    async def tell(self, text: str, command: str, *, status: int = 0) -> None:
        """Say what happens, show the command, run it; another exit status than the expected one ends the demo."""
        self._step += 1
        print(f"\n{BOLD}{self._step}. {textwrap.fill(text, 110, subsequent_indent='   ')}{OFF}")
        print(f"{DIM}${OFF} {BOLD}{command}{OFF}", flush=True)

        def run() -> int:
            words = shlex.split(command)
            return subprocess.run(words, env=self._environment, cwd=self._folder, stdin=subprocess.DEVNULL).returncode

        code = await anyio.to_thread.run_sync(run)
        if code != status:
            raise SystemExit(f"the demo stopped: this command was to end with {status} and ended with {code}")


async def tell_story(folder: Path, cluster: Cluster) -> None:
    story, books, orders = Story(folder, cluster), f"{cluster.prefix}books", f"{cluster.prefix}orders"
    print(f"dragoman {BOLD}walks through its story{OFF} on {cluster.what}, in a home of its own: {folder / 'home'}")
    await story.tell("Which drivers are there? None is installed yet.", "dragoman plugins browse")
    story.save_connection(cluster)
    await story.tell(
        "A saved connection is only a few lines of text, as on a new machine that was given its connections.toml.",
        "cat home/config/connections.toml",
    )
    await story.tell(
        "Opening it is enough: its driver is missing, arrives from the local registry, is checked, started once in "
        "its sandbox, and answers.",
        "dragoman objects shop",
    )
    await story.tell(
        "A page of the grid.", f"dragoman page shop {books} --limit 5 --columns _id,title,author.name,price,in_stock"
    )
    await story.tell(
        "A filter and a sort; the leaf of a nested array has one entry per item.",
        f"dragoman page shop {orders} --filter 'total >= 100' --sort -total --limit 5 "
        "--columns _id,total,customer.name,items.sku",
    )
    await story.tell(
        "What is sent for a filter, row by row: two rows on the same element of an array.",
        f"dragoman page shop {orders} --filter 'items.sku = A-17 @1' --filter 'items.qty > 2 @1' --explain --limit 3 "
        "--columns _id,items.sku,items.qty",
    )
    await story.tell(
        "A filter that cannot run is refused; nothing is sent and nothing is widened.",
        f"dragoman page shop {orders} --filter 'items contains A'",
        status=1,
    )
    await story.tell(
        "Every change can be seen as the exact request first.",
        f"dragoman update shop {books} 17 --set price=12.5 --dry-run",
    )
    await story.tell(
        "The console speaks the server's own language.",
        f"dragoman console shop 'GET /_cat/indices/{cluster.prefix}*?format=json&h=index,docs.count,store.size'",
    )
    await story.tell(
        "An export streams in constant memory; the file appears only when it is complete.",
        f"dragoman export shop {orders} -o orders.ndjson",
    )
    await story.tell("Is everything in order here?", "dragoman doctor")


async def main() -> None:
    began = time.monotonic()
    url = os.environ.get("DRAGOMAN_DEMO_URL")
    async with AsyncExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="dragoman-demo-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(temporary))
        cluster = await stack.enter_async_context(real_cluster(url) if url else sample_cluster())
        await tell_story(folder, cluster)
    print(f"\n{BOLD}That was all, in {time.monotonic() - began:.0f} s; nothing is left running.{OFF}")
    print("To play with it:  make sample  (in one terminal)   source .venv/bin/activate; dragoman connections add shop")


if __name__ == "__main__":
    try:
        anyio.run(main)
    except KeyboardInterrupt:
        sys.exit(130)
