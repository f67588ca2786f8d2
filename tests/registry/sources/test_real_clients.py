"""The real pip and uv install from a registry: a folder, what `registry serve` gives, or any static server."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Thread

import pytest
from anyio.from_thread import start_blocking_portal

import wheelhouse
from dragoman_registry.client.resolver import resolve
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.serve import serving
from dragoman_registry.wheels.host_environment import Host

pytestmark = pytest.mark.slow

UV = Path(sys.executable).with_name("uv")
TOOLS = [pytest.param("pip", marks=pytest.mark.slow), "uv"]
"""pip takes seconds for what uv does in a tenth of one."""

REASON = "loses rows"


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    """Offer 1.0.0, the newer 1.1.0 which is yanked, and 1.2.0 which is quarantined; and a driver with a library."""
    folder = tmp_path_factory.mktemp("clients")
    library = wheelhouse.library().write(folder / "w")
    closed = wheelhouse.Driver("closed", dependencies=[wheelhouse.dependency(library)])
    closed.requires.append("tinylib")
    versions = [wheelhouse.Driver(version=version).write(folder / "w") for version in ("1.0.0", "1.1.0", "1.2.0")]
    root = wheelhouse.registry(folder / "team", [library, closed.write(folder / "w"), *versions])
    publish.mark(root, project="demo", version="1.1.0", status="yanked", reason=REASON)
    publish.mark(root, project="demo", version="1.2.0", status="quarantined", reason="steals")
    return root


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def offered(root, place):
    """Return the address of a registry's index."""
    if place == "folder":
        yield (root / "targets/simple").as_uri()
    elif place == "served":
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(serving(root)) as url:
            yield f"{url}/targets/simple/"
    else:
        with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root))) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield f"http://127.0.0.1:{server.server_port}/targets/simple/"
            finally:
                server.shutdown()


@pytest.fixture(scope="module")
def places(team):
    with offered(team, "folder") as folder, offered(team, "served") as served, offered(team, "static") as static:
        yield {"folder": folder, "served": served, "static": static}


def install(tool, index, *wanted, into):
    """Run the real client, away from any configuration, cache or other index."""
    if tool == "pip":
        command = [sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "--no-cache-dir"]
        command += ["install", "--no-compile"]
    else:
        command = [UV, "--no-config", "--no-cache", "pip", "install", "--python", sys.executable]
    command += ["--index-url", index, "--target", into, *wanted]
    environment = {"PATH": os.environ["PATH"], "HOME": str(into.parent)}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=50, env=environment
    )
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def versions(into):
    return {path.name.removesuffix(".dist-info") for path in into.glob("*.dist-info")}


@pytest.mark.parametrize(
    ("tool", "place"),
    [
        ("pip", "served"),
        ("uv", "folder"),
        ("uv", "served"),
        ("uv", "static"),
        pytest.param("pip", "folder", marks=pytest.mark.slow),
        pytest.param("pip", "static", marks=pytest.mark.slow),
    ],
)
def test_the_newest_version_that_may_be_installed_is(tool, place, places, tmp_path):
    code, said = install(tool, places[place], "--no-deps", "dragoman-demo", into=tmp_path / "t")
    assert code == 0, said
    assert versions(tmp_path / "t") == {"dragoman_demo-1.0.0"}, "1.1.0 is yanked, 1.2.0 is not even shown"
    assert (tmp_path / "t/dragoman_demo/driver.json").is_file()


@pytest.mark.parametrize("place", ["folder", "served"])
@pytest.mark.parametrize("tool", TOOLS)
def test_a_yanked_version_is_installed_when_it_is_named_with_its_reason(tool, place, places, tmp_path):
    code, said = install(tool, places[place], "--no-deps", "dragoman-demo==1.1.0", into=tmp_path / "t")
    assert code == 0, said
    assert versions(tmp_path / "t") == {"dragoman_demo-1.1.0"}
    assert REASON in said


