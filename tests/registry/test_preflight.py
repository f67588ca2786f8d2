"""Hostile and broken wheels are refused before anything is unpacked, with every fault at once."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import wheelhouse
from dragoman_registry.index import WheelFile
from dragoman_registry.preflight import Caps, check, inspect
from dragoman_registry.wheels import Host, provided
from hostile_wheels import HOSTILE, many_faults

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BUILDERS = [
    pytest.param(code, build, id=f"{code}-{number}")
    for code, builds in HOSTILE.items()
    for number, build in enumerate(builds)
]


@pytest.fixture(scope="module")
def host() -> Host:
    return Host.here()


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


def test_the_elasticsearch_wheel_has_no_fault(host: Host):
    assert check(wheelhouse.project_wheel("plugins/elasticsearch"), host=host) == []


@pytest.mark.parametrize(("code", "build"), BUILDERS)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_hostile_wheel_is_refused_for_its_reason(
    code: str, build: Callable[[Path], Path], tmp_path: Path, host: Host
):
    found = check(build(tmp_path), host=host)
    assert code in {fault.code for fault in found}, found
    assert all(fault.reason for fault in found)


def test_many_faults_are_reported_at_once(tmp_path: Path, host: Host):
    found = codes(many_faults(tmp_path), host=host)
    assert found >= {
        "path-escape", "path-reserved", "path-collision", "record-extra", "record-unlisted", "record-weak-hash",
        "record-mismatch", "pth-file", "shadows", "native-code", "data-scheme", "scripts", "manifest", "metadata",
    }  # fmt: skip


def test_a_file_of_another_length_or_digest_than_published_is_refused(tmp_path: Path):
    path = wheelhouse.Driver().write(tmp_path)
    assert codes(path, expected=replace(published(path), size=7)) == {"length-mismatch"}
    assert codes(path, expected=replace(published(path), sha256="0" * 64)) == {"digest-mismatch"}


def test_a_sidecar_that_differs_by_one_byte_is_refused(tmp_path: Path):
    path = wheelhouse.Driver().write(tmp_path)
    data = inspect(path).manifest_data
    assert codes(path, sidecar=data) == set()
    assert codes(path, sidecar=data + b"\n") == {"manifest"}


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


def test_a_driver_is_no_dependency_of_another(tmp_path: Path):
    report = inspect(wheelhouse.Driver().write(tmp_path), driver=False)
    assert [fault.code for fault in report.faults] == ["manifest"]


def test_a_wheel_for_another_platform_may_be_published(tmp_path: Path):
    assert codes(wheelhouse.Driver(tag="cp313-cp313-win_amd64").write(tmp_path)) == set()


def test_bombs_are_judged_without_unpacking_them_whole(tmp_path: Path):
    [build] = HOSTILE["ratio"]
    path = build(tmp_path)
    tracemalloc.start()
    check(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20


def test_a_size_that_the_directory_understates_is_found_out(tmp_path: Path):
    """The unpacked bytes are counted while reading, whatever the archive's directory claims."""
    driver = wheelhouse.Driver(files={"dragoman_demo/data.bin": b"ab" * 4_000_000})
    path = driver.write(tmp_path)
    lied = path.read_bytes().replace((8_000_000).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    path.write_bytes(lied)
    assert codes(path) & {"not-a-wheel", "record-mismatch"}
    honest = driver.write(tmp_path / "honest")
    assert "too-large" in codes(honest, caps=Caps(size=1_000_000, ratio=10**9))


def test_what_the_host_brings_covers_the_closure_of_the_api():
    owners = provided()
    assert owners["aiohttp"] == "aiohttp"
    assert owners["yarl"] == "yarl"
    assert owners["dragoman_api"] == "dragoman"
    assert "pytest" not in owners
    assert "pydantic" not in owners
