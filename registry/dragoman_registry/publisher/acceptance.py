"""Accepts what publishers submitted: each is judged alone, in a separate process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from dragoman_api.wording import failure
from dragoman_registry.index.catalog import Release
from dragoman_registry.isolation import Apart
from dragoman_registry.trust.roles import ONLINE
from dragoman_registry.validation import Fault
from dragoman_registry.wheels.archive_checks import inspect_apart
from dragoman_registry.wheels.wheel_file import project_of

from .catalog_merge import immutable, merged, releases, wheels
from .edit import editing
from .folder import write_index, write_wheel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tuf.api.metadata import Metadata, TargetFile, Targets

    from dragoman_registry.index.catalog import Catalog
    from dragoman_registry.wheels.metadata_checks import WheelReport

    from .edit import Edit


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The result of accepting publishers' submissions.

    Attributes:
        releases: The new releases.
        refused: Every fault of the refused submissions, which stay where they are.
    """

    releases: list[Release]
    refused: list[Fault]


def accept(path: Path, *, keys: Path | None = None, uploads: Iterable[Path] = ()) -> Acceptance:
    """Check the publishers' new submissions, then add them to the index, snapshot and timestamp.

    Each publisher is judged alone, with the wheels in a separate process, so one submission cannot block another.

    Args:
        path: The registry.
        keys: Folder of keys; by default beside the registry.
        uploads: Wheels that arrived another way; those that a publisher signed are added.

    Raises:
        ConfigurationError: A key is missing. Otherwise raises as `build`.
    """
    with Apart() as apart, editing(path, keys) as edit:
        edit.repository.expect(*ONLINE)
        before, touched = {wheel.file for wheel in wheels(edit.catalog)}, set[str]()
        catalog, arrived = edit.catalog, {upload.name: upload for upload in uploads}
        refused = [Fault("unreadable", reason, file) for file, reason in edit.repository.unreadable().items()]
        for role, metadata in edit.repository.pending().items():
            reports, following, faults = _judge(edit, role, metadata, arrived, catalog, apart)
            if faults:
                refused += faults
                continue
            edit.record(reports)
            for file, report in reports.items():
                write_wheel(path, file, report, {})
                touched.add(project_of(file.name))
            edit.repository.adopt(role, metadata)
            catalog = following
        write_index(path, edit.repository, catalog, changed=touched)
    new = [release for release in releases(catalog) if {wheel.file for wheel in release.wheels} - before]
    return Acceptance(releases=new, refused=refused)


def _judge(
    edit: Edit, role: str, metadata: Metadata[Targets], arrived: Mapping[str, Path], catalog: Catalog, apart: Apart
) -> tuple[dict[Path, WheelReport], Catalog, list[Fault]]:
    """Judge a publisher's submission, and return the catalog extended with it if there is no fault."""
    reports: dict[Path, WheelReport] = {}
    try:
        faults = [Fault(code, reason, role) for code, reason in edit.repository.problems(role, metadata)]
        if not faults:
            reports, faults = _signed_wheels(edit, metadata.signed.targets, arrived, apart)
        faults = faults or [*immutable(catalog, reports), *edit.claims(reports)]
        following, conflicts = (catalog, []) if faults else merged(catalog, reports, edit.stamp)
    except Exception as error:  # noqa: BLE001 - one publisher's bytes must not stop the others
        return {}, catalog, [Fault("unreadable", f"It cannot be checked: {failure(error)}.", role)]
    return reports, following, [*faults, *conflicts]


def _signed_wheels(
    edit: Edit, waiting: Mapping[str, TargetFile], arrived: Mapping[str, Path], apart: Apart
) -> tuple[dict[Path, WheelReport], list[Fault]]:
    """Inspect the signed wheels of a publisher that await acceptance, and the libraries they name."""
    published_files = {wheel.file for wheel in wheels(edit.catalog)}
    reports: dict[Path, WheelReport] = {}
    faults: list[Fault] = []
    for target in waiting:
        folder, _, name = target.rpartition("/")
        if name.endswith(".whl") and name not in published_files:
            path = edit.path / "targets" / target
            path = path if path.is_file() else arrived.get(name, path)
            report = inspect_apart(apart, path, native=True, driver=True)
            faults += [replace(fault, where=name) for fault in report.faults]
            if not report.faults and report.sha256 != waiting[target].hashes["sha256"]:
                faults.append(Fault("digest-mismatch", f"Its digest {report.sha256} is not the signed one.", name))
            beside = waiting.get(f"{target}.driver.json")
            if beside is None or beside.hashes.get("sha256") != sha256(report.manifest_data).hexdigest():
                faults.append(Fault("manifest", f"{folder}/{name}.driver.json is not signed with it.", name))
            reports[path] = report
    for report in list(reports.values()):
        for dependency in report.manifest.dependencies if report.manifest else ():
            path = edit.path / "targets/wheels" / project_of(dependency.file) / dependency.file
            path = path if path.is_file() else arrived.get(dependency.file, path)
            if dependency.file not in published_files and path.is_file():
                reports[path] = inspect_apart(apart, path, native=True, driver=False)
                faults += [replace(fault, where=path.name) for fault in reports[path].faults]
    return reports, faults
