"""A page comes sooner the less a driver's process imports: what other hooks need is imported when they are called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("driver", "grid"), [("elasticsearch", "querydsl"), ("weaviate", "weaviate")])
def test_a_page_needs_neither_console_nor_export_nor_changes(driver, grid):
    """The worker, and the driver with the modules of its grid, are all that is there before the first call."""
    package = f"dragoman_{grid}"
    code = (
        f"import sys; sys.path[:0] = {[str(ROOT / 'plugins' / folder) for folder in (driver, grid)]!r};"
        f"import dragoman_worker.service, dragoman_{driver}.driver, {package}.grid.pages; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = set(done.stdout.split())
    assert f"{package}.grid.pages" in found
    for room in ("console", "exporting", "writing", "grid.summaries"):
        assert f"{package}.{room}" not in found
    assert not {"pydantic", "packaging", "click", "rich", "tomllib", "sqlite3", "dragoman", "dragoman_registry"} & found
    assert not {"dragoman_api.kit.row_changes", "dragoman_api.kit.console_text", "dragoman_api.kit.summaries"} & found
