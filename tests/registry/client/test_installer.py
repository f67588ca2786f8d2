"""Installing: shared by concurrent callers, refused with every fault at once, and nothing lost when it fails."""

from __future__ import annotations

import errno
import hashlib
import marshal
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

import wheelhouse
from dragoman_api.errors import (
    DriverFaultError,
    IncompatibleReleaseError,
    IndexInvalidError,
    InstallError,
    IntegrityError,
    RegistryError,
    WheelRejectedError,
)
from dragoman_registry.client import installer, lockfile
from dragoman_registry.client.installed_drivers import Store
from dragoman_registry.files import try_lock
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.publisher import publish
from hostile_wheels import HOSTILE, library_with_commands, many_faults
from installing import Place, passes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dragoman_registry.wheels.manifest import Manifest
    from dragoman_registry.wheels.wheel_file import WheelFile

NAME = "dragoman_demo-{}-py3-none-any.whl"


@pytest.fixture
def place(shared_path: Path) -> Place:
    """Have 1.0.0 installed and 2.0.0 on offer."""
    wheels = shared_path / "wheels"
    made = Place(shared_path, [wheelhouse.Driver(version=version).write(wheels) for version in ("1.0.0", "2.0.0")])
    made.install(pinned="1.0.0")
    made.progress.clear()
    return made


@pytest.fixture
def unchanged(place: Place) -> Iterator[None]:
    """Hold that a failure leaves what was active before, its lock entry, and no leftovers."""
    before, text = place.store.active("demo"), place.store.lock_file.read_bytes()
    yield
    assert place.store.active("demo") == before
    assert place.store.verify(before) == []
    assert place.store.lock_file.read_bytes() == text
    assert place.leftovers() == []
    place.progress.clear()


def test_P3_a_driver_is_fetched_checked_unpacked_tested_and_activated(place: Place):
    generation = place.install()
    phases = list(dict.fromkeys(phase for phase, _, _ in place.progress))
    assert phases == ["fetch", "check", "unpack", "smoke-test", "activate"]
    size = (place.root / "wheels" / NAME.format("2.0.0")).stat().st_size
    assert [step for step in place.progress if step[0] == "fetch"][-1] == ("fetch", size, size)
    assert place.store.active("demo") == generation
    assert place.leftovers() == []


def test_P1_nothing_of_an_installed_driver_is_importable_here(place: Place):
    place.install()
    with pytest.raises(ModuleNotFoundError):
        import dragoman_demo  # noqa: F401


def test_installing_what_is_active_touches_nothing(place: Place):
    first = place.install()
    place.progress.clear()
    assert place.install() == first
    assert place.progress == []


def test_installing_an_earlier_generation_again_fetches_nothing(place: Place):
    place.install()
    place.progress.clear()
    assert place.install(pinned="1.0.0").version == "1.0.0"
    assert place.progress == []
    assert len(place.store.generations("demo")) == 2


def test_installing_what_is_active_writes_a_lost_lock_again(place: Place):
    place.install()
    kept = place.store.lock_file.read_bytes()
    place.store.lock_file.unlink()
    place.install()
    assert place.store.lock_file.read_bytes() == kept


def test_installing_what_the_lock_names_makes_it_active(place: Place):
    place.install(pinned="1.0.0")
    kept = place.store.lock_file.read_bytes()
    place.install()
    place.store.lock_file.write_bytes(kept)  # as after a checkout
    assert place.install(pinned="1.0.0").version == place.store.active("demo").version == "1.0.0"


def test_other_bytes_of_an_installed_version_are_installed(place: Place, tmp_path: Path):
    first = place.install()
    wheel = wheelhouse.Driver(version="2.0.0", files={"dragoman_demo/more.py": b""}).write(tmp_path / "w2")
    other = Place(tmp_path / "other", [wheel])
    other.store = place.store
    second = other.install()
    assert (first.version, second.version) == ("2.0.0", "2.0.0")
    assert first.sha256 != second.sha256 == place.store.active("demo").sha256


def test_consent_given_later_is_kept(place: Place):
    assert not place.install().trusted
    assert place.install(trusted=True).trusted
    assert place.install().trusted


COMPILED = "dragoman_{}/__pycache__/driver." + str(sys.implementation.cache_tag) + ".pyc"


