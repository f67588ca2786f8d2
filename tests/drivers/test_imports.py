"""A page comes sooner the less a driver's process imports: what other hooks need is imported when they are called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("driver", ["elasticsearch", "weaviate"])
def test_a_page_needs_neither_console_nor_export_nor_changes(driver):
    """The worker, and the driver with the modules of its grid, are all that is there before the first call."""
    package = f"dragoman_{driver}"
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'plugins' / driver)!r});"
        f"import dragoman_worker.service, {package}.driver, {package}.grid.pages; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = set(done.stdout.split())
    assert f"{package}.grid.pages" in found
    for room in ("console", "exporting", "writing", "grid.summaries"):
        assert f"{package}.{room}" not in found
    assert not {"pydantic", "packaging", "click", "rich", "tomllib", "sqlite3", "dragoman", "dragoman_registry"} & found
    assert not {"dragoman_api.kit.row_changes", "dragoman_api.kit.console_text", "dragoman_api.kit.summaries"} & found
