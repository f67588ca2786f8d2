"""The workbench over the samples of the drivers, in a home of its own that is removed at the end."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import aclosing
from pathlib import Path

import anyio

from dragoman import Runtime, SavedConnection

from . import sample_cluster, sample_metrics, sample_vectors

SAMPLES = {"shop": "elasticsearch", "search": "opensearch", "library": "weaviate", "metrics": "prometheus"}
"""Connections and their drivers: those whose servers have a fake."""


async def _main(options: argparse.Namespace) -> int:
    status = 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_on_sigterm, tasks.cancel_scope)
        status = await _serve(options)
        tasks.cancel_scope.cancel()
    return status


async def _cancel_on_sigterm(scope: anyio.CancelScope) -> None:
    """End as Ctrl-C does: without a handler, SIGTERM would leave the workbench behind."""
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


async def _serve(options: argparse.Namespace) -> int:
    async with (
        aclosing(sample_cluster.serve("8.19.21")) as cluster,
        aclosing(sample_cluster.serve("opensearch 3.9.0")) as fork,
        aclosing(sample_vectors.serve()) as vectors,
        aclosing(sample_metrics.serve()) as metrics,
    ):
        ports = {
            "elasticsearch": await anext(cluster),
            "opensearch": await anext(fork),
            "weaviate": await anext(vectors),
            "prometheus": await anext(metrics),
        }
        with tempfile.TemporaryDirectory(prefix="dragoman-workbench-") as folder:
            home = Path(folder) / "home"
            async with Runtime(home, spare=False) as runtime:
                for name, kind in SAMPLES.items():
                    values = {"host": "127.0.0.1", "port": ports[kind], "auth_method": "none"}
                    await runtime.save(SavedConnection(name=name, type=kind, values=values))
            words = [sys.executable, "-m", "dragoman", "workbench", "shop", "--port", str(options.port)]
            words += ["--export-to", folder] + (["--no-browser"] if options.no_browser else [])
            process = await anyio.open_process(
                words,
                env={**os.environ, "DRAGOMAN_HOME": str(home)},
                stdin=subprocess.DEVNULL,
                stdout=None,
                stderr=None,
            )
            try:
                return await process.wait()
            finally:
                with anyio.CancelScope(shield=True):
                    if process.returncode is None:
                        process.terminate()
                    await process.wait()


def main() -> int:
    """Parse the arguments and serve."""
    parser = argparse.ArgumentParser(prog="workbench", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 for a free one (default)")
    parser.add_argument("--no-browser", action="store_true", help="print the address instead")
    try:
        return anyio.run(_main, parser.parse_args())
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
