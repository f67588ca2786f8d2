"""Hostile and broken wheels are refused before anything is unpacked, with every fault at once."""

from __future__ import annotations

import hashlib
import tracemalloc
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from zipfile import ZipFile

import anyio
import pytest

import wheelhouse
from dragoman.authoring.check import rules
from dragoman_api.errors import WheelRejectedError
from dragoman_registry.client.installed_drivers import Store
from dragoman_registry.client.installer import install
from dragoman_registry.client.resolver import Resolution
from dragoman_registry.index.catalog import Release
from dragoman_registry.publisher import publish
from dragoman_registry.trust.trust import SignedFile
from dragoman_registry.wheels import archive_checks
from dragoman_registry.wheels.archive import installed_path
from dragoman_registry.wheels.archive_checks import inspect
from dragoman_registry.wheels.host_environment import Host, provided
from dragoman_registry.wheels.packaging_parsers import parse_wheel_name
from dragoman_registry.wheels.wheel_file import WheelFile
from hostile_wheels import BEGIN, END, FIXED, HOSTILE, Hostile, everything_at_once, many_faults, otherwise, row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman_registry.validation import Fault
    from dragoman_registry.wheels.manifest import Manifest

ALL = [
    pytest.param(one, id=f"{code}-{number}", marks=[pytest.mark.slow] if code == "too-large" else [])
    for code, builds in HOSTILE.items()
    for number, one in enumerate(builds)
]
PAGE = (Path(__file__).parents[3] / "docs/reference/hostile-wheels.md").read_text(encoding="utf-8")
ROWS = {*PAGE.splitlines()}


@pytest.fixture(scope="module")
def host() -> Host:
    return Host.here()


def check(path: Path, **options: object) -> list[Fault]:
    return inspect(path, **options).faults


def codes(path: Path, **options: object) -> set[str]:
    return {fault.code for fault in check(path, **options)}


def published(path: Path) -> WheelFile:
    report = inspect(path)
    return WheelFile(file=path.name, size=report.size, sha256=report.sha256)


def test_a_proper_driver_has_no_fault(tmp_path: Path, host: Host):
    path = wheelhouse.Driver().write(tmp_path)
    report = inspect(path, expected=published(path), host=host, driver=True)
    assert report.faults == []
    assert report.manifest is not None
    assert (report.manifest.id, report.requires_python, report.summary) == ("demo", ">=3.11", "For tests")


@pytest.mark.parametrize(
    ("algorithm", "faults"), [("sha384", set()), ("sha512", set()), ("sha1", {"record-weak-hash"})]
)
def test_RECORD_may_name_a_digest_that_is_longer_than_SHA_256_and_no_shorter_one(
    algorithm: str, faults: set[str], tmp_path: Path
):
    driver = wheelhouse.Driver()

    def record(rows: list[list[str]]) -> None:
        rows[:-1] = [[name, *wheelhouse.hashed(data, algorithm)] for name, data in driver.members().items()]

    assert codes(driver.write(tmp_path, record=record)) == faults


def test_a_file_that_cannot_be_read_is_no_wheel(tmp_path: Path):
    path = tmp_path / wheelhouse.Driver().file
    for make in (lambda: None, path.mkdir):
        make()
        [fault] = check(path)
        assert fault.code == "not-a-wheel"
        assert f"{path.name} is not a readable wheel: " in fault.reason


def test_the_elasticsearch_wheel_has_no_fault(host: Host):
    assert check(wheelhouse.project_wheels("plugins/elasticsearch")[0], host=host) == []


@pytest.mark.parametrize("hostile", ALL)
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.slow
def test_a_hostile_wheel_is_refused_for_its_reason_which_is_in_the_reference(hostile: Hostile, tmp_path: Path):
    found = check(hostile(tmp_path), host=FIXED)
    said = next((fault.reason for fault in found if fault.code == hostile.code), None)
    assert said is not None, found
    assert all(fault.reason for fault in found)
    assert row(hostile.code, hostile.does, said) in ROWS


def test_the_reference_lists_every_hostile_wheel_and_every_code():
    """Run ``python tests/support/hostile_wheels.py`` with tests/support on the path to write it anew."""
    listed = PAGE.partition(BEGIN)[2].partition(END)[0].splitlines()
    rows = [line for line in listed if line.startswith("| `")]
    assert len(rows) == len(ALL) + 2
    told = {line.split("`")[1] for line in rows}
    known = {code for code in rules() if not code.startswith(("dependency-", "import-"))}
    own = {
        "not-reproducible",
        "link-outside",
        "capability",
        "hooks",
        "undeclared-access",
        "secret-shown",
    }  # of a project and of its behaviour
    assert told == known - own | {"length-mismatch", "digest-mismatch"}


