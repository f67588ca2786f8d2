"""An export flows through a pipe: in order, with back-pressure, and in constant memory (E32)."""

from __future__ import annotations

import tracemalloc
from contextlib import aclosing
from typing import TYPE_CHECKING

import anyio
import pytest

from dragoman.sandbox.conversation import DriverProxy
from dragoman_api.connections import Health
from dragoman_api.errors import DeadlineExceededError, DriverCrashedError, DriverFaultError, QueryError
from dragoman_api.exports import ExportRequest
from dragoman_worker.hooks_and_deadlines import HOOKS

if TYPE_CHECKING:
    from tests.worker.conftest import Workshop

    from dragoman.sandbox.driver_process import Worker

SOURCE = """
class Driver:
    made = 0

    @hookimpl
    async def ping(self):
        return Health(ok=True)

    @hookimpl
    async def count_rows(self, request):
        return self.made

    @hookimpl
    async def export_rows(self, request):
        count, _, ending = request.object.partition(" ")
        line = b'{"n":1}\\n' * 25_000
        try:
            for at in range(int(count)):
                self.made = at + 1
                yield ExportPart(data=line, rows=25_000, total=99, checkpoint=f"after {at}")
            if ending == "error":
                raise errors.QueryError("a shard failed")
            if ending == "crash":
                os._exit(5)
            if ending == "hang":
                await asyncio.sleep(60)
            if ending == "empty":
                yield ExportPart(data=b"", rows=0)
            if ending == "tiny":
                for _ in range(100):
                    yield ExportPart(data=b"1\\n", rows=1)
            if ending == "notes":
                note = Note(code="documents-rewritten", reason="row \x1b[2J7", hint="see")
                yield ExportPart(data=b"1\\n", rows=1, notes=[note] * 50)
                yield ExportPart(data=b"1\\n", rows=1, notes=[note] * 51)
            if ending == "huge":
                yield ExportPart(data=bytes(64 << 20), rows=1)
        finally:
            print("export closed")
"""


async def take(worker: Worker, text: str, taken: list[int], *, deadline: float = 5, pause: float = 0) -> None:
    async for part in worker.export(request(text), deadline=deadline):
        taken.append(len(part.data))
        await anyio.sleep(pause)


def request(text: str) -> ExportRequest:
    return ExportRequest(object=text)


async def test_parts_arrive_whole_in_order_and_with_their_checkpoints(workshop: Workshop) -> None:
    async with workshop.worker(SOURCE) as worker:
        parts = [part async for part in DriverProxy(worker).export_rows(request("20 empty"))]
        assert await worker.call("ping") == Health(ok=True)
    assert [len(part.data) for part in parts] == [200_000] * 20 + [0]
    assert parts[0].data == b'{"n":1}\n' * 25_000
    assert [part.checkpoint for part in parts] == [f"after {at}" for at in range(20)] + [None]
    assert (parts[3].rows, parts[3].total) == (25_000, 99)


async def test_notes_on_a_part_arrive_harmless_and_bounded(workshop: Workshop) -> None:
    async with workshop.worker(SOURCE) as worker, aclosing(worker.export(request("0 notes"), deadline=5)) as parts:
        part = await anext(parts)
        assert (len(part.notes), part.notes[0].code, part.notes[0].hint_from) == (50, "documents-rewritten", "driver")
        assert "\x1b" not in part.notes[0].reason
        with pytest.raises(DriverFaultError, match="51 notes"):
            await anext(parts)


@pytest.mark.slow
async def test_a_slow_taker_holds_the_driver_back(workshop: Workshop) -> None:
    from dragoman_api.grid import CountRequest

    async with workshop.worker(SOURCE) as worker, aclosing(worker.export(request("200"), deadline=5)) as parts:
        async for _ in parts:
            break
        await anyio.sleep(0.3)
        assert await worker.call("count_rows", CountRequest(object="x")) < 10


async def test_memory_does_not_grow_with_the_export(workshop: Workshop) -> None:
    async with workshop.worker(SOURCE) as worker:
        tracemalloc.start()
        size = 0
        async for part in worker.export(request("300"), deadline=10):
            size += len(part.data)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert size == 60_000_000
    assert most < 6_000_000


async def test_an_error_comes_after_the_parts_before_it(workshop: Workshop) -> None:
    async with workshop.worker(SOURCE) as worker:
        taken: list[int] = []
        with pytest.raises(QueryError, match="a shard failed"):
            await take(worker, "5 error", taken)
        assert len(taken) == 5
        assert await worker.call("ping") == Health(ok=True)


async def test_a_crash_in_the_middle_is_an_error_and_not_an_end(workshop: Workshop) -> None:
    async with workshop.worker(SOURCE) as worker:
        taken: list[int] = []
        with pytest.raises(DriverCrashedError) as caught:
            await take(worker, "3 crash", taken)
        assert caught.value.details["status"] == "exit status 5"
        assert len(taken) == 3


