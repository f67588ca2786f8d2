"""Saved connections: the file `connections.toml`."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.connections.secrets import StoredSecrets, resolve
from dragoman.folders import Exposure, Paths, check_own, find_exposure
from dragoman.references import Reference, Saved, from_table
from dragoman.sandbox.reach import route
from dragoman.sandbox.reach.address_history import AddressHistory
from dragoman.sandbox.reach.route import Route
from dragoman.settings import change_toml, read_toml
from dragoman.spellings import did_you_mean, near_names
from dragoman_api.errors import ConfigurationError
from dragoman_registry.names import TYPE, is_field_name

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_BARE = re.compile(r"[A-Za-z0-9_-]+")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MAX_TEXT = 16_384
"""Maximum characters of one saved value."""
MAX_FIELDS = 200
"""Maximum fields of one saved connection."""
PINNED = "pinned-certificates"
"""The key of the pinned certificates."""
SIGN_IN_AT = "sign-in-at"
"""The key of the token endpoint, ``HOST:PORT``, that a person agreed to."""
MAX_PINS = 20
"""Maximum number of pinned certificates of one connection."""
QUERIES, OBJECTS = "saved-queries", "object-defaults"
"""Sections of a connection that are no fields of its form; see `saved_queries`."""
SHOWN = 20
"""Maximum number of names that a message about an unknown one lists."""
OWN_KEYS = ("type", route.KEY, PINNED, SIGN_IN_AT, QUERIES, OBJECTS)
"""Keys of the host beside the fields of a driver's form: no field has a hyphen in its name, or is called ``type``."""
FORMS = (
    '{ env = "NAME" }, { file = "PATH" }, { command = "…" }, { keyring = "SERVICE/USER" }, { stored = true }, '
    'and for a file { path = "PATH" }'
)
"""References as they are written."""


class SavedConnection(msgspec.Struct, frozen=True, kw_only=True):
    """One saved connection; secrets and files are references, never texts.

    Attributes:
        name: The name that commands use for it.
        type: The database type, which selects the driver.
        values: The form's fields by name.
        via: What is between this machine and the host; None for nothing. The driver does not learn of it.
        pinned: ``HOST:PORT`` → the certificate that a person pinned for it, base64 of DER.
        sign_in_at: ``HOST:PORT`` of the token endpoint that a person agreed to; empty for none.
    """

    name: str
    type: str
    values: Mapping[str, Saved]
    via: Route | None = None
    pinned: Mapping[str, str] = msgspec.field(default_factory=dict)
    sign_in_at: str = ""

    @property
    def references(self) -> dict[str, Reference]:
        """What the host reads and runs when it opens the connection, by field."""
        own = {key: value for key, value in self.values.items() if isinstance(value, Reference)}
        return own | (dict(self.via.references) if self.via else {})


def check_unedited(connection: SavedConnection, saved: SavedConnection) -> None:
    """Refuse a connection that was edited since a person was asked about it.

    Args:
        connection: The connection as it was then.
        saved: As it is now; only what a person consented to may differ.

    Raises:
        ConfigurationError: It was edited.
    """
    if msgspec.structs.replace(saved, pinned=connection.pinned, sign_in_at=connection.sign_in_at) != connection:
        reason = f"connection {connection.name!r} was edited elsewhere before you answered; your answer was not saved"
        raise ConfigurationError(reason, hint=f"dragoman connections show {connection.name}\nthen repeat the command")


