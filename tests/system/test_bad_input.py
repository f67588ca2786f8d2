"""Everything around the host goes wrong, one thing at a time: each is told clearly, and nothing is lost."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest
from anyio.from_thread import start_blocking_portal
from worker.test_ordinary_user import NOBODY, opening_the_way

import hostile_wheels
import wheelhouse
from dragoman import Runtime
from dragoman_api.cells import CELL_BUDGET, CutText
from dragoman_api.errors import DeadlineExceededError, DragomanError, DriverCrashedError
from dragoman_registry.trust.keys import beside
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_worker import hooks_and_deadlines
from fakes.certificates import make_certificates
from forging import forge
from stranger import stranger
from terminal import Terminal

pytestmark = pytest.mark.slow

NAUGHTY = """
import os, sys, time
import anyio
from dragoman_api import hookimpl
from dragoman_api.columns import Column, ColumnKind, Description, Object, ObjectList
from dragoman_api.connections import Server
from dragoman_api.grid import Page

COLUMNS = [Column(name="id", type="keyword", kind=ColumnKind.TEXT)]


class Driver:
    @hookimpl
    async def connect(self, profile, http):
        return Server("Naughty", "1")

    @hookimpl
    async def list_objects(self, request):
        return ObjectList(objects=[Object("evil\\x1b[2J\\x9b31m\\u202ename", rows=1)])

    @hookimpl
    async def describe_object(self, name):
        return Description(object=name, columns=COLUMNS)

    @hookimpl
    async def fetch_page(self, request):
        match request.object:
            case "sleeps":
                time.sleep(3600)
            case "awaits":
                await anyio.sleep(3600)
            case "exits":
                print("my last words \\x1b]0;owned\\x07", flush=True)
                os._exit(7)
            case "aborts":
                os.abort()
            case "raises":
                raise ZeroDivisionError("not caught")
            case "floods":
                for _ in range(1000):
                    print("flood" * 200, file=sys.stderr)
            case "text":
                return "a page"
            case "foreign":
                return Page(columns=COLUMNS, cells=[[object()]])
            case "ragged":
                return Page(columns=COLUMNS, cells=[["one", "too many"]])
            case "large":
                return Page(columns=COLUMNS, cells=[["x" * (5 << 20)]])
            case "many":
                return Page(columns=COLUMNS, cells=[["x"]] * 10_001)
            case "wordy":
                return Page(columns=COLUMNS, notes=[Note(code="x", reason="x" * (40 << 20))])
        return Page(columns=COLUMNS, cells=[["fine"]])
"""
HOOKS = ["connect", "describe_object", "fetch_page", "list_objects"]
EXACT = (
    '{"long":-9223372036854775808,"unsigned":18446744073709551615,"keyword":123456789012345678901234567890,'
    '"double":1.10,"raw":{"huge":1e400,"big":123456789012345678901234567890}}'
)
EVIL = "evil \\u001b[31mred\\u001b]0;owned\\u0007\\u009b2J\\u202e\\ud83d"


def save(home, connections, registries=()):
    """Write a home's two files."""
    config = home / "dragoman/config"
    config.mkdir(parents=True, exist_ok=True)
    entries = [{"type": "elasticsearch", "host": "127.0.0.1", **values} for values in connections.values()]
    text = [
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in entry.items())
        for name, entry in zip(connections, entries, strict=True)
    ]
    (config / "connections.toml").write_text("\n".join(text))
    text = [f'[[registries]]\nname = "team{at}"\nlocation = "{folder}"\n' for at, folder in enumerate(registries)]
    (config / "config.toml").write_text("\n".join(text))
    return stranger(home, cwd=home, inside=True)


def ask(fake, method, path, body):
    """Send a request to a fake, as another client would."""
    with socket.create_connection(("127.0.0.1", fake.port)) as peer:
        head = f"{method} {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        peer.sendall(head.encode() + body.encode())
        answer = b"".join(iter(lambda: peer.recv(65536), b""))
    assert answer.split()[1][:2] == b"20", answer


