"""A publication encodes the records that change and takes over the others: the same bytes as a build from nothing."""

from __future__ import annotations

import json
import multiprocessing
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import marketplace
import wheelhouse
from dragoman_api.errors import IndexInvalidError
from dragoman_registry.index import search_summaries
from dragoman_registry.index.catalog import Catalog, Project
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.publisher import folder as registry_folder
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.edit import editing
from dragoman_registry.publisher.index_records import Index, encode
from dragoman_registry.publisher.pages import index_stamp
from dragoman_registry.publisher.verify import verify
from dragoman_registry.validation import Unreadable
from dragoman_registry.wheels.wheel_file import WheelFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dragoman_registry.publisher.edit import Edit

TEXTS = st.text(max_size=20) | st.sampled_from(["[]", "a\n    b", '"}, {"', "\u2028 \\ é", '"projects": []'])
STATUSES = st.none() | TEXTS


@st.composite
def drivers(draw: st.DrawFn) -> list[Project]:
    """Draw a driver, each with its own marks and texts, for each of a few numbers."""
    projects = []
    for number in draw(st.lists(st.integers(0, 6), unique=True, max_size=5)):
        project = marketplace.project(number, releases=draw(st.integers(1, 3)))
        releases = tuple(
            replace(
                release, yanked=draw(STATUSES), quarantined=draw(STATUSES), deprecated=draw(STATUSES),
                replaced_by=draw(st.sampled_from(["", "other"])),
            )
            for release in project.releases
        )  # fmt: skip
        projects.append(replace(project, label=draw(TEXTS), summary=draw(TEXTS), releases=releases))
    return projects


def libraries(count: int) -> tuple[WheelFile, ...]:
    return tuple(
        WheelFile(file=f"lib{n}-1-py3-none-any.whl", size=1, sha256="0" * 64, summary="[]") for n in range(count)
    )


def ordered(*groups: list[Project], count: int) -> Catalog:
    """Make the catalog in which later drivers replace earlier ones of the same project."""
    projects = {project.project: project for group in groups for project in group}
    return Catalog(projects=tuple(projects[name] for name in sorted(projects)), libraries=libraries(count))


@given(drivers(), drivers(), st.integers(0, 2), st.integers(0, 2))
def test_what_is_taken_over_and_what_is_made_anew_are_the_same_bytes(
    before: list[Project], changes: list[Project], few: int, more: int
):
    old, new = ordered(before, count=few), ordered(before, changes, count=more)
    whole = Index.of(new)
    assert whole.files["catalog"] == encode(new)
    assert whole.files["browse"] == search_summaries.encode(map(search_summaries.summarise, new.projects))
    taken_over = Index.read(Index.of(old).files).with_drivers(changes, libraries=new.libraries)
    assert taken_over.files == whole.files
    assert list(taken_over.rows) == list(taken_over.records) == [project.project for project in new.projects]
    assert taken_over.catalog() == new


def test_marks_are_kept_by_driver_in_the_order_of_the_catalog():
    marked = [
        replace(
            project, releases=tuple(replace(release, yanked="old", replaced_by="x") for release in project.releases)
        )
        for project in (marketplace.project(2), marketplace.project(0))
    ]
    index = Index.of(ordered([marketplace.project(n) for n in range(3)], count=0)).with_drivers(marked)
    reasons = {"2.0.0": "old; use x instead", "1.0.0": "old; use x instead"}
    yanked = json.loads(index.files["advisories"])["yanked"]
    assert list(yanked.items()) == [("dragoman-store000000", reasons), ("dragoman-store000002", reasons)]
    assert json.loads(index.with_drivers([marketplace.project(0)]).files["advisories"])["yanked"].keys() == {
        "dragoman-store000002"
    }


@pytest.mark.parametrize("name", ["catalog", "browse", "advisories"])
def test_files_that_name_different_drivers_are_not_taken_over(name: str):
    quarantined = replace(marketplace.project(1), releases=(replace(marketplace.project(1).releases[0], yanked="x"),))
    larger = Index.of(Catalog(projects=(marketplace.project(0), quarantined))).files
    smaller = Index.of(Catalog(projects=(marketplace.project(0),))).files
    with pytest.raises(Unreadable):
        Index.read(smaller | {name: larger[name]})
    with pytest.raises(Unreadable):
        Index.read(smaller | {name: larger[name][:-9]})


# in a folder ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    wheels = [wheelhouse.Driver(name).write(tmp_path / "w") for name in ("ada", "bob", "cyd")]
    return wheelhouse.registry(tmp_path / "team", wheels)


def public_bytes(root: Path) -> dict[str, bytes]:
    """Return every file but the metadata, which hangs on keys and on how often something was published."""
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return {name: data for name, data in files.items() if not re.match(r"metadata/|targets/[0-9a-f]{64}\.", name)}


