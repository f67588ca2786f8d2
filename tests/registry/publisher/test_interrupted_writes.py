"""What a killed build leaves in a registry is told from damage, and the next work there takes it away."""

from __future__ import annotations

import json
import shutil
import signal
from itertools import product
from typing import TYPE_CHECKING

import pytest

import wheelhouse
from crashing import Bomb, child
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.verify import verify
from dragoman_registry.trust.keys import beside, own_key
from slow_cases import mostly_slow
from thorough import THOROUGH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Machine


@pytest.fixture
def team(tmp_path: Path) -> Path:
    root = wheelhouse.registry(tmp_path / "team", [wheelhouse.Driver().write(tmp_path / "w")])
    key = own_key(tmp_path / "ada.pem").with_suffix(".pub")
    publish.add_publisher(root, "ada", key=key, projects=["dragoman-ada"], types=["ada"])
    return root


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def killed(root: Path, work: Callable[[], object], fuse: int) -> bool:
    """Do something in a child that is killed at its n-th step; tell whether it was."""

    def run() -> None:
        Bomb(fuse).arm()
        work()

    return child(run) == -signal.SIGKILL


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    return wheelhouse.Driver("new", "2.0.0").write(tmp_path / "next")


def build(root: Path, driver: Path) -> list[object]:
    papers = {"CHANGELOG.md": b"# Changes", "report.json": b"{}"}
    return publish.build([driver], to=root, beside={driver.name: papers})


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("sweeper", "stride"),
    mostly_slow(
        product(("sign", "build", "accept"), (13, 3) if THOROUGH else (13,)),
        fast=[("build", 13)],
    ),
)
def test_after_a_kill_at_any_step_the_next_work_leaves_a_registry_in_order(
    sweeper: str, stride: int, team: Path, tmp_path: Path, driver: Path
):
    other = wheelhouse.Driver("other").write(tmp_path / "other")
    left = 0
    for fuse in range(1, 400, stride):
        root = tmp_path / f"copy-{fuse}" / "team"
        shutil.copytree(team.parent / "team", root)
        shutil.copytree(beside(team), beside(root))
        died = killed(root, lambda root=root: build(root, driver), fuse)
        faults = verify(root)
        assert {fault.code for fault in faults} <= {"leftover", "page"} if died else not faults, (fuse, faults)
        left += any(fault.code == "leftover" for fault in faults)
        if sweeper == "build":
            publish.build([other], to=root)
        else:
            {"sign": publish.sign, "accept": wheelhouse.accept}[sweeper](root)
        assert verify(root) == [], fuse
        assert not [name for name in files(root) if name.endswith(".tmp") or "/." in f"/{name}"], fuse
        shutil.rmtree(root.parent)
        if not died:
            break
    assert left > 3
    assert not died


def test_leftovers_are_a_warning_with_the_command_that_takes_them_away(team: Path, driver: Path, dragoman: Machine):
    assert killed(team, lambda: build(team, driver), 30)
    assert [fault.code for fault in verify(team)] != []

    told = dragoman("registry", "verify", team)
    assert "leftover" in told.out
    assert f"to remove them: dragoman registry sign {team}" in told.err
    document = dragoman("registry", "verify", team, "--json").json
    assert document["faults"] == []
    assert document["leftovers"] != []
    dragoman("registry", "sign", team)
    assert "leftover" not in dragoman("registry", "verify", team).said


def test_only_what_was_left_is_taken_away(team: Path, tmp_path: Path, driver: Path):
    """What others put there, what waits for acceptance and what is published stays."""
    wheel = wheelhouse.Driver("ada").write(tmp_path / "w")
    publish.build([wheel], to=team, sign=tmp_path / "ada.pem", keys=tmp_path / "none")
    stray = team / "targets/wheels/dragoman-demo/dragoman_demo-7.0.0-py3-none-any.whl"
    stray.write_bytes(b"came by another way, before its signature")
    before = files(team)
    assert killed(team, lambda: build(team, driver), 30)
    assert files(team) > before
    publish.sign(team)
    assert files(team) >= before
    assert [fault.code for fault in verify(team)] == ["unlisted"]
    assert [release.plugin for release in wheelhouse.accept(team)] == ["ada"]


def test_a_record_of_work_that_is_damaged_takes_nothing_away(team: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.write_text("mine")
    names = ["../outside", str(outside), "metadata/1.root.json", "targets/catalog", "targets/wheels/../catalog"]
    for text in ("garbage", json.dumps(names), "{}", "[" * 9999):
        (team / ".unfinished").write_text(text)
        before = files(team) - {".unfinished"}
        publish.sign(team)
        assert files(team) >= before - {"metadata"}
        assert outside.read_text() == "mine"
        assert not (team / ".unfinished").exists()
