"""The command that removes what dragoman keeps on this machine, and says how the package itself is removed."""

from __future__ import annotations

import os
import re
import stat
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from dragoman.settings import read_settings
from dragoman_api.errors import ConfigurationError

from .options import Command
from .output import plain, show_size, write_json

if TYPE_CHECKING:
    from dragoman.folders import Paths

    from .options import Options


class FileKind(NamedTuple):
    """Files and folders of one folder, by their names.

    Attributes:
        root: The folder of `Paths`, or one in it.
        names: Their names; the lock beside a file, and drafts that a killed process left, are removed with it.
        holds: What they are, in words.
        pattern: Further names, as a regular expression.
    """

    root: str
    names: tuple[str, ...]
    holds: str
    pattern: str = "(?!)"

    def includes(self, name: str) -> bool:
        """Whether an entry of the root is one of these."""
        beside = any(re.fullmatch(rf"\.{re.escape(own)}\.(lock|[0-9a-f]+\.tmp)", name) for own in self.names)
        return beside or name in self.names or re.fullmatch(self.pattern, name) is not None


_STATE = r"""(?x) \.state\.lock | \.state\.db\.kept\.[0-9a-f]+\.tmp
    | state\.db( -(wal|shm|journal) | \.kept | \.new(-journal)? | \.damaged-[0-9]{8}-[0-9]{6}-[0-9]{6}(-journal)? )"""
_WORKBENCH = r"""(?x) \.?open-[0-9]+\.html | uploads-[0-9]+
    | \.? (samples-[0-9]+ | preferences | history-[a-z0-9_~-]+) \.json (\.lock | \.[0-9a-f]+\.tmp)?"""
KINDS = (
    # What names the installed drivers goes first: whatever interrupts the rest, no driver is left that is half there.
    FileKind("data", ("state.db", "plugins.lock"), "list of installed drivers", _STATE),
    FileKind("data", ("store",), "installed drivers"),
    FileKind("data", ("tuf",), "trust in registries"),
    FileKind("data", ("links.json", "reached.json"), "linked drivers, addresses of servers"),
    FileKind("cache", ("host-imports.json",), "cache"),
    FileKind("state", ("audit.ndjson",), "audit log"),
    FileKind("state", ("known-names", "open-history.jsonl"), "histories, names"),
    FileKind("state/workbench", (), "histories, preferences", _WORKBENCH),
    FileKind("config", ("connections.toml", "secrets.toml"), "connections, stored secrets"),
    FileKind("config", ("config.toml",), "settings"),
)
"""Everything that dragoman writes, in the order in which it goes. Exports, a person's signing key (`author.pem`) and
whatever else lies there are no part of it."""


class Holding(NamedTuple):
    """What there is of one kind, and its size in bytes."""

    kind: FileKind
    paths: list[Path]
    size: int

    def rows(self) -> list[list[str]]:
        """Describe it for a person."""
        return [[self.kind.holds, show_size(_size(path)), _show(path)] for path in self.paths]

    def document(self) -> dict[str, object]:
        """Describe it for a program."""
        return {"what": self.kind.holds, "paths": [*map(str, self.paths)], "bytes": self.size}


