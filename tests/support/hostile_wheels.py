"""Wheels that must be refused: one per fault of the wheel checks, as real files, and one with many faults at once."""

from __future__ import annotations

import hashlib
import stat
import struct
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from dragoman_registry.wheels.host_environment import Host
from dragoman_registry.wheels.wheel_file import WheelFile
from wheelhouse import Driver, Wheel, hashed, manifest, zip_entry

PACKAGE = "dragoman_demo"
BEGIN, END = "<!-- made by tests/support/hostile_wheels.py -->", "<!-- end of it -->"
FIXED = Host(api="1.0.0", python="3.11.9", tags=("cp311-abi3-linux", "py3-none-any"))
"""A host that is the same everywhere, so that what is said is too."""


def _member(name: str, data: bytes = b"x") -> Callable[[Path], Path]:
    """Build a driver with one more member, properly recorded."""
    return lambda folder: Driver(files={name: data}).write(folder)


def _metadata(old: bytes, new: bytes) -> Callable[[Path], Path]:
    def change(members: dict[str, bytes]) -> None:
        members[f"{Driver().dist_info}/METADATA"] = Driver().metadata().replace(old, new)

    return lambda folder: Driver().write(folder, members=change)


def _rows(change: Callable[[list[list[str]]], None]) -> Callable[[Path], Path]:
    return lambda folder: Driver().write(folder, record=change)


def _manifest(**changes: object) -> Callable[[Path], Path]:
    return lambda folder: Driver(**changes).write(folder)


def _form(**changes: dict[str, object]) -> Callable[[Path], Path]:
    """Change fields of the form, by name."""
    fields = [{**each, **changes.get(each["name"], {})} for each in manifest()["form"]]
    return _manifest(form=fields)


def _field(name: str, kind: str, **more: object) -> Callable[[Path], Path]:
    """Add a field to the form."""
    return _manifest(form=[*manifest()["form"], {"name": name, "label": name, "kind": kind, **more}])


def _mode(mode: int) -> Callable[[Path], Path]:
    def change(info: zipfile.ZipInfo) -> None:
        if info.filename.endswith("driver.py"):
            info.external_attr = mode << 16

    return lambda folder: Driver().write(folder, entry=change)


def _spoiled(change: Callable[[bytearray], None]) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        path = Driver().write(folder)
        data = bytearray(path.read_bytes())
        change(data)
        path.write_bytes(data)
        return path

    return build