class Connections:
    """The file of saved connections.

    Attributes:
        reached: How near (in network terms) each host was when first reached.
    """

    def __init__(self, paths: Paths) -> None:
        self._path = paths.connections
        self._secrets = StoredSecrets(paths.config / "secrets.toml")
        self.reached = AddressHistory(paths.data / "reached.json")

    def list(self) -> list[SavedConnection]:
        """Return the usable saved connections by name; `sifted` also reports the unusable ones.

        Raises:
            ConfigurationError: The file cannot be read.
        """
        return [*self.sifted()[0]]

    def sifted(self) -> tuple[Sequence[SavedConnection], dict[str, ConfigurationError]]:
        """Return the usable connections by name, and for each unusable one the reason.

        Raises:
            ConfigurationError: The file cannot be read: it has a syntax error (line named) or is not a plain file.
        """
        hidden = dict[str, ConfigurationError]()
        sound = []
        for name, values in sorted(self._entries().items()):
            try:
                sound.append(self._entry(name, values))
            except ConfigurationError as error:
                hidden[name] = error
        return sound, hidden

    def get(self, name: str) -> SavedConnection:
        """Return one saved connection.

        Raises:
            ConfigurationError: No connection has that name, or the file cannot be used.
        """
        entries = self._entries()
        if name not in entries:
            raise _unknown(name, sorted(entries))
        return self._entry(name, entries[name])

    def _entries(self) -> dict[str, Any]:
        return read_toml(self._path)

    def _entry(self, name: str, values: object) -> SavedConnection:
        _check(name)  # the name appears in commands to paste
        if not isinstance(values, dict) or not isinstance(values.get("type"), str):
            hint = f'add a line below [{name}], for example: type = "elasticsearch"'
            raise ConfigurationError(f"{self._path}: [{name}] needs a type", hint=hint)
        if not TYPE.fits(values["type"]):
            raise ConfigurationError(f"{self._path}: [{name}] {TYPE.reason(values['type'])}", hint=TYPE.hint)
        if len(values) > MAX_FIELDS:
            reason = f"{self._path}: [{name}] has {len(values)} fields, {MAX_FIELDS} are read"
            raise ConfigurationError(reason, hint="no form has that many fields; check where the file comes from")
        raw_values = {key: value for key, value in values.items() if key not in OWN_KEYS}
        rest = {key: self._value(f"[{name}] {key}", value) for key, value in raw_values.items()}
        between = self._via(name, values[route.KEY]) if route.KEY in values else None
        pinned = self._pinned(name, values.get(PINNED, {}))
        at = values.get(SIGN_IN_AT, "")
        if not isinstance(at, str):
            raise ConfigurationError(f"{self._path}: [{name}] {SIGN_IN_AT} is no text", hint="HOST:PORT")
        return SavedConnection(
            name=name, type=values["type"], values=rest, via=between, pinned=pinned, sign_in_at=at[:MAX_TEXT]
        )

    def _pinned(self, name: str, table: object) -> dict[str, str]:
        if isinstance(table, dict) and len(table) <= MAX_PINS and all(map(_is_certificate, table.values())):
            return table
        reason = f"{self._path}: [{name}] {PINNED} is no table of at most {MAX_PINS} servers and their certificates"
        raise ConfigurationError(reason, hint="delete the line, and pin the certificates again")

    def _via(self, name: str, table: object) -> Route:
        try:
            return route.read_route(table if isinstance(table, dict) else {})
        except ConfigurationError as error:
            raise ConfigurationError(f"{self._path}: [{name}] {error.message}", hint=error.hint) from None

    def _value(self, where: str, value: object) -> Saved:
        reference = from_table(value) if isinstance(value, dict) else None
        text = reference.target if reference else value
        if isinstance(text, str) and len(text) > MAX_TEXT:
            reason, hint = f"has {len(text)} characters, {MAX_TEXT} are read", "name a file in its place, if it may be"
        elif isinstance(value, int) and value.bit_length() > 63:
            reason, hint = "is a number of more than 64 bits", "no field of a form takes it"
        elif reference:
            return reference
        elif isinstance(value, str | int):
            return value
        else:
            reason, hint = "is neither text, number, true/false nor a reference", f"one of {FORMS}"
        raise ConfigurationError(f"{self._path}: {where[:200]} {reason}", hint=hint)

    def check_name(self, name: str, *, replace: bool = False) -> None:
        """Refuse a name that is invalid or taken; also called before a form is filled in.

        Raises:
            ConfigurationError: The name is invalid or taken, or the file cannot be used.
        """
        _check(name)
        if not replace and name in self._entries():
            raise _name_taken(name)

    def save(
        self, connection: SavedConnection, *, replace: bool = False, before: SavedConnection | None = None
    ) -> None:
        """Write one connection, keeping the file's comments and order; delete stored secrets it no longer uses.

        Args:
            connection: The connection.
            replace: One of that name may be replaced.
            before: The one that is replaced, as it was when the new one was entered: what a person consented to since
                then stays.

        Raises:
            ConfigurationError: The name cannot be used or is taken; the file has a syntax error (it is left alone); or
                the one to replace was edited since.
        """
        if before is not None:
            self.amend(connection.name, partial(_with_consents, connection, before))
            return
        _check(connection.name)
        for field in connection.values:
            if not is_field_name(field):
                raise ConfigurationError(f"{field[:80]!r} cannot name a field", hint="use a-z, 0-9 and underscores")

        def put(entries: Mapping[str, Any]) -> SavedConnection:
            if connection.name in entries and not replace:
                raise _name_taken(connection.name)
            return connection

        self._put(put)

    def amend(self, name: str, edit: Callable[[SavedConnection], SavedConnection]) -> SavedConnection:
        """Change one connection as it is saved now, whatever was saved meanwhile, and return it.

        Args:
            name: Its name, which stays.
            edit: Returns the changed connection; what it raises leaves the file alone. It must not wait for anything.

        Raises:
            ConfigurationError: No connection has that name, or the file cannot be used.
        """

        def put(entries: Mapping[str, Any]) -> SavedConnection:
            _check_saved(name, entries)
            return edit(self._entry(name, entries[name]))

        return self._put(put)

    def _put(self, make: Callable[[Mapping[str, Any]], SavedConnection]) -> SavedConnection:
        """Write the connection that `make` returns for the entries of the file."""
        result: list[SavedConnection] = []

        def edit(document: TOMLDocument, entries: dict[str, Any]) -> None:
            result[:] = [connection := make(entries)]
            _write_entry(document, connection, {name: entries[name] for name in entries if name != connection.name})

        self._change(edit)
        [connection] = result
        self._secrets.forget(connection.name, but=partial(self._in_use, connection.name))
        return connection

    def remove(self, name: str) -> None:
        """Delete one connection and the secrets stored for it.

        Raises:
            ConfigurationError: No connection has that name, or the file has a syntax error.
        """

        def edit(document: TOMLDocument, entries: dict[str, Any]) -> None:
            _check_saved(name, entries)
            del document[name]

        self._change(edit)
        self._secrets.forget(name, but=partial(self._in_use, name))
        self.reached.forget(name)

    def _in_use(self, name: str) -> Mapping[str, object]:
        """Return the saved values that may name stored secrets; none if there is no such connection any more."""
        entries = self._entries()
        connection = self._entry(name, entries[name]) if name in entries else None
        return {**connection.values, **connection.references} if connection else {}

    def section(self, name: str, key: str) -> dict[str, Any]:
        """Return a section of one connection, as it stands in the file: `QUERIES` or `OBJECTS`.

        Raises:
            ConfigurationError: No connection has that name, the section is no table, or the file cannot be used.
        """
        return self._section(self._entries(), name, key)

    def _section(self, entries: Mapping[str, Any], name: str, key: str) -> dict[str, Any]:
        _check_saved(name, entries)
        entry = entries[name]
        section = entry.get(key, {}) if isinstance(entry, dict) else {}
        if not isinstance(section, dict):
            raise ConfigurationError(f"{self._path}: [{name}] {key} is no table", hint=f"write [{name}.{key}.NAME]")
        return section

    def has_sections(self, name: str) -> bool:
        """Whether queries, or defaults of objects, are saved with a connection; raises what `section` does."""
        return any(self.section(name, key) for key in (QUERIES, OBJECTS))

    def find_section(self, name: str, key: str) -> dict[str, Any]:
        """Return a section as `section` does; an empty one if no connection has that name."""
        return self.section(name, key) if name in self._entries() else {}

    def change_section(
        self,
        name: str,
        key: str,
        entry: str,
        values: Mapping[str, Any] | None,
        *,
        check: Callable[[Mapping[str, Any]], None],
    ) -> None:
        """Write one table of a section, keeping the file's comments; None deletes it.

        Args:
            name: The connection's name.
            key: The section's.
            entry: The table's.
            values: Its new contents.
            check: Gets the section; what it raises leaves the file alone.

        Raises:
            ConfigurationError: No connection has that name, the section is no table, or the file cannot be used.
        """
        import tomlkit

        def edit(document: TOMLDocument, entries: dict[str, Any]) -> None:
            check(self._section(entries, name, key))
            connection: Any = document[name]
            if key not in connection:
                connection[key] = tomlkit.table(is_super_table=True)
            if values is None:
                connection[key].pop(entry, None)
            else:
                table = tomlkit.table()
                for field, value in values.items():
                    table[field] = value
                connection[key][entry] = table
            if not connection[key]:
                del connection[key]

        self._change(edit)

    def check_saved(self, name: str) -> None:
        """Refuse a name that has no saved entry, usable or not. Raises ConfigurationError."""
        _check_saved(name, self._entries())

    def store_secret(self, connection: str, field: str, value: str) -> Reference:
        """Store a secret in a file that only its owner can read, and return a reference to it."""
        return self._secrets.keep(connection, field, value)

    def check_own(self) -> None:
        """Refuse to act on references if other users can write the file. Raises ConfigurationError."""
        check_own(self._path)

    def exposures(self) -> Sequence[Exposure]:
        """List how other users can change the file, and so redirect connections: one exposure or none."""
        return [exposure] if (exposure := find_exposure(self._path)) else []

    def stored(self, connection: str, field: str) -> bool:
        """Return whether a secret is stored for a field."""
        return self._secrets.get(connection, field) is not None

    def secret(self, reference: Reference, *, connection: str, field: str) -> str:
        """Read the secret of a field. May run a command or read a file: call it in a thread.

        Raises:
            ConfigurationError: It cannot be resolved; the message never contains the secret.
        """
        self.check_own()
        where = f"{field} of {connection!r}"
        if reference.scheme == "stored":
            if (value := self._secrets.get(connection, field)) is None:
                hint = f"dragoman connections edit {connection}"
                raise ConfigurationError(f"{where}: its stored secret is missing", hint=hint)
            return value
        return resolve(reference, where=where)

    def _change(self, edit: Callable[[TOMLDocument, dict[str, Any]], None]) -> None:
        self.check_own()  # rewriting would make other users' entries look like this user's
        change_toml(self._path, edit, mode=0o600)