@click.command("uninstall", cls=Command)
@click.option("--keep-connections", is_flag=True, help="Keep connections, their stored secrets, and settings.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
@click.pass_obj
async def uninstall(options: Options, *, keep_connections: bool, dry_run: bool) -> None:
    """Remove what dragoman keeps on this machine: drivers, trust, logs, histories, caches, settings, connections.

    It shows everything with its size, and asks first; a folder goes with everything in it. Exports, your signing key,
    and files that dragoman did not write stay. If it is interrupted, run it again. The package itself stays; the last
    line says how to remove it.
    """
    from anyio.to_thread import run_sync

    from dragoman.folders import sole_use
    from dragoman_api.installation import removal_command

    paths = await run_sync(options.paths)
    holdings = await run_sync(_find, paths, keep_connections)
    staying = await run_sync(_find_others, paths, [path for holding in holdings for path in holding.paths])
    package = await run_sync(removal_command)
    if not options.json:
        await _show_all(options, holdings)
        for path in staying:
            options.say(f"stays: {plain(str(path))}")
    agreed: list[Path] = []
    while holdings and not dry_run:
        with ExitStack() as stack:  # nobody waits for the answer to a question
            await run_sync(stack.enter_context, sole_use(paths))
            present = await run_sync(_find, paths, keep_connections)
            if all(path in agreed for holding in present for path in holding.paths):
                for holding in (holdings := present):
                    for path in holding.paths:  # an interrupt takes effect between two
                        await run_sync(_remove, path)
                await run_sync(_remove_empty_roots, paths)
                break
        if agreed:
            holdings = present
            if not options.json:
                options.say("there is more than before:")
                await _show_all(options, holdings)
        total = show_size(sum(holding.size for holding in holdings))
        question = f"Remove this ({total}), the folders with everything in them, for good?"
        await options.agree(question, instead="dragoman uninstall --yes")
        agreed = [path for holding in holdings for path in holding.paths]
    if options.json:
        removed = [holding.document() for holding in holdings]
        write_json({"dry_run": dry_run, "removed": removed, "staying": [*map(str, staying)], "package": package})
        return
    if holdings:
        options.say("nothing was removed" if dry_run else "removed")
    options.say(f"the package itself: {package}")


async def _show_all(options: Options, holdings: list[Holding]) -> None:
    from anyio.to_thread import run_sync

    rows = [row for holding in holdings for row in await run_sync(holding.rows)]
    options.listing({}, ["WHAT", "SIZE", "PATH"], rows, nothing="dragoman keeps nothing on this machine")


def _show(path: Path) -> str:
    return f"{path}{os.sep if path.is_dir() and not path.is_symlink() else ''}"


def _find(paths: Paths, keep_connections: bool) -> list[Holding]:
    holdings = []
    for kind in KINDS:
        if keep_connections and kind.root == "config":
            continue
        folder = _inner(paths) if kind.root == "state/workbench" else getattr(paths, kind.root)
        entries = [path for path in _entries(folder) if kind.includes(path.name)] if folder else []
        if kind.names == ("config.toml",) and not _are_settings(paths):
            continue
        if entries:
            holdings.append(Holding(kind, entries, sum(map(_size, entries))))
    return holdings


def _find_others(paths: Paths, leaving: list[Path]) -> list[Path]:
    """Return what lies in the roots and is not removed."""
    inner = _inner(paths)
    folders = [*dict.fromkeys(paths), *([inner] if inner else [])]
    return [path for folder in folders for path in _entries(folder) if path not in (*leaving, inner)]


def _inner(paths: Paths) -> Path | None:
    """Return the folder of the workbench; None if there is none, or it is a link that leads elsewhere."""
    folder = paths.state / "workbench"
    return folder if folder.is_dir() and not folder.is_symlink() else None


def _are_settings(paths: Paths) -> bool:
    """Whether `config.toml` holds settings of dragoman: DRAGOMAN_HOME may be a project with a file of that name."""
    try:
        read_settings(paths.settings)
    except ConfigurationError:
        return False
    return True


def _entries(root: Path) -> list[Path]:
    try:
        return sorted(root.iterdir())
    except FileNotFoundError:
        return []


def _size(path: Path) -> int:
    """Return the bytes below a path; links lead elsewhere and do not count."""
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return status.st_size
    return sum((Path(folder) / name).lstat().st_size for folder, _, names in os.walk(path) for name in names)


def _remove(path: Path) -> None:
    from dragoman_registry.files import remove_tree

    try:
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise _unremovable(path, error.strerror or str(error)) from error
    if os.path.lexists(path):
        raise _unremovable(path, "something in it belongs to another user, or is being written")


def _unremovable(path: Path, reason: str) -> ConfigurationError:
    return ConfigurationError(f"{path} could not be removed: {reason}", hint="when that is mended: dragoman uninstall")


def _remove_empty_roots(paths: Paths) -> None:
    """Remove the roots, and the folder above them if it is dragoman's own; what is not empty stays."""
    parents, names = {root.parent for root in paths}, {root.name for root in paths}
    own = parents if len(parents) == 1 and len(names) == len(paths) else set()
    for folder in (paths.state / "workbench", *paths, *own):
        with suppress(OSError):
            folder.rmdir()
