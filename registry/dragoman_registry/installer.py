"""Installing a release: fetch, check, unpack, keep, smoke-test, activate; nothing of a wheel runs before it is kept."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
import time
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from subprocess import DEVNULL
from typing import TYPE_CHECKING

import anyio
import anyio.from_thread
import anyio.to_thread
import msgspec

from dragoman_api.errors import (
    DragomanError,
    IncompatibleReleaseError,
    InstallError,
    IntegrityError,
    WheelRejectedError,
    from_code,
)

from . import lock
from .files import share, try_lock
from .index import changed
from .preflight import inspect
from .validation import Fault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from .choice import Choice
    from .generation import Generation, Origin
    from .index import Registry, Release, WheelFile
    from .manifest import Manifest
    from .store import Store
    from .wheels import Host

    Progress = Callable[[str, int, int], None]
    SmokeTest = Callable[[tuple[Path, ...], Manifest], Awaitable[None]]

POLL = 0.02
"""Seconds between two looks at a lock that another installer holds."""


def _silent(phase: str, done: int, total: int) -> None: ...


async def install(
    choice: Choice,
    *,
    store: Store,
    registry: Registry,
    host: Host,
    smoke_test: SmokeTest,
    on_progress: Progress = _silent,
    trusted: bool = False,
    origin: Origin | None = None,
) -> Generation:
    """Install what was chosen and make it active; callers that want the same at the same time share one installation.

    Args:
        choice: Of `choose`.
        store: Where to.
        registry: Where from.
        host: What the wheels must fit.
        smoke_test: Starts the unpacked driver in its sandbox and raises if it is not what it claims.
        on_progress: Told phase, bytes done and bytes in all, in the event loop; phases are ``wait``, ``fetch``,
            ``check``, ``unpack``, ``smoke-test`` and ``activate``.
        trusted: The bytes are covered by a lock or a person's consent.
        origin: Why it is installed.

    Returns:
        The active generation.

    Raises:
        IncompatibleReleaseError: The choice is empty.
        IntegrityError: A file is not the one the index names.
        WheelRejectedError: With every fault of every wheel.
        InstallError: The disk failed, or another plugin serves the type; what was active before still is.
        RegistryError: The registry cannot be reached.
        SandboxError: The smoke test failed.
    """
    release = choice.release
    if release is None:
        reasons = "; ".join(f"{entry.version} skipped: {entry.reason}" for entry in choice.skipped)
        raise IncompatibleReleaseError(f"no release fits: {reasons or 'there is none'}", hint="dragoman plugins browse")
    with _explained(store, release):
        async with _turn(store, choice.files[0], on_progress), _no_collection(store):
            if (there := await anyio.to_thread.run_sync(_already, store, release, trusted)) is not None:
                return there
            work = _Work(release, choice.files, store, registry, host, on_progress)
            manifest, trees = await anyio.to_thread.run_sync(work.prepare)
            on_progress("smoke-test", 0, 0)
            await smoke_test(tuple(store.trees.path(digest) for digest in trees), manifest)
            on_progress("activate", 0, 0)

            def activate() -> Generation:
                return store.activate(
                    release,
                    choice.files[0],
                    manifest=manifest,
                    trees=trees,
                    registry=registry.name,
                    api=host.api,
                    trusted=trusted,
                    origin=origin,
                )

            return await anyio.to_thread.run_sync(activate)


def _already(store: Store, release: Release, trusted: bool) -> Generation | None:  # noqa: FBT001 - passed to a thread
    """Find the release among what is installed, intact; a caller who waited finds what the other one made."""
    for generation in store.generations(release.plugin):
        if generation.locked.covers(release) and not store.verify(generation):
            noted = lock.read(store.lock_file).get(release.plugin) == generation.locked
            if generation.active and generation.trusted >= trusted and noted:
                return generation
            return store.reactivate(generation, trusted=trusted)
    return None


@contextmanager
def _explained(store: Store, release: Release) -> Iterator[None]:
    """Turn what the disk says into an error that names the driver and what to do."""
    try:
        yield
    except OSError as error:
        hint = f"free some space in {store.root}"
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            hint = f"make {store.root} writable, or set DRAGOMAN_HOME to a folder that is"
        elif isinstance(error, TimeoutError):
            hint = "try again, since this machine may have been busy; if it goes on, tell the driver's author"
        reason = error.strerror or str(error) or "it took too long to start"  # the one that says nothing itself
        reason += f": {error.filename}" if error.filename else ""
        message = f"{release.plugin} {release.version} was not installed: {reason}"
        raise InstallError(message, hint=hint) from error


@asynccontextmanager
async def _turn(store: Store, wheel: WheelFile, on_progress: Progress) -> AsyncIterator[None]:
    """Let one installer of a wheel at a time go on, in all processes.

    Whoever waited for one that failed meets the same failure instead of failing again by itself.
    """
    folder, began = store.root / "store" / ".locks", time.time()
    path = folder / f"{wheel.sha256}.lock"
    await anyio.to_thread.run_sync(lambda: folder.mkdir(parents=True, exist_ok=True))
    waited = False
    while (descriptor := await anyio.to_thread.run_sync(try_lock, path)) is None:
        if not waited:
            on_progress("wait", 0, 0)
        waited = True
        await anyio.sleep(POLL)
    try:
        if waited and (failure := await anyio.to_thread.run_sync(_failure, descriptor, began)) is not None:
            raise failure
        try:
            yield
        except DragomanError as error:
            with anyio.CancelScope(shield=True):  # whoever waits is told also when this one is given up
                await anyio.to_thread.run_sync(_note, descriptor, error)
            raise
    finally:
        os.close(descriptor)


@asynccontextmanager
async def _no_collection(store: Store) -> AsyncIterator[None]:
    """Keep trees that no generation names yet from being collected; many installers may do so at once."""

    def begin() -> int:
        store.trees.folder.mkdir(parents=True, exist_ok=True)
        return share(store.trees.folder)

    descriptor = await anyio.to_thread.run_sync(begin)
    try:
        yield
    finally:
        os.close(descriptor)


def _note(descriptor: int, error: DragomanError) -> None:
    with suppress(OSError):  # the error itself matters more
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, msgspec.json.encode(error.to_dict() | {"at": time.time()}))


def _failure(descriptor: int, since: float) -> DragomanError | None:
    try:
        noted = msgspec.json.decode(os.read(descriptor, 1 << 20))
        if noted["at"] >= since:
            return from_code(noted["code"], noted["message"], hint=noted["hint"], details=noted["details"])
    except (msgspec.DecodeError, KeyError, TypeError):
        pass  # nobody failed, or died while noting it
    return None


class _Work:
    """The part of an installation that reads and writes files; runs in a thread of its own."""

    def __init__(
        self,
        release: Release,
        files: tuple[WheelFile, ...],
        store: Store,
        registry: Registry,
        host: Host,
        on_progress: Progress,
    ) -> None:
        self._release, self._files, self._host = release, files, host
        self._store, self._registry = store, registry
        self._on_progress = on_progress
        self._done, self._total = 0, sum(wheel.size for wheel in files)

    def prepare(self) -> tuple[Manifest, list[str]]:
        """Fetch, check and unpack every wheel.

        Returns:
            The manifest, and the digests of the trees in the order of the wheels.
        """
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
        promised = self._registry.admitted(wheel, self._release)
        where = self._registry.url(wheel.path)
        part, digest, size = staging / f"{wheel.file}.part", hashlib.sha256(), 0
        with part.open("wb") as file, closing(self._registry.chunks(wheel)) as chunks:
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
                f"{where} is {length}, {promised.size} were published",
                hint="dragoman registry verify FOLDER",
                details={"path": where, "expected": promised.size, "actual": size},
            )
        if digest.hexdigest() != promised.sha256:
            raise changed(where, str(promised.sha256), digest.hexdigest())
        return part.rename(staging / wheel.file)

    def _check(self, paths: list[Path]) -> Manifest:
        self._tell("check")
        sidecar = self._registry.sidecar(self._release, self._files[0])
        first = inspect(paths[0], expected=self._files[0], sidecar=sidecar, host=self._host, driver=True)
        native = first.manifest is not None and "native-code" in first.manifest.permissions
        found = {paths[0]: first.faults}
        for path, wheel in zip(paths[1:], self._files[1:], strict=True):
            report = inspect(path, expected=wheel, host=self._host, driver=False, native=native)
            found[path] = report.faults
        if first.manifest is not None:
            found[paths[0]] = [*first.faults, *self._promised(first.manifest)]
        faults = [(fault.code, f"{path.name}: {fault.reason}") for path, each in found.items() for fault in each]
        if faults:
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            raise WheelRejectedError(
                f"{self._release.plugin} {self._release.version} was refused: {faults[0][1]}{more}",
                hint="tell the publisher; nothing of it was run",
                faults=tuple(faults),
            )
        assert first.manifest is not None
        return first.manifest

    def _promised(self, manifest: Manifest) -> Iterator[Fault]:
        """Compare the manifest, which the author wrote, with the index, which the registry's operator did."""
        release = self._release
        for key, mine, theirs in (
            ("id", manifest.id, release.plugin),
            ("host_api", manifest.host_api, release.host_api),
            ("permissions", list(manifest.permissions), list(release.permissions)),
            ("dependencies", [d.file for d in manifest.dependencies], [d.file for d in release.dependencies]),
            ("dependencies", [d.sha256 for d in manifest.dependencies], [d.sha256 for d in release.dependencies]),
        ):
            if mine != theirs:
                yield Fault("manifest", f"$.{key}: the manifest says {mine!r}, the index {theirs!r}.")


