"""Collecting: nothing that is active, was active before, is pinned, is run from or is being installed goes away."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

import wheelhouse
from dragoman_api.errors import InstallError, PluginNotFoundError, RegistryError
from dragoman_registry.client import installed_drivers, state_db, trees
from dragoman_registry.client.installed_drivers import Store
from dragoman_registry.client.trees import leasing
from dragoman_registry.files import share, try_lock
from installing import Place, passes

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman_registry.wheels.manifest import Manifest

pytestmark = pytest.mark.slow

VERSIONS = ("1.0.0", "2.0.0", "3.0.0")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Have three versions installed, one after the other."""
    made = Place(tmp_path, [wheelhouse.Driver(version=version).write(tmp_path / "wheels") for version in VERSIONS])
    for version in VERSIONS:
        made.install(pinned=version)
    return made


def versions(place: Place) -> list[str]:
    return [one.version for one in place.store.generations("demo")]


def test_only_what_nobody_goes_back_to_is_collected(place: Place):
    oldest = place.store.generations("demo")[-1]
    size = sum(path.stat().st_size for path in oldest.trees[0].rglob("*") if path.is_file())
    for dry_run in (True, False):
        [one] = place.store.collect(dry_run=dry_run)
        assert (one.plugin, one.version, one.path, one.size) == ("demo", "1.0.0", oldest.trees[0], size)
        assert oldest.trees[0].exists() is dry_run
        assert versions(place) == (["3.0.0", "2.0.0", "1.0.0"] if dry_run else ["3.0.0", "2.0.0"])
    assert place.store.collect() == []
    assert place.leftovers() == []
    assert place.store.rollback("demo").version == "2.0.0"


def test_a_pinned_generation_stays(place: Place):
    place.store.set_pin("demo", version="1.0.0")
    assert place.store.collect() == []


def test_the_trees_of_a_removed_driver_are_collected(place: Place):
    place.store.remove("demo")
    assert len(place.store.collect()) == 3
    assert place.store.trees.digests() == []


def test_a_tree_that_two_drivers_share_stays_with_the_other(tmp_path: Path):
    library = wheelhouse.Wheel("tinylib", files={"tinylib/__init__.py": b""}).write(tmp_path / "wheels")
    drivers = [wheelhouse.Driver(name, dependencies=[wheelhouse.dependency(library)]) for name in ("one", "two")]
    for driver in drivers:
        driver.requires.append("tinylib")
    place = Place(tmp_path, [library, *(driver.write(tmp_path / "wheels") for driver in drivers)])
    one, two = place.install("one"), place.install("two")
    assert one.trees[1] == two.trees[1]
    place.store.remove("one")
    assert [entry.path for entry in place.store.collect()] == [one.trees[0]]
    assert place.store.verify(two) == []


def test_an_abandoned_tree_is_collected(place: Place):
    """A crash between keeping a tree and activating it leaves one that no generation names."""
    with place.store.trees.staging() as staging:
        (staging / "new").mkdir()
        digest = place.store.trees.keep(staging / "new")
    assert digest in [one.path.name for one in place.store.collect()]


HOLDER = """
import sys, time
from pathlib import Path
from dragoman_registry.client.installed_drivers import Store
from dragoman_registry.client.trees import leasing
with leasing(Store(Path(sys.argv[1])).generations("demo")[-1].trees):
    print("held", flush=True)
    time.sleep(50)
"""


