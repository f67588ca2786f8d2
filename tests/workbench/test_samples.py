"""The samples in the workbench: added by one request, served by a process beside it, and gone when it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from browsing import signed_in
from child_processes import children

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

OWN = '[library]\ntype = "elasticsearch"\nhost = "search.internal"\nport = 9200\n'
"""A connection of a person, whose name a sample would take."""


def saved_at(home: Path) -> Path:
    return home / "config/connections.toml"


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def listed(tab: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await tab("connections")
    return answer


async def test_samples_are_added_shown_and_removed(tab, home):
    assert (await listed(tab))["samples_offered"]
    await tab("connections/add_samples")
    answer = await listed(tab)
    assert {one["name"]: bool(one["sample"]) for one in answer["connections"]} == dict.fromkeys(
        ("library", "metrics", "shop"), True
    )
    assert not answer["samples_offered"]
    ports = [int(one["address"].rpartition(":")[2]) for one in answer["connections"]]
    assert all(map(listens, ports))
    await tab("open", connection="shop")
    rows = await tab("page", connection="shop", rows={"object": "orders"}, limit=5)
    assert len(rows["rows"]) == 5
    await tab("connections/remove_samples")
    answer = await listed(tab)
    assert (answer["connections"], answer["samples_offered"]) == ([], True)
    assert not any(map(listens, ports))


async def test_two_tabs_that_ask_at_once_add_them_once(tab):
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(tab, "connections/add_samples")
    assert len((await listed(tab))["connections"]) == 3


async def test_samples_go_with_the_workbench_and_leave_what_a_person_saved_or_changed(home):
    saved_at(home).parent.mkdir(parents=True)
    saved_at(home).write_text(OWN)
    async with signed_in(home) as tab:
        await tab("connections/add_samples")
        connections = {one["name"]: one for one in (await listed(tab))["connections"]}
        assert {name for name, one in connections.items() if one["sample"]} == {"library-sample-1", "metrics", "shop"}
        assert connections["library"]["address"] == "search.internal:9200"
        text = saved_at(home).read_text()
        assert "[metrics]" in text
        head, metrics = text.split("[metrics]")
        saved_at(home).write_text(head + "[metrics]" + metrics.replace('host = "127.0.0.1"', 'host = "mine"', 1))
        assert not next(one["sample"] for one in (await listed(tab))["connections"] if one["name"] == "metrics")
    text = saved_at(home).read_text()
    assert OWN in text
    assert 'host = "mine"' in text
    assert "[shop]" not in text
    assert "sample" not in text
    assert not list(home.rglob("samples-*.json"))


async def test_servers_that_end_by_themselves_are_told_of(tab):
    before = children()
    await tab("connections/add_samples")
    [child] = children() - before
    os.kill(int(child), signal.SIGKILL)
    with anyio.fail_after(10):
        while not (await listed(tab))["samples_ended"]:
            await anyio.sleep(0.05)
    await tab("connections/remove_samples")
    await tab("connections/add_samples")
    assert not (await listed(tab))["samples_ended"]


def test_a_killed_workbench_leaves_no_server_and_the_next_removes_its_connections(home):
    """With `--sample` it would take its home along; here the home is a person's."""
    program = (
        "import anyio, pathlib, sys\n"
        "from dragoman_workbench.serving import serving\n"
        "async def main():\n"
        "    async with serving(pathlib.Path(sys.argv[1]), sample=True):\n"
        "        print('ready', flush=True)\n"
        "        await anyio.sleep_forever()\n"
        "anyio.run(main)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(home)], stdout=subprocess.PIPE, text=True) as workbench:
        assert workbench.stdout is not None
        assert workbench.stdout.readline() == "ready\n"
        [file] = home.rglob("samples-*.json")
        ports = [sample["port"] for sample in json.loads(file.read_text())]
        assert all(map(listens, ports))
        workbench.kill()
    deadline = time.monotonic() + 10
    while any(map(listens, ports)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "[shop]" in saved_at(home).read_text()

    async def again() -> None:
        async with signed_in(home) as tab:
            assert (await listed(tab))["connections"] == []

    anyio.run(again)
    assert not file.exists()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_the_command_shows_samples_in_a_home_that_goes_with_it(how, tmp_path):
    home = tmp_path / "own"
    saved_at(home).parent.mkdir(parents=True)
    saved_at(home).write_text(OWN)
    variables = {**os.environ, "DRAGOMAN_HOME": str(home), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "dragoman", "workbench", "shop", "--sample", "--no-browser", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=variables, text=True) as workbench:
        assert workbench.stdout is not None
        port = int(json.loads(workbench.stdout.readline())["url"].rpartition(":")[2])
        [temporary] = tmp_path.glob("dragoman-*/home")
        assert "[shop]" in saved_at(temporary).read_text()
        workbench.send_signal(how)
        assert workbench.wait(20) == 0
    assert not listens(port)
    assert not list(tmp_path.glob("dragoman-*"))
    assert saved_at(home).read_text() == OWN
    assert [path.name for path in home.iterdir()] == ["config"]


@pytest.mark.parametrize("change", [
    lambda text: text.replace('auth_method = "none"', 'auth_method = "basic"\nusername = "me"'),
    lambda text: text + '\n[shop.saved-queries.cheap]\nobject = "books"\n',
    lambda text: text.replace('auth_method = "none"', 'auth_method = "none"\nsign-in-at = "id.internal:443"'),
])  # fmt: skip
async def test_what_a_person_made_of_a_sample_stays_and_stays_open(home, change):
    async with signed_in(home) as tab:
        await tab("connections/add_samples")
        await tab("open", connection="shop")
        [others, shop] = saved_at(home).read_text().split("[shop]")
        after = shop.find("\n[", 1)
        shop, others = (shop, others) if after < 0 else (shop[:after], others + shop[after:])
        saved_at(home).write_text(mine := f"{others}\n[shop]{change(shop)}")
        await tab("connections/remove_samples")
        assert saved_at(home).read_text().rstrip().endswith(f"[shop]{change(shop)}".rstrip())
        assert "[metrics]" in mine
        assert "[metrics]" not in saved_at(home).read_text()
        assert (await listed(tab))["connections"][0]["open"]


async def test_what_a_killed_process_of_the_same_number_left_is_removed(home):
    """In a container every workbench may have the number 1."""
    folder = home / "state/workbench"
    number = os.getpid()
    (folder / f"uploads-{number}/old").mkdir(parents=True)
    (folder / f"open-{number}.html").write_text("old")
    note = [{"name": "shop", "type": "elasticsearch", "holds": "", "host": "127.0.0.1", "port": 9200}]
    (folder / f"samples-{number}.json").write_text(json.dumps(note))
    saved_at(home).parent.mkdir(parents=True)
    saved_at(home).write_text('[shop]\ntype = "elasticsearch"\nhost = "127.0.0.1"\nport = 9200\nauth_method = "none"\n')
    async with signed_in(home) as tab:
        assert (await listed(tab))["connections"] == []
        assert not (folder / f"samples-{number}.json").exists()
        assert not (folder / f"uploads-{number}/old").exists()
        await tab("connections/add_samples")
        async with signed_in(home) as second:  # of the same process: the first still runs
            assert len((await listed(second))["connections"]) == 3


async def test_servers_that_never_answer_are_given_up_and_ended(home, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.samples.START_SECONDS", 3.0)
    monkeypatch.setattr("dragoman_workbench.samples.SERVERS", "code")  # it reads its standard input, and says no line
    async with signed_in(home) as tab:
        before = children()
        failure = await tab.failure("connections/add_samples")
        assert "did not start within 3 s" in failure["message"]
        assert children() == before
        assert (await listed(tab))["connections"] == []
