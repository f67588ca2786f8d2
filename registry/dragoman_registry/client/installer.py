"""Installs a release: fetch, check, unpack, store, smoke-test, activate; a wheel is stored before any of it runs."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.to_thread
import msgspec

from dragoman_api.errors import DragomanError, InstallError, IntegrityError, from_code
from dragoman_api.wording import quoted
from dragoman_registry.files import below, remedy, share, try_lock
from dragoman_registry.index.registry_reader import changed
from dragoman_registry.validation import Fault, Unreadable, decode, rejected
from dragoman_registry.wheels.archive_checks import inspect
from dragoman_registry.wheels.host_environment import Host

from . import lockfile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from dragoman_registry.index.catalog import Release
    from dragoman_registry.index.registry_reader import Registry
    from dragoman_registry.wheels.manifest import Manifest
    from dragoman_registry.wheels.wheel_file import WheelFile

    from .generation import Generation, Origin
    from .installed_drivers import Store
    from .resolver import Resolution

    Progress = Callable[[str, int, int], None]
    SmokeTest = Callable[[tuple[Path, ...], Manifest], Awaitable[None]]

POLL = 0.02
"""Seconds between two attempts to take a lock that another installer holds."""


def _silent(phase: str, done: int, total: int) -> None: ...


async def install(
    choice: Resolution,
    *,
    store: Store,
    registry: Registry,
    smoke_test: SmokeTest,
    host: Host | None = None,
    on_progress: Progress = _silent,
    trusted: bool = False,
    origin: Callable[[], Origin] | None = None,
    refuse: Callable[[], None] | None = None,
) -> Generation:
    """Install the chosen release and make it active; concurrent callers for the same wheel share one installation.

    Args:
        choice: The result of `resolve`.
        store: The store to install into.
        registry: The registry to fetch from.
        smoke_test: Starts the unpacked driver in its sandbox and raises if the driver differs from its claims.
        host: The host that the wheels must fit; None for this process.
        on_progress: Called in the event loop with the phase, bytes done and total bytes; phases are ``wait``,
            ``fetch``, ``check``, ``unpack``, ``smoke-test`` and ``activate``.
        trusted: Whether a lock or a person's consent covers the bytes.
        origin: Returns why it is installed; blocks.
        refuse: Raises if it must not be installed; called before anything is fetched, and blocks.

    Raises:
        IncompatibleReleaseError: The choice is empty.
        IntegrityError: A file differs from the one in the index.
        WheelRejectedError: The checks failed; the error lists every fault of every wheel.
        InstallError: The disk failed, or another plugin serves the type; the active generation is unchanged.
        RegistryError: The registry cannot be reached.
        SandboxError: The smoke test failed.
    """
    work = _Work(choice, store, registry, host, on_progress, trusted=trusted, origin=origin, refuse=refuse)
    with _explained(store, work.release), closing(work):
        try:
            while (outcome := await anyio.to_thread.run_sync(work.begin)) is None:  # noqa: ASYNC110 - any process may hold it
                await anyio.sleep(POLL)
            if not isinstance(outcome, tuple):
                return outcome
            manifest, trees = outcome
            on_progress("smoke-test", 0, 0)
            await smoke_test(tuple(store.trees.path(digest) for digest in trees), manifest)
            on_progress("activate", 0, 0)
            return await anyio.to_thread.run_sync(work.activate, manifest, trees)
        except DragomanError as error:
            with anyio.CancelScope(shield=True):  # tell waiting callers even if this one is cancelled
                await anyio.to_thread.run_sync(work.note, error)
            raise


@contextmanager
def _explained(store: Store, release: Release) -> Iterator[None]:
    """Turn an OSError into an error that names the driver and the remedy."""
    try:
        yield
    except OSError as error:
        hint = remedy(error, store.root)
        if isinstance(error, TimeoutError):
            hint = "try again, since this machine may be busy; if it fails again, tell the driver's author"
        reason = error.strerror or str(error) or "it took too long to start"  # a TimeoutError has no text
        reason += f": {error.filename}" if error.filename else ""
        message = f"{release.plugin} {release.version} was not installed: {reason}"
        raise InstallError(message, hint=hint) from error


def _failure(descriptor: int, since: float) -> DragomanError | None:
    try:
        noted = decode(os.read(descriptor, 1 << 20), dict[str, Any])
        if noted["at"] >= since:
            return from_code(noted["code"], noted["message"], hint=noted["hint"], details=noted["details"])
    except (Unreadable, KeyError, TypeError):
        pass  # no installer failed, or one died while writing its note
    return None


class _Work:
    """The file work of an installation: one hop to a thread before the smoke test, and one after it.

    Across all processes, one installer of a wheel holds the lock at a time. If it fails, the callers that waited
    for it raise its error instead of trying again.
    """

    def __init__(
        self,
        choice: Resolution,
        store: Store,
        registry: Registry,
        host: Host | None,
        on_progress: Progress,
        *,
        trusted: bool,
        origin: Callable[[], Origin] | None,
        refuse: Callable[[], None] | None = None,
    ) -> None:
        self.release = choice.expect()
        self._files, self._store, self._registry, self._explicit_host = choice.files, store, registry, host
        self._on_progress, self._trusted, self._origin, self._refuse = on_progress, trusted, origin, refuse
        self._done, self._total = 0, sum(wheel.size for wheel in self._files)
        self._locks, self._began = ExitStack(), time.time()
        self._turn: int | None = None
        self._waited = False

    def begin(self) -> Generation | tuple[Manifest, list[str]] | None:
        """Take the lock, then fetch, check and unpack every wheel.

        Returns:
            None while another installer holds the lock; the generation if it is already installed; otherwise the
            manifest and the digests of the trees, in the order of the wheels.
        """
        path = self._store.trees.installation_lock(self._files[0].sha256)
        path.parent.mkdir(parents=True, exist_ok=True)
        if (turn := try_lock(path)) is None:
            if not self._waited:
                anyio.from_thread.run_sync(self._on_progress, "wait", 0, 0)
            self._waited = True
            return None
        self._locks.callback(os.close, turn)
        if self._waited and (failure := _failure(turn, self._began)) is not None:
            raise failure
        os.ftruncate(turn, 0)  # so that no note of an earlier attempt passes for this one's, whatever a clock says
        self._turn = turn
        # This shared lock keeps new trees, which no generation names yet, from being collected.
        self._store.trees.folder.mkdir(parents=True, exist_ok=True)
        self._locks.callback(os.close, share(self._store.trees.folder))
        if self._refuse is not None:
            self._refuse()
        return self._already() or self._prepare()

    def note(self, error: DragomanError) -> None:
        """Record a failure for the callers that wait for this lock."""
        if self._turn is not None:
            with suppress(OSError):  # the error itself matters more
                os.ftruncate(self._turn, 0)
                os.lseek(self._turn, 0, os.SEEK_SET)
                os.write(self._turn, msgspec.json.encode(error.to_dict() | {"at": time.time()}))

    def close(self) -> None:
        """Release the locks."""
        self._locks.close()

    def activate(self, manifest: Manifest, trees: list[str]) -> Generation:
        """Make the unpacked release the active generation."""
        return self._store.activate(
            self.release,
            self._files[0],
            manifest=manifest,
            trees=trees,
            registry=self._registry.name,
            api=self._host.api,
            trusted=self._trusted,
            origin=self._origin and self._origin(),
        )

    @cached_property
    def _host(self) -> Host:
        return self._explicit_host or Host.here()

    def _already(self) -> Generation | None:
        """Find the release among the installed ones, intact; a caller that waited finds the other's installation."""
        store, release = self._store, self.release
        for generation in store.generations(release.plugin):
            if generation.locked.covers(release) and not store.verify(generation):
                noted = lockfile.read(store.lock_file).get(release.plugin) == generation.locked
                if generation.active and generation.trusted >= self._trusted and noted:
                    return generation
                return store.reactivate(generation, trusted=self._trusted)
        return None

    def _prepare(self) -> tuple[Manifest, list[str]]:
        with self._store.trees.staging() as staging:
            paths = [self._fetch(wheel, staging) for wheel in self._files]
            manifest = self._check(paths)
            trees = []
            for index, path in enumerate(paths):
                self._tell("unpack")
                unpack(path, staging / f"tree-{index}")
                compile_tree(staging / f"tree-{index}")
                trees.append(self._store.trees.keep(staging / f"tree-{index}"))
        return manifest, trees

    def _tell(self, phase: str) -> None:
        anyio.from_thread.check_cancelled()
        anyio.from_thread.run_sync(self._on_progress, phase, self._done, self._total)

    def _fetch(self, wheel: WheelFile, staging: Path) -> Path:
        promised = self._registry.admitted(wheel, self.release)
        where = self._registry.url(wheel.path)
        draft, digest, size = below(staging, f"{wheel.file}.part"), hashlib.sha256(), 0
        with draft.open("wb") as file, closing(self._registry.chunks(wheel)) as chunks:
            self._tell("fetch")
            for chunk in chunks:
                size += len(chunk)
                if size > promised.size:
                    break
                digest.update(chunk)
                file.write(chunk)
                self._done += len(chunk)
                self._tell("fetch")
        if size != promised.size:
            length = f"{size if size < promised.size else f'more than {promised.size}'} bytes"
            raise IntegrityError(
                f"{where} has {length}; {promised.size} were published",
                hint="dragoman registry verify FOLDER",
                details={"path": where, "expected": promised.size, "actual": size},
            )
        if digest.hexdigest() != promised.sha256:
            raise changed(where, str(promised.sha256), digest.hexdigest())
        return draft.rename(below(staging, wheel.file))

    def _check(self, paths: list[Path]) -> Manifest:
        self._tell("check")
        sidecar = self._registry.sidecar(self.release, self._files[0])
        first = inspect(paths[0], expected=self._files[0], sidecar=sidecar, host=self._host, driver=True)
        native = first.manifest is not None and "native-code" in first.manifest.permissions
        faults = [*first.faults, *(self._promised(first.manifest) if first.manifest is not None else ())]
        faults = [replace(fault, where=paths[0].name) for fault in faults]
        for path, wheel in zip(paths[1:], self._files[1:], strict=True):
            report = inspect(path, expected=wheel, host=self._host, driver=False, native=native)
            faults += [replace(fault, where=path.name) for fault in report.faults]
        if faults:
            subject = f"{self.release.plugin} {self.release.version} was refused"
            raise rejected(subject, faults, hint="tell the publisher; none of its code was run")
        assert first.manifest is not None
        return first.manifest

    def _promised(self, manifest: Manifest) -> Iterator[Fault]:
        """Compare the author's manifest with the operator's index."""
        release = self.release
        for key, mine, theirs in (
            ("id", manifest.id, release.plugin),
            ("host_api", manifest.host_api, release.host_api),
            ("permissions", list(manifest.permissions), list(release.permissions)),
            ("dependencies", [d.file for d in manifest.dependencies], [d.file for d in release.dependencies]),
            ("dependencies", [d.sha256 for d in manifest.dependencies], [d.sha256 for d in release.dependencies]),
        ):
            if mine != theirs:
                contradiction = (
                    f"the manifest says {quoted(mine) or 'none'}, but the index says {quoted(theirs) or 'none'}"
                )
                yield Fault("manifest", f"$.{key}: {contradiction}.")
        bound = self._registry.types()
        for kind in manifest.types:  # connections of that type would hand this driver their secrets
            if bound.get(kind.name) != release.project:
                reason = f"$.types: the registry does not bind {kind.name!r} to {release.project}."
                yield Fault("type-not-bound", reason)


