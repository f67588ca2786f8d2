"""Serve a fake cluster until interrupted: `python -m fakes.elasticsearch --port 9200 --sample`."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

import anyio

from fakes.elasticsearch import FakeElasticsearch


async def _serve(version: str, port: int, *, sample: bool) -> None:
    async with FakeElasticsearch(version=version, port=port) as server:
        if sample:
            # The sample belongs to the tests, which are no package of their own.
            sys.path.append(str(Path(__file__).parents[3]))
            await importlib.import_module("demo.sample").load(server.url)
        print(server.url, flush=True)
        await anyio.sleep_forever()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(prog="fakes.elasticsearch", description=__doc__)
    parser.add_argument("--version", default="8.19.21", help="the release to be (default: %(default)s)")
    parser.add_argument("--port", type=int, default=9200, help="0 for any free port (default: %(default)s)")
    parser.add_argument("--sample", action="store_true", help="load the sample data first")
    options = parser.parse_args()
    try:
        anyio.run(lambda: _serve(options.version, options.port, sample=options.sample))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
