"""What a driver's process may read and keep, planned without a process."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from dragoman.sandbox.host_imports import HostImports
from dragoman.sandbox.launch import LAYERS, _probe_targets, lockdown_plan

IMPORTS = HostImports(modules={"dragoman_api": "/api"}, paths=("/api/dragoman_api",))


def plan(**changes: Any) -> Any:
    given: dict[str, Any] = {"readable": ["/tree"], "policy": "auto", "memory": 5 << 20, "descriptors": 64}
    return lockdown_plan(IMPORTS, **given | changes)


@pytest.mark.parametrize(("policy", "layers"), [("auto", LAYERS), ("require", LAYERS), ("off", ())])
def test_every_layer_of_this_system_is_given_up_unless_that_is_off(policy: str, layers: tuple[str, ...]) -> None:
    assert plan(policy=policy).layers == layers


def test_bounds_and_files_are_those_that_were_asked_for() -> None:
    made = plan(files=[("/cert.pem", 1, 2)], cpu=9)
    assert (made.memory, made.descriptors, made.cpu, made.files) == (5 << 20, 64, 9, (("/cert.pem", 1, 2),))
    assert (plan().cpu, plan().files) == (None, ())


def test_a_process_reads_the_library_its_imports_and_its_trees_but_no_environment_of_the_host() -> None:
    made = plan()
    library = Path(sysconfig.get_path("stdlib"))
    assert {"/tree", "/api/dragoman_api", str(library / "json"), str(library / "os.py")} <= {*made.readable}
    assert str(library) in made.listable
    for path in map(Path, (*made.readable, *made.listable)):
        assert path.name not in ("site-packages", "dist-packages")
        assert path.name not in ("sitecustomize.py", "usercustomize.py"), "Debian links one of them into /etc"
    for folder in (*made.listable, sys.prefix, str(Path.home()), "/", "/etc", "/tmp"):
        assert folder not in made.readable
    if sys.prefix != sys.base_prefix:
        assert sysconfig.get_path("platstdlib") not in made.listable, "only the host may read its environment"


def test_a_process_reads_what_tls_time_and_chance_need_and_nothing_that_is_not_there() -> None:
    system = {path for path in plan().readable if path.startswith(("/dev/", "/etc/", "/usr/share/"))}
    wanted = {"/dev/null", "/dev/zero", "/dev/urandom", "/etc/ssl/certs", "/etc/localtime", "/usr/share/zoneinfo"}
    assert system == {path for path in wanted if Path(path).exists()}


def test_the_self_test_tries_what_this_process_may_do() -> None:
    """Or its refusal would prove nothing."""
    made = plan()
    assert os.access(made.secret_file, os.R_OK)
    assert os.access(made.writable_dir, os.W_OK)
    assert Path(made.writable_dir).is_dir()
    assert os.access(made.program, os.X_OK)
    assert Path(made.program).is_file()
    assert made.secret_file not in made.readable


@pytest.mark.parametrize(
    ("closed", "name", "expected"),
    [
        ([], "writable_dir", "/dev/shm"),
        (["/dev/shm"], "writable_dir", "/tmp"),
        (["/dev/shm", "/tmp"], "writable_dir", str(Path.cwd())),
        (["/etc/passwd"], "secret_file", "/etc/hostname"),
        (["/bin/true"], "program", "/usr/bin/true"),
        (["/bin/true", "/usr/bin/true"], "program", sys.executable),
    ],
)  # fmt: skip
def test_where_a_target_is_closed_to_this_process_the_self_test_takes_another(
    closed: list[str], name: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path not in closed)
    _probe_targets.cache_clear()
    try:
        assert getattr(plan(), name) == expected
    finally:
        _probe_targets.cache_clear()
