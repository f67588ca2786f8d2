"""Build the first-party driver wheels and the registry folder that a host carries: `bundle.py FOLDER [--keys DIR]`.

With the keys of a release they are signed with those; else with throwaway keys, and the folder is labelled development.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import wheelhouse
from dragoman_registry import publish
from dragoman_registry.trust.keys import Keys
from dragoman_registry.trust.ledger import Ledger
from dragoman_registry.trust.seam import PINS

DRIVERS = ("elasticsearch", "weaviate")
STAMP = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)  # pinned, so it does not expire


def bundle(folder: Path, keys: Path | None = None) -> list[str]:
    """Make the registry folder anew and give what it holds; the same sources give the same targets.

    A release's registry stays in its folder of keys, so that each release follows from the root of the one before.
    """
    with tempfile.TemporaryDirectory() as temporary:
        held = keys or Path(temporary) / "keys"
        registry, now = held / "registry", datetime.now(UTC) if keys else STAMP
        wheels = [wheelhouse.project_wheel(f"plugins/{name}") for name in DRIVERS]
        releases = publish.build(wheels, to=registry, keys=held, now=now)
        if keys:
            publish.sign(registry, keys=keys)
        draft = Path(shutil.copytree(registry, Path(temporary) / "draft"))
        pin(draft, label="release" if keys else "development", root=Ledger(draft, Keys(held)).root_digest)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(draft, folder)
    return [f"{release.project} {release.version}" for release in releases]


def pin(folder: Path, *, label: str, root: str) -> None:
    """Write down the size and digest of every file, as the host will hold them to."""
    targets = folder / "targets"
    files = {
        path.relative_to(targets).as_posix(): [path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest()]
        for path in sorted(targets.rglob("*"))
        if path.is_file()
    }
    (folder / PINS).write_text(json.dumps({"label": label, "root": root, "files": files}, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keys", type=Path)
    arguments = parser.parse_args()
    for line in bundle(arguments.folder.resolve(), arguments.keys):
        print(f"bundled {line}" + ("" if arguments.keys else " (development: signed with throwaway keys)"))
