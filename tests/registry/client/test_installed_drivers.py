"""What is installed: trees that cannot change unnoticed, and one pointer per plugin."""

from __future__ import annotations

import errno
import hashlib
import os
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import wheelhouse
from dragoman_api.errors import ConfigurationError, InstallError, PluginNotFoundError, RegistryError
from dragoman_api.installation import upgrade_command
from dragoman_registry.client import lockfile
from dragoman_registry.client.installed_drivers import Store
from dragoman_registry.client.trees import Trees
from dragoman_registry.names import LISTING
from installing import Place

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Place:
    wheels = tmp_path / "wheels"
    return Place(tmp_path, [wheelhouse.Driver(version=version).write(wheels) for version in ("1.0.0", "2.0.0")])


def test_nothing_is_written_by_looking(tmp_path: Path):
    store = Store(tmp_path / "nowhere")
    assert (store.active("demo"), store.installed(), store.generations("demo"), store.pin_of("demo")) == (
        None,
        [],
        [],
        None,
    )
    assert not (tmp_path / "nowhere").exists()


def test_an_installed_driver_is_found_by_plugin_and_by_type(place: Place):
    wheel = wheelhouse.Driver("acme", types=[{"name": "acmedb", "label": "AcmeDB"}]).write(place.root / "wheels")
    place.publish(wheel)
    made = place.install("acme")
    assert place.store.active("acme") == place.store.active("acmedb") == made
    assert place.store.active("other") is None
    assert (made.plugin, made.version, made.label, made.active) == ("acme", "1.0.0", "Acme Driver", True)
    assert made.sha256 == wheelhouse.dependency(wheel)["sha256"]
    assert made.registry == "team"


def test_a_tree_is_read_only_and_its_files_are_those_of_the_wheel(place: Place):
    [tree] = (place.install()).trees
    modes = {stat.S_IMODE(path.stat().st_mode) for path in [tree, *tree.rglob("*")] if path.is_dir()}
    assert modes == {0o555}
    assert {stat.S_IMODE(path.stat().st_mode) for path in tree.rglob("*") if path.is_file()} == {0o444}
    members = wheelhouse.Driver(version="2.0.0").members()
    assert all((tree / name).read_bytes() == data for name, data in members.items())


@pytest.mark.usefixtures("compiles_anew")
def test_the_same_content_has_the_same_digest_everywhere(place: Place, tmp_path: Path):
    here = place.install()
    other = Place(tmp_path / "other", [tmp_path / "wheels/dragoman_demo-2.0.0-py3-none-any.whl"])
    assert (other.install()).trees[0].name == here.trees[0].name


@pytest.mark.parametrize("damage", ["change", "remove", "add", "link", "listing"])
def test_verify_names_the_bad_file(damage: str, place: Place):
    generation = place.install()
    assert place.store.verify(generation) == []
    [tree] = generation.trees
    path = tree / "dragoman_demo/driver.py"
    for writable in (path.parent, path, tree, tree / LISTING):
        writable.chmod(0o755)
    if damage == "change":
        path.write_text("evil")
    elif damage == "remove":
        path.unlink()
    elif damage == "add":
        path = path.with_name("more.py")
        path.write_text("")
    elif damage == "link":
        path.rename(place.root / "copy")
        path.symlink_to(place.root / "copy")
    else:
        path = tree / LISTING
        path.write_text("{}")
    [fault] = place.store.verify(generation)
    assert fault.where == str(path)
    assert str(path) in str(fault)


@pytest.mark.parametrize("listing", [b"{", b'{"\xb2":""}', b'{"a":' * 5_000, b"[]"])
def test_a_listing_that_nobody_wrote_so_is_a_fault_of_its_tree(listing: bytes, place: Place):
    trees = place.store.trees
    digest = hashlib.sha256(listing).hexdigest()
    trees.path(digest).mkdir(parents=True)
    (trees.path(digest) / LISTING).write_bytes(listing)
    [fault] = trees.verify(digest)
    assert (fault.code, fault.where) == ("unreadable", str(trees.path(digest) / LISTING))


