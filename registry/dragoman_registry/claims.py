"""What a wheel says of itself: names, versions, tags, requirements, modules, manifest; and whether it all agrees."""

from __future__ import annotations

import configparser
import hashlib
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from .index import project_of
from .manifest import MAX_MANIFEST, Manifest
from .validation import Fault
from .vetting import check_manifest
from .wheels import Archive, NotAWheel, WheelName, installed_path, provided

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .index import WheelFile
    from .wheels import Host

API = "dragoman-api"
GROUP = "dragoman.drivers"
_WRITTEN = ("INSTALLER", "REQUESTED", "direct_url.json")
_NATIVE = re.compile(r"\.(so(\.[0-9]+)*|pyd|dll|dylib|exe)$", re.IGNORECASE)
_BYTECODE = re.compile(r"\.py[co]$", re.IGNORECASE)
_OF_EXTRA = re.compile(r"""(?:(?! or ).)*(?<!\w)extra == "[^"]+"(?:(?! or ).)*""").fullmatch
_AT_START = dict.fromkeys(("sitecustomize", "usercustomize"), "the start of the interpreter")


@dataclass(slots=True, kw_only=True)
class Report:
    """What a preflight found.

    Attributes:
        faults: Everything wrong; empty for a wheel that may be unpacked.
        size: Bytes of the file.
        sha256: Of the file.
        name: What the file name says.
        dist_info: The one folder with metadata.
        manifest: Of a driver, None for any other wheel.
        manifest_data: The bytes of `driver.json`.
        metadata: The bytes of METADATA.
        requires_python: Range of Python versions, empty for any.
        requires: Requirements that hold without an extra.
        summary: From METADATA.
        readme: The long description from METADATA.
        machine_code: Members that begin as programs and libraries do.
    """

    faults: list[Fault] = field(default_factory=list)
    size: int = 0
    sha256: str = ""
    name: WheelName | None = None
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
        """Note a fault."""
        self.faults.append(Fault(code, reason))


def check_claims(
    archive: Archive,
    report: Report,
    *,
    expected: WheelFile | None,
    sidecar: bytes | None,
    host: Host | None,
    driver: bool | None,
    native: bool,
) -> None:
    """Add to a report what the wheel says of itself, and every contradiction in it."""
    drivers: dict[str, str] = {}
    if report.dist_info:
        _identity(report)
        for name in sorted({f"{report.dist_info}/{name}" for name in _WRITTEN} & set(archive.names)):
            report.add("dist-info", f"{name} is for the installer to write.")
        drivers, commands = _entry_points(archive, report)
        _metadata(archive, report, expected, host, strict=bool(drivers))
        _tags(archive, report, host)
        if driver or (driver is None and drivers):
            for command in commands:
                report.add("scripts", f"A driver may not install the command {command}.")
            _manifest(archive, report, drivers, sidecar)
        elif drivers:
            report.add("manifest", "It is a driver, and a driver is no dependency of another.")
    if drivers:
        native = report.manifest is not None and "native-code" in report.manifest.permissions
    _members(archive, report, native=native)


def _text(archive: Archive, report: Report, name: str, *, code: str) -> str | None:
    info = archive.find(f"{report.dist_info}/{name}")
    try:
        if info is not None:
            return archive.read(info).decode()
        report.add(code, f"{name} is missing.")
    except (NotAWheel, ValueError) as error:
        report.add(code, f"{name} cannot be read: {error}.")
    return None


def _identity(report: Report) -> None:
    assert report.name is not None
    if not report.name.canonical:
        wanted = f"{report.name.project.replace('-', '_')}-{report.name.version}-…"
        report.add("name-mismatch", f"The file name is not canonical: {wanted!r} is expected.")
    _same(report, "the .dist-info folder", *report.dist_info.removesuffix(".dist-info").rpartition("-")[::2])


def _same(report: Report, where: str, project: str, version: str) -> None:
    """Compare a name and version found somewhere with those of the file name."""
    from packaging.utils import canonicalize_name
    from packaging.version import InvalidVersion, Version

    assert report.name is not None
    if canonicalize_name(project) != report.name.project:
        report.add("name-mismatch", f"The file name says {report.name.project}, {where} says {project}.")
    try:
        matches = Version(version) == Version(report.name.version)
    except InvalidVersion:
        matches = False
    if not matches:
        report.add("version-mismatch", f"The file name says {report.name.version}, {where} says {version}.")


