"""Small state has one writer: what processes change at the same time is all there afterwards."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest

from dragoman.cli.known_names import KnownNames
from dragoman.cli.line_prompt import MAX_LINES, LineHistory
from dragoman.connections.saved_connections import Connections, SavedConnection
from dragoman.folders import find_paths
from dragoman.plugins.registries import Registries
from dragoman.references import STORED
from dragoman.sessions.consents import Consents
from dragoman.sessions.saved_queries import SavedQueries
from dragoman.sessions.selection_codec import SelectionTexts
from dragoman.settings import RegistryEntry, change_file, change_registries, read_settings
from dragoman_api.columns import Column
from dragoman_api.errors import ConfigurationError
from dragoman_registry import files
from dragoman_registry.client.generation import Links
from dragoman_registry.client.installed_drivers import Store
from dragoman_registry.index.registry_reader import Memory
from dragoman_registry.ip_addresses import Nearness
from dragoman_registry.validation import decode
from dragoman_registry.wheels.manifest import Manifest
from dragoman_workbench.remembered import Remembered
from wheelhouse import manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dragoman.folders import Paths

WRITERS = 8
SHOP = SavedConnection(name="shop", type="demo", values={"host": "h"})


def registry(number: int) -> RegistryEntry:
    return RegistryEntry(f"r{number}", f"/r{number}")


def remembered(paths: Paths) -> Remembered:
    return Remembered(paths.state / "workbench", change_file=change_file, mask=str)


def history(paths: Paths) -> LineHistory:
    return LineHistory(paths.state / "lines.jsonl", mask=str)


def type_line(paths: Paths, number: int) -> None:
    history(paths).add(f"line {number}")
    history(paths).lines()


def fill_history(paths: Paths) -> None:
    paths.state.mkdir(parents=True)
    (paths.state / "lines.jsonl").write_text('"old"\n' * (MAX_LINES + 1))


def link(paths: Paths, number: int) -> None:
    linked = decode(msgspec.json.encode(manifest(f"demo{number}")), Manifest)
    Links(paths.data / "links.json").add(linked, version="1", trees=[paths.data])


def claim(paths: Paths, number: int) -> None:
    memory = Memory(paths.data / "claims.json")
    memory.keep_types({"demo": "dragoman-demo"}) if number % 2 else memory.keep_names(["demo"])


def save_connection(paths: Paths, number: int) -> None:
    Connections(paths).save(msgspec.structs.replace(SHOP, name=f"c{number}"))


def add_field(paths: Paths, number: int) -> None:
    def edit(saved: SavedConnection) -> SavedConnection:
        return msgspec.structs.replace(saved, values={**saved.values, f"f{number}": number})

    Connections(paths).amend("shop", edit)


def consent(paths: Paths, number: int) -> None:
    pins = {f"h:{number}": "AAAA"}
    anyio.run(partial(Consents(Connections(paths), None).record, SHOP, pins=pins, trial=False))


def know(paths: Paths, number: int) -> None:
    KnownNames(paths).remember_columns("shop", f"o{number}", [Column(name="a", type="t", path=("a",))])


def columns_of(paths: Paths) -> set[str]:
    names = KnownNames(paths)
    return {f"o{number}" for number in range(WRITERS) if names.columns("shop", f"o{number}").names}


def write_note(paths: Paths, number: int) -> None:
    Store(paths.data).change_note("notes", lambda value: [*(value or []), number])


def nothing(_: Paths) -> None:
    pass


def save_shop(paths: Paths) -> None:
    Connections(paths).save(SHOP)


def save_all(paths: Paths) -> None:
    for number in range(WRITERS):
        save_connection(paths, number)


def store_all(paths: Paths) -> None:
    for number in range(WRITERS):
        Connections(paths).save(SavedConnection(name=f"c{number}", type="demo", values={"key": STORED}))
        Connections(paths).store_secret(f"c{number}", "key", "secret")


def configure_all(paths: Paths) -> None:
    change_registries(paths.settings, lambda _: [registry(number) for number in range(WRITERS)])


STATE: dict[str, tuple[Callable[[Paths], None], Callable[[Paths, int], Any], Callable[[Paths], int]]] = {
    "connections that are added": (nothing, save_connection, lambda paths: len(Connections(paths).list())),
    "connections that are removed": (
        save_all,
        lambda paths, number: Connections(paths).remove(f"c{number}"),
        lambda paths: WRITERS - len(Connections(paths).list()),
    ),
    "fields of one connection": (
        save_shop, add_field, lambda paths: len(Connections(paths).get("shop").values) - 1,
    ),
    "certificates that are pinned": (save_shop, consent, lambda paths: len(Connections(paths).get("shop").pinned)),
    "secrets that are stored": (
        save_shop,
        lambda paths, number: Connections(paths).store_secret("shop", f"f{number}", "s"),
        lambda paths: sum(Connections(paths).stored("shop", f"f{number}") for number in range(WRITERS)),
    ),
    "secrets that are forgotten": (
        store_all,
        lambda paths, number: Connections(paths).remove(f"c{number}"),
        lambda paths: sum(not Connections(paths).stored(f"c{number}", "key") for number in range(WRITERS)),
    ),
    "queries that are saved": (
        save_shop,
        lambda paths, number: SavedQueries(Connections(paths), "shop").save(f"q{number}", SelectionTexts(object="o")),
        lambda paths: len(SavedQueries(Connections(paths), "shop").all()[0]),
    ),
    "addresses that are reached": (
        nothing,
        lambda paths, number: Connections(paths).reached.note("shop", {f"h{number}": Nearness.PUBLIC}),
        lambda paths: len(Connections(paths).reached.of("shop")),
    ),
    "registries that are added": (
        nothing,
        lambda paths, number: change_registries(paths.settings, lambda entries: [*entries, registry(number)]),
        lambda paths: len(read_settings(paths.settings).registries),
    ),
    "registries that are removed": (
        configure_all,
        lambda paths, number: Registries(paths).remove(f"r{number}"),
        lambda paths: WRITERS - len(read_settings(paths.settings).registries),
    ),
    "preferences of the page": (
        nothing,
        lambda paths, number: anyio.run(remembered(paths).set, f"k{number}", "1"),
        lambda paths: len(anyio.run(remembered(paths).preferences, "k")),
    ),
    "history of the page's console": (
        nothing,
        lambda paths, number: anyio.run(remembered(paths).note, "shop", f"GET /{number}"),
        lambda paths: len(anyio.run(remembered(paths).history, "shop")),
    ),
    "lines of a shell, while they are shortened": (
        fill_history, type_line, lambda paths: len({*history(paths).lines()} - {"old"}),
    ),
    "names that completion knows": (save_shop, know, lambda paths: len(columns_of(paths))),
    "linked drivers": (nothing, link, lambda paths: len(Links(paths.data / "links.json").list())),
    "claims of a registry": (
        nothing,
        claim,
        lambda paths: WRITERS * all([Memory(paths.data / "claims.json").claims_type("demo"),
                                     Memory(paths.data / "claims.json").claims_name("demo")]),
    ),
    "notes of the store": (nothing, write_note, lambda paths: len(Store(paths.data).note("notes"))),
}  # fmt: skip


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave time between what a writer reads and what it writes."""
    replacing = files.replacing

    @contextmanager
    def replacing_late(path: Path, *, mode: int = files.OPEN, durable: bool = True) -> Iterator[Any]:
        time.sleep(0.004)
        with replacing(path, mode=mode, durable=False) as file:
            yield file

    monkeypatch.setattr(files, "replacing", replacing_late)


