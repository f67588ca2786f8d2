"""File locations on disk; quick to import, since a command finds them before all else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from .file_ownership import expect_own

HOME_VARIABLE = "DRAGOMAN_HOME"
"""The one variable that redirects everything."""


class Paths(NamedTuple):
    """The four root folders: configuration, installed data, state (what happened) and cache."""

    config: Path
    data: Path
    state: Path
    cache: Path

    @property
    def connections(self) -> Path:
        """The file of saved connections."""
        return self.config / "connections.toml"

    @property
    def settings(self) -> Path:
        """The settings file."""
        return self.config / "config.toml"


def find_paths(home: Path | None = None) -> Paths:
    """Find the roots: below `home`, else below DRAGOMAN_HOME, else in the platform's usual places.

    Raises:
        ConfigurationError: Other users can change the files there, and so choose which code runs.
    """
    paths = _find_paths(home)
    for each in (paths.config, paths.data, paths.state, paths.cache, paths.settings, paths.data / "state.db"):
        expect_own(each)
    return paths


def _find_paths(home: Path | None) -> Paths:
    root = home or (Path(value) if (value := os.environ.get(HOME_VARIABLE)) else None)
    if root is not None:
        root = root.expanduser().absolute()
        return Paths(root / "config", root / "data", root / "state", root / "cache")
    from platformdirs import PlatformDirs

    dirs = PlatformDirs("dragoman", appauthor=False)
    return Paths(dirs.user_config_path, dirs.user_data_path, dirs.user_state_path, dirs.user_cache_path)
