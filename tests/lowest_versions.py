"""Print the lowest versions that the distributions declare of what they need: `python -m tests.lowest_versions`.

`make floors` runs the default tests with exactly these versions.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
OURS = "dragoman"
KIT = {"pytest", "pytest-aiohttp"}
"""What an author's tests run on. The tests of this repository use later features of them."""


def declared() -> Iterator[tuple[str, str, Requirement]]:
    """Yield each distribution, its extra or an empty text, and what it declares of others' packages there."""
    for file in [ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))]:
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        for extra, lines in {"": project.get("dependencies", ()), **project.get("optional-dependencies", {})}.items():
            for requirement in map(Requirement, lines):
                if not requirement.name.startswith(OURS):
                    yield project["name"], extra, requirement


def lowest_versions() -> dict[str, Version]:
    """Find the highest of the lower bounds that the distributions declare for each package."""
    lowest: dict[str, Version] = {}
    for _, _, requirement in declared():
        [bound] = [part.version for part in requirement.specifier if part.operator in (">=", "~=", "==")]
        lowest[requirement.name] = max(Version(bound), lowest.get(requirement.name, Version("0")))
    return lowest


def requirements(*, kit: bool) -> list[str]:
    """Write them as requirements, with those of an author's kit or without."""
    return [f"{name}=={version}" for name, version in lowest_versions().items() if kit or name not in KIT]


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in requirements(kit=False)))
