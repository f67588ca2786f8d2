"""A folder from somebody else: nothing outside it is published, and nothing in it delays the author."""

from __future__ import annotations

import json
import os
import shutil
import sys

import pytest
from authoring.conftest import contents
from packaging.requirements import Requirement

import wheelhouse
from dragoman.authoring.closed_set import close_set, write_dependencies
from dragoman.authoring.wheel_build import built
from dragoman_api.errors import ConfigurationError, DragomanError, WheelRejectedError
from dragoman_registry.client.installed_drivers import Store

pytestmark = pytest.mark.slow
SECRET = "-----BEGIN OPENSSH PRIVATE KEY-----"


@pytest.fixture
def key(tmp_path):
    """Return a file that no folder but its own may give away."""
    file = tmp_path / "home/.ssh/id_rsa"
    file.parent.mkdir(parents=True)
    file.write_text(SECRET)
    return file


def leads_out(tree, key, name):
    target = tree.path / name
    target.unlink(missing_ok=True)
    target.symlink_to(os.path.relpath(key, target.parent))
    return target


@pytest.mark.parametrize("name", ["CHANGELOG.md", "README.md", "dragoman_orbit/icon.svg", "LICENSE"])
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_link_out_of_the_folder_is_not_followed(ready, tmp_path, key, name, dry_run):
    leads_out(ready, key, name)
    with pytest.raises(WheelRejectedError, match=rf"{name}: It is a link out of the project") as caught:
        ready.publish(tmp_path / "team", dry_run=dry_run)
    assert "link-outside" in {code for code, _ in caught.value.faults}
    assert not any(SECRET.encode() in data for data in contents(tmp_path / "team").values())


def test_a_folder_that_is_a_link_out_of_the_folder_is_not_followed(ready, tmp_path, key):
    (ready.path / "dragoman_orbit/data").symlink_to(key.parent)
    with pytest.raises(WheelRejectedError, match="dragoman_orbit/data: It is a link out of the project"):
        ready.publish(tmp_path / "team")


@pytest.mark.parametrize("readme", ['"{}"', '{{ file = "{}", content-type = "text/markdown" }}'])
def test_what_pyproject_names_outside_of_the_folder_is_not_published(ready, tmp_path, key, readme):
    outside = os.path.relpath(key.rename(key.with_suffix(".md")), ready.path)
    ready.change("pyproject.toml", ('readme = "README.md"', f"readme = {readme.format(outside)}"))
    with pytest.raises(WheelRejectedError, match=r"readme names '.*id_rsa\.md', out of the project"):
        ready.publish(tmp_path / "team")
    assert not (tmp_path / "team").exists()


def test_links_within_the_folder_and_those_of_an_environment_are_no_fault(ready, tmp_path):
    (ready.path / "docs").mkdir()
    shutil.move(ready["CHANGELOG.md"], ready.path / "docs/CHANGELOG.md")
    ready["CHANGELOG.md"].symlink_to("docs/CHANGELOG.md")
    (ready.path / ".venv/bin").mkdir(parents=True)
    (ready.path / ".venv/bin/python").symlink_to(sys.executable)
    ready.publish(tmp_path / "team", dry_run=True)
    ready.publish(tmp_path / "team")
    there = contents(tmp_path / "team")["targets/docs/dragoman-orbit/0.1.0/CHANGELOG.md"]
    assert there == (ready.path / "docs/CHANGELOG.md").read_bytes()


def test_links_that_go_round_and_what_is_no_file_hold_nobody_up(ready, tmp_path):
    for name in ("a", "b"):
        (ready.path / "dragoman_orbit" / name).symlink_to(".")
        (ready.path / name).symlink_to("dragoman_orbit/..")
    (ready.path / "self").symlink_to("self")
    os.mkfifo(ready.path / "pipe")
    os.mkfifo(ready.path / "tests/driver.json")
    (ready.path / "zero").symlink_to("/dev/zero")
    with pytest.raises(WheelRejectedError) as caught:
        ready.check()
    assert [reason.partition(":")[0] for _, reason in caught.value.faults] == ["zero"]
    (ready.path / "zero").unlink()
    assert not ready.check().faults
    for name in ("a", "b"):
        (ready.path / "dragoman_orbit" / name).unlink()
    ready.publish(tmp_path / "team", dry_run=True)
    ready.publish(tmp_path / "team")


@pytest.mark.parametrize("name", ["report.json", "CHANGELOG.md"])
def test_a_pipe_in_the_place_of_a_paper_holds_nobody_up(ready, tmp_path, name):
    ready[name].unlink()
    os.mkfifo(ready[name])
    ready.publish(tmp_path / "team")
    assert "targets/docs/dragoman-orbit/0.1.0/README.md" in contents(tmp_path / "team")


