"""The coordinator of an export in parts, over a real folder: what it counts, keeps, frees, and writes down."""

from __future__ import annotations

import hashlib
import json
import pickle
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import anyio
import msgspec
import pytest
from anyio.to_thread import run_sync

from dragoman import FileFormat
from dragoman.sessions.splits import Split
from dragoman_api.columns import Note
from dragoman_api.errors import ConfigurationError, ConnectionFailedError, ExportError, QueryError
from dragoman_dask import coordinator
from dragoman_dask.coordinator import Coordinator
from dragoman_dask.folder_target import FolderTarget
from splits import ORIGIN, REQUEST, ROW, SPLIT, part


class Server:
    """What a server answers to the renewals of a snapshot: true until told otherwise, or errors."""

    def __init__(self):
        self.asked, self.answers = [], []

    async def hold(self, split, seconds):
        if not split.snapshot:
            return True
        self.asked.append(seconds)
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, Exception):
            raise answer
        if answer == "hang":
            await anyio.sleep_forever()
        return answer

    @property
    def freed(self):
        return 0 in self.asked


def written(target, split, number, notes=()):
    """Write a part of one row as a worker does; return what it says."""
    target.file(split.file(number)).write_bytes(ROW)
    return part(split, number, notes=notes)


def runner(*, fail=None, after=3, notes=(), progress=False, order=reversed, wait=False):
    """Return a runner that writes so many parts, and then fails, waits or ends."""

    @asynccontextmanager
    async def run(split, numbers, target, progressed):
        async def parts():
            for number in [*order(numbers)][:after]:
                if progress:
                    progressed(number, 1, 4)
                yield number, await run_sync(written, target, split, number, notes)
            if fail is not None:
                raise fail
            if wait:
                await anyio.sleep_forever()

        run.numbers = list(numbers)
        yield parts()

    return run


class Case:
    """One folder that several runs write, one after the other."""

    def __init__(self, folder):
        self.folder, self.server, self.events = folder, Server(), []

    async def run(self, split=SPLIT, run=None, *, resume=False):
        target = FolderTarget(self.folder)
        found = await run_sync(lambda: target.open(resume=resume))
        try:
            made = Coordinator(target, hold=self.server.hold, emit=self.events.append)
            return await made.run(found or split, run or runner(), resumed=resume)
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(target.leave)

    @property
    def names(self):
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.exists() else []


@pytest.fixture
def case(tmp_path):
    return Case(tmp_path / "d")


def parts(*numbers):
    return [f"part-{number:05}.ndjson" for number in numbers]


async def test_the_manifest_describes_the_request_and_what_came_of_it(case):
    note = Note(code="of-part", reason="from a part")
    result = await case.run(run=runner(notes=[note]))
    told = json.loads((case.folder / "manifest.json").read_bytes())
    assert told == msgspec.to_builtins(result)
    assert told["seconds"] > 0
    assert [part["file"] for part in told["parts"]] == parts(0, 1, 2)  # whichever was complete first
    assert datetime.fromisoformat(told["finished"]).tzinfo is UTC
    expected = {
        "target": str(case.folder),
        "connection": "shop",
        "object": "books",
        "tenant": "north",
        "revision": "r1",
        "time": {"column": "at", "since": "2026-11-23T12:00:00Z", "until": None},
        "filter": [
            {"row": 0, "clause": "a = 1", "exact": True, "approximations": [], "unlikely": [], "same_element": []}
        ],
        "format": "rows",
        "compression": None,
        "columns": ["a"],
        "rows": 3,
        "total": 3,
        "snapshot": True,
        "bytes": 3 * len(ROW),
        "server": "Memory 1",
        "driver": "memory 1.2",
        "started": SPLIT.started,
    }
    assert {name: told[name] for name in expected} == expected
    assert [each["code"] for each in told["notes"]] == ["of-split", *["of-part"] * 3]
    assert case.names == ["manifest.json", *parts(0, 1, 2)]
    assert case.server.freed


async def test_the_compression_is_in_the_manifest_and_in_the_names(case):
    result = await case.run(msgspec.structs.replace(SPLIT, format=FileFormat("rows", compression="gzip")))
    assert result.compression == "gzip"
    assert result.parts[0].file == "part-00000.ndjson.gz"
    columnar = msgspec.structs.replace(SPLIT, format=FileFormat("parquet", compression="gzip"))  # compressed inside
    assert columnar.file(12_345) == "part-12345.parquet"
    assert msgspec.structs.replace(SPLIT, format=FileFormat("bulk")).file(0) == "part-00000.ndjson"


