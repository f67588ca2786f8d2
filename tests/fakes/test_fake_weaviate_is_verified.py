"""The fake Weaviate answers as a real one did: to every request of the tables, on every kind of server."""

from __future__ import annotations

import ssl

import pytest

from fakes.verified.weaviate import tables
from fakes.verified.weaviate.comparing import differences
from fakes.verified.weaviate.people import mirror, record
from slow_cases import mostly_slow

VERSION = "1.38.11"


async def ask_fake(server, table):
    async with mirror(server) as fake:
        return await tables.ask(fake.url, server, table), fake.faults


@pytest.mark.parametrize("table", tables.TABLES)
def test_each_question_is_asked_once_and_was_answered_by_a_real_server(table):
    names = [each.name for each in tables.TABLES[table]]
    assert len(set(names)) == len(names)
    assert set(tables.read(table)) == set(names)


@pytest.mark.parametrize("table", mostly_slow(tables.TABLES, fast=["reads"]))
async def test_the_fake_answers_as_was_recorded_from_the_real_server(table):
    answers, faults = await ask_fake(record(table, VERSION), table)
    assert not differences(answers, tables.read(table))
    assert not [fault for fault in faults if "does not reproduce" in fault.reason]


@pytest.mark.live("weaviate")
@pytest.mark.timeout(300)  # two servers, hundreds of requests each
@pytest.mark.parametrize("number", range(4))
async def test_the_real_server_answers_as_the_fake_does(live_server, number):
    names = tables.tables_of(live_server)
    if number >= len(names):
        pytest.skip("this server has one table")
    trusted = ssl.create_default_context(cafile=live_server["ca_file"]) if live_server["tls"] else True
    real = await tables.ask(live_server["url"], live_server, names[number], trusted)
    fake, _ = await ask_fake(live_server, names[number])
    assert not differences(fake, real, live=True)
