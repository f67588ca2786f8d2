"""The version of a release: what is built together has one. ``python -m tests.versions`` prints it."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOGETHER = (".", "plugins/api", "plugins/dask", "plugins/mcp", "plugins/sample", "plugins/workbench")
"""Folders of the distributions that are released together; a driver and its library are released by themselves."""


def versions() -> dict[str, str]:
    """Return the version of each distribution of a release, by its name."""
    texts = [(ROOT / folder / "pyproject.toml").read_text(encoding="utf-8") for folder in TOGETHER]
    projects = [tomllib.loads(text)["project"] for text in texts]
    return {project["name"]: project["version"] for project in projects}


def main() -> None:
    """Print the version, if there is one."""
    if len(distinct := {*versions().values()}) != 1:
        sys.exit(f"the distributions of one release have several versions: {versions()}")
    print(*distinct)


if __name__ == "__main__":
    main()