async def test_notes_of_a_driver_are_bounded_and_those_of_the_split_take_no_room(case):
    ours = [Note(code="of-split", reason=f"{at}") for at in range(60)]
    theirs = [Note(code="of-part", reason=f"{at}") for at in range(20)]
    result = await case.run(msgspec.structs.replace(SPLIT, notes=ours), runner(notes=theirs))
    codes = [note.code for note in result.notes]
    assert (codes.count("of-split"), codes.count("of-part"), codes.count("notes-cut")) == (60, 50, 1)


async def test_the_events_count_all_parts_together(case):
    await case.run(run=runner(progress=True, order=list))
    kinds = [event.name for event in case.events]
    assert kinds == ["export.started", *["export.progressed"] * 6, "export.finished"]
    assert [(event.rows, event.bytes) for event in case.events[1:-1]] == [
        (1, 4), (1, 8), (2, 12), (2, 16), (3, 20), (3, 24),
    ]  # fmt: skip
    assert {event.total for event in case.events[1:-1]} == {3}
    assert {(event.connection, event.object, event.target) for event in case.events} == {
        ("shop", "books", str(case.folder))
    }
    last = case.events[-1]
    assert (last.rows, last.bytes) == (3, 24)
    assert last.sha256 == hashlib.sha256((case.folder / "manifest.json").read_bytes()).hexdigest()


async def test_a_part_is_told_once_it_is_on_record(case, monkeypatch):
    """Whoever sees the progress and kills the export must be able to continue from there."""
    steps, record = [], FolderTarget.record

    def recorded(target, part):
        record(target, part)
        steps.append(part.file)

    class Told(list):
        def append(self, event):
            steps.append(event.name)

    monkeypatch.setattr(FolderTarget, "record", recorded)
    case.events = Told()
    await case.run(run=runner(order=list))
    told = [step for name in parts(0, 1, 2) for step in (name, "export.progressed")]
    assert steps == ["export.started", *told, "export.finished"]


async def test_a_failure_after_a_part_keeps_the_snapshot_and_says_how_to_continue(case):
    with pytest.raises(QueryError) as caught:
        await case.run(run=runner(fail=QueryError("a shard failed"), after=2, order=list))
    assert caught.value.hint == "export with resume=True to fetch the missing parts"
    assert not case.server.freed
    assert case.names == [".export.done", ".export.json", *parts(0, 1)]
    rest = runner()
    result = await case.run(run=rest, resume=True)
    assert case.server.asked == [REQUEST.keep_alive, 0]  # renewed before the first part, freed after the last one
    assert rest.numbers == [2]
    assert result.rows == 3
    assert [event.resumed for event in case.events if event.name == "export.started"] == [0, 2]


async def test_a_failure_that_says_what_to_do_keeps_its_own_hint(case):
    with pytest.raises(ConfigurationError) as caught:
        await case.run(run=runner(fail=ConfigurationError("no", hint="do this"), after=1))
    assert caught.value.hint == "do this"


async def test_a_failure_before_any_part_frees_the_snapshot_and_leaves_nothing(case):
    with pytest.raises(QueryError) as caught:
        await case.run(run=runner(fail=QueryError("no"), after=0))
    assert not caught.value.hint
    assert case.server.freed
    assert case.names == []


async def test_a_plan_that_cannot_be_written_frees_the_snapshot(case, monkeypatch):
    def full(self, split):
        raise ExportError("no space")

    monkeypatch.setattr(FolderTarget, "begin", full)
    with pytest.raises(ExportError, match="no space"):
        await case.run()
    assert (case.server.asked, case.names) == ([0], [])


async def test_a_snapshot_that_is_gone_refuses_to_continue(case):
    with pytest.raises(QueryError):
        await case.run(run=runner(fail=QueryError("no"), after=1))
    case.server.answers = [False]
    rest = runner()
    with pytest.raises(ExportError, match="no longer holds the snapshot of the export in") as caught:
        await case.run(run=rest, resume=True)
    assert caught.value.code == "snapshot-lost"
    assert not hasattr(rest, "numbers")


async def test_a_snapshot_is_renewed_and_a_failed_renewal_repeated_until_it_is_lost(case, monkeypatch):
    monkeypatch.setattr(coordinator, "RENEWALS", 60 / 0.01)
    case.server.answers = [True, ConnectionFailedError("for a moment"), True, False]
    with pytest.raises(ExportError) as caught:
        with anyio.fail_after(20):
            await case.run(run=runner(after=1, wait=True))
    assert caught.value.code == "snapshot-lost"
    assert case.server.asked == [REQUEST.keep_alive] * 4


async def test_without_a_snapshot_nothing_is_held_and_a_cancelled_export_keeps_its_parts(case, monkeypatch):
    monkeypatch.setattr(coordinator, "RENEWALS", 60 / 0.01)
    split = msgspec.structs.replace(SPLIT, snapshot="")
    with anyio.move_on_after(0.2):
        await case.run(split, runner(after=1, wait=True))
    assert case.names == [".export.done", ".export.json", *parts(2)]
    result = await case.run(resume=True)
    assert (result.snapshot, result.rows, case.server.asked) == (False, 3, [])