@pytest.mark.usefixtures("compiles_anew")
def test_a_tree_holds_the_bytecode_of_exactly_its_source(place: Place, tmp_path: Path):
    [tree] = place.install().trees
    code = tree / COMPILED.format("demo")
    name = "dragoman_demo/driver.py"
    expected = compile((tree / name).read_bytes(), name, "exec", dont_inherit=True)
    assert marshal.loads(code.read_bytes()[16:]) == expected
    assert int.from_bytes(code.read_bytes()[4:8], "little") == 1  # by hash, and never compared: the tree is
    [other] = Place(tmp_path / "other", [place.root / "wheels" / NAME.format("2.0.0")]).install().trees
    assert other.name == tree.name
    code.chmod(0o644)
    code.write_bytes(code.read_bytes() + b"x")
    assert [fault.where for fault in place.store.verify(place.store.active("demo"))] == [str(code)]


@pytest.mark.usefixtures("compiles_anew")
def test_source_that_cannot_be_compiled_stops_nobody_else(place: Place, tmp_path: Path):
    files = {"dragoman_odd/old.py": b"print 'two'", "dragoman_odd/deep.py": b"(" * 5000, "dragoman_odd/zero.py": b"\0"}
    place.publish(wheelhouse.Driver("odd", files=files).write(tmp_path / "w2"))
    generation = place.install("odd")
    assert (generation.trees[0] / COMPILED.format("odd")).is_file()
    assert place.store.verify(generation) == []


def test_what_compiles_a_tree_sees_nothing_of_the_hosts_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DRAGOMAN_TOKEN", "a secret")
    look = "import os, sys; open(os.path.join(sys.argv[1], 'seen'), 'w').write(' '.join(os.environ))"
    monkeypatch.setattr(installer, "COMPILE", look)
    installer.compile_tree(tmp_path)
    assert set((tmp_path / "seen").read_text().split()) <= {"LC_CTYPE", "SYSTEMROOT"}  # the first is Python's own


