"""Change sets: planned as a whole, applied in parts, taken back exactly, whatever happens in between."""

from __future__ import annotations

import errno
import io
import json
import os
from pathlib import Path

import anyio
import pytest
from drivers.elasticsearch.rig import on_fake
from msgspec.structs import replace

from cancelling import cancelled
from dragoman.changes import files as changefiles
from dragoman.changes.sets import ChangeSet
from dragoman.changes.undo import UndoFile
from dragoman.sessions.session import Session
from dragoman_api.columns import Note
from dragoman_api.errors import (
    ConfigurationError,
    ConnectionFailedError,
    DriverCrashedError,
    DriverFaultError,
    Refused,
    UnsupportedOperationError,
)
from dragoman_api.hookspecs import hookimpl
from dragoman_querydsl.writing import plan as planning
from in_process import Here
from memory_driver import MemoryDriver

PROPERTIES = {"price": {"type": "double"}, "items": {"type": "nested", "properties": {"qty": {"type": "integer"}}}}


class Shop:
    """A session on a fake, the index `books` with rows 0 to 9, and change files."""

    def __init__(self, es, name, folder):
        self.es, self.name, self.folder = es, name, folder
        self.seen = []
        self.session = self.open()

    def open(self, driver=None, automations=()):
        return Session(Here(driver or self.es.driver, *automations, capabilities=("tenants",)), emit=self.seen.append)

    def set(self, *lines, session=None, **more):
        text = "".join(f"{json.dumps({'object': self.name, **line})}\n" for line in lines)
        return ChangeSet(session or self.session, Path("-"), stdin=io.BytesIO(text.encode()), **more)

    async def run(self, *lines, **more):
        async with self.set(*lines, **more) as changes:
            await changes.plan()
            return await changes.apply()

    async def undo(self, path, **more):
        async with ChangeSet(self.session, path, **more) as changes:
            await changes.plan()
            return await changes.apply()

    async def stored(self):
        await self.es.call("POST", f"/{self.name}/_refresh")
        keys = [key.id for key in (await self.es.page(self.name, limit=100)).keys]
        return {key: await self.es.source(self.name, key) for key in keys}


@pytest.fixture
async def shop(tmp_path, monkeypatch):
    monkeypatch.setattr(changefiles, "CHUNK_LINES", 2)
    async with on_fake("8.19.21") as es:
        name = await es.index(PROPERTIES, [f'{{"price":{at}.10}}' for at in range(10)])
        yield Shop(es, name, tmp_path)


def update(key, price=99):
    return {"op": "update", "id": str(key), "set": {"price": price}}


async def test_a_set_is_applied_in_parts_and_told_by_line(shop):
    progress = []
    report = await shop.run(
        *(update(at) for at in range(5)), {"op": "update", "id": "5", "set": {"items.qty": 1}},
        {"op": "delete", "id": "9"}, {"op": "delete", "id": "nope"}, {"op": "insert", "id": "0", "set": {"price": 1}},
        progress=lambda *told: progress.append(told),
    )  # fmt: skip
    assert report.counts == {"applied": 6, "skipped": 1, "refused": 2, "conflict": 0, "failed": 0, "unknown": 0}
    assert [(each.line, each.id, each.status) for each in report.left] == [
        (6, "5", "skipped"), (8, "nope", "refused"), (9, "0", "refused"),
    ]  # fmt: skip
    assert report.left[0].reason == "items.qty is a nested leaf; edit 'items'"
    assert progress[-1] == ("applied", 9, 9)
    after = await shop.stored()
    assert [json.loads(after[str(at)])["price"] for at in range(6)] == [99] * 5 + [5.1]
    assert "9" not in after
    assert len([event for event in shop.seen if event.name == "row.updated"]) == 5


@pytest.mark.parametrize("number", [1, 2, 5])
async def test_an_error_of_the_callers_progress_ends_a_set_as_itself_and_its_undo_file_is_whole(shop, number):
    calls = []

    def show(what, _done, _total):
        calls.append(what)
        if calls.count("applied") == number:
            raise ValueError("the bar broke")

    before, undo = await shop.stored(), shop.folder / "undo.ndjson"
    with pytest.raises(ValueError, match="the bar broke"):
        await shop.run(*(update(at) for at in range(10)), progress=show, undo=undo)
    assert await shop.stored() != before
    await shop.undo(undo)
    assert await shop.stored() == before


