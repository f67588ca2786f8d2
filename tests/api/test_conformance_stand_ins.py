"""The conformance tests demand nothing that a key-value store or a time series cannot give."""

from __future__ import annotations

from itertools import count

import pytest
from examples.stand_ins import key_value, time_series
from msgspec.structs import replace

from dragoman_api import (
    CellRequest,
    CountRequest,
    Delete,
    ExportRequest,
    Filter,
    Insert,
    ObjectsRequest,
    OutcomeStatus,
    PageRequest,
    PlanRequest,
    Profile,
    QueryError,
    Role,
    RowKey,
    TimeRange,
    Update,
)
from dragoman_api.connections import Secrets
from dragoman_api.errors import AuthenticationError, RevisionGoneError, RowNotFoundError, WindowExceededError
from dragoman_api.kit.derived_hooks import export_from_pages
from dragoman_api.testing import DriverConformance, Proxy, Target, opened
from dragoman_sample.fakes.serving import serving
from fakes import time_series as fake_series
from fakes.key_values import PASSWORD, USER, KeyValues

pytestmark = pytest.mark.anyio

KEYS = [b"books/%02d" % number for number in range(20)] + [b"books/\xff\x00", "books/ä%".encode(), b"books/\xfe"]


def filled(*, auth: bool = False) -> KeyValues:
    store = KeyValues(auth=auth)
    store.leases[1] = 60
    for number, key in enumerate(KEYS):
        store.put(key, b"\xff" if number == 3 else b"" if number == 4 else b"value %d" % number, lease=number % 2)
    store.put(b"scratch/first", b"first")
    store.put(b"alone", b"no prefix")
    return store


class TestKeyValueStore(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self, open_driver):
        numbers = count()
        async with serving(filled()) as (_, host, port), Proxy(f"http://{host}:{port}") as proxy:
            profile = Profile(name="fake", type="keys", host=proxy.host, port=proxy.port)
            async with open_driver(key_value.Driver, profile) as driver:
                yield Target(
                    driver=driver,
                    object="books/",
                    rows=len(KEYS),
                    log=proxy.log,
                    lose=proxy.lose,
                    scratch="scratch/",
                    row={"value": b"new \xff"},
                    new_id=lambda: b"scratch/\xfe new %d" % next(numbers),
                    change={"value": b"other", "lease": 1},
                )


def profile(port: int, password: str) -> Profile:
    return Profile(
        name="fake", type="keys", host="127.0.0.1", port=port,
        options={"auth_method": "session", "username": USER}, secrets=Secrets(values={"password": password}),
    )  # fmt: skip


async def test_a_driver_that_signs_in_does_so_once_and_again_after_a_restart():
    async with serving(filled(auth=True)) as (store, _, port):
        driver = key_value.Driver()
        async with opened(driver, profile(port, PASSWORD)) as sent:
            assert [each.name for each in await driver.list_objects(ObjectsRequest())] == ["books/", "scratch/"]
            store.tokens.clear()
            assert (await driver.ping()).ok
            assert [each.path for each in sent].count("/v3/auth/authenticate") == 2


async def test_a_driver_that_signs_in_says_that_the_password_is_wrong():
    async with serving(filled(auth=True)) as (_, host, port), Proxy(f"http://{host}:{port}") as proxy:
        with pytest.raises(AuthenticationError) as caught:
            async with opened(key_value.Driver(), profile(proxy.port, "wrong-password")):
                pass
        assert "wrong-password" not in str(caught.value)
        assert len(proxy.log) == 1


@pytest.mark.parametrize("limit", [len(KEYS), len(KEYS) + 1, 7, 1])
@pytest.mark.parametrize("totals", [True, False])
async def test_an_export_of_a_store_without_offsets_ends_with_its_last_page(limit, totals):
    """The last page has no cursor; without a total it might not be the last, so that is an error."""
    async with serving(filled()) as (_, _, port):
        driver = key_value.Driver()

        async def fetch_page(request):
            page = await driver.fetch_page(request)
            return page if totals else replace(page, total=None)

        async with opened(driver, Profile(name="fake", type="keys", host="127.0.0.1", port=port)):
            parts = export_from_pages(fetch_page, ExportRequest(object="books/"), limit=limit)
            if limit >= len(KEYS) and not totals:
                with pytest.raises(WindowExceededError):
                    assert [part async for part in parts] == []
            else:
                assert sum([part.rows async for part in parts]) == len(KEYS)


async def test_an_export_stays_at_the_revision_in_which_it_began():
    """A key that is deleted between two parts is in the export, one that is new is not."""
    async with serving(filled()) as (store, _, port):
        driver = key_value.Driver()
        async with opened(driver, Profile(name="fake", type="keys", host="127.0.0.1", port=port)):
            parts = export_from_pages(driver.fetch_page, ExportRequest(object="books/"), limit=5)
            rows = (await anext(parts)).rows
            store.revisions.append({key: kept for key, kept in store.revisions[-1].items() if key != b"books/19"})
            store.put(b"books/99", b"new")
            assert rows + sum([part.rows async for part in parts]) == len(KEYS)


