"""Serve a fake cluster until interrupted: `python -m fakes.elasticsearch --port 9200`."""

from __future__ import annotations

import argparse

import anyio

from fakes.elasticsearch import FakeElasticsearch


async def _serve(version: str, port: int) -> None:
    async with FakeElasticsearch(version=version, port=port) as server:
        print(server.url, flush=True)
        await anyio.sleep_forever()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(prog="fakes.elasticsearch", description=__doc__)
    parser.add_argument("--version", default="8.19.21", help="the release to be (default: %(default)s)")
    parser.add_argument("--port", type=int, default=9200, help="0 for any free port (default: %(default)s)")
    options = parser.parse_args()
    try:
        anyio.run(lambda: _serve(options.version, options.port))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
