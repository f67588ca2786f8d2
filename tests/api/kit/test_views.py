"""Views: what was read of an object is used while it holds, read again when it does not, and that is said."""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio
import pytest

from dragoman_api import Column, CompiledFilter
from dragoman_api.errors import ObjectChangedError, ObjectNotFoundError, QueryError
from dragoman_api.kit.views import Views


@dataclass
class Known:
    """What a driver read of one object."""

    revision: str
    columns: dict[str, Column]
    objects: tuple[str, ...] = ("books",)


def known(revision: str = "1", objects: tuple[str, ...] = ("books",), **types: str) -> Known:
    return Known(revision, {name: Column(name=name, type=kind) for name, kind in types.items()}, objects)


@dataclass
class Server:
    """One object, how often it was read, and how often its revision was asked for."""

    now: Known
    reads: int = 0
    checks: int = 0
    failure: Exception | None = None
    views: Views[Known] = field(init=False)

    def __post_init__(self) -> None:
        self.views = Views(self.read, self.revision)

    async def read(self, name: str) -> Known:
        await anyio.lowlevel.checkpoint()
        self.reads += 1
        return self.now

    async def revision(self, view: Known) -> str:
        await anyio.lowlevel.checkpoint()
        self.checks += 1
        if self.failure is not None:
            raise self.failure
        return self.now.revision


async def work(view: Known) -> str:
    await anyio.lowlevel.checkpoint()
    return f"with {view.revision}"


def compiled(revision: str, name: str = "books") -> CompiledFilter:
    return CompiledFilter(object=name, body="", rows=[], revision=revision)


@pytest.fixture
def server() -> Server:
    return Server(known(t="text"))


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        (None, True),
        (compiled("1"), True),
        (compiled("2"), False),
        (compiled(""), False),
        (compiled("2", "films"), True),
    ],
)
async def test_a_filter_fits_the_revision_that_it_was_compiled_for(
    server: Server, given: CompiledFilter | None, fits: bool
) -> None:
    for use in (lambda: server.views.use("books", work, given=given), lambda: server.views.check("books", given)):
        if fits:
            await use()
        else:
            with pytest.raises(ObjectChangedError, match="compile"):
                await use()


async def test_objects_in_another_order_are_no_change_of_what_a_name_stands_for() -> None:
    server = Server(known("1", ("a", "b"), t="text"))
    await server.views.read("books")
    server.now = known("2", ("b", "a"), t="text")
    with pytest.raises(ObjectChangedError) as caught:
        await server.views.use("books", work)
    assert "its definition differs" in caught.value.message


async def test_of_a_check_and_work_that_both_fail_the_work_tells_why(server: Server) -> None:
    await server.views.read("books")
    server.failure = QueryError("the check")

    async def failing(_: Known) -> str:
        await anyio.sleep(0.01)  # after the check
        raise QueryError("the work")

    with pytest.raises(QueryError, match="the work"):
        await server.views.use("books", failing)


async def test_a_view_is_read_once_and_checked_by_every_use(server: Server) -> None:
    with pytest.raises(ObjectNotFoundError, match="not described"):
        server.views.known("books")
    for checks in (1, 2, 3):
        assert await server.views.use("books", work) == "with 1"
        assert (server.reads, server.checks) == (1, checks)
    assert server.views.known("books") is server.now


async def test_work_and_check_are_under_way_together(server: Server) -> None:
    await server.views.read("books")
    checking = anyio.Event()

    async def revision(view: Known) -> str:
        checking.set()
        return view.revision

    async def waiting(view: Known) -> str:
        with anyio.fail_after(5):
            await checking.wait()
        return view.revision

    views = Views(server.read, revision)
    assert await views.use("books", waiting) == "1"