async def test_a_cursor_of_another_revision_and_a_compacted_one_are_told():
    async with serving(filled()) as (store, _, port):
        driver = key_value.Driver()
        async with opened(driver, Profile(name="fake", type="keys", host="127.0.0.1", port=port)):
            page = await driver.fetch_page(PageRequest(object="books/", limit=5))
            store.put(b"books/99", b"new")
            with pytest.raises(QueryError):
                await driver.fetch_page(PageRequest(object="books/", limit=5, cursor=page.next, revision="3"))
            store.compacted = int(page.revision)
            for asked in ({"cursor": page.next}, {"revision": page.revision}):
                with pytest.raises(RevisionGoneError):
                    await driver.fetch_page(PageRequest(object="books/", limit=5, **asked))


async def test_a_lease_shows_its_seconds_and_is_kept_by_an_update_of_the_value():
    store = filled()
    store.leases[7] = 30
    async with serving(store) as (_, _, port):
        driver = key_value.Driver()
        async with opened(driver, Profile(name="fake", type="keys", host="127.0.0.1", port=port)):
            target = Target(driver=driver, object="books/", rows=len(KEYS))
            for values, expected in (({"lease": 7}, 30), ({"value": "AP8="}, 30), ({"lease": None}, None)):
                [row] = [row for row in await target.all_rows() if row.key.id == b"books/02"]
                plan = await driver.plan_change(PlanRequest(changes=[Update(row.key, values)]))
                [outcome] = await driver.apply_change(replace(plan, changes=[Update(row.key, values)]))
                assert outcome.status is OutcomeStatus.APPLIED, outcome.reason
                [row] = [row for row in await target.all_rows() if row.key.id == b"books/02"]
                assert row["ttl"] == expected
            assert row["value"] == b"\0\xff"


async def test_a_row_that_the_server_removes_when_it_expires_is_gone_for_every_hook():
    """Planned changes meet a row that is gone; pages of the revision before still show it."""
    store = filled()
    async with serving(store) as (_, _, port):
        driver = key_value.Driver()
        async with opened(driver, Profile(name="fake", type="keys", host="127.0.0.1", port=port)):
            described = (await driver.describe_object("books/")).columns
            [expiry] = [column.name for column in described if column.role is Role.EXPIRY]
            first = await driver.fetch_page(PageRequest(object="books/", limit=5))
            leased = [row.key for row in first.rows if row[expiry] is not None]
            assert [row[expiry] for row in first.rows if row[expiry] is not None] == [60] * len(leased) != []
            changes = [Update(leased[0], {"value": b"late"}), Delete(leased[1])]
            plan = replace(await driver.plan_change(PlanRequest(changes=changes)), changes=changes)
            assert len(plan.planned) == 2
            store.expire(1)
            outcomes = await driver.apply_change(plan)
            assert [each.status for each in outcomes] == [OutcomeStatus.CONFLICT] * 2
            stays = sum(number % 2 == 0 for number in range(len(KEYS)))
            assert await driver.count_rows(CountRequest(object="books/")) == stays
            again = await driver.fetch_page(PageRequest(object="books/"))
            assert {row.key.id for row in again.rows}.isdisjoint(key.id for key in leased)
            assert {row[expiry] for row in again.rows} == {None}
            with pytest.raises(RowNotFoundError):
                await driver.fetch_cell(CellRequest(key=leased[0], column="value"))
            following = PageRequest(object="books/", limit=100, cursor=first.next, revision=first.revision)
            assert len(first.cells) + len((await driver.fetch_page(following)).cells) == len(KEYS)


@pytest.mark.parametrize("row", ["books/02", "Ym9va3MvMDI=", b"other/02", [b"books/02"]])
async def test_a_key_that_is_no_bytes_or_of_another_prefix_is_refused(row):
    """A text may be base64 by chance: `books/02` is."""
    async with serving(filled()) as (_, _, port):
        driver = key_value.Driver()
        async with opened(driver, Profile(name="fake", type="keys", host="127.0.0.1", port=port)):
            plan = await driver.plan_change(PlanRequest(changes=[Insert("books/", {"value": b"x"}, row)]))
            assert (plan.planned, plan.refusals[0].status) == ([], OutcomeStatus.REFUSED)


NOON = 1_700_000_000_000_000_000
POINTS = [
    (
        NOON + number // 2,
        {"host": f"h{number % 2}"} | ({"region": "e'u"} if number % 3 else {}),
        {"load": number / 4}
        | ({"up": number % 2 == 0, "note": f"n {number}", "n": 2**53 + number} if number % 5 else {}),
    )
    for number in range(24)
]