def signed_digests(root: Path) -> dict[str, str]:
    with editing(root) as edit:
        roles = [edit.repository.role(name) for name in edit.repository.names()]
    return {path: file.hashes["sha256"] for role in roles for path, file in role.signed.targets.items()}


def test_a_publication_after_others_signs_the_bytes_of_a_build_from_nothing(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
):
    """Also with a further release, a mark, and a library of a closed set."""
    library = wheelhouse.library().write(tmp_path / "w")
    needy = wheelhouse.Driver("needy", dependencies=[wheelhouse.dependency(library)])
    needy.requires.append("tinylib")
    wheels = [wheelhouse.Driver("bob", "1.1.0").write(tmp_path / "w"), library, needy.write(tmp_path / "w")]

    def work(registry: Path) -> None:
        publish.mark(registry, project="ada", version="1.0.0", status="quarantined", reason='steals "all"')
        publish.build(wheels, to=registry, now=wheelhouse.NOW)
        publish.mark(registry, project="cyd", version="1.0.0", status="yanked", reason="old")

    with monkeypatch.context() as patch:
        patch.setattr(Registry, "catalog", None)  # so nothing reads it as a whole
        work(root)
    whole = wheelhouse.registry(tmp_path / "whole", [tmp_path / "w" / name.name for name in (tmp_path / "w").iterdir()])
    publish.mark(whole, project="ada", version="1.0.0", status="quarantined", reason='steals "all"')
    with monkeypatch.context() as patch:
        patch.setattr(registry_folder, "is_made_by_this_code", lambda *_: False)  # so everything is made anew
        publish.mark(whole, project="cyd", version="1.0.0", status="yanked", reason="old")
    assert public_bytes(root) == public_bytes(whole)
    assert signed_digests(root) == signed_digests(whole)
    assert verify(root) == []


def sign_index(root: Path, change: Callable[[Edit, dict[str, bytes]], None], *, forged: bool = False) -> None:
    """Sign other files of the index, as another program with the keys would; perhaps forge the front page's stamp."""
    with editing(root) as edit:
        files = dict(edit.index.files)
        change(edit, files)
        digests = {}
        for name, data in files.items():
            digests[name] = edit.repository.vouch("advisories" if name == "advisories" else "index", name, data)
            (root / "targets" / f"{digests[name]}.{name}").write_bytes(data)
        edit.repository.commit()
    if forged:
        page = root / "index.html"
        page.write_bytes(page.read_bytes() + f"<!-- {index_stamp(digests)} -->\n".encode())


def without_a_wheel(_: Edit, files: dict[str, bytes]) -> None:
    catalog = msgspec.json.decode(files["catalog"])
    catalog["projects"][1]["releases"][0]["wheels"] = []
    files["catalog"] = encode(catalog)


def test_what_other_code_signed_is_read_record_by_record_and_refused_if_it_is_unsound(tmp_path: Path, root: Path):
    sign_index(root, without_a_wheel)
    with pytest.raises(IndexInvalidError, match="has no wheel"):
        publish.build([wheelhouse.Driver("dan").write(tmp_path / "w")], to=root)


def test_a_quarantine_that_the_advisories_alone_state_is_in_the_next_catalog(tmp_path: Path, root: Path):
    def quarantine(_: Edit, files: dict[str, bytes]) -> None:
        advisories = json.loads(files["advisories"])
        advisories["quarantined"] = {"dragoman-bob": {"1.0.0": "said by another key"}}
        files["advisories"] = encode(advisories)

    sign_index(root, quarantine)
    publish.build([wheelhouse.Driver("dan").write(tmp_path / "w")], to=root)
    assert "dragoman_bob" not in (root / "targets/simple/index.html").read_text()
    assert json.loads((root / "targets/catalog").read_bytes())["projects"][1]["releases"][0]["quarantined"]
    assert verify(root) == []


def test_a_forged_stamp_lets_nothing_through_that_is_not_signed(tmp_path: Path, root: Path):
    def fewer_rows(_: Edit, files: dict[str, bytes]) -> None:
        files["browse"] = Index.of(Catalog()).files["browse"]

    sign_index(root, fewer_rows, forged=True)
    publish.build([wheelhouse.Driver("dan").write(tmp_path / "w")], to=root)
    assert verify(root) == []
    assert len(json.loads((root / "targets/browse").read_bytes())["drivers"]) == 4


def _publish(wheel: Path, root: Path) -> None:
    publish.build([wheel], to=root)


@pytest.mark.slow
def test_of_several_publications_at_once_none_is_lost(tmp_path: Path, root: Path):
    wheels = [wheelhouse.Driver(f"at{n}").write(tmp_path / "w") for n in range(6)]
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_publish, args=(wheel, root)) for wheel in wheels]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 6
    published = json.loads((root / "targets/catalog").read_bytes())["projects"]
    assert {project["plugin"] for project in published} == {"ada", "bob", "cyd", *(f"at{n}" for n in range(6))}
    assert verify(root) == []