@pytest.mark.parametrize(
    ("now", "text"),
    [
        (known("2", t="keyword"), "'t' is keyword, before text"),
        (known("2", a="long", t="keyword"), "'t' is keyword, before text; new: 'a'"),
        (known("2", t="text", b="long", c="long"), "new: 'b', 'c'"),
        (known("2"), "gone: 't'"),
        (known("2", ("b", "a"), t="text"), "it stands for 'b', 'a', before for 'books'"),
        (known("2", t="text"), "its definition differs"),
        (known("2", t="text", **{f"c{at}": "long" for at in range(9)}), "new: 'c0', 'c1', 'c2', 'c3', 'c4' and 4 more"),
        (known("2", ("a",), b="text"), "it stands for 'a', before for 'books'; new: 'b'; gone: 't'"),
    ],
)
async def test_a_change_is_told_and_the_next_use_has_the_new_view(server: Server, now: Known, text: str) -> None:
    await server.views.read("books")
    server.now = now
    with pytest.raises(ObjectChangedError) as caught:
        await server.views.use("books", work)
    assert caught.value.message == f"'books' changed while the connection was open: {text}"
    assert await server.views.use("books", work) == "with 2"
    assert server.reads == 2


async def test_a_failure_of_the_work_is_a_change_if_there_was_one(server: Server) -> None:
    async def fails(view: Known) -> str:
        raise QueryError("there is no such column")

    with pytest.raises(QueryError, match="no such column") as caught:
        await server.views.use("books", fails)
    assert type(caught.value) is QueryError
    server.now = known("2", t="text")
    with pytest.raises(ObjectChangedError):
        await server.views.use("books", fails)


async def test_a_check_that_fails_makes_the_call_fail(server: Server) -> None:
    server.failure = QueryError("no master")
    with pytest.raises(QueryError, match="no master"):
        await server.views.use("books", work)
    with pytest.raises(QueryError, match="no master"):
        await server.views.check("books")


async def test_a_filter_of_an_older_revision_is_refused_before_the_work(server: Server) -> None:
    await server.views.read("books")

    async def never(view: Known) -> str:
        raise AssertionError

    for call in (server.views.use("books", never, given=compiled("0")), server.views.check("books", compiled("0"))):
        with pytest.raises(ObjectChangedError, match="'books' changed since the filter was compiled"):
            await call
    assert await server.views.use("books", work, given=compiled("1")) == "with 1"
    assert await server.views.use("books", work, given=compiled("0", "other")) == "with 1", "the work refuses it"


async def test_a_check_before_the_work_reads_the_view_again(server: Server) -> None:
    first = await server.views.check("books")
    assert (first.revision, server.reads, server.checks) == ("1", 1, 0)
    server.now = known("2", t="text")
    with pytest.raises(ObjectChangedError):
        await server.views.check("books", compiled("1"))
    assert (await server.views.check("books", compiled("2"))).revision == "2"


async def test_busy_objects_are_checked_together() -> None:
    """Else a plan of changes to several busy objects would pass its deadline; so it takes as long as the longest."""
    under_way = most = 0

    async def read(name: str) -> Known:
        return known("1", objects=(name,))

    async def revision(view: Known) -> str:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        under_way -= 1
        if "gone" in view.objects:
            raise QueryError("no master")
        return "2" if "b" in view.objects else "1"

    views: Views[Known] = Views(read, revision)
    for name in "abc":
        await views.read(name)
    assert [*await views.holding("abc")] == ["a", "c"]
    assert most == 3
    await views.read("gone")
    with pytest.raises(QueryError, match="no master"):
        await views.holding(["a", "gone"])


async def test_views_that_hold_are_told_from_others(server: Server) -> None:
    assert await server.views.holding(["books"]) == {}
    await server.views.read("books")
    assert await server.views.holding(["books", "other"]) == {"books": server.now}
    server.now = known("2")
    assert await server.views.holding(["books"]) == {}


class Slow:
    """A server whose answers wait until the test lets one go, with the revision that it had when it was asked."""

    def __init__(self) -> None:
        self.now, self.asked = "1", 0
        self.failure: Exception | None = None
        self.gates: list[anyio.Event] = []
        self.results: list[str] = []
        self.views = Views(self.read, self.revision)

    async def read(self, name: str) -> Known:
        return known(self.now, t="text")

    async def revision(self, view: Known) -> str:
        now, gate = self.now, anyio.Event()
        self.gates.append(gate)
        self.asked += 1
        await gate.wait()
        if self.failure is not None:
            raise self.failure
        return now

    async def use(self) -> None:
        self.results.append(await self.views.use("books", work))

    async def let_go(self) -> None:
        self.gates.pop(0).set()
        await anyio.wait_all_tasks_blocked()


