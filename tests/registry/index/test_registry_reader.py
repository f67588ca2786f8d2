"""Reading a registry, from a folder and from a static web server: bounded, checked, with errors that name the file."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

import wheelhouse
from dragoman_api.errors import (
    IndexInvalidError,
    IntegrityError,
    PluginNotFoundError,
    RegistryError,
    TrustError,
)
from dragoman_registry import sources
from dragoman_registry.index.catalog import Advisories, Catalog
from dragoman_registry.index.registry_reader import Memory, Registry, _held_back
from dragoman_registry.trust.trust import UNSIGNED
from dragoman_registry.wheels.wheel_file import project_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dragoman_registry.trust.trust import SignedFile


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return wheelhouse.registry(tmp_path / "registry", [wheelhouse.Driver().write(tmp_path)])


@contextmanager
def served(handler: object) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


def answering(reply: object) -> type[BaseHTTPRequestHandler]:
    """Make a server that answers every request in one way."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reply(self)

        def log_message(self, *_: object) -> None: ...

    return Handler


def everything(registry: Registry) -> tuple[object, ...]:
    [release] = registry.releases("demo")
    data = b"".join(registry.chunks(release.wheels[0]))
    return registry.types(), registry.advisories().quarantined, registry.catalog(), registry.manifest(release), data


def test_a_folder_a_file_url_and_a_web_server_read_alike(root: Path):
    folder = everything(Registry("r", str(root), trust=wheelhouse.TrustedPath()))
    assert folder[0] == {"demo": "dragoman-demo"}
    assert everything(Registry("r", root.as_uri(), trust=wheelhouse.TrustedPath())) == folder
    with served(partial(Quiet, directory=str(root))) as url:
        assert everything(Registry("r", url, trust=wheelhouse.TrustedPath())) == folder
        assert everything(Registry("r", url + "/", trust=wheelhouse.TrustedPath())) == folder


def test_what_a_registry_claimed_is_remembered_each_apart_and_unknown_until_then(tmp_path: Path):
    memory = Memory(tmp_path / "claims.json")
    assert (memory.claims_type("demo"), memory.claims_name("demo")) == (None, None)
    memory.keep_types({"demo": "dragoman-demo"})
    assert [memory.claims_type(kind) for kind in ("demo", "other")] == [True, False]
    assert memory.claims_name("demo") is None  # no name was read yet
    memory.keep_names(["demo", "plugin", "project"])
    names = ("demo", "plugin", "project", "dragoman-demo", "other")
    assert [memory.claims_name(name) for name in names] == [True, True, True, True, False]
    memory.keep_names([])
    memory.keep_types({"two": "dragoman-two"})
    assert [memory.claims_type(kind) for kind in ("demo", "two")] == [False, True]
    assert [memory.claims_name(name) for name in ("plugin", "dragoman-demo", "dragoman-two")] == [False, False, True]
    assert stat.S_IMODE((tmp_path / "claims.json").stat().st_mode) == 0o644  # it holds no secret
    memory.keep_types({})
    assert (memory.claims_type("two"), memory.claims_name("dragoman-two")) == (False, False)
    (tmp_path / "claims.json").write_text("{")
    assert (memory.claims_type("two"), memory.claims_name("plugin")) == (None, None)


def test_a_registry_that_is_read_is_remembered_with_its_types_plugins_and_projects(root: Path, tmp_path: Path):
    for read in ("catalog", "sifted", "releases"):
        memory = Memory(tmp_path / f"{read}.json")
        registry = Registry("r", str(root), memory=memory, trust=wheelhouse.TrustedPath())
        registry.releases("demo") if read == "releases" else getattr(registry, read)()
        assert [memory.claims_name(name) for name in ("demo", "dragoman-demo", "other")] == [True, True, False]
        registry.types()
        assert [memory.claims_type(kind) for kind in ("demo", "other")] == [True, False]