def test_a_damaged_tree_is_repaired_by_installing_again(place: Place):
    generation = place.install()
    path = generation.trees[0] / "dragoman_demo/driver.py"
    path.chmod(0o644)
    path.write_text("evil")
    again = place.install()
    assert place.store.verify(again) == []
    assert again.trees == generation.trees
    assert place.leftovers() == []


def test_the_previous_generation_stays_and_rollback_is_a_pointer(place: Place):
    old = place.install(pinned="1.0.0")
    new = place.install()
    assert [entry.version for entry in place.store.generations("demo")] == ["2.0.0", "1.0.0"]
    back = place.store.rollback("demo")
    assert (back.version, back.id, back.trees) == ("1.0.0", old.id, old.trees)
    assert place.store.active("demo") == back
    assert lockfile.read(place.store.lock_file)["demo"].version == "1.0.0"
    assert place.store.rollback("demo").id == new.id
    assert place.store.rollback("demo", version="1.0.0").id == old.id


def test_there_is_no_way_back_to_what_was_never_there(place: Place):
    place.install()
    for version in (None, "9.9", "2.0.0"):
        with pytest.raises(PluginNotFoundError, match="demo") as caught:
            place.store.rollback("demo", version=version)
        assert (version or "") in caught.value.message


def test_a_damaged_generation_is_not_rolled_back_to(place: Place):
    old = place.install(pinned="1.0.0")
    new = place.install()
    (old.trees[0] / "dragoman_demo/driver.py").chmod(0o644)
    (old.trees[0] / "dragoman_demo/driver.py").write_text("evil")
    with pytest.raises(RegistryError, match=r"driver\.py") as caught:
        place.store.rollback("demo")
    assert caught.value.code == "integrity-failed"
    assert place.store.active("demo") == new


def test_a_generation_knows_whether_it_fits_another_version_of_the_api(place: Place):
    generation = place.install()
    assert generation.api == place.host.api
    assert [generation.fits(api) for api in (generation.api, "1.9", "2.0")] == [True, True, False]


def test_disabling_pinning_and_removing(place: Place):
    place.install()
    place.store.set_disabled("demo", disabled=True)
    assert place.store.active("demo").disabled
    place.store.set_disabled("demo", disabled=False)
    assert not place.store.active("demo").disabled
    place.store.set_pin("demo", version="2.0.0")
    place.store.set_pin("later", version="1.0.0")
    assert (place.store.active("demo").pin, place.store.pin_of("later"), place.store.pin_of("x")) == (
        "2.0.0",
        "1.0.0",
        None,
    )
    place.store.set_pin("demo", version=None)
    assert place.store.active("demo").pin is None
    assert place.store.remove("demo").version == "2.0.0"
    assert place.store.active("demo") is None
    assert place.store.installed() == []
    assert lockfile.read(place.store.lock_file) == {}


def test_what_is_not_installed_cannot_be_changed(place: Place):
    place.install()
    with pytest.raises(PluginNotFoundError, match="other"):
        place.store.remove("other")
    with pytest.raises(PluginNotFoundError, match="other"):
        place.store.set_disabled("other", disabled=True)


def test_a_type_is_not_taken_from_an_installed_plugin(place: Place, tmp_path: Path):
    mine = place.install()
    squatter = wheelhouse.Driver("squat", types=[{"name": "demo", "label": "Demo"}]).write(tmp_path / "w2")
    other = Place(tmp_path / "other", [squatter])
    other.store = place.store
    with pytest.raises(InstallError) as caught:
        other.install("squat")
    assert caught.value.hint == "dragoman plugins remove demo"
    assert place.store.installed() == [mine]