async def test_calls_under_way_together_share_the_question_that_is_put_after_they_began() -> None:
    slow = Slow()
    await slow.views.read("books")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(slow.use)
        await anyio.wait_all_tasks_blocked()
        for _ in range(20):
            tasks.start_soon(slow.use)
        await anyio.wait_all_tasks_blocked()
        assert slow.asked == 1
        await slow.let_go()
        assert (slow.asked, len(slow.results)) == (2, 1)
        await slow.let_go()
    assert (slow.asked, slow.results) == (2, ["with 1"] * 21)


async def test_a_call_sees_a_change_that_came_before_it_though_an_older_question_is_under_way() -> None:
    slow, changed = Slow(), []
    await slow.views.read("books")

    async def use() -> None:
        with pytest.raises(ObjectChangedError):
            await slow.views.use("books", work)
        changed.append(True)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(slow.views.use, "books", work)
        await anyio.wait_all_tasks_blocked()
        slow.now = "2"
        tasks.start_soon(use)
        await anyio.wait_all_tasks_blocked()
        await slow.let_go()
        await slow.let_go()
    assert changed == [True]


async def test_a_cancelled_call_leaves_its_question_to_those_that_wait() -> None:
    slow = Slow()
    await slow.views.read("books")

    async def cancelled(scope: anyio.CancelScope) -> None:
        with scope:
            await slow.views.use("books", work)

    async with anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()
        for call, arguments in ((slow.use, ()), (cancelled, (scope,)), (slow.use, ())):
            tasks.start_soon(call, *arguments)
            await anyio.wait_all_tasks_blocked()
        await slow.let_go()  # the first one's; the call that is cancelled then asks for itself and the last one
        assert slow.asked == 2
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        assert slow.asked == 3
        slow.gates.pop(0)
        await slow.let_go()
    assert slow.results == ["with 1"] * 2


async def test_a_question_that_fails_fails_for_its_own_call_alone() -> None:
    slow, outcomes = Slow(), []
    await slow.views.read("books")

    async def use() -> None:
        try:
            outcomes.append(await slow.views.use("books", work))
        except QueryError as error:
            outcomes.append(error.message)

    async with anyio.create_task_group() as tasks:
        for _ in range(9):
            tasks.start_soon(use)
        await anyio.wait_all_tasks_blocked()
        await slow.let_go()
        slow.failure = QueryError("no")
        await slow.let_go()
        slow.failure = None
        await slow.let_go()
    assert (slow.asked, outcomes) == (3, ["with 1", "no", *["with 1"] * 7])


async def test_a_call_waits_for_the_question_of_another_for_moments_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman_api.kit.views.PATIENCE", 0.01)
    slow = Slow()
    await slow.views.read("books")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(slow.use)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(slow.use)
        with anyio.fail_after(5):
            while slow.asked < 2:
                await anyio.sleep(0.01)
            slow.gates.pop().set()
            while not slow.results:
                await anyio.sleep(0.01)
        await slow.let_go()
    assert slow.results == ["with 1"] * 2


async def test_a_call_that_is_cancelled_before_its_question_leaves_none_to_wait_for(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman_api.kit.views.PATIENCE", 60.0)
    await server.views.read("books")

    with anyio.CancelScope() as scope:

        async def cancelled(view: Known) -> None:
            scope.cancel()
            await anyio.lowlevel.checkpoint()

        await server.views.use("books", cancelled)
    assert (scope.cancelled_caught, server.checks) == (True, 0)
    with anyio.fail_after(5):
        assert await server.views.use("books", work) == "with 1"


async def test_calls_that_begin_together_put_two_questions(server: Server) -> None:
    await server.views.read("books")
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(server.views.use, "books", work)
    assert server.checks == 2
