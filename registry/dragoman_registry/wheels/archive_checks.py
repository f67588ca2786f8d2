"""Checks wheels before unpacking, and reports every fault of a hostile or broken one under stable codes."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
from base64 import urlsafe_b64encode
from functools import cache
from typing import TYPE_CHECKING, Any

from dragoman_api.errors import RegistryError
from dragoman_registry.files import open_plain, unfit_name
from dragoman_registry.names import LISTING
from dragoman_registry.validation import Fault, Unreadable

from .archive import Archive, NotAWheel, ambiguities, find_directory, folded, installed_path, is_folder, is_plain
from .metadata_checks import WheelReport, check_claims
from .packaging_parsers import parse_wheel_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dragoman_registry.isolation import Apart

    from .host_environment import Host
    from .wheel_file import WheelFile

MAX_MEMBERS = 5_000
"""Maximum entries of an archive."""
MAX_WHEEL = 256 << 20
"""Maximum bytes of a wheel, packed and unpacked."""
MAX_RATIO = 100
"""Maximum expansion of a member larger than `RATIO_FROM` bytes, against zip bombs."""
RATIO_FROM = 1 << 20
"""Size in bytes up to which high expansion is harmless."""
MAX_RECORD = 8 << 20
"""Maximum bytes of RECORD."""

_SHORT_FORM = re.compile(r"~[0-9]")  # Windows' short form of another name
_STRONG = ("sha256", "sha384", "sha512")
_LONGEST = 1024
"""Maximum bytes of a path: some systems cannot write longer ones, and comparing them is slow."""
_DEEPEST = 40
"""Maximum depth of folders: each is compared with those of every other path."""
_HEAD = 8
_MACHINE = (
    b"\x7fELF",
    b"MZ",
    *(
        sign
        for n in (b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbf")
        for sign in (n, n[::-1])
    ),
    b"!<arch>\n",
    b"!<thin>\n",
    b"\0asm",
)
"""First bytes of programs and libraries for Linux, Windows and macOS, universal ones included, of archives of them, of
Java classes (which begin like macOS's universal files), and of WebAssembly."""
_METADATA = (".dist-info", ".egg-info")


def inspect(
    path: Path,
    *,
    expected: WheelFile | None = None,
    sidecar: bytes | None = None,
    host: Host | None = None,
    driver: bool | None = None,
    native: bool = False,
) -> WheelReport:
    """Inspect a wheel without unpacking it to disk or running its code.

    Args:
        path: The wheel, under its own name.
        expected: Its entry in the index.
        sidecar: The `driver.json` beside it.
        host: The environment it must fit; None to publish it for any.
        driver: Whether it must or must not be a driver; None to accept either.
        native: Whether a dependency may have compiled members (a driver's own manifest decides for the driver).

    Returns:
        The report, with every fault.
    """
    report = WheelReport()
    try:
        if not _digest(path, report, expected):
            return report
        report.name = parse_wheel_name(path.name)
        directory, unclear = find_directory(path)
        if directory.files > MAX_MEMBERS:  # from the end record, without reading the directory
            report.add("too-many-members", f"The archive has {directory.files} files; {MAX_MEMBERS} are allowed.")
            return report
        unclear += ambiguities(path, directory)
        report.faults += [Fault("ambiguous-archive", f"{path.name} can be read in two ways: {why}.") for why in unclear]
        archive = Archive(path)
    except (NotAWheel, Unreadable, OSError) as error:
        report.add("not-a-wheel", f"{path.name} is not a readable wheel: {error}.")
        return report
    try:
        _archive(archive, report)
        check_claims(archive, report, expected=expected, sidecar=sidecar, host=host, driver=driver, native=native)
    except Exception as error:  # noqa: BLE001 - any failure is a fault of the untrusted wheel
        report.add("not-a-wheel", f"{path.name} cannot be checked: {type(error).__name__}: {str(error)[:200]}.")
    finally:
        archive.close()
    return report


def inspect_apart(apart: Apart, path: Path, **options: Any) -> WheelReport:
    """Inspect a wheel in a separate process; if that has to be stopped, report it as a fault of the wheel."""
    try:
        return apart.call(inspect, path, **options)
    except RegistryError as error:
        return WheelReport(faults=[Fault(error.code, f"The check was stopped: {error.message}.")])


def _digest(path: Path, report: WheelReport, expected: WheelFile | None) -> bool:
    """Compare size and digest with the index; return whether the file is small enough to continue."""
    with open_plain(path) as file:
        report.size = os.fstat(file.fileno()).st_size
        if report.size > MAX_WHEEL:
            report.add("too-large", f"{path.name} has {report.size} bytes; {MAX_WHEEL} are allowed.")
            return False
        report.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if expected is not None and report.size != expected.size:
        report.add("length-mismatch", f"{path.name} has {report.size} bytes; {expected.size} were published.")
    if expected is not None and report.sha256 != expected.sha256:
        reason = f"was changed after publication: expected {expected.sha256}, got {report.sha256}."
        report.add("digest-mismatch", f"{path.name} {reason}")
    return True


def _archive(archive: Archive, report: WheelReport) -> None:
    if len(archive.entries) > MAX_MEMBERS:
        report.add("too-many-members", f"The archive has {len(archive.entries)} files; {MAX_MEMBERS} are allowed.")
        return
    report.placed = {info.orig_filename: installed_path(info.orig_filename) for info in archive.members}
    for info in archive.entries:
        report.faults += _path(info.orig_filename)
        if not (is_plain(info) or (is_folder(info) and not info.file_size)):
            report.add("not-regular", f"{info.orig_filename} is not a plain file.")
    report.faults += _collisions(archive)
    # importlib.metadata takes these for distributions, regardless of case.
    tops = {installed_path(name).partition("/")[0] for name in archive.names}
    folders = sorted(top for top in tops if folded(top).endswith(_METADATA) or folded(top) == "egg-info")
    own = {name.partition("/")[0] for name in archive.names if name.partition("/")[0].endswith(".dist-info")}
    if len(own) == 1:
        report.dist_info = next(iter(own))
    if folders != [report.dist_info]:
        report.add("dist-info", f"Expected one .dist-info folder, found {len(folders)}.")
    report.faults += _contents(archive, report)


def _path(name: str) -> Iterator[Fault]:
    steps, short_name = name.removesuffix("/").split("/"), name if len(name) <= 200 else f"{name[:200]}…"
    if name.startswith("/") or ".." in steps or "\\" in name or "\0" in name or re.match(r"[A-Za-z]:", name):
        yield Fault("path-escape", f"{short_name!r} would be written outside the plugin folder.")
    elif folded(installed_path(name).partition("/")[0]) == LISTING:
        yield Fault("path-reserved", f"{short_name!r} would be installed as {LISTING}, which the store writes itself.")
    elif len(name) > _LONGEST or len(name.encode(errors="replace")) > _LONGEST or len(steps) > _DEEPEST:
        yield Fault("path-reserved", f"{short_name!r} is too long or too deep for some systems.")
    elif any(unfit_name(step) or _SHORT_FORM.search(step) for step in steps):
        yield Fault("path-reserved", f"{short_name!r} is not a portable file name.")


def _collisions(archive: Archive) -> Iterator[Fault]:
    seen: dict[str, tuple[str, bool]] = {}
    fold = cache(folded)
    for info in archive.entries:
        steps, key = installed_path(info.orig_filename[:_LONGEST]).rstrip("/").split("/")[:_DEEPEST], ""
        for depth, step in enumerate(steps, 1):
            key = f"{key}/{fold(step)}"
            place = ("/".join(steps[:depth]), depth == len(steps) and not is_folder(info))
            before = seen.setdefault(key, place)
            if before is not place and (before != place or place[1]):
                yield Fault("path-collision", f"{before[0]!r} and {place[0]!r} are the same file on some systems.")
                break


def _contents(archive: Archive, report: WheelReport) -> Iterator[Fault]:
    """Unpack every member in memory, bounded, and compare it with RECORD."""
    rows: dict[str, tuple[str, str]] | None = None
    record = f"{report.dist_info}/RECORD"
    if report.dist_info:
        rows, faults = _record(archive, record)
        yield from faults
    total = 0
    for info in archive.members:
        name, size, head = info.orig_filename, 0, b""
        algorithm, _, promised = (rows or {}).get(name, ("", ""))[0].partition("=")
        digest = hashlib.new(algorithm if algorithm in _STRONG else "sha256")
        try:
            for chunk in archive.chunks(info):
                head += chunk[: _HEAD - len(head)]
                digest.update(chunk)
                size, total = size + len(chunk), total + len(chunk)
                if total > MAX_WHEEL:
                    yield Fault("too-large", f"The wheel unpacks to more than {MAX_WHEEL} bytes.")
                    return
                if size > RATIO_FROM and size > MAX_RATIO * info.compress_size:
                    reason = f"expands to more than {MAX_RATIO} times its size; refused as a decompression bomb."
                    yield Fault("ratio", f"{name} {reason}")
                    break
        except NotAWheel as error:
            yield Fault("not-a-wheel", f"The wheel cannot be read: {error}.")
            continue
        if head.startswith(_MACHINE):
            report.machine_code.append(name)
        if rows is None or name == record or name not in rows:
            continue
        actual = urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
        if algorithm not in _STRONG:
            kind = algorithm or "no digest"
            yield Fault("record-weak-hash", f"{name} is recorded with {kind}; SHA-256 or better is required.")
        elif promised != actual or rows[name][1] not in ("", str(size)):
            yield Fault("record-mismatch", f"{name} does not match RECORD.")


def _record(archive: Archive, record: str) -> tuple[dict[str, tuple[str, str]] | None, list[Fault]]:
    """Read RECORD, and compare its rows with the archive one to one."""
    info, rows = archive.find(record), dict[str, tuple[str, str]]()
    faults = []
    try:
        text = archive.read(info, limit=MAX_RECORD).decode() if info else ""
        for name, digest, size in csv.reader(io.StringIO(text), strict=True):
            if name in rows:
                faults.append(Fault("record-extra", f"RECORD lists {name} twice."))
            rows[name] = (digest, size)
    except (NotAWheel, ValueError, csv.Error):
        rows.clear()
    if not rows:
        return None, [Fault("record-missing", "The wheel has no readable RECORD.")]
    names = {member.orig_filename for member in archive.members}
    extra = sorted(rows.keys() - names)
    faults += [Fault("record-extra", f"RECORD lists {name}, which is not in the archive.") for name in extra]
    signed = {f"{record}.jws", f"{record}.p7s"}  # deprecated signatures, which RECORD cannot cover
    unlisted = (names - rows.keys()) | (names & signed)
    faults += [Fault("record-unlisted", f"{name} is not listed in RECORD.") for name in sorted(unlisted)]
    return rows, faults
