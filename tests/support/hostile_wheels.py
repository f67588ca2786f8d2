"""Wheels that must be refused: one per fault of the preflight, as real files, and one with many faults at once."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from wheelhouse import Driver, Wheel, hashed, zip_entry

if TYPE_CHECKING:
    import zipfile
    from collections.abc import Callable
    from pathlib import Path

PACKAGE = "dragoman_demo"


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


HOSTILE: dict[str, list[Callable[[Path], Path]]] = {
    "not-a-wheel": [
        _spoiled(_cut), _spoiled(_encrypt), _spoiled(_flip), _packed_otherwise, _named("demo.zip"), _named("demo.whl"),
        _spoiled(lambda data: data.clear()),
    ],
    "too-many-members": [_many],
    "too-large": [_too_large],
    "ratio": [_bomb],
    "path-escape": [
        _member("../evil.py"), _member("/etc/evil"), _member("C:/evil"), _member("a\\b.py"), _nul,
        _member(f"{PACKAGE}/../../evil"),
    ],
    "path-reserved": [
        _member(f"{PACKAGE}/aux.py"), _member(f"{PACKAGE}/dot."), _member(f"{PACKAGE}/space "),
        _member(f"{PACKAGE}/bell\a"), _member(f"{PACKAGE}//x"), _member(f"{PACKAGE}/./x"), _member(f"{PACKAGE}/s:x"),
        _member(f"{PACKAGE}/{'long' * 64}"),
    ],
    "path-collision": [
        _member(f"{PACKAGE}/DRIVER.py"), _member("Dragoman_Demo/x.py"), _listed_twice,
        lambda folder: Driver(files={f"{PACKAGE}/\u00e9": b"", f"{PACKAGE}/e\u0301": b""}).write(folder),
        _member(f"{PACKAGE}/driver.py/x"),
        _member(f"{Driver().stem}.data/purelib/{PACKAGE}/driver.py"),
    ],
    "not-regular": [_mode(stat.S_IFLNK | 0o777), _mode(stat.S_IFCHR | 0o600), _mode(stat.S_IFDIR | 0o755)],
    "record-missing": [
        lambda folder: Driver().write(folder, record=lambda rows: rows.clear()),
        _rows(_garbled),
    ],
    "record-weak-hash": [_rows(_weak), _rows(_unhashed)],
    "record-extra": [_rows(_ghost), _rows(_twice)],
    "record-unlisted": [
        _rows(_gone), _extra_zip_entry(f"{PACKAGE}/late.py"), _member(f"{Driver().dist_info}/RECORD.jws"),
        _member(f"{Driver().dist_info}/RECORD.p7s"),
    ],
    "record-mismatch": [_rows(_wrong), _rows(_wrong_size)],
    "dist-info": [_two_dist_infos, _member(f"{Driver().dist_info}/INSTALLER", b"someone")],
    "name-mismatch": [
        _named("dragoman_other-1.0.0-py3-none-any.whl"), _named("Dragoman_Demo-1.0.0-py3-none-any.whl"),
        _metadata(b"Name: dragoman-demo", b"Name: dragoman-other"),
    ],
    "version-mismatch": [
        _named("dragoman_demo-2.0.0-py3-none-any.whl"), _metadata(b"Version: 1.0.0", b"Version: 9.9"),
    ],
    "tags": [_tagged, _foreign_platform, _without("WHEEL")],
    "metadata": [
        _metadata(b"Metadata-Version: 2.4", b"Metadata-Version: 99"), _without("METADATA"), _python,
        _metadata(b"Requires-Python: >=3.11", b"Requires-Python: soon"), _requires("dragoman-api~=1.0", "left-pad"),
        _requires("dragoman-api~=1.0", "dragoman"),
    ],
    "pth-file": [_member("zz_run.pth", b"import os"), _member(f"{PACKAGE}/x.PTH")],
    "data-scheme": [
        _member(f"{Driver().stem}.data/data/etc/x"), _member(f"{Driver().stem}.data/headers/x.h"),
        _member("other-1.0.data/purelib/x.py"),
    ],
    "scripts": [_scripts, _member(f"{Driver().stem}.data/scripts/ls", b"#!python\n")],
    "foreign-module": [
        _member("evil.py"), _member("evil/__init__.py"), _member(f"{Driver().stem}.data/purelib/evil.py"),
    ],
    "shadows": [
        _member("os.py"), _member("aiohttp/__init__.py"), _member("dragoman_api/extra.py"),
        lambda folder: Driver(files={"json/__init__.py": b""}, import_names=["dragoman_demo", "json"]).write(folder),
    ],
    "native-code": [
        _member(f"{PACKAGE}/fast.so"), _member(f"{PACKAGE}/fast.so.1"), _member(f"{PACKAGE}/Fast.DLL"),
        _member(f"{PACKAGE}/fast.cpython-311-darwin.dylib"), _member(f"{PACKAGE}/fast.pyd"),
    ],
    "manifest": [
        _manifest(surprise=1), _manifest(id="other"), _manifest(entry="dragoman_demo.nowhere:Driver"), _no_file,
        _two_drivers, _manifest(import_names=["dragoman_demo", "ghost"]),
        lambda folder: Driver().write(folder, members=lambda members: members.update({f"{PACKAGE}/driver.json": b"{"})),
    ],
    "host-api": [
        _manifest(host_api="~=2.0"), _requires("dragoman-api~=1.1"), _requires("dragoman-api"), _requires(),
    ],
}  # fmt: skip
"""Code of the fault → builders of wheels that have it."""


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


def library_with_commands(folder: Path) -> Path:
    """Build a library that would like to install a command; it is unpacked without."""
    library = Wheel(project="tinylib", files={"tinylib/__init__.py": b"VALUE = 1\n"})
    library.entry_points = "[console_scripts]\ntiny = tinylib:main\n"
    return library.write(folder)
