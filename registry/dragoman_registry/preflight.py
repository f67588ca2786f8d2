"""Refusing hostile and broken wheels before anything is unpacked: every fault at once, under stable codes."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .claims import Report, check_claims
from .layout import NotAWheel, ambiguities, find_directory
from .validation import Fault
from .wheels import Archive, folded, installed_path, is_folder, is_plain, parse_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .index import WheelFile
    from .wheels import Host

_STRONG = ("sha256", "sha384", "sha512")
_DEVICES = frozenset({
    "con", "prn", "aux", "nul", "conin$", "conout$", *(f"{name}{n}" for name in ("com", "lpt") for n in "123456789¹²³"),
})  # fmt: skip
_LONGEST = 1024
"""Bytes of a path at most: what is deeper cannot be written everywhere, and takes long to compare."""
_MACHINE = (b"\x7fELF", b"MZ\x90\0", b"\xfe\xed\xfa", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""How programs and libraries of Linux, Windows and macOS begin, whatever they are called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Bounds against bombs.

    Attributes:
        members: Entries of the archive.
        size: Bytes it unpacks to.
        ratio: How many times a member may expand, once it is larger than `ratio_from` bytes.
        ratio_from: Small members expand a lot without doing harm.
        record: Bytes of RECORD.
    """

    members: int = 5_000
    size: int = 256 << 20
    ratio: int = 100
    ratio_from: int = 1 << 20
    record: int = 8 << 20


def inspect(
    path: Path,
    *,
    expected: WheelFile | None = None,
    sidecar: bytes | None = None,
    host: Host | None = None,
    driver: bool | None = None,
    native: bool = False,
    caps: Caps | None = None,
) -> Report:
    """Look at a wheel without unpacking it to disk or running anything of it.

    Args:
        path: The wheel, under its own name.
        expected: What the index says of it.
        sidecar: The `driver.json` beside it.
        host: The environment it must fit; None to publish it for any.
        driver: Whether it must be a driver or must not be; None to find out.
        native: Compiled members are permitted, of a dependency (a driver's own manifest says it for the driver).
        caps: Bounds.

    Returns:
        What it is, and every fault.
    """
    report, caps = Report(), caps or Caps()
    try:
        _digest(path, report, expected)
        report.name = parse_name(path.name)
        directory, unclear = find_directory(path)
        if directory.files > caps.members:  # said by the end of the file: the directory itself is not even read
            report.add("too-many-members", f"{directory.files} files in the archive, {caps.members} allowed.")
            return report
        unclear += ambiguities(path, directory)
        report.faults += [Fault("ambiguous-archive", f"{path.name} can be read in two ways: {why}.") for why in unclear]
        archive = Archive(path)
    except (NotAWheel, OSError) as error:
        report.add("not-a-wheel", f"{path.name} is not a readable wheel: {error}.")
        return report
    try:
        _archive(archive, report, caps)
        check_claims(archive, report, expected=expected, sidecar=sidecar, host=host, driver=driver, native=native)
    finally:
        archive.close()
    return report


def check(
    path: Path,
    *,
    expected: WheelFile | None = None,
    sidecar: bytes | None = None,
    host: Host | None = None,
    caps: Caps | None = None,
) -> list[Fault]:
    """Give every fault of a wheel, as `inspect` finds them."""
    return inspect(path, expected=expected, sidecar=sidecar, host=host, caps=caps).faults


def _digest(path: Path, report: Report, expected: WheelFile | None) -> None:
    with path.open("rb") as file:
        report.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        report.size = file.tell()
    if expected is not None and report.size != expected.size:
        report.add("length-mismatch", f"{path.name} is {report.size} bytes, {expected.size} were published.")
    if expected is not None and report.sha256 != expected.sha256:
        reason = f"was changed after publication: expected {expected.sha256}, got {report.sha256}."
        report.add("digest-mismatch", f"{path.name} {reason}")


