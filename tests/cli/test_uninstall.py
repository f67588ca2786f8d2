"""`dragoman uninstall`: what dragoman wrote goes, what is a person's stays, and an interruption costs nothing."""

from __future__ import annotations

import os
import re
from functools import partial
from typing import TYPE_CHECKING

import pytest
from anyio.to_thread import run_sync

import wheelhouse
from command_line import Machine
from dragoman import Runtime
from dragoman.cli import uninstall
from dragoman.cli.options import Options
from dragoman.folders import find_paths, sole_use
from dragoman_api.errors import ConfigurationError
from dragoman_api.installation import removal_command
from dragoman_registry.files import remove_tree
from stranger import serve_sample

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def used(tmp_path_factory) -> Path:
    """A home after an hour of use: every file that the usual commands write is there."""
    home = tmp_path_factory.mktemp("used") / "home"
    machine = Machine(home)
    with serve_sample() as port:
        machine(f"dragoman connections add shop --type elasticsearch --port {port} --auth none --yes")
        machine("dragoman page shop books --limit 1")
        machine("dragoman plugins update --yes")
        machine.process("dragoman open shop", typed="objects\n")
    machine("dragoman queries save shop cheap books --filter 'price < 5'")
    (home / "config/config.toml").write_text("[guards]\naudit = true\n")
    return home


@pytest.fixture
def machine(home, used) -> Machine:
    return Machine(wheelhouse.copy(used, home))


def entries(home: Path) -> list[str]:
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if "store/" not in str(path))


@pytest.mark.slow
def test_everything_goes_and_the_last_line_says_how_the_package_goes(machine, home):
    assert (home / "data/store/trees").is_dir()
    ended = machine("dragoman uninstall --yes")
    assert not home.exists()
    assert re.search(r"installed drivers +[0-9.]+ [kM]B +", ended.out)
    assert ended.err.splitlines()[-1].strip() == f"the package itself: {removal_command()}"
    assert "keeps nothing" in machine("dragoman uninstall --yes").said


def test_a_dry_run_shows_the_same_with_sizes_and_removes_nothing(machine, home):
    before = entries(home)
    document = machine("dragoman uninstall --dry-run --json").json
    assert document["dry_run"]
    assert entries(home) == before
    drivers = next(part for part in document["removed"] if part["what"] == "installed drivers")
    files = [path for path in (home / "data/store").rglob("*") if path.is_file()]
    assert drivers == {
        "what": "installed drivers", "paths": [str(home / "data/store")],
        "bytes": sum(path.stat().st_size for path in files),
    }  # fmt: skip
    assert document["staying"] == []
    gone = machine("dragoman uninstall --yes --json").json
    assert gone == document | {"dry_run": False}
    assert not home.exists()


def test_without_consent_nothing_is_removed(machine, home):
    before = entries(home)
    ended = machine("dragoman uninstall", code=1)
    assert "dragoman uninstall --yes" in ended.err
    assert entries(home) == before


def test_connections_stay_where_they_are_kept(machine, home):
    kept = {path: path.read_bytes() for path in (home / "config").iterdir()}
    document = machine("dragoman uninstall --yes --keep-connections --json").json
    assert {path: path.read_bytes() for path in (home / "config").iterdir()} == kept
    assert document["staying"] == sorted(map(str, kept))
    assert [path.name for path in home.iterdir()] == ["config"]
    assert [one["name"] for one in machine("dragoman connections list --json").json["connections"]] == ["shop"]


def test_what_is_a_persons_own_stays_and_is_named(machine, home):
    """DRAGOMAN_HOME may name a folder in which a person has a `data` folder."""
    own = [home / name for name in ("config/author.pem", "data/orders.ndjson", "data/store.bak", "state/notes.txt",
                                    "config/connections.toml.bak", "mine.parquet", "data/state.database")]  # fmt: skip
    for path in own:
        path.write_text("mine")
    elsewhere = home.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("mine")
    remove_tree(home / "data/tuf")
    (home / "data/tuf").symlink_to(elsewhere)
    ended = machine("dragoman uninstall --yes")
    assert sorted(path for path in home.rglob("*") if path.is_file()) == sorted(own)
    assert (elsewhere / "file").read_text() == "mine"
    assert not os.path.lexists(home / "data/tuf")
    for path in own:
        assert (f"stays: {path}" in ended.err) == (path.parent != home)


