"""A workbench as the command serves it, for benchmarks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]


@contextmanager
def serving_workbench(home: Path, *words: str) -> Iterator[dict[str, Any]]:
    """Run `dragoman workbench` in a home; yields what it prints once it serves, and its process id as `pid`."""
    command = [sys.executable, "-m", "dragoman", "workbench", "--no-browser", "--json", *words]
    environment = {**os.environ, "DRAGOMAN_HOME": str(home)}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout
    try:
        yield {**json.loads(process.stdout.readline()), "pid": process.pid}
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