def _metadata(archive: Archive, report: Report, expected: WheelFile | None, host: Host | None, *, strict: bool) -> None:
    """Read METADATA; of a library only what is used has to be in order, since many builders wrote it loosely."""
    from packaging.metadata import Metadata, parse_email
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    if (text := _text(archive, report, "METADATA", code="metadata")) is None:
        return
    report.metadata = text.encode()
    if expected and expected.metadata_sha256 not in ("", hashlib.sha256(report.metadata).hexdigest()):
        report.add("metadata", "METADATA differs from the one published beside the wheel.")
    try:
        found = Metadata.from_email(text, validate=strict)
    except ExceptionGroup as group:
        for error in group.exceptions:
            report.add("metadata", f"METADATA, {getattr(error, 'field', 'a field')}: {error}.")
        found = Metadata.from_email(text, validate=False)
    if not strict and (unread := sorted({"name", "version", "requires-python"} & parse_email(text)[1].keys())):
        report.add("metadata", f"METADATA says more than one thing as {', '.join(unread)}.")
    try:
        _same(report, "METADATA", str(found.name), str(found.version))
        report.requires_python = str(found.requires_python or "")
        # A requirement of an extra is none of a plain installation; any other counts on every platform.
        report.requires = [r for r in found.requires_dist or () if not _OF_EXTRA(str(r.marker or ""))]
        report.summary, report.readme = found.summary or "", found.description or ""
    except (ExceptionGroup, ValueError) as error:
        report.add("metadata", f"METADATA: {error}.")
    try:
        fits = host is None or SpecifierSet(report.requires_python).contains(host.python, prereleases=True)
    except InvalidSpecifier:
        return
    if host and not fits:
        report.add("metadata", f"Requires-Python is {report.requires_python}, this is Python {host.python}.")


def _tags(archive: Archive, report: Report, host: Host | None) -> None:
    from packaging.tags import parse_tag

    assert report.name is not None
    if (text := _text(archive, report, "WHEEL", code="tags")) is None:
        return
    version = re.findall(r"^Wheel-Version: *(.*?)\s*$", text, re.MULTILINE)
    if len(version) != 1 or not re.fullmatch(r"1\.[0-9]+", version[0]):
        report.add("metadata", f"WHEEL: Wheel-Version is {' and '.join(version) or 'missing'}, 1.0 is understood.")
    lines = dict.fromkeys(line.partition(": ")[2].strip() for line in text.splitlines() if line.startswith("Tag: "))
    try:
        inside = {str(tag) for line in lines for tag in parse_tag(line)}
    except ValueError:
        inside = set()
    named = ", ".join(sorted(report.name.tags))
    if inside != report.name.tags:
        report.add("tags", f"The file name says {named}, WHEEL says {', '.join(sorted(inside)) or 'nothing'}.")
    if host and not report.name.tags & set(host.tags):
        report.add("tags", f"Built for {named}; this host accepts {', '.join(host.tags[:3])}, ….")


def _entry_points(archive: Archive, report: Report) -> tuple[dict[str, str], list[str]]:
    """Find the drivers a wheel announces, and the commands it would install."""
    if archive.find(f"{report.dist_info}/entry_points.txt") is None:
        return {}, []
    text = _text(archive, report, "entry_points.txt", code="metadata") or ""
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    try:
        parser.read_string(text)
    except configparser.Error as error:
        report.add("metadata", f"entry_points.txt cannot be read: {error}.")
        return {}, []
    groups = [group for group in ("console_scripts", "gui_scripts") if parser.has_section(group)]
    commands = [name for group in groups for name in parser.options(group)]
    return dict(parser.items(GROUP)) if parser.has_section(GROUP) else {}, commands


