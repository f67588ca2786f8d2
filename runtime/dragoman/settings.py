"""The contents of `config.toml`."""

from __future__ import annotations

import getpass
import os
import re
import tomllib
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tomlkit import TOMLDocument

MAX_TOML = 1 << 20
"""Maximum characters of a TOML file."""


def user_name() -> str:
    """Return the name of this process's user, or the user id if it has no name, as is common in containers."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return str(getattr(os, "getuid", lambda: "unknown")())


class RegistryEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One configured registry.

    Attributes:
        name: What to call it.
        location: The path of a folder or a bundle, or the address of a static web server.
        root: SHA-256 of the root that anchors its signatures; empty trusts the first root seen in a folder.
    """

    name: str
    location: str
    root: str = ""


class Limit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one call may read; 0 means no limit, None defers to the general setting.

    Attributes:
        rows: Rows of a page (refused before it is requested), of a console answer, or of an export or iteration (ended
            as soon as it is known to have more).
        bytes: Bytes of the values of a page, a cell or an answer, as text; or of the documents of an export or
            iteration, before compression.
        seconds: Time from a call's first request to the last part of its answer.
    """

    rows: Annotated[int, msgspec.Meta(ge=0)] | None = None
    bytes: Annotated[int, msgspec.Meta(ge=0)] | None = None
    seconds: Annotated[float, msgspec.Meta(ge=0)] | None = None

    def with_those_of(self, special: Limit) -> Limit:
        """Return these limits, overridden by those that `special` sets."""
        overrides = {key: value for key, value in msgspec.structs.asdict(special).items() if value is not None}
        return msgspec.structs.replace(self, **overrides)


Level = Literal["off", "confirm-drops", "confirm-writes", "read-only"]


class Guard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the built-in automations for one connection; None defers to the general setting.

    Attributes:
        read_only: ``read-only`` refuses writes; ``confirm-writes`` and ``confirm-drops`` ask a person to confirm, and
            refuse when unattended.
        cut_cells: Refuse to overwrite a long value with its truncated beginning (E23).
        audit: Record every write and its outcome.
        production: Others depend on the data: the workbench opens the connection read-only, until a person unlocks it
            for a time.
        limits: What one call may read: `rows`, `bytes`, `seconds`.
    """

    read_only: Level | None = None
    cut_cells: bool | None = None
    audit: bool | None = None
    production: bool | None = None
    limits: Limit | None = None


