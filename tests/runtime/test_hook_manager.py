"""Hook calls: vetoes, notifications, one manager per connection."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from dataclasses import dataclass

import anyio
import msgspec
import pytest

from dragoman.automations import hook_manager
from dragoman.automations.consent import Question, ask_consent
from dragoman.automations.hook_manager import Hooks
from dragoman_api.errors import (
    ConfigurationError,
    DeadlineExceededError,
    DriverFaultError,
    QueryError,
    Refused,
    UnsupportedOperationError,
)
from dragoman_api.events import Call, ConnectionClosed, ConnectionInfo
from dragoman_api.hookspecs import DriverSpec, hookimpl
from dragoman_worker import hooks_and_deadlines as table
from dragoman_worker.hooks_and_deadlines import HOOKS

CALL = Call(
    hook="fetch_page", connection=ConnectionInfo(name="prod", type="t", host="h", port=1), object="books", writes=True
)


QUESTION = Question(subject="change", text="Sure?")


class Guard:
    @hookimpl
    async def before_call(self, call):
        if call.writes:
            raise Refused(f"{call.hook} on {call.connection.name}", hint="ask first")


class Broken:
    @hookimpl
    async def before_call(self, call):
        raise ValueError("oops")

    @hookimpl
    async def on_event(self, event):
        raise ValueError("oops")


class Observer:
    def __init__(self):
        self.seen = []

    @hookimpl
    async def on_event(self, event):
        self.seen.append(event.name)


class Driver:
    def __init__(self, answer="here"):
        self.answer = answer

    @hookimpl
    async def describe_object(self, name):
        if isinstance(self.answer, BaseException):
            raise self.answer
        if self.answer == "late":
            await anyio.sleep(10)
        return f"{self.answer}:{name}"

    @hookimpl
    async def export_rows(self, request):
        yield 1
        yield 2
        if isinstance(self.answer, BaseException):
            raise self.answer


def hooks(*automations, driver=None):
    events = []
    made = Hooks(automations, emit=events.append, driver=driver)
    return made, events


async def test_a_veto_names_the_automation_and_says_that_nothing_was_sent():
    made, events = hooks(Observer(), Guard())
    with pytest.raises(Refused) as caught:
        await made.ask(CALL)
    assert caught.value.message == "Guard: fetch_page on prod; nothing was sent"
    assert caught.value.hint == "ask first"
    assert [event.name for event in events] == ["call.refused"]
    assert (events[0].automation, events[0].connection) == ("Guard", "prod")


async def test_a_driver_takes_the_place_of_the_one_before_and_of_none():
    made, _ = hooks(Observer())
    assert not made.offers("describe_object")
    for answer in ("first", "second"):
        made.set_driver(Driver(answer))
        assert await made.call("describe_object", "x", deadline=5) == f"{answer}:x"
    assert made.offers("describe_object")


def vetoing(label, **about):
    class Veto:
        name = label

        @hookimpl
        async def before_call(self, call):
            raise Refused(f"{label} says no", **about)

    return Veto()


async def test_vetoes_are_told_together_with_the_first_hint_that_there_is():
    made, events = hooks(vetoing("one"), vetoing("two", hint="do this", code="two-says", details={"a": 1}))
    with pytest.raises(Refused) as caught:
        await made.ask(CALL)
    assert caught.value.message == "one says no; two says no; nothing was sent"
    assert (caught.value.hint, caught.value.code, caught.value.details) == ("do this", "two-says", {"a": 1})
    assert [(event.automation, event.reason) for event in events] == [
        ("one", "one says no; nothing was sent"), ("two", "two says no; nothing was sent"),
    ]  # fmt: skip
    made, _ = hooks(vetoing("one", code="one-says"), vetoing("two"))
    with pytest.raises(Refused) as caught:
        await made.ask(CALL)
    assert (caught.value.hint, caught.value.code, caught.value.details) == ("", "one-says", {})


async def test_a_call_that_nobody_vetoes_goes_on():
    made, events = hooks(Guard())
    await made.ask(Call(hook="fetch_page"))
    assert events == []


async def test_an_automation_that_fails_has_not_agreed():
    made, events = hooks(Broken())
    with pytest.raises(Refused, match="Broken failed with ValueError"):
        await made.ask(CALL)
    assert [event.name for event in events] == ["automation.failed", "call.refused"]


async def test_an_automation_that_does_not_decide_has_not_agreed(monkeypatch):
    monkeypatch.setattr(hook_manager, "VETO_SECONDS", 0.01)

    class Slow:
        @hookimpl
        async def before_call(self, call):
            await anyio.sleep(5)

    made, _ = hooks(Slow())
    with pytest.raises(Refused, match="did not decide in time"):
        await made.ask(CALL)


async def never():
    await anyio.sleep_forever()


async def awaits_a_cancelled_task():
    task = asyncio.ensure_future(never())
    asyncio.get_running_loop().call_soon(task.cancel)
    await task


async def cancels_itself():
    asyncio.current_task().cancel()
    await anyio.sleep(0)


async def awaits_a_cancelled_future():
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


async def raises_in_a_group():
    raise BaseExceptionGroup("", [asyncio.CancelledError(), SystemExit(0)])


async def swallows_its_deadline():
    with suppress(asyncio.CancelledError):
        await never()


async def times_out_itself():
    async with asyncio.timeout(0):
        await never()


def raising(error):
    async def end():
        raise error

    end.__name__ = repr(error)
    return end


def returning(value):
    async def end():
        return value() if callable(value) else value

    end.__name__ = f"returns {getattr(value, '__name__', value)}"
    return end


ENDS = [
    awaits_a_cancelled_task, cancels_itself, awaits_a_cancelled_future, raises_in_a_group, swallows_its_deadline, never,
    times_out_itself, *map(raising, [
        RuntimeError(), SystemExit(), SystemExit(0), SystemExit("bye"), KeyboardInterrupt(), GeneratorExit(),
        StopIteration(), StopAsyncIteration(), asyncio.CancelledError(), asyncio.InvalidStateError(), MemoryError(),
        BaseException(), ExceptionGroup("", [Refused("inside")]),
    ]), *map(returning, [False, 0, "", "no", [], never]),
]  # fmt: skip
"""Every way in which the code of an automation ends, but for a plain return."""


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
async def test_only_a_guard_that_returns_has_agreed_and_the_others_are_heard_too(monkeypatch, end):
    monkeypatch.setattr(hook_manager, "VETO_SECONDS", 0.02)
    monkeypatch.setattr(hook_manager, "OBSERVE_SECONDS", 0.02)

    class Ends:
        @hookimpl
        async def before_call(self, call):
            return await end()

        @hookimpl
        async def on_event(self, event):
            return await end()

    made, events = hooks(Guard(), Ends(), vetoing("third"))
    with pytest.raises(Refused) as caught:
        await made.ask(CALL)
    message = caught.value.message
    assert message.startswith("Guard: fetch_page on prod; Ends ")
    assert message.endswith("; third says no; nothing was sent")
    with pytest.raises(Refused):
        await made.ask(Call(hook="fetch_page"))
    await tell(made, ConnectionClosed(connection="c"))
    assert [(event.automation, event.hook) for event in events if event.name == "automation.failed"] == [
        ("Ends", "fetch_page"), ("Ends", "fetch_page"), ("Ends", "on_event"),
    ]  # fmt: skip


@pytest.mark.parametrize("value", [None, True])
async def test_a_guard_agrees_by_returning(value):
    class Agrees:
        @hookimpl
        async def before_call(self, call):
            return value

    made, events = hooks(Agrees())
    await made.ask(CALL)
    assert events == []


@pytest.mark.parametrize("native", [True, False], ids=["a cancelled task", "a cancelled scope"])
async def test_a_cancellation_of_the_caller_is_no_veto_and_goes_on(native):
    class Slow:
        @hookimpl
        async def before_call(self, call):
            await never()

    made, events = hooks(Slow())
    ended = []

    async def call(scope):
        with scope:
            try:
                await made.ask(CALL)
            except BaseException as error:
                ended.append(type(error))
                raise
            ended.append("went on")

    async with anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()
        if native:
            task = asyncio.ensure_future(call(scope))
            await anyio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            tasks.start_soon(call, scope)
            await anyio.sleep(0.01)
            scope.cancel()
    assert ended == [asyncio.CancelledError]
    assert events == []


@pytest.mark.parametrize("answer", [False, None, 1, "yes", "no", [True], never])
async def test_only_the_answer_true_is_consent(answer):
    assert await ask_consent(None, QUESTION) is False

    async def confirm(question):
        return answer

    assert await ask_consent(confirm, QUESTION) is False


UNANSWERED = [awaits_a_cancelled_task, awaits_a_cancelled_future, raising(SystemExit(0)), raising(GeneratorExit())]


@pytest.mark.parametrize("end", UNANSWERED, ids=lambda end: end.__name__)
async def test_a_question_that_ends_without_an_answer_is_refused(end):
    async def confirm(question):
        await end()

    with pytest.raises(Refused, match="nobody answered 'Sure"):
        await ask_consent(confirm, QUESTION)


async def test_a_cancellation_of_the_caller_ends_a_question():
    async def confirm(question):
        await never()

    with anyio.move_on_after(0.01) as scope:
        await ask_consent(confirm, QUESTION)
    assert scope.cancelled_caught


async def tell(made, event):
    for observer in made.observers():
        await made.tell(observer, event)


async def test_a_failing_observer_is_reported_and_stops_nobody():
    observer = Observer()
    made, events = hooks(Broken(), observer)
    await tell(made, ConnectionClosed(connection="c"))
    assert observer.seen == ["connection.closed"]
    assert [(event.name, event.automation) for event in events] == [("automation.failed", "Broken")]
    await tell(made, events[0])
    assert len(events) == 1, "a failure to hear of a failure is not reported again"


async def test_an_observer_that_hangs_is_interrupted_and_reported(monkeypatch):
    monkeypatch.setattr(hook_manager, "OBSERVE_SECONDS", 0.01)

    class Hangs:
        @hookimpl
        async def on_event(self, event):
            await anyio.sleep_forever()

    made, events = hooks(Hangs())
    await tell(made, ConnectionClosed(connection="c"))
    assert [(event.automation, event.reason) for event in events] == [("Hangs", "did not finish within 0.01 s")]


async def test_of_guards_that_disagree_each_veto_counts_and_each_is_told():
    class Agrees:
        @hookimpl
        async def before_call(self, call):
            pass

    class Late:
        @hookimpl
        async def before_call(self, call):
            await anyio.sleep(0.01)
            raise Refused("not on Fridays", hint="wait", code="friday", details={"day": 5})

    made, events = hooks(Late(), Agrees(), Broken(), Guard())
    with pytest.raises(Refused) as caught:
        await made.ask(CALL)
    told = "Late: not on Fridays; Broken failed with ValueError: oops; Guard: fetch_page on prod; nothing was sent"
    assert caught.value.message == told
    assert (caught.value.code, caught.value.hint, caught.value.details) == ("friday", "wait", {"day": 5})
    refused = [event.automation for event in events if event.name == "call.refused"]
    assert refused == ["Late", "Broken", "Guard"]


async def test_automations_of_one_name_are_told_apart():
    made, events = hooks(Guard(), Guard())
    with pytest.raises(Refused):
        await made.ask(CALL)
    assert [event.automation for event in events] == ["Guard", "Guard (2)"]
    twice = Guard()
    with pytest.raises(ConfigurationError, match="already registered"):
        hooks(twice, twice)


async def test_a_plain_function_where_a_coroutine_is_wanted_is_refused_at_once():
    class Wrong:
        @hookimpl
        def before_call(self, call):
            pass

    with pytest.raises(ConfigurationError, match=r"Wrong\.before_call must be written .* async def"):
        hooks(Wrong())


async def test_a_misspelt_hook_is_refused_at_once_with_its_place_and_the_right_name():
    class Misspelt:
        @hookimpl
        async def before_cal(self, call):
            pass

    line = Misspelt.before_cal.__code__.co_firstlineno
    with pytest.raises(ConfigurationError) as caught:
        hooks(Misspelt())
    place = f"{__file__}:{line}: unknown hook before_cal; did you mean before_call?"
    assert caught.value.message == f"Misspelt cannot be used: {place}"


async def test_a_guard_that_names_its_hooks_is_asked_about_these_and_no_others():
    class Choosy(Guard):
        decides_on = frozenset({"apply_change"})

    hooks = Hooks([Choosy()], emit=lambda _: None)
    await hooks.ask(CALL)
    with pytest.raises(Refused, match="Choosy: apply_change on prod"):
        await hooks.ask(msgspec.structs.replace(CALL, hook="apply_change"))
    await hooks.ask(CALL)
    with pytest.raises(Refused, match=r"^Guard: fetch_page on prod; nothing was sent$"):
        await Hooks([Choosy(), Guard()], emit=lambda _: None).ask(CALL)


async def test_a_guard_that_compares_by_its_values_is_asked_as_any_other():
    @dataclass
    class Equal(Guard):
        limit: int = 1

    for guards in ([Equal()], [Equal(), Equal(limit=2)], [Equal(), Guard()]):
        with pytest.raises(Refused, match="Equal: fetch_page on prod"):
            await Hooks(guards, emit=lambda _: None).ask(CALL)


@pytest.mark.parametrize(
    "hooks", [frozenset({"apply_changes"}), {"apply_change"}, "apply_change", None, frozenset(), frozenset({"close"})]
)
def test_a_guard_that_names_hooks_which_no_call_has_is_refused_at_once(hooks):
    class Misled(Guard):
        decides_on = hooks

    with pytest.raises(ConfigurationError, match="Misled cannot be used: its decides_on is") as caught:
        Hooks([Misled()], emit=lambda _: None)
    assert "leave it out" in caught.value.hint


def test_a_hook_without_its_mark_or_no_hook_at_all_is_refused_at_once():
    class Unmarked:
        async def before_call(self, call):
            raise Refused("never asked")

        @hookimpl
        async def on_event(self, event):
            pass

    with pytest.raises(ConfigurationError, match=r"test_hook_manager\.py:\d+: before_call lacks @hookimpl"):
        hooks(Unmarked())
    with pytest.raises(ConfigurationError, match="none of the hooks before_call and on_event"):
        hooks(object())


def test_an_automation_cannot_stand_in_for_a_driver():
    with pytest.raises(ConfigurationError, match="unknown hook describe_object"):
        hooks(Driver())


async def test_each_connection_has_its_own_driver():
    made, _ = hooks()
    first, second = made.for_connection(Driver("first")), made.for_connection(Driver("second"))
    assert await first.call("describe_object", "a", deadline=1) == "first:a"
    assert await second.call("describe_object", "a", deadline=1) == "second:a"


async def test_a_hook_that_the_driver_lacks_is_unsupported_and_said_so():
    made, _ = hooks(driver=Driver())
    assert made.offers("describe_object")
    assert not made.offers("ping")
    with pytest.raises(UnsupportedOperationError, match="no ping") as caught:
        await made.call("ping", deadline=1)
    assert caught.value.details == {"hook": "ping"}
    with pytest.raises(UnsupportedOperationError):
        _ = [part async for part in hooks()[0].stream("export_rows", None)]


async def test_errors_of_the_tree_pass_and_foreign_ones_become_a_fault():
    with pytest.raises(QueryError):
        await hooks(driver=Driver(QueryError("no")))[0].call("describe_object", "a", deadline=1)
    with pytest.raises(DriverFaultError, match="describe_object"):
        await hooks(driver=Driver(KeyError("x")))[0].call("describe_object", "a", deadline=1)
    with pytest.raises(DriverFaultError, match="export_rows"):
        _ = [part async for part in hooks(driver=Driver(KeyError("x")))[0].stream("export_rows", None)]


async def test_a_hook_has_a_deadline():
    with pytest.raises(DeadlineExceededError):
        await hooks(driver=Driver("late"))[0].call("describe_object", "a", deadline=0.01)


def test_the_table_of_hooks_is_the_specification():
    specified = {name: spec for name, spec in vars(DriverSpec).items() if not name.startswith("_")}
    assert {*HOOKS} == {*specified}
    for name, spec in specified.items():
        kind, hints = HOOKS[name], {key: value for key, value in spec.__annotations__.items() if key != "return"}
        assert kind.stream == inspect.isasyncgenfunction(spec), name
        travels = [hints["first_object"]] if name == "connect" else [*hints.values()]  # the rest is handed over before
        request = kind.request.__name__ if isinstance(kind.request, type) else str(kind.request)
        assert travels == ([] if kind.request is None else [request]), name
        returned = "None" if kind.stream else spec.__annotations__["return"]
        assert kind.result == eval(returned, vars(table)), name
        assert kind.seconds > 0
