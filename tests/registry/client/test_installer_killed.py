"""kill -9 at every write, fsync, rename and commit of an installation leaves a valid state, and the next succeeds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import wheelhouse
from installing import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

CRASHING = Path(__file__).parents[2] / "support/crashing.py"


pytestmark = pytest.mark.slow


@pytest.fixture
def root(shared_path: Path) -> Iterator[Path]:
    wheels = [wheelhouse.Driver(version=version).write(shared_path / "wheels") for version in ("1.0.0", "2.0.0")]
    Place(shared_path, wheels)
    shared_path.chmod(0o777)
    return shared_path


def crash(root: Path, scenario: str, uid: int) -> list[str]:
    command = [sys.executable, str(CRASHING), str(root), scenario, str(uid)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=58)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)["log"]


def test_a_first_installation_killed_at_every_step(root: Path):
    log = crash(root, "fresh", os.getuid())
    assert len(log) > 60
    for step in ("fsync", "rename", "before COMMIT", "after COMMIT", "write .plugins.lock", "replace"):
        assert any(entry.startswith(step) for entry in log), step


def test_an_update_killed_at_every_step_as_an_ordinary_user(root: Path):
    log = crash(root, "update", os.getuid() or 65534)
    assert len(log) > 50
    assert any(entry.startswith("after COMMIT") for entry in log)
