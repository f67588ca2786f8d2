"""The fake answers as real servers did: to every request of the table, on every release."""

from __future__ import annotations

import pytest
from fakes.elasticsearch import FakeElasticsearch
from fakes.verified import recording
from fakes.verified.__main__ import clean
from fakes.verified.comparing import differences, send
from fakes.verified.table import TABLE

RECORDED = recording.read()


def numbers(version):
    return tuple(int(part) for part in version.split("."))


async def ask_fake(version):
    async with FakeElasticsearch(version=version) as server:
        answers = await send(server.url, TABLE, numbers(version), headers={}, ssl=None)
        return answers, server.faults


def test_the_table_asks_every_question_once_and_each_was_answered_by_a_real_server():
    names = [ask.name for ask in TABLE]
    assert len(set(names)) == len(names)
    for version, answers in RECORDED.items():
        assert set(answers) == {ask.name for ask in TABLE if ask.fits(numbers(version))}


@pytest.mark.parametrize("version", ["7.10.2", "7.17.29", "8.7.1", "8.19.21", "9.5.3"])
async def test_the_fake_answers_as_was_recorded_from_the_real_server(version):
    answers, faults = await ask_fake(version)
    assert not differences(answers, RECORDED[version])
    assert not [fault for fault in faults if "does not reproduce" in fault.reason]


@pytest.mark.live("elasticsearch")
async def test_the_real_server_answers_as_the_fake_does(live_server):
    if live_server["security"]:
        pytest.skip("the table is for open servers; test_security compares the others")
    await clean(live_server["url"])
    real = await send(live_server["url"], TABLE, numbers(live_server["version"]), headers={}, ssl=None)
    answers, _ = await ask_fake(live_server["version"])
    assert not differences(answers, real)