async def test_the_notes_of_all_parts_are_kept_once(shop, monkeypatch):
    real = shop.es.driver.plan_change

    async def noted(request):
        reasons = f"from {request.changes[0].key.id}", "of every part"
        return replace(await real(request), notes=[Note(code="remark", reason=reason) for reason in reasons])

    monkeypatch.setattr(shop.es.driver, "plan_change", hookimpl(noted))
    report = await shop.run(*(update(at) for at in range(5)), session=shop.open())
    assert [note.reason for note in report.notes] == ["from 0", "of every part", "from 2", "from 4"]


def test_an_undo_file_is_safe_on_disk_with_its_name(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(os.path.realpath(f"/proc/self/fd/{number}")))
    undo = UndoFile(tmp_path / "undo.ndjson")
    undo.sync()
    undo.remove()
    assert synced == [str(tmp_path / "undo.ndjson"), str(tmp_path)]


async def test_changes_of_one_row_far_apart_are_applied_in_order(shop):
    report = await shop.run(
        update(0, 1), *(update(at) for at in range(1, 9)), {"op": "delete", "id": "3"}, update(0, 2)
    )
    assert report.counts["applied"] == 11
    after = await shop.stored()
    assert json.loads(after["0"])["price"] == 2
    assert "3" not in after


async def test_the_undo_file_takes_everything_back_exactly(shop):
    before, path = await shop.stored(), shop.folder / "undo.ndjson"
    report = await shop.run(
        *(update(at) for at in range(4)), {"op": "delete", "id": "4"}, {"op": "insert", "id": "n", "set": {"price": 1}},
        {"op": "insert", "set": {"price": 2}}, {"op": "insert", "id": "5", "set": {"price": 3}, "replace": True},
        {"op": "update", "id": "6", "set": {"items.qty": 1}}, undo=path,
    )  # fmt: skip
    assert (report.counts["applied"], report.undo) == (8, str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 8
    assert all("seq_no" in line["guard"] for line in lines if line["op"] != "insert" or line.get("replace"))
    assert await shop.stored() != before
    redo = shop.folder / "redo.ndjson"
    assert (await shop.undo(path, undo=redo)).left == []
    assert await shop.stored() == before
    assert (await shop.undo(redo)).left == []
    assert json.loads((await shop.stored())["0"])["price"] == 99


async def test_the_undo_file_is_whole_on_the_disk_before_the_first_write(shop, monkeypatch):
    path, found, order = shop.folder / "undo.ndjson", [], []
    monkeypatch.setattr(UndoFile, "sync", lambda self, real=UndoFile.sync: (real(self), order.append("synced"))[0])

    class Watching(type(shop.es.driver)):
        @hookimpl
        async def apply_change(self, plan):
            order.append("sent")
            found.append(await anyio.Path(path).read_text())
            return await super().apply_change(plan)

    watching = Watching()
    watching.__dict__.update(shop.es.driver.__dict__)
    await shop.run(*(update(at) for at in range(5)), undo=path, session=shop.open(watching))
    assert order[:2] == ["synced", "sent"]
    assert len(found[0].splitlines()) == 5
    assert all("sha256" in line for line in found[0].splitlines())


async def test_an_undo_file_that_does_not_reach_the_disk_stops_the_changes_before_the_first(shop, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    before, path = await shop.stored(), shop.folder / "undo.ndjson"
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigurationError) as caught:
        await shop.run(update(0), undo=path)
    assert caught.value.message == f"{path} cannot be written: No space left on device"
    assert caught.value.hint == "nothing was applied"
    assert await shop.stored() == before


def dying(shop, *, on, after_it):
    """Return a session whose driver's process ends in the nth part: before it is sent, or after."""

    class Dying(type(shop.es.driver)):
        parts = 0

        @hookimpl
        async def apply_change(self, plan):
            type(self).parts += 1
            if self.parts != on:
                return await super().apply_change(plan)
            if after_it:
                await super().apply_change(plan)
            raise DriverCrashedError("the driver's process ended")

    driver = Dying()
    driver.__dict__.update(shop.es.driver.__dict__)
    return shop.open(driver)


@pytest.mark.parametrize("after_it", [True, False])
@pytest.mark.parametrize("on", [1, 2, 4])
async def test_a_driver_that_dies_leaves_unknown_outcomes_and_an_undo_file_that_is_right_either_way(shop, on, after_it):
    before, path = await shop.stored(), shop.folder / "undo.ndjson"
    session = dying(shop, on=on, after_it=after_it)
    report = await shop.run(*(update(at) for at in range(8)), undo=path, session=session)
    assert report.counts["unknown"] == 2
    assert all(each.reason.startswith("not sent: ") is (each.status == "failed") for each in report.left)
    taken_back = await shop.undo(path)
    assert await shop.stored() == before
    assert {each.status for each in taken_back.left} <= {"conflict"}
    assert taken_back.counts["conflict"] == (0 if after_it else 2)


async def test_what_a_driver_that_cannot_be_started_again_was_never_given_is_not_unknown(shop):
    before, path = await shop.stored(), shop.folder / "undo.ndjson"
    link = Here(shop.es.driver)
    session = Session(link, emit=shop.seen.append)
    async with shop.set(*(update(at) for at in range(4)), session=session, undo=path) as changes:
        await changes.plan()

        async def ended():
            raise DriverCrashedError("the driver's process ended too often within a minute")

        link.hooks = ended
        with pytest.raises(DriverCrashedError, match="too often"):
            await changes.apply()
    assert not path.exists()
    assert await shop.stored() == before


async def test_a_preliminary_undo_file_takes_back_what_was_applied_and_nothing_else(shop):
    """As a crash of the host leaves it: lines for all rows, applied or not, and somebody else is at work too."""
    before, path, kept = await shop.stored(), shop.folder / "undo.ndjson", shop.folder / "crashed.ndjson"
    lines = [*(update(at) for at in range(6)), {"op": "insert", "id": "n", "set": {"price": 1}}]
    async with shop.set(*lines, undo=path) as changes:
        await changes.plan()
        await anyio.to_thread.run_sync(changes._undo.sync)
        kept.write_bytes(path.read_bytes())
        for part in changes._parts[:2]:
            await shop.session.apply(await anyio.to_thread.run_sync(changes._load, part))
    assert not path.exists(), "what was not applied as a whole leaves nothing"
    await shop.es.call("PUT", f"/{shop.name}/_doc/0?refresh=true", {"price": 1000})
    report = await shop.undo(kept)
    assert report.counts == {"applied": 3, "skipped": 0, "refused": 1, "conflict": 3, "failed": 0, "unknown": 0}, report
    assert await shop.stored() == {**before, "0": '{"price": 1000}'}


async def test_a_row_that_somebody_changes_meanwhile_is_a_conflict_and_not_in_the_undo_file(shop):
    path = shop.folder / "undo.ndjson"
    async with shop.set(*(update(at) for at in range(4)), undo=path) as changes:
        await changes.plan()
        await shop.es.call("PUT", f"/{shop.name}/_doc/2?refresh=true", {"price": 1000})
        report = await changes.apply()
    assert [(each.line, each.status) for each in report.left] == [(3, "conflict")]
    assert (await shop.stored())["2"] == '{"price": 1000}'
    assert '"2"' not in path.read_text()


async def test_where_nothing_was_applied_there_is_no_undo_file(shop):
    path = shop.folder / "undo.ndjson"
    report = await shop.run({"op": "delete", "id": "nope"}, undo=path)
    assert (report.undo, path.exists()) == (None, False)


async def test_an_undo_file_is_never_written_over(shop):
    path = shop.folder / "undo.ndjson"
    path.write_text("precious")
    with pytest.raises(ConfigurationError, match=r"undo\.ndjson already exists"):
        await shop.run(update(0), undo=path)
    assert path.read_text() == "precious"
    assert json.loads((await shop.stored())["0"])["price"] == 0.1


async def test_one_bad_line_or_missing_object_and_nothing_is_applied(shop):
    before = await shop.stored()
    lines = [update(0), {"op": "delete", "object": "nosuch", "id": "1"}, {"op": "update", "id": "2"}]
    with pytest.raises(ConfigurationError) as caught:
        await shop.run(*lines, undo=shop.folder / "undo.ndjson")
    assert caught.value.message.splitlines()[0] == "2 bad lines; nothing was applied"
    assert "-:2: no such index [nosuch]" in caught.value.message
    assert "-:3: Object missing required field `set`" in caught.value.message
    assert await shop.stored() == before
    assert list(shop.folder.glob("*.ndjson")) == []


async def test_a_server_that_goes_away_stops_the_set_and_every_line_is_told(shop):
    shop.es.fake.misbehave("drop", on=f"/{shop.name}/_bulk", after=1)
    shop.es.fake.misbehave("drop", on=f"/{shop.name}/_settings", after=8)
    report = await shop.run(*(update(at) for at in range(10)))
    shop.es.fake.behave()
    assert report.counts["applied"] + report.counts["failed"] + report.counts["unknown"] == 10
    assert report.counts["applied"] == 2
    assert all(each.reason.startswith("not sent: ") is (each.status == "failed") for each in report.left)
    after = await shop.stored()
    assert [json.loads(after[str(at)])["price"] for at in (0, 1)] == [99, 99]


async def test_a_set_that_nobody_can_send_raises_and_leaves_nothing(shop):
    path = shop.folder / "undo.ndjson"

    class Veto:
        @hookimpl
        async def before_call(self, call):
            if call.writes:
                raise Refused("not today")

    with pytest.raises(Refused):
        await shop.run(update(0), update(1), undo=path, session=shop.open(automations=[Veto()]))
    assert not path.exists()
    await shop.es.fake.__aexit__(None, None, None)
    shop.es.made.clear()
    with pytest.raises(ConnectionFailedError):
        await shop.run(update(0), undo=path)
    assert not path.exists()


async def test_a_part_that_is_too_large_to_plan_is_planned_in_smaller_ones(shop, monkeypatch):
    monkeypatch.setattr(planning, "PLAN_BYTES", 40)
    monkeypatch.setattr(changefiles, "CHUNK_LINES", 100)
    before, path = await shop.stored(), shop.folder / "undo.ndjson"
    report = await shop.run(*(update(at % 10, at) for at in range(30)), undo=path)
    assert report.counts["applied"] == 30
    assert [json.loads(text)["price"] for _, text in sorted((await shop.stored()).items())] == list(range(20, 30))
    assert (await shop.undo(path)).left == []
    assert await shop.stored() == before


async def test_an_interrupted_set_still_finishes_its_undo_file(shop):
    before, path = await shop.stored(), shop.folder / "undo.ndjson"
    shop.es.fake.misbehave("hang", on=f"/{shop.name}/_bulk", after=1)
    await cancelled(
        shop.run(*(update(at) for at in range(10)), undo=path),
        when=lambda: sum(each.path == f"/{shop.name}/_bulk" for each in shop.es.fake.requests) >= 5,
    )
    shop.es.fake.behave()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(next(iter(line["guard"])) for line in lines) == ["seq_no"] * 2 + ["sha256"] * 8
    await shop.undo(path)
    assert await shop.stored() == before


async def test_a_driver_that_forgets_rows_or_invents_some_leaves_them_unknown(shop):
    class Forgetful(type(shop.es.driver)):
        @hookimpl
        async def apply_change(self, plan):
            done = await super().apply_change(plan)
            return [*done[:1], replace(done[0], change=77)]

    class Confused(type(shop.es.driver)):
        @hookimpl
        async def plan_change(self, request):
            plan = await super().plan_change(request)
            return replace(plan, planned=[replace(each, changes=[0], rows=[[0], [0]]) for each in plan.planned])

    before, path = await shop.stored(), shop.folder / "undo.ndjson"
    for kind in (Forgetful, Confused):
        driver = kind()
        driver.__dict__.update(shop.es.driver.__dict__)
        if kind is Confused:
            with pytest.raises(DriverFaultError, match=r"the plan of .* every change exactly once"):
                await shop.run(update(0), update(1), session=shop.open(driver))
            continue
        report = await shop.run(update(0), update(1), undo=path, session=shop.open(driver))
        left = [(each.line, each.status, each.reason) for each in report.left]
        assert left == [(2, "unknown", "the driver reported no outcome for it")]
        assert [each.status for each in shop.seen if each.name == "row.skipped"] == ["unknown"]
        assert (await shop.undo(path)).left == []
    assert await shop.stored() == before


async def test_a_driver_that_knows_no_undo_says_so_before_anything_is_sent(tmp_path, monkeypatch):
    monkeypatch.setattr(changefiles, "CHUNK_LINES", 1)
    driver = MemoryDriver()
    line = b"".join(b'{"op":"update","object":"books","id":"%d","set":{"stock":7}}\n' % row for row in (1, 2))
    session = Session(Here(driver), emit=lambda _: None)
    with pytest.raises(UnsupportedOperationError, match="cannot build an undo"):
        async with ChangeSet(session, Path("-"), stdin=io.BytesIO(line), undo=tmp_path / "undo.ndjson") as changes:
            await changes.plan()
    async with ChangeSet(session, Path("-"), stdin=io.BytesIO(line)) as changes:
        await changes.plan()
        assert [each.request.method async for each in changes.planned()] == ["PUT", "PUT"]
        assert (await changes.apply()).counts["applied"] == 2
    assert driver.server.objects["books"]["1"]["stock"] == 7
    assert not (tmp_path / "undo.ndjson").exists()