def _cut(data: bytearray) -> None:
    del data[len(data) // 2 :]


def _flip(data: bytearray) -> None:
    data[data.index(b"driver.py") + 40] ^= 0xFF


def _encrypt(data: bytearray) -> None:
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1


def _packed_otherwise(folder: Path) -> Path:
    def change(info: zipfile.ZipInfo) -> None:
        info.compress_type = 14  # LZMA, whose output zipfile does not bound

    return Driver().write(folder, entry=change)


def _bomb(folder: Path) -> Path:
    return Driver(files={f"{PACKAGE}/zeros.bin": bytes(50 << 20)}).write(folder)


def _too_large(folder: Path) -> Path:
    block = bytes(1 << 20)  # small enough that no member is a bomb by itself
    return Driver(files={f"{PACKAGE}/{n}.bin": block for n in range(257)}).write(folder)


def _many(folder: Path) -> Path:
    return Driver(files={f"{PACKAGE}/m{n}.py": b"" for n in range(5_001)}).write(folder)


def _nul(folder: Path) -> Path:
    """Write a NUL into the middle of a name, in both places where the archive has it."""
    path = Driver(files={f"{PACKAGE}/safeZ.py": b""}).write(folder)
    path.write_bytes(path.read_bytes().replace(b"safeZ.py", b"safe\0.py"))
    return path


def _listed_twice(folder: Path) -> Path:
    def again(archive: zipfile.ZipFile) -> None:
        data = archive.read(f"{PACKAGE}/driver.py")
        info = zip_entry(f"{PACKAGE}/driver.pZ")
        archive.writestr(info, data)

    path = Driver().write(folder, after=again)
    path.write_bytes(path.read_bytes().replace(b"driver.pZ", b"driver.py"))
    return path


def _unmarked(path: Path) -> Path:
    """Take the mark off names that says they are UTF-8."""
    data = bytearray(path.read_bytes())
    for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        found = data.find(mark)
        while found >= 0:
            data[found + at + 1] &= ~0x08
            found = data.find(mark, found + 1)
    path.write_bytes(data)
    return path


def _extra_zip_entry(name: str) -> Callable[[Path], Path]:
    return lambda folder: Driver().write(folder, after=lambda archive: archive.writestr(zip_entry(name), b"x"))


def _weak(rows: list[list[str]]) -> None:
    rows[0][1] = hashed(b"whatever", "md5")[0]


def _unhashed(rows: list[list[str]]) -> None:
    rows[0][1] = ""


def _wrong(rows: list[list[str]]) -> None:
    rows[0][1] = hashed(b"something else")[0]


def _wrong_size(rows: list[list[str]]) -> None:
    rows[0][2] = "1"


def _ghost(rows: list[list[str]]) -> None:
    rows.append(["../../etc/passwd", *hashed(b"")])


def _twice(rows: list[list[str]]) -> None:
    rows.append(rows[0])


def _gone(rows: list[list[str]]) -> None:
    del rows[0]


def _garbled(rows: list[list[str]]) -> None:
    rows.append(["one", "column too", "many", "here"])


def _without(name: str) -> Callable[[Path], Path]:
    return lambda folder: Driver().write(folder, members=lambda members: members.pop(f"{Driver().dist_info}/{name}"))


def _named(file: str) -> Callable[[Path], Path]:
    return lambda folder: Driver().write(folder, file=file)


def _tagged(folder: Path) -> Path:
    return Driver().write(folder, file="dragoman_demo-1.0.0-cp27-none-win32.whl")


def _foreign_platform(folder: Path) -> Path:
    return Driver(tag="cp27-cp27m-win32").write(folder)


def _two_dist_infos(folder: Path) -> Path:
    return Driver(files={"other-1.0.dist-info/METADATA": b""}).write(folder)


def _scripts(folder: Path) -> Path:
    driver = Driver()
    driver.entry_points += "[console_scripts]\nls = dragoman_demo.driver:Driver\n"
    return driver.write(folder)


def _two_drivers(folder: Path) -> Path:
    driver = Driver()
    driver.entry_points += "second = dragoman_demo:driver.json\n"
    return driver.write(folder)


def _no_file(folder: Path) -> Path:
    driver = Driver()
    driver.entry_points = "[dragoman.drivers]\ndemo = dragoman_demo:nowhere.json\n"
    return driver.write(folder)


def _requires(*requirements: str) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        driver = Driver()
        driver.requires = list(requirements)
        return driver.write(folder)

    return build


def _python(folder: Path) -> Path:
    driver = Driver()
    driver.requires_python = ">=4"
    return driver.write(folder)


def _renamed_inside(data: bytearray) -> None:
    """Return a file one name in the directory and another in the header before its data."""
    at = data.rindex(f"{PACKAGE}/driver.py".encode())
    data[at : at + len(PACKAGE)] = b"dragoman_demi"


def _resized_inside(data: bytearray) -> None:
    at = data.index(b"PK\3\4")
    data[at + 22 : at + 26] = (1).to_bytes(4, "little")


def _counted(count: int) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        data[-14:-10] = count.to_bytes(2, "little") * 2

    return change


def _boasting(data: bytearray) -> None:
    data[-10:-6] = b"\xfe\xff\xff\xff"


def _hidden(data: bytearray) -> None:
    """Put bytes between the files and the directory."""
    more, at = b"nobody lists me", data.index(b"PK\1\2")
    data[-6:-2] = (at + len(more)).to_bytes(4, "little")
    data[at:at] = more


def _behind(data: bytearray) -> None:
    data += b"and more"


def _before(data: bytearray) -> None:
    data[:0] = b"#!/bin/sh\nexit\n"


def _commented(folder: Path) -> Path:
    def comment(archive: zipfile.ZipFile) -> None:
        archive.comment = b"PK\5\6" + bytes(18)

    return Driver().write(folder, after=comment)


def _two_archives(folder: Path) -> Path:
    path = Driver().write(folder)
    other = Driver(code="import os\n").write(folder / "other").read_bytes()
    path.write_bytes(other + path.read_bytes())
    return path


def _told_again(kind: int, data: bytes) -> Callable[[Path], Path]:
    def change(info: zipfile.ZipInfo) -> None:
        if info.filename.endswith("driver.py"):
            info.extra = struct.pack("<2H", kind, len(data)) + data

    return lambda folder: Driver().write(folder, entry=change)


def _one_for_two(folder: Path) -> Path:
    """List one stretch of bytes as two files, as the densest bombs do."""
    path = Driver().write(folder)
    data = bytearray(path.read_bytes())
    at, end = data.index(b"PK\1\2"), data.rindex(b"PK\5\6")
    entry = bytes(data[at : data.index(b"PK\1\2", at + 4)])
    data[end:end] = entry
    count, size = struct.unpack("<HL", data[-12:-6])
    data[-14:-6] = struct.pack("<2HL", count + 1, count + 1, size + len(entry))
    path.write_bytes(data)
    return path


def _longer_than_said(folder: Path) -> Path:
    """Show readers of the directory the first half of a file, readers of the stream all of it; RECORD fits the half."""
    half, whole, name = b"harmless = 1\n" * 9, b"harmless = 1\n" * 9 + b"import evil\n" * 9, f"{PACKAGE}/more.py"

    def record(rows: list[list[str]]) -> None:
        next(row for row in rows if row[0] == name)[1:] = hashed(half)

    path = Driver(files={name: whole}).write(folder, record=record)
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(name)
    told = struct.pack("<3L", info.CRC, info.compress_size, len(whole))
    said = struct.pack("<3L", zlib.crc32(half), info.compress_size, len(half))
    path.write_bytes(path.read_bytes().replace(told, said))
    return path


def _full_folder(folder: Path) -> Path:
    def more(archive: zipfile.ZipFile) -> None:
        info = zip_entry(f"{PACKAGE}/more/")
        info.external_attr = (stat.S_IFDIR | 0o755) << 16
        with archive.open(info, "w") as file:
            file.write(b"nobody counts me")

    return Driver().write(folder, after=more)


def _row(name: str) -> Callable[[Path], Path]:
    return _rows(lambda rows: rows.append([name, *hashed(b"")]))


def _open_quote(folder: Path) -> Path:
    """End RECORD inside a quoted name."""
    path = Driver().write(folder)
    with zipfile.ZipFile(path) as archive:
        names = {name: archive.read(name) for name in archive.namelist()}
    names[f"{Driver().dist_info}/RECORD"] += b'"dragoman_demo/driver.py,'
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in names.items():
            archive.writestr(zip_entry(name), data)
    return path


def _text(name: str, old: bytes, new: bytes) -> Callable[[Path], Path]:
    """Change a file of the dist-info folder, and RECORD with it."""

    def change(members: dict[str, bytes]) -> None:
        name_there = f"{Driver().dist_info}/{name}"
        assert old in members[name_there]
        members[name_there] = members[name_there].replace(old, new)

    return lambda folder: Driver().write(folder, members=change)


def _document(data: bytes) -> Callable[[Path], Path]:
    name = f"{PACKAGE}/driver.json"
    return lambda folder: Driver().write(folder, members=lambda members: members.update({name: data}))


def _key_twice(folder: Path) -> Path:
    def change(members: dict[str, bytes]) -> None:
        name = f"{PACKAGE}/driver.json"
        members[name] = b'{"permissions": ["native-code"],' + members[name].lstrip(b"{")

    return Driver().write(folder, members=change)


def _standard_library(folder: Path) -> Path:
    driver = Driver(files={"json/__init__.py": b""}, import_names=[PACKAGE, "json"])
    driver.entry_points = "[dragoman.drivers]\ndemo = json:driver.json\n"
    driver.manifest_path = "json/driver.json"
    return driver.write(folder)


def _windowed(folder: Path) -> Path:
    driver = Driver()
    driver.entry_points += "[gui_scripts]\nnotepad = dragoman_demo.driver:Driver\n"
    return driver.write(folder)


def _also(headers: str) -> Callable[[Path], Path]:
    """Add headers to METADATA."""
    return _metadata(b"Summary: ", headers.encode() + b"\nSummary: ")


def _commands(text: str) -> Callable[[Path], Path]:
    """Add to the entry points, in words that not every installer reads alike."""

    def build(folder: Path) -> Path:
        driver = Driver()
        driver.entry_points += text
        return driver.write(folder)

    return build


def _indented(folder: Path) -> Path:
    driver = Driver()
    driver.entry_points = "[other]\na = b\n  [console_scripts]\n  ls = evil:main\n" + driver.entry_points
    return driver.write(folder)


def _trickled(folder: Path) -> Path:
    """Pack a library so that unpacking gives a byte at first, and the next long after."""
    name, data = f"{PACKAGE}/logo.png", b"\x7fELF\2\1\1" + bytes(64)

    def deflated(part: bytes, *, last: bool = False) -> bytes:
        return bytes([last]) + struct.pack("<2H", len(part), len(part) ^ 0xFFFF) + part

    packed = deflated(data[:1]) + deflated(b"") * 20_000 + deflated(data[1:], last=True)

    def change(info: zipfile.ZipInfo) -> None:
        if info.filename == name:
            info.compress_type = zipfile.ZIP_STORED

    def record(rows: list[list[str]]) -> None:
        next(row for row in rows if row[0] == name)[1:] = hashed(data)

    path = Driver(files={name: packed}).write(folder, entry=change, record=record)
    said, there = bytearray(path.read_bytes()), name.encode()
    for mark, method, crc, at in ((b"PK\3\4", 8, 14, 30), (b"PK\1\2", 10, 16, 46)):
        place = next(n for n in range(len(said)) if said[n : n + 4] == mark and said[n + at :].startswith(there))
        said[place + method] = zipfile.ZIP_DEFLATED
        said[place + crc : place + crc + 4] = struct.pack("<L", zlib.crc32(data))
        said[place + crc + 8 : place + crc + 12] = struct.pack("<L", len(data))
    path.write_bytes(said)
    return path


def _restyled(folder: Path) -> Path:
    """Spell the `.dist-info` folder, and a `.data` folder like it, differently from the file name."""
    driver = Driver(files={"Dragoman.Demo-1.0.0.data/purelib/dragoman_demo/x.py": b""})

    def change(members: dict[str, bytes]) -> None:
        for name in [name for name in members if name.startswith(driver.dist_info)]:
            members[name.replace("dragoman_demo", "Dragoman.Demo", 1)] = members.pop(name)

    def record(rows: list[list[str]]) -> None:
        rows[-1][0] = "Dragoman.Demo-1.0.0.dist-info/RECORD"

    path = driver.write(folder, members=change, record=record)
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            wanted = name.replace("dragoman_demo-1.0.0.dist-info/RECORD", "Dragoman.Demo-1.0.0.dist-info/RECORD")
            archive.writestr(zip_entry(wanted), data)
    return path


@dataclass(frozen=True)
class Hostile:
    """A wheel that must be refused.

    Attributes:
        code: Of the fault.
        does: What the wheel does, or what it is.
        build: Writes it into a folder.
        fits: It may be published, since only this host cannot take it.
    """

    code: str
    does: str
    build: Callable[[Path], Path]
    fits: bool = False

    def __call__(self, folder: Path) -> Path:
        return self.build(folder)


DATA, INFO = f"{Driver().stem}.data", Driver().dist_info

_ALL = [
    Hostile("not-a-wheel", "is truncated", _spoiled(_cut)),
    Hostile("not-a-wheel", "has an encrypted file", _spoiled(_encrypt)),
    Hostile("not-a-wheel", "has a damaged byte in a file", _spoiled(_flip)),
    Hostile("not-a-wheel", "uses a compression method whose output has no bound", _packed_otherwise),
    Hostile("not-a-wheel", "is called `demo.zip`", _named("demo.zip")),
    Hostile("not-a-wheel", "is called `demo.whl`", _named("demo.whl")),
    Hostile("not-a-wheel", "is empty", _spoiled(lambda data: data.clear())),
    Hostile("not-a-wheel",
            "holds more bytes of a file than its directory says; the checksum is that of the listed part",
            _longer_than_said),
    Hostile("not-a-wheel", "promises a directory of 4 GB", _spoiled(_boasting)),
    Hostile("ambiguous-archive", "gives a file one name in the directory and another in the header before its data",
            _spoiled(_renamed_inside)),
    Hostile("ambiguous-archive", "gives a file two sizes", _spoiled(_resized_inside)),
    Hostile("ambiguous-archive", "is two archives, one after the other", _two_archives),
    Hostile("ambiguous-archive", "begins as a shell script", _spoiled(_before)),
    Hostile("ambiguous-archive", "continues after its end", _spoiled(_behind)),
    Hostile("ambiguous-archive", "has a second end in its comment", _commented),
    Hostile("ambiguous-archive", "has bytes that belong to no file", _spoiled(_hidden)),
    Hostile("ambiguous-archive", "states fewer files than it has", _spoiled(_counted(1))),
    Hostile("ambiguous-archive", "has ZIP64 sizes beside the plain ones",
            _told_again(1, struct.pack("<2Q", 1 << 40, 1 << 40))),
    Hostile("ambiguous-archive", "has a second name for a file", _told_again(0x7075, b"\1" + bytes(4) + b"evil.py")),
    Hostile("ambiguous-archive", "lists the same bytes as two files", _one_for_two),
    Hostile("ambiguous-archive", "does not state the encoding of a name",
            lambda folder: _unmarked(Driver(files={f"{PACKAGE}/caf\u00e9.py": b""}).write(folder))),
    Hostile("too-many-members", "holds 5,001 files", _many),
    Hostile("too-many-members", "says that it holds 65,000 files", _spoiled(_counted(65_000))),
    Hostile("too-large", "unpacks to 257 MiB, although none of its files is a bomb by itself", _too_large),
    Hostile("ratio", "unpacks 50 kB to 50 MiB", _bomb),
    Hostile("path-escape", "has `../evil.py`", _member("../evil.py")),
    Hostile("path-escape", "has `/etc/evil`", _member("/etc/evil")),
    Hostile("path-escape", "has `C:/evil`", _member("C:/evil")),
    Hostile("path-escape", "has a backslash in a path", _member("a\\b.py")),
    Hostile("path-escape", "has a NUL in a path, at which some programs stop reading", _nul),
    Hostile("path-escape", "has `..` in the middle of a path", _member(f"{PACKAGE}/../../evil")),
    Hostile("path-reserved", "has `aux.py`, a device on Windows", _member(f"{PACKAGE}/aux.py")),
    Hostile("path-reserved", "has `COM\u00b9.py`, a device on Windows too", _member(f"{PACKAGE}/COM\u00b9.py")),
    Hostile("path-reserved", "has a dot at the end of a name", _member(f"{PACKAGE}/dot.")),
    Hostile("path-reserved", "has a space at the end of a name", _member(f"{PACKAGE}/space ")),
    Hostile("path-reserved", "has a bell in a name", _member(f"{PACKAGE}/bell\a")),
    Hostile("path-reserved", "has a name that a screen shows backwards",
            _member(f"{PACKAGE}/\u202eyp.gpj.py")),
    Hostile("path-reserved", "has an invisible character in a name", _member(f"{PACKAGE}/dri\u200dver.py")),
    Hostile("path-reserved", "has an empty name", _member(f"{PACKAGE}//x")),
    Hostile("path-reserved", "has a file 500 folders deep, which takes a long time to compare with others",
            _member("a/" * 500 + "x.py")),
    Hostile("path-reserved", "has a name of 60,000 characters", _member(f"{PACKAGE}/{'a' * 60_000}.py")),
    Hostile("path-reserved", "has `tree.json`, which the store writes itself", _member("tree.json", b"{}")),
    Hostile("path-reserved", "has `Tree.JSON`, which is the same file on some systems", _member("Tree.JSON", b"{}")),
    Hostile("path-reserved", "installs `tree.json` through `.data`", _member(f"{DATA}/purelib/tree.json", b"{}")),
    Hostile("path-reserved", "has `.` in a path", _member(f"{PACKAGE}/./x")),
    Hostile("path-reserved", "has `s:x`, a hidden stream of a file on NTFS", _member(f"{PACKAGE}/s:x")),
    Hostile("path-reserved", "has `driver.py::$DATA`, another name for a file on NTFS",
            _member(f"{PACKAGE}/driver.py::$DATA")),
    Hostile("path-reserved", "has `DRAGOM~1`, the short name of a folder on Windows", _member("DRAGOM~1/driver.py")),
    Hostile("path-reserved", "has a name of 256 characters", _member(f"{PACKAGE}/{'long' * 64}")),
    Hostile("path-reserved", "has a folder 10,000 levels deep", _member(f"{PACKAGE}/{'d/' * 10_000}x")),
    Hostile("path-collision", "has `driver.py` and `DRIVER.py`", _member(f"{PACKAGE}/DRIVER.py")),
    Hostile("path-collision", "has its folder in capitals too", _member("Dragoman_Demo/x.py")),
    Hostile("path-collision", "lists a file twice", _listed_twice),
    Hostile("path-collision", "has `\u00e9` as one character and as two",
            lambda folder: Driver(files={f"{PACKAGE}/\u00e9": b"", f"{PACKAGE}/e\u0301": b""}).write(folder)),
    Hostile("path-collision", "has `ma\u00df` and `MASS`",
            lambda folder: Driver(files={f"{PACKAGE}/ma\u00df": b"", f"{PACKAGE}/MASS": b""}).write(folder)),
    Hostile("path-collision", "uses a file as a folder", _member(f"{PACKAGE}/driver.py/x")),
    Hostile("path-collision", "installs a file a second time through `.data`",
            _member(f"{DATA}/purelib/{PACKAGE}/driver.py")),
    Hostile("not-regular", "has a symbolic link", _mode(stat.S_IFLNK | 0o777)),
    Hostile("not-regular", "has a device", _mode(stat.S_IFCHR | 0o600)),
    Hostile("not-regular", "has a named pipe", _mode(stat.S_IFIFO | 0o600)),
    Hostile("not-regular", "has a folder that is stored as a file", _mode(stat.S_IFDIR | 0o755)),
    Hostile("not-regular", "has a folder with content", _full_folder),
    Hostile("record-missing", "has an empty RECORD", _rows(lambda rows: rows.clear())),
    Hostile("record-missing", "has a RECORD with too many columns", _rows(_garbled)),
    Hostile("record-missing", "has a RECORD that ends inside a quoted name", _open_quote),
    Hostile("record-weak-hash", "records a file with MD5", _rows(_weak)),
    Hostile("record-weak-hash", "records a file without a digest", _rows(_unhashed)),
    Hostile("record-extra", "records `../../etc/passwd`, which an uninstaller would remove", _rows(_ghost)),
    Hostile("record-extra", "records a file twice", _rows(_twice)),
    Hostile("record-extra", "records a name with a line break in it", _row(f"{PACKAGE}/driver.py\nevil.py")),
    Hostile("record-extra", "records a file under a different spelling of its path", _row(f"{PACKAGE}/./driver.py")),
    Hostile("record-unlisted", "leaves a file out of RECORD", _rows(_gone)),
    Hostile("record-unlisted", "has a file that was added afterwards", _extra_zip_entry(f"{PACKAGE}/late.py")),
    Hostile("record-unlisted", "has RECORD.jws, which RECORD does not list", _member(f"{INFO}/RECORD.jws")),
    Hostile("record-unlisted", "has RECORD.p7s", _member(f"{INFO}/RECORD.p7s")),
    Hostile("record-mismatch", "records the digest of other bytes", _rows(_wrong)),
    Hostile("record-mismatch", "records a wrong size", _rows(_wrong_size)),
    Hostile("dist-info", "has two `.dist-info` folders", _two_dist_infos),
    Hostile("dist-info", "contains INSTALLER", _member(f"{INFO}/INSTALLER", b"someone")),
    Hostile("dist-info", "contains direct_url.json", _member(f"{INFO}/direct_url.json", b"{}")),
    Hostile("dist-info", "contains `installer`, which is INSTALLER on some systems",
            _member(f"{INFO}/installer", b"x")),
    Hostile("dist-info", "installs INSTALLER through `.data`", _member(f"{DATA}/purelib/{INFO}/INSTALLER", b"x")),
    Hostile("dist-info", "installs direct_url.json through `.data`",
            _member(f"{DATA}/purelib/{INFO}/direct_url.json", b"{}")),
    Hostile("dist-info", "installs another `.dist-info` folder through `.data`",
            _member(f"{DATA}/platlib/other-1.0.dist-info/METADATA", b"Name: other\nVersion: 1.0\n")),
    Hostile("dist-info", "contains another `.dist-info` folder, in capitals",
            _member("OTHER-1.0.DIST-INFO/METADATA", b"Name: other\n")),
    Hostile("dist-info", "adds a file to its `.dist-info` folder through `.data`",
            lambda folder: Driver(files={f"{DATA}/purelib/{INFO}/extra.txt": b"x"}).write(folder)),
    Hostile("dist-info", "contains metadata in its older form", _member("other.egg-info", b"Name: other\n")),
    Hostile("name-mismatch", "has another project's file name", _named("dragoman_other-1.0.0-py3-none-any.whl")),
    Hostile("name-mismatch", "has its file name in capitals", _named("Dragoman_Demo-1.0.0-py3-none-any.whl")),
    Hostile("name-mismatch", "gives another name in METADATA",
            _metadata(b"Name: dragoman-demo", b"Name: dragoman-other")),
    Hostile("name-mismatch", "has a Cyrillic letter in its file name",
            _named("dr\u0430goman_demo-1.0.0-py3-none-any.whl")),
    Hostile("version-mismatch", "has another version in its file name", _named("dragoman_demo-2.0.0-py3-none-any.whl")),
    Hostile("version-mismatch", "gives another version in METADATA", _metadata(b"Version: 1.0.0", b"Version: 9.9")),
    Hostile("tags", "is for Windows according to its file name and for everything according to WHEEL", _tagged),
    Hostile("tags", "is for a different platform from this host's", _foreign_platform, fits=True),
    Hostile("tags", "has no WHEEL", _without("WHEEL")),
    Hostile("tags", "stands for a billion tags in one line of WHEEL",
            _text("WHEEL", b"Tag: py3-none-any", b"Tag: " + b"-".join([b".".join([b"a"] * 1_000)] * 3))),
    Hostile("tags", "has further tags under the lower-case header `tag`",
            _text("WHEEL", b"Tag: py3-none-any", b"Tag: py3-none-any\ntag: py3-none-win32")),
    Hostile("metadata", "has METADATA of an unknown version",
            _metadata(b"Metadata-Version: 2.4", b"Metadata-Version: 99")),
    Hostile("metadata", "has no METADATA", _without("METADATA")),
    Hostile("metadata", "needs a Python that this host does not have", _python, fits=True),
    Hostile("metadata", "needs the Python `soon`", _metadata(b"Requires-Python: >=3.11", b"Requires-Python: soon")),
    Hostile("metadata", "needs the Python `===soon`, which no version can be compared with",
            _metadata(b"Requires-Python: >=3.11", b"Requires-Python: ===soon")),
    Hostile("metadata", "needs a package that the manifest does not list", _requires("dragoman-api~=1.0", "left-pad")),
    Hostile("metadata", "needs the host itself", _requires("dragoman-api~=1.0", "dragoman")),
    Hostile("metadata", "needs a package from an address of its own",
            _requires("dragoman-api @ https://example.org/dragoman_api-1.0-py3-none-any.whl")),
    Hostile("metadata", "hides a requirement behind a marker that also holds without its extra",
            _requires("dragoman-api~=1.0", 'left-pad; extra == "x" or python_version > "3"')),
    Hostile("metadata", "has two names in METADATA",
            _metadata(b"Name: dragoman-demo", b"Name: dragoman-demo\nName: dragoman-elasticsearch")),
    Hostile("metadata", "has two versions in METADATA",
            _metadata(b"Version: 1.0.0", b"Version: 1.0.0\nVersion: 2.0.0")),
    Hostile("metadata", "is a wheel of an unknown version",
            _text("WHEEL", b"Wheel-Version: 1.0", b"Wheel-Version: 2.0")),
    Hostile("metadata", "states Wheel-Version twice, once in lower case",
            _text("WHEEL", b"Wheel-Version: 1.0", b"wheel-version: 2.0\nWheel-Version: 1.0")),
    Hostile("metadata", "has a marker of 34 kB, over which regular expressions take half a minute",
            _requires("dragoman-api~=1.0", "x; " + 'extra == "x" and ' * 2_000 + 'extra == "x" or os_name == "nt"')),
    Hostile("metadata", "has a marker 100,000 levels deep", _requires("dragoman-api~=1.0", "x; " + "(" * 100_000)),
    Hostile("metadata", "has a marker that cannot be written as text",
            _requires("dragoman-api~=1.0", r"x; os_name == '\x22\x27'")),
    Hostile("metadata", "needs a Python version of 5,000 digits", _also(f"Requires-Python: >=3.{'9' * 5_000}")),
    Hostile("metadata", "restricts Python with 200,000 clauses",
            _metadata(b">=3.11", b",".join([b">=3"] + [b"!=3.%d" % n for n in range(200_000)]))),
    Hostile("metadata", "needs a package in a version of 5,000 digits",
            _requires("dragoman-api~=1.0", f"left-pad=={'9' * 5_000}")),
    Hostile("metadata", "has 100,000 headers in METADATA", _also("\n".join(f"a{n}: b" for n in range(100_000)))),
    Hostile("metadata", "has a METADATA of 2 MB", _also(f"Keywords: {'a' * (2 << 20)}")),
    Hostile("metadata", "has METADATA that a mail parser would split into parts",
            _also("Content-Type: multipart/mixed; boundary=x")),
    Hostile("ambiguous-metadata", "has the command `ls` in double brackets",
            _commands("[[console_scripts]]\nls = evil:main\n")),
    Hostile("ambiguous-metadata", "has the command `ls` in an indented group", _indented),
    Hostile("ambiguous-metadata",
            "has the command `ls` after a form feed, which only some readers take for the end of a line",
            _commands("[other]\na = b\x0c[console_scripts]\x0cls = evil:main\n")),
    Hostile("ambiguous-metadata", "has the command `ls` in a group with spaces around its name",
            _commands("[ console_scripts ]\nls = evil:main\n")),
    Hostile("ambiguous-metadata", "has the command `ls` in a group whose entries some readers add to every other group",
            _commands("[DEFAULT]\nls = evil:main\n")),
    Hostile("ambiguous-metadata", "has the command `ls` in a line that some readers take for a comment",
            _commands("[console_scripts]\n;ls = evil:main\n")),
    Hostile("pth-file", "has `zz_run.pth`", _member("zz_run.pth", b"import os")),
    Hostile("pth-file", "has a `.PTH` file in a folder", _member(f"{PACKAGE}/x.PTH")),
    Hostile("bytecode", "has bytecode that runs in place of the source beside it",
            _member(f"{PACKAGE}/__pycache__/driver.cpython-311.pyc")),
    Hostile("bytecode", "has a module without a source", _member(f"{PACKAGE}/hidden.pyc")),
    Hostile("bytecode", "has a file other than bytecode in `__pycache__`, a folder that some installers leave out",
            _member(f"{PACKAGE}/__pycache__/notes.txt")),
    Hostile("data-scheme", "writes into the environment's root", _member(f"{DATA}/data/etc/x")),
    Hostile("data-scheme", "writes C headers", _member(f"{DATA}/headers/x.h")),
    Hostile("data-scheme", "has the `.data` folder of another wheel", _member("other-1.0.data/purelib/x.py")),
    Hostile("data-scheme", "has its `.data` folder in capitals", _member(f"{DATA.upper()}/purelib/{PACKAGE}/x.py")),
    Hostile("data-scheme", "has a `.data` folder that is named like its `.dist-info` folder, but not like its file",
            _restyled),
    Hostile("scripts", "installs the command `ls`", _scripts),
    Hostile("scripts", "installs a command for a desktop", _windowed),
    Hostile("scripts", "installs a script", _member(f"{DATA}/scripts/ls", b"#!python\n")),
    Hostile("foreign-module", "has a module that the manifest does not name", _member("evil.py")),
    Hostile("foreign-module", "has a package that the manifest does not name", _member("evil/__init__.py")),
    Hostile("foreign-module", "installs a module that the manifest does not name through `.data`",
            _member(f"{DATA}/purelib/evil.py")),
    Hostile("foreign-module", "has the metadata of another package", _member("evil.egg-info/PKG-INFO")),
    Hostile("shadows", "has `os.py`", _member("os.py")),
    Hostile("shadows", "has `aiohttp`", _member("aiohttp/__init__.py")),
    Hostile("shadows", "adds to `dragoman_api`", _member("dragoman_api/extra.py")),
    Hostile("shadows", "declares `json` as its own",
            lambda folder: Driver(files={"json/__init__.py": b""}, import_names=[PACKAGE, "json"]).write(folder)),
    Hostile("shadows", "points its entry point into the standard library", _standard_library),
    Hostile("shadows", "has `sitecustomize`, which every Python imports at its start",
            lambda folder: Driver(
                files={"sitecustomize.py": b""}, import_names=[PACKAGE, "sitecustomize"]
            ).write(folder)),
    Hostile("native-code", "has a shared library", _member(f"{PACKAGE}/fast.so")),
    Hostile("native-code", "has a shared library with a version", _member(f"{PACKAGE}/fast.so.1")),
    Hostile("native-code", "has a Windows library", _member(f"{PACKAGE}/Fast.DLL")),
    Hostile("native-code", "has a macOS library", _member(f"{PACKAGE}/fast.cpython-311-darwin.dylib")),
    Hostile("native-code", "has an extension module", _member(f"{PACKAGE}/fast.pyd")),
    Hostile("native-code", "has a shared library with the file name of a picture",
            _member(f"{PACKAGE}/logo.png", b"\x7fELF\2\1\1")),
    Hostile("native-code", "has a Windows program", _member(f"{PACKAGE}/help.bin", b"MZ\x90\0\3")),
    Hostile("native-code", "has a Windows program with a different DOS stub",
            _member(f"{PACKAGE}/logo.png", b"MZ\0\1" + bytes(60))),
    Hostile("native-code", "has a macOS library with the file name of a picture",
            _member(f"{PACKAGE}/logo.png", b"\xcf\xfa\xed\xfe" + bytes(28))),
    Hostile("native-code", "has a big-endian macOS library",
            _member(f"{PACKAGE}/logo.png", b"\xfe\xed\xfa\xce" + bytes(28))),
    Hostile("native-code", "has a macOS library for several machines",
            _member(f"{PACKAGE}/logo.png", b"\xca\xfe\xba\xbe\0\0\0\2" + bytes(28))),
    Hostile("native-code", "has a macOS library for several machines, with 64-bit offsets",
            _member(f"{PACKAGE}/logo.png", b"\xca\xfe\xba\xbf\0\0\0\2" + bytes(28))),
    Hostile("native-code", "has a macOS library for several machines, in the opposite byte order",
            _member(f"{PACKAGE}/logo.png", b"\xbf\xba\xfe\xca\2\0\0\0" + bytes(28))),
    Hostile("native-code", "has an archive of compiled files", _member(f"{PACKAGE}/logo.png", b"!<arch>\n")),
    Hostile("native-code", "has WebAssembly", _member(f"{PACKAGE}/logo.png", b"\0asm\1\0\0\0")),
    Hostile("native-code", "has a shared library that unpacks to one byte at first", _trickled),
    Hostile("manifest", "has an unknown key in its manifest", _manifest(surprise=1)),
    Hostile("manifest", "has a different id from the one in its entry point", _manifest(id="other")),
    Hostile("manifest", "names a class whose module is missing", _manifest(entry="dragoman_demo.nowhere:Driver")),
    Hostile("manifest", "names `os:system` as its class", _manifest(entry="os:system")),
    Hostile("manifest", "has no manifest", _no_file),
    Hostile("manifest", "contains two drivers", _two_drivers),
    Hostile("manifest", "claims a module that it does not have", _manifest(import_names=[PACKAGE, "ghost"])),
    Hostile("manifest", "claims `\uff4as\uff4f\uff4e`, which Python reads as `json`",
            _manifest(import_names=[PACKAGE, "\uff4as\uff4f\uff4e"])),
    Hostile("manifest", "has half a manifest", _document(b"{")),
    Hostile("manifest", "has a manifest of 50 MB", _document(b'{"id": "' + bytes(range(65, 91)) * 2_000_000 + b'"}')),
    Hostile("manifest", "has a manifest 100,000 levels deep", _document(b"[" * 100_000)),
    Hostile("manifest", "has a number of 100,000 digits", _document(b'{"manifest_version": ' + b"9" * 100_000 + b"}")),
    Hostile("manifest", "needs an API version of 5,000 digits", _manifest(host_api=f"~=1.{'0' * 5_000}")),
    Hostile("manifest", "needs the API `===soon`",
            _manifest(host_api="===soon")),
    Hostile("manifest", "restricts the API with 200,000 clauses", _manifest(host_api=",".join(["~=1.0"] * 100_000))),
    Hostile("manifest", "has a licence 100,000 levels deep", _manifest(licence="(" * 100_000)),
    Hostile("manifest", "lists its permissions twice", _key_twice),
    Hostile("manifest", "has a label that a screen shows backwards", _manifest(label="Demo \u202eDriver")),
    Hostile("manifest", "colours a terminal with its summary", _manifest(summary="\x1b[31mDanger")),
    Hostile("manifest", "has a script in place of the address of its documentation",
            _manifest(docs="javascript:alert(1)")),
    Hostile("manifest", "sets the server by default", _form(host={"default": "collector.example"})),
    Hostile("manifest", "hides the host behind another field", _form(host={"visible_if": {"port": ["1"]}})),
    Hostile("manifest", "trusts any certificate by default", _field("skip_tls_verification", "switch", default=True)),
    Hostile("manifest", "declares its SSL mode as a text field", _field("ssl_mode", "text", default="disabled")),
    Hostile(
        "manifest",
        "has an unknown SSL mode",
        _field("ssl_mode", "choice", choices=[{"value": "none", "label": "None"}]),
    ),
    Hostile("manifest", "has a default secret", _field("password", "secret", default="command:touch x")),
    Hostile("manifest", "has a default file", _field("ca_file", "file", default="/etc/shadow")),
    Hostile("manifest", "makes the host read a file that a text field names", _field("ca_file", "text")),
    Hostile("manifest", "wants to reach the address at which a cloud hands out credentials",
            _manifest(permissions=["net:connection", "net:host=169.254.169.254:80"])),
    Hostile("manifest", "wants to reach this machine, spelled as a number",
            _manifest(permissions=["net:connection", "net:host=2130706433:6379"])),
    Hostile("manifest", "has a label of 100,000 characters, which every list would show",
            _manifest(label="Demo " * 20_000)),
    Hostile("manifest", "has a label that reads like part of the question in which it appears",
            _manifest(label="Demo 1.0? Nothing is asked of you here. " + 80 * " ")),
    Hostile("manifest", "has a label that is blank in every font", _manifest(label="\u3164")),
    Hostile("manifest", "asks for more permissions than anybody reads",
            _manifest(permissions=["net:connection", *(f"net:host=h{n}.example" for n in range(32))])),
    Hostile("manifest", "serves 20,000 database types",
            _manifest(types=[{"name": f"demo{n}", "label": "Demo"} for n in range(20_000)])),
    Hostile("manifest", "wants to start programs", _manifest(permissions=["net:connection", "subprocess"])),
    Hostile("host-api", "claims a different range of the API from the one it requires", _manifest(host_api="~=2.0")),
    Hostile("host-api", "requires a different range of the API from the one it claims", _requires("dragoman-api~=1.1")),
    Hostile("host-api", "requires any API", _requires("dragoman-api")),
    Hostile("host-api", "requires no API", _requires()),
]  # fmt: skip

HOSTILE: dict[str, list[Hostile]] = {
    code: [one for one in _ALL if one.code == code] for code in dict.fromkeys(one.code for one in _ALL)
}
"""Code of the fault → wheels that have it."""


def otherwise(folder: Path) -> dict[str, tuple[str, Path, WheelFile]]:
    """Return, for each fault that only a promise shows: what the wheel does, the wheel, and what was promised."""
    path = Driver().write(folder)
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    promised, longer = WheelFile(file=path.name, size=len(data), sha256=digest), len(data) + 1
    return {
        "length-mismatch": ("has a different length from the one in the index", path, replace(promised, size=longer)),
        "digest-mismatch": ("has different bytes from those in the index", path, replace(promised, sha256="0" * 64)),
    }


def row(code: str, does: str, said: str) -> str:
    """Return the row of the reference for one wheel."""
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in said.partition("\n")[0])
    return f"| `{code}` | {does} | {escape(shown, quote=False).replace('|', '&#124;').replace('`', '&#96;')} |"