@pytest.fixture
def pair(tmp_path: Path) -> Place:
    """Return where two drivers can be installed, each for two types; the newer version of one serves another pair."""
    wheels = tmp_path / "wheels"
    library = wheelhouse.Wheel("tinylib", files={"tinylib/__init__.py": b""}).write(wheels)

    def driver(name: str, version: str, *types: str) -> Path:
        kinds = [{"name": kind, "label": kind.title()} for kind in types]
        made = wheelhouse.Driver(name, version=version, types=kinds, dependencies=[wheelhouse.dependency(library)])
        return made.write(wheels)

    place = Place(tmp_path, [library, driver("one", "1.0.0", "a", "b"), driver("two", "1.0.0", "c", "d")])
    place.publish(driver("one", "2.0.0", "b", "e"))
    return place


def serving(place: Place) -> dict[str, str | None]:
    """Return which driver serves each type."""
    found = {kind: place.store.active(kind) for kind in "abcde"}
    return {kind: generation and generation.plugin for kind, generation in found.items()}


def test_every_type_of_a_version_is_its_drivers_and_those_of_the_version_before_are_not(pair: Place):
    pair.install("one", pinned="1.0.0")
    pair.install("two")
    assert serving(pair) == {"a": "one", "b": "one", "c": "two", "d": "two", "e": None}
    pair.install("one")
    assert serving(pair) == {"a": None, "b": "one", "c": "two", "d": "two", "e": "one"}
    pair.store.rollback("one")
    assert serving(pair) == {"a": "one", "b": "one", "c": "two", "d": "two", "e": None}
    pair.store.remove("two")
    assert serving(pair) == {"a": "one", "b": "one", "c": None, "d": None, "e": None}


@pytest.mark.parametrize("types", [("x", "b"), ("b", "x"), ("x", "y", "a")])
def test_no_type_of_several_is_taken_from_an_installed_plugin(pair: Place, tmp_path: Path, types: tuple[str, ...]):
    pair.install("one", pinned="1.0.0")
    kinds = [{"name": kind, "label": kind.title()} for kind in types]
    other = Place(tmp_path / "other", [wheelhouse.Driver("squat", types=kinds).write(tmp_path / "w2")])
    other.store = pair.store
    with pytest.raises(InstallError, match="is served by the installed plugin 'one'"):
        other.install("squat")
    assert [generation.plugin for generation in pair.store.installed()] == ["one"]
    assert pair.store.active("x") is None


def test_what_is_changed_of_one_driver_leaves_the_other_as_it_is(pair: Place):
    for name in ("one", "two"):
        pair.install(name, trusted=name == "two")
        pair.store.set_pin(name, version="1.0.0")
    before = pair.store.active("two")
    pair.store.set_disabled("one", disabled=True)
    pair.store.set_pin("one", version=None)
    assert pair.store.active("two") == before
    pair.install("one", pinned="1.0.0")
    one = pair.store.active("one")
    assert (one.version, one.disabled, one.pin) == ("1.0.0", True, None)  # a new version does not switch it on
    pair.store.set_pin("one", version="1.0.0")
    pair.store.remove("one")
    assert pair.store.active("two") == before
    assert lockfile.read(pair.store.lock_file).keys() == {"two"}
    assert pair.store.pin_of("one") is None


def test_trust_belongs_to_the_generation_that_a_person_or_a_lock_vouched_for(place: Place):
    def trust() -> dict[str, bool]:
        return {generation.version: generation.trusted for generation in place.store.generations("demo")}

    place.install(pinned="1.0.0")
    place.install()  # by itself
    assert trust() == {"1.0.0": False, "2.0.0": False}
    place.install(pinned="1.0.0", trusted=True)
    assert trust() == {"1.0.0": True, "2.0.0": False}
    for _ in range(2):  # to and fro vouches for neither
        place.store.rollback("demo")
        assert trust() == {"1.0.0": True, "2.0.0": False}
    place.install(pinned="1.0.0")
    assert trust() == {"1.0.0": True, "2.0.0": False}
    place.install(pinned="2.0.0", trusted=True)
    assert trust() == {"1.0.0": True, "2.0.0": True}


