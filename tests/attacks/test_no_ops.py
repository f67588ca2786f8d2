"""A kernel layer that does nothing and says nothing of it is found out before any driver code runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.attacks.levels import boot

from dragoman.sandbox import bare_process
from dragoman.sandbox.driver_process import Worker
from dragoman.sandbox.launch import Launch
from dragoman.sandbox.levels import achievable_level
from dragoman_api.errors import SandboxError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

LAYERS = {
    ("landlock",): "fs_read",
    ("seccomp",): "network",
    ("capabilities",): "CapEff",
    ("limits",): "memory is not bounded",
    ("self-test",): "",
    ("landlock", "seccomp"): "exit status 0",  # the self-test's own exec replaced it
}


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    """Describe a driver that would be heard if it were loaded."""
    if (report := achievable_level()).level != "full":
        pytest.skip(f"NOT SHOWN HERE, this machine gives only: {report}")
    (tmp_path / "tiny.py").write_text("print('loaded')\nclass Driver: ...\n")
    return Launch(driver="tiny:Driver", trees=(tmp_path,), policy="require")


def decides(layers: tuple[str, ...], way: str) -> bool:
    """Both ways lock a process down with the same code; a fork is tried with each of its own layers alone."""
    return way == "spawn" or layers in {("landlock",), ("seccomp",), ("self-test",)}


@pytest.mark.slow_unless(decides=decides)
@pytest.mark.parametrize("layers", LAYERS, ids="+".join)
async def test_where_full_is_required_such_a_start_is_refused(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, layers: tuple[str, ...], way: str
) -> None:
    if layers == ("capabilities",) and os.geteuid() != 0:
        pytest.skip("NOT SHOWN HERE: an ordinary user has no capabilities to drop")
    monkeypatch.setattr(bare_process, "BOOT", boot(layers))
    printed: list[str] = []
    with pytest.raises(SandboxError) as caught:
        async with Worker(launch, on_log=printed.append):
            pass
    assert LAYERS[layers] in caught.value.message
    assert printed == []


@pytest.mark.slow_unless(decides=decides)
@pytest.mark.parametrize("layers", [("seccomp",), ("self-test",), ("landlock", "seccomp")], ids="+".join)
async def test_where_the_network_half_does_nothing_an_untrusted_driver_never_starts(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, layers: tuple[str, ...], way: str
) -> None:
    from dataclasses import replace

    monkeypatch.setattr(bare_process, "BOOT", boot(layers))
    printed: list[str] = []
    with pytest.raises(SandboxError):
        async with Worker(replace(launch, policy="auto"), on_log=printed.append):
            pass
    assert printed == []


async def test_without_a_change_the_same_driver_is_loaded(launch: Launch) -> None:
    """The control of the control."""
    printed: list[str] = []
    async with Worker(launch, on_log=printed.append) as worker:
        assert worker.report.level == "full"
    assert printed == ["loaded"]