@pytest.fixture(scope="module")
def portal():
    """Run the fake servers of this module."""
    with start_blocking_portal() as one:
        yield one


@pytest.fixture(scope="module")
def fake(portal):
    """Serve two indices with values that are easily spoilt."""
    with portal.wrap_async_context_manager(FakeElasticsearch()) as one:
        kinds = {"long": "long", "unsigned": "unsigned_long", "keyword": "keyword", "double": "double"}
        properties = {name: {"type": kind} for name, kind in kinds.items()}
        properties["raw"] = {"type": "object", "enabled": False}
        ask(one, "PUT", "/numbers", json.dumps({"mappings": {"properties": properties}}))
        ask(one, "PUT", "/numbers/_doc/1?refresh=true", EXACT)
        ask(one, "PUT", "/texts", '{"mappings":{"properties":{"t":{"type":"keyword"}}}}')
        ask(one, "PUT", "/texts/_doc/1?refresh=true", '{"t":"' + EVIL.replace("\\ud83d", "") + '"}')
        lines = "".join('{"index":{}}\n{"t":"' + "x" * 2_000 + '"}\n' for _ in range(500))
        ask(one, "POST", "/long/_bulk?refresh=true", lines)
        yield one


@pytest.fixture
def broken(fake):
    """Yield the fake server, and mend it afterwards."""
    yield fake
    fake.behave()


@pytest.fixture(scope="module")
def raw_servers():
    """Serve answers byte by byte: to every request the same, then nothing."""
    stop = threading.Event()

    @contextmanager
    def serve(answer, *, close=True):
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(0.1)
        peers = []

        def run():
            while not stop.is_set():
                with suppress(TimeoutError):
                    peer, _ = listener.accept()
                    peers.append(peer)
                    peer.recv(65536)
                    peer.sendall(answer)
                    if close:
                        peer.close()

        thread = threading.Thread(target=run)
        thread.start()
        yield listener.getsockname()[1]
        stop.set()
        thread.join()
        for peer in [*peers, listener]:
            peer.close()

    latin = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-elastic-product: Elasticsearch\r\n"
    body = b'{"version":{"number":"8.\xff\xfe\x1b[31m"},"tagline":"You Know, for Search"}'
    with (
        serve(b"\x00\x1b]0;owned\x07 no HTTP at all\r\n\r\n") as noise,
        serve(latin + b"Content-Length: %d\r\n\r\n" % len(body) + body) as not_utf8,
        serve(b"", close=False) as silent,
    ):
        yield {"noise": noise, "not-utf8": not_utf8, "silent": silent}


@pytest.fixture(scope="module")
def house(fake, portal, raw_servers, tmp_path_factory):
    """One home in which both drivers are installed; connections to servers of every kind of trouble."""
    folder = tmp_path_factory.mktemp("house")
    wheel = wheelhouse.Driver("naughty", code=NAUGHTY, hooks=HOOKS).write(folder / "wheels")
    store = wheelhouse.registry(folder / "registry", [wheel])
    tls = FakeElasticsearch(tls=make_certificates(folder / "certificates"))
    opensearch = FakeElasticsearch(opensearch="2.19.1")
    with portal.wrap_async_context_manager(tls), portal.wrap_async_context_manager(opensearch):
        connections = {
            "shop": {"port": fake.port},
            "naughty": {"type": "naughty"},
            "down": {"port": 1},
            "opensearch": {"port": opensearch.port},
            "http-on-tls": {"port": tls.port},
            "tls-on-http": {"port": fake.port, "ssl_mode": "required-skip-verify"},
            "stranger-tls": {"port": tls.port, "ssl_mode": "verify-identity"},
            **{name: {"port": port} for name, port in raw_servers.items()},
        }
        shell = save(folder / "home", connections, [store])
        shell("dragoman objects shop")
        shell("dragoman objects naughty")
        yield shell


def refused(shell, command, error, code=1, *, hint=True):
    """Run a command that must fail with a code, and leave stdout free of anything but data."""
    result = shell(f"dragoman {command}", code=code)
    assert result.out == ""
    assert f"error[{error}]: " in result.err, result.err
    assert "Traceback" not in result.err
    assert "\x1b" not in result.err
    said = ("\n  try: ", "\n  hint: ", "\n  the driver suggests: ")
    assert not hint or any(each in result.err for each in said), result.err
    return result.err