def test_a_promise_that_is_not_kept_is_refused_for_its_reason(tmp_path: Path):
    for code, (does, path, promised) in otherwise(tmp_path).items():
        [fault] = check(path, expected=promised)
        assert fault.code == code
        assert row(code, does, fault.reason) in ROWS


def under(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


class Careless:
    """A registry whose operator looked at nothing, and signed for it."""

    def __init__(self, wheel: Path, name: str) -> None:
        self._data, self._manifest = wheel.read_bytes(), inspect(wheel).manifest_data
        digest = hashlib.sha256(self._data).hexdigest()
        self.file = WheelFile(file=name, size=len(self._data), sha256=digest)
        self.name = self.location = "careless"

    def admitted(self, wheel: WheelFile, release: Release | None = None) -> SignedFile:
        return SignedFile(path=wheel.path, size=wheel.size, sha256=wheel.sha256)

    def chunks(self, wheel: WheelFile) -> Iterator[bytes]:
        yield self._data

    def sidecar(self, release: Release, wheel: WheelFile) -> bytes:
        return self._manifest

    def types(self) -> dict[str, str]:
        return {"demo": "dragoman-demo"}

    def url(self, path: str) -> str:
        return path


FEW = [pytest.param(ones[0], id=code) for code, ones in HOSTILE.items() if code != "too-large"]
MORE = [pytest.param(HOSTILE["too-large"][0], id="too-large", marks=pytest.mark.slow)]
MORE += [
    pytest.param(one, id=f"{code}-{number}", marks=pytest.mark.slow)
    for code, ones in HOSTILE.items()
    for number, one in enumerate(ones[1:], 1)
]


@pytest.mark.parametrize("hostile", FEW + MORE)
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.slow
def test_a_hostile_wheel_is_neither_published_nor_installed_and_writes_nothing(hostile: Hostile, tmp_path: Path):
    path = hostile(tmp_path / "w")
    if not hostile.fits:
        with pytest.raises(WheelRejectedError) as refused:
            publish.build([path], to=tmp_path / "team")
        assert hostile.code in {code for code, _ in refused.value.faults}
        assert not list((tmp_path / "team/targets/wheels").rglob("*.whl*"))
    try:
        parse_wheel_name(path.name)
        name = path.name
    except ValueError:
        name = wheelhouse.Driver().file  # an index cannot even name it
    careless, store, before = Careless(path, name), Store(tmp_path / "home"), under(tmp_path)
    release = Release(
        plugin="demo",
        project="dragoman-demo",
        version="1.0.0",
        host_api="~=1.0",
        permissions=("net:connection", "secrets:connection"),
        manifest_sha256="",
        wheels=(careless.file,),
    )
    choice = Resolution(release=release, files=(careless.file,))

    async def attempt() -> None:
        told = {"smoke_test": never, "on_progress": lambda *_: None, "trusted": True}
        await install(choice, store=store, registry=careless, host=FIXED, **told)

    with pytest.raises(WheelRejectedError) as refused:
        anyio.run(attempt)
    if name == path.name:
        assert hostile.code in {code for code, _ in refused.value.faults}
    written = {file.relative_to(tmp_path) for file in under(tmp_path) - before}
    assert {file.parts[0] for file in written} <= {"home"}
    assert not [file for file in written if file.suffix in (".py", ".json", ".whl", ".part", ".pth")]
    assert store.active("demo") is None


async def never(trees: tuple[Path, ...], manifest: Manifest) -> None:
    raise AssertionError("nothing of a hostile wheel is ever run")


def test_many_faults_are_reported_at_once(tmp_path: Path, host: Host):
    found = codes(many_faults(tmp_path), host=host)
    assert found >= {
        "path-escape", "path-reserved", "path-collision", "record-extra", "record-unlisted", "record-weak-hash",
        "record-mismatch", "pth-file", "shadows", "native-code", "data-scheme", "scripts", "manifest", "metadata",
    }  # fmt: skip


ALONE = {"not-a-wheel", "ambiguous-metadata", "too-many-members", "too-large", "record-missing"}
"""Behind these there is nothing left to look at, or nothing to compare it with."""


def test_every_fault_that_can_stand_beside_others_is_told_with_them(tmp_path: Path, host: Host):
    path = everything_at_once(tmp_path)
    found = codes(path, host=host, expected=WheelFile(file=path.name, size=1, sha256="0" * 64))
    assert found == {*HOSTILE, "length-mismatch", "digest-mismatch"} - ALONE


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_to_a_wheel_it_is_refused_or_its_files_are_the_same(seed: int, tmp_path: Path):
    driver = wheelhouse.Driver().write(tmp_path)
    data, content, chance = driver.read_bytes(), members(driver), Random(seed)
    heads = [at for at in range(len(data)) if data[at : at + 2] == b"PK"]
    for _ in range(40):
        spoilt = bytearray(data)
        for _ in range(chance.choice([1, 1, 2, 3])):
            at = min(chance.choice(heads) + chance.randrange(60), len(spoilt) - 1)
            at = chance.choice([at, chance.randrange(len(spoilt))])
            piece = spoilt[chance.randrange(len(spoilt)) :][: chance.randrange(40)]
            spoilt[at : at + chance.choice([0, 1, 1, 4, 30])] = chance.choice([b"", b"\xff", b"\0", b"\1", piece])
        driver.write_bytes(spoilt)
        if not check(driver):
            assert members(driver) == content


def members(path: Path) -> dict[str, bytes]:
    with ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def test_a_file_of_another_length_or_digest_than_published_is_refused(tmp_path: Path):
    path = wheelhouse.Driver().write(tmp_path)
    assert codes(path, expected=replace(published(path), size=7)) == {"length-mismatch"}
    assert codes(path, expected=replace(published(path), sha256="0" * 64)) == {"digest-mismatch"}


def test_a_sidecar_that_differs_by_one_byte_is_refused(tmp_path: Path):
    path = wheelhouse.Driver().write(tmp_path)
    data = inspect(path).manifest_data
    assert codes(path, sidecar=data) == set()
    assert codes(path, sidecar=data + b"\n") == {"manifest"}


@pytest.mark.parametrize(
    ("entry", "file", "faults"),
    [
        ("dragoman_demo.inner.driver:Driver", "inner/driver.py", set()),
        ("dragoman_demo.inner:Driver", "inner/__init__.py", set()),
        ("dragoman_demo.inner.driver:Driver", "inner/drivers.py", {"manifest"}),
        ("dragoman_demo.inner.driver:Driver", "inner.py", {"manifest"}),
        ("dragoman_demo.inner:Driver", "inner/driver.py", {"manifest"}),
    ],
)
def test_the_module_of_the_entry_is_in_the_wheel_however_deep_it_lies(
    entry: str, file: str, faults: set[str], tmp_path: Path
):
    assert codes(wheelhouse.Driver(entry=entry, files={f"dragoman_demo/{file}": b""}).write(tmp_path)) == faults


def test_metadata_that_differs_from_its_sidecar_is_refused(tmp_path: Path):
    path = wheelhouse.Driver().write(tmp_path)
    assert codes(path, expected=replace(published(path), metadata_sha256="0" * 64)) == {"metadata"}


def test_native_code_is_accepted_with_its_permission(tmp_path: Path):
    permissions = ["net:connection", "secrets:connection", "native-code"]
    path = wheelhouse.Driver(files={"dragoman_demo/fast.so": b"\x7fELF"}, permissions=permissions).write(tmp_path)
    assert codes(path) == set()


def test_both_library_schemes_are_accepted(tmp_path: Path):
    driver = wheelhouse.Driver()
    driver.files[f"{driver.stem}.data/platlib/dragoman_demo/more.py"] = b""
    assert codes(driver.write(tmp_path)) == set()


def test_a_file_in_place_of_a_data_folder_is_refused(tmp_path: Path):
    assert codes(wheelhouse.Driver(files={"other.data": b""}).write(tmp_path)) == {"data-scheme"}


@pytest.mark.parametrize(
    ("name", "placed"),
    [
        ("demo-1.0.data/purelib/demo/x.py", "demo/x.py"),
        ("demo-1.0.data/platlib/x.py", "x.py"),
        ("demo-1.0.data/scripts/x.py", "demo-1.0.data/scripts/x.py"),
        ("demo-1.0.data/purelib/", "demo-1.0.data/purelib/"),
        ("demo-1.0.data/x.py", "demo-1.0.data/x.py"),
        ("demo/purelib/x.py", "demo/purelib/x.py"),
        ("purelib/x.py", "purelib/x.py"),
    ],
)
def test_only_the_library_schemes_of_a_data_folder_move_a_file(name: str, placed: str):
    assert installed_path(name) == placed


@pytest.mark.parametrize(
    "name",
    ["INSTALLER", "REQUESTED", "direct_url.json", "provenance_url.json", "uv_cache.json", "RECORD.jws", "RECORD.p7s"],
)
def test_a_file_that_only_an_installer_writes_is_refused_in_every_spelling(name: str, tmp_path: Path):
    for spelled in (name, name.swapcase()):
        driver = wheelhouse.Driver()
        driver.files[f"{driver.stem}.dist-info/{spelled}"] = b"x"
        faults = check(driver.write(tmp_path / spelled))
        assert [fault.code for fault in faults if f"the installer may write {driver.stem}" in fault.reason] == [
            "dist-info"
        ]


DEVICES = ["con", "prn", "aux", "nul", "conin$", "conout$", "com1", "COM9", "com\u00b2", "lpt1", "Lpt9", "lpt\u00b3"]


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_of_windows_is_refused_with_every_ending_and_as_a_folder(name: str, tmp_path: Path):
    for file in (name.upper(), f"{name}.py", f"{name.title()} .tar.gz", f"{name}/x.py"):
        path = wheelhouse.Driver(files={f"dragoman_demo/{file}": b""}).write(tmp_path)
        assert codes(path) == {"path-reserved"}, file


@pytest.mark.parametrize("name", ["console.py", "com.py", "com0.py", "com10.py", "x.con", "auxiliary/nul_.py"])
def test_a_name_like_that_of_a_device_is_accepted(name: str, tmp_path: Path):
    assert codes(wheelhouse.Driver(files={f"dragoman_demo/{name}": b""}).write(tmp_path)) == set()


def test_every_command_that_a_driver_would_install_is_named(tmp_path: Path):
    driver = wheelhouse.Driver()
    driver.entry_points += "[console_scripts]\na = b:c\nd = b:c\n[gui_scripts]\ne = b:c\nf = b:c\n"
    found = [fault.reason for fault in check(driver.write(tmp_path)) if fault.code == "scripts"]
    assert found == [f"A driver may not install the command {name}." for name in "adef"]


def test_a_driver_is_no_dependency_of_another(tmp_path: Path):
    report = inspect(wheelhouse.Driver().write(tmp_path), driver=False)
    assert [fault.code for fault in report.faults] == ["manifest"]


def test_a_wheel_for_another_platform_may_be_published(tmp_path: Path):
    assert codes(wheelhouse.Driver(tag="cp313-cp313-win_amd64").write(tmp_path)) == set()


def test_bombs_are_judged_without_unpacking_them_whole(tmp_path: Path):
    build = HOSTILE["ratio"][0]
    path = build(tmp_path)
    tracemalloc.start()
    check(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20


def test_an_archive_inside_a_wheel_is_data_that_nobody_unpacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Bombs within bombs, and archives that hold themselves, need somebody who opens what they find."""
    inner = HOSTILE["ratio"][0](tmp_path / "inner").read_bytes()
    path = wheelhouse.Driver(files={"dragoman_demo/sample.zip": inner}).write(tmp_path)
    monkeypatch.setattr(archive_checks, "MAX_WHEEL", 1_000_000)
    assert codes(path) == set()


def test_a_size_that_the_directory_understates_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The unpacked bytes are counted while reading, whatever the archive's directory claims."""
    driver = wheelhouse.Driver(files={"dragoman_demo/data.bin": b"ab" * 4_000_000})
    path = driver.write(tmp_path)
    lied = path.read_bytes().replace((8_000_000).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    path.write_bytes(lied)
    assert codes(path) & {"not-a-wheel", "record-mismatch"}
    honest = driver.write(tmp_path / "honest")
    monkeypatch.setattr(archive_checks, "MAX_WHEEL", 1_000_000)
    monkeypatch.setattr(archive_checks, "MAX_RATIO", 10**9)
    assert "too-large" in codes(honest)


def test_what_the_host_brings_covers_the_closure_of_the_api():
    owners = provided()
    assert owners["aiohttp"] == "aiohttp"
    assert owners["yarl"] == "yarl"
    assert owners["dragoman_api"] == "dragoman"
    assert "pytest" not in owners
    assert "pydantic" not in owners