def test_what_has_a_name_like_a_file_of_dragoman_stays(machine, home):
    own = [home / name for name in ("state/workbench/notes", "data/state.db.backup-of-mine", "config/config.toml",
                                    "data/state.db-mine")]  # fmt: skip
    (home / "state/workbench").mkdir(exist_ok=True)
    for path in own:
        path.write_text('[project]\nname = "mine"\n')
    gone = ("data/state.db.damaged-20260101-000000-000000", "data/state.db-wal", "state/workbench/history-shop.json")
    for name in gone:
        (home / name).write_text("")
    (home / "state/workbench/uploads-1").mkdir()
    ended = machine("dragoman uninstall --yes")
    assert sorted(path for path in home.rglob("*") if path.is_file()) == sorted(own)
    assert str(home / "data/store/") in ended.out
    assert all(f"stays: {path}" in ended.err for path in own)


def test_a_folder_of_the_workbench_that_is_a_link_is_not_followed(machine, home):
    elsewhere = home.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "preferences.json").write_text("mine")
    (home / "state/workbench").symlink_to(elsewhere)
    assert f"stays: {home / 'state/workbench'}" in machine("dragoman uninstall --yes").err
    assert (elsewhere / "preferences.json").read_text() == "mine"


def test_nobody_waits_for_the_answer_and_what_came_meanwhile_is_asked_for_again(machine, home, monkeypatch):
    asked, later = [], home / "data/links.json"
    later.unlink(missing_ok=True)

    def work_on() -> None:
        with sole_use(find_paths(home)):
            later.write_text("{}")
            (home / "cache/host-imports.json").unlink(missing_ok=True)

    async def agree(self, text, *, instead):
        asked.append(text)
        await run_sync(work_on)

    monkeypatch.setattr(Options, "agree", agree)
    ended = machine("dragoman uninstall")
    assert len(asked) == 2
    assert str(later) in ended.out
    assert "with everything in them" in asked[0]
    assert not home.exists()


@pytest.mark.slow
@pytest.mark.parametrize("count", range(8))
def test_an_interruption_at_any_step_leaves_a_home_that_works_and_the_next_run_finishes(
    machine, home, monkeypatch, count
):
    removals = iter(range(count))
    remove = uninstall._remove

    def interrupted(path: Path) -> None:
        if next(removals, None) is None:
            raise KeyboardInterrupt
        remove(path)

    monkeypatch.setattr(uninstall, "_remove", interrupted)
    machine("dragoman uninstall --yes", code=130)
    assert home.exists()
    monkeypatch.undo()
    for driver in machine("dragoman plugins list --json").json["plugins"]:  # no driver is left that is half there
        machine(f"dragoman plugins verify {driver['id']}")
    machine("dragoman uninstall --yes")
    assert not home.exists()


async def test_it_refuses_while_a_process_uses_these_files(machine, home):
    before = entries(home)
    async with Runtime(home, spare=False):
        ended = await run_sync(partial(machine.process, "dragoman uninstall --yes", code=1))
    assert f"process {os.getpid()}" in ended.err
    assert entries(home) == before
    async with Runtime(home, spare=False) as runtime:
        pass
    with sole_use(find_paths(home)), pytest.raises(ConfigurationError, match="is removing"):
        async with runtime:
            pass


async def test_a_first_use_of_an_empty_home_counts_as_use(home):
    async with Runtime(home, spare=False):
        (home / "config").mkdir()
        (home / "config/connections.toml").write_text("")
        ended = await run_sync(partial(Machine(home).process, "dragoman uninstall --yes", code=1))
    assert "nothing was removed" in ended.err
    assert (home / "config/connections.toml").exists()


def test_what_cannot_be_removed_is_named(machine, home, monkeypatch):
    monkeypatch.setattr("dragoman_registry.files.remove_tree", lambda path: None)
    ended = machine("dragoman uninstall --yes --json", code=2)
    assert str(home / "data/store") in ended.err
    monkeypatch.undo()
    machine("dragoman uninstall --yes")
    assert not home.exists()