def start(shell, *words, **more):
    """Start a command in a session of its own."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True, **more}
    return subprocess.Popen(shell.words(*words), env=shell.variables(), **pipes)


def children(process):
    """Return the processes that one has started."""
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def gone(pid):
    """Wait for the end of a process that nobody here can reap; a zombie has ended."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


def until(condition):
    """Wait for something that another process does."""
    end = time.monotonic() + 20
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


# registries and wheels ------------------------------------------------------------------------------------------------


def smuggle(root, wheel):
    """Put a wheel into a registry that nobody checked, signed, and under the digest it has."""
    [place] = root.rglob(wheel.name)
    document = json.loads((root / "targets/catalog").read_text())
    for release in document["projects"][0]["releases"]:
        for entry in release["wheels"]:
            if entry["file"] == wheel.name:
                entry |= {"size": wheel.stat().st_size, "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()}
    files = {str(place.relative_to(root / "targets")): wheel.read_bytes(), "catalog": json.dumps(document).encode()}
    forge(root, files)


def copy(registry, to):
    """Copy a registry with its keys."""
    shutil.copytree(beside(registry), beside(to))
    return shutil.copytree(registry, to)


@pytest.fixture(scope="module")
def two_releases(tmp_path_factory):
    """Publish a driver in two versions."""
    folder = tmp_path_factory.mktemp("two")
    wheels = [wheelhouse.Driver("demo", version).write(folder / "wheels") for version in ("0.9.0", "1.0.0")]
    return wheelhouse.registry(folder / "registry", wheels)


@pytest.fixture(scope="module")
def installed(two_releases, tmp_path_factory):
    """Return a home in which the older version is installed."""
    shell = save(tmp_path_factory.mktemp("installed"), {"old": {"type": "demo", "port": 1}}, [two_releases])
    shell("dragoman plugins install demo --version 0.9.0")
    return shell


def damaged(installed, two_releases, tmp_path):
    """Return a copy of the home and of the registry, to be spoilt."""
    copy(two_releases, tmp_path / "registry")
    shutil.copytree(installed.home / "data", tmp_path / "home/dragoman/data")
    return save(tmp_path / "home", {"old": {"type": "demo", "port": 1}}, [tmp_path / "registry"])


def still_opens(shell):
    assert shell("dragoman objects old").out.split() == ["OBJECT", "ROWS", "things", "0"]
    [entry] = shell("dragoman plugins list --json").json["plugins"]
    assert entry["version"] == "0.9.0"
    drafts = shell.home / "data/store/.tmp"
    assert not drafts.exists() or not list(drafts.iterdir())


def _cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "code"), [(_cut, "integrity-failed"), (_flip, "integrity-failed"), (Path.unlink, "index-invalid")]
)
def test_a_spoilt_wheel_is_refused_and_the_previous_version_still_opens(installed, two_releases, tmp_path, spoil, code):
    shell = damaged(installed, two_releases, tmp_path)
    [wheel] = (tmp_path / "registry").rglob("dragoman_demo-1.0.0-py3-none-any.whl")
    spoil(wheel)
    told = refused(shell, "plugins update demo", code)
    assert str(wheel) in told
    assert "dragoman registry verify " in told
    still_opens(shell)


@pytest.mark.parametrize(
    ("fault", "which"), [("path-escape", 0), ("path-escape", 1), ("pth-file", 0), ("not-a-wheel", 0)]
)
def test_a_hostile_wheel_is_refused_with_its_fault_and_nothing_is_written(
    installed, two_releases, tmp_path, fault, which
):
    shell = damaged(installed, two_releases, tmp_path)
    smuggle(tmp_path / "registry", hostile_wheels.HOSTILE[fault][which](tmp_path / "evil"))
    told = refused(shell, "plugins update demo", "wheel-rejected")
    assert f"\n  {fault}: " in told
    still_opens(shell)
    assert not list(tmp_path.rglob("evil.py"))
    assert not Path("/etc/evil").exists()
    assert not list(tmp_path.rglob("*.pth"))


