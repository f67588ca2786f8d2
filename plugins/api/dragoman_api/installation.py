"""How this dragoman was installed, and the commands that add packages to it, upgrade it and remove it."""

from __future__ import annotations

import json
import re
import shutil
import sys
import sysconfig
import tomllib
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec

from .errors import ConfigurationError
from .wording import shell_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.metadata import Distribution

HOST = "dragoman"
"""The distribution whose environment is meant."""

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[([^]]*)])?")


class Installer(StrEnum):
    """The program that manages the environment of this process."""

    PIP = "pip"
    PIPX = "pipx"
    UV_PIP = "uv pip"  # an environment without pip
    UV_TOOL = "uv tool"
    UVX = "uvx"  # an environment in uv's cache, for one run
    SYSTEM = "system"  # a package manager of the system, whose Python refuses pip (PEP 668)


def installer() -> Installer:
    """Return the program that manages the environment of this process."""
    prefix = Path(sys.prefix)
    if (prefix / "uv-receipt.toml").is_file():
        return Installer.UV_TOOL
    if (prefix / "pipx_metadata.json").is_file():
        return Installer.PIPX
    if "archive-v0" in prefix.parts:
        return Installer.UVX
    if sys.prefix == sys.base_prefix and Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").is_file():
        return Installer.SYSTEM
    return Installer.PIP if any(Path(folder, "pip").is_dir() for folder in sys.path) else Installer.UV_PIP


def packages_missing(reason: str, *requirements: str) -> ConfigurationError:
    """Return the error for missing packages (code ``extra-missing``), whose hint installs all of them."""
    return ConfigurationError(reason, hint=add_command(*requirements), code="extra-missing")


def add_command(*requirements: str) -> str:
    """Return the command that adds packages to this environment, and keeps what was added before; words if none does.

    Args:
        requirements: Names, with extras if any: ``dragoman[arrow]``, ``keyring``.
    """
    extras = _extras_by_name(requirements)
    ours = HOST in extras
    host_extras = extras.pop(HOST, set())
    host, others = _bracketed(HOST, host_extras), [_bracketed(name, extras[name]) for name in sorted(extras)]
    match installer():
        case Installer.UV_TOOL:
            try:
                words = ["uv", "tool", "install", *_receipt_words({HOST: host_extras, **extras})]
            except (OSError, ValueError):  # what it holds besides may be a secret
                additions = [*([f"{host} in place of {HOST}"] if host_extras else []), *_each("--with", others)]
                return f"repeat the command `uv tool install` that installed {HOST}, with {' '.join(additions)}"
        case Installer.PIPX:
            host = _bracketed(HOST, host_extras | _extras_by_name([_pipx_spec()]).get(HOST, set()))
            words = ["pipx", "inject", HOST, *([host] if ours else []), *others]
        case Installer.UVX:
            words = ["uvx", "--from", host, *_each("--with", others), HOST]
        case Installer.SYSTEM if _prefers_uv():
            words = ["uv", "tool", "install", host, *_each("--with", others)]
        case Installer.SYSTEM:
            words = ["pipx", "install", host, *_each("--preinstall", others)]
        case _:
            words = [*_pip("install"), *([host] if ours else []), *others]
    return shell_line(words)


def upgrade_command() -> str:
    """Return the command that brings a newer dragoman."""
    match installer():
        case Installer.UV_TOOL:
            return f"uv tool upgrade {HOST}"
        case Installer.PIPX:
            return f"pipx upgrade {HOST}"
        case Installer.UVX:
            return f"uvx {HOST}@latest"
        case Installer.SYSTEM:
            return f"{'uv tool' if _prefers_uv() else 'pipx'} install {HOST}"
        case _:
            return shell_line([*_pip("install"), "--upgrade", *_ours()])


def removal_command() -> str:
    """Return the command that removes dragoman, and the distributions beside it, from this environment."""
    match installer():
        case Installer.UV_TOOL:
            return f"uv tool uninstall {HOST}"
        case Installer.PIPX:
            return f"pipx uninstall {HOST}"
        case Installer.UVX:
            return f"uv cache clean {HOST}"
        case manager:
            break_in = ["--break-system-packages"] if manager == Installer.SYSTEM else []
            return shell_line([*_pip("uninstall"), *break_in, *_ours()])


def _ours() -> list[str]:
    """Return the names of the distributions of dragoman in this environment."""
    from importlib.metadata import distributions

    names = {_name_of(distribution).replace("_", "-") for distribution in distributions()}
    return sorted(name for name in {HOST, *names} if name == HOST or name.startswith(f"{HOST}-"))


def _name_of(distribution: Distribution) -> str:
    """Return the name of a distribution; empty for one that is broken, however its reader tells so."""
    try:
        metadata = distribution.metadata
        return metadata["Name"] if metadata and "Name" in metadata else ""
    except OSError:
        return ""


