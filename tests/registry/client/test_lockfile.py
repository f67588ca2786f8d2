"""`plugins.lock`: readable, written as a whole, and never overwritten when somebody broke it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from dragoman_api.errors import ConfigurationError
from dragoman_registry.client import lockfile

if TYPE_CHECKING:
    from pathlib import Path

ENTRY = lockfile.Locked(
    project="dragoman-demo",
    version="1.0.0",
    wheels=(lockfile.LockedFile(file="dragoman_demo-1.0.0-py3-none-any.whl", sha256="a" * 64, size=9),),
)


def test_what_was_written_is_read_back(tmp_path: Path):
    path = tmp_path / lockfile.NAME
    path.write_bytes(lockfile.updated(path, "demo", ENTRY))
    path.write_bytes(lockfile.updated(path, "other", ENTRY))
    assert lockfile.read(path) == {"demo": ENTRY, "other": ENTRY}
    path.write_bytes(lockfile.updated(path, "other", None))
    assert lockfile.read(path) == {"demo": ENTRY}


def test_the_text_is_the_same_whatever_the_order(tmp_path: Path):
    first, second = tmp_path / "1", tmp_path / "2"
    for path, names in ((first, "ab"), (second, "ba")):
        for name in names:
            path.write_bytes(lockfile.updated(path, name, ENTRY))
    assert first.read_bytes() == second.read_bytes()
    assert json.loads(first.read_text())["plugins"]["a"]["version"] == "1.0.0"


def test_no_file_locks_nothing(tmp_path: Path):
    assert lockfile.read(tmp_path / "none") == {}


BROKEN = ["", "{", '{"lock_version": 2}', '{"plugins": {"a": {"version": "1"}}}', "<<<<<<< HEAD"]
BROKEN += ['{"plugins": ' + "[" * 100_000, '{"lock_version": ' + "9" * 5_000 + "}", '{"plugins": {"\udcff": 1}}']


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: text[:32])
def test_a_damaged_lock_is_an_error_and_stays_as_it_is(text: str, tmp_path: Path):
    path = tmp_path / lockfile.NAME
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(ConfigurationError) as caught:
        path.write_bytes(lockfile.updated(path, "demo", ENTRY))
    assert str(path) in caught.value.message
    assert caught.value.hint
    assert path.read_text(errors="surrogateescape") == text