def test_where_no_release_fits_each_is_told_with_its_reason(two_releases, tmp_path):
    root = copy(two_releases, tmp_path / "registry")
    catalog = (root / "targets/catalog").read_text()
    forge(root, {"catalog": catalog.replace('"host_api": "~=1.0"', '"host_api": "~=2.0"').encode()})
    shell = save(tmp_path / "home", {"old": {"type": "demo", "port": 1}}, [root])
    for command in ("objects old", "plugins install demo"):
        told = refused(shell, command, "release-incompatible")
        assert "1.0.0" in told
        assert "0.9.0" in told
        assert told.count("dragoman-api ~=2.0") == 2


@pytest.mark.parametrize("what", ["nowhere", "empty", "torn"])
def test_a_registry_that_is_missing_or_damaged_is_named_with_its_reason(two_releases, tmp_path, what):
    root = tmp_path / what
    if what == "empty":
        root.mkdir()
    if what == "torn":
        shutil.copytree(two_releases, root)
        for file in root.glob("targets/*.*"):
            _cut(file)
    shell = save(tmp_path / "home", {"old": {"type": "demo", "port": 1}}, [root])
    codes = {"nowhere": "registry-unreachable", "empty": "not-signed", "torn": "integrity-failed"}
    # What cannot be trusted may claim the type, so opening is refused for that; what cannot be reached claims nothing.
    assert str(root) in refused(shell, "objects old", "offline-missing" if what == "nowhere" else codes[what])
    told = refused(shell, "plugins install demo", codes[what])
    assert str(root) in told
    assert "elasticsearch" in shell("dragoman plugins browse").out, "the other registries are not hidden"


# servers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code", "status", "words"),
    [
        ("down", "connection-failed", 3, "nothing listens"),
        ("opensearch", "server-not-supported", 1, "opensearch 2.19.1"),
        ("http-on-tls", "connection-failed", 3, "--ssl-mode"),
        ("tls-on-http", "connection-failed", 3, "--ssl-mode disabled"),
        ("stranger-tls", "certificate-untrusted", 3, "--pin-certificate"),
        ("noise", "connection-failed", 3, "no HTTP"),
        ("not-utf8", "server-not-supported", 1, "no JSON"),
    ],
)
def test_a_server_that_is_no_elasticsearch_is_told_apart(house, name, code, status, words):
    assert words in refused(house, f"objects {name}", code, status)


@pytest.mark.parametrize(
    ("kind", "code", "status", "words"),
    [
        ("html", "connection-failed", 3, "HTTP 502"),
        ("status", "connection-failed", 3, "HTTP 502"),
        ("cut", "connection-failed", 3, "stopped before its end"),
        ("drop", "connection-failed", 3, "no HTTP answer"),
        ("garbage", "query-failed", 1, "not the expected JSON"),
    ],
)
def test_a_server_that_dies_while_it_answers_leaves_an_error_and_no_half_page(house, broken, kind, code, status, words):
    broken.misbehave(kind, on="/numbers/_search")
    assert words in refused(house, "page shop numbers", code, status)


def allow(monkeypatch, *, seconds):
    monkeypatch.setitem(
        hooks_and_deadlines.HOOKS, "fetch_page", hooks_and_deadlines.HOOKS["fetch_page"]._replace(seconds=seconds)
    )


def test_a_server_that_hangs_meets_a_deadline_and_the_session_lives_on(house, broken, monkeypatch):
    allow(monkeypatch, seconds=0.3)

    async def main():
        async with Runtime(house.home, spare=False) as runtime, runtime.open("shop") as shop:
            broken.misbehave("hang", on="/numbers/_search")
            began = time.monotonic()
            with pytest.raises(DeadlineExceededError, match=r"fetch_page took longer than 0\.3 s"):
                await shop.rows("numbers").page()
            assert time.monotonic() - began < 30
            broken.behave()
            allow(monkeypatch, seconds=20.0)
            assert (await shop.rows("numbers").page()).total == 1

    anyio.run(main)


