"""Build the first-party driver wheels and the registry folder that a checkout's host carries: `bundle.py FOLDER`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import wheelhouse
from dragoman_registry import publish

DRIVERS = ("elasticsearch", "weaviate")


def bundle(folder: Path) -> list[str]:
    """Make the registry folder anew and give what it holds; the same sources give the same bytes."""
    with tempfile.TemporaryDirectory() as temporary:
        draft = Path(temporary) / "registry"
        publish.init(draft)
        wheels = [wheelhouse.project_wheel(f"plugins/{name}") for name in DRIVERS]
        releases = publish.build(wheels, to=draft, now=wheelhouse.NOW)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(draft, folder)
    return [f"{release.project} {release.version}" for release in releases]


if __name__ == "__main__":
    for line in bundle(Path(sys.argv[1]).resolve()):
        print(f"bundled {line}")
