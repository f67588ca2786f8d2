"""References to secrets and files, as a person entered them; nothing else is ever resolved, run or opened."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Literal, cast, get_args

import msgspec

from dragoman_api.connections import FieldKind, FieldValue
from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

Scheme = Literal["env", "file", "command", "keyring", "stored", "path"]
TYPED = ("env", "file", "command", "keyring")
"""Schemes of secrets that a person types as ``SCHEME:TARGET``."""

MAX_PEM = 1 << 20
"""Bytes of a file of certificates."""


class Reference(msgspec.Struct, frozen=True):
    """The location of a secret or a file. A text never becomes a reference, whatever a driver's manifest says.

    Attributes:
        scheme: For a secret: ``env``, ``file``, ``command``, ``keyring``, or ``stored`` (in `secrets.toml`); for a
            field of kind ``file``: ``path``.
        target: Name of the variable, path, command, or ``SERVICE/USER``; empty for ``stored``.
    """

    scheme: Scheme
    target: str = ""

    def __str__(self) -> str:
        return self.target if self.scheme == "path" else f"{self.scheme}:{self.target or ' in secrets.toml'}"

    @property
    def table(self) -> dict[str, str | bool]:
        """The table that represents it in `connections.toml`."""
        return {self.scheme: self.target or True}

    def fits(self, kind: FieldKind) -> bool:
        """Return whether a field of this kind accepts the reference."""
        return kind is (FieldKind.FILE if self.scheme == "path" else FieldKind.SECRET)

    @property
    def act(self) -> str:
        """The host's action on it when the connection opens, in words."""
        return {
            "env": f"reads the variable {self.target}",
            "file": f"reads the file {self.target}",
            "command": f"runs the command  {self.target}",
            "keyring": f"asks the keyring for {self.target}",
            "stored": "reads what was typed, out of secrets.toml",
            "path": f"opens the file {self.target}",
        }[self.scheme]


class NamedFile(msgspec.Struct, frozen=True):
    """The identity of a regular file that a person named; a later file under the same name does not match.

    Attributes:
        path: Its path with links resolved.
        device: The number of its file system.
        inode: Its number in that file system.
    """

    path: Path
    device: int
    inode: int

    def is_same(self, status: os.stat_result) -> bool:
        """Return whether a stat result is still of this file."""
        return stat.S_ISREG(status.st_mode) and (status.st_dev, status.st_ino) == (self.device, self.inode)


Saved = FieldValue | Reference
"""A value of a saved connection."""

STORED = Reference("stored")


def from_table(table: Mapping[str, object]) -> Reference | None:
    """Read a reference from its `connections.toml` table; None if the table is not a reference."""
    [(scheme, target), *surplus] = table.items() or [("", None)]
    if scheme not in get_args(Scheme) or surplus:
        return None
    if scheme == "stored":
        return STORED if target is True else None
    return Reference(cast("Scheme", scheme), target) if isinstance(target, str) and target.strip() else None


def typed(text: str) -> Reference | None:
    """Parse a typed reference to a secret, such as ``env:NAME``; None for any other text."""
    scheme, _, target = text.partition(":")
    return Reference(cast("Scheme", scheme), target) if scheme in TYPED and target.strip() else None


def entered_path(text: str) -> Reference:
    """Parse a typed file path, relative to the current folder; ``~`` is not expanded."""
    return Reference("path", text if text.startswith("~") else os.path.abspath(text))  # noqa: PTH100 - links stay


def regular_file(text: str, *, where: str) -> NamedFile:
    """Find the file that a person named, following links. Raises ConfigurationError unless it is a regular file."""
    try:
        path = Path(text).expanduser().resolve(strict=True)
        status = path.lstat()  # a link that appears now is not followed
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a user without a home, a NUL
        raise _unreadable(text, where, error) from error
    if not stat.S_ISREG(status.st_mode):
        fault = (
            "a folder, which would make all of its files readable"
            if stat.S_ISDIR(status.st_mode)
            else "not a regular file"
        )
        hint = "name one file, since dragoman reads exactly that file"
        raise ConfigurationError(f"{where}: {text} is {fault}; it was not opened", hint=hint)
    return NamedFile(path, status.st_dev, status.st_ino)


def read_file(file: NamedFile, *, where: str, limit: int) -> str:
    """Read a regular file of at most `limit` bytes. Raises ConfigurationError."""
    try:
        # Non-blocking: the file may have been replaced by a pipe without a writer.
        nonblocking = getattr(os, "O_NONBLOCK", 0)
        with open(file.path, "rb", opener=lambda name, flags: os.open(name, flags | nonblocking)) as stream:
            same = file.is_same(os.fstat(stream.fileno()))
            data = stream.read(limit + 1) if same else b""
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(str(file.path), where, error) from error
    if not same or len(data) > limit:
        fault = f"larger than {limit:,} bytes" if same else "no longer the same file"
        raise ConfigurationError(f"{where}: {file.path} is {fault}", hint="name another" if same else "try again")
    return text


def _unreadable(path: str, where: str, error: Exception) -> ConfigurationError:
    return ConfigurationError(f"{where}: {path} cannot be read ({type(error).__name__})", hint=f"ls -l {quote(path)}")
