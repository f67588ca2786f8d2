"""A fault of one publisher stops no other: it is named with its reason, and the others go through."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import threading
import time
from typing import TYPE_CHECKING

import pytest

import wheelhouse
from dragoman_api.errors import WheelRejectedError
from dragoman_registry import isolation
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.inbox import Inbox
from dragoman_registry.publisher.verify import verify
from dragoman_registry.trust.keys import Keys, own_key
from dragoman_registry.trust.tuf_repository import Repository
from dragoman_registry.validation import Fault
from slow_cases import mostly_slow

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Machine

NEXT = "dragoman_good-1.1.0-py3-none-any.whl"


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """A registry with two publishers, `good` and `bad`; each has published 1.0.0 of a driver."""
    root = tmp_path / "team"
    publish.init(root)
    for name in ("good", "bad"):
        key = own_key(tmp_path / f"{name}.pem").with_suffix(".pub")
        publish.add_publisher(root, name, key=key, projects=[f"dragoman-{name}"], types=[name])
        publish.build([wheelhouse.Driver(name).write(tmp_path / "w")], to=root, sign=tmp_path / f"{name}.pem")
    return root


def submit(root: Path, name: str, version: str = "1.1.0", **changes: object) -> None:
    """Sign a version as its author does, where the keys of the registry are not at hand."""
    wheel = wheelhouse.Driver(name, version, **changes).write(root.parent / "next")
    publish.build([wheel], to=root, sign=root.parent / f"{name}.pem", keys=root.parent / "none")


def offered(root: Path) -> set[str]:
    return {wheel for wheel in publish.published(root) if "-1.1.0-" in wheel}


def newest(root: Path, role: str = "pub-bad", *, version: int = 9) -> Path:
    return root / "metadata" / f"{version}.{role}.json"


def deep(file: Path) -> None:
    file.write_bytes(b"[" * 100_000)


def huge(file: Path) -> None:
    text = json.loads((file.parent / "1.pub-bad.json").read_text())
    file.write_text(json.dumps(text).replace('"version": 1', f'"version": {"9" * 5000}'))


GARBAGE: dict[str, Callable[[Path], object]] = {
    "no JSON": lambda file: file.write_bytes(b"\0garbage"),
    "nothing": lambda file: file.write_bytes(b""),
    "a list": lambda file: file.write_bytes(b"[]"),
    "deep nesting": deep,
    "huge digits": huge,
    "another role": lambda file: shutil.copy(file.parent / "1.root.json", file),
    "a folder": lambda file: file.mkdir(),
    "a pipe": lambda file: os.mkfifo(file),
    "a link to nothing": lambda file: file.symlink_to("nowhere"),
    "a link to a device": lambda file: file.symlink_to("/dev/zero"),
    "far too much": lambda file: file.write_bytes(b" " * (40 << 20)),
}


@pytest.mark.parametrize("kind", mostly_slow(GARBAGE, fast=["no JSON", "deep nesting", "a link to a device"]))
def test_a_garbage_role_file_stops_its_own_publisher_alone(kind: str, team: Path):
    submit(team, "good")
    GARBAGE[kind](newest(team))
    with pytest.raises(WheelRejectedError) as caught:
        wheelhouse.accept(team)
    [(code, said)] = caught.value.faults
    assert (code, said.partition(":")[0]) == ("unreadable", "metadata/9.pub-bad.json")
    assert offered(team) == {NEXT}
    assert os.path.lexists(newest(team)), "it is left where it is"
    assert [fault.where for fault in verify(team)] == ["metadata/9.pub-bad.json"]
    publish.build([wheelhouse.Driver("own").write(team.parent / "own")], to=team)
    publish.sign(team)
    Inbox(team).signed()
    submit(team, "bad")  # its author goes on, with the next number
    assert wheelhouse.accept(team) != []
    assert len(offered(team)) == 2


def test_an_old_role_under_a_new_number_stops_its_own_publisher_alone(team: Path):
    submit(team, "good")
    shutil.copy(newest(team, version=1), newest(team))
    with pytest.raises(WheelRejectedError) as caught:
        wheelhouse.accept(team)
    [(code, said)] = caught.value.faults
    assert code == "version"
    assert said.startswith("pub-bad: ")
    assert re.findall(r"\d+", said) == ["9", "1"]
    assert offered(team) == {NEXT}


@pytest.mark.parametrize("name", ["٣.pub-bad.json", "12.pub-bad.txt", f"{'9' * 200}.pub-bad.json", "x.pub-bad.json"])
def test_a_name_that_is_no_version_of_a_role_is_no_submission(name: str, team: Path):
    submit(team, "good")
    (team / "metadata" / name).write_bytes(b"{}")
    assert [release.version for release in wheelhouse.accept(team)] == ["1.1.0"]


def sign_for(root: Path, change: Callable[[Repository], None]) -> None:
    """Sign something odd as the publisher `bad`."""
    repository = Repository(root, Keys(root.parent / "none", root.parent / "bad.pem"))
    change(repository)


def with_target(path: str, hashes: dict[str, str]) -> Callable[[Repository], None]:
    def change(repository: Repository) -> None:
        from tuf.api.metadata import TargetFile

        metadata = repository.role("pub-bad")
        metadata.signed.targets[path] = TargetFile(10, hashes, path)
        repository.write_publisher("pub-bad", metadata)

    return change


def test_another_manifest_of_the_same_length_stops_its_own_publisher_alone(team: Path):
    submit(team, "good")
    submit(team, "bad")

    def change(repository: Repository) -> None:
        from tuf.api.metadata import Metadata, Targets

        metadata = Metadata[Targets].from_file(str(newest(team, version=2)))
        [path] = (path for path in metadata.signed.targets if path.endswith("-1.1.0-py3-none-any.whl.driver.json"))
        metadata.signed.targets[path].hashes["sha256"] = "0" * 64
        repository.write_publisher("pub-bad", metadata)

    sign_for(team, change)
    with pytest.raises(WheelRejectedError) as caught:
        wheelhouse.accept(team)
    assert [code for code, _ in caught.value.faults] == ["manifest"]
    assert offered(team) == {NEXT}


@pytest.mark.parametrize(
    ("path", "hashes"),
    [
        ("wheels/dragoman-bad/dragoman_bad-1.1.0-py3-none-any.whl", {"sha512": "0" * 128}),
        ("wheels/dragoman-bad/\0.whl", {"sha256": "0" * 64}),
        (f"wheels/dragoman-bad/{'x' * 300}.whl", {"sha256": "0" * 64}),
        ("wheels/dragoman-bad/..whl", {"sha256": "0" * 64}),
    ],
    ids=["no sha256", "a null byte", "too long", "dots"],
)
def test_an_odd_statement_stops_its_own_publisher_alone(path: str, hashes: dict[str, str], team: Path):
    submit(team, "good")
    sign_for(team, with_target(path, hashes))
    with pytest.raises(WheelRejectedError):
        wheelhouse.accept(team)
    assert offered(team) == {NEXT}


def test_a_wheel_that_the_checks_stumble_over_stops_its_own_publisher_alone(team: Path):
    submit(team, "good")
    driver = wheelhouse.Driver("bad", "1.1.0")
    driver.requires.append("x; " + "(" * 5000 + 'python_version > "3"' + ")" * 5000)
    wheel = driver.write(team.parent / "odd")
    sign_wheel(team, wheel)
    with pytest.raises(WheelRejectedError) as caught:
        wheelhouse.accept(team)
    assert all(wheel.name in said or "pub-bad" in said for _, said in caught.value.faults)
    assert offered(team) == {NEXT}
    with pytest.raises(WheelRejectedError, match=wheel.name):
        publish.build([wheel], to=team, sign=team.parent / "bad.pem")


def sign_wheel(root: Path, wheel: Path) -> None:
    """Sign a wheel that no check has seen."""
    files = {f"wheels/dragoman-bad/{wheel.name}": wheel.read_bytes()}
    files[f"wheels/dragoman-bad/{wheel.name}.driver.json"] = b"{}"
    for name, data in files.items():
        (root / "targets" / name).write_bytes(data)
    Repository(root, Keys(root.parent / "none", root.parent / "bad.pem")).submit("pub-bad", files)


def test_a_wheel_that_takes_for_ever_is_given_up_and_the_others_go_through(team: Path):
    submit(team, "good")
    os.mkfifo(team / "targets/wheels/dragoman-bad/dragoman_bad-1.1.0-py3-none-any.whl")
    Repository(team, Keys(team.parent / "none", team.parent / "bad.pem")).submit(
        "pub-bad", {"wheels/dragoman-bad/dragoman_bad-1.1.0-py3-none-any.whl": b"x"}
    )
    with pytest.raises(WheelRejectedError):
        wheelhouse.accept(team)
    assert offered(team) == {NEXT}


def test_the_command_shows_what_was_accepted_beside_what_was_refused(team: Path, dragoman: Machine):
    submit(team, "good")
    newest(team).write_bytes(b"garbage")
    published, refused = dragoman("registry", "accept", team, code=4).out.splitlines()
    assert published.split()[:3] == ["published", "good", "1.1.0"]
    assert refused.split()[:3] == ["refused", "metadata/9.pub-bad.json", "unreadable:"]


def test_the_command_lists_what_was_accepted_and_what_was_refused(team: Path, dragoman: Machine):
    submit(team, "good")
    newest(team).write_bytes(b"garbage")
    document = dragoman("registry", "accept", team, "--json", code=4).json
    assert [release["plugin"] for release in document["published"]] == ["good"]
    [fault] = document["refused"]
    assert (fault["code"], fault["where"]) == ("unreadable", "metadata/9.pub-bad.json")
    assert dragoman("registry", "accept", team, "--json", code=4).json["published"] == []


def test_a_garbage_record_in_the_inbox_hides_itself_alone(team: Path, dragoman: Machine):
    box = Inbox(team)
    for name in ("a-1.whl", "b-1.whl", "c-1.whl", "d-1.whl"):
        (box.folder / name).mkdir(parents=True)
    (box.folder / "a-1.whl/upload.json").write_bytes(b"{" * 100_000)
    os.mkfifo(box.folder / "b-1.whl/upload.json")
    (box.folder / "d-1.whl/upload.json").write_bytes(b'{"file":"\xb2"}')
    submit(team, "good")
    assert [release.version for release in wheelhouse.accept(team, uploads=map(box.path, box.waiting()))] == ["1.1.0"]
    assert {fault.where for fault in box.damaged()} == {"a-1.whl", "b-1.whl", "d-1.whl"}
    assert "a-1.whl" in dragoman("registry", "inbox", team).said
    assert box.drop("a-1.whl") is None
    assert not (box.folder / "a-1.whl").exists()


def endless() -> None:
    while True:
        pass


def greedy() -> int:
    return len(bytearray(8 << 30))


def broken() -> None:
    os._exit(3)


@pytest.mark.slow
def test_work_apart_ends_at_its_bounds_and_the_next_piece_goes_on(monkeypatch):
    with isolation.Apart() as work:
        assert work.call(len, "four") == 4
        for hostile in (endless, greedy, broken):
            with monkeypatch.context() as patch:
                if hostile is endless:
                    patch.setattr(isolation, "SECONDS", 1.0)
                with pytest.raises(isolation.RegistryError) as caught:
                    work.call(hostile)
            assert caught.value.code == "work-ended"
            assert work.call(len, "four") == 4
        with pytest.raises(WheelRejectedError) as refused:
            work.call(publish.refuse, [Fault("x", "y")])
        assert refused.value.faults == (("x", "y"),)


@pytest.mark.slow
def test_a_deadline_that_passes_with_the_answer_spares_the_next_piece_of_work(monkeypatch):
    class Late(threading.Timer):
        def run(self):
            time.sleep(self.interval * 2)  # as a thread that gets its turn late, too late to be cancelled
            self.function()

    with isolation.Apart() as work:
        assert work.call(len, "four") == 4  # it has started
        with monkeypatch.context() as patch:
            patch.setattr(isolation, "SECONDS", 0.05)
            patch.setattr(isolation, "Timer", Late)
            with contextlib.suppress(isolation.RegistryError):
                work.call(len, "four")
        assert work.call(sum, range(20_000_000)) > 0
