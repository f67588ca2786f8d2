"""Entering: one-time tokens, the secret in the header, expiry, log-out, the entry file."""

from __future__ import annotations

import os
import re
import stat
import subprocess

import anyio
import pytest

from browsing import tab_of
from dragoman_api.errors import ConfigurationError
from dragoman_workbench.access import (
    AT_ONCE,
    BURST,
    ENTRY_SECONDS,
    FAILURES,
    IDLE_SECONDS,
    MAX_SECRETS,
    TOKEN_SECONDS,
    Access,
)
from dragoman_workbench.serving import EntryFile, serving


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def access(clock):
    return Access(clock)


def test_a_token_is_exchanged_once(access):
    token = access.token()
    assert access.holds(token)
    secret = access.enter(token)
    assert access.tab(secret) is not None
    assert not access.holds(token)
    assert access.enter(token) is None


def test_a_token_expires(access, clock):
    token = access.token()
    clock.now += TOKEN_SECONDS
    assert access.enter(token) is None


def test_a_secret_expires_after_idling_and_not_before(access, clock):
    secret = access.enter(access.token())
    clock.now += IDLE_SECONDS - 1
    assert access.tab(secret).admit()
    clock.now += IDLE_SECONDS - 1
    assert access.tab(secret) is not None
    clock.now += 2
    assert access.tab(secret) is None


def test_a_tab_stays_signed_in_over_a_working_day_and_not_over_a_night(access, clock):
    secret = access.enter(access.token())
    clock.now += 7 * 3_600
    assert access.tab(secret) is not None
    clock.now += 5 * 3_600
    assert access.tab(secret) is None


def test_the_token_of_the_entry_file_outlives_that_of_a_further_tab(access, clock):
    entry, further = access.token(seconds=ENTRY_SECONDS), access.token()
    clock.now += 30
    assert access.holds(further)
    clock.now += 8 * 3_600
    assert (access.holds(entry), access.holds(further)) == (True, False)
    clock.now += 4 * 3_600
    assert not access.holds(entry)


def test_tokens_that_wait_are_bounded_and_the_oldest_goes_first(access, clock):
    tokens = []
    for _ in range(MAX_SECRETS + 1):
        tokens.append(access.token())
        clock.now += 0.01
    assert [access.holds(token) for token in tokens] == [False, *[True] * MAX_SECRETS]


def test_tokens_of_further_tabs_leave_that_of_the_entry_file_alone(access, clock):
    entry = access.token(seconds=ENTRY_SECONDS)
    for _ in range(2 * MAX_SECRETS):
        access.token()
        clock.now += 0.01
    assert access.holds(entry)


def test_tabs_are_bounded_and_the_one_that_was_idle_longest_goes(access, clock):
    secrets = []
    for _ in range(MAX_SECRETS):
        secrets.append(access.enter(access.token()))
        clock.now += 1
    assert access.tab(secrets[0]).admit()
    newest = access.enter(access.token())
    signed_in = [access.tab(secret) is not None for secret in (*secrets, newest)]
    assert signed_in == [True, False, *[True] * (MAX_SECRETS - 1)]


def test_a_running_request_keeps_its_tab(access, clock):
    secret = access.enter(access.token())
    access.tab(secret).running += 1
    clock.now += IDLE_SECONDS + 1
    assert access.tab(secret) is not None


def test_wrong_tokens_are_counted_for_a_minute(access, clock):
    for _ in range(FAILURES):
        assert not access.blocked()
        assert access.enter("wrong") is None
    assert access.blocked()
    assert access.enter(access.token()) is not None
    assert access.blocked()  # whoever guesses goes on guessing
    clock.now += 61
    assert not access.blocked()


def test_requests_of_one_tab_are_bounded_and_recover(access, clock):
    tab = access.tab(access.enter(access.token()))
    assert sum(tab.admit() for _ in range(int(BURST) + 50)) == BURST
    clock.now += 1
    assert sum(tab.admit() for _ in range(200)) == 100
    clock.now += 3_600
    assert sum(tab.admit() for _ in range(int(BURST) + 50)) == BURST


def test_requests_that_run_at_the_same_time_are_bounded(access):
    tab = access.tab(access.enter(access.token()))
    tab.running = AT_ONCE
    assert not tab.admit()


def test_an_unknown_text_is_no_secret(access):
    access.enter(access.token())
    assert access.tab("") is None
    assert access.tab("\ud800") is None


async def test_a_used_token_is_refused_and_the_entry_file_has_a_new_one(home):
    async with serving(home, spare=False) as place, tab_of(place) as tab:
        first = place.file.path.read_text()
        token = re.search(r"#token=([\w-]+)", first)[1]
        await tab.enter(token)
        again = await tab.failure("enter", status=401, token=token)
        assert again["code"] == "no-secret"
        second = re.search(r"#token=([\w-]+)", place.file.path.read_text())[1]
        assert second != token
        await tab.enter(second)


async def test_the_page_opens_further_tabs_with_a_token(tab):
    token = (await tab("token"))["token"]
    async with tab_of(tab.place) as other:
        await other.enter(token)
        assert other.secret != tab.secret
        assert (await other("state"))["open"] == []


async def test_a_tab_that_left_is_out_and_others_are_not(tab):
    async with tab_of(tab.place) as other:
        await other.enter()
        await other("leave")
        assert (await other.failure("state", status=401))["code"] == "no-secret"
    await tab("state")


async def test_the_event_stream_of_a_tab_that_left_ends(tab, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.event_stream.BEAT_SECONDS", 0.05)
    async with anyio.create_task_group() as tasks:
        await tasks.start(tab.listen)
        await tab("leave")
    assert tab.events[0] == tab.events[0] | {"kind": "hello"}


async def test_only_this_user_can_read_the_entry_file(home):
    async with serving(home, spare=False) as place:
        assert stat.S_IMODE(place.file.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(place.file.path.parent.stat().st_mode) == 0o700
        if os.geteuid() == 0:
            read = ["python3", "-c", f"import os; os.setuid(65534); open({str(place.file.path)!r})"]
            done = await anyio.to_thread.run_sync(lambda: subprocess.run(read, capture_output=True, text=True))
            assert "PermissionError" in done.stderr
    assert not place.file.path.exists()


def test_a_folder_that_was_open_to_others_is_closed_and_a_link_is_refused(tmp_path):
    folder = tmp_path / "workbench"
    folder.mkdir(mode=0o755)
    EntryFile(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(ConfigurationError, match="another user"):
        EntryFile(tmp_path / "link")


def test_the_entry_file_follows_no_link_that_lies_in_its_place(tmp_path):
    file, victim = EntryFile(tmp_path / "workbench"), tmp_path / "victim"
    victim.write_text("mine")
    file.path.symlink_to(victim)
    file.path.with_name(f".{file.path.name}").symlink_to(victim)
    file.write("http://127.0.0.1:1/#token=x")
    assert victim.read_text() == "mine"
    assert "#token=x" in file.path.read_text()


def test_entry_files_of_dead_processes_are_removed(tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    folder = tmp_path / "workbench"
    folder.mkdir(mode=0o700)
    dead, live = folder / f"open-{ended.pid}.html", folder / f"open-{os.getppid()}.html"
    dead.touch()
    live.touch()
    EntryFile(folder)
    assert (dead.exists(), live.exists()) == (False, True)