class Distrust(wheelhouse.TrustedPath):
    """Trusts no document, for a reason."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def admit(self, target: SignedFile) -> SignedFile:
        raise self.error


def test_a_document_is_missing_where_nobody_signed_it_and_not_where_trust_fails(root: Path):
    missing = Registry("r", str(root), trust=wheelhouse.TrustedPath()).document("docs/dragoman-demo/9/README.md")
    unsigned = Registry("r", str(root), trust=Distrust(TrustError("x", code=UNSIGNED))).document("docs/x")
    assert (missing, unsigned) == (None, None)
    for error in (TrustError("x"), TrustError("x", code="registry-stale"), IntegrityError("x"), RegistryError("x")):
        with pytest.raises(type(error)):
            Registry("r", str(root), trust=Distrust(error)).document("docs/x")


def test_a_binding_that_is_left_out_is_a_fault_beside_the_sound_records(root: Path):
    (root / "targets/types").write_text('{"types_version":1,"types":{"demo":"dragoman-demo","../x":"dragoman-demo"}}')
    catalog, faults = Registry("r", str(root), trust=wheelhouse.TrustedPath()).sifted()
    assert [project.plugin for project in catalog.projects] == ["demo"]
    assert [(fault.code, fault.where) for fault in faults] == [("index", "types")]
    assert Registry("r", str(root), trust=wheelhouse.TrustedPath()).types() == {"demo": "dragoman-demo"}


def test_a_driver_is_found_by_its_plugin_and_by_its_project(root: Path):
    registry = Registry("r", str(root), trust=wheelhouse.TrustedPath())
    assert registry.project("dragoman-demo") == registry.project("demo")


def test_the_advisories_alone_decide_which_of_several_versions_is_quarantined(tmp_path: Path):
    wheels = []
    for version in ("1.0.0", "1.1.0", "1.2.0"):
        (tmp_path / version).mkdir()
        wheels.append(wheelhouse.Driver(version=version).write(tmp_path / version))
    registry = Registry("r", str(wheelhouse.registry(tmp_path / "registry", wheels)), trust=wheelhouse.TrustedPath())
    said = Advisories(quarantined={"dragoman-demo": {"1.0.0": "leaks"}, "other": {"*": "all"}})
    registry.advisories = lambda: said  # type: ignore[method-assign]
    for releases in (registry.releases("demo"), registry.catalog().projects[0].releases):
        assert [(release.version, release.quarantined) for release in releases] == [
            ("1.2.0", None), ("1.1.0", None), ("1.0.0", "leaks"),
        ]  # fmt: skip
    claimed = registry.catalog().projects[0]
    claimed = replace(claimed, releases=tuple(replace(release, quarantined="old") for release in claimed.releases))
    held = _held_back(Catalog(projects=(claimed, replace(claimed, plugin="two"))), said.quarantined)
    assert [[release.quarantined for release in project.releases] for project in held.projects] == [
        [None, None, "leaks"]
    ] * 2


def test_P2_the_form_is_known_before_anything_is_downloaded(root: Path):
    registry = Registry("r", str(root), trust=wheelhouse.TrustedPath())
    [release] = registry.releases("demo")
    (root / "targets" / release.wheels[0].path).unlink()
    assert [field.name for field in registry.manifest(release).form] == ["host", "port"]


def test_P4_the_list_to_browse_has_the_elasticsearch_driver_with_its_label(tmp_path: Path):
    root = wheelhouse.registry(tmp_path / "r", wheelhouse.project_wheels("plugins/elasticsearch"))
    [project] = Registry("r", str(root), trust=wheelhouse.TrustedPath()).catalog().projects
    assert (project.plugin, project.label, project.types[0].name) == (
        "elasticsearch", "Elasticsearch Driver", "elasticsearch",
    )  # fmt: skip


def test_P6_the_list_says_where_a_driver_is_not_available(tmp_path: Path):
    driver = wheelhouse.Driver("vectors", excluded_surfaces=["phone", "tablet"]).write(tmp_path)
    root = wheelhouse.registry(tmp_path / "r", [driver])
    assert Registry("r", str(root), trust=wheelhouse.TrustedPath()).project("vectors").excluded_surfaces == (
        "phone",
        "tablet",
    )


def test_a_plugin_that_is_not_there_is_an_error_with_the_name_of_the_registry(root: Path):
    with pytest.raises(PluginNotFoundError, match=r"'team'.*'nothing'"):
        Registry("team", str(root), trust=wheelhouse.TrustedPath()).releases("nothing")


@pytest.mark.parametrize("location", ["ftp://example.org/r", "git+ssh://host/r"])
def test_other_places_are_refused(location: str):
    with pytest.raises(RegistryError) as caught:
        Registry("r", location, trust=wheelhouse.TrustedPath()).catalog()
    assert caught.value.code == "registry-unreachable"
    assert caught.value.message.startswith(repr(location))


def test_a_stick_that_is_not_there_is_unreachable_and_named(tmp_path: Path):
    with pytest.raises(RegistryError) as caught:
        Registry("r", str(tmp_path / "stick"), trust=wheelhouse.TrustedPath()).catalog()
    assert caught.value.code == "registry-unreachable"
    assert caught.value.details == {"url": str(tmp_path / "stick")}


FORBIDDEN = """
import os, sys
from types import SimpleNamespace
from dragoman_registry.index.catalog import Advisories, Catalog
from dragoman_registry.index.registry_reader import Memory, Registry, _held_back
import dragoman_registry.validation, pydantic
registry = Registry("r", sys.argv[1], trust=SimpleNamespace(admit=lambda target: target))
registry.catalog()
os.chmod(sys.argv[1], 0)
if os.getuid() == 0:
    os.setuid(65534)
