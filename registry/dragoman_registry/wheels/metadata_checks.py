"""Checks that names, versions, tags, requirements, entry points, members and manifest of a wheel agree; the report."""

from __future__ import annotations

import configparser
import hashlib
import re
import sys
from dataclasses import dataclass, field
from importlib.metadata import Distribution
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement  # readers of the report resolve this type

from dragoman_registry.validation import Fault, Unreadable

from .archive import Archive, NotAWheel, folded
from .host_environment import API, provided, provided_projects
from .manifest import MAX_MANIFEST, Manifest
from .manifest_checks import check_manifest
from .packaging_parsers import (
    MAX_TAGS,
    WheelNameParts,
    holds,
    parse_headers,
    parse_metadata,
    parse_range,
    parse_tags,
    parse_version,
    project_name,
)
from .wheel_file import project_of

if TYPE_CHECKING:
    from .host_environment import Host
    from .wheel_file import WheelFile


@dataclass(slots=True, kw_only=True)
class WheelReport:
    """The result of the wheel checks.

    Attributes:
        faults: Every fault; empty for a wheel that may be unpacked.
        placed: Maps each member to its path below the installation folder.
        dist_info: The one metadata folder.
        manifest: The manifest of a driver; None for any other wheel.
        requires_python: Range of Python versions, empty for any.
        requires: Requirements that apply without an extra.
        machine_code: Members that begin like native programs or libraries.
    """

    faults: list[Fault] = field(default_factory=list)
    size: int = 0
    sha256: str = ""
    name: WheelNameParts | None = None
    placed: dict[str, str] = field(default_factory=dict)
    dist_info: str = ""
    manifest: Manifest | None = None
    manifest_data: bytes = b""
    metadata: bytes = b""
    requires_python: str = ""
    requires: list[Requirement] = field(default_factory=list)
    summary: str = ""
    readme: str = ""
    machine_code: list[str] = field(default_factory=list)

    def add(self, code: str, reason: str) -> None:
        """Add a fault."""
        self.faults.append(Fault(code, reason))


GROUP = "dragoman.drivers"
_WRITTEN = frozenset(map(folded, (
    "INSTALLER", "REQUESTED", "direct_url.json", "provenance_url.json", "uv_cache.json", "RECORD.jws", "RECORD.p7s",
)))  # fmt: skip
"""Files that installers write beside METADATA and trust later."""
MAX_ENTRY_POINTS = 256 << 10
"""Maximum characters of entry_points.txt."""

MAX_LINE = 512
"""Maximum characters of one line; configparser takes quadratic time on a long line of spaces."""

_GROUP = re.compile(r"[\w.:-]+", re.ASCII)
_NATIVE = re.compile(r"\.(so(\.[0-9]+)*|pyd|dll|dylib|exe)$", re.IGNORECASE)
_BYTECODE = re.compile(r"\.py[co]$", re.IGNORECASE)
_AT_START = frozenset(("sitecustomize", "usercustomize"))


def check_claims(
    archive: Archive,
    report: WheelReport,
    *,
    expected: WheelFile | None,
    sidecar: bytes | None,
    host: Host | None,
    driver: bool | None,
    native: bool,
) -> None:
    """Add the wheel's metadata and every contradiction in it to a report."""
    drivers: dict[str, str] = {}
    if report.dist_info:
        _identity(report)
        _dist_info(report)
        drivers, commands = _entry_points(archive, report)
        _metadata(archive, report, expected, host, strict=bool(drivers))
        _tags(archive, report, host)
        if driver or (driver is None and drivers):
            for command in commands:
                report.add("scripts", f"A driver may not install the command {command}.")
            _manifest(archive, report, drivers, sidecar)
        elif drivers:
            report.add("manifest", "It is a driver, and a driver cannot be a dependency.")
    if drivers:
        native = report.manifest is not None and "native-code" in report.manifest.permissions
    check_members(report, native=native)


def _dist_info(report: WheelReport) -> None:
    """Find files that only an installer may write, and misplaced metadata."""
    for name, path in report.placed.items():
        folder, _, inner = path.partition("/")
        if folder == report.dist_info and folded(inner) in _WRITTEN:
            report.add("dist-info", f"Only the installer may write {name}.")
        if folder == report.dist_info and name != path:
            report.add("dist-info", f"{name} would be installed into {folder}; put it there directly.")


def _text(archive: Archive, report: WheelReport, name: str, *, code: str) -> str | None:
    info = archive.find(f"{report.dist_info}/{name}")
    try:
        if info is not None:
            return archive.read(info).decode()
        report.add(code, f"{name} is missing.")
    except (NotAWheel, ValueError) as error:
        report.add(code, f"{name} cannot be read: {error}.")
    return None


def _identity(report: WheelReport) -> None:
    assert report.name is not None
    if not report.name.canonical:
        expected = f"{report.name.project.replace('-', '_')}-{report.name.version}-…"
        report.add("name-mismatch", f"The file name is not canonical: {expected!r} is expected.")
    _same(report, "the .dist-info folder", *report.dist_info.removesuffix(".dist-info").rpartition("-")[::2])


