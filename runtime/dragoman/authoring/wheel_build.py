"""An author's working tree, and its wheel: its own backend builds the same bytes each time."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dragoman.folders import scratch_folder
from dragoman_api.errors import ConfigurationError
from dragoman_registry.client.installer import unpack
from dragoman_registry.files import open_plain
from dragoman_registry.validation import Fault, rejected
from dragoman_registry.wheels.archive_checks import MAX_WHEEL, inspect
from dragoman_registry.wheels.host_environment import Host
from dragoman_registry.wheels.metadata_checks import WheelReport
from dragoman_registry.wheels.packaging_parsers import rank_wheel

from .libraries import library_folders, read_project, record_libraries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


BUILD_SECONDS = 120
NO_LIBRARIES: Mapping[Path, Path] = {}
MAX_STRAYS = 20
"""Maximum number of links out of a project to report."""
_BESIDE = {".git", ".nox", ".tox", ".venv", "dist", "venv", "wheels"}
"""Top-level folders of a project that are not published; links out of the project are normal there."""
EPOCH = "1580601600"  # a fixed time for every file, so that two builds do not differ

_BUILD = """
import sys
from functools import reduce
from importlib import import_module
module, _, name = sys.argv[1].partition(":")
sys.path[:0] = sys.argv[4:]
backend = reduce(getattr, filter(None, name.split(".")), import_module(module))
for folder in sys.argv[2:4]:
    backend.build_wheel(folder)