def unpack(wheel: Path, folder: Path) -> None:
    """Unpack a checked wheel into a new folder, ready to import from."""
    from installer import install
    from installer.destinations import SchemeDictionaryDestination
    from installer.sources import WheelFile as Source

    class Library(Source):
        @property
        def dist_info_filenames(self) -> list[str]:
            """The dist-info files without the entry points, from which the installer would make commands."""
            return [name for name in super().dist_info_filenames if name != "entry_points.txt"]

    folder.mkdir()
    schemes = dict.fromkeys(("purelib", "platlib"), str(folder))
    destination = SchemeDictionaryDestination(schemes, interpreter="", script_kind="posix")
    with Library.open(wheel) as source:
        install(source, destination, {"INSTALLER": b"dragoman\n"})


COMPILE = """
import compileall, py_compile, resource, sys
for limit, most in ((resource.RLIMIT_AS, 1 << 30), (resource.RLIMIT_CPU, 30), (resource.RLIMIT_FSIZE, 1 << 26)):
    resource.setrlimit(limit, (most, most))
unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
compileall.compile_dir(sys.argv[1], quiet=2, force=True, stripdir=sys.argv[1], invalidation_mode=unchecked)
"""
"""Compiles a folder without importing its modules; the same source always yields the same bytes."""


def compile_tree(folder: Path) -> None:
    """Write this Python's bytecode beside an unpacked wheel's source, so that no start compiles it again.

    The wheel's own bytecode was left out. This only saves time: if a module cannot be compiled in the bounded
    process, importing it compiles it or fails as usual.
    """
    # -B: do not write bytecode of the standard library.
    command = [sys.executable, "-I", "-S", "-B", "-c", COMPILE, str(folder)]
    with suppress(subprocess.SubprocessError, OSError):
        subprocess.run(  # noqa: S603 - our own text
            command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, env={}, timeout=60, check=False
        )
