"""The clients of The Update Framework that others write find everything in a registry, as they are by default."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from tuf.ngclient import Updater

import wheelhouse
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.mirror import mirror
from dragoman_registry.publisher.serve import serving
from dragoman_registry.publisher.verify import verify
from dragoman_registry.sources import open_source
from dragoman_registry.trust.keys import Keys, beside, own_key
from dragoman_registry.trust.tuf_client import TufTrust
from dragoman_registry.trust.tuf_repository import Repository
from trust_attacks import served

pytestmark = pytest.mark.slow

REQUIRED = os.environ.get("REQUIRE_REAL") == "1" or os.environ.get("CI") in {"1", "true"}
PLACES = ["static", "served", "mirror", "copied without links"]


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    """Make a registry of two publishers and the operator, with a library, documents, marks and replaced keys."""
    folder = tmp_path_factory.mktemp("tuf")
    root = folder / "team"
    publish.init(root)
    for name in ("ada", "bob"):
        key = own_key(folder / f"{name}.pem").with_suffix(".pub")
        publish.add_publisher(root, name, key=key, projects=[f"dragoman-{name}"], types=[name])
        papers = {"report.json": b"{}", "CHANGELOG.md": b"# Changes\n"}
        for version in ("1.0.0", "1!1.1rc1+x.1"):
            wheel = wheelhouse.Driver(name, version).write(folder / "w")
            publish.build([wheel], to=root, sign=folder / f"{name}.pem", beside={wheel.name: papers})
    library = wheelhouse.library().write(folder / "w")
    closed = wheelhouse.Driver("closed", dependencies=[wheelhouse.dependency(library)])
    closed.requires.append("tinylib")
    publish.build([library, closed.write(folder / "w")], to=root)
    publish.mark(root, project="ada", version="1.0.0", status="quarantined", reason="steals")
    publish.sign(root, rotate=["targets", "index", "snapshot", "timestamp", "root"])
    publish.build([wheelhouse.Driver("closed", "2.0.0").write(folder / "w")], to=root)
    assert verify(root) == []
    return root


def targets(root):
    """Map the path below `targets/` of each signed file to its digest."""
    repository = Repository(root, Keys(beside(root)))
    found = {}
    for role in repository.names():
        for path, signed in repository.role(role).signed.targets.items():
            found[path] = signed.hashes["sha256"]
    kinds = {path.rpartition("/")[2].rpartition(".")[2] for path in found}
    assert kinds >= {"types", "catalog", "browse", "advisories", "whl", "json", "md"}
    assert len({path.split("/")[1] for path in found if "/" in path}) == 3, "of three roles of publishers"
    return found


@contextmanager
def offered(team, place, tmp_path):
    """The address of a registry, and its first root."""
    root = team
    if place == "mirror":
        root = tmp_path / "mirror"
        trust = TufTrust(open_source(str(team)), where="team", cache=tmp_path / "cache", first_use=True)
        assert mirror(str(team), to=root, trust=trust).left_out == ()
    elif place == "copied without links":
        root = shutil.copytree(team, tmp_path / "copy")
        shutil.copytree(beside(team), beside(root))
    first = root / "metadata/1.root.json"
    if place == "served":
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(serving(root)) as url:
            yield url, first, root
    else:
        with served(root) as url:
            yield url, first, root


@pytest.mark.parametrize("place", PLACES)
def test_python_tuf_finds_everything(team, place, tmp_path):
    with offered(team, place, tmp_path) as (url, first, root):
        (tmp_path / "got").mkdir()
        client = Updater(
            str(tmp_path / "seen"),
            f"{url}/metadata/",
            str(tmp_path / "got"),
            f"{url}/targets/",
            bootstrap=first.read_bytes(),
        )
        client.refresh()
        found = {}
        for path in targets(root):
            info = client.get_targetinfo(path)
            assert info is not None, path
            found[path] = hashlib.sha256(Path(client.download_target(info)).read_bytes()).hexdigest()
    assert found == targets(root)


@pytest.fixture(scope="session")
def gotuf(tmp_path_factory):
    """Build the small program around go-tuf's client."""
    if shutil.which("go") is None:
        missing = "no Go here, which go-tuf needs; get it from go.dev or: apt-get install -y golang"
        pytest.fail(missing) if REQUIRED else pytest.skip(missing)
    program = tmp_path_factory.mktemp("go") / "gotuf"
    done = subprocess.run(
        ["go", "build", "-o", program, "."],
        cwd=Path(__file__).parent / "gotuf",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        missing = f"go-tuf cannot be fetched or built here: {done.stderr[-500:]}"
        pytest.fail(missing) if REQUIRED else pytest.skip(missing)
    return program


@pytest.mark.timeout(600)
@pytest.mark.parametrize("place", PLACES)
def test_go_tuf_finds_everything(team, place, tmp_path, gotuf):
    with offered(team, place, tmp_path) as (url, first, root):
        (tmp_path / "seen").mkdir()
        command = [gotuf, first, url, tmp_path / "seen", *targets(root)]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=120)
    assert done.stderr == ""
    assert {path: digest for digest, path in (line.split(" ", 1) for line in done.stdout.splitlines())} == targets(root)


def test_verify_names_a_file_that_was_changed_or_taken_away_under_either_of_its_names(team, tmp_path):
    root = shutil.copytree(team, tmp_path / "copy")
    shutil.copytree(beside(team), beside(root))
    folder = root / "targets/wheels/dragoman-ada"
    [twin] = folder.glob("*.dragoman_ada-1.0.0-py3-none-any.whl")
    plain = folder / "dragoman_ada-1.0.0-py3-none-any.whl"
    assert verify(root) == []
    for file in (twin, plain):
        data = file.read_bytes()
        file.write_bytes(data[:-1] + b"x")
        assert file.relative_to(root / "targets").as_posix() in {fault.where for fault in verify(root)}
        file.write_bytes(data)
    twin.unlink()
    assert [(fault.code, fault.where) for fault in verify(root)] == [("missing", f"wheels/dragoman-ada/{twin.name}")]
    publish.sign(root)
    assert verify(root) == [], "what a copy lost is made again"
