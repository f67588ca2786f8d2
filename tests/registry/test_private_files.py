"""Files of people are private where their source was: what is made of a file, or replaces it, opens it to nobody."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from dragoman_registry import files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MODES = (0o600, 0o640, 0o644, 0o664, 0o400, 0o444, 0o604, 0o755, 0o666)
OTHER_GROUP = 54321


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def beside(source: Path) -> int:
    file = source.with_name("new")
    with files.open_new(file, mode=files.mode_beside(file, source=source)):
        return stat.S_IMODE(file.stat().st_mode)


def from_descriptor(source: Path) -> int:
    file = source.with_name("new")
    with source.open("rb") as stream, files.open_new(file, mode=files.mode_beside(file, source=stream.fileno())):
        return stat.S_IMODE(file.stat().st_mode)


def replaced(source: Path) -> int:
    files.write(source, b"new")
    return stat.S_IMODE(source.stat().st_mode)


WAYS = (beside, from_descriptor, replaced)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", MODES)
def test_nobody_reads_the_new_file_who_cannot_read_the_old_one(
    tmp_path: Path, way: Callable[[Path], int], mode: int
) -> None:
    source = tmp_path / "old"
    source.write_bytes(b"old")
    source.chmod(mode)
    assert way(source) == 0o600 | (mode & 0o044)


@pytest.mark.parametrize("way", [beside, from_descriptor])
def test_members_of_another_group_get_the_rights_of_all_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Callable[[Path], int]
) -> None:
    source = tmp_path / "old"
    source.write_bytes(b"old")
    source.chmod(0o640)
    monkeypatch.setattr(os, "getegid", lambda: OTHER_GROUP)
    assert way(source) == 0o600


def test_a_folder_that_sets_the_group_decides_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "old"
    source.write_bytes(b"old")
    source.chmod(0o640)
    tmp_path.chmod(0o2755)
    monkeypatch.setattr(os, "getegid", lambda: OTHER_GROUP)
    assert files.mode_beside(tmp_path / "new", source=source) == 0o640


def test_a_replaced_file_keeps_its_group_or_loses_the_rights_of_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid():
        pytest.skip("only root gives files away")
    file = tmp_path / "old"
    file.write_bytes(b"old")
    file.chmod(0o640)
    os.chown(file, -1, OTHER_GROUP)
    files.write(file, b"new")
    assert (file.stat().st_gid, stat.S_IMODE(file.stat().st_mode)) == (OTHER_GROUP, 0o640)

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refuse)
    files.write(file, b"newer")
    assert (file.stat().st_gid, stat.S_IMODE(file.stat().st_mode)) == (os.getegid(), 0o600)


@pytest.mark.parametrize("way", WAYS)
def test_the_bits_of_an_access_list_are_not_those_of_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Callable[[Path], int]
) -> None:
    source = tmp_path / "old"
    source.write_bytes(b"old")
    source.chmod(0o660)
    monkeypatch.setattr(os, "getxattr", lambda *_: b"list", raising=False)
    assert way(source) == 0o600


def test_what_comes_from_a_pipe_or_from_memory_is_private(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        assert files.mode_beside(tmp_path / "new", source=reading) == 0o600
        assert files.mode_beside(tmp_path / "new", source=None) == 0o600
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("mode", [0o600, 0o666])
def test_a_new_file_has_the_mode_that_the_umask_narrows(tmp_path: Path, mode: int) -> None:
    files.write(tmp_path / "new", b"", mode=mode)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == mode & ~0o022


def test_a_frozen_folder_is_read_only_at_every_depth_below_itself(tmp_path: Path) -> None:
    for folder in (tmp_path / "a" / "b", tmp_path / "c"):
        folder.mkdir(parents=True)
        (folder / "f").touch()
    (tmp_path / "g").touch()
    before = stat.S_IMODE(tmp_path.stat().st_mode)
    files.freeze(tmp_path)
    assert [stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*") if path.is_dir()] == [0o555] * 3
    assert [stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*") if path.is_file()] == [0o444] * 3
    assert stat.S_IMODE(tmp_path.stat().st_mode) == before


REMOVE = """
import os, sys
from pathlib import Path
from dragoman_registry.files import remove_tree
if os.getuid() == 0:
    os.setuid(65534)
root = Path(sys.argv[1], "tree")
(root / "closed" / "inner").mkdir(parents=True)
(root / "closed" / "inner" / "file").touch()
(root / "link").symlink_to(sys.argv[1])
for folder in (root / "closed" / "inner", root / "closed", root):
    folder.chmod(0)
before = os.stat(sys.argv[1]).st_mode
remove_tree(root)
print(os.path.lexists(root), os.stat(sys.argv[1]).st_mode == before)
"""


def test_a_folder_that_is_closed_even_to_its_owner_is_removed(shared_path: Path) -> None:
    shared_path.chmod(0o777)
    command = [sys.executable, "-c", REMOVE, str(shared_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    assert (done.stdout, done.stderr) == ("False True\n", "")
