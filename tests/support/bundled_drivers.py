"""The drivers that come with dragoman: each is a folder of `plugins` whose package holds a manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PLUGINS = Path(__file__).parents[2] / "plugins"
PACKAGES = {path.parent.name: path.parents[1] for path in sorted(PLUGINS.glob("*/*/driver.json"))}
"""The folder of each driver by the name of its package."""

MANIFESTS: dict[str, dict[str, Any]] = {
    manifest["id"]: manifest
    for package, folder in PACKAGES.items()
    for manifest in [json.loads((folder / package / "driver.json").read_text(encoding="utf-8"))]
}
"""The manifest of each driver by its id, in the order in which drivers are listed."""
