"""Registries and inboxes of any size: work grows with what there is, and not with its square."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import marketplace
import wheelhouse
from dragoman_registry.index.catalog import Catalog
from dragoman_registry.publisher import catalog_merge, index_records, publish
from dragoman_registry.publisher import folder as registry_folder
from dragoman_registry.publisher import inbox as inboxes
from dragoman_registry.publisher.inbox import Inbox
from dragoman_registry.publisher.index_records import Index
from dragoman_registry.trust import roles, tuf_repository
from dragoman_registry.trust.keys import own_key
from dragoman_registry.wheels import packaging_parsers
from dragoman_registry.wheels.archive_checks import inspect

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman_registry.wheels.metadata_checks import WheelReport


def counted(monkeypatch: pytest.MonkeyPatch, place: object, name: str) -> list[int]:
    """Count the calls of a function."""
    calls, real = [0], getattr(place, name)

    def count(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        return real(*args, **kwargs)

    monkeypatch.setattr(place, name, count)
    return calls


def test_publishing_many_looks_at_each_publisher_once_and_not_once_for_each(tmp_path: Path, monkeypatch):
    looks = []
    for count in (5, 20):
        with monkeypatch.context() as patch:
            calls = counted(patch, roles, "projects_of")
            wheels = [wheelhouse.Driver(f"d{n}").write(tmp_path / f"w{count}") for n in range(count)]
            publish.build(wheels, to=tmp_path / f"team{count}")
            looks.append(calls[0])
    assert looks[1] <= looks[0], "the owner is one publisher, whatever they publish"


@pytest.mark.slow
def test_accepting_many_reads_each_submission_a_fixed_number_of_times(tmp_path: Path, monkeypatch):
    reads = []
    for count in (3, 9):
        root = tmp_path / f"team{count}"
        publish.init(root)
        for n in range(count):
            key = own_key(tmp_path / f"{count}-{n}.pem")
            public = key.with_suffix(".pub")
            publish.add_publisher(root, f"p{n}", key=public, projects=[f"dragoman-d{n}"], types=[f"d{n}"])
            wheel = wheelhouse.Driver(f"d{n}").write(tmp_path / "w")
            publish.build([wheel], to=root, sign=key, keys=tmp_path / "none")
        with monkeypatch.context() as patch:
            calls = counted(patch, tuf_repository, "parse_metadata")
            assert len(wheelhouse.accept(root)) == count
            reads.append(calls[0])
    fixed = (3 * reads[0] - reads[1]) / 2  # what does not depend on how many there are
    assert reads[1] - fixed <= 3.5 * (reads[0] - fixed), reads
    assert reads[1] < 9 * 5 + 20, reads


@pytest.mark.slow
def test_publishing_one_more_reads_the_pages_and_parses_the_names_of_no_other(tmp_path: Path, monkeypatch):
    work = []
    for count in (10, 40):
        root = marketplace.signed(tmp_path / f"team{count}", count)
        wheel = wheelhouse.Driver("onemore").write(tmp_path / "wheels")
        with monkeypatch.context() as patch:
            names = counted(patch, packaging_parsers, "parse_wheel_name")
            pages = counted(patch, registry_folder, "read_plain")
            rows = counted(patch, index_records, "summarise")
            records = counted(patch, index_records, "encode")
            drivers = counted(patch, Index, "project")
            publish.build([wheel], to=root)
        work.append((names[0], pages[0], rows[0], records[0], drivers[0]))
    assert work[0] == work[1]
    assert work[0][2] == 1, "only the driver that changes is summarised"


@pytest.mark.slow
def test_a_catalog_of_sixty_thousand_takes_a_further_driver_at_once(tmp_path: Path):
    report = inspect(wheelhouse.Driver().write(tmp_path), native=True)
    assert report.manifest is not None
    one = catalog_merge.merged(Index.of(Catalog()), {tmp_path / "dragoman_demo-1.0.0-py3-none-any.whl": report}, "")[
        0
    ].project("dragoman-demo")
    assert one is not None
    many = Index.of(Catalog(
        projects=tuple(
            replace(
                one, plugin=f"x{n}", project=f"dragoman-x{n}", types=(replace_type(one.types[0], f"x{n}"),),
                releases=(replace(one.releases[0], project=f"dragoman-x{n}", plugin=f"x{n}"),),
            )
            for n in range(60_000)
        )
    ))  # fmt: skip
    found = {tmp_path / f"dragoman_y{n}-1.0.0-py3-none-any.whl": renamed(report, f"y{n}") for n in range(3000)}
    index, faults = catalog_merge.merged(many, found, "")
    assert (len(index.records), faults) == (63_000, [])


def replace_type(kind: Any, name: str) -> Any:
    return replace(kind, name=name)


def renamed(report: WheelReport, name: str) -> WheelReport:
    assert report.manifest is not None
    kinds = tuple(replace_type(kind, name) for kind in report.manifest.types)
    return replace(report, manifest=replace(report.manifest, id=name, types=kinds))


@pytest.mark.slow
def test_an_inbox_with_sixty_thousand_folders_is_read_in_one_pass(tmp_path: Path, monkeypatch):
    box = Inbox(tmp_path / "team")
    record = {"size": 1, "sha256": "0" * 64, "publisher": "a", "at": "2026-01-01T00:00:00Z"}
    for n in range(3000):
        folder = box.folder / f"x-{n}.whl"
        folder.mkdir(parents=True)
        (folder / "upload.json").write_text(json.dumps({"file": folder.name, **record}))
    reads = counted(monkeypatch, inboxes, "read_plain")
    assert len(box.waiting()) == 3000
    assert reads[0] == 3000
    with pytest.raises(inboxes.RegistryError) as caught, box.draft() as draft:
        draft.write(b"x")
    assert caught.value.code == "inbox-full"
