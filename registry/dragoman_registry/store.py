"""What is installed: read-only trees by digest, and in SQLite which generation of each driver is active."""

from __future__ import annotations

import sqlite3
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api.errors import InstallError, PluginNotFoundError, RegistryError

from . import lock
from .database import Database
from .files import locked, write
from .generation import Generation, Origin
from .links import Links
from .manifest import decode, encode
from .trees import Trees

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from .index import Release, WheelFile
    from .manifest import Manifest
    from .validation import Fault

COLUMNS = (
    "g.id, g.plugin, g.project, g.version, g.registry, g.file, g.sha256, g.manifest, g.trees, g.locked, g.trusted,"
    " g.api, g.installed_at, g.origin, p.active = g.id, p.disabled, p.pin"
)
KEPT = 2
"""Generations of a plugin that are kept without anybody's asking: the active one, and the one before."""

ACTIVE_LOCK = "SELECT g.locked FROM generations g JOIN plugins p ON p.active = g.id WHERE p.plugin = ?"


class Store:
    """The installed drivers below one folder. Every method blocks; call it in a thread.

    Attributes:
        root: Holds `state.db`, `plugins.lock` and `store/`.
        trees: The unpacked wheels.
        lock_file: `plugins.lock`.
        links: The drivers of developer mode, which come before installed ones.
    """

    def __init__(self, root: Path) -> None:
        """Name the place; nothing is touched before it is needed."""
        self.root = root
        self.trees = Trees(root / "store")
        self.lock_file = root / lock.NAME
        self.links = Links(root / "links.json", lock=root / ".state.lock")
        self._database = Database(root / "state.db")

    def active(self, name: str) -> Generation | None:
        """Find the active generation that serves a database type, or of a plugin; a linked working tree comes first.

        Raises:
            RegistryError: The database is damaged, or a working tree is gone (code ``link-broken``).
        """
        return self.links.find(name) or self._active(name)

    def _active(self, name: str) -> Generation | None:
        where = "p.plugin = coalesce((SELECT plugin FROM types WHERE type = :name), :name) AND p.active = g.id"
        return next(iter(self._select(where, name)), None)

    def installed(self) -> list[Generation]:
        """List the active generation of every plugin, linked ones first. Raises RegistryError for damaged files."""
        linked = self.links.list()
        hidden = {found.plugin for found in linked}
        return linked + [one for one in self._select("p.active = g.id ORDER BY g.plugin") if one.plugin not in hidden]

    def generations(self, plugin: str) -> list[Generation]:
        """List every generation of a plugin, the last active first. Raises as `active`."""
        return self._select("g.plugin = :name ORDER BY g.turn DESC", plugin)

    def verify(self, generation: Generation) -> list[Fault]:
        """Compare the trees on disk with their digests; every bad file is named. A working tree has none."""
        return (
            [] if generation.linked else [fault for tree in generation.trees for fault in self.trees.verify(tree.name)]
        )

    def pin_of(self, plugin: str) -> str | None:
        """Give the version a plugin is pinned to, installed or not. Raises as `active`."""
        with self._database.reading() as database:
            row = database and database.execute("SELECT pin FROM plugins WHERE plugin = ?", (plugin,)).fetchone()
        return row[0] if row else None

    def activate(
        self,
        release: Release,
        wheel: WheelFile,
        *,
        manifest: Manifest,
        trees: Sequence[str],
        registry: str,
        api: str,
        trusted: bool,
        origin: Origin | None = None,
    ) -> Generation:
        """Make a release the one that new connections use, in one transaction.

        Args:
            release: What was chosen.
            wheel: The driver's wheel of this platform.
            manifest: As the wheel brought it.
            trees: Digests of the unpacked wheels, the driver's own first.
            registry: Where it came from.
            api: Version of `dragoman-api` it was checked against.
            trusted: Its bytes were covered by a lock or a person's consent.
            origin: Why it is installed.

        Raises:
            InstallError: Another plugin serves one of its types, or the disk fails; nothing has changed.
            ConfigurationError: `plugins.lock` is damaged; nothing has changed.
        """
        locked_release = lock.lock_release(release)
        values = (
            manifest.id, release.project, release.version, registry, wheel.file, wheel.sha256, encode(manifest),
            msgspec.json.encode(list(trees)), msgspec.json.encode(locked_release), trusted, api, time.time(),
            msgspec.json.encode(origin or Origin()),
        )  # fmt: skip
        with self._writing(manifest.id) as database:
            for kind in manifest.types:
                row = database.execute("SELECT plugin FROM types WHERE type = ?", (kind.name,)).fetchone()
                if row and row[0] != manifest.id:
                    raise InstallError(
                        f"the type {kind.name!r} is served by the installed plugin {row[0]!r}",
                        hint=f"dragoman plugins remove {row[0]}",
                    )
            new = database.execute(
                "INSERT INTO generations (plugin, project, version, registry, file, sha256, manifest, trees, locked,"
                " trusted, api, installed_at, origin, turn) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
                values,
            ).lastrowid
            self._point(database, manifest, int(new or 0))
        return self._expect(manifest.id)

    def reactivate(self, generation: Generation, *, trusted: bool = False) -> Generation:
        """Make an installed generation the active one again; consent given now is kept.

        Raises:
            RegistryError: Its files are damaged (code ``integrity-failed``). Else as `activate`.
        """
        if faults := self.verify(generation):
            raise RegistryError(
                f"{generation.plugin} {generation.version} cannot be used: {faults[0]}",
                code="integrity-failed",
                hint=f"dragoman plugins install {generation.plugin}",
            )
        with self._writing(generation.plugin) as database:
            consent = "UPDATE generations SET trusted = max(trusted, ?) WHERE id = ?"
            if not database.execute(consent, (trusted, generation.id)).rowcount:
                raise PluginNotFoundError(f"{generation.plugin} {generation.version} was collected", hint="try again")
            self._point(database, generation.manifest, generation.id)
        return self._expect(generation.plugin)

    def rollback(self, plugin: str, *, version: str | None = None) -> Generation:
        """Go back to the generation that was active before, or to the last one of a version.

        Raises:
            PluginNotFoundError: There is none. Else as `reactivate`.
        """
        for generation in self.generations(plugin):
            if not generation.active and version in (None, generation.version):
                return self.reactivate(generation)
        message = f"{plugin} has no {version or 'earlier version'} to go back to"
        raise PluginNotFoundError(message, hint="dragoman plugins list")

    def set_disabled(self, plugin: str, *, disabled: bool) -> None:
        """Switch an installed plugin off or on. Raises PluginNotFoundError if it is not installed."""
        self._change("UPDATE plugins SET disabled = ? WHERE plugin = ? AND active IS NOT NULL", disabled, plugin)

    def set_pin(self, plugin: str, *, version: str | None) -> None:
        """Pin a plugin to a version, or unpin it; it need not be installed."""
        upsert = "INSERT INTO plugins (pin, plugin) VALUES (?, ?) ON CONFLICT (plugin) DO UPDATE SET pin = excluded.pin"
        self._change(upsert, version, plugin)

    def remove(self, plugin: str) -> Generation:
        """Forget a plugin: its generations, types, pin and lock entry. The trees stay until they are collected.

        Returns:
            What was active.

        Raises:
            PluginNotFoundError: It is not installed. InstallError: The disk fails; nothing has changed.
        """
        if any(plugin == one.plugin for one in self.links.list()) and self._active(plugin) is None:
            hint = f"dragoman driver unlink {plugin}"
            raise PluginNotFoundError(f"{plugin} is linked, not installed", hint=hint)
        before = self._expect(plugin)
        with self._writing(before.plugin, forget=True) as database:
            for table in ("types", "plugins", "generations"):
                database.execute(f"DELETE FROM {table} WHERE plugin = ?", (before.plugin,))  # noqa: S608 - three constants
        return before

    def spent(self) -> list[Generation]:
        """List the generations nobody goes back to: not active, not the one before, not pinned."""
        found, seen = [], dict[str, int]()
        for one in self._select("1 ORDER BY g.turn DESC"):
            seen[one.plugin] = seen.get(one.plugin, 0) + 1
            if seen[one.plugin] > KEPT and one.version != one.pin:
                found.append(one)
        return found

    def drop(self, generation: Generation) -> None:
        """Forget a generation unless it is active; its trees stay until they are collected. Raises as `activate`."""
        with self._writing(generation.plugin) as database:
            unused = "id = ? AND id NOT IN (SELECT active FROM plugins WHERE active IS NOT NULL)"
            database.execute(f"DELETE FROM generations WHERE {unused}", (generation.id,))  # noqa: S608 - a constant

    def trees_in_use(self, *, without: Sequence[Generation] = ()) -> set[str]:
        """Give the digests of all trees that generations are made of, but for some. Raises as `active`."""
        left_out = {one.id for one in without}
        return {tree.name for one in self._select("1") if one.id not in left_out for tree in one.trees}

    def note(self, key: str) -> Any:
        """Give what was noted under a key, None for nothing. Raises as `active`."""
        with self._database.reading() as database:
            row = database and database.execute("SELECT value FROM notes WHERE key = ?", (key,)).fetchone()
        return msgspec.json.decode(row[0]) if row else None

    def set_note(self, key: str, value: object) -> None:
        """Note something that JSON can hold, or forget it (None). Raises InstallError if the disk fails."""
        with self._writing(None) as database:
            database.execute("DELETE FROM notes WHERE key = ?", (key,))
            if value is not None:
                database.execute("INSERT INTO notes (key, value) VALUES (?, ?)", (key, msgspec.json.encode(value)))

    def _expect(self, plugin: str) -> Generation:
        if (found := self._active(plugin)) is None:
            raise PluginNotFoundError(f"{plugin} is not installed", hint=f"dragoman plugins install {plugin}")
        return found

    def _point(self, database: sqlite3.Connection, manifest: Manifest, generation: int) -> None:
        """Write the pointer of a plugin, and the types that come with it."""
        turn = "(SELECT max(turn) + 1 FROM generations)"
        database.execute(f"UPDATE generations SET turn = {turn} WHERE id = ?", (generation,))  # noqa: S608 - a constant
        database.execute(
            "INSERT INTO plugins (plugin, active) VALUES (?, ?)"
            " ON CONFLICT (plugin) DO UPDATE SET active = excluded.active",
            (manifest.id, generation),
        )
        database.execute("DELETE FROM types WHERE plugin = ?", (manifest.id,))
        for kind in manifest.types:
            database.execute("INSERT INTO types (type, plugin) VALUES (?, ?)", (kind.name, manifest.id))

    def _change(self, statement: str, value: object, plugin: str) -> None:
        with self._writing(plugin) as database:
            if not database.execute(statement, (value, plugin)).rowcount:
                raise PluginNotFoundError(f"{plugin} is not installed", hint=f"dragoman plugins install {plugin}")

    def _select(self, where: str, name: str = "") -> list[Generation]:
        statement = f"SELECT {COLUMNS} FROM generations g JOIN plugins p ON p.plugin = g.plugin WHERE {where}"  # noqa: S608 - constants
        with self._database.reading() as database:
            rows = database.execute(statement, {"name": name}).fetchall() if database else []
        return [self._generation(row) for row in rows]

    def _generation(self, row: tuple[Any, ...]) -> Generation:
        values = dict(zip(Generation.__dataclass_fields__, row, strict=True))  # COLUMNS are in the order of the fields
        values["manifest"] = decode(values["manifest"])
        values["trees"] = tuple(self.trees.path(digest) for digest in msgspec.json.decode(values["trees"]))
        values["locked"] = msgspec.json.decode(values["locked"], type=lock.Locked)
        values["origin"] = msgspec.json.decode(values["origin"], type=Origin)
        values |= {name: bool(values[name]) for name in ("trusted", "active", "disabled")}
        return Generation(**values)

    @contextmanager
    def _writing(self, plugin: str | None, *, forget: bool = False) -> Iterator[sqlite3.Connection]:
        """Run one transaction, and bring the lock entry of a plugin up to date with it.

        What is locked and not installed stays locked, unless the plugin is to be forgotten.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with locked(self.root / ".state.lock"):
                with self._database.transaction() as database:
                    yield database
                    row = database.execute(ACTIVE_LOCK, (plugin,)).fetchone()
                    text = None
                    if plugin is not None and (row or forget):
                        entry = msgspec.json.decode(row[0], type=lock.Locked) if row else None
                        text = lock.updated(self.lock_file, plugin, entry)
                if text is not None and not (self.lock_file.exists() and self.lock_file.read_bytes() == text):
                    write(self.lock_file, text)
        except (sqlite3.Error, OSError) as error:
            raise InstallError(f"{self._database.file} cannot be written: {error}", hint="dragoman doctor") from error