def test_a_fault_of_any_tree_is_named(pair: Place):
    generation = pair.install("two")
    assert len(generation.trees) == 2
    for at, name in ((1, "tinylib/__init__.py"), (0, "dragoman_two/driver.py")):
        path = generation.trees[at] / name
        path.chmod(0o644)
        path.write_text("evil")
        assert str(path) in [fault.where for fault in pair.store.verify(generation)]


def test_no_tree_of_a_driver_in_use_is_collected(pair: Place):
    assert len(pair.install("two").trees) == 2
    assert pair.store.collect(dry_run=True) == []


def test_all_generations_that_nobody_goes_back_to_are_collected_at_once(place: Place):
    place.publish(wheelhouse.Driver(version="3.0.0").write(place.root / "wheels"))
    for version in ("1.0.0", "2.0.0", "3.0.0"):
        place.install(pinned=version)
    assert sorted(collected.version for collected in place.store.collect(limit=1)) == ["1.0.0", "2.0.0"]


def test_the_generation_in_use_is_never_collected(place: Place):
    place.install(pinned="1.0.0")
    place.install()
    assert [collected.version for collected in place.store.collect(limit=0)] == ["1.0.0"]
    assert [generation.version for generation in place.store.generations("demo")] == ["2.0.0"]


def test_a_broken_lock_file_stops_a_change_before_it_happens(place: Place):
    place.install(pinned="1.0.0")
    place.store.lock_file.write_text("<<<<<<< HEAD")
    with pytest.raises(ConfigurationError):
        place.install()
    assert place.store.active("demo").version == "1.0.0"
    assert place.store.lock_file.read_text() == "<<<<<<< HEAD"


def test_the_lock_keeps_what_is_locked_and_not_yet_installed(place: Place, tmp_path: Path):
    place.publish(wheelhouse.Driver("other").write(tmp_path / "w2"))
    place.install("other")
    fresh = Place(tmp_path)
    fresh.store = Store(tmp_path / "home2")
    (tmp_path / "home2").mkdir()
    fresh.store.lock_file.write_bytes(place.store.lock_file.read_bytes())
    fresh.install()
    assert set(lockfile.read(fresh.store.lock_file)) == {"demo", "other"}


@pytest.mark.parametrize("data", [b"", b"not a database", b"SQLite format 3\0" + bytes(5000)])
def test_a_damaged_database_is_an_error_and_is_not_overwritten(data: bytes, place: Place):
    (place.root / "home").mkdir()
    (place.root / "home/state.db").write_bytes(data)
    with pytest.raises(RegistryError, match=r"state\.db") as caught:
        place.store.active("demo")
    assert (caught.value.code, caught.value.hint) == ("state-damaged", "dragoman plugins repair")
    with pytest.raises(RegistryError):
        place.install()
    assert (place.root / "home/state.db").read_bytes() == data


def test_a_database_that_is_damaged_when_it_is_written_is_an_error(place: Place):
    generation = place.install()
    (place.root / "home/state.db").write_bytes(b"not a database")
    with pytest.raises(RegistryError, match=r"state\.db cannot be written") as caught:
        place.store.set_disabled(generation.plugin, disabled=True)
    assert caught.value.code == "state-damaged"


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)


OPEN = """
import os, sys, urllib.parse  # imported before the change of user: what comes late may not be readable any more
from pathlib import Path
from dragoman_registry.client.installed_drivers import Store
for attempt in range(5):
    children = []
    for n in range(10):
        if not (child := os.fork()):
            store = Store(Path(sys.argv[1]) / str(attempt))
            store.set_pin(f"plugin-{n}", version="1")
            os._exit(store.pin_of(f"plugin-{n}") != "1")
        children.append(child)
    print(*(os.waitpid(child, 0)[1] for child in children))
"""


