"""The event bus: order, loss that is told, sinks."""

from __future__ import annotations

from dragoman._bus import Bus
from dragoman_api.events import ConnectionClosed, EventsDropped


def closed(number: int) -> ConnectionClosed:
    return ConnectionClosed(connection=str(number))


async def test_a_subscriber_reads_events_in_order_until_it_ends():
    bus = Bus()
    with bus.subscribe() as subscription:
        bus.emit(closed(1))
        bus.emit(closed(2))
    assert [event.connection async for event in subscription] == ["1", "2"]


async def test_a_slow_subscriber_is_told_how_many_events_it_lost():
    bus = Bus()
    with bus.subscribe(buffer=2) as subscription:
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


async def test_events_before_a_subscription_are_not_delivered():
    bus = Bus()
    bus.emit(closed(1))
    with bus.subscribe() as subscription:
        pass
    assert [event async for event in subscription] == []
