"""Build each distribution of a release as wheel and sdist, with bills of materials: `release.py FOLDER [--keys DIR]`.

`--passphrase` and `--pin` say where what opens the keys is kept, as in `dragoman registry sign`.

The same commit and keys yield the same bytes, wherever and whenever they are built: what is signed has the date of the
commit, or the one that SOURCE_DATE_EPOCH names, in seconds since 1970.
"""
# ruff: noqa: INP001, S603, T201 - a script prints, and asks git

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
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
        ReleaseError: There are keys, and they lie where they could be published, the project has no public address, or
            the tree is not what a tag names.
            What was built holds a key, or was changed meanwhile.
    """
    if keys:
        check_place(keys, folder)
        check_urls()
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
    urls = project_urls(ROOT)
    with tempfile.TemporaryDirectory() as temporary:
        archives = [
            Path(path)
            for project in DISTRIBUTIONS
            for tree in [with_urls(project, urls, Path(temporary)) if urls and project != ROOT else project]
            for builder in (SdistBuilder(str(tree)), WheelBuilder(str(tree)))
            for path in builder.build(directory=str(folder), versions=["standard"])
        ]
    for archive in archives:
        if key_files := [name for name in members(archive) if name.endswith(KEY_ENDING)]:
            archive.unlink()
            raise ReleaseError(f"{archive.name} would publish a key: {', '.join(key_files)}")
    return archives


def project_urls(project: Path) -> dict[str, str]:
    """Return the addresses that a distribution names in its `pyproject.toml`."""
    document = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    return dict(document["project"].get("urls", {}))


def with_urls(project: Path, urls: dict[str, str], folder: Path) -> Path:
    """Copy a distribution's sources into a folder, with addresses that they do not name: an sdist holds them, too.

    Raises:
        ReleaseError: It has addresses of its own.
    """
    if project_urls(project):
        raise ReleaseError(f"{project}/pyproject.toml has [project.urls]: move them to {ROOT}/pyproject.toml")
    tree = folder / project.name
    shutil.copytree(project, tree, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
    if (ROOT / ".gitignore").exists():
        shutil.copy(ROOT / ".gitignore", folder)  # the builder looks for it above the sources
    with (tree / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write(
            "".join(["\n[project.urls]\n", *(f"{json.dumps(name)} = {json.dumps(urls[name])}\n" for name in urls)])
        )
    return tree


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


def check_urls() -> None:
    """Raise ReleaseError unless the project names where people find it, in addresses that everybody can open."""
    place, urls = ROOT / "pyproject.toml", project_urls(ROOT)
    if not urls:
        example = '[project.urls] with Homepage = "https://…", Source = "https://…" and Issues = "https://…"'
        raise ReleaseError(f"the project has no public address: add {example} to {place}, or build without KEYS")
    if bad := [name for name, url in urls.items() if not url.startswith("https://")]:
        raise ReleaseError(f"{', '.join(bad)} in [project.urls] of {place} must begin with https://")


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
