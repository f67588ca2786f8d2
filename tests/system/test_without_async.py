"""The programs of the page on use without `async`, as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from stranger import ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs/how-to/use-without-async.md").read_text(encoding="utf-8")
PAGES, ROWS, TABLES, CHANGES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def run(shell):
    """Return a function that runs a program of the page."""
    shell("dragoman connections add shop --type elasticsearch --host 127.0.0.1 --port $PORT --yes")

    def program(text):
        environment = {**os.environ, "DRAGOMAN_HOME": str(shell.home)}
        command = [sys.executable, "-W", "error", "-c", text]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
        assert (done.stderr, done.returncode) == ("", 0)
        return done.stdout.splitlines()

    return program


def test_a_page_is_filtered_and_counted(run):
    *rows, count = run(PAGES)
    assert len(rows) == 5
    assert all(float(row.split()[1]) >= 100 for row in rows)
    assert count == "1204"


def test_all_rows_are_read_in_a_loop(run):
    [total] = run(ROWS)
    assert int(total) > 12_003


def test_an_object_is_a_table(run):
    table, *batches = run(TABLES)
    assert table == "double 12003"
    assert sum(map(int, batches)) == 12_003


def test_a_change_is_planned_and_applied(run):
    request, status = run(CHANGES)
    assert request.startswith("POST /orders/_update/")
    assert status == "applied"