def many_faults(folder: Path) -> Path:
    """Build one wheel with a dozen independent faults."""
    driver = Driver(
        files={
            "../evil.py": b"",
            "evil.pth": b"import os",
            "os.py": b"",
            f"{PACKAGE}/DRIVER.py": b"",
            f"{PACKAGE}/fast.so": b"",
            f"{PACKAGE}/nul.py": b"",
            f"{Driver().stem}.data/data/x": b"",
        },
        host_api="~=2.0",
        surprise=True,
    )
    driver.entry_points += "[console_scripts]\nls = dragoman_demo.driver:Driver\n"
    driver.requires_python = ">=4"

    def spoil(rows: list[list[str]]) -> None:
        _ghost(rows)
        rows[1][1] = hashed(b"", "md5")[0]
        rows[2][1] = hashed(b"something else")[0]

    return driver.write(folder, record=spoil, after=lambda archive: archive.writestr(zip_entry("late.py"), b""))


def everything_at_once(folder: Path) -> Path:
    """Build one wheel with every fault that leaves the archive, RECORD and the manifest readable."""
    driver = Driver(
        files={
            "../evil.py": b"",
            "evil.pth": b"import os",
            "os.py": b"",
            f"{PACKAGE}/DRIVER.py": b"",
            f"{PACKAGE}/fast.so": b"",
            f"{PACKAGE}/nul.py": b"",
            f"{PACKAGE}/old.pyc": b"",
            f"{PACKAGE}/zeros.bin": bytes(2 << 20),
            f"{DATA}/data/x": b"",
            f"{INFO}/INSTALLER": b"someone",
        },
        import_names=[PACKAGE, "ghost"],
        host_api="~=2.0",
    )
    driver.entry_points += "[console_scripts]\nls = dragoman_demo.driver:Driver\n"
    driver.requires_python = ">=4"

    def spoil(rows: list[list[str]]) -> None:
        _ghost(rows)
        rows[1][1] = hashed(b"", "md5")[0]
        rows[2][1] = hashed(b"something else")[0]

    def entry(info: zipfile.ZipInfo) -> None:
        if info.filename.endswith("nul.py"):
            info.external_attr = (stat.S_IFLNK | 0o777) << 16

    path = driver.write(
        folder,
        file="dragoman_other-2.0.0-cp27-none-win32.whl",
        record=spoil,
        entry=entry,
        after=lambda archive: archive.writestr(zip_entry("late.py"), b""),
    )
    path.write_bytes(path.read_bytes() + b"and more")
    return path


def library_with_commands(folder: Path) -> Path:
    """Build a library that would like to install a command; it is unpacked without."""
    library = Wheel(project="tinylib", files={"tinylib/__init__.py": b"VALUE = 1\n"})
    library.entry_points = "[console_scripts]\ntiny = tinylib:main\n"
    return library.write(folder)


def main() -> None:
    """Write the reference page anew: every wheel is built, and refused."""
    from dragoman_registry.wheels.archive_checks import check

    page = Path(__file__).parents[2] / "docs/reference/hostile-wheels.md"
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for code, (does, path, promised) in otherwise(Path(folder)).items():
            found = check(path, expected=promised)
            rows += [row(code, does, fault.reason) for fault in found if fault.code == code]
    for one in _ALL:
        with tempfile.TemporaryDirectory() as folder:
            said = next(fault.reason for fault in check(one(Path(folder)), host=FIXED) if fault.code == one.code)
            rows.append(row(one.code, one.does, said))
    head, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    page.write_text(
        "\n".join([head + BEGIN, "", "| code | the wheel | message |", "| --- | --- | --- |", *rows, "", END])
        + rest.partition(END)[2],
        encoding="utf-8",
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # a name is there twice on purpose
    main()