def _pip(verb: str) -> list[str]:
    if installer() == Installer.UV_PIP:
        return ["uv", "pip", verb, "--python", sys.executable]
    first = shutil.which("python")
    is_ours = first is not None and Path(first).parent == Path(sys.executable).parent
    return ["python" if is_ours else sys.executable, "-m", "pip", verb]


def _prefers_uv() -> bool:
    return shutil.which("uv") is not None and shutil.which("pipx") is None


def _each(option: str, values: Iterable[str]) -> Iterator[str]:
    for value in values:
        yield from (option, value)


def _bracketed(name: str, extras: set[str]) -> str:
    return f"{name}[{','.join(sorted(extras))}]" if extras else name


def _extras_by_name(requirements: Iterable[str]) -> dict[str, set[str]]:
    extras: dict[str, set[str]] = {}
    for match in filter(None, map(_REQUIREMENT.match, requirements)):
        extras.setdefault(match[1], set()).update(filter(None, (match[2] or "").replace(" ", "").split(",")))
    return extras


def _pipx_spec() -> str:
    """Return what pipx was asked to install; empty if its record cannot be read."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        record = json.loads(Path(sys.prefix, "pipx_metadata.json").read_text(encoding="utf-8"))
        return str(record["main_package"]["package_or_url"])
    return ""


class _Wanted(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    extras: tuple[str, ...] = ()
    specifier: str = ""
    editable: str = ""
    path: str = ""
    directory: str = ""
    url: str = ""


class _Index(msgspec.Struct, forbid_unknown_fields=True):
    url: str
    name: str = ""
    default: bool = False
    explicit: bool = False
    format: Literal["simple"] = "simple"
    authenticate: Literal["auto"] = "auto"


class _Options(msgspec.Struct, forbid_unknown_fields=True, rename="kebab"):
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    index: tuple[_Index, ...] = ()


class _Tool(msgspec.Struct, forbid_unknown_fields=True):
    requirements: tuple[_Wanted, ...]
    options: _Options = msgspec.field(default_factory=_Options)
    python: str = ""
    entrypoints: Any = None


class _Receipt(msgspec.Struct):
    """What uv notes about a tool, as far as a command can say it again."""

    tool: _Tool


def _receipt_words(extras: dict[str, set[str]]) -> Iterator[str]:
    """Yield the arguments of `uv tool install`, which drops whatever it is not given again: the host comes first.

    Raises:
        OSError, ValueError: The receipt cannot be read, or has more than these arguments say.
    """
    text = Path(sys.prefix, "uv-receipt.toml").read_text(encoding="utf-8")
    tool = msgspec.convert(tomllib.loads(text), _Receipt).tool
    entries = {name: _Wanted(name) for name in extras} | {entry.name: entry for entry in tool.requirements}
    for name, entry in entries.items():
        yield from _receipt_entry(entry, extras.get(name, set()) | {*entry.extras})
    for index in tool.options.index:
        if index.explicit:
            raise ValueError("an index for some packages")
        name = f"{index.name}=" if index.name else ""
        yield from ("--default-index" if index.default else "--index", name + _printable(index.url))
    if tool.options.no_index:
        yield "--no-index"
    yield from _each("--find-links", map(_printable, tool.options.find_links))
    if tool.python:
        yield from ("--python", tool.python)


def _receipt_entry(entry: _Wanted, extras: set[str]) -> Iterator[str]:
    if entry.editable:
        yield from ("--editable" if entry.name == HOST else "--with-editable", _bracketed(entry.editable, extras))
        return
    if entry.name != HOST:
        yield "--with"
    path = entry.path or entry.directory
    source = Path(path).as_uri() if path else _printable(entry.url)
    yield _bracketed(entry.name, extras) + (f" @ {source}" if source else entry.specifier)


def _printable(address: str) -> str:
    """Return an address that holds no credentials. Raises ValueError."""
    parts = urlsplit(address)
    local = parts.scheme == "file"
    if "@" in parts.netloc or parts.query or parts.fragment or not (local or all(map(_is_word, parts.path.split("/")))):
        raise ValueError("an address with credentials")
    return address


def _is_word(segment: str) -> bool:
    """Whether a part of a path is a name, rather than the token that some services put there.

    >>> [*map(_is_word, ("dragoman-1.0.0-py3-none-any.whl", "aZ3kPq9LmT2xVb7s", "eyJhbGciOiJI.eyJzdWIi.c2ln"))]
    [True, False, False]
    """
    is_file = segment.endswith((".whl", ".tar.gz", ".zip"))
    return is_file or len(segment) < 16 or segment.replace("-", "").replace("_", "").isalpha()