class Guards(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The general `Guard` settings, and the overrides of single connections by name."""

    read_only: Level = "off"
    cut_cells: bool = True
    audit: bool = False
    production: bool = False
    limits: Limit = Limit()
    connections: dict[str, Guard] = {}

    def of(self, connection: str) -> Guards:
        """Return the settings that apply to one connection."""
        special = self.connections.get(connection, Guard())
        overrides = {key: value for key, value in msgspec.structs.asdict(special).items() if value is not None}
        overrides["limits"] = self.limits.with_those_of(special.limits or Limit())
        return msgspec.structs.replace(self, **overrides)

    def any(self, switch: str) -> bool:
        """Return whether a switch is on for at least one connection."""
        return any(
            getattr(guards, switch) not in (False, "off", Limit()) for guards in (self, *map(self.of, self.connections))
        )


Power = Literal["read", "plan", "write"]
"""What an agent may do: only read; also see what a change would send; also send it."""

_Most = Annotated[int, msgspec.Meta(ge=0)]
_CONSOLE_REQUEST = re.compile(
    r"(?:GET|HEAD|POST|PUT|PATCH|DELETE|\*) /(?:(?!\.{1,2}(?:/|$))[^\s/?#%;\\]+(?:/(?!$)|$))*"
)


class AgentRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What agents may do with one connection. A pattern is a name in which ``*`` and ``?`` stand for other characters.

    Attributes:
        allow: ``read``, ``plan`` (also see the exact requests of a change), or ``write`` (also send them).
        objects: Patterns of the objects that agents see; the others do not exist for them.
        columns: Patterns of the columns that agents see.
        hidden: Patterns of columns that do not exist for agents, nor what lies in them or around them.
        masked: Patterns of columns whose values agents do not see, and cannot filter, sort or summarize.
        console_reads: Console requests that count as reads, too, whatever the driver says: a method, or ``*``, and a
            path, ``POST /*/_explain/*``. Here ``*`` stands for characters other than ``/``, and ``**`` for any.
        console_forbidden: Console requests that agents never send, whatever `allow` says, written in the same way.
        hosts: Errors may name the host of the connection.
        rows: Rows of one answer; 0 means no limit, here and below.
        bytes: Bytes of one answer as JSON, of which about four are a token.
        rows_an_hour: Rows of all answers of an hour, of all agents of one server. A part of a cell
            counts as a row, and so does a value of a summary.
        bytes_an_hour: Bytes of all answers of an hour.
    """

    allow: Power = "read"
    objects: tuple[str, ...] = ("*",)
    columns: tuple[str, ...] = ("*",)
    hidden: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    console_reads: tuple[str, ...] = ()
    console_forbidden: tuple[str, ...] = ()
    hosts: bool = False
    rows: _Most = 500
    bytes: _Most = 32_768
    rows_an_hour: _Most = 20_000
    bytes_an_hour: _Most = 4 << 20

    def __post_init__(self) -> None:
        """Raise ValueError for a console request that is none."""
        for text in (*self.console_reads, *self.console_forbidden):
            if not _CONSOLE_REQUEST.fullmatch(text):
                raise ValueError(f"{text!r} is no method with a path, such as 'GET /_nodes/stats'")


class ConnectionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one connection, by its name.

    Attributes:
        agents: What agents may do; None if `dragoman mcp` serves the connection only where its command line names it.
    """

    agents: AgentRules | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of `config.toml`.

    Attributes:
        sandbox: ``auto`` takes the strongest level that the machine supports, ``require`` refuses below full,
            ``off`` is for development.
        processes: Where a runtime lives on, ``fork`` forks each driver's process from one that has imported what all
            need. ``spawn`` starts each by itself, with a memory layout of its own, as commands for one connection do.
        automations: Entry points of the group `dragoman.automations` to run, by name.
        guards: Settings of the built-in automations.
        connections: Settings of single connections by name.
        registries: Registries in lookup order, before the bundled one.
        allow_stale: Accept a registry's expired signatures; each use is recorded in the audit log.
        queries: A folder of saved queries that a team shares, one TOML file each; empty for none.
        keep_alive: Seconds for which an interrupted export can be resumed, where the server must hold something for it.
        time_zone: Where ``today``, ``this week`` and other relative times of a filter begin: ``Europe/Berlin``.
    """

    sandbox: Literal["auto", "require", "off"] = "auto"
    processes: Literal["fork", "spawn"] = "fork"
    automations: list[str] = []
    guards: Guards = Guards()
    connections: dict[str, ConnectionSettings] = {}
    registries: list[RegistryEntry] = []
    allow_stale: bool = False
    queries: str = ""
    keep_alive: Annotated[int, msgspec.Meta(ge=1)] = 300
    time_zone: str = "UTC"


_PART = r"""(?:(?<![\w-])[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_DEEP = re.compile(rf"(?:{_PART}[ \t]*+\.[ \t]*+){{64}}")
"""A key with more parts than any real file has; thousands of them occupy the parser for minutes."""


def parse_toml(text: str) -> dict[str, Any]:
    """Parse untrusted TOML. Raises ValueError, with the line number if known."""
    if len(text) > MAX_TOML:
        raise ValueError(f"it has {len(text)} characters, {MAX_TOML} are allowed")
    if _DEEP.search(text):
        raise ValueError("a key has more than 64 parts")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file that a person wrote; a missing file is empty.

    Raises:
        ConfigurationError: The file has a syntax error (line named) or cannot be read; it is left as it is.
    """
    from dragoman_registry.files import read_plain

    try:
        return _parse_file(path, read_plain(path, limit=4 * MAX_TOML))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error


def _parse_file(path: Path, data: bytes) -> dict[str, Any]:
    try:
        return parse_toml(data.decode())
    except ValueError as error:
        hint = "correct the line; the file is unchanged"
        raise ConfigurationError(f"{path} cannot be read: {error}", hint=hint) from error


def read_settings(path: Path) -> Settings:
    """Read `config.toml`.

    Raises:
        ConfigurationError: A syntax error, an unknown key, or a value that cannot be used.
    """
    return _settings(path, read_toml(path))


def _settings(path: Path, values: Mapping[str, Any]) -> Settings:
    try:
        return msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{path}: {error}", hint="see docs/reference/settings.md") from error


def change_file(path: Path, edit: Callable[[bytes], bytes], *, mode: int = 0o600) -> None:
    """Change a file as `dragoman_registry.files.change` does.

    Raises:
        ConfigurationError: The file cannot be locked, read or written; it is unchanged.
    """
    from dragoman_registry import files

    try:
        files.change(path, edit, mode=mode)
    except OSError as error:
        text = f"{path} cannot be written: {error.strerror or error}"
        raise ConfigurationError(text, hint=files.remedy(error, path.parent)) from error


def change_toml(path: Path, edit: Callable[[TOMLDocument, dict[str, Any]], None], *, mode: int) -> None:
    """Change a TOML file, keeping its comments and order, as `change_file` does.

    Args:
        path: The file.
        edit: Changes the document; it also gets the plain values, as they were. What it raises leaves the file alone.
        mode: The mode of a new file.

    Raises:
        ConfigurationError: The file cannot be locked, read or written, or has a syntax error; it is unchanged.
    """
    import tomlkit

    def change(data: bytes) -> bytes:
        values = _parse_file(path, data)
        document = tomlkit.parse(data.decode())
        edit(document, values)
        return tomlkit.dumps(document).encode()

    change_file(path, change, mode=mode)


def change_registries(path: Path, change: Callable[[Sequence[RegistryEntry]], Sequence[RegistryEntry]]) -> None:
    """Change the registries of `config.toml`, keeping its comments.

    Args:
        path: `config.toml`.
        change: Returns the new registries for the present ones. What it raises leaves the file alone.

    Raises:
        ConfigurationError: The file cannot be used; it is left as it is.
    """

    def edit(document: TOMLDocument, values: dict[str, Any]) -> None:
        entries = change(_settings(path, values).registries)  # never write into a file that does not fit
        tables = [{key: value for key, value in msgspec.structs.asdict(entry).items() if value} for entry in entries]
        if tables:
            document["registries"] = tables
        else:
            document.pop("registries", None)

    change_toml(path, edit, mode=0o644)