@pytest.mark.usefixtures("compiles_anew")
def test_an_installation_without_a_compiler_is_only_slower(place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    [tree] = place.install().trees
    assert not list(tree.rglob("*.pyc"))


def test_a_closed_set_is_one_tree_per_wheel(place: Place, tmp_path: Path):
    library = library_with_commands(tmp_path / "w2")
    driver = wheelhouse.Driver("closed", dependencies=[wheelhouse.dependency(library)])
    driver.requires.append("tinylib")
    place.publish(library, driver.write(tmp_path / "w2"))
    generation = place.install("closed")
    assert [sorted(path.name for path in tree.iterdir() if "." not in path.name) for tree in generation.trees] == [
        ["dragoman_closed"],
        ["tinylib"],
    ]


def test_a_fresh_machine_with_the_lock_gets_the_same_bytes(place: Place, tmp_path: Path):
    old = place.store.active("demo")
    publish.mark(place.root / "registry", project="demo", version="1.0.0", status="yanked", reason="old")
    fresh = Place(place.root)
    fresh.store = Store(tmp_path / "fresh")
    (tmp_path / "fresh").mkdir()
    shutil.copy(place.store.lock_file, fresh.store.lock_file)
    same = fresh.install(obey_lock=True)
    assert (same.version, same.sha256, same.trees[0].name) == (old.version, old.sha256, old.trees[0].name)


def test_the_lock_lists_the_wheels_of_every_platform(place: Place, tmp_path: Path):
    native = {"permissions": ["net:connection", "native-code"]}
    tags = ("py3-none-any", "cp313-cp313-win_amd64")
    place.publish(*(wheelhouse.Driver("wide", tag=tag, **native).write(tmp_path / "w2") for tag in tags))
    place.install("wide")
    entry = lockfile.read(place.store.lock_file)["wide"]
    assert {wheel.file for wheel in entry.wheels} == {f"dragoman_wide-1.0.0-{tag}.whl" for tag in tags}


# what comes in is wrong -----------------------------------------------------------------------------------------------


def swap(place: Place, data: bytes) -> None:
    """Replace a published wheel behind the registry's back."""
    path = place.root / "registry/targets/wheels/dragoman-demo" / NAME.format("2.0.0")
    path.write_bytes(data)


@pytest.mark.usefixtures("unchanged")
def test_a_wheel_of_other_bytes_is_refused_with_both_digests(place: Place):
    data = (place.root / "wheels" / NAME.format("2.0.0")).read_bytes()
    swap(place, data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(IntegrityError) as caught:
        place.install()
    assert caught.value.details["actual"] == hashlib.sha256(data[:-1] + bytes([data[-1] ^ 1])).hexdigest()
    assert caught.value.details["expected"] == place.resolve().files[0].sha256


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("change", [lambda data: data[:-7], lambda data: b"", lambda data: data + bytes(1 << 20)])
def test_a_wheel_of_another_length_is_refused(change: Callable[[bytes], bytes], place: Place):
    swap(place, change((place.root / "wheels" / NAME.format("2.0.0")).read_bytes()))
    published = place.resolve().files[0].size
    with pytest.raises(IntegrityError) as caught:
        place.install()
    assert caught.value.details["expected"] == published
    assert caught.value.details["actual"] != published


@pytest.mark.usefixtures("unchanged")
def test_a_wheel_that_is_gone_is_named(place: Place):
    (place.root / "registry/targets/wheels/dragoman-demo" / NAME.format("2.0.0")).unlink()
    with pytest.raises(IndexInvalidError) as caught:
        place.install()
    assert str(caught.value.details["path"]).endswith(NAME.format("2.0.0"))


@pytest.mark.usefixtures("unchanged")
def test_a_registry_that_went_away_is_named(place: Place):
    choice = place.resolve()
    (place.root / "registry").rename(place.root / "unplugged")
    with pytest.raises(RegistryError) as caught:
        anyio.run(partial(place.start, choice))
    assert caught.value.code == "registry-unreachable"


def publish_unchecked(place: Place, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish a wheel as an operator would who checks nothing."""
    real = publish.inspect

    def blind(path: Path, **options: object) -> object:
        report = real(path, **options)
        report.faults.clear()
        report.manifest = report.manifest or real(place.root / "wheels" / NAME.format("2.0.0")).manifest
        report.manifest_data = report.manifest_data or b"{}"
        return report

    with monkeypatch.context() as patch:
        patch.setattr(publish, "inspect", blind)
        publish.build([wheel], to=place.root / "registry", now=wheelhouse.NOW)


SAMPLES = {code: builds[0] for code, builds in HOSTILE.items()} | {"name-mismatch": HOSTILE["name-mismatch"][2]}
UNINSTALLABLE = [code for code in SAMPLES if code not in ("not-a-wheel", "tags", "version-mismatch", "too-large")]


@pytest.mark.slow
@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("code", UNINSTALLABLE)
def test_a_hostile_wheel_that_a_registry_offers_is_not_installed(
    code: str, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    hostile = SAMPLES[code](tmp_path / "hostile")
    for kind in ("catalog", "types"):
        (place.root / "registry/targets" / kind).unlink()
    shutil.rmtree(place.root / "registry")
    publish_unchecked(place, hostile, monkeypatch)
    home = {path for path in place.root.rglob("*") if path.is_relative_to(place.root / "home")}
    with pytest.raises(WheelRejectedError) as caught:
        anyio.run(partial(place.start, offered(place)))
    assert code in {fault for fault, _ in caught.value.faults}
    after = {path for path in place.root.rglob("*") if path.is_relative_to(place.root / "home")}
    assert {path for path in after - home if path.suffix != ".lock"} == set()


def offered(place: Place) -> object:
    """Choose the one release there is, whatever it asks for."""
    from dragoman_registry.client.resolver import Resolution

    [release] = place.registry.releases("demo")
    return Resolution(release=release, files=release.wheels)


@pytest.mark.usefixtures("unchanged")
def test_every_fault_of_every_wheel_reaches_the_caller(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shutil.rmtree(place.root / "registry")
    publish_unchecked(place, many_faults(tmp_path / "hostile"), monkeypatch)
    with pytest.raises(WheelRejectedError) as caught:
        anyio.run(partial(place.start, offered(place)))
    faults = caught.value.faults
    assert len({code for code, _ in faults}) > 10
    assert faults[0][1] in caught.value.message
    assert f" {len(faults) - 1} " in caught.value.message


@pytest.mark.usefixtures("unchanged")
def test_an_index_that_promises_less_than_the_manifest_asks_for_is_refused(place: Place, tmp_path: Path):
    driver = wheelhouse.Driver(version="3.0.0", permissions=["net:connection", "net:host=example.org"])
    place.publish(driver.write(tmp_path / "w2"))
    catalog = place.root / "registry/targets/catalog"
    catalog.write_bytes(catalog.read_bytes().replace(b'"net:host=example.org"', b'"secrets:connection"'))
    with pytest.raises(WheelRejectedError, match=r"\$\.permissions"):
        place.install()


def test_every_part_of_a_manifest_is_what_the_index_says_and_each_that_is_not_is_named(tmp_path: Path):
    wheels = tmp_path / "wheels"
    libraries = [wheelhouse.Wheel(name, files={f"{name}/__init__.py": b""}).write(wheels) for name in ("liba", "libb")]
    dependencies = [wheelhouse.dependency(library) for library in libraries]
    driver = wheelhouse.Driver(permissions=["net:connection", "net:host=a"], dependencies=dependencies)
    place = Place(tmp_path, [*libraries, driver.write(wheels)])
    choice = place.resolve()
    release = choice.expect()
    first, second = release.dependencies
    other = replace(second, sha256=first.sha256)
    promises = [
        ([], {}),
        (["$.id"], {"plugin": "other"}),
        (["$.host_api"], {"host_api": "~=9.0"}),
        (["$.permissions"], {"permissions": ("net:connection", "net:host=b")}),
        (["$.permissions"], {"permissions": ("net:connection",)}),
        (["$.dependencies"], {"dependencies": (first, other)}),
        (["$.dependencies"], {"dependencies": (first, replace(second, file=second.file.replace("libb", "libc")))}),
        (["$.dependencies"] * 2, {"dependencies": (first,)}),
        (["$.types"], {"project": "dragoman-other"}),
        (["$.id", "$.host_api"], {"plugin": "other", "host_api": "~=9.0"}),
    ]
    manifest = place.registry.manifest(release)
    for expected, changes in promises:
        promised = replace(choice, release=replace(release, **changes))
        work = installer._Work(promised, place.store, place.registry, None, print, trusted=False, origin=None)
        assert [fault.reason.partition(":")[0] for fault in work._promised(manifest)] == expected, changes


@pytest.mark.usefixtures("unchanged")
def test_no_fitting_release_says_why_for_each(place: Place):
    for version in ("1.0.0", "2.0.0"):
        publish.mark(place.root / "registry", project="demo", version=version, status="yanked", reason=f"bad {version}")
    with pytest.raises(IncompatibleReleaseError, match=r"2\.0\.0.*bad 2\.0\.0.*1\.0\.0.*bad 1\.0\.0"):
        place.install()


def test_nothing_is_collected_while_a_release_that_no_generation_names_is_tested(place: Place):
    free = []

    async def looks(trees: tuple[Path, ...], manifest: Manifest) -> None:
        await passes(trees, manifest)
        free.append(held := try_lock(place.store.trees.folder, folder=True))
        if held is not None:
            os.close(held)

    place.install(smoke_test=looks)
    assert free == [None]
    held = try_lock(place.store.trees.folder, folder=True)
    assert held is not None
    os.close(held)


@pytest.mark.usefixtures("unchanged")
def test_a_failed_smoke_test_activates_nothing(place: Place):
    async def fails(trees: tuple[Path, ...], manifest: Manifest) -> None:
        raise DriverFaultError("it does not start")

    with pytest.raises(DriverFaultError):
        place.install(smoke_test=fails)


@pytest.mark.usefixtures("unchanged")
def test_a_smoke_test_that_takes_too_long_is_an_install_error(place: Place):
    async def hangs(trees: tuple[Path, ...], manifest: Manifest) -> None:
        with anyio.fail_after(0.01):
            await anyio.sleep_forever()

    with pytest.raises(InstallError) as caught:
        place.install(smoke_test=hangs)
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert str(place.store.root) not in caught.value.hint, "the disk is not to blame"
    assert not caught.value.message.endswith(" "), "a TimeoutError has no text of its own"


# the machine is in the way --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("phase", ["fetch", "check", "unpack", "smoke-test", "activate"])
def test_an_installation_can_be_cancelled_at_any_phase(phase: str, place: Place):
    choice = place.resolve()

    async def main() -> None:
        with anyio.CancelScope() as scope:
            place.progress = Cancelling(scope, phase)
            await place.start(choice)
            pytest.fail("it was not cancelled")

    anyio.run(main)


@pytest.mark.usefixtures("unchanged")
def test_a_fetch_that_trickles_is_cancelled_at_once(place: Place):
    choice = place.resolve()

    class Trickling(Registry):
        def chunks(self, wheel: WheelFile) -> Iterator[bytes]:
            for byte in super().chunks(wheel):
                for n in range(len(byte)):
                    time.sleep(0.02)
                    yield byte[n : n + 1]

    place.registry = Trickling("slow", place.registry.location, trust=wheelhouse.TrustedPath())

    async def main() -> None:
        with anyio.move_on_after(0.1):
            await place.start(choice)
            pytest.fail("it was not cancelled")

    began = time.monotonic()
    anyio.run(main)
    assert time.monotonic() - began < 60  # the whole file would take minutes


class Cancelling(list):
    def __init__(self, scope: anyio.CancelScope, phase: str) -> None:
        self.scope, self.phase = scope, phase

    def append(self, step: tuple[str, int, int]) -> None:
        if step[0] == self.phase:
            self.scope.cancel()


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("place_of_failure", ["pathlib.Path.rename", "os.fsync"])
def test_a_full_disk_is_told_with_its_file(place_of_failure: str, place: Place, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "somewhere")

    with monkeypatch.context() as patch:
        patch.setattr(place_of_failure, full)
        with pytest.raises(InstallError, match=os.strerror(errno.ENOSPC)) as caught:
            place.install()
    assert str(place.store.root) in caught.value.hint


SMALL = """
import os, resource, signal, sys
from pathlib import Path
from installing import Place
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True  # Python leaves the first part of a module that does not fit, for every later process
place = Place(Path(sys.argv[1]))
choice = place.resolve()
for size in (100, 500, 1000, 2000, 3000):
    if not (child := os.fork()):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        try:
            place.install()
        except Exception as error:
            print(size, type(error).__name__, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def other_process(code: str, *arguments: object) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "support")}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.slow
@pytest.mark.usefixtures("unchanged")
def test_files_that_may_not_grow_stop_the_installation(place: Place):
    """The kernel itself refuses the write, wherever the installer happens to be."""
    out = other_process(SMALL, place.root).communicate(timeout=50)[0]
    assert out.splitlines() == [f"{size} InstallError" for size in (100, 500, 1000, 2000, 3000)]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 256 KiB, for the superuser only."""
    if os.getuid() != 0:
        pytest.skip("a file system can be mounted by the superuser only")
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    mounted = subprocess.run(command, check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip(f"a file system cannot be mounted here: {mounted.stderr.decode()}")
    yield disk
    subprocess.run(["umount", disk], check=True)


def fill(disk: Path) -> Path:
    ballast = disk / "ballast"
    descriptor = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(descriptor, bytes(4096))
    except OSError:
        return ballast
    finally:
        os.close(descriptor)


def test_a_full_disk_stops_an_installation_and_nothing_that_is_installed(tiny_disk: Path, tmp_path: Path):
    wheels = [wheelhouse.Driver(version=version).write(tmp_path / "w") for version in ("1.0.0", "2.0.0")]
    place = Place(tmp_path, wheels)
    place.store = Store(tiny_disk / "home")
    old = place.install(pinned="1.0.0")
    ballast = fill(tiny_disk)
    with pytest.raises(InstallError, match=os.strerror(errno.ENOSPC)):
        place.install()
    assert place.store.active("demo") == old
    assert place.store.verify(old) == []
    ballast.unlink()
    assert place.store.verify(place.install()) == []


READ_ONLY = """
import os, sys
from pathlib import Path
import wheelhouse
from installing import Place
import wheelhouse, installer.sources, installer.destinations, packaging.metadata, pydantic
place = Place(Path(sys.argv[1]))
choice = place.resolve()
wheelhouse.publish.inspect(next(Path(sys.argv[1]).glob("wheels/*2.0.0*")))
place.install(pinned="1.0.0")  # what is installed already; everything is imported now
if os.getuid() == 0:
    os.setuid(65534)
try:
    place.install()
except Exception as error:
    print(type(error).__name__, error.message, error.hint)
"""


@pytest.mark.usefixtures("unchanged")
def test_a_home_that_cannot_be_written_is_named(place: Place):
    folders = [path for path in [place.root / "home", *(place.root / "home").rglob("*")] if path.is_dir()]
    modes = [path.stat().st_mode for path in folders]
    for path in folders:
        path.chmod(0o555)
    out = other_process(READ_ONLY, place.root).communicate(timeout=50)[0]
    for path, mode in zip(folders, modes, strict=True):
        path.chmod(mode)
    assert out.startswith("InstallError")
    assert "DRAGOMAN_HOME" in out


# several at once ------------------------------------------------------------------------------------------------------


class Counting(BaseHTTPRequestHandler):
    root: Path
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        data = (self.root / self.path.lstrip("/")).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def web(place: Place) -> Iterator[tuple[str, list[str]]]:
    handler = type("Handler", (Counting,), {"root": place.root / "registry", "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler.asked
    server.shutdown()
    thread.join()
    server.server_close()


def fetched(asked: list[str]) -> int:
    return sum(path.endswith(".whl") for path in asked)


def test_ten_callers_in_one_process_share_one_installation(place: Place, web: tuple[str, list[str]]):
    place.registry = Registry("web", web[0], trust=wheelhouse.TrustedPath())
    choice, made = place.resolve(), []

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(lambda: keep(place.start(choice)))

    async def keep(generation: object) -> None:
        made.append(await generation)

    anyio.run(main)
    assert len(made) == 10
    assert len({generation.id for generation in made}) == 1
    assert fetched(web[1]) == 1
    assert ("wait", 0, 0) in place.progress


RACE = """
import os, sys
from pathlib import Path
import wheelhouse
from installing import Place
from dragoman_registry.index.registry_reader import Registry
place = Place(Path(sys.argv[1]))
place.registry = Registry("web", sys.argv[2], trust=wheelhouse.TrustedPath())
children = []
for _ in range(8):
    if not (child := os.fork()):
        generation = place.install()
        os._exit(generation.id if not place.store.verify(generation) else 99)
    children.append(child)
print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


@pytest.mark.slow
def test_eight_processes_share_one_fetch_and_one_generation(place: Place, web: tuple[str, list[str]]):
    out = other_process(RACE, place.root, web[0]).communicate(timeout=55)[0]
    assert out == f"{' '.join('2' * 8)}\n"
    assert fetched(web[1]) == 1
    assert place.store.active("demo").version == "2.0.0"
    assert place.leftovers() == []


def test_whoever_waited_for_a_failure_meets_the_same_failure(place: Place):
    choice, tried, failures = place.resolve(), [], []

    async def fails(trees: tuple[Path, ...], manifest: Manifest) -> None:
        tried.append(trees)
        await anyio.sleep(0.2)
        raise DriverFaultError("it does not start", hint="tell its author")

    async def one() -> None:
        try:
            await place.start(choice, smoke_test=fails)
        except DriverFaultError as error:
            failures.append((error.code, error.message, error.hint))

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(one)

    anyio.run(main)
    assert failures == [("driver-fault", "it does not start", "tell its author")] * 5
    assert len(tried) == 1
    assert place.install(smoke_test=passes).version == "2.0.0"


def test_cancelling_one_caller_leaves_the_other_its_driver(place: Place):
    choice, made, begun = place.resolve(), [], anyio.Event

    async def main() -> None:
        started = begun()

        async def slow(trees: tuple[Path, ...], manifest: Manifest) -> None:
            started.set()
            await anyio.sleep_forever()

        async def second() -> None:
            made.append(await place.start(choice))

        async with anyio.create_task_group() as tasks:
            with anyio.CancelScope() as first:
                async with anyio.create_task_group() as inner:
                    inner.start_soon(partial(place.start, choice, smoke_test=slow))
                    await started.wait()
                    tasks.start_soon(second)
                    await anyio.sleep(0.05)
                    first.cancel()

    anyio.run(main)
    assert [generation.version for generation in made] == ["2.0.0"]


def test_two_different_drivers_install_side_by_side(place: Place, tmp_path: Path):
    place.publish(wheelhouse.Driver("other").write(tmp_path / "w2"))
    choices = [place.resolve(), place.resolve("other")]

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for choice in choices:
                tasks.start_soon(place.start, choice)

    anyio.run(main)
    assert [generation.plugin for generation in place.store.installed()] == ["demo", "other"]
    assert set(lockfile.read(place.store.lock_file)) == {"demo", "other"}
