"""From a working tree to a published release: closed set, checks, conformance, registry."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import msgspec

from dragoman.folders import scratch_folder
from dragoman_api.errors import ConfigurationError
from dragoman_registry.files import read_plain
from dragoman_registry.index.registry_reader import MAX_DOCUMENT
from dragoman_registry.publisher import publish as registry
from dragoman_registry.trust.keys import beside, own_key
from dragoman_registry.trust.signers import KeyFile
from dragoman_registry.trust.tuf_repository import exists
from dragoman_registry.validation import Unreadable, decode
from dragoman_registry.wheels.host_environment import provided_projects
from dragoman_registry.wheels.packaging_parsers import project_name

from .check import check
from .closed_set import close_set, write_dependencies
from .conformance_run import REPORT, Conformance, run_conformance, shortfall
from .libraries import library_folders
from .wheel_build import Built, built, digest_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.sandbox.levels import Policy

_NO_COPY = shutil.ignore_patterns(".git", ".venv", "dist", "__pycache__")


def _no_copy(folder: str, names: list[str]) -> set[str]:
    """List what a dry run does not copy: folders that are not part of the project, pipes and devices."""
    places = {name: Path(folder, name) for name in names}
    odd = {name for name, path in places.items() if not (path.is_symlink() or path.is_dir() or path.is_file())}
    return odd | _NO_COPY(folder, names)


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a publication.

    Attributes:
        plugin: The plugin's id.
        version: The version of the distribution.
        sha256: The digest of the driver's wheel.
        wheels: Files of the release: the driver's, then those of its closed set.
        state: ``published``, ``already published`` with the same bytes, ``would be published``, or that it waits.
        notes: Remarks for the author, such as a platform without a wheel.
        report: The conformance report beside the wheel.
    """

    plugin: str
    version: str
    sha256: str
    wheels: list[str]
    state: str
    notes: list[str]
    report: Conformance


def publish(
    path: Path,
    *,
    to: Path,
    wheels: Path | None = None,
    dry_run: bool = False,
    policy: Policy = "auto",
    sign: Path | None = None,
    own: Path | None = None,
) -> Published:
    """Build, check, test and publish the driver of a working tree. Blocks.

    Dependencies beyond the host's are resolved now and written into `driver.json`, each wheel by its hash.

    Args:
        path: The working tree.
        to: The registry; it is created if missing.
        wheels: The folder of the dependencies' wheels; None for the tree's folder ``wheels``, which pip fills.
        dry_run: Do everything, but write neither to the registry nor to the working tree.
        policy: The sandbox policy.
        sign: The author's key. Without one, the registry's keys sign, if they are present.
        own: Where the author's key is kept, or created, if there is neither.

    Raises:
        WheelRejectedError: The wheel has faults, all listed; the registry is unchanged.
        ConfigurationError: It cannot be built, a dependency has no wheel, the conformance tests fail, or the key does
            not open.
        RegistryError: The registry cannot be written.
    """
    folder, key = path, sign or _own(to, own)
    if key and not dry_run:
        KeyFile(key).unlock()  # a person is asked now, not after minutes of tests
    with ExitStack() as stack:
        if dry_run:
            copy = stack.enter_context(scratch_folder()) / "tree"
            path = shutil.copytree(path, copy, ignore=_no_copy, symlinks=True)
        build, notes = _closed(stack, path, wheels, library_folders(folder))
        build.faults[:] = anyio.run(partial(check, build, policy=policy)).faults
        build.check_sound()
        tested = _tested(build, policy, folder)
        return _publish(build, tested, notes, to=to, dry_run=dry_run, sign=key)


def _closed(stack: ExitStack, path: Path, wheels: Path | None, libraries: Sequence[Path]) -> tuple[Built, list[str]]:
    """Build, and build again if the requirements resolve to a closed set other than the manifest's."""
    folder = wheels or path / "wheels"
    build = stack.enter_context(built(path, wheels=folder, libraries=libraries))
    manifest = build.report.manifest
    host = provided_projects()
    needed = [requirement for requirement in build.report.requires if project_name(requirement.name) not in host]
    if manifest is None or not (needed or manifest.dependencies):
        return build, []
    chosen, notes = close_set(
        needed, folder, libraries=[*build.libraries], python=build.report.requires_python, fetch=wheels is None
    )
    own = {library.name for library in build.libraries}
    listed = {(entry.file, entry.sha256) for entry in manifest.dependencies if entry.file not in own}
    if listed != {(file.name, digest_of(file)) for file in chosen}:
        manifest_files = [file for file in path.rglob("driver.json") if _holds(file, build.source)]
        if not manifest_files:
            text = f"the closed set cannot be recorded: no driver.json in {path} is the wheel's"
            raise ConfigurationError(text, hint="make the build copy driver.json unchanged from the folder")
        write_dependencies(manifest_files[0], chosen)
        build = stack.enter_context(built(path, wheels=folder, libraries=libraries))
    return build, notes


def _holds(file: Path, data: bytes) -> bool:
    try:
        return read_plain(file, limit=len(data)) == data
    except OSError:
        return False


def _tested(build: Built, policy: Policy, folder: Path) -> Conformance:
    """Read the report of exactly these bytes if there is one, else run the conformance tests now."""
    try:
        tested = decode(read_plain(build.project / REPORT, limit=MAX_DOCUMENT), Conformance)
    except (OSError, Unreadable):
        tested = None
    if tested is None or tested.sha256 != build.report.sha256 or not tested.passed:
        tested, _ = run_conformance(build, policy=policy)
    if not tested.passed:
        reason, hint = shortfall(tested, folder)
        text = f"{build.name} does not pass its conformance tests and was not published: {reason}"
        raise ConfigurationError(text, hint=hint, code="conformance-failed")
    return tested


def _own(to: Path, own: Path | None) -> Path | None:
    """Return the author's own key, unless the registry is theirs or is about to be created."""
    return own_key(own) if own is not None and exists(to) and not beside(to).is_dir() else None


def _publish(
    build: Built, tested: Conformance, notes: list[str], *, to: Path, dry_run: bool, sign: Path | None
) -> Published:
    changelog = build.project / "CHANGELOG.md"
    files = [build.wheel, *build.dependencies]
    published_digests = registry.published(to)
    papers = {"report.json": msgspec.json.format(msgspec.json.encode(tested), indent=1)}
    if changelog.is_file():
        try:
            papers["CHANGELOG.md"] = read_plain(changelog, limit=MAX_DOCUMENT)
        except OSError as error:
            raise ConfigurationError(f"{changelog} cannot be read: {error.strerror}", hint="shorten it") from error
    [release] = registry.build(files, to=to, beside={build.wheel.name: papers}, dry_run=dry_run, sign=sign)
    done = "would be published" if dry_run else "published"
    if not dry_run and build.wheel.name not in registry.published(to):
        done = "signed, and waits to be accepted:"
        notes.append(f"its operator offers it with: dragoman registry accept {to}")
    return Published(
        plugin=release.plugin,
        version=release.version,
        sha256=build.report.sha256,
        wheels=[file.name for file in files],
        state="already published" if published_digests.get(build.wheel.name) == build.report.sha256 else done,
        notes=notes,
        report=tested,
    )