try:
    registry.catalog()
except Exception as error:
    print(type(error).__name__, error.code, error.message)
"""


def test_a_folder_that_may_not_be_entered_is_unreachable_and_says_why(shared_path: Path):
    root = wheelhouse.registry(shared_path / "r", [])
    command = [sys.executable, "-c", FORBIDDEN, str(root)]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=50).stdout
    assert out.startswith("RegistryError registry-unreachable")
    assert os.strerror(errno.EACCES) in out


@pytest.mark.parametrize("name", ["catalog", "types", "advisories"])
def test_a_missing_file_is_named(name: str, root: Path):
    (root / "targets" / name).unlink()
    registry = Registry("r", str(root), trust=wheelhouse.TrustedPath())
    read = {"catalog": registry.catalog, "types": registry.types, "advisories": registry.advisories}[name]
    with pytest.raises(IndexInvalidError, match=name):
        read()


def test_an_index_cut_at_any_place_is_refused_and_named(root: Path):
    catalog = root / "targets/catalog"
    whole = catalog.read_bytes()
    for size in (0, 1, len(whole) // 2, len(whole) - 3):
        catalog.write_bytes(whole[:size])
        with pytest.raises(IndexInvalidError) as caught:
            Registry("r", str(root), trust=wheelhouse.TrustedPath()).catalog()
        assert caught.value.details == {"path": str(catalog)}


def change_catalog(root: Path, **changes: object) -> None:
    catalog = root / "targets/catalog"
    value = json.loads(catalog.read_bytes())
    value["projects"][0]["releases"][0]["wheels"][0] |= changes
    catalog.write_bytes(json.dumps(value).encode())


@pytest.mark.parametrize(
    "changes",
    [
        {"file": "../../../etc/passwd"},
        {"file": "dragoman_demo-1.0.0-py3-none-any.whl/../../x.whl"},
        {"file": "dragoman_other-1.0.0-py3-none-any.whl"},
        {"file": "dragoman_demo-2.0.0-py3-none-any.whl"},
        {"sha256": "abc"},
        {"sha256": None},
        {"size": -1},
        {"size": "12"},
        {"requires_python": "soon"},
    ],
)
def test_an_entry_that_cannot_be_is_refused(changes: dict[str, object], root: Path):
    change_catalog(root, **changes)
    with pytest.raises(IndexInvalidError):
        Registry("r", str(root), trust=wheelhouse.TrustedPath()).catalog()


@pytest.mark.parametrize("changes", [{"host_api": "soon"}, {"version": "one"}, {"wheels": []}, {"project": "x"}])
def test_a_release_that_cannot_be_is_refused(changes: dict[str, object], root: Path):
    catalog = root / "targets/catalog"
    value = json.loads(catalog.read_bytes())
    value["projects"][0]["releases"][0] |= changes
    catalog.write_bytes(json.dumps(value).encode())
    with pytest.raises(IndexInvalidError):
        Registry("r", str(root), trust=wheelhouse.TrustedPath()).catalog()


def test_unknown_keys_of_a_newer_registry_are_ignored(root: Path):
    change_catalog(root, colour="red")
    assert Registry("r", str(root), trust=wheelhouse.TrustedPath()).releases("demo")


def test_every_fault_of_an_index_is_reported(root: Path):
    (root / "targets/types").write_bytes(b'{"types_version": 0, "types": {"demo": 1}}')
    with pytest.raises(IndexInvalidError, match=r"\$\.types_version.*\$\.types\.demo"):
        Registry("r", str(root), trust=wheelhouse.TrustedPath()).types()


def test_an_index_beyond_its_bound_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dragoman_registry.index.registry_reader.MAX_INDEX", 100)
    with pytest.raises(IndexInvalidError, match=r"\b100\b"):
        Registry("r", str(root), trust=wheelhouse.TrustedPath()).catalog()


def test_a_manifest_that_is_not_the_one_in_the_index_is_refused(root: Path):
    registry = Registry("r", str(root), trust=wheelhouse.TrustedPath())
    [release] = registry.releases("demo")
    sidecar = root / "targets" / f"{release.wheels[0].path}.driver.json"
    sidecar.write_bytes(sidecar.read_bytes() + b" ")
    with pytest.raises(IntegrityError) as caught:
        registry.manifest(release)
    assert caught.value.details["expected"] == release.manifest_sha256


def test_trust_decides_before_anything_is_read(root: Path):
    class Nobody:
        def admit(self, target: SignedFile) -> SignedFile:
            raise TrustError(f"no publisher vouches for {target.path}")

    registry = Registry("r", str(root), trust=Nobody())
    for read in (registry.catalog, registry.types, registry.advisories):
        with pytest.raises(TrustError):
            read()


def test_paths_cannot_leave_the_registry():
    class Unasked:
        def chunks(self, path: str) -> Iterator[bytes]:
            raise AssertionError(f"{path} was asked for")

    for path in ("../x", "/etc/passwd", "targets/../../x", "a\\b", "http://elsewhere/x"):
        with pytest.raises(IndexInvalidError) as caught:
            sources.read(Unasked(), path, limit=10)
        assert caught.value.details == {"path": path}


def unreachable(handler: object) -> RegistryError:
    with served(handler) as url:
        with pytest.raises(RegistryError) as caught:
            Registry("r", url, trust=wheelhouse.TrustedPath()).catalog()
        assert url in caught.value.message
    return caught.value


def test_a_web_server_without_the_file_is_told_from_one_that_fails():
    assert unreachable(answering(lambda h: h.send_error(404))).code == "index-invalid"
    error = unreachable(answering(lambda h: h.send_error(503)))
    assert error.code == "registry-unreachable"
    assert "503" in error.message


def test_an_answer_that_ends_early_is_unreachable_and_no_short_file():
    def half(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"catalog_version": 1}')

    assert unreachable(answering(half)).code == "registry-unreachable"


def test_an_endless_answer_is_cut_at_the_bound(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dragoman_registry.index.registry_reader.MAX_INDEX", 1 << 20)

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"{" * (1 << 16))
        except OSError:
            pass

    with served(answering(endless)) as url, pytest.raises(IndexInvalidError, match=str(1 << 20)):
        Registry("r", url, trust=wheelhouse.TrustedPath()).catalog()


def test_a_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sources, "STALL", 0.1)
    done = threading.Event()
    error = None
    with served(answering(lambda _: done.wait(5))) as url:
        with pytest.raises(RegistryError) as caught:
            Registry("r", url, trust=wheelhouse.TrustedPath()).catalog()
        error = caught.value
        done.set()
    assert error.code == "registry-unreachable"


def test_a_redirect_to_another_host_is_refused():
    def elsewhere(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", "http://localhost:9/targets/catalog")
        handler.end_headers()

    error = unreachable(answering(elsewhere))
    assert error.code == "registry-unreachable"
    assert "http://localhost:9/targets/catalog" in error.message


def test_nobody_listening_is_unreachable():
    with served(Quiet) as url:
        pass
    with pytest.raises(RegistryError) as caught:
        Registry("r", url, trust=wheelhouse.TrustedPath()).types()
    assert caught.value.code == "registry-unreachable"


@pytest.mark.parametrize(
    ("file", "project"),
    [("dragoman_demo-1.0-py3-none-any.whl", "dragoman-demo"), ("Foo.Bar__x-1-py3-none-any.whl", "foo-bar-x")],
)
def test_the_project_of_a_wheel(file: str, project: str):
    assert project_of(file) == project
