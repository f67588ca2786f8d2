"""References to secrets and files, as a person entered them; nothing else is ever resolved, run or opened."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from copy import deepcopy
from pathlib import Path
from shlex import quote
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import msgspec

from dragoman_api.errors import ConfigurationError
from dragoman_api.forms import FieldKind, FieldValue

from .folders import expect_own
from .settings import change_toml, read_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tomlkit import TOMLDocument

Scheme = Literal["env", "file", "command", "keyring", "stored", "path"]
TYPED = ("env", "file", "command", "keyring")
"""Schemes of secrets that a person types as ``SCHEME:TARGET``."""

COMMAND_SECONDS = 30
MAX_SECRET = 64 << 10
"""Bytes of a file that holds a secret."""
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

    def is_that(self, about: os.stat_result) -> bool:
        """Return whether a stat result is still of this file."""
        return stat.S_ISREG(about.st_mode) and (about.st_dev, about.st_ino) == (self.device, self.inode)


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


class StoredSecrets:
    """Typed secrets by connection and field, in a file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, connection: str, field: str) -> str | None:
        """Return one secret, None if none is stored.

        Raises:
            ConfigurationError: The file cannot be read, or other users can read or change it.
        """
        expect_own(self._path, secret=True)
        value = _secrets_of(connection, read_toml(self._path)).get(field)
        return value if isinstance(value, str) else None

    def keep(self, connection: str, field: str, secret: str) -> Reference:
        """Store a secret and return its reference. Raises ConfigurationError if other users can change the file."""

        def add(stored: dict[str, Any]) -> None:
            stored[connection] = {**_secrets_of(connection, stored), field: secret}

        self._change(add)
        return STORED

    def forget(self, connection: str, *, but: Callable[[], Mapping[str, object]]) -> None:
        """Delete a connection's secrets, except those that its values (`but`) refer to by then. Raises as `keep`."""

        def drop(stored: dict[str, Any]) -> None:
            values, secrets = but(), _secrets_of(connection, stored).items()
            remaining = {key: text for key, text in secrets if values.get(key) == STORED}
            if remaining:
                stored[connection] = remaining
            else:
                stored.pop(connection, None)

        expect_own(self._path)
        if self._path.exists():
            self._change(drop)

    def _change(self, edit: Callable[[dict[str, Any]], None]) -> None:
        expect_own(self._path)

        def change(document: TOMLDocument, values: dict[str, Any]) -> None:
            before = deepcopy(values)
            edit(values)
            for name in [name for name in before if values.get(name) != before[name]]:
                del document[name]
            document.update({name: value for name, value in values.items() if value != before.get(name)})

        change_toml(self._path, change, mode=0o600)


def _secrets_of(connection: str, stored: Mapping[str, object]) -> Mapping[str, object]:
    """Return the secrets stored for a connection; an entry that is not a table holds none."""
    table = stored.get(connection)
    return table if isinstance(table, dict) else {}


def resolve(reference: Reference, *, where: str) -> str:
    """Read the secret that a reference names. May run a command or read a file: call it in a thread.

    Args:
        reference: Any reference but `stored`, which `StoredSecrets` handles.
        where: What the secret is for, used in messages.

    Raises:
        ConfigurationError: It cannot be resolved; the message never holds the secret.
    """
    match reference:
        case Reference("env", name):
            if (value := os.environ.get(name)) is None:
                raise ConfigurationError(f"{where}: the variable {name} is not set", hint=f"export {quote(name)}=…")
            return value
        case Reference("file", path):
            return read_file(regular_file(path, where=where), where=where, limit=MAX_SECRET).rstrip("\r\n")
        case Reference("command", command):
            return _run(command, where)
        case Reference("keyring", entry):
            return _from_keyring(entry, where)
    raise ConfigurationError(f"{where}: {reference} names no secret", hint="env:NAME, file:PATH or command:…")


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
            same = file.is_that(os.fstat(stream.fileno()))
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


def _run(command: str, where: str) -> str:
    import io
    import shlex

    try:
        data = _printed(shlex.split(command))
        return io.TextIOWrapper(io.BytesIO(data)).read().rstrip("\r\n")
    except subprocess.TimeoutExpired:
        reason = f"did not end within {COMMAND_SECONDS:g} s"
    except subprocess.CalledProcessError as error:
        reason = f"failed with exit status {error.returncode}"
    except UnicodeDecodeError:
        reason = "printed something other than text"
    except _TooMuchError:
        reason = f"printed more than {MAX_SECRET:,} bytes; a secret is shorter"
    except (OSError, ValueError) as error:  # unknown program, or an unclosed quote
        reason = f"failed ({type(error).__name__})"
    hint = f"run it yourself to see why: {command}"
    raise ConfigurationError(f"{where}: the command {command!r} {reason}", hint=hint) from None


class _TooMuchError(Exception):
    """A command printed more than the longest secret allowed."""


def _printed(words: list[str]) -> bytes:
    """Run the person's own command without a shell and return its output; kill it at a limit."""
    until, pieces = time.monotonic() + COMMAND_SECONDS, list[bytes]()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)  # noqa: S603
    assert process.stdout is not None
    output = process.stdout

    def read() -> None:
        with output:
            while sum(map(len, pieces)) <= MAX_SECRET and (piece := output.read(MAX_SECRET + 1)):
                pieces.append(piece)

    # Read in a thread: a process that the command started may keep the pipe open after it ends.
    reader = Thread(target=read, daemon=True)
    reader.start()
    try:
        reader.join(COMMAND_SECONDS)
        if sum(map(len, pieces)) > MAX_SECRET:
            raise _TooMuchError
        if reader.is_alive():
            raise subprocess.TimeoutExpired(words, COMMAND_SECONDS)
        if code := process.wait(max(0.0, until - time.monotonic())):
            raise subprocess.CalledProcessError(code, words)
    finally:
        process.kill()  # no effect if it has ended
        process.wait()
    return b"".join(pieces)


def _from_keyring(rest: str, where: str) -> str:
    try:
        import keyring  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        hint = "pip install keyring"
        raise ConfigurationError(f"{where}: the package keyring is not installed", hint=hint) from error
    service, _, user = rest.partition("/")
    backend = type(keyring.get_keyring())
    if "fail" in backend.__module__ or "null" in backend.__module__ or "plaintext" in backend.__name__.lower():
        raise ConfigurationError(f"{where}: this machine's keyring ({backend.__module__}) does not protect secrets")
    value = keyring.get_password(service, user)
    if value is None:
        raise ConfigurationError(
            f"{where}: the keyring holds nothing for {rest}", hint=f"keyring set {quote(service)} {quote(user)}"
        )
    return str(value)
