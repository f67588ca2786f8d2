"""What a registry on the web holds against what is installed: asked now and then, remembered meanwhile."""

from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

import wheelhouse
from command_line import Machine
from dragoman.folders import find_paths
from dragoman.plugins import advisory_cache
from dragoman.plugins.advisory_cache import WEB_SECONDS, AdvisoryCache
from dragoman.plugins.registries import Registries
from dragoman_registry.client.installed_drivers import Store
from dragoman_registry.publisher import publish


@pytest.fixture
def asked(tmp_path):
    """Serve a registry with one driver; give its address and what was asked for."""
    team = wheelhouse.registry(tmp_path / "team", [wheelhouse.Driver().write(tmp_path / "wheels")])
    paths = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            paths.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(team))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", team, paths, server
        server.shutdown()


@pytest.mark.slow
def test_a_registry_on_the_web_is_asked_now_and_then_and_remembered(asked, tmp_path, monkeypatch):
    address, team, paths, server = asked
    house = Machine(tmp_path / "home")
    house("registry", "add", address, "--root", publish.init(team), "--name", "team")
    house("plugins", "install", "demo")
    (house.home / "config" / "connections.toml").write_text('[shop]\ntype = "demo"\n')
    store, registries = Store(house.home / "data"), Registries(find_paths(house.home))
    clock = [1e9]
    monkeypatch.setattr(advisory_cache.time, "time", lambda: clock[0])

    def quarantined():
        paths.clear()
        fresh = AdvisoryCache(store, registries)  # as another process would
        fresh.refresh()
        return fresh.standing(store.active("demo")).quarantined, bool(paths)

    def mark(status, reason=""):
        publish.mark(team, project="demo", version="1.0.0", status=status, reason=reason)

    assert quarantined() == (None, True)
    mark("quarantined", "sends data elsewhere")
    assert quarantined() == (None, False)
    clock[0] += WEB_SECONDS
    assert quarantined() == ("sends data elsewhere", True)
    mark("active")
    assert quarantined() == ("sends data elsewhere", False)
    assert house("objects", "shop").out  # the registry is asked again before a start is refused
    assert quarantined() == (None, False)
    mark("quarantined", "again")
    clock[0] -= 2 * WEB_SECONDS  # a clock that was set back is no reason to believe what was said in the future
    assert quarantined() == ("again", True)
    server.shutdown()
    server.server_close()
    clock[0] += 2 * WEB_SECONDS
    assert quarantined() == ("again", False)
    house("registry", "remove", "team")
    assert quarantined() == (None, False)


def test_nobody_is_asked_where_nothing_is_installed(asked, tmp_path):
    address, team, paths, _ = asked
    house = Machine(tmp_path / "home")
    house("registry", "add", address, "--root", publish.init(team), "--name", "team")
    paths.clear()
    assert "No installed drivers. " in house("plugins", "list").err
    assert paths == []
    assert not (house.home / "data/state.db").exists()


def test_a_folder_that_could_not_be_read_is_asked_again_though_nothing_in_it_changed(tmp_path):
    team = wheelhouse.registry(tmp_path / "team", [wheelhouse.Driver().write(tmp_path / "wheels")])
    house = Machine(tmp_path / "home")
    house("registry", "add", str(team))
    house("plugins", "install", "demo")
    store, registries = Store(house.home / "data"), Registries(find_paths(house.home))
    publish.mark(team, project="demo", version="1.0.0", status="quarantined", reason="sends data elsewhere")
    away = [(file, file.rename(tmp_path / file.name)) for file in (team / "targets").glob("*.advisories")]

    def quarantined():
        fresh = AdvisoryCache(store, registries)
        fresh.refresh()
        return fresh.standing(store.active("demo")).quarantined

    assert away
    assert quarantined() is None
    for file, elsewhere in away:
        elsewhere.rename(file)
    assert quarantined() == "sends data elsewhere"
