"""The examples in docstrings run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DRIVERS = Path(__file__).parents[1] / "plugins/elasticsearch"
SCRIPT = """
import doctest, importlib, pkgutil, sys
failed = attempted = 0
for package in ("dragoman", "dragoman_worker", "dragoman_registry", "dragoman_api", "dragoman_elasticsearch"):
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if not found.name.endswith("__main__"):
            result = doctest.testmod(importlib.import_module(found.name))
            failed, attempted = failed + result.failed, attempted + result.attempted
print(attempted)
sys.exit(failed > 0)
"""


def test_the_examples_in_docstrings_run():
    """In an interpreter of their own: importing everything would hide what other tests look at."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=DRIVERS, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > 10
