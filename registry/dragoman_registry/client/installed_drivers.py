"""The store of installed drivers: read-only trees by digest, and an SQLite record of each active generation."""

from __future__ import annotations

import os
import sqlite3
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api.errors import InstallError, PluginNotFoundError, RegistryError
from dragoman_registry.files import find_drafts, locked, sweep_drafts, try_lock, write
from dragoman_registry.wheels.manifest import decode, encode

from . import lockfile
from .generation import Generation, Links, Origin
from .state_db import UNREADABLE, Database
from .trees import Trees

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dragoman_registry.index.catalog import Release
    from dragoman_registry.validation import Fault
    from dragoman_registry.wheels.manifest import Manifest
    from dragoman_registry.wheels.wheel_file import WheelFile

COLUMNS = (
    "g.id, g.plugin, g.project, g.version, g.registry, g.file, g.sha256, g.manifest, g.trees, g.locked, g.trusted,"
    " g.api, g.installed_at, g.origin, p.active = g.id AS active, p.disabled, p.pin"
)
SELECT = f"SELECT {COLUMNS} FROM generations g JOIN plugins p ON p.plugin = g.plugin"  # noqa: S608 - constants

ACTIVE_LOCK = "SELECT g.locked FROM generations g JOIN plugins p ON p.active = g.id WHERE p.plugin = ?"