@pytest.mark.slow
def test_ten_processes_may_open_a_fresh_store_at_once(tmp_path: Path):
    done = python(OPEN, tmp_path)
    assert done.stdout == f"{' '.join('0' * 10)}\n" * 5, done.stderr


def test_an_abandoned_staging_folder_is_swept_and_a_living_one_is_not(tmp_path: Path):
    trees = Trees(tmp_path)
    with trees.staging() as alive:
        (alive / "work").write_text("x")
        dead = tmp_path / ".tmp/dead"
        (dead / "read-only").mkdir(parents=True)
        (dead / "read-only/file").write_text("x")
        (dead / "read-only").chmod(0o555)
        with trees.staging():
            assert not dead.exists()
            assert (alive / "work").is_file()
    assert list((tmp_path / ".tmp").iterdir()) == []


RENAMING = """
import os, sys, time
from pathlib import Path
from dragoman_registry.client.trees import Trees
trees, start = Trees(Path(sys.argv[1])), Path(sys.argv[1]) / "start"
for turn in range(20):
    with trees.staging() as staging:
        (staging / "tree").mkdir()
        (staging / "tree/file").write_text(str(turn))
        while time.time() < float(sys.argv[2]) + turn * 0.1:
            pass
        digest = trees.keep(staging / "tree")
        assert trees.verify(digest) == [], trees.verify(digest)
        print(digest)
"""


@pytest.mark.slow
def test_whoever_loses_the_race_for_a_name_takes_what_the_winner_made(tmp_path: Path):
    command = [sys.executable, "-c", RENAMING, str(tmp_path), str(time.time() + 1)]
    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    outs = [racer.communicate(timeout=50) for racer in racers]
    assert [error for _, error in outs] == ["", "", ""]
    [digests] = {out for out, _ in outs}
    assert sorted(set(digests.split())) == Trees(tmp_path).digests()
    assert len(Trees(tmp_path).digests()) == 20
    assert list((tmp_path / ".tmp").iterdir()) == []


READ = """
import os, sys, urllib.parse  # imported before the change of user: what comes late may not be readable any more
from pathlib import Path
from dragoman_registry.client.installed_drivers import Store
if os.getuid() == 0:
    os.setuid(65534)
generation = Store(Path(sys.argv[1])).active("demo")
print(generation.version)
"""


def test_a_home_that_cannot_be_written_can_still_be_read(shared_path: Path):
    """A container image with installed drivers and a read-only root."""
    place = Place(shared_path, [wheelhouse.Driver(version="2.0.0").write(shared_path / "wheels")])
    place.install()
    home = place.root / "home"
    home.chmod(0o555)
    done = python(READ, home)
    home.chmod(0o755)
    assert done.stdout == "2.0.0\n", done.stderr


UNREADABLE = """
import os, sys, urllib.parse  # imported before the change of user: what comes late may not be readable any more
from pathlib import Path
from dragoman_registry.client.installed_drivers import Store
store = Store(Path(sys.argv[1]))
generation = store.active("demo")
os.chmod(generation.trees[0] / "dragoman_demo/driver.py", 0)
if os.getuid() == 0:
    os.setuid(65534)
print(store.verify(generation)[0])
os.chdir("/")
try:
    Store(Path(sys.argv[2])).active("demo")
except Exception as error:
    print(type(error).__name__)
"""


def test_what_may_not_be_read_is_named_and_no_foreign_exception(shared_path: Path):
    place = Place(shared_path, [wheelhouse.Driver().write(shared_path / "wheels")])
    place.install()
    (shared_path / "closed").mkdir(mode=0o600)
    done = python(UNREADABLE, shared_path / "home", shared_path / "closed/home")
    fault, error = done.stdout.splitlines()
    assert "driver.py" in fault
    assert os.strerror(errno.EACCES) in fault
    assert error == "RegistryError"


