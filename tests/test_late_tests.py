"""Continuous integration leaves out what would begin too late, and says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILE = "tests/test_deviations.py"


def run(until: str, cache: Path, *words: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-o", f"cache_dir={cache}", *words, FILE]
    environment = {**os.environ, "TESTS_UNTIL": until}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60).stdout


@pytest.mark.slow
def test_what_would_begin_too_late_is_left_out_and_told(tmp_path: Path):
    assert "NOT RUN, SINCE THIS MACHINE IS SLOW" in (printed := run("0", tmp_path)), printed
    assert " passed" not in printed
    assert " passed" in run("inf", tmp_path)


@pytest.mark.slow
def test_what_failed_runs_once_more_however_late(tmp_path: Path):
    assert " passed" in run("0", tmp_path, "--last-failed")
