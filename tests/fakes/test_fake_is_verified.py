"""The fake answers as real servers did: to every request of the table, to friend and stranger, on every release."""

from __future__ import annotations

import pytest

from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from fakes.verified import recording, strangers
from fakes.verified.__main__ import ask
from fakes.verified.comparing import differences, send
from fakes.verified.table import TABLE
from slow_cases import mostly_slow

RECORDED = recording.read(recording.TABLE)
RECORDED_STRANGERS = recording.read(recording.STRANGERS)


async def ask_fake(version):
    async with FakeElasticsearch(version=version) as server:
        return await send(server.url, TABLE, version), server.faults


async def knock_at_fake(server):
    async with strangers.mirror(server) as fake:
        return await strangers.knock(fake.url, server, True)


def test_each_question_is_asked_once_and_was_answered_by_a_real_server():
    names = [each.name for each in TABLE]
    assert len(set(names)) == len(names)
    for version, answers in RECORDED.items():
        parts = tuple(int(part) for part in version.split("."))
        assert set(answers) == {each.name for each in TABLE if each.fits(parts)}


@pytest.mark.parametrize("version", mostly_slow(["7.10.2", "7.17.29", "8.7.1", "8.19.21", "9.5.3"], fast=["8.19.21"]))
async def test_the_fake_answers_as_was_recorded_from_the_real_server(version):
    answers, faults = await ask_fake(version)
    assert not differences(answers, RECORDED[version])
    assert not [fault for fault in faults if "does not reproduce" in fault.reason]


@pytest.mark.parametrize("version", ["7.10.2", "8.19.21"])
async def test_the_fake_treats_people_as_was_recorded_from_the_real_server(version):
    answers = await knock_at_fake({"version": version, **strangers.SOMEBODY})
    assert not differences(answers, RECORDED_STRANGERS[version])


@pytest.mark.live("elasticsearch")
async def test_the_real_server_answers_as_the_fake_does(live_server):
    real = await ask(live_server)
    if live_server["security"]:
        fake = await knock_at_fake(live_server)
    else:
        fake, _ = await ask_fake(live_server["version"])
    assert not differences(fake, real)
