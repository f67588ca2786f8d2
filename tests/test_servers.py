"""The cache of the servers for tests: what may be made at the same time, and what belongs in it."""

from __future__ import annotations

import threading
from functools import partial
from hashlib import sha256

import pytest
from servers.elasticsearch.build import fetch_archive
from servers.elasticsearch.lines import Line
from servers.faults import EngineError
from servers.folders import build_once, cache


@pytest.fixture
def begin(tmp_path, monkeypatch):
    """Return a function that makes a folder in a thread, and wait for these threads in the end."""
    monkeypatch.setenv("DRAGOMAN_SERVERS_CACHE", str(tmp_path))
    threads, go_on = [], threading.Event()

    def begin(name, *, shared=""):
        begun = threading.Event()

        def build(folder):
            begun.set()
            go_on.wait(20)

        threads.append(threading.Thread(target=partial(build_once, cache() / name, build, shared=shared)))
        threads[-1].start()
        return begun

    yield begin
    go_on.set()
    for thread in threads:
        thread.join()


def test_servers_of_different_kinds_do_not_wait_for_each_other(begin):
    assert begin("chroma/1").wait(10)
    assert begin("weaviate/1").wait(10)


@pytest.mark.parametrize(("kinds", "shared"), [(("chroma", "chroma"), ""), (("elasticsearch", "solr"), "maven")])
def test_what_downloads_into_one_place_is_made_one_after_another(begin, kinds, shared):
    first, second = kinds
    assert begin(f"{first}/1", shared=shared).wait(10)
    assert not begin(f"{second}/2", shared=shared).wait(0.3)


def test_an_archive_without_a_published_checksum_is_the_tested_one_or_refused(tmp_path):
    line = Line(version="2.19.6", sources=())
    path = tmp_path / "org/servers/knn/1.0/knn-1.0.zip"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"tested")
    fetch_archive("org.servers:knn:1.0", sha256(b"tested").hexdigest(), tmp_path, maven=["false"], line=line)
    path.write_bytes(b"another")
    with pytest.raises(EngineError, match="has other bytes"):
        fetch_archive("org.servers:knn:1.0", sha256(b"tested").hexdigest(), tmp_path, maven=["false"], line=line)
    assert not path.exists()
