"""The story on Windows, with a Python for it that has dragoman installed: `DRAGOMAN_WINDOWS_PYTHON="wine python.exe"`.

The variable names a command: on Windows its `python.exe`, elsewhere one that runs it, such as Wine.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PYTHON = shlex.split(os.environ.get("DRAGOMAN_WINDOWS_PYTHON", ""), posix=os.name == "posix")
ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not PYTHON, reason="NOTHING WAS RUN ON WINDOWS: DRAGOMAN_WINDOWS_PYTHON names no Python for it"),
]


def run(*words: str, status: int = 0, home: Path | None = None) -> str:
    """Run that Python without a terminal, and give what it prints."""
    environment = {**os.environ, **({} if home is None else {"DRAGOMAN_HOME": str(home)})}
    # A pipe each: Wine's own processes keep whatever they inherit open.
    done = subprocess.run(
        [*PYTHON, *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=280, check=False
    )
    text = (done.stdout + done.stderr).decode(errors="replace")
    assert done.returncode == status, text
    return text


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    command = [sys.executable, "-m", "docs.demo.sample_cluster", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as sample:
        assert sample.stdout is not None
        yield json.loads(sample.stdout.readline())["port"]
        sample.terminate()


@pytest.fixture
def dragoman(tmp_path: Path) -> Callable[..., str]:
    return lambda *words, status=0: run("-m", "dragoman", *words, status=status, home=tmp_path / "home")


def test_a_person_gets_from_nothing_to_an_export(dragoman: Callable[..., str], port: int, tmp_path: Path) -> None:
    found = dragoman("doctor")
    assert "process: no lock-down for Windows" in found
    assert "wsl --install" in found
    words = f"connections add shop --type elasticsearch --host 127.0.0.1 --port {port} --auth none --yes".split()
    assert "installed elasticsearch" in (added := dragoman(*words))
    assert "sandbox process" in added
    assert "orders" in dragoman("objects", "shop")
    page = dragoman("page", "shop", "orders", "--filter", "total >= 100", "--sort", "-total", "--columns", "_id,total")
    assert page.index("8812") < page.index("1177")
    dragoman("update", "shop", "books", "17", "--set", "price=12.5", "--yes")
    assert "12.5" in dragoman("page", "shop", "books", "--filter", "_id = 17", "--columns", "_id,price")
    assert '"status"' in dragoman("console", "shop", "GET /_cluster/health", "--json")
    file = tmp_path / "orders.ndjson"
    for _ in ("new", "in place of the old one"):
        dragoman("export", "shop", "orders", "-o", str(file))
        assert len(file.read_bytes().splitlines()) == 12_003
        assert sorted(path.name for path in tmp_path.glob("*orders*")) == [file.name, f"{file.name}.manifest.json"]
    assert "process" in dragoman("--sandbox", "require", "objects", "shop", status=2)
    assert "elasticsearch" in dragoman("plugins", "remove", "elasticsearch", "--yes")


def test_a_drivers_process_reaches_its_server_and_ends_with_its_host(tmp_path: Path) -> None:
    told = json.loads(run(str(Path(__file__).with_name("workers.py")), str(tmp_path)).splitlines()[-1])
    assert told["measured"] == told["level"]
    assert told["level"].startswith("process: no lock-down for Windows")
    assert told["said"] == "hello\n"
    assert told["parts"] == [[1, 3_000_000], [2, 3_000_000]]
    assert "does not allow this host" in told["refused"]
    assert told["denied"] == ["example.org:1"]
    assert "exit status 7" in told["crash"]
    assert "last words" in told["crash"]
    assert told["lines"][-1] == "last words"
    assert told["untrusted"].startswith("sandbox-insufficient")
    assert told["require"].startswith("sandbox-insufficient")
    assert told["off"] == "started"
    assert not told["outlives"]