@pytest.mark.parametrize(("answer", "left"), [(True, []), (ConnectionFailedError("gone"), parts(2))])
async def test_a_cancelled_export_removes_its_parts_only_if_the_snapshot_was_freed(case, answer, left):
    case.server.answers = [answer]
    with anyio.move_on_after(0.2):
        await case.run(run=runner(after=1, wait=True))
    assert case.server.asked == [0]
    assert [name for name in case.names if name.startswith("part")] == left
    assert (".export.json" in case.names) == bool(left)


@pytest.mark.parametrize("answer", [ConnectionFailedError("gone"), "hang"])
async def test_an_export_is_complete_also_if_its_snapshot_cannot_be_freed(case, answer, monkeypatch):
    monkeypatch.setattr(coordinator, "FREE_SECONDS", 0.05)
    case.server.answers = [answer]
    with anyio.fail_after(20):
        result = await case.run()
    assert result.rows == 3
    assert "manifest.json" in case.names


@pytest.mark.parametrize(("snapshot", "total"), [("held", 4), ("held", 2), ("", 4)])
async def test_rows_that_differ_from_the_count_are_an_error_of_a_snapshot_alone(case, snapshot, total):
    split = msgspec.structs.replace(SPLIT, snapshot=snapshot, total=total)
    if not snapshot:
        result = await case.run(split)
        assert [note.code for note in result.notes] == ["of-split", "rows-differ"]
        return
    with pytest.raises(ExportError, match=f"{total} rows were counted beforehand, but 3 arrived") as caught:
        await case.run(split)
    assert caught.value.code == "parts-differ"
    assert "manifest.json" not in case.names


async def test_an_object_whose_rows_were_not_counted_is_exported(case):
    result = await case.run(msgspec.structs.replace(SPLIT, total=None))
    assert (result.total, result.rows) == (None, 3)


# what makes two splits one export ------------------------------------------------------------------------------------


def test_a_split_is_plain_data_and_one_of_another_version_is_not_read():
    data = msgspec.json.encode(SPLIT)
    assert msgspec.json.decode(data, type=Split) == pickle.loads(pickle.dumps(SPLIT)) == SPLIT
    for other in ({"version": 2}, {"unknown": 1}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(msgspec.json.encode({**json.loads(data), **other}), type=Split)


@pytest.mark.parametrize(
    ("word", "change"),
    [
        ("connection", {"origin": {"connection": "other"}}),
        ("server", {"origin": {"server": "Memory 2"}}),
        ("host or port", {"origin": {"endpoints": "e1"}}),
        ("driver", {"origin": {"plugin": "other"}}),
        ("driver", {"origin": {"version": "1.3"}}),
        ("driver", {"origin": {"wheel": "w1"}}),
        ("object", {"request": {"object": "other"}}),
        ("tenant", {"request": {"tenant": "south"}}),
        ("revision", {"request": {"revision": "r2"}}),
        ("time", {"request": {"time": None}}),
        ("filter", {"request": {"filter": None}}),
        ("choice of columns", {"request": {"columns": ["b"]}}),
        ("format", {"format": FileFormat("csv")}),
        ("format", {"format": FileFormat("rows", escape=True)}),
        ("format", {"format": FileFormat("rows", strict=True)}),
        ("compression", {"format": FileFormat("rows", compression="gzip")}),
        ("number of parts", {"requested_parts": 6}),
    ],
)
def test_an_export_that_differs_is_another_one(word, change):
    inside = {
        name: msgspec.structs.replace(getattr(SPLIT, name), **each)
        for name, each in change.items()
        if isinstance(each, dict)
    }
    other = msgspec.structs.replace(SPLIT, **{**change, **inside}).identity()
    assert [name for name, value in SPLIT.identity().items() if other[name] != value] == [word]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("endpoints", "another host or port for 'shop'"),
        ("server", "another server for 'shop': none instead of Memory 1"),
        ("plugin", "another driver for 'shop': none instead of memory"),
        ("version", "another version of the driver for 'shop': none instead of 1.2"),
        ("wheel", "another wheel of the driver for 'shop': none instead of w0"),
    ],
)
def test_a_process_with_another_server_or_driver_is_refused(name, said):
    ORIGIN.check(msgspec.structs.replace(ORIGIN, connection="the name is the caller's"))
    with pytest.raises(ConfigurationError) as caught:
        ORIGIN.check(msgspec.structs.replace(ORIGIN, **{name: ""}), where="worker 3")
    assert caught.value.message == f"worker 3 has {said}"
    assert caught.value.code == "worker-differs"
    assert "plugins.lock" in caught.value.hint
