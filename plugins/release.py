"""Build each distribution of a release as wheel and sdist, with bills of materials: `release.py FOLDER [--keys DIR]`.

`--passphrase` and `--pin` say where what opens the keys is kept, as in `dragoman registry sign`.

The same commit and keys yield the same bytes, wherever and whenever they are built: what is signed has the date of the
commit, or the one that SOURCE_DATE_EPOCH names, in seconds since 1970.
"""
# ruff: noqa: INP001, S603, T201 - a script prints, and asks git

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from datetime import UTC, datetime
from pathlib import Path

from bills import write_bills
from bundle import PLUGINS, bundle
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from dragoman.cli.key_options import opened_with
from dragoman_api.errors import ConfigurationError

ROOT = PLUGINS.parent
DISTRIBUTIONS = (ROOT, *(PLUGINS / name for name in ("api", "dask", "mcp", "sample", "workbench")))
SUMS = "SHA256SUMS"
KEY_ENDING = ".pem"


def release(folder: Path, keys: Path | None = None) -> list[Path]:
    """Sign the drivers and build the distributions into a folder, with bills of materials and sums. Returns the files.

    Args:
        folder: It takes the place of a release that is there.
        keys: As for `bundle`.

    Raises:
        FileExistsError: The folder holds something else.
        ReleaseError: There are keys, and they lie where they could be published, or the tree is not what a tag names.
            What was built holds a key, or was changed meanwhile.
    """
    if keys:
        check_place(keys, folder)
        check_tag()
    earlier = [*folder.iterdir()] if folder.exists() else []
    for path in earlier:
        if not (path.is_file() and path.name.endswith((".whl", ".tar.gz", ".cdx.json", SUMS))):
            raise FileExistsError(f"{path} is no file of a release: name an empty folder")
    bundle(ROOT / "runtime/dragoman/bundled", keys, now=release_date() if keys else None)
    for path in earlier:
        path.unlink()
    archives = build_archives(folder)
    sums = sums_of(archives)
    bills = write_bills(folder, now=release_date())  # runs programs of others
    if sums_of(archives) != sums:
        raise ReleaseError("an archive changed while the bills of materials were made")
    sums |= sums_of(bills)
    (folder / SUMS).write_text("".join(f"{sums[name]}  {name}\n" for name in sorted(sums)))
    return [*archives, *bills]


class ReleaseError(Exception):
    """What would be signed or published is not what it should be."""


def build_archives(folder: Path) -> list[Path]:
    """Build the sdist and the wheel of each distribution. Raises ReleaseError if there is a private key in one."""
    archives = [
        Path(path)
        for project in DISTRIBUTIONS
        for builder in (SdistBuilder(str(project)), WheelBuilder(str(project)))
        for path in builder.build(directory=str(folder), versions=["standard"])
    ]
    for archive in archives:
        if key_files := [name for name in members(archive) if name.endswith(KEY_ENDING)]:
            archive.unlink()
            raise ReleaseError(f"{archive.name} would publish a key: {', '.join(key_files)}")
    return archives


def members(archive: Path) -> list[str]:
    """List the files of a wheel or an sdist."""
    if archive.suffix == ".whl":
        return zipfile.ZipFile(archive).namelist()
    with tarfile.open(archive) as sdist:
        return sdist.getnames()


def sums_of(files: list[Path]) -> dict[str, str]:
    """Map the name of each file to its SHA-256."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def check_place(keys: Path, folder: Path) -> None:
    """Raise ReleaseError if keys lie in the checkout or in the folder of the release, from where they could go out."""
    for public in (ROOT, folder):
        if keys.resolve().is_relative_to(public.resolve()):
            raise ReleaseError(f"{keys} lies in {public}: keep the keys elsewhere")


def check_tag() -> None:
    """Raise ReleaseError unless the tree is a commit that has the tag of the host's version."""
    changes = differences()
    if changes is None:
        raise ReleaseError(f"{ROOT} is no checkout of git: a release with keys is built from a tagged commit")
    if changes:
        raise ReleaseError(f"the tree differs from its commit: commit it, or build without KEYS\n{changes}")
    tag = f"v{tomllib.loads((ROOT / 'pyproject.toml').read_text(encoding='utf-8'))['project']['version']}"
    if tag not in (git("tag", "--points-at", "HEAD") or "").split():
        raise ReleaseError(f"the commit lacks the tag {tag}: git tag -s {tag}, or build without KEYS")


def differences() -> str | None:
    """Name the files that are not as in the commit; None outside of a checkout.

    A fresh index has none of a person's marks that hide changes, and of all rules for what git ignores, only those of
    the tree's own `.gitignore` count: they name what is built.
    """
    with tempfile.TemporaryDirectory() as temporary:
        index = {"GIT_INDEX_FILE": str(Path(temporary, "index"))}
        if git("read-tree", "HEAD", **index) is None:
            return None
        ignored = f"--exclude-from={ROOT / '.gitignore'}"
        return git("-c", "core.fileMode=true", "ls-files", "--others", "--modified", "--deleted", ignored, **index)


def git(*words: str, **variables: str) -> str | None:
    """Return what git answers about this checkout; None where it fails, as outside of one."""
    command = ["git", "-C", str(ROOT), *words]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    return None if done.returncode else done.stdout.strip()


def release_date() -> datetime:
    """Return the date of the release; the present where there is neither a commit nor SOURCE_DATE_EPOCH."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "") or git("log", "-1", "--format=%ct")
    return datetime.fromtimestamp(int(seconds), UTC) if seconds else datetime.now(UTC)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keys", type=Path)
    parser.add_argument("--passphrase")
    parser.add_argument("--pin")
    arguments = parser.parse_args()
    try:
        with opened_with({"passphrase": arguments.passphrase, "pin": arguments.pin}):
            built = release(arguments.folder.resolve(), arguments.keys)
    except ConfigurationError as error:
        sys.exit(f"{error.message}\ntry: {error.hint}" if error.hint else error.message)
    except (FileExistsError, ReleaseError) as error:
        sys.exit(str(error))
    for path in built:
        print(f"built {path.name}")
    print(f"sums: {arguments.folder / SUMS}")
    if arguments.keys is None:
        print("This release is for development: throwaway keys signed its drivers. KEYS=DIR takes real ones.")
