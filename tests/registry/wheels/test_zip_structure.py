"""Two programs must find the same files in an archive: whatever lets them differ is a fault."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING

import pytest

from dragoman_registry.wheels.archive import Archive, NotAWheel, ambiguities, find_directory, is_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMES = ("one.py", "folder/two.py", "three.py")


class Stream(io.RawIOBase):
    """A stream without positions: what is written there has its sizes after it."""

    def __init__(self) -> None:
        self.data = b""

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        self.data += bytes(data)  # type: ignore[call-overload]
        return len(data)  # type: ignore[arg-type]


def archive(*names: str, method: int = zipfile.ZIP_DEFLATED, streamed: bool = False, extra: bytes = b"") -> bytearray:
    stream, file = Stream(), io.BytesIO()
    with zipfile.ZipFile(stream if streamed else file, "w", method) as made:  # type: ignore[arg-type]
        for name in names or NAMES:
            info = zipfile.ZipInfo(name)
            info.compress_type, info.extra = method, extra
            made.writestr(info, f"# {name}\n" * 9)
    return bytearray(stream.data if streamed else file.getvalue())


def faults(data: bytes, folder: Path) -> list[str]:
    (path := folder / "x.zip").write_bytes(data)
    directory, found = find_directory(path)
    return [*found, *ambiguities(path, directory)]


@pytest.mark.parametrize(
    ("name", "kind", "folder"),
    [("x/", 0, True), ("x/", stat.S_IFDIR, True), ("x/", stat.S_IFLNK, False), ("x/", stat.S_IFREG, False),
     ("x", 0, False), ("x", stat.S_IFDIR, False)],
)  # fmt: skip
def test_a_folder_is_one_by_its_name_and_by_its_kind_if_it_has_one(name: str, kind: int, folder: bool) -> None:
    info = zipfile.ZipInfo(name)
    info.external_attr = (kind | 0o755 if kind else 0) << 16
    assert is_folder(info) is folder


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("extra", [b"", struct.pack("<2H3s", 0x9999, 3, b"abc") * 2, struct.pack("<2H", 0x9999, 0)])
def test_a_proper_archive_has_no_fault(method: int, extra: bytes, tmp_path: Path) -> None:
    data = archive(method=method, extra=extra)
    assert faults(data, tmp_path) == []
    directory, _ = find_directory(tmp_path / "x.zip")
    assert (directory.files, directory.offset, directory.size) == (
        3, data.index(b"PK\1\2"), data.rindex(b"PK\5\6") - data.index(b"PK\1\2"),
    )  # fmt: skip
    assert faults(archive("ä.py", "漢.py"), tmp_path) == []


# the end --------------------------------------------------------------------------------------------------------------


def put(at: int, value: int, size: int = 2) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        data[at : at + size or None] = value.to_bytes(size, "little")

    return change


def locator(data: bytearray) -> None:
    data[-22:-22] = b"PK\6\7" + bytes(16)


PARTS, ZIP64, MOVED = "it is one of several parts", "it uses ZIP64, which no wheel needs", "its directory is not where"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (put(-18, 1), PARTS),
        (put(-16, 1), PARTS),
        (put(-14, 2), PARTS),
        (put(-12, 2), PARTS),
        (put(-14, 0xFFFF), ZIP64),
        (put(-12, 0xFFFF), ZIP64),
        (put(-6, 0xFFFFFFFF, 4), ZIP64),
        (locator, ZIP64),
        (put(-6, 7, 4), MOVED),
        (put(-10, 7, 4), MOVED),
        (lambda data: data.extend(b"x"), "data follows its end"),
        (put(-2, 1), "data follows its end"),
        (lambda data: data.extend(b"x" * 0xFFFF), "data follows its end"),
    ],
)
def test_an_end_that_programs_read_differently_is_a_fault(
    change: Callable[[bytearray], None], fault: str, tmp_path: Path
) -> None:
    data = archive()
    change(data)
    (path := tmp_path / "x.zip").write_bytes(data)
    assert [each for each in find_directory(path)[1] if each.startswith(fault)]


@pytest.mark.parametrize("data", [b"", b"PK\5\6", b"x" * 100_000, bytes(archive()) + b"x" * 0x10000])
def test_a_file_without_an_end_in_reach_is_no_archive(data: bytes, tmp_path: Path) -> None:
    (path := tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(NotAWheel, match="no directory at its end"):
        find_directory(path)


def test_a_directory_of_gigabytes_is_not_read(tmp_path: Path) -> None:
    data = archive()
    put(-10, 0xF0000000, 4)(data)
    with pytest.raises(NotAWheel, match="its directory is larger than"):
        faults(data, tmp_path)


# the files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("at", "field"), [(6, "flags"), (8, "method"), (14, "crc"), (18, "packed"), (22, "size")])
def test_each_field_before_a_file_is_what_the_directory_says(at: int, field: str, tmp_path: Path) -> None:
    data = archive()
    first = data.index(b"PK\3\4")
    data[first + at] ^= 2  # bit 1 of the flags says how well a file is packed, and nothing else
    assert faults(data, tmp_path) == [f"'one.py' has a different {field} before the file than in the directory"]


def test_a_name_before_a_file_is_the_directorys(tmp_path: Path) -> None:
    data = archive()
    at = data.index(b"three.py")
    data[at : at + 5] = b"THREE"
    assert faults(data, tmp_path) == ["'three.py' has a different name before the file than in the directory"]


def test_a_name_beyond_ascii_states_its_encoding(tmp_path: Path) -> None:
    data = archive("ä.py")
    for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(mark) + at + 1] &= ~0x08
    assert faults(data, tmp_path) == ["'ä.py' does not state the encoding of its name"]


def moved(data: bytearray, more: int) -> None:
    """Say that the directory begins some bytes later."""
    [offset] = struct.unpack("<L", data[-6:-2])
    data[-6:-2] = struct.pack("<L", offset + more)


def test_no_byte_lies_where_no_file_is(tmp_path: Path) -> None:
    data = archive()
    at = data.index(b"PK\1\2")
    data[at:at] = b"hidden"
    moved(data, 6)
    assert faults(data, tmp_path) == ["hidden bytes precede its directory"]
    data = archive("one.py")
    data[:0] = b"hidden"
    moved(data, 6)
    entry = data.index(b"PK\1\2")
    data[entry + 42 : entry + 46] = struct.pack("<L", 6)
    assert faults(data, tmp_path) == ["'one.py' follows hidden bytes"]


def test_two_files_do_not_share_their_bytes(tmp_path: Path) -> None:
    data = archive("one.py")
    at, end = data.index(b"PK\1\2"), data.rindex(b"PK\5\6")
    data[end:end] = data[at:end]
    data[-14:-6] = struct.pack("<2HL", 2, 2, 2 * (end - at))
    assert faults(data, tmp_path) == ["'one.py' overlaps another file"]
    data[-14:-10] = struct.pack("<2H", 3, 3)
    assert "its end record counts 3 files, its directory 2" in faults(data, tmp_path)


def test_records_begin_with_their_marks(tmp_path: Path) -> None:
    for mark, fault in ((b"PK\1\2", "the directory has an unknown record"), (b"PK\3\4", "is not where the directory")):
        data = archive("one.py")
        data[data.index(mark) + 3] = 9
        [found] = faults(data, tmp_path)
        assert found.startswith("its records contradict each other: ")
        assert fault in found


@pytest.mark.parametrize("cut", [1, 30, 46])
def test_a_directory_that_ends_too_early_contradicts_itself(cut: int, tmp_path: Path) -> None:
    data = archive("one.py")
    put(-10, struct.unpack("<L", data[-10:-6])[0] - cut, 4)(data)
    assert faults(data, tmp_path) != []


@pytest.mark.parametrize(("kind", "what"), [(0x0001, "size"), (0x7075, "name")])
def test_an_extra_field_does_not_say_again_what_a_record_says(kind: int, what: str, tmp_path: Path) -> None:
    extra = struct.pack("<2H2s", 0x9999, 2, b"ab") + struct.pack("<2H2s", kind, 2, b"ab")
    data = archive("one.py", extra=extra)
    [found] = faults(data, tmp_path)
    assert found.startswith("its records contradict each other: an extra field repeats the ")
    assert what in found
    hidden = bytearray(archive("one.py", extra=struct.pack("<2H2s", 0x9999, 2, b"ab") * 2))
    at = hidden.index(b"\x99\x99", hidden.index(b"one.py")) + 6  # before the file alone
    hidden[at : at + 2] = struct.pack("<H", kind)
    [found] = faults(hidden, tmp_path)
    assert what in found


@pytest.mark.parametrize("extra", [struct.pack("<2H", 0x9999, 5) + b"1234", b"\x99\x99", b"\x99\x99\1"])
def test_an_extra_field_is_whole(extra: bytes, tmp_path: Path) -> None:
    data = archive("one.py", extra=struct.pack("<2H", 0x9999, len(extra)) + bytes(len(extra)))
    for mark, size in ((b"PK\3\4", 30), (b"PK\1\2", 46)):
        at = data.index(mark) + size + len("one.py")
        data[at : at + 4 + len(extra)] = struct.pack("<2H", 0x9999, 0) + extra
    [found] = faults(data, tmp_path)
    assert found.startswith("its records contradict each other: ")


# sizes behind a file --------------------------------------------------------------------------------------------------


def unsigned(data: bytearray) -> bytearray:
    """Take away the mark before the sizes after the only file: both ways are allowed."""
    at = data.index(b"PK\7\x08")
    del data[at : at + 4]
    moved(data, -4)
    return data


@pytest.mark.parametrize("spelled", [bytearray, unsigned])
def test_sizes_behind_a_packed_file_count_with_or_without_their_mark(
    spelled: Callable[[bytearray], bytearray], tmp_path: Path
) -> None:
    data = spelled(archive("one.py", streamed=True))
    assert faults(data, tmp_path) == []
    at = data.index(b"PK\1\2")
    for back, field in ((12, "crc"), (8, "packed"), (4, "size")):
        changed = bytearray(data)
        changed[at - back] ^= 1
        assert faults(changed, tmp_path) == [f"'one.py' has a different {field} before the file than in the directory"]


def test_a_file_that_is_not_packed_says_before_it_where_it_ends(tmp_path: Path) -> None:
    data = archive("one.py", method=zipfile.ZIP_STORED, streamed=True)
    assert faults(data, tmp_path) == ["'one.py' does not state where it ends"]


def test_a_file_is_what_its_checksum_says_in_this_test(tmp_path: Path) -> None:
    """The directory of the archives above tells the truth, or their faults would be others."""
    data = archive("one.py", streamed=True)
    entry = data.index(b"PK\1\2")
    assert struct.unpack("<L", data[entry + 16 : entry + 20])[0] == zlib.crc32(b"# one.py\n" * 9)
    assert faults(archive(*NAMES, streamed=True), tmp_path) == []


def test_a_member_that_begins_beyond_the_end_is_damaged(tmp_path: Path) -> None:
    data = archive("one.py")
    (path := tmp_path / "x.zip").write_bytes(data)
    wheel = Archive(path)
    wheel.members[0].header_offset = len(data)
    with pytest.raises(NotAWheel, match=r"^one\.py: "):
        list(wheel.chunks(wheel.members[0]))
    wheel.close()
