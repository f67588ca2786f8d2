"""`plugins.lock` in detail: what covers a release, what narrows it, and what a file may leave out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from dragoman_api.errors import ConfigurationError
from dragoman_registry.client import lockfile
from dragoman_registry.index.catalog import Release
from dragoman_registry.wheels.wheel_file import WheelFile

if TYPE_CHECKING:
    from pathlib import Path


def wheel(name: str = "dragoman_demo-1.0.0-py3-none-any.whl", digest: str = "a", size: int = 9) -> WheelFile:
    return WheelFile(file=name, sha256=digest * 64, size=size)


def release(*wheels: WheelFile, dependencies: tuple[WheelFile, ...] = ()) -> Release:
    return Release(
        plugin="demo", project="dragoman-demo", version="1.0.0", host_api="~=1.0", permissions=(), manifest_sha256="",
        wheels=wheels, dependencies=dependencies,
    )  # fmt: skip


ONE, OTHER = wheel(), wheel("dragoman_demo-1.0.0-cp312-cp312-linux_x86_64.whl", "b")
LIB = wheel("lib-1-py3-none-any.whl", "c")


def test_a_file_without_dependencies_locks_a_driver_without_any(tmp_path: Path):
    """Older files have no such member."""
    path = tmp_path / lockfile.NAME
    path.write_bytes(lockfile.updated(path, "demo", lockfile.lock_release(release(ONE))))
    kept = json.loads(path.read_text())
    del kept["plugins"]["demo"]["dependencies"]
    path.write_text(json.dumps(kept))
    [locked] = lockfile.read(path).values()
    assert locked.dependencies == ()
    assert locked.covers(release(ONE))
    assert not locked.covers(release(ONE, dependencies=(LIB,)))


@pytest.mark.parametrize("name", ["project", "version", "wheels"])
def test_a_file_without_anything_else_is_damaged(tmp_path: Path, name: str):
    path = tmp_path / lockfile.NAME
    path.write_bytes(lockfile.updated(path, "demo", lockfile.lock_release(release(ONE))))
    kept = json.loads(path.read_text())
    del kept["plugins"]["demo"][name]
    path.write_text(json.dumps(kept))
    with pytest.raises(ConfigurationError):
        lockfile.read(path)


def test_the_lock_of_a_release_has_every_wheel_with_its_bytes():
    locked = lockfile.lock_release(release(ONE, OTHER, dependencies=(LIB,)))
    assert (locked.project, locked.version) == ("dragoman-demo", "1.0.0")
    assert [(each.file, each.sha256, each.size) for each in (*locked.wheels, *locked.dependencies)] == [
        (each.file, each.sha256, each.size) for each in (ONE, OTHER, LIB)
    ]
    assert locked.dependencies[0].file == LIB.file


def test_a_lock_covers_exactly_its_files_in_any_order():
    locked = lockfile.lock_release(release(ONE, OTHER, dependencies=(LIB,)))
    assert locked.covers(release(OTHER, ONE, dependencies=(LIB,)))
    for other in (
        release(ONE, dependencies=(LIB,)), release(ONE, OTHER),
        release(ONE, wheel(OTHER.file, "d"), dependencies=(LIB,)),
        release(ONE, OTHER, wheel("x-1-py3-none-any.whl"), dependencies=(LIB,)),
        release(ONE, OTHER, dependencies=(wheel(LIB.file, "d"),)),
    ):  # fmt: skip
        assert not locked.covers(other)


def test_a_release_is_narrowed_to_what_was_locked():
    """Wheels that were added later are left out; where one is missing, the release stays as it is and is refused."""
    later, lib2 = wheel("dragoman_demo-1.0.0-cp313-cp313-linux_x86_64.whl", "e"), wheel("lib2-1-py3-none-any.whl", "f")
    locked = lockfile.lock_release(release(ONE, dependencies=(LIB,)))
    assert locked.narrow(release(ONE, dependencies=(LIB,))) == release(ONE, dependencies=(LIB,))
    assert locked.narrow(release(ONE, later, dependencies=(LIB, lib2))) == release(ONE, dependencies=(LIB,))
    assert locked.narrow(release(later, dependencies=(LIB,))) == release(later, dependencies=(LIB,))
    changed = release(wheel(ONE.file, "d"), dependencies=(LIB,))
    assert locked.narrow(changed) == changed


def test_removing_what_is_not_there_changes_nothing(tmp_path: Path):
    path = tmp_path / lockfile.NAME
    path.write_bytes(lockfile.updated(path, "demo", lockfile.lock_release(release(ONE))))
    before = path.read_bytes()
    path.write_bytes(lockfile.updated(path, "other", None))
    assert path.read_bytes() == before
    assert before.endswith(b"}\n")
    assert b'\n  "lock_version": 1,' in before


def test_a_lock_file_has_a_bound(tmp_path: Path):
    path = tmp_path / lockfile.NAME
    text = '{"lock_version": 1, "plugins": {}}'
    path.write_text(text + " " * (lockfile.MAX_LOCK - len(text)))
    assert lockfile.read(path) == {}
    path.write_text(text + " " * (lockfile.MAX_LOCK - len(text) + 1))
    with pytest.raises(ConfigurationError):
        lockfile.read(path)
    assert lockfile.MAX_LOCK == 16 << 20
