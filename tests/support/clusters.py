"""Fake clusters served from a thread of the test's process, so that it can make them misbehave while a command runs."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from anyio.from_thread import start_blocking_portal

from dragoman_sample.fakes.elasticsearch import FakeElasticsearch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from command_line import Machine


@contextmanager
def cluster_of(version: str) -> Iterator[FakeElasticsearch]:
    """Serve one cluster."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(FakeElasticsearch(version=version)) as server,
    ):
        yield server


def send(server: FakeElasticsearch, method: str, path: str, body: object = None) -> str:
    """Send a request past dragoman, with a body as JSON, or as the text that it is, and return the answer."""
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode() if body is not None else None
    kind = {"Content-Type": "application/x-ndjson" if "_bulk" in path else "application/json"}
    with urllib.request.urlopen(urllib.request.Request(server.url + path, data, kind, method=method)) as answer:
        return str(answer.read().decode())


def begun(
    shell: Machine, server: FakeElasticsearch, *words: str, path: str, after: int, kind: str = "hang"
) -> subprocess.Popen[Any]:
    """Start a command against a server that misbehaves after some requests to a path, and wait until it does."""
    server.requests.clear()
    server.misbehave(kind, on=path, after=after)
    process = subprocess.Popen(
        shell.words(*words), env=shell.variables(), cwd=shell.cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    for _ in range(900):
        if len([each for each in server.requests if each.path == path]) > after:
            return process
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError(f"it sent no further request to {path}")
