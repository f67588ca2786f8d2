"""What `dragoman mcp` adds: its start beside a bare server of the same library, and a read beside `Rows.page`.

Both sides run in turn, in one run: bench_mcp.py. The sample cluster is the server; ROUNDS says how often (9).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support")]

import anyio
from benchmarks.compare import introduce, measure, measure_async, report
from mcp import Client

from dragoman import Runtime, SavedConnection
from dragoman_mcp import schemas
from dragoman_mcp.answers import as_json, plain
from dragoman_mcp.serving import agent_server
from stranger import serve_sample

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUNDS = int(os.environ.get("ROUNDS", "9"))
LIMIT = 50
BARE = """
import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
import mcp_types as types

async def list_tools(context, params):
    return types.ListToolsResult(tools=[types.Tool(name="nothing", input_schema={"type": "object"})])

async def main():
    server = Server("bare", on_list_tools=list_tools)
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())

anyio.run(main)
"""
"""A server of the same library that does nothing else."""
MESSAGES = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


def list_tools(words: Sequence[str], home: Path) -> None:
    """Start a server on standard input and output, read its list of tools, and end it."""
    environment = {**os.environ, "DRAGOMAN_HOME": str(home)}
    with subprocess.Popen(
        [sys.executable, *words], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for message in MESSAGES:
            server.stdin.write(f"{json.dumps(message)}\n")
            server.stdin.flush()
            if "id" in message:
                answer = json.loads(server.stdout.readline())
        assert answer["result"]["tools"]
        server.stdin.close()


async def read(home: Path) -> None:
    """Read the same rows in four ways, in one process and with one driver each."""
    arguments = {"connection": "shop", "object": "orders", "limit": LIMIT}
    async with (
        Runtime(home, spare=False) as runtime,
        runtime.open("shop") as session,
        agent_server(home, connections=["shop"]) as agents,
        Client(agents.server) as client,
    ):
        call, helper = schemas.ReadRows(connection="shop", object="orders", limit=LIMIT), SimpleNamespace(remark=str)

        async def page() -> None:
            assert len((await session.rows("orders").page(limit=LIMIT)).cells) == LIMIT

        async def tool() -> None:
            as_json(plain(await agents._reader.read_rows(call, helper)))

        async def protocol() -> None:
            answer = await client.call_tool("read_rows", arguments)
            assert len(answer.structured_content["rows"]) == LIMIT, answer

        sides = {"Rows.page": page, "read_rows, without the protocol": tool, "read_rows, by a client": protocol}
        times = await measure_async(sides, rounds=10 * ROUNDS)
        report(f"{LIMIT} rows of the sample's orders", times, baseline="Rows.page", target="3 ms more")


async def prepare(home: Path, port: int) -> None:
    """Save the sample cluster as `shop`, and install its driver."""
    async with Runtime(home, spare=False) as runtime:
        await runtime.plugins.install("elasticsearch")
        values = {"host": "127.0.0.1", "port": port, "auth_method": "none"}
        await runtime.save(SavedConnection(name="shop", type="elasticsearch", values=values))
    (home / "config").mkdir(exist_ok=True)
    (home / "config/config.toml").write_text("[connections.shop.agents]\nrows_an_hour = 0\nbytes_an_hour = 0\n")


def main() -> None:
    introduce()
    with tempfile.TemporaryDirectory() as folder, serve_sample() as port:
        home = Path(folder) / "home"
        anyio.run(prepare, home, port)
        anyio.run(read, home)
        sides = {
            "a bare server of the library": lambda: list_tools(["-c", BARE], home),
            "dragoman mcp": lambda: list_tools(["-m", "dragoman", "mcp", "--connection", "shop"], home),
        }
        times = measure(sides, rounds=ROUNDS)
        report("start, until the tools are listed", times, baseline="a bare server of the library")


if __name__ == "__main__":
    main()
