"""A bundle cut, garbled or made to mislead: one clear error each, and nothing is half installed."""

from __future__ import annotations

import os
import shutil
import struct
import tracemalloc
import zipfile
from typing import TYPE_CHECKING

import pytest

import wheelhouse
from dragoman.folders import find_paths
from dragoman.plugins.registries import Registries
from dragoman_api.errors import DragomanError, IndexInvalidError, RegistryError
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.publisher import mirror
from dragoman_registry.sources import CHUNK, BundleSource, open_source, read
from dragoman_registry.trust.tuf_client import TufTrust
from installing import Place

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CODES = {"bundle-damaged", "trust-failed", "integrity-failed", "index-invalid", "not-signed"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    root = wheelhouse.registry(folder / "team", [wheelhouse.Driver().write(folder / "w")])
    mirror.pack(root, folder / "team.zip")
    return folder / "team.zip"


def install(bundle: Path, tmp_path: Path) -> Place:
    """Add a bundle and install from it, as a person would."""
    Registries(find_paths()).add(str(bundle), name="b")
    trust = TufTrust(open_source(str(bundle)), where="b", cache=tmp_path / "cache", first_use=True)
    place = Place(tmp_path / "place")
    place.registry = Registry("b", str(bundle), trust=trust)
    assert place.install().version == "1.0.0"
    return place


def refused(bundle: Path, tmp_path: Path) -> DragomanError:
    with pytest.raises(RegistryError) as caught:
        install(bundle, tmp_path)
    assert caught.value.code in CODES, caught.value
    assert caught.value.hint
    assert not list((tmp_path / "place").rglob("trees/*"))
    return caught.value


def test_a_whole_bundle_installs(whole: Path, tmp_path: Path):
    install(whole, tmp_path)


def test_a_bundle_cut_at_any_byte_is_refused(whole: Path, tmp_path: Path):
    data, bundle = whole.read_bytes(), tmp_path / "cut.zip"
    for at in [*range(60), *range(60, len(data), 997), *range(len(data) - 60, len(data))]:
        bundle.write_bytes(data[:at])
        with pytest.raises(RegistryError) as caught:
            read(BundleSource(bundle), "metadata/timestamp.json", limit=1 << 20)
        assert caught.value.code == "bundle-damaged", at
        assert str(bundle) in caught.value.message
        assert "copy" in caught.value.hint
    refused(bundle, tmp_path)


def test_a_bundle_with_any_byte_changed_is_refused_or_is_as_good(whole: Path, tmp_path: Path):
    data, bundle = whole.read_bytes(), tmp_path / "flipped.zip"
    names, codes = zipfile.ZipFile(whole).namelist(), set[str]()
    for at in range(0, len(data), 211):
        bundle.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        for name in names[:3]:
            codes.add(tried(bundle, name))
    assert {"", "bundle-damaged"} <= codes <= {"", "bundle-damaged", "index-invalid"}


def tried(bundle: Path, name: str) -> str:
    """Return the code of the error that reading the members raises, empty for none."""
    try:
        read(BundleSource(bundle), name, limit=1 << 24)
    except RegistryError as error:
        return error.code
    return ""


def rewritten(whole: Path, bundle: Path, change: Callable[[zipfile.ZipFile], object]) -> None:
    shutil.copy(whole, bundle)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)
        with zipfile.ZipFile(bundle, "a", zipfile.ZIP_DEFLATED) as archive:
            change(archive)


def link(archive: zipfile.ZipFile) -> None:
    info = zipfile.ZipInfo("targets/x")
    info.external_attr = 0o120777 << 16
    archive.writestr(info, "/etc/passwd")


ODD: dict[str, Callable[[zipfile.ZipFile], object]] = {
    "a name twice": lambda archive: archive.writestr("metadata/timestamp.json", b"{}"),
    "an absolute name": lambda archive: archive.writestr("/etc/passwd", b"x"),
    "a name that leads out": lambda archive: archive.writestr("targets/../../evil", b"x"),
    "a name with a drive": lambda archive: archive.writestr("C:/evil", b"x"),
    "a name that is none": lambda archive: archive.writestr("targets//x", b"x"),
    "a backslash": lambda archive: archive.writestr("targets\\..\\x", b"x"),
    "a link": link,
}