def _write_entry(document: TOMLDocument, connection: SavedConnection, others: Mapping[str, Any]) -> None:
    """Write one connection into the document, keeping comments and order, and its sections."""
    import tomlkit

    table: Any = document.get(connection.name)
    if table is None:
        table = tomlkit.table()
        document[connection.name] = table
    values = {key: value for key, value in connection.values.items() if value is not None}
    fields = {"type": connection.type, **values, **({route.KEY: connection.via.table} if connection.via else {})}
    fields |= {PINNED: dict(connection.pinned)} if connection.pinned else {}
    fields |= {SIGN_IN_AT: connection.sign_in_at} if connection.sign_in_at else {}
    for key in [key for key in table if key not in (*fields, QUERIES, OBJECTS)]:
        del table[key]
    for key, value in fields.items():
        recorded = _inline(value) if isinstance(value, Reference | dict) else value
        if table.get(key) != recorded:
            table[key] = recorded


def _with_consents(connection: SavedConnection, before: SavedConnection, saved: SavedConnection) -> SavedConnection:
    """Return a connection with what a person consented to since `before`, as `saved` has it."""
    check_unedited(before, saved)
    pins = {server: pin for server, pin in saved.pinned.items() if before.pinned.get(server) != pin}
    at = saved.sign_in_at if saved.sign_in_at != before.sign_in_at else connection.sign_in_at
    return msgspec.structs.replace(connection, pinned={**connection.pinned, **pins}, sign_in_at=at)


