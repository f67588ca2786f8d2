"""Saved connections: `connections.toml`, its secrets by reference, and the profile a driver is given."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api.connections import AuthScheme, Profile, Secrets, SslMode
from dragoman_api.errors import ConfigurationError
from dragoman_api.forms import FieldKind, FormField

from .settings import Paths, read_toml, write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman_api.forms import FieldValue

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SECRET_SCHEMES = ("env", "file", "command", "keyring", "stored")
COMMAND_SECONDS = 30


def stored_reference(connection: str, field: str) -> str:
    """Give the reference to a secret that `Connections.store_secret` keeps."""
    return f"stored:{connection}.{field}"


class SavedConnection(msgspec.Struct, frozen=True, kw_only=True):
    """One saved connection; secrets are references, never values.

    Attributes:
        name: By which every command addresses it.
        type: The database type; decides the driver.
        values: The form's fields by name.
    """

    name: str
    type: str
    values: dict[str, str | int | bool | None]


class Connections:
    """The file of saved connections."""

    def __init__(self, paths: Paths) -> None:
        self._path = paths.connections
        self._stored = paths.config / "secrets.toml"

    def list(self) -> list[SavedConnection]:
        """Give every saved connection, by name.

        Raises:
            ConfigurationError: A syntax error (line named), or an entry that cannot be used.
        """
        entries = read_toml(self._path)
        return [self._entry(name, values) for name, values in sorted(entries.items())]

    def get(self, name: str) -> SavedConnection:
        """Give one saved connection.

        Raises:
            ConfigurationError: There is none of that name, or the file cannot be used.
        """
        entries = read_toml(self._path)
        if name not in entries:
            known = ", ".join(sorted(entries)) or "none yet"
            hint = f"dragoman connections add {name}"
            raise ConfigurationError(f"no connection is called {name!r} (saved: {known})", hint=hint)
        return self._entry(name, entries[name])

    def _entry(self, name: str, values: object) -> SavedConnection:
        if not isinstance(values, dict) or not isinstance(values.get("type"), str):
            hint = f'add a line below [{name}], for example: type = "elasticsearch"'
            raise ConfigurationError(f"{self._path}: [{name}] needs a type", hint=hint)
        rest: dict[str, Any] = {key: value for key, value in values.items() if key != "type"}
        for key, value in rest.items():
            if not isinstance(value, str | int | bool):
                raise ConfigurationError(f"{self._path}: [{name}] {key} is neither text, number nor true/false")
        return SavedConnection(name=name, type=values["type"], values=rest)

    def check_name(self, name: str, *, replace: bool = False) -> None:
        """Refuse a name that cannot be used or is taken; also asked before anybody fills in a form.

        Raises:
            ConfigurationError: It is one of them, or the file cannot be used.
        """
        if not NAME.fullmatch(name):
            hint = "use letters, digits, dots, hyphens and underscores, 64 at most"
            raise ConfigurationError(f"{name!r} cannot name a connection", hint=hint)
        if not replace and name in read_toml(self._path):
            hint = f"dragoman connections edit {name}"
            raise ConfigurationError(f"a connection called {name!r} is saved already", hint=hint)

    def save(self, connection: SavedConnection, *, replace: bool = False) -> None:
        """Write one connection, keeping the file's comments and order; a stored secret it left behind goes.

        Raises:
            ConfigurationError: The name cannot be used or is taken; the file has a syntax error (it is left alone).
        """
        self.check_name(connection.name, replace=replace)
        document = self._document()
        table = document.get(connection.name)
        if table is None:
            import tomlkit

            table = tomlkit.table()
            document[connection.name] = table
        values = {key: value for key, value in connection.values.items() if value is not None}
        wanted = {"type": connection.type, **values}
        for key in [key for key in table if key not in wanted]:
            del table[key]
        for key, value in wanted.items():
            if table.get(key) != value:
                table[key] = value
        self._write(document)
        self._forget(connection.name, but=wanted)

    def remove(self, name: str) -> None:
        """Forget one connection and the secrets stored for it.

        Raises:
            ConfigurationError: There is none of that name, or the file has a syntax error.
        """
        self.get(name)
        document = self._document()
        del document[name]
        self._write(document)
        self._forget(name, but={})

    def _forget(self, name: str, *, but: Mapping[str, object]) -> None:
        """Drop the secrets stored for a connection, except those that its values refer to."""
        stored = read_toml(self._stored)
        had = stored.pop(name, {})
        kept = {field: secret for field, secret in had.items() if but.get(field) == stored_reference(name, field)}
        if kept != had:
            self._write_stored({**stored, name: kept} if kept else stored)

    def store_secret(self, connection: str, field: str, value: str) -> str:
        """Keep a secret in a file that only its owner can read, and give the reference to it."""
        stored = read_toml(self._stored)
        stored.setdefault(connection, {})[field] = value
        self._write_stored(stored)
        return stored_reference(connection, field)

    def _document(self) -> Any:
        import tomlkit

        read_toml(self._path)  # a file with a syntax error is never written into
        return tomlkit.parse(self._path.read_text(encoding="utf-8") if self._path.exists() else "")

    def _write(self, document: Any) -> None:
        import tomlkit

        write_atomically(self._path, tomlkit.dumps(document).encode(), mode=0o600)

    def _write_stored(self, stored: Mapping[str, object]) -> None:
        import tomlkit

        write_atomically(self._stored, tomlkit.dumps(stored).encode(), mode=0o600)

    def resolve_secret(self, reference: str, *, field: str, connection: str) -> str:
        """Read the secret a reference names. May run a command or read a file: call it in a thread.

        Raises:
            ConfigurationError: The reference cannot be resolved; the message never holds the secret.
        """
        scheme, _, rest = reference.partition(":")
        where = f"{field} of {connection!r}"
        match scheme:
            case "env":
                if (value := os.environ.get(rest)) is None:
                    raise ConfigurationError(f"{where}: the variable {rest} is not set", hint=f"export {rest}=…")
                return value
            case "file":
                try:
                    return Path(rest).expanduser().read_text(encoding="utf-8").rstrip("\r\n")
                except (OSError, UnicodeDecodeError) as error:
                    raise ConfigurationError(f"{where}: {rest} cannot be read ({type(error).__name__})") from error
            case "command":
                return _run(rest, where)
            case "keyring":
                return _from_keyring(rest, where)
            case "stored":
                value = read_toml(self._stored).get(connection, {}).get(field)
                if not isinstance(value, str):
                    hint = f"dragoman connections edit {connection}"
                    raise ConfigurationError(f"{where}: no stored secret is there", hint=hint)
                return value
        hint = f'name it instead: {field} = "env:NAME", "file:PATH", "command:…" or "keyring:SERVICE/USER"'
        raise ConfigurationError(f"{where} is written out in {self._path}; a secret is named, not written", hint=hint)


def _run(command: str, where: str) -> str:
    import shlex

    try:
        done = subprocess.run(  # noqa: S603 - the person's own command, without a shell
            shlex.split(command), capture_output=True, timeout=COMMAND_SECONDS, check=True, text=True
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise ConfigurationError(f"{where}: the command {command!r} failed ({type(error).__name__})") from error
    return done.stdout.rstrip("\r\n")


def _from_keyring(rest: str, where: str) -> str:
    try:
        import keyring  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        hint = "pip install keyring"
        raise ConfigurationError(f"{where}: the package keyring is not installed", hint=hint) from error
    service, _, user = rest.partition("/")
    backend = type(keyring.get_keyring())
    if "fail" in backend.__module__ or "null" in backend.__module__ or "plaintext" in backend.__name__.lower():
        raise ConfigurationError(f"{where}: this machine's keyring ({backend.__module__}) keeps nothing safe")
    value = keyring.get_password(service, user)
    if value is None:
        raise ConfigurationError(f"{where}: the keyring holds nothing for {rest}", hint=f"keyring set {service} {user}")
    return str(value)


def check_values(fields: Sequence[FormField], values: Mapping[str, FieldValue], *, name: str) -> dict[str, FieldValue]:
    """Check a connection's values against its driver's form and fill in the defaults.

    Args:
        fields: The form.
        values: As saved or typed.
        name: The connection's, for messages.

    Returns:
        A value for every field that is visible beside the others.

    Raises:
        ConfigurationError: Every fault at once: unknown fields, wrong kinds, values outside a choice, empty fields.
    """
    known = {field.name: field for field in fields}
    faults = [f"{key}: no such field (there are {', '.join(known)})" for key in values if key not in known]
    complete = {field.name: values.get(field.name, field.default) for field in fields}
    result: dict[str, FieldValue] = {}
    for field in fields:
        if not field.visible(complete):
            continue
        value, fault = _coerce(field, complete[field.name])
        if fault:
            faults.append(f"{field.name}: {fault}")
        elif field.required and value in (None, ""):
            faults.append(f"{field.name}: may not be empty")
        result[field.name] = value
    if faults:
        hint = f"dragoman connections edit {name}"
        raise ConfigurationError(f"connection {name!r}: " + "; ".join(faults), hint=hint)
    return result


_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def _coerce(field: FormField, value: FieldValue) -> tuple[FieldValue, str]:
    if value is None:
        return None, ""
    match field.kind:
        case FieldKind.INTEGER:
            try:
                number = int(value)
            except ValueError:
                return value, f"{value!r} is no whole number"
            in_range = field.name != "port" or 1 <= number <= 65535
            return number, "" if in_range else f"{number} is no TCP port"
        case FieldKind.SWITCH:
            text = str(value).lower()
            known = text in _TRUE or text in _FALSE
            return (text in _TRUE) if known else value, "" if known else f"{value!r} is neither true nor false"
        case FieldKind.CHOICE:
            allowed = [choice.value for choice in field.choices]
            return str(value), "" if str(value) in allowed else f"{value!r} is not one of {', '.join(allowed)}"
        case _:
            return str(value), ""


def make_profile(
    connection: SavedConnection, values: Mapping[str, FieldValue], *, scheme: AuthScheme, secrets: Mapping[str, str]
) -> Profile:
    """Make what a driver is given from checked values and resolved secrets.

    Raises:
        ConfigurationError: The CA file cannot be read.
    """
    options = {key: value for key, value in values.items() if key not in secrets}
    taken = {key: options.pop(key, None) for key in ("host", "port", "ssl_mode", "skip_tls_verification", "ca_file")}
    certificate = options.pop("client_certificate", None)
    ca_pem = ""
    if taken["ca_file"]:
        try:
            ca_pem = Path(str(taken["ca_file"])).expanduser().read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"ca_file {taken['ca_file']} cannot be read ({type(error).__name__})") from error
    return Profile(
        name=connection.name,
        type=connection.type,
        host=str(taken["host"] or "localhost").strip("[]"),
        port=int(taken["port"] or 0),
        ssl_mode=SslMode(str(taken["ssl_mode"] or "disabled")),
        skip_tls_verification=bool(taken["skip_tls_verification"]),
        auth_scheme=scheme,
        ca_pem=ca_pem,
        client_certificate=str(Path(str(certificate)).expanduser().absolute()) if certificate else "",
        options=options,
        secrets=Secrets(values=dict(secrets)),
    )