QUICK = """
import sys
from pathlib import Path
from dragoman_registry.client.installed_drivers import Store
from dragoman_registry.client.install_decision import Inputs, decide
generation = Store(Path(sys.argv[1])).active("demo")
assert decide(Inputs(type="demo", plugin=generation.plugin, installed=generation.version)).outcome == "ready"
slow = {"pydantic", "packaging", "installer", "aiohttp", "zipfile", "urllib.request", "dragoman", "anyio", "pluggy"}
print(sorted(slow & set(sys.modules)))
"""


def test_where_a_driver_is_installed_nothing_slow_is_imported(place: Place):
    place.install()
    done = python(QUICK, place.root / "home")
    assert done.stdout == "[]\n", done.stderr


def test_a_state_of_a_newer_version_is_refused_and_left_alone(place: Place):
    place.install()
    file = place.root / "home/state.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA user_version = 99")
    before = file.read_bytes()
    for use in (place.install, lambda: place.store.active("demo")):
        with pytest.raises(RegistryError) as caught:
            use()
        assert (caught.value.code, caught.value.hint) == ("state-newer", upgrade_command())
    assert file.read_bytes() == before


@pytest.mark.parametrize("column", ["manifest", "locked", "origin"])
def test_a_record_that_cannot_be_read_is_an_error_of_its_driver_alone(place: Place, column: str):
    place.install()
    with closing(sqlite3.connect(place.root / "home/state.db")) as database, database:
        database.execute(f"UPDATE generations SET {column} = 'x'")
    with pytest.raises(RegistryError, match=r"the record of demo 2\.0\.0 cannot be read") as caught:
        place.store.active("demo")
    assert (caught.value.code, caught.value.hint) == ("state-damaged", "dragoman plugins repair")
    assert place.store.installed() == []


def test_notes_are_kept_and_touch_nothing_else(place: Place):
    assert place.store.note("x") is None
    place.install()
    place.store.lock_file.write_text("<<<<<<< HEAD")
    place.store.change_note("x", lambda _: 1)
    place.store.change_note("x", lambda _: 2)
    assert place.store.note("x") == 2
    place.store.change_note("x", lambda _: None)
    assert place.store.note("x") is None
    assert place.store.lock_file.read_text() == "<<<<<<< HEAD"


def test_pinning_what_is_locked_and_not_installed_keeps_its_lock_entry(place: Place, tmp_path: Path):
    place.install()
    fresh = Store(tmp_path / "fresh")
    (tmp_path / "fresh").mkdir()
    fresh.lock_file.write_bytes(place.store.lock_file.read_bytes())
    fresh.set_pin("demo", version="2.0.0")
    assert fresh.lock_file.read_bytes() == place.store.lock_file.read_bytes()


ELSEWHERE = """
import os, sys
from pathlib import Path
from dragoman_api.errors import DragomanError
from dragoman_registry.client.installed_drivers import Store
store = Store(Path(sys.argv[1]))
store.set_pin("demo", version="1.0.0")
for path in (store.root, *store.root.rglob("*")):
    os.chown(path, 65534, 65534) if os.getuid() == 0 else None
(store.root / "state.db").chmod(int(sys.argv[2], 8))
if os.getuid() == 0:
    os.setuid(65534)
try:
    print(store.pin_of("demo"))
    store.set_pin("demo", version="2.0.0")
except DragomanError as error:
    print(error.code, error.message, error.hint)
"""


@pytest.mark.parametrize(("mode", "code"), [("444", "install-failed"), ("000", "state-unreadable")])
def test_a_state_that_may_not_be_used_says_so_and_is_not_called_damaged(mode: str, code: str, shared_path: Path):
    command = [sys.executable, "-c", ELSEWHERE, str(shared_path / "home"), mode]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=50).stdout
    told = out.splitlines()[-1].split()
    assert told[:2] == [code, f"{shared_path}/home/state.db"]
    assert told[-3:] == ["chmod", "u+w" if mode == "444" else "u+r", f"{shared_path}/home/state.db"]
