"""Wheels that must be refused: one per fault of the preflight, as real files, and one with many faults at once."""

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

from dragoman_registry.index import WheelFile
from dragoman_registry.wheels import Host
from wheelhouse import Driver, Wheel, hashed, zip_entry

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
    """Give a file another name in the directory than before its bytes."""
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
    Hostile("not-a-wheel", "is cut in the middle", _spoiled(_cut)),
    Hostile("not-a-wheel", "has an encrypted file", _spoiled(_encrypt)),
    Hostile("not-a-wheel", "has a damaged byte in a file", _spoiled(_flip)),
    Hostile("not-a-wheel", "is packed with a method whose output nobody bounds", _packed_otherwise),
    Hostile("not-a-wheel", "is called `demo.zip`", _named("demo.zip")),
    Hostile("not-a-wheel", "is called `demo.whl`", _named("demo.whl")),
    Hostile("not-a-wheel", "is empty", _spoiled(lambda data: data.clear())),
    Hostile("not-a-wheel", "holds more bytes of a file than its directory says, with a checksum that fits the part",
            _longer_than_said),
    Hostile("not-a-wheel", "promises a directory of 4 GB", _spoiled(_boasting)),
    Hostile("ambiguous-archive", "has a file under another name in the directory than before its bytes",
            _spoiled(_renamed_inside)),
    Hostile("ambiguous-archive", "gives a file two sizes", _spoiled(_resized_inside)),
    Hostile("ambiguous-archive", "is two archives, one behind the other", _two_archives),
    Hostile("ambiguous-archive", "begins as a shell script", _spoiled(_before)),
    Hostile("ambiguous-archive", "goes on behind its end", _spoiled(_behind)),
    Hostile("ambiguous-archive", "has a second end in its comment", _commented),
    Hostile("ambiguous-archive", "has bytes that belong to no file", _spoiled(_hidden)),
    Hostile("ambiguous-archive", "counts fewer files than it has", _spoiled(_counted(1))),
    Hostile("ambiguous-archive", "has ZIP64 sizes beside the plain ones",
            _told_again(1, struct.pack("<2Q", 1 << 40, 1 << 40))),
    Hostile("ambiguous-archive", "has a second name for a file", _told_again(0x7075, b"\1" + bytes(4) + b"evil.py")),
    Hostile("ambiguous-archive", "lists the same bytes as two files", _one_for_two),
    Hostile("ambiguous-archive", "does not say how a name is written",
            lambda folder: _unmarked(Driver(files={f"{PACKAGE}/caf\u00e9.py": b""}).write(folder))),
    Hostile("too-many-members", "holds 5,001 files", _many),
    Hostile("too-many-members", "says that it holds 65,000 files", _spoiled(_counted(65_000))),
    Hostile("too-large", "unpacks to 257 MiB, none of its files being a bomb by itself", _too_large),
    Hostile("ratio", "unpacks 50 kB to 50 MiB", _bomb),
    Hostile("path-escape", "has `../evil.py`", _member("../evil.py")),
    Hostile("path-escape", "has `/etc/evil`", _member("/etc/evil")),
    Hostile("path-escape", "has `C:/evil`", _member("C:/evil")),
    Hostile("path-escape", "has a backslash in a path", _member("a\\b.py")),
    Hostile("path-escape", "has a NUL in a path, behind which some programs do not read", _nul),
    Hostile("path-escape", "has `..` in the middle of a path", _member(f"{PACKAGE}/../../evil")),
    Hostile("path-reserved", "has `aux.py`, a device on Windows", _member(f"{PACKAGE}/aux.py")),
    Hostile("path-reserved", "has `COM\u00b9.py`, a device too", _member(f"{PACKAGE}/COM\u00b9.py")),
    Hostile("path-reserved", "has a dot at the end of a name", _member(f"{PACKAGE}/dot.")),
    Hostile("path-reserved", "has a space at the end of a name", _member(f"{PACKAGE}/space ")),
    Hostile("path-reserved", "has a bell in a name", _member(f"{PACKAGE}/bell\a")),
    Hostile("path-reserved", "has a name that is written backwards on a screen",
            _member(f"{PACKAGE}/\u202eyp.gpj.py")),
    Hostile("path-reserved", "has an invisible character in a name", _member(f"{PACKAGE}/dri\u200dver.py")),
    Hostile("path-reserved", "has an empty name", _member(f"{PACKAGE}//x")),
    Hostile("path-reserved", "has `.` in a path", _member(f"{PACKAGE}/./x")),
    Hostile("path-reserved", "has `s:x`, a hidden stream of a file on NTFS", _member(f"{PACKAGE}/s:x")),
    Hostile("path-reserved", "has `driver.py::$DATA`, another name of a file on NTFS",
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
    Hostile("path-collision", "brings a file a second time through `.data`",
            _member(f"{DATA}/purelib/{PACKAGE}/driver.py")),
    Hostile("not-regular", "has a symbolic link", _mode(stat.S_IFLNK | 0o777)),
    Hostile("not-regular", "has a device", _mode(stat.S_IFCHR | 0o600)),
    Hostile("not-regular", "has a named pipe", _mode(stat.S_IFIFO | 0o600)),
    Hostile("not-regular", "has a folder that is written as a file", _mode(stat.S_IFDIR | 0o755)),
    Hostile("not-regular", "has a folder with content", _full_folder),
    Hostile("record-missing", "has an empty RECORD", _rows(lambda rows: rows.clear())),
    Hostile("record-missing", "has a RECORD with too many columns", _rows(_garbled)),
    Hostile("record-missing", "has a RECORD that ends inside a quoted name", _open_quote),
    Hostile("record-weak-hash", "records a file with MD5", _rows(_weak)),
    Hostile("record-weak-hash", "records a file without a digest", _rows(_unhashed)),
    Hostile("record-extra", "records `../../etc/passwd`, which an uninstaller would remove", _rows(_ghost)),
    Hostile("record-extra", "records a file twice", _rows(_twice)),
    Hostile("record-extra", "records a name with a line break in it", _row(f"{PACKAGE}/driver.py\nevil.py")),
    Hostile("record-extra", "records a file by another spelling of its path", _row(f"{PACKAGE}/./driver.py")),
    Hostile("record-unlisted", "leaves a file out of RECORD", _rows(_gone)),
    Hostile("record-unlisted", "has a file that was added afterwards", _extra_zip_entry(f"{PACKAGE}/late.py")),
    Hostile("record-unlisted", "has RECORD.jws, which nothing can record", _member(f"{INFO}/RECORD.jws")),
    Hostile("record-unlisted", "has RECORD.p7s", _member(f"{INFO}/RECORD.p7s")),
    Hostile("record-mismatch", "records the digest of other bytes", _rows(_wrong)),
    Hostile("record-mismatch", "records another size", _rows(_wrong_size)),
    Hostile("dist-info", "has two `.dist-info` folders", _two_dist_infos),
    Hostile("dist-info", "brings INSTALLER", _member(f"{INFO}/INSTALLER", b"someone")),
    Hostile("dist-info", "brings direct_url.json", _member(f"{INFO}/direct_url.json", b"{}")),
    Hostile("name-mismatch", "has another project's file name", _named("dragoman_other-1.0.0-py3-none-any.whl")),
    Hostile("name-mismatch", "has its file name in capitals", _named("Dragoman_Demo-1.0.0-py3-none-any.whl")),
    Hostile("name-mismatch", "says another name in METADATA",
            _metadata(b"Name: dragoman-demo", b"Name: dragoman-other")),
    Hostile("name-mismatch", "has a Cyrillic letter in its file name",
            _named("dr\u0430goman_demo-1.0.0-py3-none-any.whl")),
    Hostile("version-mismatch", "has another version in its file name", _named("dragoman_demo-2.0.0-py3-none-any.whl")),
    Hostile("version-mismatch", "says another version in METADATA", _metadata(b"Version: 1.0.0", b"Version: 9.9")),
    Hostile("tags", "is for Windows by its file name and for everything by WHEEL", _tagged),
    Hostile("tags", "is for a platform that this host is not", _foreign_platform, fits=True),
    Hostile("tags", "has no WHEEL", _without("WHEEL")),
    Hostile("metadata", "has METADATA of a version that nobody knows",
            _metadata(b"Metadata-Version: 2.4", b"Metadata-Version: 99")),
    Hostile("metadata", "has no METADATA", _without("METADATA")),
    Hostile("metadata", "needs a Python that this host has not", _python, fits=True),
    Hostile("metadata", "needs the Python `soon`", _metadata(b"Requires-Python: >=3.11", b"Requires-Python: soon")),
    Hostile("metadata", "needs a package that the manifest does not list", _requires("dragoman-api~=1.0", "left-pad")),
    Hostile("metadata", "needs the host itself", _requires("dragoman-api~=1.0", "dragoman")),
    Hostile("metadata", "needs a package from an address of its own",
            _requires("dragoman-api @ https://example.org/dragoman_api-1.0-py3-none-any.whl")),
    Hostile("metadata", "hides what it needs behind an extra that need not be asked for",
            _requires("dragoman-api~=1.0", 'left-pad; extra == "x" or python_version > "3"')),
    Hostile("metadata", "has two names in METADATA",
            _metadata(b"Name: dragoman-demo", b"Name: dragoman-demo\nName: dragoman-elasticsearch")),
    Hostile("metadata", "has two versions in METADATA",
            _metadata(b"Version: 1.0.0", b"Version: 1.0.0\nVersion: 2.0.0")),
    Hostile("metadata", "is a wheel of a version that nobody knows",
            _text("WHEEL", b"Wheel-Version: 1.0", b"Wheel-Version: 2.0")),
    Hostile("pth-file", "has `zz_run.pth`", _member("zz_run.pth", b"import os")),
    Hostile("pth-file", "has one in capitals, deeper", _member(f"{PACKAGE}/x.PTH")),
    Hostile("bytecode", "has bytecode that runs in place of the source beside it",
            _member(f"{PACKAGE}/__pycache__/driver.cpython-311.pyc")),
    Hostile("bytecode", "has a module without a source", _member(f"{PACKAGE}/hidden.pyc")),
    Hostile("data-scheme", "writes into the environment's root", _member(f"{DATA}/data/etc/x")),
    Hostile("data-scheme", "writes C headers", _member(f"{DATA}/headers/x.h")),
    Hostile("data-scheme", "has the `.data` folder of another wheel", _member("other-1.0.data/purelib/x.py")),
    Hostile("scripts", "installs the command `ls`", _scripts),
    Hostile("scripts", "installs a command for a desktop", _windowed),
    Hostile("scripts", "installs a script", _member(f"{DATA}/scripts/ls", b"#!python\n")),
    Hostile("foreign-module", "has a module that the manifest does not name", _member("evil.py")),
    Hostile("foreign-module", "has such a package", _member("evil/__init__.py")),
    Hostile("foreign-module", "brings one through `.data`", _member(f"{DATA}/purelib/evil.py")),
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
    Hostile("native-code", "has one with a version", _member(f"{PACKAGE}/fast.so.1")),
    Hostile("native-code", "has one of Windows", _member(f"{PACKAGE}/Fast.DLL")),
    Hostile("native-code", "has one of macOS", _member(f"{PACKAGE}/fast.cpython-311-darwin.dylib")),
    Hostile("native-code", "has an extension module", _member(f"{PACKAGE}/fast.pyd")),
    Hostile("native-code", "has a shared library that is called a picture",
            _member(f"{PACKAGE}/logo.png", b"\x7fELF\2\1\1")),
    Hostile("native-code", "has a program of Windows", _member(f"{PACKAGE}/help.bin", b"MZ\x90\0\3")),
    Hostile("manifest", "has a key in its manifest that nobody knows", _manifest(surprise=1)),
    Hostile("manifest", "calls itself otherwise than its entry point does", _manifest(id="other")),
    Hostile("manifest", "has no module of its class", _manifest(entry="dragoman_demo.nowhere:Driver")),
    Hostile("manifest", "has `os:system` for its class", _manifest(entry="os:system")),
    Hostile("manifest", "has no manifest", _no_file),
    Hostile("manifest", "is two drivers", _two_drivers),
    Hostile("manifest", "claims a module that it has not", _manifest(import_names=[PACKAGE, "ghost"])),
    Hostile("manifest", "claims `\uff4as\uff4f\uff4e`, which Python reads as `json`",
            _manifest(import_names=[PACKAGE, "\uff4as\uff4f\uff4e"])),
    Hostile("manifest", "has half a manifest", _document(b"{")),
    Hostile("manifest", "has a manifest of 50 MB", _document(b'{"id": "' + bytes(range(65, 91)) * 2_000_000 + b'"}')),
    Hostile("manifest", "has a manifest 100,000 levels deep", _document(b"[" * 100_000)),
    Hostile("manifest", "has a number of 100,000 digits", _document(b'{"manifest_version": ' + b"9" * 100_000 + b"}")),
    Hostile("manifest", "says its permissions twice", _key_twice),
    Hostile("manifest", "has a label that is written backwards on a screen", _manifest(label="Demo \u202eDriver")),
    Hostile("manifest", "colours a terminal with its summary", _manifest(summary="\x1b[31mDanger")),
    Hostile("manifest", "has a script for its documentation", _manifest(docs="javascript:alert(1)")),
    Hostile("manifest", "wants to start programs", _manifest(permissions=["net:connection", "subprocess"])),
    Hostile("host-api", "claims another range of the API than it requires", _manifest(host_api="~=2.0")),
    Hostile("host-api", "requires another range than it claims", _requires("dragoman-api~=1.1")),
    Hostile("host-api", "requires any API", _requires("dragoman-api")),
    Hostile("host-api", "requires no API", _requires()),
]  # fmt: skip

HOSTILE: dict[str, list[Hostile]] = {
    code: [one for one in _ALL if one.code == code] for code in dict.fromkeys(one.code for one in _ALL)
}
"""Code of the fault → wheels that have it."""


def otherwise(folder: Path) -> dict[str, tuple[str, Path, WheelFile]]:
    """Give, for each fault that only a promise shows: what the wheel does, the wheel, and what was promised."""
    path = Driver().write(folder)
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    promised = WheelFile(file=path.name, size=len(data), sha256=digest)
    return {
        "length-mismatch": ("has another length than the index says", path, replace(promised, size=len(data) + 1)),
        "digest-mismatch": ("has other bytes than the index says", path, replace(promised, sha256="0" * 64)),
    }


def row(code: str, does: str, said: str) -> str:
    """Give the row of the reference for one wheel."""
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
    from dragoman_registry.preflight import check

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
        "\n".join([head + BEGIN, "", "| code | the wheel | what is said |", "| --- | --- | --- |", *rows, "", END])
        + rest.partition(END)[2],
        encoding="utf-8",
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # a name is there twice on purpose
    main()
