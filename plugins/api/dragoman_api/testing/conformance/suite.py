"""All conformance tests of a driver: a class that its author subclasses with one fixture."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import pytest

from dragoman_api.changes import Drop, PlanRequest
from dragoman_api.columns import ObjectsRequest
from dragoman_api.console import AnswerKind, ConsoleText
from dragoman_api.errors import ConsoleSyntaxError, DragomanError
from dragoman_api.filters import FilterRequest, RawQuery
from dragoman_api.testing.target import hooks_of

from .changes import ChangeConformance
from .exports import ExportConformance, ShareConformance
from .filters import FilterConformance, TimeConformance
from .grid import GridConformance, SummaryConformance
from .objects import ObjectConformance
from .similar import SimilarConformance

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman_api.console import ConsoleRequest
    from dragoman_api.testing.target import Target


_HOOKS = {
    "browse": ("list_objects", "describe_object", "fetch_page"),
    "filter": ("compile_filter",),
    "edit": ("plan_change", "apply_change"),
    "drop": ("plan_change", "apply_change"),
    "console": ("parse_console", "execute_console"),
    "export": ("export_rows",),
}


_FURTHER = ("sort", "tenants", "raw-filter", "revisions", "time-range")
_LOOKED_AT = 20  # objects


class ManifestConformance:
    """Promises to a person who reads, before anything is installed, what a driver can do."""

    async def test_the_manifest_says_what_the_driver_does(self, target: Target) -> None:
        """`hooks` and `capabilities` of the manifest are those that the driver has: none missing, none too many."""
        target.given("manifest")
        hooks = hooks_of(target.driver)
        assert {*target.manifest["hooks"]} == hooks
        claimed = {*target.manifest["capabilities"]}
        proven = {name for name, needed in _HOOKS.items() if hooks.issuperset(needed)}
        if "describe_object" in hooks:
            described = await target.describe()
            proven |= {"sort"} if any(column.sortable for column in described.columns) else set()
            proven |= {"time-range"} if described.time is not None else set()
            if not any(column.operators for column in described.columns):
                proven -= {"filter"}
        judged = {*_HOOKS, "sort", *({"time-range"} & proven)}
        if {"edit", "drop"} <= proven and not target.scratch:
            judged -= {"edit", "drop"}
        for name, change in (("edit", target.insert()), ("drop", Drop(target.scratch))) if target.scratch else ():
            if name in proven:
                await target.describe(target.scratch)
                plan = await target.driver.plan_change(PlanRequest(changes=[change]))
                proven -= set() if plan.planned else {name}
        assert claimed & judged == proven & judged

    async def test_each_further_capability_is_shown_by_a_call(self, target: Target) -> None:
        """A claim that no hook shows is shown by its calls.

        A tenant and a revision that do not exist are refused or have no rows, a raw filter is compiled, and some object
        has a time column. A driver that does not claim raw filters refuses them. Every claim is a known capability.
        """
        target.given("manifest")
        target.needs("describe_object", "fetch_page")
        claimed = {*target.manifest["capabilities"]}
        assert claimed <= {*_HOOKS, *_FURTHER}, "a capability that does not exist"
        described = await target.describe()
        if "time-range" in claimed and described.time is None:
            assert await _has_time(target), "no object has a time column"
        for name, field in (("tenants", {"tenant": "no such tenant"}), ("revisions", {"revision": "no such one"})):
            if name in claimed:
                with suppress(DragomanError):
                    assert not (await target.page(limit=1, **field)).cells, f"{name} make no difference"
        if "revisions" in claimed:
            assert (await target.page(limit=1)).revision, "pages state no revision"
        if "compile_filter" in hooks_of(target.driver):
            request = FilterRequest(object=target.object, rows=[RawQuery(target.raw_filter or "text")])
            if "raw-filter" in claimed:
                assert target.raw_filter, "the target names no raw filter"
                assert await target.driver.compile_filter(request)
            else:
                with pytest.raises(DragomanError):
                    await target.driver.compile_filter(request)


async def _has_time(target: Target) -> bool:
    listed = await target.driver.list_objects(ObjectsRequest(limit=_LOOKED_AT, counts=False))
    for listed_object in listed.objects[:_LOOKED_AT]:
        with suppress(DragomanError):
            if (await target.describe(listed_object.name)).time is not None:
                return True
    return False


class ConsoleConformance:
    """Promises to a console and to the automations that guard it."""

    async def test_reads_and_writes_are_told_apart(self, target: Target) -> None:
        """A reading request is marked as a read and a writing one as a write, since guards trust the mark."""
        target.given("reads", "writes")
        for text in target.reads:
            assert [request.writes for request in await _parse(target, text)] == [False], f"one request reads: {text}"
        for text in target.writes:
            assert [request.writes for request in await _parse(target, text)] == [True], f"one request writes: {text}"

    async def test_parsing_sends_nothing_and_keeps_order_and_lines(self, target: Target) -> None:
        """`parse_console` does no I/O; requests between empty lines come in order, each with the line it begins in."""
        target.given("reads", "writes")
        texts = [*target.reads, *target.writes]
        mark = target.sent()
        alone = [(await _parse(target, text))[0] for text in texts]
        together = await _parse(target, "\n\n".join(texts))
        assert target.since(mark) == []
        assert [request.request for request in together] == [request.request for request in alone], (
            "an empty line ends a request; the requests of all texts, joined by empty lines, are those of each alone"
        )
        lines = [1 + "\n\n".join([*texts[:at], ""]).count("\n") for at in range(len(texts))]
        assert [request.line for request in together] == lines, "the line of a request is its first, from 1"

    async def test_the_console_begins_with_a_request_that_reads(self, target: Target) -> None:
        """`console_example` of the manifest is one reading request, on one line, that the server answers."""
        target.needs("parse_console", "execute_console")
        target.given("manifest")
        example = target.manifest.get("console_example", "")
        assert example, "the manifest names no 'console_example': a request of one line that reads"
        [request] = await _parse(target, example)
        assert not request.writes, f"the 'console_example' of the manifest writes: {example}"
        answer = await target.driver.execute_console(request)
        assert 200 <= answer.status < 300, f"the server refuses the 'console_example' of the manifest: {example}"

    async def test_a_comment_makes_no_request_and_breaks_none(self, target: Target) -> None:
        """A line that begins with ``#`` changes no request. The host reads expectations from such lines."""
        target.given("reads", "writes")
        for text in [*target.reads, *target.writes]:
            plain = await _parse(target, text)
            commented = await _parse(target, f"# before\n{text}\n# expect status 200\n")
            assert [
                (request.request.method, request.request.path, request.writes, request.line) for request in commented
            ] == [
                (request.request.method, request.request.path, request.writes, request.line + 1) for request in plain
            ], f"a line that begins with '#' is part of no request: {text}"

    async def test_a_syntax_error_says_where(self, target: Target) -> None:
        """A text that cannot be parsed raises ConsoleSyntaxError with line and column, both from 1."""
        target.given("broken")
        for text, line, column in target.broken:
            with pytest.raises(ConsoleSyntaxError) as caught:
                await _parse(target, text)
            assert (caught.value.details.get("line"), caught.value.details.get("column")) == (line, column), text

    async def test_an_answer_is_of_the_request_that_was_parsed(self, target: Target) -> None:
        """A request is sent exactly as parsed.

        The answer holds that request, the status, and rows or text according to its kind.
        """
        target.needs("parse_console", "execute_console")
        target.given("reads")
        for text in target.reads:
            [parsed] = await _parse(target, text)
            mark = target.sent()
            answer = await target.driver.execute_console(parsed)
            assert answer.request == parsed.request
            assert 200 <= answer.status < 300, answer.text
            assert target.log is None or parsed.request in target.since(mark)
            if answer.kind in (AnswerKind.GRID, AnswerKind.TABLE):
                assert answer.page is not None, text
            else:
                assert answer.text, text