def unpack(wheel: Path, target: Path) -> None:
    """Unpack a wheel that was checked into a new folder, which is then one to import from."""
    from installer import install
    from installer.destinations import SchemeDictionaryDestination
    from installer.sources import WheelFile as Source

    class Library(Source):
        @property
        def dist_info_filenames(self) -> list[str]:
            """Leave out the entry points, from which commands would be made."""
            return [name for name in super().dist_info_filenames if name != "entry_points.txt"]

    target.mkdir()
    schemes = dict.fromkeys(("purelib", "platlib"), str(target))
    destination = SchemeDictionaryDestination(schemes, interpreter="", script_kind="posix")
    with Library.open(wheel) as source:
        install(source, destination, {"INSTALLER": b"dragoman\n"})


COMPILE = """
import compileall, py_compile, sys
if sys.platform != "win32":
    import resource
    for limit, most in ((resource.RLIMIT_AS, 1 << 30), (resource.RLIMIT_CPU, 30), (resource.RLIMIT_FSIZE, 1 << 26)):
        resource.setrlimit(limit, (most, most))
unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
compileall.compile_dir(sys.argv[1], quiet=2, force=True, stripdir=sys.argv[1], invalidation_mode=unchecked)
"""
"""Compiles a folder without importing anything of it; the same source gives the same bytes."""


def compile_tree(folder: Path) -> None:
    """Put the bytecode of this Python beside an unpacked wheel's source, so that no start compiles it again.

    What a wheel brings of the kind was left out. It is a matter of speed only: where something cannot be compiled in
    a bounded process, its import fails or compiles, as ever.
    """
    # -B: nothing of the standard library is written on this occasion, whoever runs this.
    command = [sys.executable, "-I", "-S", "-B", "-c", COMPILE, str(folder)]
    # What the host was started with is nothing that this process needs; only Windows starts none without its root.
    kept = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
    with suppress(subprocess.SubprocessError, OSError):
        subprocess.run(  # noqa: S603 - our own text
            command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, env=kept, timeout=60, check=False
        )
