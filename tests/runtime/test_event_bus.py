"""The event bus: order, loss that is told, sinks."""

from __future__ import annotations

import json
import os

import anyio
import pytest

from dragoman import Runtime, runtime
from dragoman.automations.event_bus import BUFFER, LONGEST, Bus
from dragoman_api import hookimpl
from dragoman_api.errors import ConfigurationError
from dragoman_api.events import ConnectionClosed, ConnectionFailed, EventsDropped


def closed(number: int) -> ConnectionClosed:
    return ConnectionClosed(connection=str(number))


async def test_a_subscriber_reads_events_in_order_until_it_ends():
    bus = Bus()
    with bus.subscribe() as subscription:
        bus.emit(closed(1))
        bus.emit(closed(2))
    assert [event.connection async for event in subscription] == ["1", "2"]


async def test_a_slow_subscriber_is_told_how_many_events_it_lost(monkeypatch):
    monkeypatch.setattr("dragoman.automations.event_bus.BUFFER", 2)
    bus = Bus()
    with bus.subscribe() as subscription:
        for number in range(5):
            bus.emit(closed(number))
    first, *rest = [event async for event in subscription]
    assert isinstance(first, EventsDropped)
    assert first.count == 3
    assert [event.connection for event in rest] == ["3", "4"]


async def test_a_sink_sees_every_event_before_emit_returns():
    bus = Bus()
    seen = []
    bus.add_sink(seen.append)
    bus.emit(closed(1))
    assert [event.name for event in seen] == ["connection.closed"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ConfigurationError("full"), KeyError("x")])
async def test_a_sink_that_fails_keeps_no_event_from_the_others_and_is_named_to_all(error):
    def fail(event):
        raise error

    bus, first, last = Bus(), [], []
    bus.add_sink(first.append)
    bus.add_sink(fail)
    bus.add_sink(last.append)
    with bus.subscribe() as subscription:
        bus.emit(closed(1))
        bus.emit(closed(2))
    for events in (first, last, [event async for event in subscription]):
        assert [event.name for event in events] == ["connection.closed", "automation.failed"] * 2
        assert (events[1].automation.rpartition(".")[2], events[1].hook) == ("fail", "on_event")
        assert str(error.args[-1]) in events[1].reason


async def test_events_before_a_subscription_are_not_delivered():
    bus = Bus()
    bus.emit(closed(1))
    with bus.subscribe() as subscription:
        pass
    assert [event async for event in subscription] == []


class Observer:
    """Hears events, once it may."""

    def __init__(self, *, may=None):
        self.heard, self._may = [], may

    @hookimpl
    async def on_event(self, event):
        if self._may is not None:
            await self._may.wait()
        self.heard.append(event)


async def test_an_automation_that_is_slow_is_told_what_it_lost_and_holds_up_no_other():
    slow, quick = Observer(may=anyio.Event()), Observer()
    async with Runtime(spare=False, use=[slow, quick]) as open_runtime:
        for number in range(BUFFER + 50):
            open_runtime._bus.emit(closed(number))
            if number % 100 == 0:
                await anyio.wait_all_tasks_blocked()
        await anyio.wait_all_tasks_blocked()
        assert [event.connection for event in quick.heard] == [str(number) for number in range(BUFFER + 50)]
        slow._may.set()
    lost = [event.count for event in slow.heard if isinstance(event, EventsDropped)]
    assert lost
    assert sum(lost) + len(slow.heard) - len(lost) == BUFFER + 50


async def test_an_automation_that_gets_on_is_told_everything_before_the_end(monkeypatch):
    monkeypatch.setattr(runtime, "LAST_EVENTS_SECONDS", 0.2)

    class Slow(Observer):
        @hookimpl
        async def on_event(self, event):
            await anyio.sleep(0.03)
            self.heard.append(event)

    slow = Slow()
    async with Runtime(spare=False, use=[slow]) as open_runtime:
        for number in range(20):
            open_runtime._bus.emit(closed(number))
    assert len(slow.heard) == 20


async def test_an_automation_that_hangs_does_not_hold_up_the_end_and_is_named(monkeypatch):
    monkeypatch.setattr(runtime, "LAST_EVENTS_SECONDS", 0.05)
    hangs, seen = Observer(may=anyio.Event()), []
    open_runtime = Runtime(spare=False, use=[hangs])
    open_runtime.add_sink(seen.append)
    async with open_runtime:
        for number in range(3):
            open_runtime._bus.emit(closed(number))
        await anyio.wait_all_tasks_blocked()
    told = [event for event in seen if event.name == "automation.failed"]
    assert [event.automation for event in told] == ["Observer"]
    assert told[0].reason == "was still busy after 0.05 s; 2 events were not delivered"


def test_no_event_carries_a_secret_that_somebody_learned():
    bus, seen = Bus(), []
    bus.add_sink(seen.append)
    bus.mask.add(["hunter2-and-more"])
    with bus.subscribe() as subscription:
        bus.emit(ConnectionFailed(connection="shop", code="x", reason="it said hunter2-and-more"))
    assert seen[0].reason == "it said ***"
    assert subscription.waiting == 1


def test_a_text_of_an_event_is_bounded_whoever_chose_it():
    bus, seen = Bus(), []
    bus.add_sink(seen.append)
    bus.emit(closed("x" * 50_000_000))
    assert len(seen[0].connection) < LONGEST + 100
    assert seen[0].connection.endswith("(49,996,000 more characters)")


def test_an_event_as_json_holds_nothing_that_a_terminal_obeys_and_keeps_its_values():
    said = "a\x1b[2J\x9b31m\u202eb\x7f\u2028é"
    text = closed(said).to_json()
    assert text.isprintable()
    assert json.loads(text)["connection"] == said


def test_a_name_of_a_file_that_is_no_text_is_told_all_the_same():
    name = os.fsdecode(b"caf\xe9")
    text = ConnectionClosed(connection=name).to_json()
    assert text.isascii()
    assert next(iter(json.loads(text).items())) == ("name", "connection.closed")
    assert json.loads(text)["connection"] == name
