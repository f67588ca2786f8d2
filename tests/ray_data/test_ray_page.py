"""The page on Ray runs as it stands, where Ray is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from stranger import connected, serve_sample

PAGE = Path(__file__).parents[2] / "docs/how-to/read-with-ray.md"


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: make ray")
def test_the_page_on_ray_reads_every_row_once(tmp_path):
    script = tmp_path / "page.py"
    script.write_text(PAGE.read_text().split("```python\n")[1].split("```")[0])
    with serve_sample() as port:
        machine = connected(tmp_path / "own", cwd=tmp_path, port=port)
        settings = {"RAY_DATA_DISABLE_PROGRESS_BARS": "1", "RAY_raylet_start_wait_time_s": "200"}
        environment = {**os.environ, **settings, "HOME": str(tmp_path), "DRAGOMAN_HOME": str(machine.home)}
        done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counts = [line.split() for line in done.stdout.splitlines() if line[:1].isdigit()]
    assert sum(int(words[-1]) for words in counts) == 12_003, done.stdout
    assert {words[1] for words in counts} >= {"shipped", "delivered", "paid"}