def test_a_leased_tree_stays_until_its_holder_ends_also_by_a_crash(place: Place):
    command = [sys.executable, "-c", HOLDER, place.root / "home"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            assert place.store.collect() == place.store.collect(dry_run=True) == []
            assert versions(place)[-1] == "1.0.0"
        finally:
            holder.kill()
    assert [one.version for one in place.store.collect()] == ["1.0.0"]


def test_a_lease_on_what_was_collected_is_refused_and_creates_nothing(place: Place):
    gone = place.store.generations("demo")[-1].trees
    place.store.collect()
    with pytest.raises(RegistryError) as caught, leasing(gone):
        pass
    assert caught.value.code == "integrity-failed"
    assert str(gone[0]) in caught.value.message
    assert not gone[0].exists()


def test_what_was_collected_meanwhile_is_not_gone_back_to(place: Place, monkeypatch: pytest.MonkeyPatch):
    oldest = place.store.generations("demo")[-1]
    monkeypatch.setattr(place.store, "verify", lambda generation: [])
    place.store.collect()
    with pytest.raises(PluginNotFoundError, match=r"1\.0\.0"):
        place.store.reactivate(oldest)
    assert place.store.active("demo").version == "3.0.0"


def test_a_sweep_during_an_installation_waits_for_it(place: Place, tmp_path: Path):
    """The new tree has its name already, and no generation names it yet."""
    place.publish(wheelhouse.Driver(version="4.0.0").write(tmp_path / "w2"))
    swept: list[str] = []

    def sweep() -> None:
        swept.extend(one.version for one in place.store.collect())

    async def meanwhile(trees: tuple[Path, ...], manifest: Manifest) -> None:
        thread.start()
        await anyio.sleep(0.2)
        assert thread.is_alive()
        assert swept == []
        await passes(trees, manifest)

    thread = threading.Thread(target=sweep)
    made = anyio.run(partial(place.start, place.resolve(), smoke_test=meanwhile))
    thread.join(30)
    assert made.version == "4.0.0"
    assert place.store.verify(made) == []
    assert sorted(swept) == ["1.0.0", "2.0.0"]


RACE = """
import sys
from pathlib import Path
from dragoman_registry.client.installed_drivers import Store
store = Store(Path(sys.argv[1]))
while not Path(sys.argv[2]).exists():
    store.collect()
"""


@pytest.mark.slow
def test_installers_and_sweepers_never_take_anything_from_each_other(place: Place, tmp_path: Path):
    stop = tmp_path / "stop"
    sweepers = [subprocess.Popen([sys.executable, "-c", RACE, place.root / "home", stop]) for _ in range(2)]
    try:
        end, turns = time.monotonic() + 10, 0
        while time.monotonic() < end:
            for version in VERSIONS:
                made = place.install(pinned=version)
                with leasing(made.trees):
                    assert place.store.verify(made) == []
                    assert place.store.active("demo").trees[0].is_dir()
            turns += 1
        assert turns > 2
    finally:
        stop.touch()
        assert [sweeper.wait(30) for sweeper in sweepers] == [0, 0]


def test_killed_while_collecting_leaves_what_is_in_use_and_the_rest_for_the_next(place: Place):
    code = (
        "import os, sys, shutil; from pathlib import Path; from dragoman_registry.client import trees\n"
        "trees.remove_tree = lambda root: os._exit(9)\n"
        "from dragoman_registry.client.installed_drivers import Store; Store(Path(sys.argv[1])).collect()"
    )
    done = subprocess.run([sys.executable, "-c", code, place.root / "home"], check=False, timeout=50)
    assert done.returncode == 9
    assert versions(place) == ["3.0.0", "2.0.0"]
    assert all(place.store.verify(one) == [] for one in place.store.generations("demo"))
    assert len(place.leftovers()) == 1
    place.store.collect()
    with place.store.trees.staging():
        pass
    assert place.leftovers() == []


def test_after_an_installation_what_people_go_back_to_stays(place: Place, monkeypatch: pytest.MonkeyPatch):
    assert place.store.collect_unasked() == []
    monkeypatch.setattr(installed_drivers, "KEPT_UNASKED", 2)
    assert [one.version for one in place.store.collect_unasked()] == ["1.0.0"]
    assert place.store.rollback("demo").version == "2.0.0"


def test_an_installation_is_not_waited_for_unless_somebody_asked(place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(installed_drivers, "KEPT_UNASKED", 1)
    running = share(place.store.trees.folder)
    assert place.store.collect_unasked() == []
    os.close(running)
    assert len(place.store.collect_unasked()) == 2


def test_a_disk_that_fails_only_puts_the_unasked_collection_off(place: Place, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(installed_drivers, "KEPT_UNASKED", 1)
    monkeypatch.setattr(place.store, "_forget", refuse)
    assert place.store.collect_unasked() == []
    with pytest.raises(InstallError):
        place.store.collect()


def test_what_is_gone_back_to_just_before_it_is_forgotten_stays(place: Place, monkeypatch: pytest.MonkeyPatch):
    """Another process gets the state's lock between the choice and the transaction."""
    writing = place.store._writing

    def first_another(plugin: str | None) -> object:
        monkeypatch.setattr(place.store, "_writing", writing)
        Store(place.store.root).rollback("demo", version="1.0.0")
        return writing(plugin)

    monkeypatch.setattr(place.store, "_writing", first_another)
    assert [one.version for one in place.store.collect()] == ["2.0.0"]
    assert place.store.active("demo").version == "1.0.0"
    assert place.store.verify(place.store.active("demo")) == []


def test_locks_of_past_installations_go_unless_they_are_held_or_young(place: Place):
    old, held, young = (place.store.trees.installation_lock(name) for name in ("old", "held", "young"))
    for path in (old, held, young):
        path.touch()
    for path in (old, held):
        os.utime(path, (0, time.time() - trees.LOCK_KEPT - 60))
    descriptor = try_lock(held)
    assert descriptor is not None
    place.store.collect()
    assert (old.exists(), held.exists(), young.exists()) == (False, True, True)
    os.close(descriptor)
    place.store.collect(dry_run=True)
    assert held.exists()
    place.store.collect()
    assert (held.exists(), young.exists()) == (False, True)


def test_a_lock_with_a_new_note_stays(place: Place, monkeypatch: pytest.MonkeyPatch):
    """An installer takes it, fails and notes why, between the look at its age and the lock of the sweep."""
    path = place.store.trees.installation_lock("noted")
    path.touch()
    os.utime(path, (0, 0))

    def note_first(place: Path) -> int | None:
        path.write_text("why it failed")
        return try_lock(place)

    monkeypatch.setattr(trees, "try_lock", note_first)
    place.store.trees.sweep_locks()
    assert path.read_text() == "why it failed"


def test_damaged_databases_go_after_months_except_the_last(place: Place):
    home, stamp = place.store.root, "%Y%m%d-%H%M%S-%f"
    days = {name: (datetime.now(UTC) - timedelta(days=number)).strftime(stamp) for name, number in
            {"oldest": 400, "old": state_db.DAMAGED_DAYS + 1, "young": state_db.DAMAGED_DAYS - 1}.items()}  # fmt: skip
    others = [home / "state.db.damaged-by-me", home / "state.db.damaged-20200101"]
    for path in others:
        path.touch()
    aside = {name: home / f"state.db.damaged-{at}" for name, at in days.items()}
    aside["oldest"].write_bytes(b"12345")
    aside["oldest"].with_name(f"{aside['oldest'].name}-journal").touch()
    place.store.collect()
    assert aside["oldest"].exists(), "it is the last one"
    aside["old"].touch()
    place.store.collect()
    assert [path.exists() for path in aside.values()] == [False, True, False]
    assert not list(home.glob("*-journal"))
    aside["young"].touch()
    place.store.collect()
    assert [path.exists() for path in aside.values()] == [False, False, True]
    assert all(path.exists() for path in others)


def test_nothing_stays_of_a_place_that_cannot_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    store = Store(tmp_path)
    with pytest.raises(OSError, match="cannot lock files"), store.trees.staging():
        pass
    assert [*(tmp_path / "store/.tmp").iterdir()] == []


def test_a_place_without_anything_is_not_touched(tmp_path: Path):
    place = Place(tmp_path)
    assert place.store.collect() == []
    assert not (tmp_path / "home").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="another user is needed, who may not write")
def test_a_home_that_cannot_be_written_is_named(shared_path: Path):
    place = Place(shared_path, [wheelhouse.Driver(version=v).write(shared_path / "w") for v in VERSIONS])
    for version in VERSIONS:
        place.install(pinned=version)
    code = (
        "import os, sys, urllib.parse; from pathlib import Path\n"
        "from dragoman_registry.client.installed_drivers import Store; os.setuid(65534)\n"
        "try: Store(Path(sys.argv[1])).collect()\n"
        "except Exception as error: print(type(error).__name__, error.code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, place.root / "home"], check=False, capture_output=True, text=True, timeout=50
    )
    assert done.stdout == "InstallError install-failed\n", done.stderr
    assert len(place.store.generations("demo")) == 3
