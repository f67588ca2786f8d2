"""Drafts of files that a killed process was replacing: the next writer of the file removes them, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from dragoman.sandbox.reach.address_history import AddressHistory
from dragoman.settings import change_file
from dragoman_registry.client.installed_drivers import Store
from dragoman_registry.ip_addresses import Nearness

if TYPE_CHECKING:
    from pathlib import Path

KILLED = """
import os, sys
from pathlib import Path
from dragoman_registry.files import replacing
with replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), 9)
"""
OWN = ("state.db.kept", "state.db", "plugins.lock", "links.json")
OTHERS = (
    ".state.db.kept.tmp",
    ".state.db.kept.new.tmp",
    ".notes.0123456789ab.tmp",
    "state.db.kept.0123456789ab.tmp",
    ".state.db-0123456789ab.tmp",
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "data")
    made.change_note("a", lambda _: 1)
    return made


def kill_while_replacing(file: Path) -> Path:
    """Return the draft that is left."""
    before = {*file.parent.iterdir()}
    subprocess.run([sys.executable, "-c", KILLED, file], check=False, timeout=30)
    [draft] = {*file.parent.iterdir()} - before
    assert draft.read_bytes() == b"half"
    return draft


def planted(store: Store) -> tuple[set[Path], set[Path]]:
    """Leave drafts of today and of before, and what only looks like them."""
    dead = {store.root / f".{name}.0123456789ab.tmp" for name in OWN}
    others = {store.root / name for name in OTHERS}
    for path in dead | others:
        path.write_bytes(b"half")
    (store.root / ".state.db.00000000000a.tmp").mkdir()
    return dead | {kill_while_replacing(store.root / "state.db.kept")}, others | {
        store.root / ".state.db.00000000000a.tmp"
    }


def test_they_are_collected_with_what_nobody_uses(store: Store):
    dead, others = planted(store)
    assert {one.path for one in store.collect(dry_run=True)} == dead
    assert all(path.exists() for path in dead)
    found = store.collect()
    assert {(one.path, one.size, one.plugin) for one in found} == {(path, 4, "") for path in dead}
    assert not [path for path in dead if path.exists()]
    assert all(path.exists() for path in others)
    assert store.collect() == []
    assert store.note("a") == 1


def test_each_change_removes_those_of_the_state(store: Store):
    dead, others = planted(store)
    store.change_note("a", lambda _: 2)
    assert not [path for path in dead if path.exists()]
    assert all(path.exists() for path in others)


def test_nothing_is_collected_where_there_is_nothing(tmp_path: Path):
    assert Store(tmp_path / "none").collect() == []
    assert not (tmp_path / "none").exists()


def test_what_is_remembered_of_addresses_leaves_none(tmp_path: Path):
    reached = AddressHistory(tmp_path / "reached.json")
    draft = kill_while_replacing(tmp_path / "reached.json")
    reached.note("shop", {"h": Nearness.PUBLIC})
    assert not draft.exists()


def test_drafts_with_secrets_go_with_the_next_change(tmp_path: Path):
    file = tmp_path / "secrets.toml"
    drafts = [kill_while_replacing(file), kill_while_replacing(file)]
    change_file(file, lambda _: b"new")
    assert file.read_bytes() == b"new"
    assert not [draft for draft in drafts if draft.exists()]
