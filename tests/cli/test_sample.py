"""`dragoman sample`: servers to look at, on this machine alone, and the commands that read them."""

from __future__ import annotations

import gzip
import io
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from dragoman.cli.sample import USUAL_PORTS, ports_led_to
from dragoman_api.installation import add_command
from dragoman_sample import servers
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_sample.fakes.weaviate import FakeWeaviate
from stranger import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SAMPLE = [sys.executable, "-m", "dragoman", "sample"]


@contextmanager
def sample(home: Path, *words: str) -> Iterator[list[dict[str, Any]]]:
    """Serve samples, and yield what the command says of them."""
    variables = {**os.environ, "DRAGOMAN_HOME": str(home)}
    command = [*SAMPLE, *words, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables, cwd=ROOT) as process:
        try:
            yield json.loads(process.stdout.readline())["samples"]
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
            assert process.returncode == 0


def run(home: Path, command: str, *more: str) -> str:
    words = [sys.executable, "-m", *shlex.split(command), *more]
    done = subprocess.run(words, env={**os.environ, "DRAGOMAN_HOME": str(home)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_commands_that_it_prints_save_each_sample_and_read_rows_of_it(tmp_path):
    with sample(tmp_path, "--port", "0") as samples:
        assert [(place["name"], place["type"]) for place in samples] == [
            ("shop", "elasticsearch"), ("library", "weaviate"), ("metrics", "prometheus"),
        ]  # fmt: skip
        for place in samples:
            add, objects, page = place["commands"]
            run(tmp_path, add)
            assert json.loads(run(tmp_path, objects, "--json"))["objects"]
            assert len(json.loads(run(tmp_path, page, "--json"))["rows"]) == 5


@pytest.mark.slow
def test_a_name_that_is_taken_is_left_alone_and_a_saved_sample_is_not_saved_again(tmp_path):
    saved = tmp_path / "config/connections.toml"
    saved.parent.mkdir(parents=True)
    port = servers.free_port(29_300)
    saved.write_text(
        f'[library]\ntype = "solr"\nhost = "solr.internal"\nport = 1\n\n'
        f'[books]\ntype = "weaviate"\nhost = "127.0.0.1"\nport = {port}\nauth_method = "none"\n'
    )
    with sample(tmp_path, "library", "--port", str(port)) as [place]:
        assert place["name"] == "books"
        assert not [command for command in place["commands"] if "connections add" in command]
    saved.write_text('[library]\ntype = "solr"\nhost = "solr.internal"\nport = 1\n')
    with sample(tmp_path, "library", "--port", "0") as [place]:
        assert place["commands"][0].startswith("dragoman connections add library-sample-1 --type weaviate")
        assert all("library-sample-1" in command for command in place["commands"])


OWN = [
    'type = "elasticsearch"\nhost = "127.0.0.1"\nport = {port}\nauth_method = "basic"\nusername = "elastic"\n',
    'type = "elasticsearch"\nhost = "127.0.0.1"\nport = {port}\nauth_method = "none"\nssl_mode = "required"\n',
    'type = "elasticsearch"\nhost = "localhost"\nport = "{port}"\n',
    'type = "chroma"\nurl = "http://localhost:{port}/"\n',
    'type = "elasticsearch"\nhost = "search.internal"\nvia = {{ proxy = "socks5h://127.0.0.1:{port}" }}\n',
]
"""Connections of a person to servers of this machine that do not run now, as through a tunnel that is down."""


@pytest.mark.slow
@pytest.mark.parametrize("table", OWN)
def test_a_sample_takes_the_place_of_no_server_that_a_saved_connection_expects(tmp_path, table):
    saved = tmp_path / "config/connections.toml"
    saved.parent.mkdir(parents=True)
    port = servers.free_port(29_300)
    saved.write_text(f"[prod]\n{table.format(port=port)}")
    refused = subprocess.run(
        [*SAMPLE, "shop", "--port", str(port)], capture_output=True, text=True, cwd=ROOT, timeout=30,
        env={**os.environ, "DRAGOMAN_HOME": str(tmp_path)},
    )  # fmt: skip
    assert refused.returncode == 2
    assert f"connection 'prod' leads to port {port}" in refused.stderr


def test_the_usual_ports_of_samples_are_those_that_the_command_knows():
    assert sorted(one.usual_port for one in servers.SAMPLES) == sorted(USUAL_PORTS)
    assert set(ports_led_to({"dev": {"type": "elasticsearch"}})) == set(USUAL_PORTS)


@pytest.mark.slow
def test_a_sample_skips_the_usual_port_that_a_saved_connection_expects_its_server_at(tmp_path):
    saved = tmp_path / "config/connections.toml"
    saved.parent.mkdir(parents=True)
    saved.write_text("[prod]\n" + OWN[0].format(port=9200))
    with sample(tmp_path, "shop") as [place]:
        assert place["port"] != 9200
        assert place["name"] == "shop"
        assert "connections add shop" in place["commands"][0]


def test_no_avoided_port_is_chosen():
    first = servers.free_port(29_700)
    assert servers.free_port(first, [first]) > first
    own = servers.free_port(0, [first])
    assert own not in (0, first)


FOREIGN = [
    {"Host": "evil.example"},
    {"Host": "127.0.0.1.evil.example:80"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
]
"""What comes with a request of a page in a browser."""


@pytest.mark.slow
async def test_no_page_of_a_browser_reaches_a_sample_and_no_large_body_fills_it():
    paths = {"shop": "/_search", "library": "/v1/graphql", "metrics": "/api/v1/labels"}
    async with servers.serving(port=0) as places, aiohttp.ClientSession() as session:
        for place in places:
            url = f"http://localhost:{place.port}{paths[place.name]}"
            for headers in FOREIGN:
                async with session.post(url, headers=headers, data=b"{}") as answer:
                    assert (place.name, headers, answer.status) == (place.name, headers, 403)
            large, form = b"match[]=" + b"x" * (9 << 20), {"Content-Type": "application/x-www-form-urlencoded"}
            packed = gzip.compress(large)
            for body, headers in ((large, form), (packed, form | {"Content-Encoding": "gzip"})):
                async with session.post(url, data=io.BytesIO(body), headers=headers) as answer:
                    assert (place.name, answer.status) == (place.name, 413)


@pytest.mark.slow
async def test_a_sample_keeps_no_request(monkeypatch):
    kept = []
    for fake in (FakeElasticsearch, FakeWeaviate):
        monkeypatch.setattr(fake, "__aexit__", _noting(kept, fake.__aexit__))
    async with servers.serving(["shop", "library"], port=0) as places, aiohttp.ClientSession() as session:
        for place in places:
            async with session.get(f"http://127.0.0.1:{place.port}/nowhere") as answer:
                assert answer.status >= 400
    assert len(kept) == 4
    assert not any(kept)


def _noting(kept, leave):
    async def noting(server, *how):
        kept.append(server.requests)
        await leave(server, *how)

    return noting


async def test_only_this_machine_reaches_a_sample():
    async with servers.serving(["library"], port=0) as [place]:
        socket.create_connection(("127.0.0.1", place.port)).close()
        for address in ("127.0.0.2", "::1"):
            with pytest.raises(OSError, match=r"refused|unavailable|assign"):
                socket.create_connection((address, place.port), timeout=5)


@pytest.mark.slow
def test_nobody_reads_a_part_of_a_sample_that_is_being_loaded(tmp_path):
    port = servers.free_port(29_500)
    command = [*SAMPLE, "shop", "--port", str(port), "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, env={**os.environ, "DRAGOMAN_HOME": str(tmp_path)}
    ) as shop:
        answer = None
        while answer is None:
            assert shop.poll() is None
            with (
                suppress(urllib.error.URLError),
                urllib.request.urlopen(f"http://127.0.0.1:{port}/orders/_count") as body,
            ):
                answer = json.load(body)
        shop.send_signal(signal.SIGINT)
    assert answer["count"] == 12_003


def test_where_the_samples_are_not_installed_it_says_what_to_install(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'dragoman_sample':\n"
        "            raise ModuleNotFoundError(name, name='dragoman_sample')\n"
        "sys.meta_path.insert(0, Finder)\n"
    )
    variables = {**os.environ, "DRAGOMAN_HOME": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([*SAMPLE, "--json"], env=variables, capture_output=True, text=True)
    assert done.returncode == 2
    failure = json.loads(done.stderr)["error"]
    assert (failure["code"], failure["hint"]) == ("extra-missing", add_command("dragoman[sample]"))


@pytest.mark.slow
def test_the_samples_end_with_the_process_that_started_them():
    """A workbench that is killed leaves no server behind."""
    command = [sys.executable, "-m", "dragoman_sample.servers"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        places = json.loads(process.stdout.readline())
        assert [place["name"] for place in places] == ["shop", "library", "metrics"]
        process.stdin.close()
        assert process.wait(10) == 0
