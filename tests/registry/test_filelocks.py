"""Locks between processes, on every system: taken, shared, given back, and ended with whoever held them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from dragoman_registry import files

REGISTRY = Path(files.__file__).parents[1]
HOLDER = """
import sys, time
sys.path.append(sys.argv[1])
from pathlib import Path
from dragoman_registry import files
descriptor = files.try_lock(Path(sys.argv[2]), folder=sys.argv[3] == "folder")
print(descriptor, flush=True)
time.sleep(600)
"""


@pytest.fixture(params=["file", "folder"])
def place(request, tmp_path):
    path = tmp_path / "some" / "place"
    path.parent.mkdir()
    if request.param == "folder":
        path.mkdir()
        (path / "content").write_bytes(b"left alone")
    return path, request.param == "folder"


def test_a_lock_is_taken_once_and_can_be_taken_again_afterwards(place):
    path, folder = place
    first = files.try_lock(path, folder=folder)
    assert first is not None
    assert files.try_lock(path, folder=folder) is None
    os.close(first)
    again = files.try_lock(path, folder=folder)
    assert again is not None
    os.close(again)
    assert sorted(found.name for found in path.parent.iterdir()) == ["place"]


def test_many_share_a_folder_and_nobody_has_it_alone_meanwhile(tmp_path):
    shares = [files.share(tmp_path), files.share(tmp_path)]
    assert files.try_lock(tmp_path, folder=True) is None
    os.close(shares.pop())
    assert files.try_lock(tmp_path, folder=True) is None
    os.close(shares.pop())
    alone = files.try_lock(tmp_path, folder=True)
    assert alone is not None
    os.close(alone)


def test_whoever_waits_for_a_lock_gets_it(place):
    path, folder = place
    held, order = files.try_lock(path, folder=folder), []

    def wait():
        with files.locked(path):
            order.append("taken")

    waiting = Thread(target=wait)
    waiting.start()
    waiting.join(0.2)
    order.append("given back")
    os.close(held)
    waiting.join()
    assert order == ["given back", "taken"]


def test_a_lock_ends_with_the_process_that_held_it(place):
    path, folder = place
    command = [sys.executable, "-c", HOLDER, str(REGISTRY), str(path), "folder" if folder else "file"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline().strip() != "None"
        assert files.try_lock(path, folder=folder) is None
        holder.kill()
        holder.wait()
        with files.locked(path):
            pass


def test_a_folder_that_is_not_there_has_no_lock(tmp_path):
    for lock in (files.share, lambda path: files.try_lock(path, folder=True)):
        with pytest.raises(FileNotFoundError):
            lock(tmp_path / "nowhere")


def test_a_locked_file_is_written_renamed_and_removed_as_ever(tmp_path):
    path, other = tmp_path / "part", tmp_path / "final"
    other.write_bytes(b"old")
    descriptor = files.try_lock(path)
    with os.fdopen(descriptor, "r+b", buffering=0) as stream:
        stream.write(b"one\ntwo\n")
        assert path.read_bytes() == b"one\ntwo\n"
        assert files.holds(descriptor, path)
        path.replace(other)
        assert not files.holds(descriptor, path)
        other.unlink()
        assert not files.holds(descriptor, other)


def test_a_folder_that_was_put_in_the_place_of_a_locked_one_is_not_the_locked_one(tmp_path):
    folder = tmp_path / "tree"
    folder.mkdir()
    descriptor = files.share(folder)
    assert files.holds(descriptor, folder)
    folder.rename(tmp_path / "collected")
    assert not files.holds(descriptor, folder)
    os.close(descriptor)


def test_a_held_file_and_folder_are_known_by_their_path_until_another_takes_it(place):
    path, folder = place
    if not folder:
        path.write_bytes(b"")
    descriptor = files.open_folder(path) if folder else files.open_lock_file(path, mode=0o600)
    try:
        assert files.holds(descriptor, path) is True
        assert files.holds(descriptor, path.parent) is False
        path.rename(path.with_name("moved"))
        assert files.holds(descriptor, path) is False
        assert files.holds(descriptor, path.with_name("moved")) is True
    finally:
        os.close(descriptor)


def test_a_file_is_no_folder_and_a_link_is_not_followed(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        files.open_folder(file)
    (tmp_path / "link").symlink_to(file)
    with pytest.raises(OSError, match="symbolic links"):
        files.open_lock_file(tmp_path / "link", mode=0o600)
