"""A session's completion of console texts: suggestions from a driver in its sandbox, within the text and harmless."""

from __future__ import annotations

import pytest

import wheelhouse
from dragoman_api.console import Completion, SuggestionKind
from dragoman_api.errors import ConfigurationError, DriverFaultError, SandboxError, UnsupportedOperationError
from dragoman_worker.hooks_and_deadlines import HOOKS

MEMORY = "from .memory_driver import MemoryDriver as Driver\n"

ODD = """
from dragoman_api import hookimpl
from dragoman_api.console import Completion, Suggestion, SuggestionKind
from .memory_driver import MemoryDriver

def at(start, end, text="x", **more):
    return Suggestion(text=text, kind=SuggestionKind.FIELD, start=start, end=end, **more)

RESULTS = {
    "behind": [at(0, 7)], "backwards": [at(2, 1)], "before": [at(-1, 1)], "long": [at(0, 1, "x" * 1_001)],
    "many": [at(0, 1)] * 201,
    "escapes": [at(0, 1, "\\x1b[2Jx"), at(0, 1, "two\\nlines"), at(0, 1, "fine", detail="\\x1b[31m" + "d" * 1_000)],
}


class Driver(MemoryDriver):
    @hookimpl
    async def complete_console(self, request):
        return Completion(suggestions=RESULTS[request.text])
"""


@pytest.fixture
def open_driver(make_runtime):
    def make(code=MEMORY, hooks=HOOKS):
        driver = wheelhouse.Driver("memory", code=code, hooks=[*hooks], capabilities=["browse"])
        return make_runtime(driver, installed=True)

    return make


async def test_a_text_is_completed_at_its_end_or_at_a_place_in_it(open_driver):
    async with open_driver() as runtime, runtime.open("memory") as session:
        [found] = (await session.complete("GET /b")).suggestions
        assert (found.text, found.kind, found.start, found.end) == ("/books", SuggestionKind.OBJECT, 4, 6)
        text = "# ä😀\nGET /books\nDEL /x"
        [found] = (await session.complete(text, 19)).suggestions
        assert text[: found.start] + found.text + text[found.end :] == "# ä😀\nGET /books\nDELETE /x"
        assert len((await session.complete("")).suggestions) == 5
        assert await session.complete("GET /tea") == Completion()


async def test_a_place_outside_of_the_text_is_refused(open_driver):
    async with open_driver() as runtime, runtime.open("memory") as session:
        for position in (-1, 4):
            with pytest.raises(ConfigurationError, match="0 to 3"):
                await session.complete("GET", position)


async def test_a_driver_without_completion_says_so(open_driver):
    code = "from .memory_driver import MemoryDriver\n\n\nclass Driver(MemoryDriver):\n"
    code += "    complete_console = None\n"
    hooks = [hook for hook in HOOKS if hook != "complete_console"]
    async with open_driver(code, hooks) as runtime, runtime.open("memory") as session:
        assert not session.can("complete_console")
        with pytest.raises(UnsupportedOperationError):
            await session.complete("GET")


@pytest.mark.slow
@pytest.mark.parametrize("text", ["behind", "backwards", "before", "long", "many"])
async def test_suggestions_that_cannot_be_are_a_fault_of_the_driver(open_driver, text):
    async with open_driver(ODD) as runtime, runtime.open("memory") as session:
        with pytest.raises((DriverFaultError, SandboxError)):
            await session.complete(text)
        assert (await session.complete("escapes")).suggestions


async def test_a_suggestion_with_control_characters_is_left_out(open_driver):
    async with open_driver(ODD) as runtime, runtime.open("memory") as session:
        [found] = (await session.complete("escapes")).suggestions
        assert found.text == "fine"
        assert "\x1b" not in found.detail
        assert len(found.detail) == 201
