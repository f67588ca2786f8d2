"""The examples in docstrings run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bundled_drivers import PACKAGES

SCRIPT = """
import doctest, importlib, pkgutil, sys
sys.path += sys.argv[1:]
failed = attempted = 0
packages = ["dragoman", "dragoman_worker", "dragoman_registry", "dragoman_api"]
for package in [*packages, *DRIVERS]:
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if not found.name.endswith("__main__"):
            result = doctest.testmod(importlib.import_module(found.name))
            failed, attempted = failed + result.failed, attempted + result.attempted
print(attempted)
sys.exit(failed > 0)
"""


@pytest.mark.slow
def test_the_examples_in_docstrings_run():
    """In an interpreter of their own: importing everything would hide what other tests look at."""
    script = f"DRIVERS = {[*PACKAGES]}{SCRIPT}"
    done = subprocess.run([sys.executable, "-c", script, *map(str, PACKAGES.values())], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > 10
