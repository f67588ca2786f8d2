"""A registry over HTTP: what it gives and what it does not, and uploads that wait beside it or leave nothing."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import wheelhouse
from dragoman_api.errors import ConfigurationError, PluginNotFoundError, WheelRejectedError
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.publisher import inbox as inboxes
from dragoman_registry.publisher import publish, upload_requests
from dragoman_registry.publisher.inbox import Inbox
from dragoman_registry.trust.keys import own_key
from hostile_wheels import HOSTILE, many_faults
from shared_isolation import one_process_for_uploads
from uploading import (
    TOKENS,
    ask,
    basic,
    command,
    eventually,
    files,
    form,
    left,
    open_upload,
    post,
    served,
    wheel,
)

NAME = "dragoman_demo-1.0.0-py3-none-any.whl"
NEXT = "dragoman_demo-1.1.0-py3-none-any.whl"
BIN = Path(sys.executable).parent


def code_of(reason: str) -> str:
    """Return the code that a reason begins with."""
    return reason.partition(":")[0]


@pytest.fixture(autouse=True, scope="module")
def one_process_of_uploads(apart):
    """Share what judges uploads; `test_serve_attacked` holds that each has one of its own."""
    with one_process_for_uploads(apart):
        yield


@pytest.fixture
def root(tmp_path):
    return wheelhouse.registry(tmp_path / "team", [wheelhouse.Driver().write(tmp_path / "w")])


@pytest.fixture
def told():
    return []


@pytest.fixture
def url(root, told):
    with served(root, tokens=TOKENS, on_event=told.append) as url:
        yield url


JSON, HTML = "application/vnd.pypi.simple.v1+json", "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (None, HTML),
        ("*/*", HTML),
        (JSON, JSON),
        ("application/vnd.pypi.simple.latest+json", JSON),
        ("application/vnd.pypi.simple.v1+html", "application/vnd.pypi.simple.v1+html; charset=utf-8"),
        (f"text/html;q=0.2, {JSON};q=0.9", JSON),
        (f"text/html, {JSON};q=0.1", HTML),
        (f"{JSON};q=oops, text/html;q=0.01", HTML),
    ],
)
def test_a_page_comes_in_the_form_that_was_asked_for(url, accept, kind):
    headers = {} if accept is None else {"Accept": accept}
    for path in ("/targets/simple/", "/targets/simple/dragoman-demo/"):
        status, _, answered, body = ask(url, path, **headers)
        assert (status, answered["Content-Type"], answered["Vary"]) == (200, kind, "Accept")
        assert (b'"api-version"' in body) == (kind == JSON)


def test_a_form_that_there_is_not_is_refused(url):
    assert ask(url, "/targets/simple/", Accept="image/png")[0] == 406


def test_every_file_has_its_type(url):
    types = {
        "/": HTML,
        "/targets/simple/dragoman-demo/index.v1+json": JSON,
        "/targets/simple/dragoman-demo/index.html": HTML,
        f"/targets/wheels/dragoman-demo/{NAME}": "application/octet-stream",
        f"/targets/wheels/dragoman-demo/{NAME}.metadata": "text/plain; charset=utf-8",
        f"/targets/wheels/dragoman-demo/{NAME}.driver.json": "application/json",
        "/targets/docs/dragoman-demo/1.0.0/README.md": "text/markdown; charset=utf-8",
        "/targets/catalog": "application/octet-stream",
    }
    for path, kind in types.items():
        status, _, headers, _ = ask(url, path)
        assert (path, status, headers["Content-Type"]) == (path, 200, kind)
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_what_an_author_wrote_runs_nothing_in_a_browser(root, url):
    _, _, headers, _ = ask(url, "/targets/docs/dragoman-demo/1.0.0/README.md")
    assert headers["Content-Security-Policy"] == "sandbox; default-src 'none'"


def test_parts_and_unchanged_files_need_not_be_sent_again(root, url):
    path = f"/targets/wheels/dragoman-demo/{NAME}"
    data = (root / path[1:]).read_bytes()
    status, _, headers, body = ask(url, path, Range="bytes=10-19")
    assert (status, body, headers["Content-Range"]) == (206, data[10:20], f"bytes 10-19/{len(data)}")
    status, _, headers, _ = ask(url, path)
    assert "immutable" in headers["Cache-Control"]
    assert ask(url, path, If_None_Match=headers["ETag"])[0] == 304
    assert ask(url, path, If_Modified_Since=headers["Last-Modified"])[0] == 304
    status, _, headers, body = ask(url, path, method="HEAD")
    assert (status, headers["Content-Length"], body) == (200, str(len(data)), b"")


def test_nothing_outside_the_folder_is_given(tmp_path, root, url):
    (tmp_path / "secret").write_text("secret")
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "loop").symlink_to(root / "loop")
    (root / "up").symlink_to(tmp_path)
    (root / "in").symlink_to(root / "targets/catalog")
    (root / "targets/.catalog.1.tmp").write_text("draft")
    os.mkfifo(root / "pipe")
    post(url, form(wheel(tmp_path / "w2")))
    assert left(root)
    for path in (
        "/../secret", "/%2e%2e/secret", "/targets/../../secret", "/..%2fsecret", "/..%5csecret", "/out", "/up/secret",
        "/loop", "/pipe", "//etc/passwd", f"/{tmp_path}/secret", "/targets/.catalog.1.tmp", "/%00", "/targets/%00",
        f"/../team.inbox/{NEXT}/{NEXT}", f"/team.inbox/{NEXT}/{NEXT}", f"/{'x' * 5000}", "/targets", "/targets/",
        "/targets/wheels/", "/metadata/", "/targets/simple/none/",
    ):  # fmt: skip
        status, _, _, body = ask(url, path)
        assert (path, status) == (path, 404)
        assert b"secret" not in body
    assert ask(url, "/in")[0] == 200


def test_all_that_a_registry_consists_of_is_given_and_nothing_that_merely_lies_in_it(tmp_path):
    root, driver = tmp_path / "team", wheelhouse.Driver().write(tmp_path / "w")
    papers = {"CHANGELOG.md": b"# Changes", "report.json": b"{}"}
    publish.build([driver, wheelhouse.library().write(tmp_path / "w")], to=root, beside={driver.name: papers})
    publish.mark(root, project="demo", version="1.0.0", status="deprecated", reason="old")
    own = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    assert any(name.endswith("report.json") for name in own)
    folders = {path.relative_to(root) for path in root.rglob("*") if path.is_dir()} | {Path()}
    stray = [
        str(folder / name) for folder in folders for name in ("root-0f3a.pem", "ada.pub", "note.txt", "x.json.bak")
    ]
    for name in stray:
        (root / name).write_text("PRIVATE KEY")
    with served(root) as url:
        assert {name: ask(url, f"/{name}")[0] for name in own} == dict.fromkeys(own, 200)
        assert {name: ask(url, f"/{name}")[0] for name in stray} == dict.fromkeys(stray, 404)


def test_a_page_without_its_slash_leads_to_the_page(url):
    status, _, headers, _ = ask(url, "/targets/simple/dragoman-demo")
    assert (status, headers["Location"]) == (301, "dragoman-demo/")


def test_dragoman_reads_what_is_served(url):
    registry = Registry("team", url, trust=wheelhouse.TrustedPath())
    [release] = registry.releases("demo")
    assert registry.manifest(release).id == "demo"
    assert hashlib.sha256(b"".join(registry.chunks(release.wheels[0]))).hexdigest() == release.wheels[0].sha256


def test_nothing_can_be_uploaded_where_nobody_may(tmp_path, root):
    with served(root) as url:
        assert post(url, form(wheel(tmp_path / "w2")))[0] == 405
    assert not Inbox(root).folder.exists()


def client(tool, url, *words, token=TOKENS["alice"]):
    """Run the real twine or uv against a server."""
    commands = {
        "twine": ["twine", "upload", "--non-interactive", "--disable-progress-bar", "--repository-url"],
        "uv": ["uv", "publish", "--no-config", "--publish-url"],
    }
    secrets = {"TWINE_USERNAME": "__token__", "TWINE_PASSWORD": token, "UV_PUBLISH_TOKEN": token}
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["DRAGOMAN_HOME"], "COLUMNS": "4000", **secrets}
    [command, *more] = commands[tool]
    done = subprocess.run(
        [str(BIN / command), *more, f"{url}/upload", *map(str, words)], env=environment, capture_output=True, text=True,
        check=False, timeout=50,
    )  # fmt: skip
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["twine", "uv"])
def test_real_clients_publish_and_the_wheel_waits_outside_what_is_served(tool, tmp_path, root, url, told):
    before = files(root)
    path = wheel(tmp_path / "w2")
    for _ in range(2):  # the same bytes may come again
        code, said = client(tool, url, path)
        assert code == 0, said
    [upload] = Inbox(root).waiting()
    assert (upload.file, upload.publisher) == (NEXT, "alice")
    assert Inbox(root).path(upload).read_bytes() == path.read_bytes()
    assert files(root) == before
    assert left(root) == {NEXT, f"{NEXT}/{NEXT}", f"{NEXT}/upload.json"}
    assert [(event.name, event.file, event.new) for event in told] == [
        ("registry.upload_received", NEXT, True), ("registry.upload_received", NEXT, False),
    ]  # fmt: skip
    assert {
        wheel.file
        for release in Registry("r", url, trust=wheelhouse.TrustedPath()).releases("demo")
        for wheel in release.wheels
    } == {NAME}


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["twine", "uv"])
def test_real_clients_show_why_an_upload_was_refused(tool, tmp_path, root, url, told):
    code, said = client(tool, url, HOSTILE["pth-file"][0](tmp_path / "w2"))
    assert code != 0
    assert "pth-file: " in said
    assert "zz_run.pth" in said
    code, said = client(tool, url, wheel(tmp_path / "w3"), token="somebody-else-s-token")
    assert code != 0
    assert "token-unknown: " in said
    assert left(root) == set()
    assert [event.codes for event in told if event.name == "registry.upload_refused"][-1] == ["token-unknown"]


def test_uv_skips_what_is_published_already(tmp_path, root, url):
    published = root / "targets/wheels/dragoman-demo" / NAME
    code, said = client("uv", url, "--check-url", f"{url}/targets/simple/", published, wheel(tmp_path / "w2"))
    assert code == 0, said
    assert "already exists, skipping" in said
    assert {upload.file for upload in Inbox(root).waiting()} == {NEXT}


def test_published_bytes_never_change(tmp_path, root, url):
    same = root / "targets/wheels/dragoman-demo" / NAME
    assert post(url, form(same))[0] == 200
    other = wheelhouse.Driver(summary="other").write(tmp_path / "w2")
    status, reason, said = post(url, form(other))
    assert (status, code_of(reason), NAME in reason) == (409, "immutable", True)
    assert reason in said
    assert left(root) == set()


def test_what_waits_is_not_replaced_by_other_bytes(tmp_path, root, url):
    first, other = wheel(tmp_path / "w2"), wheel(tmp_path / "w3", summary="other")
    assert post(url, form(first))[0] == 200
    status, reason, _ = post(url, form(other), authorization=basic("bob", TOKENS["bob"]))
    assert (status, code_of(reason), NEXT in reason) == (409, "upload-conflict", True)
    [upload] = Inbox(root).waiting()
    assert (upload.publisher, upload.sha256) == ("alice", hashlib.sha256(first.read_bytes()).hexdigest())
    assert len(left(root)) == 3


def test_of_two_publishers_at_once_one_comes_first(tmp_path, root, url):
    bodies = [form(wheel(tmp_path / str(n), summary=f"number {n}")) for n in range(6)]
    with ThreadPoolExecutor(len(bodies)) as pool:
        answers = list(pool.map(lambda body: post(url, body), bodies))
    assert sorted(status for status, _, _ in answers) == [200, 409, 409, 409, 409, 409]
    [upload] = Inbox(root).waiting()
    winner = [status for status, _, _ in answers].index(200)
    assert upload.sha256.encode() in bodies[winner]
    assert len(left(root)) == 3
    with ThreadPoolExecutor(4) as pool:
        again = list(pool.map(lambda _: post(url, bodies[winner])[0], range(4)))
    assert again == [200] * 4


BROKEN = {
    "a wrong digest": ({"sha256_digest": "0" * 64}, "upload-invalid", "sha256_digest", "0" * 64),
    "another wrong digest": ({"blake2_256_digest": "0" * 64}, "upload-invalid", "blake2_256_digest", "0" * 64),
    "no digest": ({"sha256_digest": None}, "upload-invalid", "sha256_digest"),
    "another action": ({"action": "submit"}, "upload-invalid"),
    "another protocol": ({"protocol_version": "2"}, "upload-invalid"),
    "a source archive": ({"file": "dragoman_demo-1.1.0.tar.gz", "filetype": "sdist"}, "upload-invalid"),
    "another kind of file": ({"filetype": "bdist_egg"}, "upload-invalid", "'bdist_egg'"),
    "no file": ({"file": None}, "upload-invalid"),
    "a path for a name": ({"file": "../../evil-1.0-py3-none-any.whl"}, "upload-invalid", "'../../evil-"),
    "an absolute path": ({"file": "/tmp/evil-1.0-py3-none-any.whl"}, "upload-invalid"),
    "a hidden name": ({"file": "upload.json"}, "upload-invalid", "'upload.json'"),
    "another name": ({"file": "dragoman_other-1.1.0-py3-none-any.whl"}, "name-mismatch", "dragoman-other"),
    "no wheel's name": ({"file": "demo.whl"}, "not-a-wheel", "demo.whl"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_upload_is_refused_with_its_reason_and_leaves_nothing(kind, tmp_path, root, url):
    changes, code, *values = BROKEN[kind]
    status, reason, body = post(url, form(wheel(tmp_path / "w2"), **changes))
    assert status == 400
    for said in (reason, body):
        assert f"{code}: " in said
        assert all(value in said for value in values)
    assert left(root) == set()
    assert post(url, form(wheel(tmp_path / "w2")))[0] == 200  # and it goes on


@pytest.mark.parametrize("more", ['name="sha256_digest"', 'name="content"; filename="x.whl"'])
def test_a_field_that_is_there_twice_is_refused(more, tmp_path, root, url):
    status, reason, _ = post(url, form(wheel(tmp_path / "w2"), (more, b"x")))
    assert (status, code_of(reason)) == (400, "upload-invalid")
    assert repr(more.split('"')[1]) in reason
    assert left(root) == set()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "multipart/form-data; boundary=edge"),
        (b"\0" * 1000, "multipart/form-data; boundary=edge"),
        (b"--edge", "multipart/form-data; boundary=edge"),
        (b"--edge\r\n\r\n" + b"x" * 100, "multipart/form-data; boundary=edge"),
        (b"--edge\r\nContent-Type: multipart/mixed; boundary=in\r\n\r\n--in--\r\n--edge--",
         "multipart/form-data; boundary=edge"),
        (b"x", "multipart/form-data"),
        (b"{}", "application/json"),
        (b"x", "nonsense"),
    ],
)  # fmt: skip
def test_what_is_no_form_is_refused(body, kind, root, url):
    assert post(url, body, Content_Type=kind)[0] == 400
    assert not Inbox(root).folder.exists() or left(root) == set()


def test_every_fault_is_told_at_once(tmp_path, url):
    status, reason, said = post(url, form(many_faults(tmp_path / "w2")))
    assert status == 409, "it is published, with other bytes"
    codes = {line.partition(":")[0] for line in said.splitlines()}
    assert codes >= {"path-escape", "record-extra", "pth-file", "shadows", "native-code", "scripts", "manifest"}
    assert reason.endswith(" more")
    assert len(reason) < 1000


def test_a_file_beyond_the_limit_is_refused(tmp_path, root, url, monkeypatch):
    body = form(wheel(tmp_path / "w2"))
    monkeypatch.setattr(inboxes, "MAX_UPLOAD", 1000)
    status, reason, _ = post(url, body)
    assert (status, code_of(reason)) == (413, "upload-too-large")
    monkeypatch.undo()
    monkeypatch.setattr(inboxes, "MAX_INBOX", 1000)
    status, reason, _ = post(url, body)
    assert (status, code_of(reason)) == (507, "inbox-full")
    assert left(root) == set()


def test_a_form_beyond_the_limit_is_refused(tmp_path, root, url):
    status, reason, _ = post(url, form(wheel(tmp_path / "w2"), description="x" * (5 << 20)))
    assert (status, code_of(reason)) == (413, "upload-too-large")
    assert left(root) == set()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_an_upload_cut_in_the_middle_leaves_nothing(share, tmp_path, root, url, told):
    body = form(wheel(tmp_path / "w2", files={"dragoman_demo/data.bin": b"." + os.urandom(3 << 20)}))
    with open_upload(url, body) as connection:
        connection.sendall(body[: int(len(body) * share)])
        eventually(lambda: any(name.startswith(".draft-") for name in left(root)))
    eventually(lambda: left(root) == set())
    eventually(lambda: told)
    assert [event.name for event in told] == ["registry.upload_refused"]
    assert post(url, body)[0] == 200


def test_a_body_is_asked_for_only_where_the_token_is_known(tmp_path, root, url):
    body = form(wheel(tmp_path / "w2"))
    with open_upload(url, body, authorization=basic(token="wrong"), expect=True) as connection:
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 401 token-unknown: ")
    with open_upload(url, body, length=1 << 40, expect=True) as connection:
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 413 upload-too-large: ")
    assert not Inbox(root).folder.exists()
    with open_upload(url, body, expect=True) as connection:
        assert connection.recv(1 << 16) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 OK")
    assert len(left(root)) == 3


@pytest.mark.parametrize(
    "authorization",
    ["Basic", "Basic !", "Bearer alice-has-this-token", "Basic /w==", basic("bob"), basic("alice", ""), basic("", "")],
)
def test_who_has_no_token_uploads_nothing(authorization, tmp_path, root, url):
    status, reason, _ = post(url, form(wheel(tmp_path / "w2")), authorization=authorization)
    assert (status, code_of(reason)) == (401, "token-unknown")
    assert not Inbox(root).folder.exists()


def test_a_name_or_the_usual_word_may_stand_before_a_token(tmp_path, root, url):
    assert post(url, form(wheel(tmp_path / "w2")), authorization=basic("alice"))[0] == 200
    other = wheel(tmp_path / "w3", "1.2.0")
    assert post(url, form(other), authorization=basic(token=TOKENS["bob"]))[0] == 200
    assert {upload.publisher for upload in Inbox(root).waiting()} == {"alice", "bob"}


def test_a_driver_may_come_before_what_it_needs(tmp_path, root, url):
    library = wheelhouse.library().write(tmp_path / "w2")
    driver = wheelhouse.Driver("three", dependencies=[wheelhouse.dependency(library)])
    driver.requires.append("tinylib")
    driver = driver.write(tmp_path / "w2")
    assert post(url, form(driver))[0] == 200
    [fault] = Inbox(root).faults()[driver.name]
    assert (fault.code, fault.where) == ("dependency-missing", driver.name)
    assert library.name in fault.reason
    assert post(url, form(library))[0] == 200
    assert Inbox(root).faults() == {driver.name: [], library.name: []}


def test_a_wheel_waits_thirty_days_and_what_is_published_waits_no_longer(tmp_path, root, url):
    box = Inbox(root)
    for version in ("1.1.0", "1.2.0"):
        assert post(url, form(wheel(tmp_path / "w2", version)))[0] == 200
    now = datetime.now(UTC)
    assert box.sweep(now + timedelta(days=29)) == []
    publish.build([box.path(box.waiting()[0])], to=root)
    assert [upload.file for upload in box.sweep(now)] == [NEXT]
    assert [upload.file for upload in box.sweep(now + timedelta(days=31))] == ["dragoman_demo-1.2.0-py3-none-any.whl"]
    assert left(root) == set()
    with pytest.raises(PluginNotFoundError):
        box.drop("../team")


@pytest.fixture
def signed(tmp_path):
    """A registry whose keys are elsewhere, with an author who may publish a driver."""
    root, key = tmp_path / "team", own_key(tmp_path / "alice.pem")
    publish.init(root)
    publish.add_publisher(root, "alice", key=key.with_suffix(".pub"), projects=["dragoman-demo"], types=["demo"])
    (tmp_path / "team.keys").rename(tmp_path / "safe")
    return root


def test_an_upload_is_published_once_its_author_has_signed_for_these_bytes(tmp_path, signed, dragoman):
    driver, other = wheel(tmp_path / "w", "1.0.0"), wheel(tmp_path / "w2", "1.0.0", summary="other")
    keys, box = tmp_path / "safe", Inbox(signed)
    with served(signed, tokens=TOKENS) as url:
        assert post(url, form(driver))[0] == 200
    assert box.signed() == {}
    assert [each["signed"] for each in dragoman("registry", "inbox", signed, "--json").json["waiting"]] == [None]
    assert wheelhouse.accept(signed, keys=keys, uploads=[box.path(box.waiting()[0])]) == []
    shutil.copytree(signed, tmp_path / "copy")
    publish.build([driver], to=tmp_path / "copy", sign=tmp_path / "alice.pem")
    [role] = {path.name for path in (tmp_path / "copy/metadata").iterdir()} - {
        path.name for path in (signed / "metadata").iterdir()
    }
    shutil.copy(tmp_path / "copy/metadata" / role, signed / "metadata")
    assert box.signed() == {NAME: role.split(".")[1]}
    assert "dragoman registry accept " in dragoman("registry", "inbox", signed).said
    with served(signed, tokens=TOKENS) as url:
        assert post(url, form(other))[0] == 409, "what waits is what was signed"
        dragoman("registry", "accept", signed, "--keys", keys)
        assert left(signed) == set()
        status, _, _, data = ask(url, f"/targets/wheels/dragoman-demo/{NAME}")
        assert (status, data) == (200, driver.read_bytes())
        status, reason, said = post(url, form(driver))
        assert (status, reason, NAME in said) == (200, "OK", True)
        assert post(url, form(other))[0] == 409


def test_a_signature_for_other_bytes_accepts_no_upload(tmp_path, signed):
    driver, other = wheel(tmp_path / "w", "1.0.0"), wheel(tmp_path / "w2", "1.0.0", summary="other")
    with served(signed, tokens=TOKENS) as url:
        assert post(url, form(other))[0] == 200
    shutil.copytree(signed, tmp_path / "copy")
    publish.build([driver], to=tmp_path / "copy", sign=tmp_path / "alice.pem")
    shutil.copytree(tmp_path / "copy/metadata", signed / "metadata", dirs_exist_ok=True)
    box = Inbox(signed)
    assert box.signed() == {}
    with pytest.raises(WheelRejectedError) as caught:
        wheelhouse.accept(signed, keys=tmp_path / "safe", uploads=[box.path(box.waiting()[0])])
    assert "digest-mismatch" in {code for code, _ in caught.value.faults}
    assert publish.published(signed) == {}


def test_a_project_that_nobody_may_publish_yet_waits_for_its_publisher(tmp_path, signed):
    stranger = wheelhouse.Driver("new").write(tmp_path / "w")
    with served(signed, tokens=TOKENS) as url:
        assert post(url, form(stranger))[0] == 200
    assert {fault.code for fault in Inbox(signed).faults()[stranger.name]} == {"no-publisher", "type-not-bound"}


@pytest.mark.slow
def test_the_command_serves_until_it_is_interrupted_and_tells_events(tmp_path, root, dragoman):
    with command(root, tmp_path, "--events", tmp_path / "events") as (process, said):
        assert said["simple"] == f"{said['url']}/targets/simple/"
        assert said["upload"] == f"{said['url']}/upload"
        assert said["url"].startswith("http://127.0.0.1:")
        assert said["root"] in dragoman("registry", "add", said["url"], "--root", "0" * 64, code=1).said
        assert "added" in dragoman("registry", "add", said["url"], "--root", said["root"]).said
        assert post(said["url"], form(wheel(tmp_path / "w2")))[0] == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stderr.read() == "  ended\n"
    [event] = map(json.loads, (tmp_path / "events").read_text().splitlines())
    assert (event["name"], event["file"]) == ("registry.upload_received", NEXT)


@pytest.mark.slow
def test_a_full_disk_refuses_the_upload_and_leaves_nothing(tmp_path, root):
    body = form(wheel(tmp_path / "w2", files={"dragoman_demo/data.bin": b"." + os.urandom(1 << 20)}))
    with command(root, tmp_path, limit=300_000) as (_, said):
        status, reason, _ = post(said["url"], body)
        assert (status, code_of(reason)) == (507, "inbox-full")
        assert os.strerror(errno.EFBIG) in reason
        assert left(root) == set()
        assert post(said["url"], form(wheel(tmp_path / "w3")))[0] == 200


@pytest.mark.slow
def test_a_server_killed_in_an_upload_leaves_a_draft_that_is_swept(tmp_path, root):
    body = form(wheel(tmp_path / "w2"))
    with command(root, tmp_path) as (process, said), open_upload(said["url"], body) as connection:
        connection.sendall(body[:1000])
        eventually(lambda: any(name.startswith(".draft-") for name in left(root)))
        process.kill()
        process.wait(30)
    box = Inbox(root)
    assert (box.waiting(), box.faults()) == ([], {})
    assert box.sweep() == []
    assert left(root), "it may belong to a server that runs"
    box.sweep(datetime.now(UTC) + timedelta(hours=2))
    assert left(root) == set()


def test_the_inbox_is_listed_and_emptied_by_command(tmp_path, root, url, dragoman):
    assert dragoman("registry", "inbox", root, "--json").json["waiting"] == []
    post(url, form(wheel(tmp_path / "w2")))
    listed = dragoman("registry", "inbox", root).said
    assert NEXT in listed
    assert " alice " in listed
    other = wheelhouse.Driver("rival", types=[{"name": "demo", "label": "Demo"}]).write(tmp_path / "w3")
    status, reason, _ = post(url, form(other))
    assert (status, "type-taken" in reason) == (400, True)
    document = dragoman("registry", "inbox", root, "--json").json
    assert [entry["upload"]["file"] for entry in document["waiting"]] == [NEXT]
    assert "dropped " in dragoman("registry", "inbox", root, "--drop", NEXT).said
    assert left(root) == set()
    assert "error[plugin-not-found]" in dragoman("registry", "inbox", root, "--drop", NEXT, code=1).said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--upload"], "uploads need --upload and at least one --token"),
        (["--token", "a=file:x"], "uploads need --upload and at least one --token"),
        (["--upload", "--token", "alice=plain-text-secret-here"], "does not say where the token is kept"),
        (["--upload", "--token", "alice=env:SHORT_TOKEN"], "is shorter than 16 characters"),
        (["--upload", "--token", "alice=env:NO_SUCH_TOKEN"], "NO_SUCH_TOKEN is not set"),
    ],
)
def test_a_server_that_cannot_be_as_asked_does_not_start(words, said, root, monkeypatch, dragoman):
    monkeypatch.setenv("SHORT_TOKEN", "short")
    told = dragoman("registry", "serve", root, *words, code=2).said
    assert said in told
    assert "plain-text-secret-here" not in told


def test_a_folder_that_is_no_registry_and_a_port_that_is_taken_are_told(tmp_path, root, url):
    with pytest.raises(ConfigurationError) as caught, served(tmp_path):
        pass
    assert caught.value.hint == f"dragoman registry init {tmp_path}"
    port = urlsplit(url).port
    with (
        pytest.raises(ConfigurationError, match=rf"127\.0\.0\.1:{port}: Address already in use$"),
        served(root, port=port),
    ):
        pass


@pytest.mark.slow
def test_another_address_than_loopback_is_told_loudly(tmp_path, root):
    with command(root, tmp_path, "--host", "0.0.0.0", "--quiet") as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        said = process.stderr.read()
        assert "warning: " in said
        assert "0.0.0.0" in said


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.slow
@pytest.mark.parametrize("code", HOSTILE)
def test_a_hostile_wheel_is_refused_when_it_is_uploaded(code, tmp_path, root, url):
    hostile = HOSTILE[code][0](tmp_path / "w2")
    shutil.rmtree(root / "targets/wheels")  # what is refused is refused for itself
    before = files(tmp_path)
    status, reason, said = post(url, form(hostile))
    assert status in (400, 409), reason
    assert code in {line.partition(":")[0] for line in said.splitlines()}
    assert left(root) == set()
    assert files(tmp_path) - before <= {"team.inbox"}


@pytest.mark.slow
def test_the_reason_phrase_of_a_wheel_with_many_faults_is_made_once_through_them():
    class Counted(str):
        __slots__ = ()
        looks = 0

        def __len__(self) -> int:
            Counted.looks += 1
            return super().__len__()

    reasons = [Counted(f"code: {number}") for number in range(5_000)]
    phrase = upload_requests.phrase([*reasons])
    assert len(phrase) < 1_500
    assert phrase.startswith("code: 0; code: 1; ")
    assert phrase.endswith(" more")
    assert Counted.looks < 3 * len(reasons)
    assert upload_requests.phrase(["a" * 5_000, "b"]) == "a" * 900 + "; and 1 more"
