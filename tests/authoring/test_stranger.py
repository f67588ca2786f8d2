"""`driver check` of what a stranger made: a wheel of theirs runs in the sandbox alone, a folder says what it runs."""

from __future__ import annotations

import os
from functools import partial

import anyio
import pytest
from msgspec.structs import replace

import wheelhouse
from dragoman.authoring.check import check
from dragoman.authoring.libraries import read_project
from dragoman.authoring.wheel_build import built, finished
from dragoman.sandbox import launch as launches
from dragoman_api.errors import ConfigurationError, SandboxError

SYSTEMS = {
    "a number": "build-system = 1",
    "a backend that is a list": "[build-system]\nbuild-backend = ['x']",
    "requirements that are numbers": "[build-system]\nbuild-backend = 'missing_backend'\nrequires = [1]",
    "a path that is a text": "[build-system]\nbuild-backend = 'x'\nbackend-path = '/tmp'",
    "a path of numbers": "[build-system]\nbuild-backend = 'x'\nbackend-path = [1]",
    "a path outside": "[build-system]\nbuild-backend = 'x'\nbackend-path = ['../elsewhere']",
    "an absolute path": "[build-system]\nbuild-backend = 'x'\nbackend-path = ['/tmp']",
}


def test_a_finished_wheel_is_judged_and_nothing_of_it_runs_outside_the_sandbox(tmp_path, dragoman):
    ran = tmp_path / "ran"
    code = f"try:\n    open({str(ran)!r}, 'w')\nexcept OSError:\n    pass\n"
    driver = wheelhouse.Driver()
    wheel = driver.write(
        tmp_path / "wheels", members=lambda files: files.update({"dragoman_demo/more.py": code.encode()})
    )
    (wheel.parent / "pyproject.toml").write_text("[build-system]\nbuild-backend = 'backend'\nbackend-path = ['.']\n")
    (wheel.parent / "backend.py").write_text(code)
    before = sorted(wheel.parent.iterdir())
    with finished(wheel) as made:
        found = anyio.run(partial(check, made))
    assert found.sandbox
    assert not ran.exists()
    assert sorted(wheel.parent.iterdir()) == before
    said = dragoman("driver", "check", wheel, code=None)
    assert said.code in (0, 1)
    assert "check:" in said.out
    assert "build backend" not in said.err


def test_a_strangers_wheel_does_not_run_where_nothing_confines_it(tmp_path, monkeypatch):
    lockdown = launches.lockdown_plan
    monkeypatch.setattr(launches, "lockdown_plan", lambda *a, **more: replace(lockdown(*a, **more), layers=()))
    wheel = wheelhouse.Driver().write(tmp_path / "wheels")
    with finished(wheel) as made, pytest.raises(SandboxError, match="its source is not trusted"):
        anyio.run(partial(check, made))


def test_a_hostile_wheel_is_refused_before_it_is_tried(tmp_path):
    wheel = tmp_path / "dragoman_demo-1.0.0-py3-none-any.whl"
    wheel.write_bytes(b"PK\x05\x06" + bytes(18))
    with finished(wheel) as made:
        found = anyio.run(partial(check, made))
    assert found.faults
    assert not found.sandbox


def test_the_check_of_a_folder_says_that_its_backend_runs_unconfined(tmp_path, dragoman):
    (tmp_path / "pyproject.toml").write_text("[build-system]\nbuild-backend = 'missing_backend'\n")
    told = dragoman("driver", "check", tmp_path, code=None)
    assert told.code != 0
    assert "note: this runs the folder's build backend with your rights" in told.err


@pytest.mark.parametrize("text", SYSTEMS.values(), ids=SYSTEMS)
def test_a_build_system_that_makes_no_sense_or_lies_outside_is_named(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=r"build-system|backend-path"), built(tmp_path):
        pass


@pytest.mark.slow
def test_a_backend_that_does_not_end_is_ended_and_named(tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.authoring.wheel_build.BUILD_SECONDS", 0.5)
    (tmp_path / "pyproject.toml").write_text("[build-system]\nbuild-backend = 'endless'\nbackend-path = ['.']\n")
    (tmp_path / "endless.py").write_text("import time\ntime.sleep(60)\n")
    with pytest.raises(ConfigurationError, match=r"'endless' did not end within 0\.5 s") as caught, built(tmp_path):
        pass
    assert caught.value.code == "build-failed"


def test_a_project_file_that_is_a_pipe_is_named_and_not_read(tmp_path):
    os.mkfifo(tmp_path / "pyproject.toml")
    with pytest.raises(ConfigurationError, match=r"pyproject\.toml cannot be read: .* not a regular file"):
        read_project(tmp_path)
