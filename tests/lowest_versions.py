"""Print the lowest versions that the distributions declare of what they need: `python -m tests.lowest_versions`.

`make floors` runs the default tests with exactly these versions.
"""

from __future__ import annotations

import sys
import tomllib
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
OURS = "dragoman"
KIT = {"pytest", "pytest-aiohttp"}
"""What an author's tests run on. The tests of this repository use later features of them."""


def lowest_versions() -> dict[str, Version]:
    """Find the highest of the lower bounds that the distributions declare for each package."""
    lowest: dict[str, Version] = {}
    for file in [ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))]:
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        extras = project.get("optional-dependencies", {}).values()
        for line in chain(project.get("dependencies", ()), *extras):
            requirement = Requirement(line)
            if not requirement.name.startswith(OURS):
                [bound] = [part.version for part in requirement.specifier if part.operator in (">=", "~=", "==")]
                lowest[requirement.name] = max(Version(bound), lowest.get(requirement.name, Version("0")))
    return lowest


def requirements(*, kit: bool) -> list[str]:
    """Write them as requirements, with those of an author's kit or without."""
    return [f"{name}=={version}" for name, version in lowest_versions().items() if kit or name not in KIT]


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in requirements(kit=False)))
