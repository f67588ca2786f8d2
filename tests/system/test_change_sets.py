"""A change set through the real driver in its sandbox: applied, killed in the middle, and taken back exactly."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from fakes.elasticsearch import FakeElasticsearch
from stranger import stranger

pytestmark = pytest.mark.slow

ROWS = 2_060  # two parts


@pytest.fixture(scope="module")
def cluster():
    """Serve a fake from a thread of this process, so that a test can make it misbehave."""
    with start_blocking_portal() as portal:
        server = FakeElasticsearch(version="8.19.21")
        with portal.wrap_async_context_manager(server):
            yield server


@pytest.fixture(scope="module")
def machine(cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("editor")
    shell = stranger(folder / "home", cwd=folder, port=cluster.port)
    shell("dragoman connections add shop --type elasticsearch --port $PORT --auth none --yes")
    return shell


@pytest.fixture
def shell(machine, cluster, tmp_path):
    """Yield a shell in a folder of its own, and an index `big` with rows that no partial update could write back."""
    send(cluster, "PUT", "/big", {"mappings": {"properties": {"price": {"type": "double"}, "n": {"type": "long"}}}})
    lines = "".join(f'{{"index":{{"_id":"{at}"}}}}\n{{"price": {at}.10,"n":{at}}}\n' for at in range(ROWS))
    send(cluster, "POST", "/big/_bulk?refresh=true", lines)
    yield machine.beside(cwd=tmp_path)
    cluster.behave()
    send(cluster, "DELETE", "/big")


def send(server, method, path, body=None):
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode() if body is not None else None
    kind = {"Content-Type": "application/x-ndjson" if "_bulk" in path else "application/json"}
    with urllib.request.urlopen(urllib.request.Request(server.url + path, data, kind, method=method)) as answer:
        return answer.read().decode()


def stored(server):
    """Return every document's bytes by id."""
    send(server, "POST", "/big/_refresh")
    answer = send(server, "POST", "/big/_search", {"size": 10_000, "track_total_hits": True})
    found = dict(re.findall(r'"_id":"([^"]+)".*?"_source":(\{.*?\})', answer))
    assert len(found) == json.loads(answer)["hits"]["total"]["value"]
    return found


def write(shell):
    """Write a set that changes most rows, ends some and makes some."""
    lines = [{"op": "update", "id": str(at), "set": {"price": -1}} for at in range(ROWS - 60)]
    lines += [{"op": "delete", "id": str(at)} for at in range(ROWS - 60, ROWS)]
    lines += [{"op": "insert", "id": f"new/{at}", "set": {"n": at}} for at in range(60)]
    text = "".join(json.dumps({"object": "big", **line}) + "\n" for line in lines)
    (shell.cwd / "c.ndjson").write_text(text)
    return len(lines)


def test_a_set_of_thousands_is_applied_and_taken_back_to_the_byte(shell, cluster):
    before, count = stored(cluster), write(shell)
    done = shell("dragoman apply shop c.ndjson --undo u.ndjson --json")
    assert done.json["counts"]["applied"] == count
    assert stored(cluster) != before
    assert shell("dragoman apply shop u.ndjson --json").json["counts"]["applied"] == count
    assert stored(cluster) == before


def begun(shell, server):
    """Start a set against a server that stops answering after its first bulk request, and wait until it does."""
    server.requests.clear()
    server.misbehave("hang", on="/big/_bulk", after=1)
    process = subprocess.Popen(
        shell.words("apply", "shop", "c.ndjson", "--undo", "u.ndjson"), env=shell.variables(), cwd=shell.cwd,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    for _ in range(900):
        if len([each for each in server.requests if each.path == "/big/_bulk"]) > 1:
            return process
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("it never came to a second request")


def test_a_set_that_is_killed_leaves_an_undo_file_that_takes_back_what_was_applied(shell, cluster):
    before, _ = stored(cluster), write(shell)
    process = begun(shell, cluster)
    process.kill()
    process.communicate(timeout=30)
    cluster.behave()
    assert stored(cluster) != before
    done = shell("dragoman apply shop u.ndjson --json", code=4)
    assert done.json["counts"]["applied"] == 2_000
    assert {each["status"] for each in done.json["left"]} <= {"conflict", "refused"}
    assert stored(cluster) == before


def test_a_driver_that_is_killed_leaves_unknown_outcomes_and_nothing_lost(shell, cluster):
    before, count = stored(cluster), write(shell)
    process = begun(shell, cluster)
    [worker] = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/stat")
        if path.read_text().rpartition(")")[2].split()[1] == str(process.pid)
    ]
    os.kill(worker, signal.SIGKILL)
    out, err = process.communicate(timeout=30)
    cluster.behave()
    assert process.returncode == 4
    found = re.search(r"applied 2,000 · skipped 0 · conflict 0 · failed ([\d,]+) · unknown ([\d,]+)\n", err)
    failed, unknown = (int(number.replace(",", "")) for number in found.groups())
    assert (failed + unknown, unknown > 0) == (count - 2_000, True)
    assert out.count(" unknown ") == unknown
    assert out.count("  not sent: ") == failed
    shell("dragoman apply shop u.ndjson --json", code=4)
    assert stored(cluster) == before