def series() -> fake_series.TimeSeries:
    store = fake_series.TimeSeries()
    for time, tags, fields in POINTS:
        store.add("cpu", time, tags, fields)
    store.add("scratch", 1, {"host": "a"}, {"load": 0.5, "note": "first"})
    return store


class TestTimeSeries(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self, open_driver):
        times = count(10)
        async with serving(series()) as (_, host, port), Proxy(f"http://{host}:{port}") as proxy:
            profile = Profile(name="fake", type="series", host=proxy.host, port=proxy.port)
            async with open_driver(time_series.Driver, profile) as driver:
                yield Target(
                    driver=driver,
                    object="metrics/cpu",
                    rows=len(POINTS),
                    log=proxy.log,
                    lose=proxy.lose,
                    scratch="metrics/scratch",
                    row={"load": 1.5, "note": 'a "new" point'},
                    new_id=lambda: [f"2026-01-01T00:00:{next(times)}.5Z", "b, c"],
                )


async def test_times_joined_by_or_would_find_nothing_so_the_driver_refuses():
    """The trap of the server: no error, no rows."""
    async with serving(series()) as (_, _, port):
        driver = time_series.Driver()
        async with opened(driver, Profile(name="fake", type="series", host="127.0.0.1", port=port)):
            assert len(await driver._read("metrics", f'SELECT * FROM "cpu" WHERE time = {NOON}')) == 2
            assert await driver._read("metrics", f'SELECT * FROM "cpu" WHERE time = {NOON} OR "host" = \'h0\'') == []


async def test_a_deletion_spares_the_point_that_has_one_tag_more():
    """A condition on some tags holds for all points that have them."""
    store = series()
    for tags in ({"host": "a"}, {"host": "a", "region": "eu"}):
        store.add("scratch", 7, tags, {"load": 1.0})
    async with serving(store) as (_, _, port):
        driver = time_series.Driver()
        async with opened(driver, Profile(name="fake", type="series", host="127.0.0.1", port=port)):
            target = Target(driver=driver, object="metrics/scratch", rows=3)
            await target.describe()
            [key] = [row.key for row in await target.all_rows() if row["time"].endswith("007Z") and row["region"] == ""]
            plan = await driver.plan_change(PlanRequest(changes=[Delete(key)]))
            [outcome] = await driver.apply_change(replace(plan, changes=[Delete(key)]))
            assert outcome.status is OutcomeStatus.APPLIED
            assert [row["region"] for row in await target.all_rows()] == ["", "eu"]


async def test_a_range_of_time_holds_beside_any_filter():
    """Under any, too: the two are joined by and, each in its brackets."""
    since = fake_series._shown(NOON + 6)
    async with serving(series()) as (_, _, port):
        driver = time_series.Driver()
        async with opened(driver, Profile(name="fake", type="series", host="127.0.0.1", port=port)):
            target = Target(driver=driver, object="metrics/cpu", rows=len(POINTS))
            await target.describe()
            compiled = await target.compile(Filter("host", "=", "h0"), Filter("n", ">=", 0), match="any")
            time = TimeRange(column="time", since=since, until=fake_series._shown(NOON + 8))
            due = [
                at
                for at, (when, tags, fields) in enumerate(POINTS)
                if NOON + 6 <= when < NOON + 8 and (tags["host"] == "h0" or "n" in fields)
            ]
            assert len(due) > 1
            assert len((await target.page(filter=compiled, time=time)).cells) == len(due)
            export = driver.export_rows(ExportRequest(object="metrics/cpu", filter=compiled, time=time))
            assert sum([part.rows async for part in export]) == len(due)


@pytest.mark.parametrize(
    "row", ["2026-01-01T00:00:00Z", ["2026-01-01T00:00:00Z"], ["now", "a"], ["2026-01-01T00:00:00Z", 1]]
)
async def test_an_incomplete_point_is_refused(row):
    async with serving(series()) as (_, _, port):
        driver = time_series.Driver()
        async with opened(driver, Profile(name="fake", type="series", host="127.0.0.1", port=port)):
            await driver.describe_object("metrics/scratch")
            for change in (Insert("metrics/scratch", {"load": 1.0}, row), Delete(RowKey("metrics/scratch", row))):
                plan = await driver.plan_change(PlanRequest(changes=[change]))
                assert (plan.planned, plan.refusals[0].status) == ([], OutcomeStatus.REFUSED)


async def test_a_deletion_is_shown_as_its_statement():
    async with serving(series()) as (_, _, port):
        driver = time_series.Driver()
        async with opened(driver, Profile(name="fake", type="series", host="127.0.0.1", port=port)):
            await driver.describe_object("metrics/scratch")
            page = await driver.fetch_page(PageRequest(object="metrics/scratch"))
            plan = await driver.plan_change(PlanRequest(changes=[Delete(page.keys[0])]))
            assert plan.planned[0].statement.startswith('DELETE FROM "scratch" WHERE time = ')
            assert "%" in plan.requests[0].body