async def _parse(target: Target, text: str) -> list[ConsoleRequest]:
    target.needs("parse_console")
    requests: list[ConsoleRequest] = await target.driver.parse_console(ConsoleText(text))
    return requests


Test = TypeVar("Test", bound="Callable[..., object]")


def deviates(reason: str) -> Callable[[Test], Test]:
    """Allow an override of a conformance test; the reason is listed at the end of every run."""
    if not reason.strip():
        raise ValueError("a deviation from the contract needs a reason")

    def mark(test: Test) -> Test:
        test.deviation = reason  # type: ignore[attr-defined]
        return test

    return mark


class DriverConformance(
    ManifestConformance,
    ObjectConformance,
    GridConformance,
    FilterConformance,
    TimeConformance,
    ChangeConformance,
    ConsoleConformance,
    ExportConformance,
    ShareConformance,
    SummaryConformance,
    SimilarConformance,
):
    """Tests of what every driver promises; tests of missing hooks are skipped.

    Subclass it under a name that begins with ``Test`` and give it a fixture ``target`` that yields a
    `dragoman_api.testing.Target`. An override of one of its tests needs `deviates` with a reason.
    """

    pytestmark = pytest.mark.anyio

    @pytest.fixture(scope="class")
    @classmethod
    def anyio_backend(cls) -> str:
        """Name aiohttp's event loop, with class scope, so that a target can be opened once per class."""
        return "asyncio"

    @pytest.fixture
    def target(self) -> object:
        """Fail unless the subclass overrides this fixture."""
        pytest.fail("the subclass of DriverConformance has no fixture 'target'")

    def __init_subclass__(cls) -> None:
        """Reject a conformance test that was overridden or switched off without a reason."""
        super().__init_subclass__()
        for name in [name for name in dir(DriverConformance) if name.startswith("test_")]:
            test = getattr(cls, name)
            if test is not getattr(DriverConformance, name) and not getattr(test, "deviation", ""):
                raise TypeError(f"{cls.__name__} overrides {name} of the contract without @deviates('reason')")
