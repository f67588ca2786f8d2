"""A token that ends in the midst of an export: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import pytest
from api.test_oauth import profile
from drivers.elasticsearch import rig as elasticsearch

from dragoman_api import ExportRequest
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from fakes.proxy import Proxy
from token_endpoint import NewestToken, TokenEndpoint

ROWS = 5_000


@pytest.mark.slow
async def test_E32_an_export_goes_on_when_its_token_is_revoked_in_the_midst_of_it() -> None:
    with TokenEndpoint() as endpoint:
        async with (
            FakeElasticsearch() as fake,
            Proxy(upstream=fake.url, required=NewestToken(endpoint), refusal=401) as gate,
            elasticsearch.connected(profile(gate.port, endpoint.url), version="8.19.21") as es,
        ):
            name = await es.index({"n": {"type": "long"}}, [{"n": number} for number in range(ROWS)])
            before, ids = len(endpoint.forms), list[bytes]()
            async for part in es.driver.export_rows(ExportRequest(object=name)):
                ids += bytes(part.data).splitlines()
                if len(ids) < ROWS / 2:
                    endpoint.tokens.append("another one")  # the one in use is not accepted any more
            assert len(ids) == len({*ids}) == ROWS
            assert len(endpoint.forms) > before
            assert fake.faults == []