KEPT = 2
"""Generations of a plugin that a collection keeps without a pin: the active one and the previous one."""
KEPT_UNASKED = 10
"""As many stay after an installation, which collects by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """One tree, or one leftover file, that was removed or, in a dry run, would be.

    Attributes:
        plugin: The plugin it belonged to; empty if no generation names it.
    """

    plugin: str
    version: str
    path: Path
    size: int


class Store:
    """The installed drivers below one folder. Every method blocks; call it in a thread.

    Attributes:
        root: Holds `state.db`, `plugins.lock` and `store/`.
        links: The drivers of developer mode, which take precedence over installed ones.
    """

    def __init__(self, root: Path) -> None:
        """Set the paths; the constructor touches no file."""
        self.root = root
        self.trees = Trees(root / "store")
        self.lock_file = root / lockfile.NAME
        self.links = Links(root / "links.json")
        self._database = Database(root / "state.db")
        self._files = (self._database.file, self._database.kept, self.lock_file, self.links.file)

    def active(self, name: str) -> Generation | None:
        """Find the active generation of a plugin or database type; a linked working tree takes precedence.

        Raises:
            RegistryError: The database is damaged, or a working tree is gone (code ``link-broken``).
        """
        return self.links.find(name) or self._active(name)

    def _active(self, name: str) -> Generation | None:
        where = "p.plugin = coalesce((SELECT plugin FROM types WHERE type = :name), :name) AND p.active = g.id"
        return next(iter(self._select(where, name, strict=True)), None)

    def installed(self) -> list[Generation]:
        """List the active generation of every plugin, linked ones first. Raises RegistryError for damaged files."""
        linked = self.links.list()
        hidden = {generation.plugin for generation in linked}
        return linked + [
            generation
            for generation in self._select("p.active = g.id ORDER BY g.plugin")
            if generation.plugin not in hidden
        ]

    def unreadable(self) -> dict[str, str]:
        """Map each plugin whose active generation cannot be read to its version. Raises as `active`."""
        with self._database.reading() as database:
            rows = database.execute(f"{SELECT} WHERE p.active = g.id").fetchall() if database else []
        return {str(row["plugin"]): str(row["version"]) for row in rows if not self._is_readable(row)}

    def generations(self, plugin: str) -> list[Generation]:
        """List every generation of a plugin, the most recently active first. Raises as `active`."""
        return self._select("g.plugin = :name ORDER BY g.turn DESC", plugin)

    def verify(self, generation: Generation) -> list[Fault]:
        """Compare the trees on disk with their digests and list every bad file; a working tree has no digests."""
        return (
            [] if generation.linked else [fault for tree in generation.trees for fault in self.trees.verify(tree.name)]
        )

    def pin_of(self, plugin: str) -> str | None:
        """Return the version a plugin is pinned to, installed or not; None without a pin. Raises as `active`."""
        with self._database.reading() as database:
            row = database and database.execute("SELECT pin FROM plugins WHERE plugin = ?", (plugin,)).fetchone()
        return row["pin"] if row else None

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
        """Make new connections use a release, in one transaction.

        Args:
            release: The chosen release.
            wheel: The driver's wheel for this platform.
            manifest: The manifest in that wheel.
            trees: Digests of the unpacked wheels, the driver's own first.
            registry: Name of the registry it came from.
            api: Version of `dragoman-api` it was checked against.
            trusted: Whether a lock or a person's consent covered its bytes.
            origin: Why it is installed.

        Raises:
            InstallError: Another plugin serves one of its types, or the disk fails; nothing has changed.
            ConfigurationError: `plugins.lock` is damaged; nothing has changed.
        """
        locked_release = lockfile.lock_release(release)
        values = (
            manifest.id, release.project, release.version, registry, wheel.file, wheel.sha256, encode(manifest),
            msgspec.json.encode(list(trees)), msgspec.json.encode(locked_release), trusted, api, time.time(),
            msgspec.json.encode(origin or Origin()),
        )  # fmt: skip
        with self._writing(manifest.id) as database:
            for kind in manifest.types:
                row = database.execute("SELECT plugin FROM types WHERE type = ?", (kind.name,)).fetchone()
                if row and row["plugin"] != manifest.id:
                    raise InstallError(
                        f"the type {kind.name!r} is served by the installed plugin {row['plugin']!r}",
                        hint=f"dragoman plugins remove {row['plugin']}",
                    )
            new = database.execute(
                "INSERT INTO generations (plugin, project, version, registry, file, sha256, manifest, trees, locked,"
                " trusted, api, installed_at, origin, turn) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
                values,
            ).lastrowid
            self._point(database, manifest, int(new or 0))
        return self._expect(manifest.id)

    def reactivate(self, generation: Generation, *, trusted: bool = False) -> Generation:
        """Make an installed generation active again, and record consent given now.

        Raises:
            RegistryError: Its files are damaged (code ``integrity-failed``).
            PluginNotFoundError: It was collected meanwhile. Otherwise raises as `activate`.
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
        """Activate the previous generation, or the most recent one of a version.

        Raises:
            PluginNotFoundError: There is no such generation. Otherwise raises as `reactivate`.
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
        """Pin a plugin to a version, or unpin it; the plugin need not be installed."""
        upsert = "INSERT INTO plugins (pin, plugin) VALUES (?, ?) ON CONFLICT (plugin) DO UPDATE SET pin = excluded.pin"
        self._change(upsert, version, plugin)

    def remove(self, plugin: str) -> Generation:
        """Delete a plugin's generations, types, pin and lock entry. Its trees stay until they are collected.

        Returns:
            The generation that was active.

        Raises:
            PluginNotFoundError: It is not installed. InstallError: The disk fails; nothing has changed.
        """
        if any(plugin == link.plugin for link in self.links.list()) and self._active(plugin) is None:
            hint = f"dragoman driver unlink {plugin}"
            raise PluginNotFoundError(f"{plugin} is linked, not installed", hint=hint)
        before = self._expect(plugin)
        with self._writing(before.plugin, forget=True) as database:
            for table in ("types", "plugins", "generations"):
                database.execute(f"DELETE FROM {table} WHERE plugin = ?", (before.plugin,))  # noqa: S608 - three constants
        return before

    def collect(self, *, dry_run: bool = False, limit: int = KEPT, wait: bool = True) -> list[Collected]:
        """Remove spent generations, trees that no other generation uses, and files that nobody needs any more.

        These are drafts that killed processes left, locks of past installations, and old damaged databases. Active,
        previous and pinned generations stay, and so do trees that a living process runs from.

        Args:
            dry_run: Only list what would be removed.
            limit: Generations of a plugin that are not spent: the ones that were active last.
            wait: Wait for running installations to end; otherwise, do nothing while one runs.

        Raises:
            InstallError: The disk fails; data in use is unchanged.
            RegistryError: The state database is damaged.
        """
        trees = self.trees
        try:
            collected = self._collect_files(dry_run=dry_run)
            if not trees.folder.is_dir():
                return collected
            with ExitStack() as stack:
                if wait:
                    stack.enter_context(locked(trees.folder))
                elif (turn := try_lock(trees.folder, folder=True)) is not None:
                    stack.callback(os.close, turn)
                else:
                    return collected
                if not dry_run:
                    trees.sweep_locks()
                spent = self._unused(limit) if dry_run else self._forget(limit)
                owners = {
                    tree.name: (generation.plugin, generation.version)
                    for generation in spent
                    for tree in generation.trees
                }
                needed = self._trees_in_use(without=spent if dry_run else ())
                for digest in trees.digests():
                    if digest in needed or trees.leased(digest):
                        continue
                    plugin, version = owners.get(digest, ("", ""))
                    path, size = trees.path(digest), trees.size(digest)
                    if dry_run or trees.discard(digest):
                        collected.append(Collected(plugin=plugin, version=version, path=path, size=size))
                return collected
        except OSError as error:
            reason = f"{error.strerror or error}: {error.filename or trees.folder}"
            raise InstallError(f"{trees.folder} cannot be cleaned up: {reason}", hint="dragoman doctor") from error

    def collect_unasked(self) -> list[Collected]:
        """Collect after an installation, keeping `KEPT_UNASKED` generations; what fails is left to a later one."""
        with suppress(InstallError, RegistryError):
            return self.collect(limit=KEPT_UNASKED, wait=False)
        return []

    def _forget(self, limit: int) -> list[Generation]:
        """Delete the records of unused generations, and return them."""
        if not self._unused(limit):
            return []
        with self._writing(None) as database:
            spent = self._unused(limit)  # again, since now no process can go back to one of them
            database.executemany("DELETE FROM generations WHERE id = ?", [(generation.id,) for generation in spent])
        return spent

    def _unused(self, limit: int) -> list[Generation]:
        """List the generations to collect: not among the `limit` last active ones, not pinned, not run from."""
        spent, counts = [], Counter[str]()
        for generation in self._select("1 ORDER BY g.turn DESC"):
            counts[generation.plugin] += 1
            if counts[generation.plugin] > limit and not generation.active and generation.version != generation.pin:
                spent.append(generation)
        return [
            generation for generation in spent if not any(self.trees.leased(tree.name) for tree in generation.trees)
        ]

    def _trees_in_use(self, *, without: Sequence[Generation]) -> set[str]:
        """Return the digests of the trees of all generations except those in `without`.

        Generations that cannot be read count too: `repair` may need their trees.
        """
        left_out = {generation.id for generation in without}
        with self._database.reading() as database:
            rows = database.execute("SELECT id, trees FROM generations").fetchall() if database else []
            digest_lists = [
                msgspec.json.decode(trees, type=list[str]) for number, trees in rows if number not in left_out
            ]
        return {digest for trees in digest_lists for digest in trees}

    def _collect_files(self, *, dry_run: bool) -> list[Collected]:
        """Remove the drafts of the state's files that killed processes left, and damaged databases of long ago."""

        def leftovers() -> list[Path]:
            return [*find_drafts(*self._files), *self._database.old_damaged()]

        if not leftovers():
            return []
        with locked(self.root / ".state.lock"):
            files = [Collected(plugin="", version="", path=path, size=path.stat().st_size) for path in leftovers()]
            for file in files if not dry_run else ():
                file.path.unlink()
        return files

    def restore(self) -> tuple[Path, bool] | None:
        """Move a damaged database aside and replace it with the copy that every change writes.

        Without a sound copy, if only some generations cannot be read, delete those generations instead.

        Returns:
            The damaged file's new path, and whether a copy replaced it; None if no file was moved.

        Raises:
            InstallError: The disk fails, or the file is not writable.
        """
        database = self._database
        try:
            with locked(self.root / ".state.lock"):
                if not os.path.lexists(database.file) or self._is_sound(database):
                    return None
                backup = Database(database.kept)
                copied = backup.file.is_file() and self._is_sound(backup)
                if not copied and self._is_sound(database, rows=False):
                    self._forget_unreadable()
                    return None
                aside = database.put_aside()
                if copied:
                    backup.copy(to=database.file)
                return aside, copied
        except OSError as error:
            raise database.explained(error, "restored") from error

    def _forget_unreadable(self) -> None:
        with self._database.transaction() as database:
            for row in database.execute(SELECT).fetchall():
                if not self._is_readable(row):
                    if row["active"]:
                        database.execute("DELETE FROM types WHERE plugin = ?", (row["plugin"],))
                        database.execute("UPDATE plugins SET active = NULL WHERE plugin = ?", (row["plugin"],))
                    database.execute("DELETE FROM generations WHERE id = ?", (row["id"],))

    def _is_readable(self, row: sqlite3.Row) -> bool:
        try:
            self._generation(row)
        except UNREADABLE:
            return False
        return True

    def _is_sound(self, database: Database, *, rows: bool = True) -> bool:
        """Check that a database can be read, with or without its generations.

        Raises:
            RegistryError: It is undamaged but cannot be read.
        """
        try:
            with database.reading() as opened:
                assert opened is not None
                [(verdict,)] = opened.execute("PRAGMA integrity_check(1)")
                if verdict != "ok":
                    return False
                for row in opened.execute(SELECT).fetchall():
                    if rows:
                        self._generation(row)
                for (value,) in opened.execute("SELECT value FROM notes"):
                    msgspec.json.decode(value)
                opened.execute("SELECT type, plugin FROM types").fetchall()
        except RegistryError as error:
            if error.code != "state-damaged":
                raise
            return False
        return True

    def note(self, key: str) -> Any:
        """Return the note under a key, or None. Raises as `active`."""
        with self._database.reading() as database:
            row = database and database.execute("SELECT value FROM notes WHERE key = ?", (key,)).fetchone()
            return msgspec.json.decode(row["value"]) if row else None

    def change_note(self, key: str, edit: Callable[[Any], object]) -> None:
        """Change a note: read the present JSON value (None if there is none), and write what `edit` makes of it.

        If that is None, delete the note; what `edit` raises leaves it as it is. Raises InstallError if the disk fails.
        """
        with self._writing(None) as database:
            row = database.execute("SELECT value FROM notes WHERE key = ?", (key,)).fetchone()
            value = edit(msgspec.json.decode(row["value"]) if row else None)
            database.execute("DELETE FROM notes WHERE key = ?", (key,))
            if value is not None:
                database.execute("INSERT INTO notes (key, value) VALUES (?, ?)", (key, msgspec.json.encode(value)))

    def _expect(self, plugin: str) -> Generation:
        if (generation := self._active(plugin)) is None:
            raise PluginNotFoundError(f"{plugin} is not installed", hint=f"dragoman plugins install {plugin}")
        return generation

    def _point(self, database: sqlite3.Connection, manifest: Manifest, generation: int) -> None:
        """Set a plugin's active generation and its types."""
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

    def _select(self, where: str, name: str = "", *, strict: bool = False) -> list[Generation]:
        """Read generations; skip those that cannot be read, or raise if `strict`."""
        generations = []
        with self._database.reading() as database:
            rows = database.execute(f"{SELECT} WHERE {where}", {"name": name}).fetchall() if database else []
        for row in rows:
            try:
                generations.append(self._generation(row))
            except UNREADABLE as error:
                if strict:
                    message = f"the record of {row['plugin']} {row['version']} cannot be read: {error}"
                    raise RegistryError(message, code="state-damaged", hint="dragoman plugins repair") from error
        return generations

    def _generation(self, row: sqlite3.Row) -> Generation:
        values = dict(row)  # COLUMNS have the names of the fields
        values["manifest"] = decode(values["manifest"])
        values["trees"] = tuple(self.trees.path(digest) for digest in msgspec.json.decode(values["trees"]))
        values["locked"] = msgspec.json.decode(values["locked"], type=lockfile.Locked)
        values["origin"] = msgspec.json.decode(values["origin"], type=Origin)
        values |= {name: bool(values[name]) for name in ("trusted", "active", "disabled")}
        return Generation(**values)

    @contextmanager
    def _writing(self, plugin: str | None, *, forget: bool = False) -> Iterator[sqlite3.Connection]:
        """Run one transaction, then update the plugin's lock entry to match.

        The entry of a plugin that is not installed stays, unless `forget` is set.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with locked(self.root / ".state.lock"):
                sweep_drafts(*self._files)
                with self._database.transaction() as database:
                    yield database
                    row = database.execute(ACTIVE_LOCK, (plugin,)).fetchone()
                    text = None
                    if plugin is not None and (row or forget):
                        entry = msgspec.json.decode(row["locked"], type=lockfile.Locked) if row else None
                        text = lockfile.updated(self.lock_file, plugin, entry)
                if text is not None and not (self.lock_file.exists() and self.lock_file.read_bytes() == text):
                    write(self.lock_file, text)
                with suppress(OSError, RegistryError):  # if the disk is full, keep the previous copy
                    if self._is_sound(self._database):
                        self._database.copy(to=self._database.kept)
        except (sqlite3.Error, OSError, *UNREADABLE) as error:
            raise self._database.explained(error, "written") from error
