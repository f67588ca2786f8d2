"""The command `export`: what it writes, what it says, and how an interrupted one goes on (E32)."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

pytestmark = pytest.mark.slow


def ids(data):
    return [json.loads(line)["id"] for line in data.splitlines()]


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def test_an_export_to_stdout_is_the_documents_and_nothing_else(shop):
    done = shop("export", "shop", "books")
    assert ids(done.out) == ["1", "2", "3"]
    assert re.fullmatch(r"  books  3/3  [\d,]+ rows/s  done\n", done.err)


def test_an_export_to_a_file_takes_its_format_from_the_name(shop, tmp_path):
    done = shop("export", "shop", "books", "-o", tmp_path / "b.csv.gz", "--filter", "title = Oolong", "--json")
    assert done.json["rows"] == 1
    assert gzip.decompress((tmp_path / "b.csv.gz").read_bytes()).splitlines()[0] == b"id,title,price,tags"
    assert json.loads((tmp_path / "b.csv.gz.manifest.json").read_text()) == done.json


def test_columns_are_chosen_and_near_names_suggested(shop, tmp_path):
    shop("export", "shop", "books", "-o", tmp_path / "b.csv", "--columns", "price, id", "--no-manifest")
    assert (tmp_path / "b.csv").read_text().splitlines() == ["price,id", "12.5,1", f"{2**70},2", "3,3"]
    done = shop("export", "shop", "books", "--format", "csv", "--columns", "prise", code=2)
    assert "'prise' (did you mean price?)\n" in done.err
    assert names(tmp_path) == ["b.csv"]


def test_parquet_needs_a_file_and_has_types(shop, tmp_path):
    done = shop("export", "shop", "books", "--format", "parquet", code=2)
    assert "error[configuration-invalid]: a Parquet file " in done.err
    assert "cannot be streamed" in done.err
    done = shop("export", "shop", "books", "-o", tmp_path / "b.parquet")
    assert "note" not in done.err
    assert parquet.read_table(tmp_path / "b.parquet").column("price").to_pylist() == [12.5, 2.0**70, 3.0]
    assert names(tmp_path) == ["b.parquet", "b.parquet.manifest.json"]


def test_an_arrow_stream_goes_to_stdout(shop):
    words = "export", "shop", "books", "--format", "arrow", "--columns", "price,id"
    done = subprocess.run([sys.executable, "-m", "dragoman", *words], env=shop.variables(), stdout=-1, check=True)
    table = pa.ipc.open_stream(done.stdout).read_all()
    assert table.schema.names == ["price", "id", "_misfits"]
    assert table.column("price").to_pylist() == [12.5, 2.0**70, 3.0]
    done = shop("export", "shop", "books", "--strict", code=2)
    assert "only Arrow and Parquet files are strict" in done.err


def test_a_failed_export_that_cannot_be_resumed_leaves_no_file(shop, tmp_path):
    done = shop("export", "shop", "orders", "-o", tmp_path / "o.ndjson", code=1)
    assert "error[query-failed]: a shard failed" in done.err
    assert names(tmp_path) == []


def test_a_failed_export_says_how_to_go_on_and_the_command_works(shop, tmp_path):
    target = tmp_path / "the ledger.ndjson"
    done = shop("export", "shop", "ledger", "-o", target, "--no-manifest", code=1)
    assert "error[query-failed]: a shard failed" in done.err
    [hint] = re.findall(r"  try: (.*)\n", done.err)
    assert names(tmp_path) == [".the ledger.ndjson.checkpoint", ".the ledger.ndjson.part"]
    words = shlex.split(hint)
    assert words == ["dragoman", "export", "shop", "ledger", "-o", str(target), "--no-manifest", "--resume"]
    done = shop(*words[1:])
    assert ids(target.read_bytes()) == [str(at) for at in range(100)]
    assert re.fullmatch(r"  ledger  100/100  [\d,]+ rows/s  done\n", done.err)
    assert names(tmp_path) == ["the ledger.ndjson"]


def test_an_unfinished_export_is_replaced_only_after_saying_so(shop, tmp_path):
    target = tmp_path / "l.ndjson"
    shop("export", "shop", "ledger", "-o", target, code=1)
    done = shop("export", "shop", "books", "-o", target)
    assert "  this replaces an unfinished export of 60 rows\n" in done.err
    assert len(target.read_bytes().splitlines()) == 3


def test_a_refused_resume_does_not_suggest_itself(shop, tmp_path):
    target = tmp_path / "l.ndjson"
    shop("export", "shop", "ledger", "-o", target, code=1)
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
    done = shop("export", "shop", "books", "-o", target, "--format", "rows", "--resume", code=1)
    assert f"error[resume-refused]: the unfinished export of {target} has another object, another format" in done.err
    assert "\n  hint: export without --resume " in done.err
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before
    done = shop("export", "shop", "books", "--resume", code=1)
    assert "error[resume-refused]: only a file " in done.err


@pytest.mark.parametrize("text", ["", "0m", "5 minutes", "-3s"])
def test_a_time_that_cannot_be_read_is_a_usage_error(shop, text):
    assert (
        f"error[usage]: --keep-alive {text!r} " in shop("export", "shop", "books", f"--keep-alive={text}", code=2).err
    )


def test_a_tenant_is_refused_where_the_driver_knows_none(shop):
    for command in ("page", "count", "export", "insert"):
        done = shop(command, "shop", "books", "--tenant", "acme", code=1)
        assert "error[operation-not-supported]: the driver demo has no tenants" in done.err
        assert "'acme'" in done.err


# processes ------------------------------------------------------------------------------------------------------------


def begin(house, target, *more, **options):
    """Start an export of the slow object as a process, and wait until some of it is safe on disk."""
    words = house.words("export", "shop", "tape", "-o", target, *more)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(words, env=house.variables(), **pipes, **options)
    for _ in range(400):
        if target.with_name(f".{target.name}.checkpoint").exists():
            return process
        time.sleep(0.05)
    process.kill()
    raise AssertionError(process.communicate())


@contextmanager
def held(process):
    """Stop the driver of an export for a while, so that the export cannot end however busy the machine is."""
    children = (Path("/proc") / str(process.pid) / "task").glob("*/children")
    drivers = [int(each) for file in children for each in file.read_text().split()]
    assert drivers
    for driver in drivers:
        os.kill(driver, signal.SIGSTOP)
    try:
        yield
    finally:
        for driver in drivers:
            os.kill(driver, signal.SIGCONT)


@pytest.mark.parametrize("name", ["t.ndjson", "t.ndjson.gz"])
def test_E32_after_a_kill_the_rest_is_added_to_what_was_safe(own, tmp_path, name):
    """Promise 8: exactly the documents, none doubled, none lost."""
    target = tmp_path / name
    process = begin(own, target)
    process.kill()
    process.communicate()
    assert not target.exists()
    saved = json.loads((tmp_path / f".{name}.checkpoint").read_bytes())["rows"]
    assert 0 < saved < 100
    done = own.process("export", "shop", "tape", "-o", target, "--resume", "--json")
    data = target.read_bytes()
    assert ids(gzip.decompress(data) if name.endswith("gz") else data) == [str(at) for at in range(100)]
    assert (done.json["rows"], done.json["resumed"]) == (100, 1)
    assert done.json["sha256"] == hashlib.sha256(data).hexdigest()


def test_an_interrupted_export_keeps_all_it_has_and_says_how_to_go_on(own, tmp_path):
    target = tmp_path / "t.ndjson"
    process = begin(own, target)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert b"  to continue: dragoman export shop tape -o " in err
    assert b"Traceback" not in err
    assert not target.exists()
    done = own.process("export", "shop", "tape", "-o", target, "--resume", "--json")
    assert ids(target.read_bytes()) == [str(at) for at in range(100)]
    assert done.json["resumed"] == 1


def test_a_full_disk_leaves_nothing_under_the_final_name_and_can_be_resumed(own, tmp_path):
    target = tmp_path / "t.ndjson"

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    process = begin(own, target, preexec_fn=limit)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1, err
    assert b"t.ndjson cannot be written: File too large" in err
    assert b"--resume" in err
    assert not target.exists()
    own.process("export", "shop", "tape", "-o", target, "--resume")
    assert ids(target.read_bytes()) == [str(at) for at in range(100)]


def test_two_exports_to_one_file_do_not_meet(own, tmp_path):
    target = tmp_path / "t.ndjson"
    process = begin(own, target)
    with held(process):
        done = own.process("export", "shop", "books", "-o", target, code=1)
    assert f"error[export-running]: another export is writing {target}" in done.err
    _, err = process.communicate(timeout=40)
    assert process.returncode == 0, err
    assert len(target.read_bytes().splitlines()) == 100


def test_a_reader_who_has_seen_enough_ends_the_export_quietly(own):
    words = shlex.join(own.words("export", "shop", "tape"))
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{words} | head -n 2"], env=own.variables(), capture_output=True, timeout=40
    )
    assert done.returncode == 0, done.stderr
    assert ids(done.stdout) == ["0", "1"]
    assert done.stderr == b""


def test_at_a_terminal_the_rows_the_rate_and_the_time_that_is_left_are_shown(own, tmp_path):
    from terminal import Terminal

    code, text = Terminal(own, "export", "shop", "tape", "-o", tmp_path / "t.ndjson").end()
    assert code == 0
    assert re.search(r"tape  \d\d?/100  [1-9]\d* rows/s .*0:00:0\d", text)
    assert re.search(r"  tape  100/100  [\d,]+ rows/s  done\r?\n", text)
