"""Whatever a server answers to a driver in its sandbox: one clear error, in time, within bounds, and the session lives.

Each attack is made by a real server on loopback, against both drivers of this repository as they are installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from cli import hostile_server
from cli.hostile_server import SECRET

from command_line import Machine
from dragoman.cli.options import Options
from dragoman_worker.hooks_and_deadlines import HOOKS
from dragoman_worker.lockdown import kernel
from slow_cases import mostly_slow
from thorough import one_in

pytestmark = pytest.mark.slow

FAILED, QUERY, LATE = "connection-failed", "query-failed", "deadline-exceeded"
ATTACKS = {
    "silence": LATE,
    "hang up": FAILED,
    "endless body": QUERY,
    "endless body without a length": QUERY,
    "endless body of one text": QUERY,
    "trickled body": LATE,
    "trickled head": LATE,
    "trickled header lines": LATE,
    "endless header line": FAILED,
    "endless header lines": FAILED,
    "endless status line": FAILED,
    "endless 100 Continue": LATE,
    "trickled 100 Continue": LATE,
    "endless 103 Early Hints": LATE,
    "101 Switching Protocols": QUERY,
    "gzip bomb": QUERY,
    "gzip bomb in one piece": QUERY,
    "gzip twice": QUERY,
    "no gzip": FAILED,
    "an encoding that no client asked for": FAILED,
    "depth": QUERY,
    "depth of objects": QUERY,
    "5,000 digits": QUERY,
    "NaN": QUERY,
    "no JSON": QUERY,
    "no UTF-8": QUERY,
    "nothing": QUERY,
    "length beyond the body": FAILED,
    "length beyond all bounds": FAILED,
    "length of terabytes": QUERY,
    "negative length": FAILED,
    "two lengths": FAILED,
    "length and chunks": FAILED,
    "chunks that are none": FAILED,
    "a chunk of 2^64 bytes": FAILED,
    "a chunk cut off": FAILED,
    "endless chunk size": LATE,
    "endless chunk extension": LATE,
    "endless trailers": FAILED,
    "HTTP/0.9": FAILED,
    "bytes that are no HTTP": FAILED,
    "status 999": QUERY,
    "status with escapes": QUERY,
    "a header with NUL": FAILED,
    "one cookie of a megabyte": FAILED,
    "10,000 cookies": FAILED,
    "two answers": QUERY,
    "an answer after the end": FAILED,
    "redirect to another port": QUERY,
    "redirect to another name": QUERY,
    "redirect without a scheme": QUERY,
    "redirect to metadata": QUERY,
    "redirect to a file": QUERY,
    "redirect with the secret": QUERY,
    "400 with the secret": QUERY,
    "401 with the secret": "authentication-failed",
    "403 with the secret": QUERY,
    "404 with the secret": QUERY,
    "500 with the secret": QUERY,
    "422 with half of the secret at the end": QUERY,
}
"""Attack → the code of the error in place of a page."""

SAID = {
    "403 with the secret": {"weaviate": "access-denied"},
    "404 with the secret": {"weaviate": "object-not-found"},
    "two answers": {"elasticsearch": "object-not-found"},  # an empty mapping is that of no index
}
"""Where the two servers mean different things by the same answer."""

CLEAR = {FAILED, QUERY, LATE, "authentication-failed", "access-denied", "object-not-found", "row-not-found"}
AGAIN = "server-not-supported"
"""The error if the driver connects again during an attack: on a busy machine it is killed for being late."""
OBEYED = set("\x1b\x07\x9b\u202e")
HOST, CHILD = 128, 1024
"""MiB that an attack may cost this process, and that a driver's may ever hold.

The longest description that is allowed, 4,096 columns, takes this process 55 to 80 MiB, most of it to print as JSON.
"""


@dataclass
class Place:
    """A hostile server, and a home with a connection to it that is open."""

    kind: str
    server: subprocess.Popen
    house: Machine
    others: set[int]

    @property
    def child(self):
        """The driver's process, which is another one after a crash."""
        [child] = _children() - self.others
        return child

    @property
    def rows(self):
        return "books" if self.kind == "elasticsearch" else "Books"

    def arm(self, attack, on=""):
        """Change what requests with a text in them are answered by, and tell what was seen until now."""
        return json.loads(_ask(self.server, {"attack": attack, "on": on}))

    @contextmanager
    def attacked(self, attack, on=""):
        """Make an attack, and see that it was made, reached no other server and cost the host no memory."""
        before = _peak(os.getpid(), reset=True)
        self.arm(attack, on)
        try:
            yield
        finally:
            seen = self.arm("")
        assert seen["attacked"] > 0
        assert seen["canary"] == 0
        assert _peak(os.getpid()) - before < HOST
        assert _peak(self.child) < CHILD

    def lives(self):
        done = self.house("count", "evil", self.rows, code=None)
        if "error[driver-crashed]" in done.err:  # it was late to stop, and the next call is told
            done = self.house("count", "evil", self.rows)
        return done.out.strip() == "3"

    def __call__(self, *words):
        """Run a command, however it ends; nothing of it is obeyed by a terminal, and no secret shows."""
        done = self.house(*words, code=None)
        assert not OBEYED & set(done.out + done.err)
        assert SECRET not in done.out + done.err
        assert "unexpected" not in done.err
        return done


