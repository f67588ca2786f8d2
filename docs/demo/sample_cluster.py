"""The sample cluster: load the bookshop into any cluster, or serve it from a fake cluster until interrupted."""

from __future__ import annotations

import argparse
import base64
import json
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import anyio
from yarl import URL

from . import bookshop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NAMES = ("books", "orders")
FAKES = str(Path(__file__).parents[2] / "tests/support")


async def load(url: str, *, prefix: str = "", verify: bool = True) -> list[str]:
    """Create `books` and `orders` in a cluster and fill them.

    Args:
        url: address of the cluster, with user name and password if it requires them.
        prefix: put before both names; existing indices are never changed.
        verify: whether the server's certificate is checked.

    Returns:
        The names of the indices.

    Raises:
        RuntimeError: if the cluster refuses; the indices created until then are removed.
    """
    created: list[str] = []
    async with _session(url, verify=verify) as session:
        try:
            for name in NAMES:
                await _load_one(session, name, prefix + name, created)
        except BaseException:
            with anyio.CancelScope(shield=True):
                for index in created:
                    await _send(session, "DELETE", f"/{index}")
            raise
    return created


async def _load_one(session: aiohttp.ClientSession, name: str, index: str, created: list[str]) -> None:
    settings = {"number_of_shards": bookshop.SHARDS[name], "number_of_replicas": 0}
    body = {"settings": settings, "mappings": {"properties": bookshop.MAPPINGS[name]}}
    await _send(session, "PUT", f"/{index}", json.dumps(body).encode())
    created.append(index)
    for part in bookshop.bulk_bodies(name):
        answer = await _send(session, "POST", f"/{index}/_bulk", part, "application/x-ndjson")
        if answer["errors"]:
            first = next(item for item in answer["items"] if "error" in next(iter(item.values())))
            raise RuntimeError(f"the cluster refused a document of {index}: {first}")
    await _send(session, "POST", f"/{index}/_refresh")


async def remove(url: str, *, prefix: str = "", verify: bool = True) -> None:
    """Delete the two indices that `load` created under this prefix."""
    async with _session(url, verify=verify) as session:
        for name in NAMES:
            await _send(session, "DELETE", f"/{prefix}{name}")


def _session(url: str, *, verify: bool) -> aiohttp.ClientSession:
    address = URL(url)
    headers = {}
    if address.user is not None:
        pair = f"{address.user}:{address.password or ''}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    connector = aiohttp.TCPConnector(ssl=verify)
    timeout = aiohttp.ClientTimeout(total=120)
    return aiohttp.ClientSession(address.with_user(None), headers=headers, connector=connector, timeout=timeout)


async def _send(
    session: aiohttp.ClientSession, method: str, path: str, body: bytes | None = None, media: str = "application/json"
) -> Any:
    headers = {"Content-Type": media} if body is not None else {}
    async with session.request(method, path, data=body, headers=headers) as response:
        answer = await response.json()
        if response.status >= 300:
            raise RuntimeError(f"{method} {path} was answered {response.status}: {answer['error']}")
        return answer


def free_port(wanted: int) -> int:
    """Return the wanted port, or the next free one; 0 stays 0."""
    for port in range(wanted, wanted + 100) if wanted else ():
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    return 0


async def serve(version: str, port: int = 0) -> AsyncIterator[int]:
    """Serve the sample; yield the port once it is loaded, and serve until the iterator is closed.

    Args:
        version: Of Elasticsearch; of OpenSearch after its name and a blank.
        port: The port; 0 for a free one.
    """
    if FAKES not in sys.path:
        sys.path.append(FAKES)
    from fakes.elasticsearch import FakeElasticsearch

    product, _, number = version.rpartition(" ")
    async with FakeElasticsearch(port=port, **{product or "version": number}) as server:
        await load(server.url)
        server.requests.clear()
        yield server.port


async def _main(options: argparse.Namespace) -> None:
    async for port in serve(options.version, free_port(options.port)):
        if options.json:
            print(json.dumps({"port": port, "url": f"http://127.0.0.1:{port}"}), flush=True)
        else:
            print(_WELCOME.format(version=options.version, port=port), flush=True)
        await anyio.sleep_forever()


_WELCOME = """sample cluster (Elasticsearch {version}, books and orders): http://127.0.0.1:{port}   Ctrl-C stops it

  dragoman connections add shop --type elasticsearch --host 127.0.0.1 --port {port} --auth-method none --yes
  dragoman objects shop
  dragoman page shop orders --filter 'total >= 100' --sort -total --limit 2 --columns _id,total,items.sku"""


def main() -> None:
    """Parse the arguments and serve."""
    parser = argparse.ArgumentParser(prog="sample", description=__doc__)
    parser.add_argument("--port", type=int, default=9200, help="first port to try; 0 for any (default: %(default)s)")
    parser.add_argument("--version", default="8.19.21", help="the release to imitate (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the address as one JSON line")
    try:
        anyio.run(_main, parser.parse_args())
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
