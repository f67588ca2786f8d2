"""Secrets of connections: those that are stored, and those that a reference names."""

from __future__ import annotations

import os
import subprocess
import time
from copy import deepcopy
from shlex import quote
from threading import Thread
from typing import TYPE_CHECKING, Any

from dragoman.folders import check_own
from dragoman.references import STORED, Reference, read_file, regular_file
from dragoman.settings import change_toml, read_toml
from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tomlkit import TOMLDocument

COMMAND_SECONDS = 30
MAX_SECRET = 64 << 10
"""Bytes of a file that holds a secret."""


class StoredSecrets:
    """Typed secrets by connection and field, in a file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, connection: str, field: str) -> str | None:
        """Return one secret, None if none is stored.

        Raises:
            ConfigurationError: The file cannot be read, or other users can read or change it.
        """
        check_own(self._path, secret=True)
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

        check_own(self._path)
        if self._path.exists():
            self._change(drop)

    def _change(self, edit: Callable[[dict[str, Any]], None]) -> None:
        check_own(self._path)

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
        from dragoman_api.installation import packages_missing

        raise packages_missing(f"{where}: the package keyring is not installed", "keyring") from error
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
