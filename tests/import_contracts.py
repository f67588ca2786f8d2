"""Check the import contracts of pyproject.toml, and those of each driver's own: `python -m tests.import_contracts`.

Where a contract says `<drivers>`, the packages of all drivers take its place, and those of their libraries that of
`<libraries>`.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from typing import TYPE_CHECKING, Any

import tomlkit
from importlinter.cli import lint_imports
from tests.support.bundled_drivers import DRIVERS, LIBRARIES, PACKAGES, PLUGINS

if TYPE_CHECKING:
    from pathlib import Path

PLACES = {"<drivers>": DRIVERS, "<libraries>": LIBRARIES}


def expanded(value: Any) -> Any:
    """Return a part of the settings in which each driver and each library is named.

    >>> expanded(["dragoman_api | <drivers>"])[0].split(" | ")[:2]
    ['dragoman_api', 'dragoman_chroma']
    """
    if isinstance(value, dict):
        return {key: expanded(part) for key, part in value.items()}
    if not isinstance(value, list):
        return value
    items: list[Any] = []
    for item in value:
        place = next((place for place in PLACES if isinstance(item, str) and place in item), None)
        if place is None:
            items.append(expanded(item))
        elif " | " in item:
            items.append(item.replace(place, " | ".join(PLACES[place])))
        else:
            items += [item.replace(place, package) for package in PLACES[place]]
    return items


def settings_of(project: Path) -> dict[str, Any]:
    """Return a project's settings of import-linter."""
    settings: dict[str, Any] = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    return settings


def main() -> int:
    """Check all contracts, and return 1 if one is broken."""
    settings = expanded(settings_of(PLUGINS.parent))
    for folder in PACKAGES.values():
        settings["contracts"] += settings_of(folder)["contracts"]
    sys.path[:0] = map(str, PACKAGES.values())
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(tomlkit.dumps({"tool": {"importlinter": settings}}))
        file.flush()
        return lint_imports(config_filename=file.name, no_cache=True)


if __name__ == "__main__":
    sys.exit(main())