@pytest.mark.parametrize("name", ["shop", "silent", "naughty"])
def test_ctrl_c_on_something_that_hangs_ends_at_once_and_leaves_nothing_running(house, broken, name):
    broken.misbehave("hang", on="/numbers/_search")
    before = len(broken.requests)
    words = ["page", name, "sleeps" if name == "naughty" else "numbers", "--events", "-"]
    process = start(house, *words)
    if name == "shop":
        until(lambda: any("_search" in request.path for request in broken.requests[before:]))
    elif name == "naughty":
        assert "connection.opened" in process.stdout.readline()
        time.sleep(0.1)
    else:
        until(lambda: children(process))
        time.sleep(0.4)
    started = children(process)
    assert started
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=5)
    assert process.returncode == 130
    assert err.strip() == "interrupted"
    assert all(map(gone, started))


def test_ctrl_c_while_a_command_still_starts_is_no_traceback(house):
    process = start(house, "page", "silent", "numbers")
    started = until(lambda: children(process))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err.strip()) == (130, "interrupted")
    assert all(map(gone, started))


INTERRUPTED_IN_A_CALLBACK = """
import signal, sys, time, weakref
from dragoman import __main__ as entry

class Referent: pass

def start_early(words):
    referent = Referent()
    reference = weakref.ref(referent, lambda _: signal.raise_signal(signal.SIGINT))
    del referent
    time.sleep(20)

entry.start_early = start_early
sys.exit(entry.main())
"""


def test_ctrl_c_in_a_callback_that_swallows_it_still_ends_a_command():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IN_A_CALLBACK], capture_output=True, text=True, timeout=15)
    assert (done.returncode, done.stderr.strip()) == (130, "interrupted")


# drivers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trouble", "code", "words"),
    [
        ("exits", "driver-crashed", "exit status 7; its last lines:\n    |   my last words"),
        ("raises", "driver-fault", "ZeroDivisionError: not caught"),
    ],
)
def test_a_driver_that_crashes_says_so_on_the_command_line(house, trouble, code, words):
    assert words in refused(house, f"page naughty {trouble}", code)


async def test_nothing_a_driver_does_ends_the_session_and_each_is_named(house):
    codes = {
        "aborts": "driver-crashed",
        "raises": "driver-fault",
        "text": "driver-fault",
        "foreign": "driver-fault",
        "ragged": "driver-fault",
        "many": "driver-fault",
        "wordy": "driver-fault",
    }
    async with Runtime(house.home, spare=False) as runtime, runtime.open("naughty") as one:
        assert (await one.rows("floods").page()).cells == [["fine"]]
        for object_, code in codes.items():
            with pytest.raises(DragomanError) as caught:
                await one.rows(object_).page()
            assert caught.value.code == code, object_
            assert caught.value.hint
            assert len(caught.value.message) < 1_500
            assert (await one.rows("fine").page()).cells == [["fine"]]


async def test_a_value_that_is_too_large_for_a_page_is_cut_with_a_note(house):
    async with Runtime(house.home, spare=False) as runtime, runtime.open("naughty") as one:
        page = await one.rows("large").page()
    [[cell]] = page.cells
    assert isinstance(cell, CutText)
    assert CELL_BUDGET <= len(cell) < CELL_BUDGET + 10
    assert [note.code for note in page.notes] == ["cells-cut"]


@pytest.mark.parametrize("trouble", ["sleeps", "awaits"])
async def test_a_driver_that_hangs_meets_its_deadline_and_is_replaced(house, monkeypatch, trouble):
    async with Runtime(house.home, spare=False) as runtime, runtime.open("naughty") as one:
        allow(monkeypatch, seconds=0.2)
        with pytest.raises(DeadlineExceededError):
            await one.rows(trouble).page()
        allow(monkeypatch, seconds=20.0)
        if trouble == "sleeps":  # it cannot be told to stop, so it is killed, and who asks meanwhile is told
            with pytest.raises(DriverCrashedError, match="did not stop within 1 s"):
                await one.rows("fine").page()
        assert (await one.rows("fine").page()).cells == [["fine"]]


