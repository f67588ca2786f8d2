"""The closed set of a release: every wheel a driver needs beyond what the host has, chosen when it is published."""

from __future__ import annotations

import shlex
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from itertools import product
from typing import TYPE_CHECKING

from packaging.tags import compatible_tags, cpython_tags, mac_platforms

from dragoman_api.errors import ConfigurationError
from dragoman_registry.files import write
from dragoman_registry.wheels.archive_checks import inspect
from dragoman_registry.wheels.host_environment import provided_projects
from dragoman_registry.wheels.packaging_parsers import (
    Unreadable,
    parse_range,
    parse_version,
    parse_wheel_name,
    project_name,
)

from .libraries import list_dependencies
from .wheel_build import digest_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from packaging.requirements import Requirement
    from packaging.version import Version

FETCH_SECONDS = 600
PYTHONS = tuple((3, minor) for minor in range(11, 15))
SYSTEMS = {
    f"Linux {machine}": [*(f"manylinux_2_{n}_{machine}" for n in range(39, 4, -1)), f"manylinux2014_{machine}"]
    for machine in ("x86_64", "aarch64")
} | {"macOS arm64": [*mac_platforms((14, 0), "arm64")]}
"""The systems that a driver should support: platform tags by system, best first."""


def close_set(
    requirements: Sequence[Requirement],
    folder: Path,
    *,
    libraries: Sequence[Path] = (),
    python: str = "",
    fetch: bool = False,
) -> tuple[list[Path], list[str]]:
    """Choose the wheels of a closed set for every platform. Blocks.

    The first requirement on a project picks its highest fitting version. There is no search for another combination;
    a conflict is an error.

    Args:
        requirements: The driver's requirements.
        folder: The folder of the wheels.
        libraries: The wheels of the author's own libraries, which are part of the set.
        python: The range of Python versions that the driver supports.
        fetch: Let pip download missing wheels into the folder.

    Returns:
        The wheels in the folder, and a note for each system that lacks one.

    Raises:
        ConfigurationError: A requirement has no wheel at all, or contradicts another.
    """
    host, todo = provided_projects(), list(requirements)
    own: dict[str, tuple[Version, list[Path]]] = {}
    for library in libraries:
        parsed = parse_wheel_name(library.name)
        own[parsed.project] = parse_version(parsed.version), [library]
        todo += inspect(library, driver=False, native=True).requires
    chosen = dict(own)
    while todo:
        requirement = todo.pop(0)
        name = project_name(requirement.name)
        if name in host:
            continue
        if requirement.extras:
            raise _unmet(requirement, "extras are not resolved", "require what the extra names by itself")
        if name in chosen:
            if not requirement.specifier.contains(chosen[name][0], prereleases=True):
                reason = f"{chosen[name][0]} was chosen already"
                raise _unmet(requirement, reason, "narrow the requirement of the driver")
            continue
        if (release := _best(requirement, folder)) is None and fetch:
            _download(folder, str(requirement).partition(";")[0])
            release = _best(requirement, folder)
        if release is None:
            arguments = [str(folder), str(requirement).partition(";")[0]]
            hint = shlex.join(["pip", "download", "--only-binary=:all:", "--dest", *arguments])
            raise _unmet(requirement, f"{folder} has no wheel of it", hint)
        chosen[name] = release
        todo += [
            dependency for wheel in release[1] for dependency in inspect(wheel, driver=False, native=True).requires
        ]
    notes = []
    for project, (version, _) in chosen.items():
        if fetch and project not in own:
            for system, pythons in _uncovered(_files(project, version, folder), python).items():
                for minor in pythons:
                    _download(folder, f"{project}=={version}", system=system, python=minor)
        files = own[project][1] if project in own else _files(project, version, folder)
        for system, pythons in _uncovered(files, python).items():
            where = f"{system} with Python {', '.join(pythons)}"
            notes.append(f"{project} {version} has no wheel for {where}: the driver cannot be installed there")
    listed = {name: version for name, (version, _) in chosen.items() if name not in own}
    return sorted({file for name, version in listed.items() for file in _files(name, version, folder)}), notes


def _unmet(requirement: Requirement, reason: str, hint: str) -> ConfigurationError:
    return ConfigurationError(f"{requirement} cannot be met: {reason}", hint=hint, code="dependency-missing")


def _wheels(name: str, folder: Path) -> Iterator[tuple[Version, Path]]:
    """Find the wheels of a project; skip files without a wheel's name."""
    for file in sorted(file for file in folder.glob("*.whl") if file.is_file()):
        with suppress(Unreadable):
            parsed = parse_wheel_name(file.name)
            if parsed.project == name:
                yield parse_version(parsed.version), file


def _files(name: str, version: Version, folder: Path) -> list[Path]:
    return [file for wheel_version, file in _wheels(name, folder) if wheel_version == version]


def _best(requirement: Requirement, folder: Path) -> tuple[Version, list[Path]] | None:
    name = project_name(requirement.name)
    versions = {version for version, _ in _wheels(name, folder)}
    fitting = sorted(requirement.specifier.filter(versions, prereleases=None))
    return (fitting[-1], _files(name, fitting[-1], folder)) if fitting else None


def _uncovered(files: Sequence[Path], python: str) -> dict[str, list[str]]:
    """List the Python versions, by system, that no given wheel supports."""
    wheel_tags = {tag for file in files for tag in parse_wheel_name(file.name).tags}
    missing: dict[str, list[str]] = {}
    for (system, platforms), version in product(SYSTEMS.items(), PYTHONS):
        python_version = ".".join(map(str, version))
        if python and not parse_range(python).contains(f"{python_version}.99"):
            continue
        interpreter = f"cp{version[0]}{version[1]}"
        accepted = (*cpython_tags(version, platforms=platforms), *compatible_tags(version, interpreter, platforms))
        if not wheel_tags & {str(tag) for tag in accepted}:
            missing.setdefault(system, []).append(python_version)
    return missing


def _download(folder: Path, requirement: str, *, system: str = "", python: str = "") -> None:
    """Let pip fetch one wheel; the caller detects a wheel that is still missing."""
    if find_spec("pip") is None:
        return
    words = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--dest", str(folder)]
    if system:
        words += ["--implementation", "cp", "--python-version", python]
        words += [word for platform in SYSTEMS[system] for word in ("--platform", platform)]
    subprocess.run([*words, requirement], capture_output=True, timeout=FETCH_SECONDS, check=False)  # noqa: S603 - pip


def write_dependencies(manifest: Path, wheels: Sequence[Path]) -> None:
    """Write wheels with their hashes into a `driver.json`, and keep the layout of the rest."""
    entries = [(wheel.name, digest_of(wheel)) for wheel in wheels]
    write(manifest, list_dependencies(manifest.read_text(encoding="utf-8"), entries).encode())