def _archive(archive: Archive, report: Report, caps: Caps) -> None:
    if len(archive.entries) > caps.members:
        report.add("too-many-members", f"{len(archive.entries)} files in the archive, {caps.members} allowed.")
        return
    for info in archive.entries:
        report.faults += _path(info.orig_filename)
        if not (is_plain(info) or (is_folder(info) and not info.file_size)):
            report.add("not-regular", f"{info.orig_filename} is not a plain file.")
    report.faults += _collisions(archive)
    folders = {name.partition("/")[0] for name in archive.names if name.partition("/")[0].endswith(".dist-info")}
    if len(folders) == 1:
        report.dist_info = folders.pop()
    else:
        report.add("dist-info", f"Expected one .dist-info folder, found {len(folders)}.")
    report.faults += _contents(archive, report, caps)


def _path(name: str) -> Iterator[Fault]:
    parts = name.removesuffix("/").split("/")
    if name.startswith("/") or ".." in parts or "\\" in name or "\0" in name or re.match(r"[A-Za-z]:", name):
        yield Fault("path-escape", f"{name!r} would be written outside the plugin folder.")
    elif len(name.encode(errors="replace")) > _LONGEST or any(not _portable(part) for part in parts):
        shown = name if len(name) <= 200 else f"{name[:200]}…"
        yield Fault("path-reserved", f"{shown!r} is not a portable file name.")


def _portable(part: str) -> bool:
    if part in ("", ".") or part[-1] in ". " or ":" in part or len(part.encode(errors="replace")) > 255:
        return False
    if re.search(r"~[0-9]", part):  # as Windows writes the short form of another name
        return False
    return part.isprintable() and part.partition(".")[0].rstrip().lower() not in _DEVICES


def _collisions(archive: Archive) -> Iterator[Fault]:
    seen: dict[str, tuple[str, bool]] = {}
    for info in archive.entries:
        steps = installed_path(info.orig_filename[:_LONGEST]).rstrip("/").split("/")
        for depth in range(1, len(steps) + 1):
            place = ("/".join(steps[:depth]), depth == len(steps) and not is_folder(info))
            before = seen.setdefault(folded(place[0]), place)
            if before is not place and (before != place or place[1]):
                yield Fault("path-collision", f"{before[0]!r} and {place[0]!r} are the same file on some systems.")
                break


def _contents(archive: Archive, report: Report, caps: Caps) -> Iterator[Fault]:
    """Unpack every member in memory, bounded, and compare it with RECORD."""
    rows: dict[str, tuple[str, str]] | None = None
    record = f"{report.dist_info}/RECORD"
    if report.dist_info:
        rows, faults = _record(archive, record, caps)
        yield from faults
    total = 0
    for info in archive.members:
        name, size = info.orig_filename, 0
        algorithm, _, promised = (rows or {}).get(name, ("", ""))[0].partition("=")
        digest = hashlib.new(algorithm if algorithm in _STRONG else "sha256")
        try:
            for chunk in archive.chunks(info):
                if not size and chunk.startswith(_MACHINE):
                    report.machine_code.append(name)
                digest.update(chunk)
                size, total = size + len(chunk), total + len(chunk)
                if total > caps.size:
                    yield Fault("too-large", f"Unpacks to more than {caps.size} bytes.")
                    return
                if size > caps.ratio_from and size > caps.ratio * info.compress_size:
                    reason = f"expands more than {caps.ratio} times; refused as a decompression bomb."
                    yield Fault("ratio", f"{name} {reason}")
                    break
        except NotAWheel as error:
            yield Fault("not-a-wheel", f"It is not a readable wheel: {error}.")
            continue
        if rows is None or name == record or name not in rows:
            continue
        actual = urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
        if algorithm not in _STRONG:
            kind = algorithm or "no digest"
            yield Fault("record-weak-hash", f"{name} is recorded with {kind}; SHA-256 or better is required.")
        elif promised != actual or rows[name][1] not in ("", str(size)):
            yield Fault("record-mismatch", f"{name} does not match RECORD.")


def _record(archive: Archive, record: str, caps: Caps) -> tuple[dict[str, tuple[str, str]] | None, list[Fault]]:
    """Read RECORD, and compare its rows with the archive one to one."""
    info, rows = archive.find(record), dict[str, tuple[str, str]]()
    faults = []
    try:
        text = archive.read(info, limit=caps.record).decode() if info else ""
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
