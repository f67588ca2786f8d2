"""A registry is a folder: built whole or not at all, never changed, readable by pip, and checked to the last file."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import wheelhouse
from dragoman_api.errors import (
    ConfigurationError,
    IntegrityError,
    PluginNotFoundError,
    RegistryError,
    WheelRejectedError,
)
from dragoman_registry import files
from dragoman_registry import sources as source
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.verify import verify
from dragoman_registry.trust import tuf_repository
from dragoman_registry.trust.keys import beside, own_key
from dragoman_registry.trust.tuf_client import TufTrust
from hostile_wheels import HOSTILE, library_with_commands

if TYPE_CHECKING:
    from pathlib import Path

NAME = "dragoman_demo-1.0.0-py3-none-any.whl"


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def offered(folder: Path) -> dict[str, bytes]:
    """Leave out what hangs on keys, times and how often something was published."""
    every = snapshot(folder).items()
    return {name: data for name, data in every if not re.match(r"metadata/|targets/[0-9a-f]{64}\.", name)}


def with_dependency(folder: Path, name: str = "two", **changes: object) -> list[Path]:
    library = wheelhouse.library().write(folder)
    driver = wheelhouse.Driver(name, dependencies=[wheelhouse.dependency(library)], **changes)
    driver.requires.append("tinylib")
    return [library, driver.write(folder)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    demo = wheelhouse.Driver().write(tmp_path / "wheels")
    newer = wheelhouse.Driver(version="1.1.0").write(tmp_path / "wheels")
    return wheelhouse.registry(tmp_path / "registry", [demo, newer, *with_dependency(tmp_path / "wheels")])


def rejected(wheels: list[Path], root: Path) -> set[str]:
    before = snapshot(root)
    with pytest.raises(WheelRejectedError) as caught:
        publish.build(wheels, to=root)
    assert snapshot(root) == before
    return {code for code, _ in caught.value.faults}


def test_a_new_registry_is_empty_and_in_order(tmp_path: Path):
    publish.init(tmp_path / "new")
    assert verify(tmp_path / "new") == []
    assert Registry("new", str(tmp_path / "new"), trust=wheelhouse.TrustedPath()).catalog().projects == ()
    publish.init(tmp_path / "new")


@pytest.mark.parametrize("folder", ["there is none", "an empty one", "one with a note"])
@pytest.mark.parametrize("command", ["sign", "mark", "accept", "add-publisher"])
def test_a_folder_that_is_no_registry_is_named_and_left_alone(command: str, folder: str, tmp_path: Path):
    place, key = tmp_path / "place", tmp_path / "key.pem"
    own_key(key)
    if folder != "there is none":
        place.mkdir()
    if folder == "one with a note":
        (place / "note").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    commands = {
        "sign": lambda: publish.sign(place),
        "mark": lambda: publish.mark(place, project="dragoman-demo", version="1.0.0", status="yanked", reason="x"),
        "accept": lambda: wheelhouse.accept(place),
        "add-publisher": lambda: publish.add_publisher(
            place, "me", key=key.with_suffix(".pub"), projects=["dragoman-demo"]
        ),
    }
    with pytest.raises(ConfigurationError, match=re.escape(str(place))):
        commands[command]()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path):
    (tmp_path / "note").write_text("mine")
    with pytest.raises(ConfigurationError, match=re.escape(str(tmp_path))):
        publish.init(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["note"]


def test_what_was_built_is_in_order_and_says_what_it_holds(root: Path):
    assert verify(root) == []
    registry = Registry("r", str(root), trust=wheelhouse.TrustedPath())
    assert registry.types() == {"demo": "dragoman-demo", "two": "dragoman-two"}
    assert [release.version for release in registry.releases("demo")] == ["1.1.0", "1.0.0"]
    [release] = registry.releases("dragoman-two")
    assert [wheel.file for wheel in release.dependencies] == ["tinylib-1.0.0-py3-none-any.whl"]
    assert registry.manifest(release).id == "two"


def test_the_layout_is_that_of_a_simple_repository_with_sidecars(root: Path):
    names = snapshot(root / "targets").keys()
    assert (root / "metadata").is_dir()
    assert {
        "catalog", "types", "advisories", "simple/index.html", "simple/index.v1+json",
        "simple/dragoman-demo/index.html", "simple/dragoman-demo/index.v1+json",
        f"wheels/dragoman-demo/{NAME}", f"wheels/dragoman-demo/{NAME}.metadata",
        f"wheels/dragoman-demo/{NAME}.driver.json", "wheels/tinylib/tinylib-1.0.0-py3-none-any.whl.metadata",
        "docs/dragoman-demo/1.0.0/README.md",
    } <= names  # fmt: skip


def test_a_project_page_carries_sizes_times_digests_and_relative_urls(root: Path):
    page = json.loads((root / "targets/simple/dragoman-demo/index.v1+json").read_bytes())
    assert page["meta"]["api-version"] == "1.4"
    assert page["versions"] == ["1.1.0", "1.0.0"]
    [file] = [file for file in page["files"] if file["filename"] == NAME]
    wheel = root / "targets/simple/dragoman-demo" / file["url"]
    assert file["hashes"] == {"sha256": wheelhouse.dependency(wheel.resolve())["sha256"]}
    assert file["size"] == wheel.stat().st_size
    assert file["upload-time"] == f"{wheelhouse.NOW:%Y-%m-%d}T00:00:00Z"
    assert file["yanked"] is False
    assert file["requires-python"] == ">=3.11"


def test_the_same_wheels_make_the_same_registry_byte_for_byte(tmp_path: Path, root: Path):
    wheels = [tmp_path / "wheels" / name for name in sorted(path.name for path in (tmp_path / "wheels").iterdir())]
    again = wheelhouse.registry(tmp_path / "again", wheels)
    assert offered(again) == offered(root)
    assert offered(wheelhouse.registry(tmp_path / "reversed", wheels[::-1])) == offered(root)


def test_building_one_by_one_makes_the_same_registry(tmp_path: Path, root: Path):
    for wheel in sorted((tmp_path / "wheels").iterdir(), reverse=True):
        wheelhouse.registry(tmp_path / "slow", [wheel])
    assert offered(tmp_path / "slow") == offered(root)


def test_publishing_the_same_file_again_changes_nothing(tmp_path: Path, root: Path):
    before = snapshot(root)
    [release] = publish.build([tmp_path / "wheels" / NAME], to=root)
    assert (release.plugin, release.version) == ("demo", "1.0.0")
    assert snapshot(root) == before


def test_a_published_version_never_changes(tmp_path: Path, root: Path):
    other = wheelhouse.Driver(summary="other bytes").write(tmp_path / "other")
    assert rejected([other], root) == {"immutable"}


def test_one_bad_wheel_keeps_all_of_them_out_and_every_fault_is_named(tmp_path: Path, root: Path):
    good = wheelhouse.Driver(version="3.0.0").write(tmp_path / "bad")
    bad = wheelhouse.Driver("three", host_api="~=2.0", files={"evil.py": b""}).write(tmp_path / "bad")
    assert rejected([good, bad], root) == {"host-api", "foreign-module"}


def test_a_truncated_wheel_is_refused(tmp_path: Path):
    publish.init(tmp_path / "r")
    assert rejected([HOSTILE["not-a-wheel"][0](tmp_path / "bad")], tmp_path / "r") == {"not-a-wheel"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"id": "demo"}, "name-taken"), ({"types": [{"name": "demo", "label": "Mine"}]}, "type-taken")],
)
def test_names_and_types_of_others_cannot_be_taken(changes: dict[str, object], code: str, tmp_path: Path, root: Path):
    driver = wheelhouse.Driver("squatter", **changes)
    driver.entry_points = f"[dragoman.drivers]\n{driver.manifest['id']} = dragoman_squatter:driver.json\n"
    assert rejected([driver.write(tmp_path / "bad")], root) == {code}


def test_a_closed_set_must_be_complete(tmp_path: Path, root: Path):
    absent = wheelhouse.library("ghostlib").write(tmp_path / "elsewhere")
    lonely = wheelhouse.Driver("four", dependencies=[wheelhouse.dependency(absent)])
    lonely.requires.append("ghostlib")
    assert rejected([lonely.write(tmp_path / "bad")], root) == {"dependency-missing"}
    needy = wheelhouse.library("needy")
    needy.requires = ["tinylib"]
    library = needy.write(tmp_path / "bad")
    driver = wheelhouse.Driver("five", dependencies=[wheelhouse.dependency(library)])
    driver.requires.append("needy")
    assert rejected([library, driver.write(tmp_path / "bad")], root) == {"dependency-missing"}


def test_a_closed_set_is_named_by_hash(tmp_path: Path, root: Path):
    driver = wheelhouse.Driver("six", dependencies=[{"file": "tinylib-1.0.0-py3-none-any.whl", "sha256": "0" * 64}])
    driver.requires.append("tinylib")
    assert rejected([driver.write(tmp_path / "bad")], root) == {"dependency-mismatch"}


def test_the_wheels_of_one_version_have_one_manifest(tmp_path: Path, root: Path):
    windows = wheelhouse.Driver(tag="cp313-cp313-win_amd64", summary="another").write(tmp_path / "bad")
    assert rejected([windows], root) == {"manifest"}
    publish.build([wheelhouse.Driver(tag="cp313-cp313-win_amd64").write(tmp_path / "good")], to=root)
    assert len(Registry("r", str(root), trust=wheelhouse.TrustedPath()).releases("demo")[1].wheels) == 2
    assert verify(root) == []


def test_a_wheel_that_is_not_there_is_a_fault(tmp_path: Path, root: Path):
    assert rejected([tmp_path / NAME.replace("1.0.0", "7.0.0")], root) == {"not-a-wheel"}


def test_a_registry_that_cannot_be_written_says_so(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch):
    def full(path: Path, data: bytes, **_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(files, "write", full)
    with pytest.raises(RegistryError, match=os.strerror(errno.ENOSPC)) as caught:
        publish.build([wheelhouse.Driver(version="9.0.0").write(tmp_path / "w2")], to=root)
    assert caught.value.code == "registry-not-written"


def test_an_interrupted_init_can_be_repeated(tmp_path: Path):
    (tmp_path / "r/metadata").mkdir(parents=True)
    (tmp_path / "r/targets/simple").mkdir(parents=True)
    publish.init(tmp_path / "r")
    assert verify(tmp_path / "r") == []


def test_a_native_library_needs_the_permission_of_the_driver(tmp_path: Path, root: Path):
    library = wheelhouse.library("fastlib", tag="cp311-cp311-linux_x86_64")
    library.files["fastlib/fast.so"] = b"\x7fELF"
    path = library.write(tmp_path / "native")
    driver = wheelhouse.Driver("seven", dependencies=[wheelhouse.dependency(path)])
    driver.requires.append("fastlib")
    assert rejected([path, driver.write(tmp_path / "bad")], root) == {"native-code"}
    driver.manifest["permissions"] = ["net:connection", "native-code"]
    publish.build([path, driver.write(tmp_path / "good")], to=root)
    assert verify(root) == []


def test_a_library_with_commands_may_belong_to_a_closed_set(tmp_path: Path):
    root = wheelhouse.registry(tmp_path / "r", [library_with_commands(tmp_path)])
    assert verify(root) == []


def test_yanking_needs_a_reason_is_shown_and_can_be_undone(root: Path):
    with pytest.raises(ConfigurationError) as caught:
        publish.mark(root, project="demo", version="1.1.0", status="yanked")
    assert caught.value.hint.startswith("--reason")
    assert Registry("r", str(root), trust=wheelhouse.TrustedPath()).releases("demo")[0].yanked is None
    publish.mark(root, project="demo", version="1.1.0", status="yanked", reason='loses "data"')
    page = json.loads((root / "targets/simple/dragoman-demo/index.v1+json").read_bytes())
    assert [file["yanked"] for file in page["files"]] == ['loses "data"', False]
    assert "data-yanked=" in (root / "targets/simple/dragoman-demo/index.html").read_text()
    assert Registry("r", str(root), trust=wheelhouse.TrustedPath()).releases("demo")[0].yanked == 'loses "data"'
    publish.mark(root, project="demo", version="1.1.0", status="active")
    assert Registry("r", str(root), trust=wheelhouse.TrustedPath()).releases("demo")[0].yanked is None
    assert verify(root) == []


def test_a_quarantined_version_is_no_longer_offered_to_anybody(root: Path):
    publish.mark(root, project="dragoman-demo", version="1.1.0", status="quarantined", reason="steals")
    registry = Registry("r", str(root), trust=wheelhouse.TrustedPath())
    assert registry.advisories().quarantined == {"dragoman-demo": {"1.1.0": "steals"}}
    assert registry.releases("demo")[0].quarantined == "steals"
    assert "1.1.0" not in (root / "targets/simple/dragoman-demo/index.html").read_text()
    assert verify(root) == []


@pytest.mark.parametrize("status", ["yanked", "deprecated"])
def test_only_active_lifts_a_quarantine(root: Path, status: publish.Status):
    publish.mark(root, project="demo", version="1.1.0", status="quarantined", reason="steals")
    with pytest.raises(ConfigurationError, match=r"demo 1\.1\.0 is quarantined \(steals\)"):
        publish.mark(root, project="demo", version="1.1.0", status=status, reason="old")
    publish.mark(root, project="demo", version="1.1.0", status="quarantined", reason="steals passwords")
    assert Registry("r", str(root), trust=wheelhouse.TrustedPath()).advisories().quarantined == {
        "dragoman-demo": {"1.1.0": "steals passwords"}
    }
    publish.mark(root, project="demo", version="1.1.0", status="active")
    publish.mark(root, project="demo", version="1.1.0", status=status, reason="old")
    assert Registry("r", str(root), trust=wheelhouse.TrustedPath()).advisories().quarantined == {}


def test_marking_what_is_not_there_is_an_error(root: Path):
    with pytest.raises(PluginNotFoundError, match=r"demo.*9\.9"):
        publish.mark(root, project="demo", version="9.9", status="yanked", reason="x")


def test_a_mark_survives_the_next_build(tmp_path: Path, root: Path):
    publish.mark(root, project="demo", version="1.0.0", status="yanked", reason="old")
    publish.build([wheelhouse.Driver(version="1.2.0").write(tmp_path / "more")], to=root)
    yanked = {
        release.version: release.yanked
        for release in Registry("r", str(root), trust=wheelhouse.TrustedPath()).releases("demo")
    }
    assert yanked == {"1.2.0": None, "1.1.0": None, "1.0.0": "old"}


def damage_all(root: Path) -> dict[str, str]:
    """Damage one file after the other; give path → code that verify must name."""
    targets = root / "targets"
    demo, two = targets / "wheels/dragoman-demo", targets / "wheels/dragoman-two"
    (demo / NAME).write_bytes((demo / NAME).read_bytes()[:-100])
    (demo / NAME.replace("1.0.0", "1.1.0")).unlink()
    (two / "dragoman_two-1.0.0-py3-none-any.whl.driver.json").write_bytes(b"{}")
    tiny = targets / "wheels/tinylib/tinylib-1.0.0-py3-none-any.whl.metadata"
    tiny.write_bytes(tiny.read_bytes() + b"\n")
    (targets / "simple/dragoman-two/index.html").unlink()
    (targets / "simple/index.v1+json").write_bytes(b"{}")
    (targets / "types").write_bytes(b'{"types_version": 1, "types": {"demo": "dragoman-two"}}')
    (demo / "stray.whl").write_bytes(b"")
    return {
        f"wheels/dragoman-demo/{NAME}": "length-mismatch",
        f"wheels/dragoman-demo/{NAME.replace('1.0.0', '1.1.0')}": "missing",
        "wheels/dragoman-two/dragoman_two-1.0.0-py3-none-any.whl.driver.json": "manifest",
        "wheels/tinylib/tinylib-1.0.0-py3-none-any.whl.metadata": "metadata",
        "simple/dragoman-two/index.html": "missing",
        "simple/index.v1+json": "page",
        "types": "page",
        "wheels/dragoman-demo/stray.whl": "unlisted",
    }


def test_verify_names_every_bad_file_at_once(root: Path):
    expected = damage_all(root)
    found = {(fault.where, fault.code) for fault in verify(root)}
    assert set(expected.items()) <= found


def test_a_damaged_catalog_stops_a_build_and_is_not_overwritten(tmp_path: Path, root: Path):
    for catalog in root.glob("targets/*.catalog"):
        catalog.write_bytes(catalog.read_bytes()[:50])
    before = snapshot(root)
    with pytest.raises(IntegrityError):
        publish.build([wheelhouse.Driver(version="5.0.0").write(tmp_path / "more")], to=root)
    assert snapshot(root) == before
    [fault] = verify(root)
    assert fault.where.endswith(".catalog")


@pytest.mark.slow
def test_a_build_that_stops_anywhere_leaves_a_readable_registry(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
):
    """Stop before each write in turn: old and new clients still read a registry whose files are all there."""
    newer = wheelhouse.Driver(version="2.0.0").write(tmp_path / "more")
    real, count = files.write, 0

    class Stopped(BaseException):
        pass

    for stop in range(1, 100):
        copy, count = tmp_path / f"copy-{stop}", 0
        shutil.copytree(root, copy)
        shutil.copytree(beside(root), beside(copy))

        def write(path: Path, data: bytes, stop: int = stop, **_: object) -> None:
            nonlocal count
            count += 1
            if count == stop:
                raise Stopped
            real(path, data)

        for module in (files, tuf_repository):
            monkeypatch.setattr(module, "write", write)
        try:
            publish.build([newer], to=copy)
        except Stopped:
            pass
        else:
            break
        trust = TufTrust(source.open_source(str(copy)), where="r", cache=tmp_path / f"cache-{stop}", first_use=True)
        registry = Registry("r", str(copy), trust=trust)
        for release in registry.releases("demo"):
            assert registry.manifest(release).id == "demo"
            assert all((copy / "targets" / wheel.path).is_file() for wheel in release.wheels)
        assert set(registry.types()) == {"demo", "two"}
        for page in copy.glob("targets/simple/*/index.v1+json"):
            for file in json.loads(page.read_bytes())["files"]:
                assert (page.parent / file["url"]).is_file()
        for module in (files, tuf_repository):
            monkeypatch.setattr(module, "write", real)
        publish.build([newer], to=copy)
        assert verify(copy) == []
    assert stop > 5


def pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--isolated", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)


@pytest.mark.slow
def test_pip_downloads_from_the_folder(tmp_path: Path, root: Path):
    publish.mark(root, project="demo", version="1.1.0", status="yanked", reason="old")
    simple = (root / "targets/simple").as_uri()
    done = pip("download", "--no-deps", "--index-url", simple, "dragoman-demo", "dragoman-two", "-d", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / NAME).read_bytes() == (root / "targets/wheels/dragoman-demo" / NAME).read_bytes()
    assert not list(tmp_path.glob("dragoman_demo-1.1.0*"))


@pytest.mark.slow
def test_pip_refuses_a_file_that_was_changed(tmp_path: Path, root: Path):
    wheel = root / "targets/wheels/dragoman-two/dragoman_two-1.0.0-py3-none-any.whl"
    wheel.write_bytes(wheelhouse.Driver("two", summary="other").write(tmp_path / "x").read_bytes())
    simple = (root / "targets/simple").as_uri()
    done = pip("download", "--no-deps", "--index-url", simple, "dragoman-two", "-d", str(tmp_path))
    assert done.returncode != 0
    assert "hash" in done.stderr.lower()


@pytest.mark.slow
def test_a_deprecated_version_is_still_offered_and_names_what_replaces_it(root: Path):
    publish.mark(root, project="demo", version="1.0.0", status="deprecated", reason="too slow", replaced_by="swift")
    registry = Registry("team", str(root), trust=wheelhouse.TrustedPath())
    assert registry.advisories().deprecated == {"dragoman-demo": {"1.0.0": "too slow; use swift instead"}}
    assert registry.releases("demo")[1].replaced_by == "swift"
    publish.mark(root, project="demo", version="1.0.0", status="active")
    assert registry.advisories().deprecated == {}
    assert verify(root) == []