"""


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """A driver's wheel, its faults, and its unpacked trees.

    Attributes:
        project: The working tree.
        wheel: The wheel, in a folder that exists as long as the block of `built`.
        report: The report of the wheel checks.
        fitting: The wheel, and the wheels of its dependencies that fit this machine.
        trees: The folders of these wheels, unpacked; empty if there are faults.
        faults: The faults of the build, the wheel checks and the dependencies.
        dependencies: The wheels that the manifest names and that are available.
        libraries: The working tree of each wheel that was built from a library of the author's own.
        source: The manifest of the working tree, which names no such library.
        own: The wheel was built here, from a tree whose code has already run unconfined.
    """

    project: Path
    wheel: Path
    report: WheelReport
    fitting: tuple[Path, ...]
    trees: tuple[Path, ...]
    faults: list[Fault]
    dependencies: tuple[Path, ...] = ()
    libraries: Mapping[Path, Path] = msgspec.field(default_factory=dict)
    source: bytes = b""
    own: bool = True

    @property
    def name(self) -> str:
        """The driver's id, else the project's name."""
        return self.report.manifest.id if self.report.manifest else self.wheel.name.partition("-")[0]

    def check_sound(self) -> None:
        """Raise WheelRejectedError with all faults, if there are any."""
        if self.faults:
            raise rejected(self.wheel.name, self.faults, hint="dragoman driver check")


class _BuildSystem(msgspec.Struct, rename="kebab"):
    """The build system that a project declares (PEP 517)."""

    build_backend: str = "setuptools.build_meta:__legacy__"
    backend_path: list[str] = []
    requires: list[str] = []


def _build_system(path: Path) -> _BuildSystem:
    """Read the build system. Raises ConfigurationError, also for a backend path outside the project."""
    try:
        system = msgspec.convert(read_project(path).get("build-system", {}), _BuildSystem)
    except msgspec.ValidationError as error:
        reason = f"{path / 'pyproject.toml'}: [build-system] {error}"
        raise ConfigurationError(reason, hint="correct that line") from error
    for backend_path in system.backend_path:
        if _is_outside(path, backend_path):
            reason = f"{path / 'pyproject.toml'}: backend-path {backend_path[:200]!r} leads out of the project"
            raise ConfigurationError(reason, hint="name a folder of the project")
    return system


def _is_outside(path: Path, name: str | Path) -> bool:
    """Check whether a path below a project leads out of it, by itself or through a link."""
    root = os.path.realpath(path)
    return "\0" in str(name) or os.path.commonpath((root, os.path.realpath(Path(root, name)))) != root


def _strays(path: Path) -> Iterator[Fault]:
    """Find what a build would read outside the project, through a link or a path in `pyproject.toml`."""
    for folder, folders, names in os.walk(path):
        if folder == str(path):
            folders[:] = [name for name in folders if name not in _BESIDE]
        for name in [*folders, *names]:
            link = Path(folder, name)
            if link.is_symlink() and (link.readlink().is_absolute() or _is_outside(path, link.relative_to(path))):
                reason = f"It is a link out of the project, to {os.path.realpath(link)}, which would be published."
                yield Fault("link-outside", reason, link.relative_to(path).as_posix())
    project = read_project(path).get("project")
    for key in ("readme", "license"):
        document = project.get(key) if isinstance(project, dict) else None
        document = document.get("file") if isinstance(document, dict) else document
        if isinstance(document, str) and _is_outside(path, document):
            yield Fault("link-outside", f"{key} names {document[:200]!r}, out of the project.", "pyproject.toml")


def digest_of(wheel: Path) -> str:
    """Return the SHA-256 of a wheel. Raises ConfigurationError if it is not a plain file or is too large."""
    try:
        with open_plain(wheel) as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_WHEEL:
                text = f"{wheel} is {size:,} bytes, {MAX_WHEEL:,} are allowed"
                raise ConfigurationError(text, hint="remove it, or replace it with the right file")
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigurationError(f"{wheel} cannot be read: {error.strerror or error}") from error


@contextmanager
def built(path: Path, *, wheels: Path | None = None, libraries: Sequence[Path] | None = None) -> Iterator[Built]:
    """Build the wheels of a working tree and of its libraries twice, check them, and unpack them if sound. Blocks.

    The build backends of the trees run outside the sandbox, with the user's rights.

    Args:
        path: The working tree.
        wheels: The folder of its dependencies' wheels; None for its own folder ``wheels``.
        libraries: The working trees of its libraries; None for those that its `pyproject.toml` names.

    Raises:
        ConfigurationError: There is no project, or its backend builds no wheel.
        WheelRejectedError: A link in the tree, or a path of its `pyproject.toml`, leads out of it.
    """
    libraries = library_folders(path) if libraries is None else libraries
    strays = list(islice(chain.from_iterable(map(_strays, [path, *libraries])), MAX_STRAYS))
    if strays:  # before a backend reads their targets
        hint = "copy what it leads to into the project, or remove the link"
        raise rejected(f"{path} cannot be built", strays, hint=hint)
    with scratch_folder() as folder:
        own, faults = {}, list[Fault]()
        for number, library in enumerate(libraries):
            library_wheel, library_faults = _twice(library, folder / f"library-{number}")
            own[library_wheel] = library
            faults += [dataclasses.replace(fault, where=library_wheel.name) for fault in library_faults]
        wheel, wheel_faults = _twice(path, folder / "driver")
        source = inspect(wheel, driver=True).manifest_data
        record_libraries(wheel, list(own))
        faults += wheel_faults
        judged = _judged(wheel, faults, project=path, wheels=wheels or path / "wheels", folder=folder, libraries=own)
        yield msgspec.structs.replace(judged, source=source)


def _twice(path: Path, folder: Path) -> tuple[Path, list[Fault]]:
    folder.mkdir()
    first, second = _run_backend(path, folder)
    same = digest_of(first) == digest_of(second)
    return first, [] if same else [Fault("not-reproducible", "Two builds gave different bytes.")]


@contextmanager
def finished(wheel: Path, *, wheels: Path | None = None) -> Iterator[Built]:
    """Check a finished wheel, and unpack it if it is sound; none of its code runs. Blocks.

    Args:
        wheel: The file.
        wheels: The folder of its dependencies' wheels; None for the folder of the file.

    Raises:
        ConfigurationError: There is no such file.
    """
    if not wheel.is_file():
        raise ConfigurationError(f"{wheel} is not a regular file", hint="name the path of a .whl file")
    with scratch_folder() as temporary:
        judged = _judged(wheel, [], project=wheel.parent, wheels=wheels or wheel.parent, folder=temporary)
        yield msgspec.structs.replace(judged, own=False)


def _judged(
    wheel: Path,
    faults: list[Fault],
    *,
    project: Path,
    wheels: Path,
    folder: Path,
    libraries: Mapping[Path, Path] = NO_LIBRARIES,
) -> Built:
    report = inspect(wheel, driver=True, host=Host.here())
    dependencies, dependency_faults = _dependencies(report, wheels, libraries)
    faults = [*report.faults, *faults, *dependency_faults]
    fitting = _fitting([wheel, *dependencies]) if report.name else ()
    return Built(
        project=project,
        wheel=wheel,
        report=report,
        fitting=fitting,
        trees=() if faults else tuple(_unpacked(fitting, folder / "trees")),
        faults=faults,
        dependencies=tuple(dependencies),
        libraries=libraries,
    )


def _run_backend(path: Path, folder: Path) -> list[Path]:
    """Build twice in a separate process without a network; build requirements must be installed here."""
    system = _build_system(path)
    backend = system.build_backend
    folders = [folder / "first", folder / "second"]
    for output in folders:
        output.mkdir()
    paths = [*folders, *(path / backend_path for backend_path in system.backend_path)]
    words = [sys.executable, "-c", _BUILD, backend, *map(str, paths)]
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter, and the backend that the author chose
            words, cwd=path, env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH}, capture_output=True, text=True,
            errors="replace", timeout=BUILD_SECONDS, check=False,
        )  # fmt: skip
    except (subprocess.TimeoutExpired, ValueError) as error:  # a NUL in its name
        late = isinstance(error, subprocess.TimeoutExpired)
        did = f"did not end within {BUILD_SECONDS:g} s" if late else "is not a backend"
        reason = f"{path} cannot be built: {backend[:200]!r} {did}"
        raise ConfigurationError(reason, hint="python -m build shows the whole output", code="build-failed") from error
    wheels = [wheel for output in folders for wheel in output.glob("*.whl")]
    if done.returncode or len(wheels) != 2:
        last = (done.stderr.strip() or "it made no wheel").splitlines()[-1]
        needed = shlex.join(["pip", "install", "--", *system.requires])
        hint = needed if "No module named" in last else "python -m build shows the whole output"
        raise ConfigurationError(f"{path} cannot be built by {backend}: {last}", hint=hint, code="build-failed")
    return wheels


def _dependencies(report: WheelReport, folder: Path, libraries: Iterable[Path]) -> tuple[list[Path], list[Fault]]:
    """Find the wheels that a manifest names by hash."""
    wheels, faults, manifest = [], list[Fault](), report.manifest
    own = {library.name: library for library in libraries}
    for dependency in manifest.dependencies if manifest else ():
        wheel = own.get(dependency.file, folder / dependency.file)
        if not wheel.is_file():
            faults.append(Fault("dependency-missing", f"{dependency.file} is not in {folder}; publishing fetches it."))
            continue
        native = manifest is not None and "native-code" in manifest.permissions
        inspected = inspect(wheel, driver=False, native=native)
        if inspected.sha256 not in ("", dependency.sha256):
            reason = f"{dependency.file} is {inspected.sha256}, the manifest says {dependency.sha256}."
            faults.append(Fault("dependency-mismatch", reason))
            continue
        wheels.append(wheel)
        faults += [dataclasses.replace(fault, where=dependency.file) for fault in inspected.faults]
    return wheels, faults


def _fitting(wheels: Sequence[Path]) -> tuple[Path, ...]:
    """Choose the best wheel of each project for this machine."""
    tags, best = Host.here().tags, dict[str, tuple[int, Path]]()
    for wheel in wheels:
        name = wheel.name.partition("-")[0]
        if (place := rank_wheel(wheel.name, tags)) is not None and place < best.get(name, (len(tags), wheel))[0]:
            best[name] = (place, wheel)
    return tuple(wheel for _, wheel in best.values())


def _unpacked(wheels: Sequence[Path], folder: Path) -> Iterator[Path]:
    folder.mkdir()
    for wheel in wheels:
        unpack(wheel, folder / wheel.stem)
        yield folder / wheel.stem
