"""An author's working tree: its wheel, built by its own backend, the same bytes each time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from dragoman_api.errors import ConfigurationError, WheelRejectedError
from dragoman_registry.claims import Report
from dragoman_registry.installer import unpack
from dragoman_registry.preflight import inspect
from dragoman_registry.validation import Fault
from dragoman_registry.wheels import Host, rank

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


BUILD_SECONDS = 120
EPOCH = "1580601600"  # a fixed time for every file, or two builds would differ by their clocks

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A driver's wheel, what was found in it, and where it is unpacked.

    Attributes:
        project: The working tree.
        wheel: Below a folder that lives as long as the block of `built`.
        report: Of the preflight.
        fitting: The wheel and those of its dependencies that fit this machine.
        trees: These, unpacked; empty where there are faults.
        faults: Of the build, the preflight and the dependencies.
        dependencies: The wheels the manifest names, as far as they are at hand.
    """

    project: Path
    wheel: Path
    report: Report
    fitting: tuple[Path, ...]
    trees: tuple[Path, ...]
    faults: list[Fault]
    dependencies: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        """Give what the driver is called: its id, else the project's name."""
        return self.report.manifest.id if self.report.manifest else self.wheel.name.partition("-")[0]

    def expect_sound(self) -> None:
        """Raise WheelRejectedError with every fault, if there is one."""
        if self.faults:
            pairs = tuple((fault.code, str(fault)) for fault in self.faults)
            raise WheelRejectedError(f"{self.wheel.name}: {pairs[0][1]}", hint="dragoman driver check", faults=pairs)


def read_project(path: Path) -> dict[str, Any]:
    """Read the `pyproject.toml` of a working tree.

    Raises:
        ConfigurationError: There is none, or it cannot be read; the message names the line.
    """
    file = path / "pyproject.toml"
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        hint = "dragoman driver new NAME --type TYPE --port PORT"
        raise ConfigurationError(f"{path} is no driver's folder: it has no pyproject.toml", hint=hint) from error
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}", hint="correct that line") from error


@contextmanager
def built(path: Path, *, wheels: Path | None = None) -> Iterator[Built]:
    """Build the wheel of a working tree twice, look at it, and unpack it where it may be. Blocks.

    Args:
        path: The working tree.
        wheels: Where the wheels of its dependencies lie; None for its own folder ``wheels``.

    Raises:
        ConfigurationError: There is no project, or its backend makes no wheel.
    """
    with TemporaryDirectory(prefix="dragoman-") as temporary:
        folder = Path(temporary)
        first, second = _run_backend(path, folder)
        report = inspect(first, driver=True, host=Host.here())
        faults = list(report.faults)
        if first.read_bytes() != second.read_bytes():
            faults.append(Fault("not-reproducible", "Two builds gave different bytes."))
        dependencies, more = _dependencies(report, wheels or path / "wheels")
        faults += more
        fitting = _fitting([first, *dependencies]) if report.name else ()
        yield Built(
            project=path,
            wheel=first,
            report=report,
            fitting=fitting,
            trees=() if faults else tuple(_unpacked(fitting, folder / "trees")),
            faults=faults,
            dependencies=tuple(dependencies),
        )


def _run_backend(path: Path, folder: Path) -> list[Path]:
    """Build twice in a process of its own, without a network: what the project needs to be built is installed here."""
    system = read_project(path).get("build-system", {})
    backend, search = system.get("build-backend", "setuptools.build_meta:__legacy__"), system.get("backend-path", [])
    folders = [folder / "first", folder / "second"]
    for each in folders:
        each.mkdir()
    words = [sys.executable, "-c", _BUILD, backend, *map(str, folders), *(str(path / each) for each in search)]
    done = subprocess.run(  # noqa: S603 - this interpreter, and the backend that the author chose
        words, cwd=path, env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH}, capture_output=True, text=True,
        timeout=BUILD_SECONDS, check=False,
    )  # fmt: skip
    made = [wheel for each in folders for wheel in each.glob("*.whl")]
    if done.returncode or len(made) != 2:
        last = (done.stderr.strip() or "it made no wheel").splitlines()[-1]
        needed = " ".join(system.get("requires", []))
        hint = f"pip install {needed}" if "No module named" in last else "python -m build shows the whole output"
        raise ConfigurationError(f"{path} cannot be built by {backend}: {last}", hint=hint, code="build-failed")
    return made


def _dependencies(report: Report, folder: Path) -> tuple[list[Path], list[Fault]]:
    """Find the wheels that a manifest names by hash."""
    found, faults, manifest = [], list[Fault](), report.manifest
    for each in manifest.dependencies if manifest else ():
        wheel = folder / each.file
        if not wheel.is_file():
            faults.append(Fault("dependency-missing", f"{each.file} is not in {folder}; publishing fetches it."))
        elif (actual := hashlib.sha256(wheel.read_bytes()).hexdigest()) != each.sha256:
            faults.append(Fault("dependency-mismatch", f"{each.file} is {actual}, the manifest says {each.sha256}."))
        else:
            found.append(wheel)
            native = manifest is not None and "native-code" in manifest.permissions
            inspected = inspect(wheel, driver=False, native=native)
            faults += [replace(fault, where=each.file) for fault in inspected.faults]
    return found, faults


def _fitting(wheels: Sequence[Path]) -> tuple[Path, ...]:
    """Choose the best wheel of each project for this machine."""
    tags, best = Host.here().tags, dict[str, tuple[int, Path]]()
    for wheel in wheels:
        name = wheel.name.partition("-")[0]
        if (place := rank(wheel.name, tags)) is not None and place < best.get(name, (len(tags), wheel))[0]:
            best[name] = (place, wheel)
    return tuple(wheel for _, wheel in best.values())


def _unpacked(wheels: Sequence[Path], folder: Path) -> Iterator[Path]:
    folder.mkdir()
    for wheel in wheels:
        unpack(wheel, folder / wheel.stem)
        yield folder / wheel.stem
