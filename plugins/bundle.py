"""Build the first-party driver wheels and the registry folder that the host ships: `bundle.py FOLDER [--keys DIR]`.

Without a release's keys, the wheels are signed with throwaway keys and the folder is labelled development.
"""
# ruff: noqa: INP001, T201 - a script prints

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import os
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from dragoman.authoring.libraries import library_folders, record_libraries
from dragoman_registry.names import plain_name
from dragoman_registry.publisher import publish
from dragoman_registry.trust.keys import Keys
from dragoman_registry.trust.trust import PINS
from dragoman_registry.trust.tuf_repository import Repository

PLUGINS = Path(__file__).parent
DRIVERS = sorted(path.parents[1].name for path in PLUGINS.glob("*/*/driver.json"))
STAMP = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)  # pinned, so it does not expire


def bundle(folder: Path, keys: Path | None = None, *, now: datetime | None = None) -> list[str]:
    """Build the registry folder and return its contents.

    The same sources yield the same targets, and with the same keys and time the same signatures. A release's registry
    stays in its folder of keys, so that each release continues the root of the previous one.

    Args:
        folder: It is replaced at once.
        keys: A release's keys; None makes throwaway ones.
        now: The time of what is signed with a release's keys; by default the present.
    """
    with tempfile.TemporaryDirectory() as temporary:
        held = keys or Path(temporary) / "keys"
        registry, now = held / "registry", (now or datetime.now(UTC)) if keys else STAMP
        wheels = {path for name in DRIVERS for path in driver_wheels(PLUGINS / name, Path(temporary))}
        releases = publish.build(sorted(wheels), to=registry, keys=held, now=now)
        if keys and Repository(registry, Keys(keys), now=now).renew():  # else the same sources would get other bytes
            publish.sign(registry, keys=keys, now=now)
        draft = Path(shutil.copytree(registry, Path(temporary) / "draft"))
        for path in (draft / "targets").rglob("*"):  # the host uses plain names and needs each file once
            if plain_name(path.name) != path.name:
                path.unlink()
        pin(draft, label="release" if keys else "development", root=Repository(draft, Keys(held)).root_digest)
        replace(draft, folder)
    return [f"{release.project} {release.version}" for release in releases]


def replace(draft: Path, folder: Path) -> None:
    """Put a copy of a draft in the place of a folder, which running processes read: at any moment, one of both."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as beside:
        copy = shutil.copytree(draft, Path(beside) / folder.name)
        if not folder.exists():
            copy.rename(folder)
            return
        here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of renameat2(2)
        if ctypes.CDLL(None, use_errno=True).renameat2(here, bytes(copy), here, bytes(folder), exchange):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))


def driver_wheels(project: Path, folder: Path) -> list[Path]:
    """Build the wheel of a driver into a folder, and those of its libraries; the driver's comes first."""
    from hatchling.builders.wheel import WheelBuilder

    libraries = library_folders(project)
    driver, *wheels = (
        Path(*WheelBuilder(str(tree)).build(directory=str(folder), versions=["standard"]))
        for tree in [project, *libraries]
    )
    record_libraries(driver, wheels)
    return [driver, *wheels]


def pin(folder: Path, *, label: str, root: str) -> None:
    """Record the size and digest of every file, which the host will check."""
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