@pytest.mark.usefixtures("slowly")
@pytest.mark.parametrize("name", STATE)
def test_what_writers_change_at_the_same_time_is_all_there(name):
    prepare, write, count = STATE[name]
    paths, faults = find_paths(), list[Exception]()
    prepare(paths)
    start = threading.Barrier(WRITERS)

    def run(number: int) -> None:
        start.wait()
        try:
            write(paths, number)
        except Exception as error:  # noqa: BLE001 - told below
            faults.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert count(paths) == WRITERS


def test_of_two_that_take_one_name_at_the_same_time_one_is_refused(monkeypatch):
    """Whether a name is free is decided below the lock: what a command saw before may have changed."""
    paths = find_paths()
    Connections(paths).save(SHOP)
    monkeypatch.setattr(Connections, "check_name", lambda *_, **__: None)
    with pytest.raises(ConfigurationError, match="already exists"):
        Connections(paths).save(SHOP)
    change_registries(paths.settings, lambda _: [registry(1)])
    with pytest.raises(ConfigurationError, match="no registry called 'r2'"):
        Registries(paths).remove("r2")
    queries = SavedQueries(Connections(paths), "shop")
    queries.save("q", SelectionTexts(object="o"))
    with pytest.raises(ConfigurationError, match="has a query called 'q' already"):
        queries.save("q", SelectionTexts(object="o"))