def _manifest(archive: Archive, report: Report, drivers: dict[str, str], sidecar: bytes | None) -> None:
    if len(drivers) != 1:
        report.add("manifest", f"Expected one entry point in the group {GROUP}, found {len(drivers)}.")
        return
    [(name, value)] = drivers.items()
    package, _, file = value.partition(":")
    path = f"{package.strip().replace('.', '/')}/{file.strip()}"
    info = next((info for info in archive.members if installed_path(info.orig_filename) == path), None)
    if info is None:
        report.add("manifest", f"The entry point {name} names {path}, which is not in the wheel.")
        return
    try:
        report.manifest_data = archive.read(info, limit=MAX_MANIFEST)
    except NotAWheel as error:
        report.add("manifest", f"{path} cannot be read: {error}.")
        return
    if sidecar is not None and sidecar != report.manifest_data:
        report.add("manifest", f"{path} differs from the one published beside the wheel.")
    report.manifest, faults = check_manifest(report.manifest_data)
    report.faults += faults
    if report.manifest is not None:
        _promises(archive, report, report.manifest, name)


def _promises(archive: Archive, report: Report, manifest: Manifest, name: str) -> None:
    """Compare the manifest with the wheel it lies in."""
    from packaging.specifiers import SpecifierSet
    from packaging.utils import canonicalize_name

    if manifest.id != name:
        report.add("manifest", f"$.id: the manifest says {manifest.id!r}, the entry point {name!r}.")
    paths = {installed_path(info.orig_filename) for info in archive.members}
    module = manifest.entry.partition(":")[0].replace(".", "/")
    if not any(path.startswith((f"{module}.", f"{module}/__init__.")) for path in paths):
        report.add("manifest", f"$.entry: {manifest.entry.partition(':')[0]} is not in the wheel.")
    required = [r for r in report.requires if canonicalize_name(r.name) == API]
    wanted = SpecifierSet(",".join(str(r.specifier) for r in required if str(r.specifier)))
    if not required or wanted != SpecifierSet(manifest.host_api):
        says = f"{API}{wanted}" if required else "nothing"
        report.add("host-api", f"The manifest says {manifest.host_api}, the wheel requires {says}.")
    there = set(provided().values()) - {"dragoman"} | {API} | {project_of(d.file) for d in manifest.dependencies}
    for requirement in report.requires:
        if requirement.url:
            report.add("metadata", f"Requires-Dist: {requirement} names an address; the registry is the only one.")
        if canonicalize_name(requirement.name) not in there:
            report.add("metadata", f"Requires-Dist: {requirement} is not among the manifest's dependencies.")


def _members(archive: Archive, report: Report, *, native: bool) -> None:
    own = f"{report.dist_info.removesuffix('.dist-info')}.data"
    for info in archive.members:
        name = info.orig_filename
        if name.lower().endswith(".pth"):
            report.add("pth-file", f"{name} would run code at interpreter start.")
        if _BYTECODE.search(name):
            report.add("bytecode", f"{name} is bytecode, which nobody can read, and may run in place of its source.")
        if (_NATIVE.search(name) or name in report.machine_code) and not native:
            report.add("native-code", f"{name} is native code; the manifest does not ask for it.")
        top, _, rest = name.partition("/")
        if top.endswith(".data") and rest:
            scheme, _, inner = rest.partition("/")
            if scheme == "scripts":
                report.add("scripts", f"A driver may not install the command {inner}.")
            elif scheme not in ("purelib", "platlib") or not inner or top != own:
                report.add("data-scheme", f"{name} would be installed outside the package.")
    _modules(report, (installed_path(info.orig_filename) for info in archive.members))


def _modules(report: Report, paths: Iterable[str]) -> None:
    tops = {path.partition("/")[0] for path in paths}
    modules = {top.partition(".")[0] for top in tops if not top.endswith((".dist-info", ".data"))}
    owners = dict.fromkeys(sys.stdlib_module_names, "the standard library") | _AT_START | provided()
    for module in sorted(modules):
        if report.manifest is not None and module not in report.manifest.import_names:
            report.add("foreign-module", f"{module} is not declared as an import name.")
        if module in owners:
            report.add("shadows", f"{module} would replace a module of {owners[module]}.")
    for name in sorted(set(report.manifest.import_names) - modules if report.manifest else ()):
        report.add("manifest", f"$.import_names: {name} is not in the wheel.")