def test_a_host_that_is_killed_leaves_no_child(house):
    process = start(house, "page", "naughty", "awaits", "--events", "-")
    assert "connection.opened" in process.stdout.readline()
    started = children(process)
    assert started
    process.kill()
    process.communicate()
    assert all(map(gone, started))


async def test_two_runtimes_in_one_process_do_not_know_of_each_other(house, fake):
    home = house.home
    async with Runtime(home, spare=False) as first, Runtime(home, spare=False) as second:
        with first.events() as heard:
            async with first.open("shop") as here, second.open("naughty") as there:
                with pytest.raises(DriverCrashedError):
                    await there.rows("exits").page()
                assert (await here.rows("numbers").page()).total == 1
                assert (await there.rows("fine").page()).cells == [["fine"]]
    assert {getattr(event, "connection", "shop") async for event in heard} == {"shop"}


# what a person gives ------------------------------------------------------------------------------------------------


def test_an_automation_that_cannot_be_read_is_a_matter_of_configuration(house, tmp_path):
    (tmp_path / "guard.py").write_text("import os\n\ndef before_call(:\n")
    told = refused(house, f"--use {tmp_path}/guard.py objects shop", "script-failed", 2)
    assert "guard.py:3: SyntaxError" in told
    (tmp_path / "leaves.py").write_text("raise SystemExit(0)\n")
    assert "leaves.py:1" in refused(house, f"--use {tmp_path}/leaves.py objects shop", "script-failed", 2)


@pytest.mark.parametrize("target", ["/nowhere/events.ndjson", "/"])
def test_events_that_cannot_be_written_name_the_file(house, target):
    told = refused(house, f"--events {target} objects shop", "configuration-invalid", 2)
    assert f"--events {target} cannot be written: " in told


def test_a_full_disk_keeps_no_result_back_and_the_lost_events_are_an_error_in_the_end(house):
    done = house("dragoman --events /dev/full objects shop", code=2)
    assert "numbers" in done.out
    first, *_, last = [line for line in done.err.splitlines() if "--events" in line]
    assert first == "--events /dev/full lacks events: No space left on device"
    assert last.startswith("error[configuration-invalid]: --events /dev/full cannot be written: No space left")


# where output goes ----------------------------------------------------------------------------------------------------


def test_a_reader_that_has_seen_enough_ends_the_command_quietly(house):
    command = subprocess.list2cmdline(house.words("page", "shop", "long", "--format", "ndjson", "--limit", "500"))
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -c 100"],
        env=house.variables(), capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert len(done.stdout) == 100
    assert done.stderr.replace("rows 1\u2013500 of 500", "").strip() == ""


def test_output_that_cannot_be_written_is_one_error_and_one_exit_code(house):
    with Path("/dev/full").open("w") as full:
        started = [
            (words, start(house, *words, stdout=full))
            for words in (["objects", "shop"], ["page", "shop", "long", "--json"], ["export", "shop", "texts"])
        ]
        for words, process in started:
            _, err = process.communicate(timeout=20)
            assert process.returncode == 1, words
            assert os.strerror(errno.ENOSPC) in err
            assert "Exception ignored" not in err


