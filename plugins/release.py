"""Build each distribution of a release as wheel and sdist, with bills of materials: `release.py FOLDER [--keys DIR]`.

The same commit and keys yield the same bytes, wherever and whenever they are built: what is signed has the date of the
commit, or the one that SOURCE_DATE_EPOCH names, in seconds since 1970.
"""
# ruff: noqa: INP001, S603, S607, T201 - a script prints, and asks git

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path

from bills import write_bills
from bundle import PLUGINS, bundle
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

ROOT = PLUGINS.parent
DISTRIBUTIONS = (ROOT, *(PLUGINS / name for name in ("api", "dask", "mcp", "sample", "workbench")))
SUMS = "SHA256SUMS"


def release(folder: Path, keys: Path | None = None) -> list[Path]:
    """Sign the drivers and build the distributions into a folder, with bills of materials and sums. Returns the files.

    Args:
        folder: It takes the place of a release that is there.
        keys: As for `bundle`.

    Raises:
        FileExistsError: The folder holds something else.
        UntaggedError: There are keys, and the tree is not what a tag names.
    """
    if keys:
        check_tag()
    earlier = [*folder.iterdir()] if folder.exists() else []
    for path in earlier:
        if not (path.is_file() and path.name.endswith((".whl", ".tar.gz", ".cdx.json", SUMS))):
            raise FileExistsError(f"{path} is no file of a release: name an empty folder")
    bundle(ROOT / "runtime/dragoman/bundled", keys, now=release_date() if keys else None)
    for path in earlier:
        path.unlink()
    archives = [
        Path(path)
        for project in DISTRIBUTIONS
        for builder in (SdistBuilder(str(project)), WheelBuilder(str(project)))
        for path in builder.build(directory=str(folder), versions=["standard"])
    ]
    archives += write_bills(folder, now=release_date())
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(archives)]
    (folder / SUMS).write_text("".join(sums))
    return archives


class UntaggedError(Exception):
    """What would be signed is not what a tag names."""


def check_tag() -> None:
    """Raise UntaggedError unless the tree is a commit that has the tag of the host's version."""
    changes = git("status", "--porcelain")
    if changes is None:
        raise UntaggedError(f"{ROOT} is no checkout of git: a release with keys is built from a tagged commit")
    if changes:
        raise UntaggedError(f"the tree differs from its commit: commit it, or build without KEYS\n{changes}")
    tag = f"v{tomllib.loads((ROOT / 'pyproject.toml').read_text(encoding='utf-8'))['project']['version']}"
    if tag not in (git("tag", "--points-at", "HEAD") or "").split():
        raise UntaggedError(f"the commit lacks the tag {tag}: git tag -s {tag}, or build without KEYS")


def git(*words: str) -> str | None:
    """Return what git answers about this checkout; None where it fails, as outside of one."""
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return None if done.returncode else done.stdout.strip()


def release_date() -> datetime:
    """Return the date of the release; the present where there is neither a commit nor SOURCE_DATE_EPOCH."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "") or git("log", "-1", "--format=%ct")
    return datetime.fromtimestamp(int(seconds), UTC) if seconds else datetime.now(UTC)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keys", type=Path)
    arguments = parser.parse_args()
    try:
        built = release(arguments.folder.resolve(), arguments.keys)
    except (FileExistsError, UntaggedError) as error:
        sys.exit(str(error))
    for path in built:
        print(f"built {path.name}")
    print(f"sums: {arguments.folder / SUMS}")
    if arguments.keys is None:
        print("This release is for development: throwaway keys signed its drivers. KEYS=DIR takes real ones.")
