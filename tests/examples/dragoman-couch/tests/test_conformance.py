"""Conformance of the driver: on the fake, and with `--live FILE.json` on real servers."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from dragoman_couch.driver import Driver
from fake import BOOKS, serving

from dragoman_api import Profile
from dragoman_api.testing import DriverConformance, Target

MORE = {
    "manifest": json.loads(files("dragoman_couch").joinpath("driver.json").read_text()),
    "scratch": "scratch",
    "row": {"title": "New", "price": 3, "stock": 1},
    "change": {"price": 4},
    "reads": ["GET /books/book-01", 'POST /books/_find\n{"selector": {}}'],
    "writes": ["DELETE /books", 'PUT /books/x\n{"title": "x"}'],
    "broken": [("nonsense", 1, 1), ('GET /\n{"a":}', 2, 6)],
}


class TestOnFake(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self, open_driver):
        async with serving() as (_, proxy):
            profile = Profile(name="fake", type="couchdb", host=proxy.host, port=proxy.port)
            async with open_driver(Driver, profile) as driver:
                yield Target(driver=driver, object="books", rows=len(BOOKS), log=proxy.log, lose=proxy.lose, **MORE)


@pytest.mark.live("couchdb")
class TestOnServer(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self, open_driver, live_server):
        profile = Profile(name="live", type="couchdb", host=live_server["host"], port=live_server["port"])
        async with open_driver(Driver, profile) as driver:
            yield Target(driver=driver, object=live_server["object"], rows=live_server["rows"], **MORE)
