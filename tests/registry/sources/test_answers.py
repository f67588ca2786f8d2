"""What a web server answers in place of a registry's files is judged before trust, and said in a few words."""

from __future__ import annotations

import gzip
import hashlib
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import wheelhouse
from dragoman_api.errors import DragomanError, IndexInvalidError
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.sources import open_source
from dragoman_registry.trust.tuf_client import TufTrust
from slow_cases import mostly_slow

PAGE = b"\n<!DOCTYPE html><html><title>Sign in</title>" + b"<p>Welcome to the network" * 400


def same(data):
    return 200, {}, data


ANSWERS = {
    "portal": (lambda data: (200, {"Content-Type": "text/html"}, PAGE), "web page"),
    "portal without a type": (lambda data: (200, {}, b"<head><script>location='/login'</script>"), "web page"),
    "text": (lambda data: (200, {"Content-Type": "text/plain"}, b"please sign in" * 300), "text/plain"),
    "gzip": (lambda data: (200, {"Content-Encoding": "gzip"}, gzip.compress(data)), "compressed"),
    "truncated": (lambda data: (200, {"Content-Length": str(len(data) + 9)}, data), "ended after"),
    "login": (lambda data: (302, {"Location": "http://login.example/?next=x"}, b""), "login.example"),
    "forbidden": (lambda data: (403, {}, b"<Error>AccessDenied</Error>"), "forbidden: the server answered 403"),
    "credentials": (lambda data: (401, {}, PAGE), "wants a user and a password"),
    "proxy's credentials": (lambda data: (407, {}, PAGE), "HTTP 407"),
    "sign-in": (lambda data: (511, {}, PAGE), "sign in"),
    "gateway": (lambda data: (502, {}, PAGE), "HTTP 502"),
    "empty": (lambda data: (204, {}, b""), "HTTP 204"),
    "part": (lambda data: (206, {}, data[:9]), "HTTP 206"),
}
FILES = {
    "root": "1.root.json",
    "timestamp": "timestamp.json",
    "snapshot": ".snapshot.json",
    "targets": ".targets.json",
    "catalog": "catalog",
    "types": "types",
    "advisories": "advisories",
    "manifest": ".driver.json",
    "wheel": ".whl",
}
NOT_SAID = re.compile(r"taken its place|changed after publication|not valid|not signed|rollback|attack")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("answers")
    (place / "wheels").mkdir()
    return wheelhouse.registry(place / "registry", [wheelhouse.Driver().write(place / "wheels")])


@contextmanager
def serving(folder, victim="", answer=same, missing=404):
    """Serve a registry; the paths that contain `victim` get another answer."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            name = Path(self.path).name
            file = Path(folder, self.path.removeprefix("/"))
            status, headers, data = (200, {}, file.read_bytes()) if file.is_file() else (missing, {}, b"")
            if victim and victim in name and status == 200 and not (victim == ".whl" and not name.endswith(victim)):
                status, headers, data = answer(data)
            self.send_response(status)
            for header in ({"Content-Length": str(len(data))} | headers).items():
                self.send_header(*header)
            self.end_headers()
            self.wfile.write(data)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def read_everything(folder, location, cache):
    """Read each kind of file as an installation does."""
    root = hashlib.sha256((folder / "metadata/1.root.json").read_bytes()).hexdigest()
    trust = TufTrust(open_source(location), where=location, cache=cache, root=root)
    reader = Registry("team", location, trust=trust)
    reader.types()
    [project] = reader.catalog().projects
    [release] = project.releases
    reader.manifest(release)
    reader.admitted(release.wheels[0], release)
    assert b"".join(reader.chunks(release.wheels[0]))
    return reader, release


@pytest.mark.parametrize(
    ("name", "kind"),
    mostly_slow(
        [(name, kind) for name in FILES for kind in ANSWERS],
        fast=[*((name, "portal") for name in FILES), *(("timestamp", kind) for kind in ANSWERS)],
    ),
)
def test_each_answer_in_place_of_each_file_is_named_in_a_few_words(folder, tmp_path, name, kind):
    answer, words = ANSWERS[kind]
    if kind == "text" and name == "wheel":
        pytest.skip("its digest is compared by the installer")
    with serving(folder, FILES[name], answer) as location, pytest.raises(DragomanError) as caught:
        read_everything(folder, location, tmp_path / "cache")
    error = caught.value
    assert error.code == "registry-unreachable"
    assert words in error.message
    assert FILES[name] in error.message
    assert error.hint
    assert len(f"{error.message}{error.hint}".encode()) < 2_000
    assert not NOT_SAID.search(error.message + error.hint)


@pytest.mark.parametrize("missing", [403, 404])
def test_a_server_that_hides_its_list_serves_a_registry(folder, tmp_path, missing):
    with serving(folder, missing=missing) as location:
        reader, _ = read_everything(folder, location, tmp_path / "cache")
        assert reader.document("demo/README.md") is None


def test_a_missing_file_is_missing_and_not_forbidden(folder, tmp_path):
    with serving(folder, "catalog", lambda data: (404, {}, b"")) as location, pytest.raises(IndexInvalidError):
        read_everything(folder, location, tmp_path / "cache")


def test_a_server_that_answers_everything_with_one_document_is_told_once(folder, tmp_path):
    data = b'{"error": "' + b"x" * 5_000 + b'"}'
    with serving(folder, ".json", lambda _: (200, {}, data), missing=404) as location:
        with pytest.raises(DragomanError) as caught:
            read_everything(folder, location, tmp_path / "cache")
        assert caught.value.code == "root-mismatch"
        assert caught.value.message.count(hashlib.sha256(data).hexdigest()) == 1


@pytest.mark.parametrize(
    ("scheme", "variable"), [("http", "http_proxy"), ("https", "https_proxy"), ("https", "HTTPS_PROXY")]
)
def test_a_failure_on_the_way_names_the_proxy_and_not_its_password(monkeypatch, folder, scheme, variable):
    with serving(folder, missing=407) as location:
        port = location.rpartition(":")[2]
        monkeypatch.setenv(variable, f"http://me:hunter2@127.0.0.1:{port}")
        with pytest.raises(DragomanError) as caught:
            b"".join(open_source(f"{scheme}://registry.example").chunks("metadata/1.root.json"))
    text = caught.value.message + caught.value.hint
    assert f"http://127.0.0.1:{port} of {variable}" in text
    assert "hunter2" not in text
    monkeypatch.setenv(variable, "http://127.0.0.1:1")
    with pytest.raises(DragomanError, match=r"through the proxy http://127\.0\.0\.1:1 of") as caught:
        b"".join(open_source(f"{scheme}://registry.example").chunks("metadata/1.root.json"))
    assert caught.value.details["proxy"] == "http://127.0.0.1:1"
