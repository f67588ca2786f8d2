"""One stranger's machine, and one sample cluster: in a process of its own, or in this one, where it can misbehave."""

from __future__ import annotations

import pytest
from anyio.from_thread import start_blocking_portal

from dragoman_sample import servers as samples
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from stranger import connected, serve_sample, stranger


@pytest.fixture(scope="session")
def sample_port():
    """Share one sample cluster."""
    with serve_sample() as port:
        yield port


@pytest.fixture(scope="module")
def shell(tmp_path_factory, sample_port):
    """One stranger's machine for the whole story: what one step installs, the next one uses."""
    folder = tmp_path_factory.mktemp("stranger")
    return stranger(folder / "home", cwd=folder, port=sample_port)


@pytest.fixture(scope="module")
def sample_here():
    """Serve the sample from a thread of this process, so that a test can make it misbehave."""
    with start_blocking_portal() as portal:
        server = FakeElasticsearch(version="8.19.21")
        with portal.wrap_async_context_manager(server):
            portal.call(samples.load, server.url)
            yield server


@pytest.fixture
def server(sample_here):
    """The sample in this process, which behaves again after the test."""
    yield sample_here
    sample_here.behave()


@pytest.fixture(scope="module")
def machine(sample_here, tmp_path_factory):
    """A stranger's machine with the connection `shop` to the sample in this process."""
    folder = tmp_path_factory.mktemp("machine")
    return connected(folder / "home", cwd=folder, port=sample_here.port)
