"""A change set through the real driver in its sandbox: applied, killed in the middle, and taken back exactly."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from clusters import begun, cluster_of, send
from stranger import connected

pytestmark = pytest.mark.slow

ROWS = 2_060  # two parts


@pytest.fixture(scope="module")
def cluster():
    with cluster_of("8.19.21") as server:
        yield server


@pytest.fixture(scope="module")
def machine(cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("editor")
    return connected(folder / "home", cwd=folder, port=cluster.port)


@pytest.fixture
def shell(machine, cluster, tmp_path):
    """Yield a shell in a folder of its own, and an index `big` with rows that no partial update could write back."""
    send(cluster, "PUT", "/big", {"mappings": {"properties": {"price": {"type": "double"}, "n": {"type": "long"}}}})
    lines = "".join(f'{{"index":{{"_id":"{at}"}}}}\n{{"price": {at}.10,"n":{at}}}\n' for at in range(ROWS))
    send(cluster, "POST", "/big/_bulk?refresh=true", lines)
    yield machine.beside(cwd=tmp_path)
    cluster.behave()
    send(cluster, "DELETE", "/big")


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


def hung(shell, server):
    """Start a set against a server that stops answering after its first bulk request."""
    return begun(shell, server, "apply", "shop", "c.ndjson", "--undo", "u.ndjson", path="/big/_bulk", after=1)


def test_a_set_that_is_killed_leaves_an_undo_file_that_takes_back_what_was_applied(shell, cluster):
    before, _ = stored(cluster), write(shell)
    process = hung(shell, cluster)
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
    process = hung(shell, cluster)
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