def _check_saved(name: str, entries: Mapping[str, Any]) -> None:
    if name not in entries:
        raise _unknown(name, sorted(entries))


def _name_taken(name: str) -> ConfigurationError:
    hint = f"dragoman connections edit {name}"
    return ConfigurationError(f"a connection called {name!r} already exists", hint=hint)


def _is_certificate(text: object) -> bool:
    if not isinstance(text, str) or not 0 < len(text) <= MAX_TEXT:
        return False
    try:
        return bool(b64decode(text, validate=True))
    except ValueError:
        return False


def _unknown(name: str, saved: Sequence[str]) -> ConfigurationError:
    remainder = f" and {len(saved) - SHOWN:,} more" if len(saved) > SHOWN else ""
    names = f"{', '.join(saved_name[:64] for saved_name in saved[:SHOWN])}{remainder}" if saved else "none yet"
    near = near_names(name, saved)
    hint = "dragoman connections list" if near else f"dragoman connections add {quote(name)}"
    return ConfigurationError(f"no connection is called {name!r}{did_you_mean(near)} (saved: {names})", hint=hint)


def _check(name: str) -> None:
    if not NAME.fullmatch(name):
        hint = "use letters, digits, dots, hyphens and underscores, 64 at most"
        raise ConfigurationError(f"{name[:80]!r} cannot name a connection", hint=hint)


def _inline(value: Reference | dict[str, str | Reference]) -> Any:
    import tomlkit

    return tomlkit.value(_as_toml(value.table if isinstance(value, Reference) else value))


def _as_toml(table: Mapping[str, Any]) -> str:
    import tomlkit

    parts = (
        f"{key if _BARE.fullmatch(key) else tomlkit.item(key).as_string()} = "
        f"{_as_toml(value.table) if isinstance(value, Reference) else tomlkit.item(value).as_string()}"
        for key, value in table.items()
    )
    return f"{{ {', '.join(parts)} }}"
