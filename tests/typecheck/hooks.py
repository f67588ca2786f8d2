"""How a session calls hooks, as a type checker sees it; never executed, only read by mypy."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_type

from dragoman_api.connections import Health
from dragoman_api.grid import CountRequest, Page, PageRequest
from dragoman_api.hookspecs import DriverSpec

if TYPE_CHECKING:
    from dragoman.sessions.driver_calls import DriverCalls


async def calls(calls: DriverCalls, page: PageRequest, count: CountRequest) -> None:
    """The types of a specification hold for what is sent and what comes back."""
    assert_type(await calls.run(DriverSpec.fetch_page, page, object="books"), Page)
    assert_type(await calls.run(DriverSpec.count_rows, count), int)
    assert_type(await calls.run(DriverSpec.ping), Health)
    await calls.run(DriverSpec.fetch_page, count)  # type: ignore[arg-type]
    await calls.run(DriverSpec.fetch_page)  # type: ignore[arg-type]
