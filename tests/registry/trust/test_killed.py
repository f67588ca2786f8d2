"""kill -9 at every write, fsync and rename of making a registry: clients always find a whole state, and it goes on."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crashing_registry import SCENARIOS
from dragoman_api.errors import RegistryError
from dragoman_registry import files
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.verify import verify
from dragoman_registry.trust import tuf_repository
from trust_attacks import Case, driver

CRASHING = Path(__file__).parents[2] / "support/crashing_registry.py"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_registry_killed_at_every_step_of(scenario: str, shared_path: Path):
    command = [sys.executable, str(CRASHING), str(shared_path), scenario]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=290)
    assert done.returncode == 0, done.stderr[-4000:]
    log = json.loads(done.stdout)["log"]
    assert len(log) > 30
    for step in ("fsync", "replace .timestamp.json", "write .timestamp.json"):
        assert any(entry.startswith(step) for entry in log), (step, log)
    written = [entry for entry in log if entry.startswith("replace")]
    last = "replace .2.root.json" if scenario == "rotate" else "replace .timestamp.json"
    assert written[-1].startswith(last), "what makes the rest count comes last"


@pytest.mark.slow
def test_on_a_full_disk_what_was_published_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The disk is full from the n-th file on, for every n: the error names the file, and the next time it goes on."""
    real = files.write
    for n in range(1, 60):
        case = Case(tmp_path / str(n), http=False)
        case.location, left = str(case.root), n

        def write(path: Path, data: bytes, *, mode: int = 0o666) -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            real(path, data, mode=mode)

        with monkeypatch.context() as patch:
            for module in (files, tuf_repository):
                patch.setattr(module, "write", write)
            try:
                publish.build([driver(case.folder, "1.1.0")], to=case.root, sign=case.key("acme"))
            except RegistryError as error:
                told = str(error.code), error.message
            else:
                break
        assert told[0] == "registry-not-written"
        assert f"{os.strerror(errno.ENOSPC)}: {case.folder}" in told[1]
        assert [release.version for release in case.client().releases("demo")] == ["1.0.0"]
        if n % 5 == 0:
            case.release("1.1.0")
            assert verify(case.root) == []
            assert case.install() == "1.1.0"
    assert n > 10