def _ask(server, line):
    server.stdin.write(json.dumps(line) + "\n")
    server.stdin.flush()
    return server.stdout.readline()


def _peak(pid, *, reset=False):
    """Tell how much memory a process held at most, in MiB."""
    if reset:
        kernel.prctl(4, 1)  # PR_SET_DUMPABLE: another test may have hidden this process from its own user
        Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


@pytest.fixture(scope="module", params=["elasticsearch", "weaviate"])
def evil(request, tmp_path_factory):
    """Open one connection to a server of each kind, for all attacks."""
    kind, folder = request.param, tmp_path_factory.mktemp("evil")
    command = [sys.executable, hostile_server.__file__, kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        port = json.loads(server.stdout.readline())["port"]
        (folder / "secret").write_text(SECRET, encoding="ascii")
        secret = f"file:{folder / 'secret'}"
        how = {
            "elasticsearch": ["username-password", "--username", "u", "--password", secret],
            "weaviate": ["api-key", "--api-key", secret],
        }[kind]
        house = Machine(folder / "home")
        where = ["--type", kind, "--host", "127.0.0.1", "--port", port, "--auth-method", *how]
        house("-y", "connections", "add", "evil", *where)
        with (house.home / "config/config.toml").open("a", encoding="ascii") as settings:
            settings.write("[guards]\naudit = true\n")
        with start_blocking_portal() as portal:
            options = Options(home=str(house.home), events=str(house.home / "events"))
            runtime = options.runtime()
            opened, before = runtime.open("evil"), _children()
            with (
                options.cleanup,
                portal.wrap_async_context_manager(runtime),
                portal.wrap_async_context_manager(opened) as session,
            ):
                yield Place(kind, server, house.beside(shared=session, portal=portal, runtime=runtime), before)
        server.stdin.close()


def _children():
    tasks = Path("/proc/self/task").iterdir()
    return {int(each) for task in tasks for each in (task / "children").read_text(encoding="ascii").split()}


@pytest.fixture
def hurried(monkeypatch):
    """Limit every call of a driver to two seconds: an attack that would last until the deadline need not last long."""
    for hook, kind in HOOKS.items():
        if hook not in ("connect", "close"):  # a new process has the time it needs on a busy machine
            monkeypatch.setitem(HOOKS, hook, kind._replace(seconds=2.0))


def failed(done):
    error = json.loads(done.err.splitlines()[-1])["error"]
    assert error["message"]
    assert done.code == (3 if error["code"] in (FAILED, "authentication-failed") else 1)
    return error


LONG = {attack for attack, code in ATTACKS.items() if code == LATE} - {"silence", "endless 100 Continue"}
LONG |= {"gzip bomb", "gzip bomb in one piece", "endless body of one text"}


ON_BOTH = {"hang up", "depth", "NaN", "nothing", "no JSON", "no gzip", "redirect to another port"}
ON_BOTH |= {f"{status} with the secret" for status in (401, 403, 404, 500)}
"""Attacks that leave something to the driver; HTTP itself is read by the one client that both drivers share."""


def decides(evil, attack):
    return attack in ON_BOTH or (evil == "elasticsearch" and attack not in {*LONG, "endless 100 Continue"})


@pytest.mark.slow_unless(decides=decides)
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_page_comes_of_it_but_an_error(evil, attack, request):
    if ATTACKS[attack] == LATE:
        request.getfixturevalue("hurried")
    with evil.attacked(attack):
        error = failed(evil("--json", "page", "evil", evil.rows))
    expected = SAID.get(attack, {}).get(evil.kind, ATTACKS[attack])
    allowed = {LATE, FAILED} if expected == LATE else {expected}  # a fast server ends before the deadline
    assert error["code"] in allowed, error
    assert evil.lives()


OPERATIONS = {
    "objects": ["objects", "evil"],
    "describe": ["describe", "evil", "ROWS"],
    "count": ["count", "evil", "ROWS"],
    "filter": ["page", "evil", "ROWS", "--filter", "n > 0"],
    "cell": ["cell", "evil", "ROWS", "KEY", "n"],
    "delete": ["delete", "evil", "ROWS", "KEY", "--yes"],
    "export": ["export", "evil", "ROWS", "-o", "FILE"],
    "console": ["console", "evil", "GET /v1/meta"],
    "test": ["connections", "test", "evil"],
}
KEY = {"elasticsearch": "1", "weaviate": "00000000-0000-0000-0000-000000000001"}


PAIRS = one_in(4, product([attack for attack in ATTACKS if attack not in LONG], OPERATIONS))
"""With nine operations, each fourth pair tries each attack at two of them or three, and each operation by many."""


@pytest.mark.slow
@pytest.mark.parametrize(("attack", "operation"), PAIRS)
def test_no_operation_comes_to_harm(evil, attack, operation, tmp_path, hurried):
    """Each ends with an error that says what it is; a console shows what was answered, and ping wants a status only."""
    file = tmp_path / "out"
    words = {"ROWS": evil.rows, "KEY": KEY[evil.kind], "FILE": str(file)}
    with evil.attacked(attack):
        done = evil("--json", *(words.get(word, word) for word in OPERATIONS[operation]))
    if done.err:
        assert failed(done)["code"] in {*CLEAR, AGAIN}
    else:  # the outcome of a delete is that it was refused; the rows are counted below
        assert (operation, done.code) in {("console", 0), ("console", 1), ("test", 0), ("delete", 4)}
        json.loads(done.out, parse_int=str)
    assert not file.exists()
    assert evil.lives()


STATUSES = [400, 401, 403, 500]


@pytest.mark.parametrize("status", mostly_slow(STATUSES, fast=[401, 500]))
@pytest.mark.parametrize("operation", ["console", "objects", "delete", "test"])
def test_an_error_that_echoes_the_secret_shows_it_nowhere(evil, status, operation):
    """Neither on stdout and stderr, nor among the events, nor in the audit."""
    words = {"ROWS": evil.rows, "KEY": KEY[evil.kind]}
    for way in (["--json"], []):
        with evil.attacked(f"{status} with the secret"):
            evil(*way, *(words.get(word, word) for word in OPERATIONS[operation]))
    for file in ("events", "state/audit.ndjson"):
        told = (evil.house.home / file).read_text(encoding="utf-8")
        assert '"evil"' in told
        assert SECRET not in told


@pytest.mark.parametrize("status", STATUSES)
def test_an_error_that_echoes_the_secret_is_masked_in_a_console(evil, status):
    with evil.attacked(f"{status} with the secret"):
        [answer] = evil("--json", *OPERATIONS["console"]).json["answers"]
    assert answer["status"] == status
    assert "password ***" in json.dumps(answer["body"])
    assert all("***" in failure["reason"] for failure in answer["failures"])


@pytest.mark.parametrize("attack", [attack for attack in ATTACKS if attack.startswith("redirect")])
def test_a_redirect_is_told_with_where_it_leads_and_not_followed(evil, attack):
    with evil.attacked(attack):
        error = failed(evil("--json", "objects", "evil"))
    assert "redirects" in error["message"]
    assert "not followed" in error["hint"]


@pytest.mark.parametrize("attack", ["two answers", "NaN", "nothing", "no UTF-8"])
def test_an_export_whose_server_answers_no_rows_at_all_is_none(evil, tmp_path, attack):
    file = tmp_path / "out"
    on = "/_search" if evil.kind == "elasticsearch" else "/v1/objects"
    with evil.attacked(attack, on):
        error = failed(evil("--json", "export", "evil", evil.rows, "-o", file))
    assert error["code"] == QUERY
    assert not file.exists()
    assert evil.lives()


STRUCTURE = {"elasticsearch": "/_mapping", "weaviate": "GET /v1/schema/Books"}
LISTED = {"elasticsearch": "/_resolve/index", "weaviate": "GET /v1/schema"}


@pytest.mark.slow
def test_columns_beyond_all_bounds_are_cut_and_this_is_said(evil):
    with evil.attacked("100,000 columns", STRUCTURE[evil.kind]):
        described, page = (evil("--json", each, "evil", evil.rows).json for each in ("describe", "page"))
    assert len(described["columns"]) == len(page["columns"]) == 4_096
    assert [note["code"] for note in described["notes"]] == ["columns-cut"]
    evil("describe", "evil", evil.rows)  # as it is again
    assert evil.lives()


@pytest.mark.parametrize("way", [["--json"], []])
def test_names_that_a_terminal_obeys_are_shown_harmlessly_or_refused(evil, way):
    with evil.attacked("escapes in columns", STRUCTURE[evil.kind]):
        evil(*way, "describe", "evil", evil.rows)
        evil(*way, "page", "evil", evil.rows)
    with evil.attacked("escapes in names", LISTED[evil.kind]):
        assert "books" in evil(*way, "objects", "evil").out
    evil("describe", "evil", evil.rows)
    assert evil.lives()


@pytest.mark.slow
def test_of_more_objects_than_anybody_can_browse_the_first_are_listed(evil):
    with evil.attacked("1,000,000 objects", LISTED[evil.kind]):
        listed = evil("--json", "objects", "evil", "--limit", "100").json
    assert len(listed["objects"]) == 100
    assert listed["total"] >= 1_000_000
    assert evil.lives()
