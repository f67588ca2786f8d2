"""From a working tree to a published release: closed set, checks, contract, registry."""

from __future__ import annotations

import hashlib
import shutil
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import anyio
import msgspec
from packaging.utils import canonicalize_name

from dragoman_api.errors import ConfigurationError
from dragoman_registry import publish as registry
from dragoman_registry.trust.keys import beside, own_key
from dragoman_registry.trust.ledger import exists

from .check import check
from .contract import REPORT, Conformance, run_contract
from .dependencies import close_set, host_projects, write_dependencies
from .project import Built, built

if TYPE_CHECKING:
    from dragoman.sandbox.policy import Policy

_NO_COPY = shutil.ignore_patterns(".git", ".venv", "dist", "__pycache__")


@dataclass(frozen=True, kw_only=True)
class Published:
    """What became of a publication.

    Attributes:
        plugin: The plugin's id.
        version: Of the distribution.
        sha256: Of the driver's wheel.
        wheels: Files of the release: the driver's, then those of its closed set.
        state: ``published``, ``already published`` with the same bytes, ``would be published``, or that it waits.
        notes: What an author should know: a platform without a wheel.
        report: The conformance report that lies beside the wheel.
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
        to: The registry, made when it is not there.
        wheels: Where the wheels of the dependencies lie; None for the tree's folder ``wheels``, which pip fills.
        dry_run: Do everything but write: neither into the registry nor into the working tree.
        policy: Of the sandbox.
        sign: The author's key. Without one, whoever holds the registry's keys signs with those.
        own: Where a key for the author is kept, and made, if there is neither.

    Raises:
        WheelRejectedError: With every fault; the registry is unchanged.
        ConfigurationError: It cannot be built, a dependency has no wheel, or the contract is not held.
        RegistryError: The registry cannot be written.
    """
    with ExitStack() as stack:
        if dry_run:
            copy = Path(stack.enter_context(TemporaryDirectory(prefix="dragoman-"))) / "tree"
            path = shutil.copytree(path, copy, ignore=_NO_COPY)
        made, notes = _closed(stack, path, wheels)
        made.faults[:] = anyio.run(partial(check, made, policy=policy)).faults
        made.expect_sound()
        tested = _tested(made, policy)
        return _publish(made, tested, notes, to=to, dry_run=dry_run, sign=sign or _own(to, own))


def _closed(stack: ExitStack, path: Path, wheels: Path | None) -> tuple[Built, list[str]]:
    """Build, and build again if the closed set in the manifest is not the one its requirements give."""
    folder = wheels or path / "wheels"
    made = stack.enter_context(built(path, wheels=folder))
    manifest = made.report.manifest
    host = host_projects()
    needed = [each for each in made.report.requires if canonicalize_name(each.name) not in host]
    if manifest is None or not (needed or manifest.dependencies):
        return made, []
    chosen, notes = close_set(needed, folder, python=made.report.requires_python, fetch=wheels is None)
    listed = {(each.file, each.sha256) for each in manifest.dependencies}
    if listed != {(file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in chosen}:
        there = [file for file in path.rglob("driver.json") if file.read_bytes() == made.report.manifest_data]
        if not there:
            text = f"the closed set cannot be written down: no driver.json in {path} is that of the wheel"
            raise ConfigurationError(text, hint="let the wheel take its driver.json from the folder as it is")
        write_dependencies(there[0], chosen)
        made = stack.enter_context(built(path, wheels=folder))
    return made, notes


def _tested(made: Built, policy: Policy) -> Conformance:
    """Take the report of these very bytes if there is one, else run the contract now."""
    try:
        tested = msgspec.json.decode((made.project / REPORT).read_bytes(), type=Conformance)
    except (OSError, msgspec.DecodeError):
        tested = None
    if tested is None or tested.sha256 != made.report.sha256 or not tested.passed:
        tested, _ = run_contract(made, policy=policy)
    if not tested.passed:
        reason = next(iter([*tested.failures, *tested.denied]), "no test of it ran in the sandbox")
        text = f"{made.name} does not hold the contract and was not published: {reason}"
        raise ConfigurationError(text, hint="dragoman driver test", code="contract-failed")
    return tested


def _own(to: Path, own: Path | None) -> Path | None:
    """Give the author's own key, unless the registry is theirs, or will be."""
    return own_key(own) if own is not None and exists(to) and not beside(to).is_dir() else None


def _publish(
    made: Built, tested: Conformance, notes: list[str], *, to: Path, dry_run: bool, sign: Path | None
) -> Published:
    changelog = made.project / "CHANGELOG.md"
    files = [made.wheel, *made.dependencies]
    there = registry.published(to)
    papers = {"report.json": msgspec.json.format(msgspec.json.encode(asdict(tested)), indent=1)}
    if changelog.is_file():
        papers["CHANGELOG.md"] = changelog.read_bytes()
    [release] = registry.build(files, to=to, beside={made.wheel.name: papers}, dry_run=dry_run, sign=sign)
    done = "would be published" if dry_run else "published"
    if not dry_run and made.wheel.name not in registry.published(to):
        done = "signed, and waits to be accepted:"
        notes.append(f"whoever runs the registry offers it with: dragoman registry accept {to}")
    return Published(
        plugin=release.plugin,
        version=release.version,
        sha256=made.report.sha256,
        wheels=[file.name for file in files],
        state="already published" if there.get(made.wheel.name) == made.report.sha256 else done,
        notes=notes,
        report=tested,
    )