def _same(report: WheelReport, where: str, project: str, version: str) -> None:
    """Compare a name and version with those of the file name."""
    assert report.name is not None
    if project_name(project) != report.name.project:
        report.add("name-mismatch", f"The file name says {report.name.project}, but {where} says {project[:200]}.")
    try:
        matches = parse_version(version) == parse_version(report.name.version)
    except Unreadable:
        matches = False
    if not matches:
        report.add("version-mismatch", f"The file name says {report.name.version}, but {where} says {version[:200]}.")


def _metadata(
    archive: Archive, report: WheelReport, expected: WheelFile | None, host: Host | None, *, strict: bool
) -> None:
    if (text := _text(archive, report, "METADATA", code="metadata")) is None:
        return
    report.metadata = text.encode()
    if expected and expected.metadata_sha256 not in ("", hashlib.sha256(report.metadata).hexdigest()):
        report.add("metadata", "METADATA differs from the copy published beside the wheel.")
    metadata, faults = parse_metadata(text, strict=strict)
    report.faults += [Fault("metadata", reason) for reason in faults]
    if metadata is None:
        return
    _same(report, "METADATA", metadata.name, metadata.version)
    report.requires_python, report.requires = metadata.requires_python, list(metadata.requires)
    report.summary, report.readme = metadata.summary, metadata.description
    if host and not holds(metadata.requires_python, host.python):
        report.add("metadata", f"Requires-Python is {metadata.requires_python}, but this is Python {host.python}.")


def _tags(archive: Archive, report: WheelReport, host: Host | None) -> None:
    assert report.name is not None
    if (text := _text(archive, report, "WHEEL", code="tags")) is None:
        return
    inside: set[str] = set()
    try:
        headers = parse_headers(text)
        for line in dict.fromkeys(headers.get_all("Tag", ())):
            inside |= parse_tags(line) if len(inside) <= MAX_TAGS else set()
    except Unreadable as error:
        report.add("tags", f"WHEEL cannot be read: {error}.")
        return
    version = headers.get_all("Wheel-Version", [])
    if len(version) != 1 or not re.fullmatch(r"1\.[0-9]{1,3}", version[0]):
        report.add("metadata", f"WHEEL: Wheel-Version is {' and '.join(version) or 'missing'}; 1.0 is expected.")
    if len(headers.get_all("Root-Is-Purelib", [])) > 1:
        report.add("metadata", "WHEEL has Root-Is-Purelib twice.")
    tags = ", ".join(sorted(report.name.tags))
    if inside != report.name.tags:
        report.add("tags", f"The file name says {tags}, but WHEEL says {', '.join(sorted(inside)) or 'nothing'}.")
    if host and not report.name.tags & set(host.tags):
        report.add("tags", f"The wheel is for {tags}; this host accepts {', '.join(host.tags[:3])}, ….")


def _entry_points(archive: Archive, report: WheelReport) -> tuple[dict[str, str], list[str]]:
    """Find the drivers that a wheel declares, and the commands it would install."""
    if archive.find(f"{report.dist_info}/entry_points.txt") is None:
        return {}, []
    try:
        groups = read_entry_points(_text(archive, report, "entry_points.txt", code="metadata") or "")
    except Unreadable as error:
        report.add("ambiguous-metadata", f"entry_points.txt is ambiguous or unreadable: {error}.")
        return {}, []
    commands = [name for group in ("console_scripts", "gui_scripts") for name in groups.get(group, {})]
    return groups.get(GROUP, {}), commands


def _manifest(archive: Archive, report: WheelReport, drivers: dict[str, str], sidecar: bytes | None) -> None:
    if len(drivers) != 1:
        report.add("manifest", f"Expected one entry point in the group {GROUP}, found {len(drivers)}.")
        return
    [(name, value)] = drivers.items()
    package, _, file = value.partition(":")
    path = f"{package.strip().replace('.', '/')}/{file.strip()}"
    member = next((name for name, place in report.placed.items() if place == path), "")
    if (info := archive.find(member)) is None:
        report.add("manifest", f"The entry point {name} names {path}, which is not in the wheel.")
        return
    try:
        report.manifest_data = archive.read(info, limit=MAX_MANIFEST)
    except NotAWheel as error:
        report.add("manifest", f"{path} cannot be read: {error}.")
        return
    if sidecar is not None and sidecar != report.manifest_data:
        report.add("manifest", f"{path} differs from the copy published beside the wheel.")
    report.manifest, faults = check_manifest(report.manifest_data)
    report.faults += faults
    if report.manifest is not None:
        _promises(report, report.manifest, name)


