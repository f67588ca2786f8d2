"""The drivers that come with dragoman: each is a folder of `plugins` whose package holds a manifest."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any


def _tools(driver: Path) -> dict[str, Any]:
    tools: dict[str, Any] = tomllib.loads((driver / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    return tools


PLUGINS = Path(__file__).parents[2] / "plugins"
DRIVERS = {path.parent.name: path.parents[1] for path in sorted(PLUGINS.glob("*/*/driver.json"))}
"""The folder of each driver by the name of its package."""

LIBRARIES = {
    path.name: path.parent
    for driver in DRIVERS.values()
    for name in _tools(driver).get("dragoman", {}).get("libraries", [])
    for path in (driver / name).resolve().glob("dragoman_*")
}
"""The folder of each library of drivers by the name of its package."""

PACKAGES = DRIVERS | LIBRARIES

MANIFESTS: dict[str, dict[str, Any]] = {
    manifest["id"]: manifest
    for package, folder in DRIVERS.items()
    for manifest in [json.loads((folder / package / "driver.json").read_text(encoding="utf-8"))]
}
"""The manifest of each driver by its id, in the order in which drivers are listed."""
