"""Where things lie on disk, and what `config.toml` says."""

from __future__ import annotations

import getpass
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

HOME_VARIABLE = "DRAGOMAN_HOME"
"""The one variable that redirects everything."""


@dataclass(frozen=True, slots=True)
class Paths:
    """The four roots: what a person writes, what is installed, what happened, what can be made again."""

    config: Path
    data: Path
    state: Path
    cache: Path

    @property
    def connections(self) -> Path:
        """Name the file of saved connections."""
        return self.config / "connections.toml"

    @property
    def settings(self) -> Path:
        """Name the file of settings."""
        return self.config / "config.toml"


def find_paths(home: Path | None = None) -> Paths:
    """Find the roots: below `home`, else below DRAGOMAN_HOME, else where the platform keeps such things."""
    root = home or (Path(value) if (value := os.environ.get(HOME_VARIABLE)) else None)
    if root is not None:
        root = root.expanduser().absolute()
        return Paths(root / "config", root / "data", root / "state", root / "cache")
    from platformdirs import PlatformDirs

    dirs = PlatformDirs("dragoman", appauthor=False)
    return Paths(dirs.user_config_path, dirs.user_data_path, dirs.user_state_path, dirs.user_cache_path)


def user_name() -> str:
    """Name whoever runs this process, by number where nobody has a name: a container's user often has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return str(getattr(os, "getuid", lambda: "unknown")())


class RegistryEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One configured registry.

    Attributes:
        name: What to call it.
        location: The path of a folder or a bundle, or the address of a static web server.
        root: SHA-256 of the root its signatures follow from; empty takes the one a folder is first met with.
    """

    name: str
    location: str
    root: str = ""


class Limit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one call may read; 0 is no limit, None leaves it to the general setting.

    Attributes:
        rows: Of a page, refused before it is asked for; of an answer of the console; of an export or an iteration,
            which ends as soon as it is known to have more.
        bytes: Of the values of a page, a cell or an answer, as text; of the documents of an export or an iteration,
            before they are compressed.
        seconds: From the first request of a call to the last part of its answer.
    """

    rows: Annotated[int, msgspec.Meta(ge=0)] | None = None
    bytes: Annotated[int, msgspec.Meta(ge=0)] | None = None
    seconds: Annotated[float, msgspec.Meta(ge=0)] | None = None

    def with_those_of(self, special: Limit) -> Limit:
        """Give these limits, but for those that others set."""
        named = {key: value for key, value in msgspec.structs.asdict(special).items() if value is not None}
        return msgspec.structs.replace(self, **named)


Level = Literal["off", "confirm-drops", "confirm-writes", "read-only"]


class Guard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the automations that come with dragoman do for one connection; None leaves it to the general setting.

    Attributes:
        read_only: ``read-only`` refuses writes; ``confirm-writes`` and ``confirm-drops`` have a person confirm them,
            and refuse where nobody is there.
        cut_cells: Refuse to store the beginning of a long value in place of the whole (E23).
        audit: Record every write and its outcome.
        limits: What one call may read: `rows`, `bytes`, `seconds`.
    """

    read_only: Level | None = None
    cut_cells: bool | None = None
    audit: bool | None = None
    limits: Limit | None = None


class Guards(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The general settings of a `Guard`, and those of connections that differ from them, by name."""

    read_only: Level = "off"
    cut_cells: bool = True
    audit: bool = False
    limits: Limit = Limit()
    connections: dict[str, Guard] = {}

    def of(self, connection: str) -> Guards:
        """Give what holds for one connection."""
        special = self.connections.get(connection, Guard())
        named = {key: value for key, value in msgspec.structs.asdict(special).items() if value is not None}
        named["limits"] = self.limits.with_those_of(special.limits or Limit())
        return msgspec.structs.replace(self, **named)

    def any(self, switch: str) -> bool:
        """Tell whether one of the switches is on for some connection."""
        return any(
            getattr(each, switch) not in (False, "off", Limit()) for each in (self, *map(self.of, self.connections))
        )


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of `config.toml`.

    Attributes:
        sandbox: ``auto`` takes the strongest level the machine gives, ``require`` refuses below full, ``off`` is
            for development.
        automations: Entry points of the group `dragoman.automations` to run, by name.
        guards: What the automations that come with dragoman do.
        registries: In the order they are asked, before the bundled one.
        allow_stale: Accept a registry's signatures after they have expired; each time is noted in the audit log.
        keep_alive: Seconds for which an interrupted export can be resumed, where the server must hold something for it.
    """

    sandbox: Literal["auto", "require", "off"] = "auto"
    automations: list[str] = []
    guards: Guards = Guards()
    registries: list[RegistryEntry] = []
    allow_stale: bool = False
    keep_alive: Annotated[int, msgspec.Meta(ge=1)] = 300


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file that a person wrote; a missing file is empty.

    Raises:
        ConfigurationError: The file has a syntax error (line named) or cannot be read; it is left as it is.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        hint = "mend the line; the file was left as it is"
        raise ConfigurationError(f"{path} cannot be read: {error}", hint=hint) from error
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error


def read_settings(paths: Paths) -> Settings:
    """Read `config.toml`.

    Raises:
        ConfigurationError: A syntax error, an unknown key, or a value that cannot be used.
    """
    values: Mapping[str, Any] = read_toml(paths.settings)
    try:
        return msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{paths.settings}: {error}", hint="see docs/reference/settings.md") from error


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace a file in one step; a crash leaves the old one or the new one, whole.

    Raises:
        ConfigurationError: It cannot be written; the old one is as it was.
    """
    from dragoman_registry import files

    try:
        files.write(path, data, mode=mode)
    except OSError as error:
        hint = f"make {path.parent} writable, or set {HOME_VARIABLE} to a folder that is"
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}", hint=hint) from error


def change_settings(paths: Paths, key: str, value: object) -> None:
    """Set one key of `config.toml`, keeping its comments; None removes it.

    Raises:
        ConfigurationError: The file has a syntax error; it is left as it is.
    """
    import tomlkit

    read_settings(paths)  # never write into a file that does not parse
    text = paths.settings.read_text(encoding="utf-8") if paths.settings.exists() else ""
    document = tomlkit.parse(text)
    if value is None:
        document.pop(key, None)
    else:
        document[key] = value
    write_atomically(paths.settings, tomlkit.dumps(document).encode())