def _promises(report: WheelReport, manifest: Manifest, name: str) -> None:
    """Compare the manifest with its wheel."""
    if manifest.id != name:
        report.add("manifest", f"$.id: the manifest says {manifest.id!r}, but the entry point says {name!r}.")
    module = manifest.entry.partition(":")[0].replace(".", "/")
    if not any(path.startswith((f"{module}.", f"{module}/__init__.")) for path in report.placed.values()):
        report.add("manifest", f"$.entry: {manifest.entry.partition(':')[0]} is not in the wheel.")
    required = [r for r in report.requires if project_name(r.name) == API]
    specifier = ",".join(dict.fromkeys(str(r.specifier) for r in required if str(r.specifier)))
    if not required or not _equal(specifier, manifest.host_api):
        says = f"{API}{specifier}" if required else "nothing"
        report.add("host-api", f"The manifest says {manifest.host_api}, but the wheel requires {says}.")
    available_projects = provided_projects() | {project_of(entry.file) for entry in manifest.dependencies}
    for requirement in report.requires:
        line = f"Requires-Dist: {str(requirement)[:200]}"
        if requirement.url:
            report.add("metadata", f"{line} names an address; wheels come only from the registry.")
        if project_name(requirement.name) not in available_projects:
            report.add("metadata", f"{line} is not among the manifest's dependencies.")


def _equal(text: str, other: str) -> bool:
    try:
        return parse_range(text) == parse_range(other)
    except Unreadable:
        return False


class _EntryPointsOnly(Distribution):
    """A distribution of which nothing but the entry points exists."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "entry_points.txt" else None

    def locate_file(self, path: Any) -> Any:
        raise NotImplementedError


def read_entry_points(text: str) -> dict[str, dict[str, str]]:
    """Read entry points as a mapping of groups to names to values.

    `importlib.metadata`, which pip uses, splits lines and groups differently from configparser, which others use.

    Raises:
        Unreadable: The text is too long, or the two readers disagree on it.
    """
    if len(text) > MAX_ENTRY_POINTS or any(len(line) > MAX_LINE for line in text.splitlines()):
        raise Unreadable(f"it has more than {MAX_ENTRY_POINTS} characters, or a line with more than {MAX_LINE}")
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    try:
        parser.read_string(text)
        groups = {group: dict(parser.items(group)) for group in parser.sections()}
        entries = [(entry.group, entry.name, entry.value) for entry in _EntryPointsOnly(text).entry_points]
    except configparser.Error as error:
        raise Unreadable(str(error).partition("\n")[0]) from error
    except (TypeError, ValueError) as error:
        raise Unreadable("importlib.metadata cannot read it") from error
    if unclear := next((group for group in groups if not _GROUP.fullmatch(group)), None):
        raise Unreadable(f"{unclear!r} is not a plain group name")
    if disputed := {*entries} ^ {(group, name, value) for group in groups for name, value in groups[group].items()}:
        group, name, _ = min(disputed)
        raise Unreadable(f"readers disagree on {name!r} in the group {group!r}")
    return groups


def check_members(report: WheelReport, *, native: bool) -> None:
    """Add every member to a report that a wheel may not contain, and every module that it may not replace.

    Args:
        report: Where each member would be installed, and the manifest of a driver.
        native: Whether native code is allowed.
    """
    own = f"{report.dist_info.removesuffix('.dist-info')}.data"
    expected_folder, machine_code = report.name and f"{report.name.stem}.data", {*report.machine_code}
    for name, path in report.placed.items():
        if path.lower().endswith(".pth"):
            report.add("pth-file", f"{name} would run code at interpreter start.")
        if _BYTECODE.search(path) or "__pycache__" in folded(path).split("/"):
            report.add("bytecode", f"{name} is bytecode, or is in __pycache__; a wheel may contain source only.")
        if (_NATIVE.search(path) or name in machine_code) and not native:
            report.add("native-code", f"{name} is native code without the permission native-code.")
        top, _, rest = name.partition("/")
        if folded(top).endswith(".data"):
            scheme, _, inner = rest.partition("/")
            if scheme == "scripts":
                report.add("scripts", f"A driver may not install the command {inner}.")
            elif scheme not in ("purelib", "platlib") or not inner or top != own or top != expected_folder:
                report.add("data-scheme", f"{name} would be installed outside the package.")
    _modules(report)


def _modules(report: WheelReport) -> None:
    tops = {path.partition("/")[0] for path in report.placed.values()}
    modules = {top.partition(".")[0] for top in tops if not top.endswith((".dist-info", ".data"))}
    owners = dict.fromkeys(sys.stdlib_module_names, "the standard library") | provided()
    for module in sorted(modules):
        if report.manifest is not None and module not in report.manifest.import_names:
            report.add("foreign-module", f"{module} is not among import_names.")
        if module in owners:
            report.add("shadows", f"{module} would replace a module of {owners[module]}.")
        elif module in _AT_START:
            report.add("shadows", f"{module} would be imported by every interpreter at its start.")
    for name in sorted(set(report.manifest.import_names) - modules if report.manifest else ()):
        report.add("manifest", f"$.import_names: {name} is not in the wheel.")
