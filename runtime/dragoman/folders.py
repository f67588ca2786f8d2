"""File locations on disk; quick to import, since a command finds them before all else."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dragoman_api.errors import ConfigurationError

from .file_ownership import expect_own

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    for root in paths:
        _expect_folder(root)
    for path in (paths.config, paths.data, paths.state, paths.cache, paths.settings, paths.data / "state.db"):
        expect_own(path)
    return paths


def _find_paths(home: Path | None) -> Paths:
    root = home or (Path(value) if (value := os.environ.get(HOME_VARIABLE)) else None)
    if root is not None:
        root = root.expanduser().absolute()
        return Paths(root / "config", root / "data", root / "state", root / "cache")
    from platformdirs import PlatformDirs

    dirs = PlatformDirs("dragoman", appauthor=False)
    return Paths(dirs.user_config_path, dirs.user_data_path, dirs.user_state_path, dirs.user_cache_path)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a fresh folder that only this user can enter, and remove it with its contents at the end. Blocks.

    All that is written for a moment goes into one, and a library that spills or caches is told to do it there. A folder
    that a library chooses by itself, such as ``dask-scratch-space``, another user may have made first.

    Raises:
        ConfigurationError: Others can replace folders in the folder for temporary files (TMPDIR).
    """
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="dragoman-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        expect_own(folder)
        yield folder


def _expect_folder(root: Path) -> None:
    """Refuse a root that is no folder, or lies below something else, such as /dev/null, or is not UTF-8."""
    hint = f"set {HOME_VARIABLE} to a folder that you can write"
    try:
        str(root).encode()
    except UnicodeEncodeError:
        escaped = ascii(os.fsencode(root))[2:-1]
        reason = f"{escaped} cannot be used: it is not UTF-8, and paths are kept as text"
        raise ConfigurationError(reason, hint=hint) from None
    for folder in (root, *root.parents):
        if os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises for impossible names
            return
        if os.path.lexists(folder) and not os.path.islink(folder):  # noqa: PTH114 - as above
            raise ConfigurationError(f"{root} cannot be used: {folder} is not a folder", hint=hint)
