"""`make demo`: the whole story on a sample cluster, or on a real one that DRAGOMAN_DEMO_URL names.

Every step runs the command that it prints, in a temporary home folder; the demo leaves nothing behind.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from dragoman_sample import servers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import Process

COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ
BOLD, DIM, OFF = ("\x1b[1m", "\x1b[2m", "\x1b[0m") if COLOUR else ("", "", "")
END_SECONDS = 10.0
REAL_PREFIX = "dragoman-demo-"


@dataclass(frozen=True)
class Cluster:
    """The cluster of the story: address, credentials, and a prefix of the names of its indices."""

    host: str
    port: int
    https: bool
    user: str
    password: str
    prefix: str
    what: str


@asynccontextmanager
async def fake_cluster() -> AsyncIterator[Cluster]:
    """Serve the sample cluster on a free port."""
    async with servers.serving_bookshop(9200) as port:
        what = "a sample cluster on this machine"
        yield Cluster("127.0.0.1", port, https=False, user="", password="", prefix="", what=what)


@asynccontextmanager
async def real_cluster(url: str) -> AsyncIterator[Cluster]:
    """Load the sample into a real cluster, and remove it afterwards."""
    parts = urlsplit(url)
    await servers.load(url, prefix=REAL_PREFIX, verify=False)
    try:
        https = parts.scheme == "https"
        port = parts.port or (443 if https else 80)
        names = (parts.username or "", parts.password or "", REAL_PREFIX, f"the cluster at {parts.hostname}:{port}")
        yield Cluster(parts.hostname or "localhost", port, https, *names)
    finally:
        with anyio.CancelScope(shield=True):
            await servers.remove(url, prefix=REAL_PREFIX, verify=False)


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
        """Write the connections file that a person would bring along."""
        lines = ["[shop]", 'type = "elasticsearch"', f'host = "{cluster.host}"', f"port = {cluster.port}"]
        if cluster.https:
            lines.append('ssl_mode = "required-skip-verify"')
        if cluster.user:
            user, password = f'username = "{cluster.user}"', 'password = { env = "DEMO_PASSWORD" }'
            lines += ['auth_method = "username-password"', user, password]
        file = self._folder / "home/config/connections.toml"
        file.parent.mkdir(parents=True)
        file.write_text("\n".join(lines) + "\n")

    async def tell(self, text: str, command: str, *, status: int = 0) -> None:
        """Say what happens, show the command and run it; an unexpected exit status ends the demo."""
        self._step += 1
        print(f"\n{BOLD}{self._step}. {textwrap.fill(text, 110, subsequent_indent='   ')}{OFF}")
        print(f"{DIM}${OFF} {BOLD}{command}{OFF}", flush=True)

        streams = {"stdin": subprocess.DEVNULL, "stdout": None, "stderr": None}
        process = await anyio.open_process(shlex.split(command), env=self._environment, cwd=self._folder, **streams)
        try:
            code = await process.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await end(process)
        if code != status:
            raise SystemExit(f"the demo stopped: exit status {status} was expected, and this command ended with {code}")


async def end(process: Process) -> None:
    """End a running command, which ends its own processes."""
    if process.returncode is None:
        process.terminate()
        with anyio.move_on_after(END_SECONDS):
            await process.wait()
    await process.aclose()  # kills a process that does not end


async def tell_story(folder: Path, cluster: Cluster) -> None:
    """Run every step of the story."""
    story, books, orders = Story(folder, cluster), f"{cluster.prefix}books", f"{cluster.prefix}orders"
    print(f"dragoman {BOLD}walks through its story{OFF} on {cluster.what}, in its own home: {folder / 'home'}")
    await story.tell("The registries offer these drivers. None is installed yet.", "dragoman plugins browse")
    story.save_connection(cluster)
    await story.tell(
        "A saved connection is a few lines of text. A new machine needs only its connections.toml.",
        "cat home/config/connections.toml",
    )
    await story.tell(
        "Opening the connection is enough. Its driver is missing, so dragoman fetches it from the local registry, "
        "checks it, starts it once in its sandbox, and lists the objects.",
        "dragoman objects shop",
    )
    await story.tell(
        "The grid shows a page.", f"dragoman page shop {books} --limit 5 --columns _id,title,author.name,price,in_stock"
    )
    await story.tell(
        "A page can have a filter and a sort. The leaf column of a nested array has one entry per item.",
        f"dragoman page shop {orders} --filter 'total >= 100' --sort -total --limit 5 "
        "--columns _id,total,customer.name,items.sku",
    )
    await story.tell(
        "--explain shows what is sent for each filter row. These two rows must hold for the same element of an array.",
        f"dragoman page shop {orders} --filter 'items.sku = A-17 @1' --filter 'items.qty > 2 @1' --explain --limit 3 "
        "--columns _id,items.sku,items.qty",
    )
    await story.tell(
        "A filter that cannot run is refused. Nothing is sent, and a filter never returns more than it says.",
        f"dragoman page shop {orders} --filter 'items contains A'",
        status=1,
    )
    await story.tell(
        "Every change has a preview that shows the exact request.",
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
    await story.tell("dragoman doctor says whether everything is in order.", "dragoman doctor")


async def main() -> int:
    """Tell the story until it ends or is interrupted, and return the exit code."""
    number, stopped = 0, list[SystemExit]()
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async with anyio.create_task_group() as tasks:

            async def story() -> None:
                try:
                    await tell()
                except SystemExit as error:  # a task group would wrap it
                    stopped.append(error)
                tasks.cancel_scope.cancel()

            tasks.start_soon(story)
            number = await anext(signals)
            tasks.cancel_scope.cancel()
    for error in stopped:
        raise error
    return 128 + number if number else 0


async def tell() -> None:
    """Tell the story in a temporary folder."""
    began = time.monotonic()
    url = os.environ.get("DRAGOMAN_DEMO_URL")
    async with AsyncExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="dragoman-demo-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(temporary))
        cluster = await stack.enter_async_context(real_cluster(url) if url else fake_cluster())
        await tell_story(folder, cluster)
    print(f"\n{BOLD}The demo took {time.monotonic() - began:.0f} s and left no process running.{OFF}")
    print("To look at it:  make workbench   (grid and console in a browser)")
    print("To try it:      make sample   (in one terminal)   source .venv/bin/activate; dragoman connections add shop")


if __name__ == "__main__":
    try:
        sys.exit(anyio.run(main))
    except KeyboardInterrupt:
        sys.exit(130)
