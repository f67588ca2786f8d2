"""The fake Weaviate answers as a real one did: to every request of the tables, on every kind of server."""

from __future__ import annotations

import ssl

import pytest

from fakes.verified.weaviate import tables
from fakes.verified.weaviate.comparing import differences
from fakes.verified.weaviate.people import mirror, mode_of, record

VERSION = "1.38.11"


async def ask_fake(server):
    async with mirror(server) as fake:
        return await tables.ask(fake.url, server, mode_of(server)), fake.faults


@pytest.mark.parametrize("mode", tables.MODES)
def test_each_question_is_asked_once_and_was_answered_by_a_real_server(mode):
    names = [each.name for each in tables.MODES[mode]]
    assert len(set(names)) == len(names)
    assert set(tables.read(mode)) == set(names)


@pytest.mark.parametrize("mode", tables.MODES)
async def test_the_fake_answers_as_was_recorded_from_the_real_server(mode):
    answers, faults = await ask_fake(record(mode, VERSION))
    assert not differences(answers, tables.read(mode))
    assert not [fault for fault in faults if "does not reproduce" in fault.reason]


@pytest.mark.live("weaviate")
async def test_the_real_server_answers_as_the_fake_does(live_server):
    trusted = ssl.create_default_context(cafile=live_server["ca_file"]) if live_server["tls"] else True
    real = await tables.ask(live_server["url"], live_server, mode_of(live_server), trusted)
    fake, _ = await ask_fake(live_server)
    assert not differences(fake, real)
