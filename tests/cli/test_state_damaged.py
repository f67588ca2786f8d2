"""A damaged state database: every way it can be damaged, the command that the error names, and all is as before."""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import wheelhouse
from command_line import Machine
from dragoman_registry.client.installed_drivers import Store
from slow_cases import mostly_slow

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def statement(*statements: str) -> Callable[[Path], None]:
    def damage(state: Path) -> None:
        with closing(sqlite3.connect(state, isolation_level=None)) as database:
            for each in statements:
                database.execute(each)

    return damage


def truncate(size: float) -> Callable[[Path], None]:
    def damage(state: Path) -> None:
        with state.open("r+b") as file:
            file.truncate(int(state.stat().st_size * size))

    return damage


def garble(state: Path) -> None:
    """Overwrite every page but the first."""
    data = bytearray(state.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    state.write_bytes(data)


def folder(state: Path) -> None:
    state.unlink()
    state.mkdir()
    (state / "file").touch()


def pipe(state: Path) -> None:
    state.unlink()
    os.mkfifo(state)


def journal(state: Path) -> None:
    """Leave a journal that does not belong to it beside it."""
    state.write_bytes(b"garbage")
    state.with_name("state.db-journal").write_bytes(os.urandom(9000))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "nothing in it": lambda state: state.write_bytes(b""),
    "garbage": lambda state: state.write_bytes(os.urandom(9000)),
    "half of it": truncate(0.5),
    "its first bytes": lambda state: os.truncate(state, 50),
    "all but its last page": lambda state: os.truncate(state, state.stat().st_size - 4096),
    "garbled pages": garble,
    "a folder": folder,
    "a pipe": pipe,
    "a journal of another": journal,
    "no version": statement("PRAGMA user_version = 0"),
    "a version below": statement("PRAGMA user_version = -5"),
    "a table less": statement("DROP TABLE types"),
    "a column less": statement("ALTER TABLE plugins DROP COLUMN pin"),
    "another schema": statement("DROP TABLE generations", "CREATE TABLE generations (id INTEGER)"),
    "rows that say nothing": statement("UPDATE generations SET manifest = 'x'"),
    "rows of another kind": statement("UPDATE generations SET trees = 7, locked = x'00'"),
}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home in which a driver is installed in two versions, pinned, and another is disabled."""
    made = tmp_path_factory.mktemp("state")
    wheels = [wheelhouse.Driver(version=version).write(made / "w") for version in ("1.0.0", "1.1.0")]
    wheels.append(wheelhouse.Driver("off").write(made / "w"))
    house = Machine(made / "home")
    house("registry", "add", wheelhouse.registry(made / "team", wheels))
    (house.home / "config/connections.toml").write_text('[shop]\ntype = "demo"\n')
    house("plugins", "install", "demo", "--version", "1.0.0")
    house("plugins", "install", "demo", "--version", "1.1.0")
    house("plugins", "pin", "demo")
    house("plugins", "install", "off")
    house("plugins", "disable", "off")
    return made


@pytest.fixture
def house(pristine: Path, tmp_path: Path) -> Machine:
    wheelhouse.copy(pristine / "home", tmp_path / "home")
    return Machine(tmp_path / "home")


def paste(house: Machine, said: str, *, code: int = 0):
    [hint] = re.findall(r"^  try: (.*)$", said, re.MULTILINE)
    program, *words = shlex.split(hint)
    assert program == "dragoman"
    return house(*words, code=code)


@pytest.mark.parametrize(
    "kind",
    mostly_slow(
        DAMAGES,
        fast=["nothing in it", "garbled pages", "another schema"],
    ),
)
def test_the_command_that_is_named_puts_it_in_order(kind: str, house: Machine, pristine: Path):
    state = house.home / "data/state.db"
    DAMAGES[kind](state)
    done = house("objects", "shop", code=1)
    assert "error[state-damaged]" in done.err, done.err
    (pristine / "team").rename(pristine / "away")  # nothing has to be fetched
    try:
        done = paste(house, done.err)
        [aside] = [file for file in state.parent.glob("state.db.damaged-*") if not file.name.endswith("-journal")]
        assert str(aside) in done.out + done.err
        assert house("objects", "shop").out
    finally:
        (pristine / "away").rename(pristine / "team")
    store = Store(house.home / "data")
    assert [(one.plugin, one.version, one.pin, one.disabled) for one in store.installed()] == [
        ("demo", "1.1.0", "1.1.0", False), ("off", "1.0.0", None, True),
    ]  # fmt: skip
    assert store.active("demo").origin.publisher == "owner"
    assert house("plugins", "rollback", "demo").out
    assert house("plugins", "repair", "--json").json["repaired"] == []


@pytest.mark.parametrize(
    "verb", [["plugins", "list"], ["plugins", "pin", "demo", "1.0.0"], ["plugins", "install", "demo"]]
)
def test_every_command_names_the_same_remedy(verb, house: Machine):
    statement("DROP TABLE notes", "DROP TABLE plugins")(house.home / "data/state.db")
    assert "try: dragoman plugins repair\n" in house(*verb, code=1).err


@pytest.mark.slow
def test_without_its_copy_the_lock_says_what_to_fetch(house: Machine):
    data = house.home / "data"
    for name in ("state.db", "state.db.kept"):
        (data / name).write_bytes(b"garbage")
    done = paste(house, house("objects", "shop", code=1).err)
    assert "pins, disabled drivers and the versions to roll back to were lost" in done.err
    store = Store(data)
    assert [(one.plugin, one.version) for one in store.installed()] == [("demo", "1.1.0"), ("off", "1.0.0")]
    assert house("objects", "shop").out


@pytest.mark.slow
def test_without_copy_and_registry_it_says_what_is_left(house: Machine, pristine: Path):
    data = house.home / "data"
    for name in ("state.db", "state.db.kept"):
        (data / name).write_bytes(b"garbage")
    (pristine / "team").rename(pristine / "away")
    try:
        done = house("plugins", "repair", code=1)
        assert "demo" in done.out
        assert "there is no such folder" in done.out
    finally:
        (pristine / "away").rename(pristine / "team")
    assert house("plugins", "repair").out
    assert house("objects", "shop").out


def test_a_tree_that_is_damaged_too_is_fetched_again(house: Machine):
    store = Store(house.home / "data")
    [tree] = store.active("demo").trees
    file = tree / "dragoman_demo/driver.py"
    file.chmod(0o644)
    file.write_text("raise SystemExit")
    (house.home / "data/state.db").write_bytes(b"garbage")
    house("plugins", "repair")
    assert store.verify(store.active("demo")) == []


@pytest.mark.slow
def test_one_generation_that_cannot_be_read_stops_no_other_and_is_fetched_again(house: Machine):
    """Its names were fine for the version of dragoman that installed it, and are none for this one."""
    data = house.home / "data"
    renamed = "locked = replace(CAST(locked AS TEXT), '\"dragoman-demo\"', '\"Dragoman Demo\"')"
    for name in ("state.db", "state.db.kept"):
        statement(f"UPDATE generations SET {renamed} WHERE plugin = 'demo' AND version = '1.1.0'")(data / name)
    listed = house("plugins", "list")
    assert "off" in listed.out
    assert "demo 1.1.0 cannot be read\n  try: dragoman plugins repair" in listed.err
    house("plugins", "enable", "off")
    done = house("objects", "shop", code=1)
    assert "error[state-damaged]" in done.err
    assert "demo 1.1.0" in done.err
    assert "fetched  demo 1.1.0" in paste(house, done.err).out
    assert house("objects", "shop").out
    found = [(one.plugin, one.version, one.pin, one.disabled) for one in Store(data).installed()]
    assert found == [("demo", "1.1.0", "1.1.0", False), ("off", "1.0.0", None, False)]
    assert not list(data.glob("state.db.damaged-*"))
    assert "1.0.0" in house("plugins", "rollback", "demo").out
    assert house("plugins", "repair", "--json").json["repaired"] == []


@pytest.mark.slow
def test_one_that_cannot_be_read_and_is_not_locked_is_told(house: Machine):
    data = house.home / "data"
    for name in ("state.db", "state.db.kept"):
        statement("UPDATE generations SET manifest = '{}' WHERE plugin = 'off'")(data / name)
    Store(data).lock_file.unlink()
    done = house("plugins", "repair", code=1)
    assert "off 1.0.0 could not be read, and plugins.lock does not name it" in " ".join(done.out.split())
    assert house("objects", "shop").out
    assert "installed off 1.0.0" in paste(house, done.err).out


@pytest.mark.parametrize("column", ["manifest", "locked", "origin", "trees"])
def test_collecting_keeps_the_trees_of_a_generation_that_cannot_be_read(house: Machine, column: str):
    data = house.home / "data"
    [tree] = [tree for one in Store(data).generations("off") for tree in one.trees]
    statement(f"UPDATE generations SET {column} = 'x' WHERE plugin = 'off'")(data / "state.db")
    done = house("plugins", "gc", code=None)
    assert tree.is_dir()
    assert ("error[state-damaged]" in done.err) == (column == "trees")
