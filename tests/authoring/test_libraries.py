"""Libraries that drivers of one author share: working trees beside theirs, in the closed set of each."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

import anyio
import pytest
from authoring.conftest import Tree, serving

import wheelhouse
from dragoman import Runtime, SavedConnection
from dragoman.authoring.check import link
from dragoman.authoring.libraries import library_folders, record_libraries
from dragoman.authoring.wheel_build import built
from dragoman_api.errors import ConfigurationError, RegistryError, WheelRejectedError
from dragoman_registry.client.installed_drivers import Store
from dragoman_registry.wheels.archive_checks import inspect

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "orbit-words"
version = "1.0.0"
requires-python = ">=3.11"
dependencies = ["dragoman-api~=1.0"]

[tool.hatch.build.targets.wheel]
packages = ["orbit_words"]
core-metadata-version = "2.4"
"""


def test_a_library_is_named_in_the_wheel_by_its_hash_beside_what_is_named_already(tmp_path: Path):
    other, library = (wheelhouse.library(name).write(tmp_path) for name in ("tinylib", "orbit_words"))
    driver = wheelhouse.Driver("orbit", dependencies=[wheelhouse.dependency(other)])
    driver.requires.append("orbit-words")
    wheel = driver.write(tmp_path)
    assert [fault.code for fault in inspect(wheel).faults] == ["metadata"], "the library is in no closed set"
    for _ in range(2):  # a second time changes nothing
        record_libraries(wheel, [library])
        report = inspect(wheel)
        assert report.faults == []
        listed = [{"file": entry.file, "sha256": entry.sha256} for entry in report.manifest.dependencies]
        assert listed == [wheelhouse.dependency(library), wheelhouse.dependency(other)]
    changed = wheelhouse.library("orbit_words", code="VALUE = 2\n").write(tmp_path)
    record_libraries(wheel, [changed])
    assert {entry.sha256 for entry in inspect(wheel).manifest.dependencies} == {
        wheelhouse.dependency(path)["sha256"] for path in (changed, other)
    }


@pytest.mark.parametrize("record", [b"", b"a,b\n", b"\n", b"\xff,,\n"])
def test_a_wheel_without_a_sound_record_stays_as_it_is(tmp_path: Path, record: bytes):
    library, wheel = wheelhouse.library("orbit_words").write(tmp_path), wheelhouse.Driver("orbit").write(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in members.items():
            if not name.endswith("/RECORD") or record:
                archive.writestr(name, record if name.endswith("/RECORD") else content)
    before = wheel.read_bytes()
    record_libraries(wheel, [library])
    assert wheel.read_bytes() == before
    assert [fault.code for fault in inspect(wheel).faults] == ["record-missing"]


def test_a_wheel_without_a_manifest_stays_as_it_is(tmp_path: Path):
    library = wheelhouse.library("orbit_words").write(tmp_path)
    broken = wheelhouse.Driver("orbit", label="").write(tmp_path)
    before = broken.read_bytes()
    record_libraries(broken, [library])
    assert broken.read_bytes() == before


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('[tool.dragoman]\nlibraries = ["../nowhere"]', "'../nowhere', which is no folder"),
        ('[tool.dragoman]\nlibraries = ["a\\u0000b"]', "which is no folder"),
        ('[tool.dragoman]\nlibraries = "../nowhere"', "Expected `array`"),
        ('[tool.dragoman]\nlibrary = ["x"]', "unknown field `library`"),
    ],
)
def test_a_library_that_is_not_there_is_told_with_its_name(tmp_path: Path, table: str, told: str):
    (tmp_path / "pyproject.toml").write_text(table)
    with pytest.raises(ConfigurationError, match=r"\[tool\.dragoman\]") as caught:
        library_folders(tmp_path)
    assert told in caught.value.message


@pytest.fixture
def shared(tree: Tree) -> Tree:
    """A driver whose word comes from a library beside it."""
    library = tree.path.with_name("orbit-words")
    (library / "orbit_words").mkdir(parents=True)
    (library / "pyproject.toml").write_text(PROJECT)
    (library / "orbit_words/__init__.py").write_text("WORD = 'Shared'\n")
    tree.change(
        "pyproject.toml",
        ('"dragoman-api~=1.0"', '"dragoman-api~=1.0", "orbit-words~=1.0"'),
        ("[tool.hatch", '[tool.dragoman]\nlibraries = ["../orbit-words"]\n\n[tool.hatch'),
    )
    tree.driver(
        ("from typing import Any\n", "from typing import Any\n\nfrom orbit_words import WORD\n"),
        ('Server("Orbit"', "Server(WORD"),
    )
    return tree


async def product() -> str:
    async with Runtime(spare=False) as runtime, runtime.open("sky") as session:
        return session.server.product


def save(port: int) -> None:
    Runtime(spare=False).connections.save(
        SavedConnection(name="sky", type="orbit", values={"host": "127.0.0.1", "port": port})
    )


@pytest.mark.slow
def test_a_driver_is_published_and_installed_with_its_library(shared: Tree, tmp_path: Path, home: Path):
    before, team = shared.manifest.read_bytes(), tmp_path / "team"
    assert shared.publish(team, dry_run=True).state == "would be published"
    done = shared.publish(team)
    assert done.wheels == ["dragoman_orbit-0.1.0-py3-none-any.whl", "orbit_words-1.0.0-py3-none-any.whl"]
    assert shared.manifest.read_bytes() == before, "the hash is in the wheel alone"
    listed = json.loads((team / f"targets/wheels/dragoman-orbit/{done.wheels[0]}.driver.json").read_bytes())
    assert [entry["file"] for entry in listed["dependencies"]] == done.wheels[1:]
    assert shared.publish(team).state == "already published"
    with serving(shared) as port:
        save(port)
        Runtime(spare=False).registries.add(str(team))
        assert anyio.run(product) == "Shared"
    (shared.path.with_name("orbit-words") / "orbit_words/__init__.py").write_text("WORD = 'Changed'\n")
    with pytest.raises(WheelRejectedError) as caught:
        shared.publish(team)
    assert {code for code, _ in caught.value.faults} == {"immutable"}


@pytest.mark.slow
def test_a_linked_driver_imports_its_library_from_its_folder(shared: Tree, home: Path):
    store, library = Store(home / "data"), shared.path.with_name("orbit-words")
    with serving(shared) as port:
        save(port)
        link(shared.path, store=store)
        assert anyio.run(product) == "Shared"
        (library / "orbit_words/__init__.py").write_text("WORD = 'Changed'\n")
        assert anyio.run(product) == "Changed"
    library.rename(library.with_name("elsewhere"))
    with pytest.raises(RegistryError, match="orbit-words, which is not there"):
        store.active("orbit")


@pytest.mark.slow
def test_a_fault_of_a_library_is_a_fault_of_its_driver(shared: Tree):
    library = shared.path.with_name("orbit-words")
    (library / "orbit_words/tool.pth").write_text("import os\n")
    assert "pth-file" in shared.codes()
    (library / "orbit_words/tool.pth").unlink()
    (library / "orbit_words/secret").symlink_to("/etc/hostname")
    with pytest.raises(WheelRejectedError) as caught, built(shared.path):
        pass
    assert [code for code, _ in caught.value.faults] == ["link-outside"]