@pytest.mark.parametrize("kind", ODD)
def test_a_bundle_that_can_be_read_in_two_ways_is_refused(kind: str, whole: Path, tmp_path: Path):
    bundle = tmp_path / "odd.zip"
    rewritten(whole, bundle, ODD[kind])
    assert refused(bundle, tmp_path).code == "bundle-damaged"


def test_a_bundle_within_a_bundle_and_stray_files_are_not_looked_at(whole: Path, tmp_path: Path):
    bundle = tmp_path / "nested.zip"
    rewritten(whole, bundle, lambda archive: archive.write(whole, "targets/inner.zip"))
    install(bundle, tmp_path)


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip" * 999, b"PK\5\6" + bytes(18), bytes(1 << 16)])
def test_what_is_no_bundle_is_refused(content: bytes, tmp_path: Path):
    bundle = tmp_path / "none.zip"
    bundle.write_bytes(content)
    refused(bundle, tmp_path)


def test_a_pipe_or_a_folder_in_the_place_of_a_bundle_blocks_nothing(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.zip")
    (tmp_path / "folder.zip").mkdir()
    for name in ("pipe.zip", "folder.zip"):
        with pytest.raises(RegistryError):
            read(BundleSource(tmp_path / name), "metadata/timestamp.json", limit=10)


def test_a_bomb_is_read_no_further_than_its_limit(whole: Path, tmp_path: Path):
    bundle, source = tmp_path / "bomb.zip", None
    rewritten(whole, bundle, lambda archive: archive.writestr("targets/bomb", bytes(64 << 20)))
    source = BundleSource(bundle)
    with pytest.raises(IndexInvalidError) as caught:
        read(source, "targets/bomb", limit=1 << 20)
    assert str(1 << 20) in caught.value.message
    assert all(len(chunk) <= CHUNK for chunk in source.chunks("targets/bomb"))


@pytest.mark.slow
@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=["bzip2", "LZMA"])
@pytest.mark.parametrize("damage", [0, 8], ids=["whole", "damaged"])
def test_a_member_packed_in_a_way_that_cannot_be_bounded_is_refused(method: int, damage: int, tmp_path: Path):
    bundle = tmp_path / "packed.zip"
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.writestr("targets/catalog", bytes(24 << 20), compress_type=method)
    data = bytearray(bundle.read_bytes())
    data[60 : 60 + damage] = b"\xff" * damage
    bundle.write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(RegistryError) as caught:
            read(BundleSource(bundle), "targets/catalog", limit=1000)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert caught.value.code == "bundle-damaged"
    assert "'targets/catalog'" in caught.value.message
    assert caught.value.message.endswith(f" {method:d}")


def test_a_member_that_lies_about_its_size_its_method_or_its_secret_is_refused(whole: Path, tmp_path: Path):
    data = bytearray(whole.read_bytes())
    at = data.find(b"PK\1\2")
    for offset, value in ((10, struct.pack("<H", 99)), (8, struct.pack("<H", 1)), (24, struct.pack("<L", 5))):
        changed = bytearray(data)
        changed[at + offset : at + offset + len(value)] = value
        (tmp_path / "lies.zip").write_bytes(changed)
        name = zipfile.ZipFile(whole).namelist()[0]
        with pytest.raises(RegistryError) as caught:
            read(BundleSource(tmp_path / "lies.zip"), name, limit=1 << 24)
        assert caught.value.code == "bundle-damaged", offset


def test_the_directory_of_a_bundle_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    opened = []
    real = zipfile.ZipFile._RealGetContents
    monkeypatch.setattr(zipfile.ZipFile, "_RealGetContents", lambda self: (opened.append(1), real(self))[1])
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(2000):
            archive.writestr(f"targets/{number}", b"x")
    opened.clear()
    source = BundleSource(tmp_path / "many.zip")
    for number in range(2000):
        assert read(source, f"targets/{number}", limit=10) == b"x"
    assert len(opened) == 1