def test_a_connection_that_was_edited_meanwhile_is_not_overwritten_and_keeps_new_consents():
    paths = find_paths()
    store = Connections(paths)
    store.save(SHOP)
    entered = msgspec.structs.replace(SHOP, values={"host": "new"})
    store.amend("shop", lambda saved: msgspec.structs.replace(saved, pinned={"h:1": "AAAA"}, sign_in_at="t:1"))
    store.save(entered, before=SHOP)
    assert store.get("shop") == msgspec.structs.replace(entered, pinned={"h:1": "AAAA"}, sign_in_at="t:1")
    with pytest.raises(ConfigurationError, match="was edited elsewhere"):
        store.save(SHOP, before=SHOP)
    store.remove("shop")
    with pytest.raises(ConfigurationError, match="no connection is called 'shop'"):
        store.save(entered, before=entered)


HOLD = """
import sys, time
from pathlib import Path
from dragoman_registry.files import exclusively
with exclusively(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_ends_with_its_process_and_a_process_that_keeps_it_is_told(tmp_path, monkeypatch):
    file = tmp_path / "state"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, file], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        monkeypatch.setattr(files, "LOCK_SECONDS", 0.05)
        with pytest.raises(ConfigurationError, match=r"state cannot be written: another process has kept it locked"):
            change_file(file, lambda _: b"new")
        assert not file.exists()
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate()
    change_file(file, lambda _: b"new")
    assert file.read_bytes() == b"new"


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_told_and_nothing_is_written(tmp_path, monkeypatch, number):
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    before = len([*Path("/proc/self/fd").iterdir()])
    with pytest.raises(ConfigurationError, match="its file system cannot lock files") as caught:
        change_file(tmp_path / "state", lambda _: b"new")
    assert caught.value.hint == "set DRAGOMAN_HOME to a folder on a disk of this machine"
    assert not (tmp_path / "state").exists()
    assert len([*Path("/proc/self/fd").iterdir()]) == before


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_folder_that_cannot_be_written_is_told(tmp_path, monkeypatch, number):
    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    (tmp_path / "state").write_bytes(b"old")
    monkeypatch.setattr(files, "open_lock_file" if number != errno.ENOSPC else "open_new", refuse)
    with pytest.raises(ConfigurationError, match=rf"state cannot be written: {os.strerror(number)}"):
        change_file(tmp_path / "state", lambda _: b"new")
    assert (tmp_path / "state").read_bytes() == b"old"


def test_what_an_edit_raises_leaves_the_file_alone_and_frees_the_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LOCK_SECONDS", 0.05)
    file = tmp_path / "state"
    change_file(file, lambda _: b"old")
    for end in (ValueError, KeyboardInterrupt, SystemExit):

        def fail(_: bytes, end: type[BaseException] = end) -> bytes:
            raise end

        with pytest.raises(end):
            change_file(file, fail)
    assert file.read_bytes() == b"old"
    change_file(file, lambda data: data + b", new")
    assert file.read_bytes() == b"old, new"


def test_a_file_stays_as_private_as_it_was_made(tmp_path):
    file = tmp_path / "config.toml"
    change_file(file, lambda _: b"a = 1", mode=0o644)
    file.chmod(0o600)
    change_file(file, lambda _: b"a = 2", mode=0o644)
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_ten_commands_that_save_at_the_same_time_save_ten(tmp_path):
    home = {**os.environ, "DRAGOMAN_HOME": str(tmp_path / "home")}
    command = [Path(sys.executable).parent / "dragoman"]
    subprocess.run(
        [*command, "plugins", "install", "elasticsearch", "--yes"], env=home, check=True, capture_output=True
    )
    adding = [
        subprocess.Popen(
            [*command, "connections", "add", f"q{number}", "--type", "elasticsearch", "--host", "127.0.0.1",
             "--auth-method", "none", "--no-connect", "--yes"],
            env=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for number in range(10)
    ]  # fmt: skip
    said = [process.communicate()[0].decode() for process in adding]
    assert [process.returncode for process in adding] == [0] * 10, said
    assert len(Connections(find_paths(tmp_path / "home")).list()) == 10