def test_a_changelog_that_nobody_could_read_is_refused(ready, tmp_path):
    with ready["CHANGELOG.md"].open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ConfigurationError, match=r"CHANGELOG\.md cannot be read: .* larger than"):
        ready.publish(tmp_path / "team")


def test_the_report_is_not_written_through_a_link(tree, tmp_path, key):
    leads_out(tree, key, "report.json")
    with pytest.raises(WheelRejectedError, match=r"report\.json: It is a link out of the project"):
        tree.publish(tmp_path / "team")
    assert key.read_text() == SECRET


def test_a_dependency_as_large_as_the_disk_is_not_read(tree, tmp_path):
    wheel = wheelhouse.library().write(tree.path / "wheels")
    write_dependencies(tree.manifest, [wheel])
    with wheel.open("r+b") as file:
        file.truncate(1 << 40)
    with built(tree.path) as made:
        assert "too-large" in {fault.code for fault in made.faults}
    with pytest.raises(ConfigurationError, match=r"tinylib-1\.0\.0-py3-none-any\.whl is 1,099,511,627,776 bytes"):
        write_dependencies(tree.manifest, close_set([Requirement("tinylib")], wheel.parent)[0])


def test_a_dependency_that_is_a_pipe_is_missing(tree):
    wheel = wheelhouse.library().write(tree.path / "wheels")
    write_dependencies(tree.manifest, [wheel])
    wheel.unlink()
    os.mkfifo(wheel)
    with built(tree.path) as made:
        assert "dependency-missing" in {fault.code for fault in made.faults}
    with pytest.raises(
        ConfigurationError,
        check=lambda error: error.code == "dependency-missing" and "tinylib cannot be met" in error.message,
    ):
        close_set([Requirement("tinylib")], wheel.parent)


def test_a_link_among_thousands_of_files_is_found(tree, key):
    for number in range(100):
        folder = tree.path / f"data/{number}"
        folder.mkdir(parents=True)
        for each in range(20):
            os.close(os.open(f"{folder}/{each}.txt", os.O_CREAT))
    assert not tree.check().faults
    leads_out(tree, key, "data/99/link.txt")
    with pytest.raises(WheelRejectedError, match=r"data/99/link\.txt: It is a link out of the project"):
        tree.check()


@pytest.mark.parametrize("name", ["../../x", "dragoman/../../x", "/x", "dragoman orbit\\n", "x" * 5_000])
def test_a_name_that_is_a_path_names_nothing(tree, tmp_path, name):
    before = set(tmp_path.rglob("*"))
    tree.change("pyproject.toml", ('"dragoman-orbit"', json.dumps(name)))
    with pytest.raises(DragomanError):
        tree.publish(tmp_path / "team")
    assert {path for path in set(tmp_path.rglob("*")) - before if tree.path not in path.parents} == set()


def test_a_backend_that_makes_a_pipe_or_a_vast_wheel_holds_nobody_up(tree):
    name = "dragoman_orbit-0.1.0-py3-none-any.whl"
    tree.change("pyproject.toml", ('"hatchling.build"', '"backend"\nbackend-path = ["."]'))
    for make in (f"os.mkfifo(folder + '/{name}')", f"os.truncate(os.open(folder + '/{name}', 66), 1 << 40)"):
        tree["backend.py"].write_text(f"import os\ndef build_wheel(folder):\n    {make}\n")
        with pytest.raises(ConfigurationError, match=r"\.whl (is|cannot be read)"), built(tree.path):
            pass


def test_a_backend_in_a_folder_that_goes_round_is_told(tree):
    (tree.path / "round").symlink_to("round")
    tree.change("pyproject.toml", ('"hatchling.build"', '"backend"\nbackend-path = ["round"]'))
    with pytest.raises(ConfigurationError), built(tree.path):
        pass


def test_a_vast_pyproject_or_a_deep_one_is_told(tree):
    text = tree["pyproject.toml"].read_text()
    for more in (f"#{'x' * (8 << 20)}", "a = " + "[" * 200_000, ".".join(["a"] * 60_000) + " = 1"):
        tree["pyproject.toml"].write_text(f"{more}\n{text}")
        with pytest.raises(ConfigurationError, match=r"pyproject\.toml cannot be read"), built(tree.path):
            pass


def test_a_link_out_of_the_folder_is_not_linked(tree, key, home):
    from dragoman.authoring.check import link

    leads_out(tree, key, "dragoman_orbit/data.txt")
    with pytest.raises(WheelRejectedError, match="link out of the project"):
        link(tree.path, store=Store(home / "data"))
