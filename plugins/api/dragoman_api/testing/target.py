"""The target of the conformance tests: an open driver, and what to expect of its server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pluggy
import pytest
from msgspec.json import Decoder

from dragoman_api.changes import HttpRequest, Insert, Values
from dragoman_api.errors import WindowExceededError
from dragoman_api.filters import CompiledFilter, Filter, FilterRequest
from dragoman_api.grid import CountRequest, PageRequest, Row, RowKey
from dragoman_api.hookspecs import PROJECT, DriverSpec
from dragoman_api.json_text import decode, exact_number

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dragoman_api.columns import Description
    from dragoman_api.connections import Profile
    from dragoman_api.grid import Page
    from dragoman_api.replies import Response

_exact = Decoder(float_hook=exact_number)

SAMPLE = 200
"""Number of rows from which the conformance tests take values for its filters."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """An open driver, and what the conformance tests may expect of it.

    Attributes:
        driver: A driver that has connected, or the host's proxy of one in its sandbox. What it implements decides
            which tests run.
        object: An object of seven to a few thousand rows that does not change during the run; the more kinds of
            columns, nulls, arrays and long cells it holds, the more is proven.
        rows: Its exact number of rows.
        log: The requests sent to the server so far, a growing list; None if they cannot be observed.
        lose: Returns, for one request and a status, a context in which the server carries out that request, and from it
            on no answer of the server arrives: a gateway answers with the status, or, if it is 0, the connection ends.
            None if answers cannot be lost.
        posts_that_read: Whether a request that is neither GET nor HEAD changes nothing on the server.
        scratch: An object that the conformance tests may write to; empty for none.
        row: Values of a new row in it.
        new_id: Returns an unused id for such a row; None if the server makes ids.
        change: Other values for some of these columns; empty if the driver updates no row.
        reads: Console texts of one reading request each, which may be sent.
        writes: Console texts of one writing request each, which are parsed only.
        broken: Console texts with a fault, and its line and column.
        values: Values to filter a column by, if those in its cells are unsuitable.
        raw_filter: A text for the filter row "Raw" that the server takes; empty if the driver has no such row.
        tells_missing: Whether the driver tells a field that a row does not hold (`MISSING`) from a null. Then a new
            row may leave out the first column of `change`, and that column may be null.
        manifest: The contents of `driver.json`; empty if they are not compared with the driver.
    """

    driver: Any
    object: str
    rows: int
    log: Sequence[HttpRequest] | None = None
    lose: Callable[[HttpRequest, int], AbstractContextManager[Any]] | None = None
    posts_that_read: Callable[[HttpRequest], bool] = lambda request: False
    scratch: str = ""
    row: Values = field(default_factory=dict)
    new_id: Callable[[], str] | None = None
    change: Values = field(default_factory=dict)
    reads: Sequence[str] = ()
    writes: Sequence[str] = ()
    broken: Sequence[tuple[str, int, int]] = ()
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    raw_filter: str = ""
    tells_missing: bool = False
    manifest: Mapping[str, Any] = field(default_factory=dict)

    def needs(self, *hooks: str) -> None:
        """Skip the test when the driver lacks a hook."""
        for hook in hooks:
            if hook not in hooks_of(self.driver):
                pytest.skip(f"the driver implements no {hook}")

    def given(self, *names: str) -> None:
        """Skip the test if the target lacks the data that it needs."""
        for name in names:
            if not getattr(self, name):
                pytest.skip(f"the target names no {name!r}")

    def sent(self) -> int:
        """Count the requests so far; 0 if they cannot be observed."""
        return len(self.log or ())

    def since(self, mark: int) -> list[HttpRequest]:
        """Return the requests since a mark of `sent`."""
        return list(self.log or ())[mark:]

    async def describe(self, name: str = "") -> Description:
        """Describe the object, as the host does before any other hook names it."""
        described: Description = await self.driver.describe_object(name or self.object)
        return described

    async def compile(self, *rows: Filter, match: str = "all") -> CompiledFilter:
        """Compile filter rows for the object."""
        request = FilterRequest(object=self.object, rows=list(rows), match=match)
        compiled: CompiledFilter = await self.driver.compile_filter(request)
        return compiled

    async def page(self, name: str = "", **options: Any) -> Page:
        """Fetch a page of the object."""
        page: Page = await self.driver.fetch_page(PageRequest(object=name or self.object, **options))
        return page

    async def count(self, name: str = "", *, where: CompiledFilter | None = None) -> int:
        """Count rows with the hook, or from pages if the driver lacks it."""
        if "count_rows" in hooks_of(self.driver):
            count: int = await self.driver.count_rows(CountRequest(object=name or self.object, filter=where))
            return count
        return len(await self.all_rows(name, where=where))

    def insert(self) -> Insert:
        """Return the insert of a new row."""
        return Insert(self.scratch, self.row, id=self.new_id() if self.new_id is not None else None)

    async def all_rows(
        self,
        name: str = "",
        *,
        where: CompiledFilter | None = None,
        columns: list[str] | None = None,
        limit: int = 1000,
    ) -> list[Row]:
        """Read page after page until one is short: by offset, or by cursor where the server has no offset."""
        rows: list[Row] = []
        cursor: str | None = None
        while True:
            query: dict[str, Any] = {"filter": where, "columns": columns, "offset": len(rows), "limit": limit}
            try:
                page = await self.page(name, **query)
            except WindowExceededError:
                if cursor is None:
                    return rows  # the last page was full
                page = await self.page(name, cursor=cursor, **query)
            rows, cursor = rows + page.rows, page.next
            if len(page.cells) < limit or len(rows) > self.rows + limit:
                return rows


def hooks_of(driver: object) -> frozenset[str]:
    """Name the driver hooks that an object implements, as pluggy would find them."""
    specs = {name for name, value in vars(DriverSpec).items() if hasattr(value, f"{PROJECT}_spec")}
    return frozenset(
        name for name in dir(driver) if name in specs and hasattr(getattr(driver, name), f"{PROJECT}_impl")
    )


def decoded(text: bytes | str) -> Any:
    """Return the value of a JSON text, with every digit of its numbers."""
    return decode(text, _exact)


def with_digits(value: Any) -> Any:
    """Return a value of decoded JSON that equals another exactly if both have the same digits; true is not 1."""
    match value:
        case dict():
            return {name: with_digits(member) for name, member in value.items()}
        case list():
            return [with_digits(element) for element in value]
        case int() | float() | Decimal() if not isinstance(value, bool):
            return Decimal(str(value))
    return isinstance(value, bool), value


def identity(key: RowKey) -> tuple[str, object, str | None]:
    """Return the identity that distinguishes two rows."""
    return key.object, tuple(key.id) if isinstance(key.id, list) else key.id, key.routing


@asynccontextmanager
async def opened(driver: Any, profile: Profile, *, first_object: str | None = None) -> AsyncIterator[list[HttpRequest]]:
    """Connect a driver in this process over a real HTTP client, and close both at the end.

    Args:
        driver: The driver, not yet connected.
        profile: The connection, secrets included.
        first_object: As for the hook `connect`.

    Yields:
        Every request the driver has sent, growing.
    """
    from dragoman_api.http import Http

    log: list[HttpRequest] = []

    class Recording(Http):
        async def request(self, method: str, path: str, **options: Any) -> Response:
            body, kind = options.get("body"), options.get("content_type", "application/json")
            text = body.decode(errors="replace") if isinstance(body, bytes) else body
            log.append(HttpRequest(method, path, text, kind))
            return await super().request(method, path, **options)

    async with Recording(profile) as http:
        manager = pluggy.PluginManager(PROJECT)  # which leaves out the parameters that a driver leaves out
        manager.add_hookspecs(DriverSpec)
        manager.register(driver)
        await manager.hook.connect(profile=profile, http=http, first_object=first_object)
        try:
            yield log
        finally:
            if "close" in hooks_of(driver):
                await driver.close()