def test_closed_streams_are_no_crash(house):
    """Rows that cannot be printed are a failure; narration is none."""
    for closed, code, message in (("<&- 2>&-", 0, ""), (">&-", 1, "error[system]: stdout: Bad file descriptor\n")):
        command = subprocess.list2cmdline(house.words("objects", "shop"))
        done = subprocess.run(
            ["sh", "-c", f"{command} {closed}"],
            env=house.variables(), capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (code, message), closed
        assert ("numbers" in done.stdout) is (closed != ">&-")


@pytest.fixture
def small_disk(tmp_path):
    """Mount a file system of 64 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder]).returncode:
        pytest.skip("NOT SHOWN HERE: mounting a small file system takes root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_disk_that_fills_during_an_export_leaves_no_file(house, small_disk):
    (small_disk / "kept.ndjson").write_text("an older export\n")
    for name in ("long.ndjson", "kept.ndjson"):
        told = refused(house, f"export shop long -o {small_disk}/{name}", "export-failed")
        assert f"{name} cannot be written: {os.strerror(errno.ENOSPC)}" in told
    assert [path.name for path in small_disk.iterdir()] == ["kept.ndjson"]
    assert (small_disk / "kept.ndjson").read_text() == "an older export\n"


@pytest.mark.parametrize("target", [".", "..", "/nowhere/x.ndjson"])
def test_an_export_to_no_file_is_refused_before_anything_is_written(house, target):
    refused(house, f"export shop texts -o {target}", "export-failed")
    assert not list(house.cwd.rglob("*.part"))


# an ordinary user -----------------------------------------------------------------------------------------------------


def as_nobody(*commands, home):
    """Run commands as a user who owns nothing; gives exit code, stdout and stderr of each."""
    if os.geteuid() != 0 or not shutil.which("setpriv") or not shutil.which("unshare"):
        pytest.skip("NOT SHOWN HERE: becoming an ordinary user takes root, setpriv and unshare")
    script = (
        "import json, subprocess, sys\n"
        "start = [sys.executable, '-m', 'dragoman']\n"
        "run = lambda words: subprocess.run([*start, *words], capture_output=True, text=True)\n"
        "done = map(run, json.loads(sys.argv[1]))\n"
        "print(json.dumps([[one.returncode, one.stdout, one.stderr] for one in done]))\n"
    )
    with tempfile.TemporaryDirectory(prefix="dragoman-") as mounts:
        Path(mounts).chmod(0o755)
        become = f"exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups {sys.executable} -c"
        lines = [*opening_the_way(Path(mounts)), f'{become} "$1" "$2"']
        done = subprocess.run(
            ["unshare", "-m", "sh", "-ec", "\n".join(lines), "sh", script, json.dumps(commands)],
            env={"PATH": os.environ["PATH"], "DRAGOMAN_HOME": str(home), "LANG": "C.UTF-8"},
            cwd="/", capture_output=True, text=True, timeout=50, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_home_that_may_not_be_written_still_opens_and_says_what_it_cannot_keep(house):
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        Path(folder).chmod(0o755)
        home = Path(folder) / "home"
        shutil.copytree(house.home, home)
        subprocess.run(["chmod", "-R", "a+rX", home], check=True)
        before = sorted(str(path) for path in home.rglob("*"))
        opened, added, installed = as_nobody(
            ["page", "naughty", "fine"],
            ["connections", "add", "more", "--type", "naughty", "--yes"],
            ["plugins", "remove", "naughty", "--yes"],
            home=home,
        )
        assert opened[:2] == [0, "id\nfine\n"], opened
        assert (added[0], added[1]) == (2, "")
        assert f"error[configuration-invalid]: {home}/config/connections.toml cannot be written: " in added[2]
        assert f"hint: make {home}/config writable, or set DRAGOMAN_HOME" in added[2]
        assert installed[0] == 1
        assert "error[install-failed]" in installed[2]
        assert "Permission denied" in installed[2]
        assert sorted(str(path) for path in home.rglob("*")) == before


# values -----------------------------------------------------------------------------------------------------------


def test_E19_numbers_leave_as_they_are_stored(house):
    out = house("dragoman page shop numbers --json --columns long,unsigned,keyword,double,raw").out
    assert f'"rows":[{EXACT}]' in out
    out = house("dragoman export shop numbers").out
    assert out == EXACT + "\n"


def test_what_a_server_or_a_driver_says_never_drives_a_terminal(house):
    commands = ("page shop texts", "page shop texts --json", "export shop texts", "objects naughty", "objects noise")
    for words, terminal in [(words.split(), Terminal(house, *words.split(), TERM="dumb")) for words in commands]:
        status, text = terminal.end()
        assert status == (3 if "noise" in words else 0), text
        for control in ("\x1b", "\x07", "\x9b", "\u202e"):
            assert control not in text, (words, text)
        if "noise" not in words:
            assert "evil" in text
