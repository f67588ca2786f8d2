"""What a registry's index says, read record by record: which are left out, and that each fault is one of the index."""

from __future__ import annotations

import json

import pytest

from dragoman_registry.index.catalog_parser import sound_bindings, sound_records


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"types_version":2,"types":{}}', b'{"types":[]}'])
def test_a_file_without_bindings_is_a_fault_of_the_index(data: bytes) -> None:
    found, faults = sound_bindings(data)
    assert found is None
    assert {fault.code for fault in faults} == {"index"}


def test_a_binding_that_is_no_pair_of_names_is_left_out_alone() -> None:
    types = {"demo": "dragoman-demo", "../x": "dragoman-demo", "other": "../y", "third": 7}
    found, faults = sound_bindings(json.dumps({"types_version": 1, "types": types}).encode())
    assert found == {"demo": "dragoman-demo"}
    assert [(fault.code, fault.where) for fault in faults] == [("index", "types")] * 3


@pytest.mark.parametrize("data", [b"", b"[]", b'{"catalog_version":2,"projects":[]}', b'{"projects":{}}'])
def test_a_file_without_records_is_a_fault_of_the_index(data: bytes) -> None:
    found, faults = sound_records(data)
    assert found is None
    assert {fault.code for fault in faults} == {"index"}


def test_records_that_cannot_be_read_are_left_out_each_with_a_fault_of_the_catalog() -> None:
    found, faults = sound_records(json.dumps({"projects": [7, {}], "libraries": ["x"]}).encode())
    assert found is not None
    assert (found.projects, found.libraries) == ((), ())
    assert [(fault.code, fault.where) for fault in faults] == [("index", "catalog")] * 3
    assert [fault.reason.partition(" is left out: ")[0] for fault in faults] == [
        "$.projects[0]", "$.projects[1]", "$.libraries[0]",
    ]  # fmt: skip


def wheel(project: str, version: str, **more: object) -> dict[str, object]:
    return {"file": f"{project.replace('-', '_')}-{version}-py3-none-any.whl", "sha256": "a" * 64, "size": 1} | more


def release(project: str, version: str, **more: object) -> dict[str, object]:
    sound = {"plugin": project.removeprefix("dragoman-"), "project": project, "version": version, "host_api": "~=1.0"}
    sound |= {"permissions": [], "manifest_sha256": "b" * 64, "wheels": [wheel(project, version)]}
    return sound | more


def project(name: str, *releases: object, **more: object) -> dict[str, object]:
    types = [{"name": name, "label": name.title()}]
    sound = {"plugin": name, "project": f"dragoman-{name}", "label": name, "summary": "", "types": types}
    return sound | {"releases": releases or [release(f"dragoman-{name}", "1.0")]} | more


def read(*projects: object, libraries: list[object] | None = None) -> tuple[dict[str, list[str]], list[str]]:
    """Return the versions of each sound driver, and the records that are left out."""
    found, faults = sound_records(json.dumps({"projects": projects, "libraries": libraries or []}).encode())
    assert found is not None
    versions = {each.plugin: [release.version for release in each.releases] for each in found.projects}
    return versions, [fault.reason.removeprefix("$.").partition(" is left out: ")[0] for fault in faults]


@pytest.mark.parametrize("unreadable", [False, True])
def test_the_sound_drivers_are_kept_whichever_of_several_is_not(unreadable: bool) -> None:
    bad: object = 7 if unreadable else project("bad", label="x" * 10_000)
    long = project("long", summary="x" * 1_000_000)
    twice = project("one") | {"plugin": "again"}
    plugin = project("two") | {"project": "dragoman-other", "releases": [release("dragoman-other", "1", plugin="two")]}
    versions, faults = read(project("one"), bad, project("two"), long, twice, plugin, project("three"))
    assert versions == {name: ["1.0"] for name in ("one", "two", "three")}
    assert sorted(faults) == ["projects[1]", "projects[3]", "projects[4]", "projects[5]"]


UNSOUND = [
    {"permissions": ["a", "x" * 100_000]}, {"plugin": "other"}, {"project": "dragoman-other"}, {"wheels": []},
    {"wheels": [wheel("dragoman-demo", "2.0"), wheel("dragoman-demo", "2.0", size=0)]},
    {"dependencies": [wheel("liba", "1"), wheel("libb", "1", size=0)]},
    {"wheels": [wheel("dragoman-demo", "2.0"), wheel("dragoman-demo", "1.0")]},
    {"wheels": [wheel("dragoman-demo", "2.0"), wheel("dragoman-else", "2.0")]},
    {"host_api": "no range"},
    {"wheels": [wheel("dragoman-demo", "2.0"), wheel("dragoman-demo", "2.0", requires_python="no range")]},
]  # fmt: skip


@pytest.mark.parametrize("unsound", UNSOUND, ids=lambda unsound: " ".join(unsound))
def test_a_release_is_left_out_for_any_of_its_faults_and_the_others_stay(unsound: dict[str, object]) -> None:
    first, second, third = (release("dragoman-demo", version) for version in ("3.0", "2.0", "1.0"))
    versions, faults = read(project("demo", first, second | unsound, third), project("two"))
    assert versions == {"demo": ["3.0", "1.0"], "two": ["1.0"]}
    assert faults == ["projects[0].releases"]
    versions, faults = read(project("demo", first, 7, third), project("two"))
    assert (versions, faults) == ({"demo": ["3.0", "1.0"], "two": ["1.0"]}, ["projects[0].releases[1]"])
    assert read(project("demo", second | unsound), project("two"))[0] == {"two": ["1.0"]}


def test_every_reason_of_every_release_is_told() -> None:
    bad = {"wheels": [], "host_api": "no range", "plugin": "other"}
    releases = [release("dragoman-demo", version) | bad for version in ("2.0", "1.0")]
    _, faults = sound_records(json.dumps({"projects": [project("demo", *releases)], "libraries": []}).encode())
    assert "2.0 is not a release" in faults[0].reason
    assert "2.0 has no wheel" in faults[0].reason
    assert faults[0].reason.endswith("; and 3 more")


def test_a_library_without_a_size_is_left_out_alone() -> None:
    data = {"projects": [], "libraries": [wheel("liba", "1"), wheel("libb", "1", size=0), wheel("libc", "1")]}
    found, faults = sound_records(json.dumps(data).encode())
    assert found is not None
    assert [library.file.partition("-")[0] for library in found.libraries] == ["liba", "libc"]
    assert [fault.reason for fault in faults] == ["$.libraries[1] is left out: it has no size"]
