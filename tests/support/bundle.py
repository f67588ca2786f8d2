"""Build the first-party driver wheels and the registry folder that a checkout's host carries: `bundle.py FOLDER`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from dragoman_registry import publish

ROOT = Path(__file__).parents[2]
DRIVERS = ("elasticsearch",)
EPOCH = 1_767_225_600  # the same sources give the same bytes, whenever they are built


def build_wheel(project: Path, into: Path) -> Path:
    """Build one wheel with hatchling, in this environment and without a network."""
    before = set(into.iterdir())
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)],
        cwd=project,
        check=True,
        capture_output=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)},
    )
    [wheel] = set(into.iterdir()) - before
    return wheel


def bundle(folder: Path) -> list[str]:
    """Make the registry folder anew and give what it holds."""
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        (work / "wheels").mkdir()
        wheels = [build_wheel(ROOT / "plugins" / name, work / "wheels") for name in DRIVERS]
        publish.init(work / "registry")
        releases = publish.build(wheels, to=work / "registry", now=datetime.fromtimestamp(EPOCH, UTC))
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(work / "registry", folder)
    return [f"{release.project} {release.version}" for release in releases]


if __name__ == "__main__":
    for line in bundle(Path(sys.argv[1]).resolve()):
        print(f"bundled {line}")