async def test_a_driver_that_gives_nothing_for_the_deadline_is_cancelled(workshop: Workshop) -> None:
    async with workshop.worker(SOURCE) as worker:
        with pytest.raises(DeadlineExceededError):
            await take(worker, "1 hang", [], deadline=0.2)
        assert await worker.call("ping") == Health(ok=True)
    assert "export closed" in workshop.lines


async def test_the_proxy_gives_a_part_the_time_that_the_table_names(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HOOKS, "export_rows", HOOKS["export_rows"]._replace(seconds=0.2))
    async with workshop.worker(SOURCE) as worker:
        with anyio.fail_after(30), pytest.raises(DeadlineExceededError, match=r"\b0\.2\b"):
            async for _ in DriverProxy(worker).export_rows(request("1 hang")):
                pass


async def test_leaving_early_closes_the_drivers_iterator(workshop: Workshop) -> None:
    async with workshop.worker(SOURCE) as worker:
        async with aclosing(worker.export(request("100"), deadline=5)) as parts:
            async for _ in parts:
                break
        assert await worker.call("ping") == Health(ok=True)
        await anyio.sleep(1.2)
        assert not worker.ended.is_set()
    assert "export closed" in workshop.lines


async def test_an_oversized_part_is_a_fault_of_the_driver(workshop: Workshop) -> None:
    async with workshop.worker(SOURCE) as worker:
        with pytest.raises(DriverFaultError, match="67,108,864"):
            await take(worker, "0 huge", [])


async def test_two_exports_at_once_do_not_mix(workshop: Workshop) -> None:
    sizes: dict[str, int] = {}

    async with workshop.worker(SOURCE) as worker:

        async def one(name: str) -> None:
            sizes[name] = sum([len(part.data) async for part in worker.export(request(name), deadline=10)])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, "10")
            tasks.start_soon(one, "20")
    assert sizes == {"10": 2_000_000, "20": 4_000_000}


async def test_small_parts_wait_for_credit_although_the_pipe_would_hold_them(workshop: Workshop) -> None:
    async with workshop.worker(SOURCE) as worker:
        taken: list[int] = []
        await take(worker, "0 tiny", taken, pause=0.001)
        assert taken == [2] * 100


@pytest.mark.slow
@pytest.mark.parametrize(("lie", "reason"), [("close", "10 bytes of a part of 1,000"), ("credit", "without credit")])
async def test_a_driver_that_lies_about_its_bytes_is_ended(workshop: Workshop, lie: str, reason: str) -> None:
    source = f"""
    import msgspec
    class Driver:
        @hookimpl
        async def export_rows(self, request):
            control = socket.socket(fileno=os.dup(int(sys.argv[1])))
            control.setblocking(True)
            body = msgspec.msgpack.encode({{"t": "chunk", "id": 1, "size": 1000, "rows": 1}})
            for _ in range(1 if {lie!r} == "close" else 50):
                control.sendall(len(body).to_bytes(4, "little") + body)
            yield ExportPart(data=b"1" * 10, rows=1)
    """
    async with workshop.worker(source) as worker:
        with pytest.raises(DriverFaultError, match=reason), anyio.fail_after(5):
            await take(worker, "x", [], pause=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("writes", "ending", "kind", "reason"),
    [
        (10, "result", DriverFaultError, "10 bytes of a part of 1,000"),
        (0, "result", DriverFaultError, "0 bytes of a part of 1,000"),
        (1010, "result", DriverFaultError, "10 bytes of an export that no part announced"),
        (10, "failure", QueryError, "a shard failed"),
    ],
)
async def test_no_byte_is_waited_for_behind_the_last_word_of_a_driver_that_keeps_the_pipe_open(
    workshop: Workshop, writes: int, ending: str, kind: type[Exception], reason: str
) -> None:
    source = f"""
    import gc, msgspec
    class Driver:
        @hookimpl
        async def export_rows(self, request):
            [pipe] = [each for each in gc.get_objects() if type(each).__name__ == "FileIO" and each.fileno() > 2]
            self.kept = os.dup(pipe.fileno())
            control = socket.socket(fileno=os.dup(int(sys.argv[1])))
            body = msgspec.msgpack.encode({{"t": "chunk", "id": 1, "size": 1000, "rows": 1}})
            control.sendall(len(body).to_bytes(4, "little") + body)
            os.write(self.kept, b"1" * {writes})
            if {ending!r} == "failure":
                raise errors.QueryError("a shard failed")
            return
            yield
    """
    async with workshop.worker(source) as worker:
        with pytest.raises(kind, match=reason), anyio.fail_after(8):
            await take(worker, "x", [], deadline=60)