@pytest.mark.parametrize("tool", TOOLS)
def test_a_quarantined_version_is_not_installed_even_when_it_is_named(tool, places, tmp_path):
    code, said = install(tool, places["served"], "--no-deps", "dragoman-demo==1.2.0", into=tmp_path / "t")
    assert code != 0
    assert "1.2.0" in said
    assert not (tmp_path / "t").exists() or versions(tmp_path / "t") == set()


@pytest.mark.parametrize("tool", TOOLS)
def test_a_library_of_a_closed_set_comes_from_the_same_index(tool, places, tmp_path):
    code, said = install(tool, places["served"], "--no-deps", "dragoman-closed", "tinylib", into=tmp_path / "t")
    assert code == 0, said
    assert versions(tmp_path / "t") == {"dragoman_closed-1.0.0", "tinylib-1.0.0"}


@pytest.mark.parametrize(
    ("tool", "suffix"),
    [("uv", ""), ("uv", ".metadata"), ("pip", ""), pytest.param("pip", ".metadata", marks=pytest.mark.slow)],
)
def test_a_file_that_was_changed_is_refused_by_its_digest(tool, suffix, tmp_path):
    root = wheelhouse.registry(tmp_path / "team", [wheelhouse.Driver().write(tmp_path / "w")])
    [file] = root.rglob(f"dragoman_demo-1.0.0-py3-none-any.whl{suffix}")
    if suffix:
        file.write_bytes(file.read_bytes().replace(b"For tests", b"Otherwise"))
    else:
        file.write_bytes(wheelhouse.Driver(summary="other").write(tmp_path / "w2").read_bytes())
    with offered(root, "served") as index:
        # uv reads the metadata of what it has to resolve
        words = ["dragoman-demo"] if suffix else ["--no-deps", "dragoman-demo"]
        code, said = install(tool, index, *words, into=tmp_path / "t")
    assert code != 0
    assert "hash" in said.lower()
    assert not (tmp_path / "t").exists() or versions(tmp_path / "t") == set()


VERSIONS = ["0.9", "1.0.0", "1.0.1", "1.10.0", "1.2.0", "1.2.0.post1", "2.0.0rc1", "3.0.0.dev1", "1!0.1"]


@pytest.mark.slow
def test_uv_chooses_the_version_that_we_choose(tmp_path):
    """Of the same registry, for this machine; a lock and the host's API are matters that uv knows nothing of."""
    chance, made, marked = Random(8), [], []
    for n in range(12):
        for version in chance.sample(VERSIONS, 5):
            driver = wheelhouse.Driver(f"d{n}", version, tag=chance.choice(["py3-none-any"] * 3 + ["cp27-none-win32"]))
            driver.requires_python = chance.choice([">=3.11", ">=3.11", ">=4"])  # uv heeds no upper bound
            made.append(driver.write(tmp_path / "w"))
            marked.append((f"d{n}", version, chance.choice(["active"] * 4 + ["yanked", "quarantined"])))
    root, host = wheelhouse.registry(tmp_path / "team", made), Host.here()
    for project, version, status in marked:
        if status != "active":
            publish.mark(root, project=project, version=version, status=status, reason="for the test")
    chosen = {}
    for n in range(12):
        wanted = f"dragoman-d{n}"
        command = [UV, "--no-config", "--no-cache", "pip", "compile", "-", "--no-deps", "--no-header", "--no-annotate"]
        command += ["--prerelease", "disallow", "--python", sys.executable, "--index-url", root / "targets/simple"]
        done = subprocess.run(
            list(map(str, command)), input=wanted, capture_output=True, text=True, check=False, timeout=50
        )
        theirs = done.stdout.strip().partition("==")[2] or None
        choice = resolve(Registry("team", str(root), trust=wheelhouse.TrustedPath()).releases(f"d{n}"), host=host)
        ours = choice.release
        assert (wanted, ours and ours.version) == (wanted, theirs), (choice.skipped, done.stderr)
        chosen[wanted] = theirs
    assert len(set(chosen.values())) > 4, "it is no test where all agree on one"
    assert None in chosen.values()
