"""An export of a real driver is killed, interrupted, starved of its snapshot: nothing is doubled, nothing is lost."""

from __future__ import annotations

import csv
import io
import json
import shlex
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from pyarrow import parquet

pytestmark = pytest.mark.slow

ROWS = 12_003


@pytest.fixture
def shell(machine, tmp_path):
    return machine.beside(cwd=tmp_path)


def begun(shell, server, words):
    """Start an export against a server that is slow from its third page on, and wait until some of it is safe."""
    server.misbehave("slow", on="/_search", after=2, seconds=2)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(shell.words(*shlex.split(words)), env=shell.variables(), cwd=shell.cwd, **pipes)
    for _ in range(800):
        if list(shell.cwd.glob(".*.checkpoint")):
            return process
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("nothing was ever safe")


def killed(shell, server, words):
    process = begun(shell, server, words)
    process.kill()
    process.communicate()
    server.behave()
    return json.loads((shell.cwd / ".orders.ndjson.checkpoint").read_bytes())


def ids(path):
    return Counter(json.loads(line)["_id"] for line in path.read_bytes().splitlines())


def test_E32_killed_in_the_middle_and_resumed_an_export_has_every_document_once(shell, server):
    """Promise 8, through the sandbox and against the server's own snapshot."""
    target, export = shell.cwd / "orders.ndjson", "export shop orders --format rows -o orders.ndjson"
    assert 0 < killed(shell, server, export)["rows"] < ROWS
    assert not target.exists()
    told = shell(f"dragoman {export} --resume --json").json
    assert (told["rows"], told["resumed"]) == (ROWS, 1)
    found = ids(target)
    assert len(found) == sum(found.values()) == ROWS


def test_an_interrupted_export_goes_on_by_the_command_it_names(shell, server):
    process = begun(shell, server, "export shop orders --format rows -o 'my orders.ndjson'")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
    server.behave()
    [line] = [line for line in said.splitlines() if "to continue: " in line]
    shell(line.partition("to continue: ")[2])
    found = ids(shell.cwd / "my orders.ndjson")
    assert len(found) == sum(found.values()) == ROWS


NIGHTLY = """
from pathlib import Path
from dragoman import DragomanError

async def main(runtime):
    target = Path("orders.ndjson")
    async with runtime.open("shop") as shop:
        try:
            result = await shop.rows("orders").export(target, format="rows", resume=True)
        except DragomanError as error:
            if error.code != "resume-refused":
                raise
            result = await shop.rows("orders").export(target, format="rows")
    print(result.rows, result.resumed)
"""


def test_a_script_that_was_killed_in_mid_export_leaves_no_file_and_goes_on_at_its_next_run(shell, server):
    (shell.cwd / "nightly.py").write_text(NIGHTLY)
    assert 0 < killed(shell, server, "run nightly.py")["rows"] < ROWS
    assert not (shell.cwd / "orders.ndjson").exists()
    assert shell("dragoman run nightly.py").out == f"{ROWS} 1\n"
    found = ids(shell.cwd / "orders.ndjson")
    assert len(found) == sum(found.values()) == ROWS
    assert not [path for path in shell.cwd.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_script_that_is_ended_in_mid_export_leaves_no_process_and_what_is_safe(shell, server, number, code):
    (shell.cwd / "nightly.py").write_text(NIGHTLY)
    process = begun(shell, server, "run nightly.py")
    workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert workers
    process.send_signal(number)
    _, said = process.communicate(timeout=40)
    assert process.returncode == code, said
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    assert not (shell.cwd / "orders.ndjson").exists()
    server.behave()
    assert shell("dragoman run nightly.py").out == f"{ROWS} 1\n"


def test_a_snapshot_that_the_server_has_dropped_is_a_refusal_that_deletes_nothing(shell, server):
    export = "export shop orders --format rows -o orders.ndjson"
    kept = killed(shell, server, export)
    assert server.cluster.contexts
    server.cluster.contexts.clear()
    done = shell(f"dragoman {export} --resume", code=1)
    assert "error[export-not-resumable]: the server no longer holds " in done.err
    assert "--resume" not in done.err
    assert (shell.cwd / ".orders.ndjson.part").stat().st_size == kept["offset"] > 0
    assert not (shell.cwd / "orders.ndjson").exists()


def test_a_server_that_answers_nonsense_leaves_nothing_under_the_final_name(shell, server):
    server.misbehave("garbage", on="/_search", after=1)
    assert "error[" in shell("dragoman export shop orders -o orders.csv", code=1).err
    assert not (shell.cwd / "orders.csv").exists()


def test_every_format_of_one_index_has_the_same_rows(shell, server):
    for words in ("-o o.csv.zst --format csv --compress gzip", "-o o.parquet", "-o o.bulk --format bulk"):
        shell(f"dragoman export shop orders {words} --filter 'total >= 50'")
    import gzip

    table = parquet.read_table(shell.cwd / "o.parquet")
    text = gzip.decompress((shell.cwd / "o.csv.zst").read_bytes()).decode()  # what is said wins over the name
    found = [row["_id"] for row in csv.DictReader(io.StringIO(text))]
    actions = [json.loads(line) for line in (shell.cwd / "o.bulk").read_bytes().splitlines()[::2]]
    assert 0 < len(found) < ROWS
    assert sorted(found) == sorted(table.column("_id").to_pylist())
    assert sorted(found) == sorted(next(iter(action.values()))["_id"] for action in actions)
