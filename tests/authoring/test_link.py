"""`driver link`: developer mode runs the working tree in the sandbox, and every surface says so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import anyio
import pytest
from authoring.conftest import serving

import wheelhouse
from dragoman import Runtime, SavedConnection
from dragoman.authoring.check import link
from dragoman_api.errors import DriverFaultError, PluginNotFoundError, RegistryError, WheelRejectedError
from dragoman_registry.client.installed_drivers import Store

pytestmark = pytest.mark.slow


@pytest.fixture
def store(home):
    return Store(home / "data")


def runtime():
    return Runtime(spare=False)


def save(port):
    runtime().connections.save(SavedConnection(name="sky", type="orbit", values={"host": "127.0.0.1", "port": port}))


async def opened():
    events = []
    async with runtime() as one:
        one.add_sink(events.append)
        async with one.open("sky") as session:
            return session.server.product, session.sandbox, session.warnings, events


def test_every_surface_says_that_a_driver_is_linked(tree, type_in):
    with serving(tree) as port:
        save(port)
        done = type_in("driver", "link", tree.path)
        assert f"linked orbit 0.1.0+linked to {tree.path}" in done.out
        objects = type_in("objects", "sky", "--quiet")
        assert f"warning: the driver orbit is linked: it runs from {tree.path}" in objects.err
        [listed] = type_in("plugins", "list", "--json").json["plugins"]
        assert (listed["state"], listed["registry"], listed["version"]) == ("linked", str(tree.path), "0.1.0+linked")
        [found] = [line for line in type_in("plugins", "browse").out.splitlines() if line.startswith("orbit")]
        assert "linked" in found
        doctor = type_in("doctor")
        assert f"warning  0.1.0+linked: runs from {tree.path}" in doctor.out
        assert "dragoman driver unlink orbit" in doctor.err
        assert type_in("driver", "unlink", "orbit").out == "unlinked orbit\n"
        assert (
            "error[plugin-not-found]: no configured registry has a driver for 'orbit'"
            in type_in("objects", "sky", code=1).err
        )


def test_a_linked_driver_is_confined_and_what_is_edited_runs_at_the_next_opening(tree, store):
    with serving(tree) as port:
        save(port)
        link(tree.path, store=store)
        product, sandbox, warnings, events = anyio.run(opened)
        assert product == "Orbit"
        assert sandbox.startswith(("full", "partial"))
        assert any("is linked" in warning for warning in warnings)
        assert [event.version for event in events if event.name == "connection.opened"] == ["0.1.0+linked"]
        tree.driver(('Server("Orbit"', 'Server("Edited"'))
        assert anyio.run(opened)[0] == "Edited"


def test_a_fault_of_a_linked_driver_leads_its_author_to_the_line(tree, store, type_in, tmp_path):
    """And what it prints goes where the author wants it."""
    beginning = '"""List the tables."""\n'
    tree.driver((beginning, f'{beginning}        print("listing")\n'), ("row[KEY]) for", 'row["key"]) for'))
    number = next(n for n, line in enumerate(tree.code.read_text().splitlines(), 1) if 'row["key"]' in line)
    place = f"dragoman_orbit/driver.py:{number}"
    with serving(tree) as port:
        save(port)
        link(tree.path, store=store)
        failed = type_in("page", "sky", "planets", code=None)
        assert f"fetch_page failed inside the driver: KeyError: 'key' at {place} in Driver.fetch_page\n" in failed.err
        assert "hint: --driver-log - shows its traceback" in failed.err
        assert "sky: listing\n" not in type_in("objects", "sky").err
        assert "sky: listing\n" in type_in("objects", "sky", "--driver-log", "-").err
        log = tmp_path / "driver.log"
        assert type_in("page", "sky", "planets", "--driver-log", log, code=None).code == failed.code
        lines = log.read_text().splitlines()
        assert f'sky:   File "{tree.code}", line {number}, in fetch_page' in lines
        assert lines[-1] == "sky: KeyError: 'key'"
        assert log.stat().st_mode & 0o777 == 0o600


def test_what_is_installed_waits_while_it_is_linked_and_comes_back(tree, store, ready, tmp_path):
    ready.publish(tmp_path / "team")
    with serving(tree) as port:
        save(port)
        runtime().registries.add(str(tmp_path / "team"))
        assert anyio.run(opened)[2] == [] or "sandbox" in anyio.run(opened)[2][0]
        tree.driver(('Server("Orbit"', 'Server("Linked"'))
        link(tree.path, store=store)
        assert anyio.run(opened)[0] == "Linked"

        async def update():
            async with runtime() as one:
                return await one.plugins.update()

        assert anyio.run(update) == []
        store.links.remove("orbit")
        assert anyio.run(opened)[0] == "Orbit"


def test_a_linked_driver_has_its_dependencies(tree, store):
    path = wheelhouse.library("tinylib", code="WORD = 'Tiny'\n").write(tree["wheels"])
    tree.change("pyproject.toml", ('"dragoman-api~=1.0"', '"dragoman-api~=1.0", "tinylib"'))
    listed = json.dumps([wheelhouse.dependency(path)])
    tree.change("dragoman_orbit/driver.json", ('"licence"', f'"dependencies": {listed},\n  "licence"'))
    tree.driver(
        ("from typing import Any\n", "from typing import Any\n\nfrom tinylib import WORD\n"),
        ('Server("Orbit"', "Server(WORD"),
    )
    with serving(tree) as port:
        save(port)
        link(tree.path, store=store)
        assert anyio.run(opened)[0] == "Tiny"


def test_a_tree_that_went_away_is_told_with_the_way_out(tree, store):
    link(tree.path, store=store)
    tree.path.rename(tree.path.with_name("elsewhere"))
    with pytest.raises(RegistryError, match="which is not there") as caught:
        store.active("orbit")
    assert caught.value.hint == "dragoman driver unlink orbit"
    assert [one.state for one in store.installed()] == ["linked"]
    store.links.remove("orbit")
    assert store.installed() == []


def test_a_driver_that_cannot_start_or_has_faults_is_not_linked(tree, store):
    tree.on_import("raise RuntimeError('boom')")
    with pytest.raises(DriverFaultError, match="boom"):
        link(tree.path, store=store)
    tree["dragoman_orbit/evil.pth"].write_text("import os")
    with pytest.raises(WheelRejectedError):
        link(tree.path, store=store)
    assert store.installed() == []


def test_unlinking_and_removing_what_is_not_there_is_told(tree, store):
    with pytest.raises(PluginNotFoundError, match="is not linked"):
        store.links.remove("orbit")
    link(tree.path, store=store)
    with pytest.raises(PluginNotFoundError, match="is linked, not installed") as caught:
        store.remove("orbit")
    assert caught.value.hint == "dragoman driver unlink orbit"
    assert store.active("orbit").linked


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[:-1],
        lambda data: re.sub(rb'"version":"', b'"version":"\xb2', data, count=1),
        lambda data: data.replace(b'"version":', b'"\xb2":1,"version":'),
        lambda _: b'{"a":' * 5_000,
        lambda data: re.sub(rb'"trees":\[[^]]*\]', b'"trees":[]', data),
    ],
    ids=["cut", "no UTF-8", "a key that is no UTF-8", "deep", "no trees"],
)
def test_a_damaged_list_of_links_is_told(tree, store, home, spoil):
    link(tree.path, store=store)
    file = home / "data/links.json"
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(RegistryError, match=r"links\.json cannot be read") as caught:
        store.installed()
    assert caught.value.code == "state-damaged"


def test_a_tree_whose_name_no_disk_can_have_is_not_there(tree, store, home):
    link(tree.path, store=store)
    file = home / "data/links.json"
    file.write_bytes(file.read_bytes().replace(str(tree.path).encode(), b"/" + b"a" * 5_000))
    with pytest.raises(RegistryError, match="which is not there"):
        store.active("orbit")


def test_a_synchronous_client_with_a_transport_works_in_the_sandbox_as_the_explanation_says(tree, store):
    page = (Path(__file__).parents[2] / "docs/explanation/no-sockets.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    tree.code.write_text(code)
    more = ', "describe_object", "fetch_page", "count_rows", "export_rows"]'
    tree.change("dragoman_orbit/driver.json", (more, "]"), ('["browse", "export"]', "[]"))
    assert tree.check().faults == []

    async def listed():
        async with runtime() as one, one.open("sky") as session:
            return session.server.version, [found.name for found in await session.objects()]

    with serving(tree) as port:
        save(port)
        link(tree.path, store=store)
        assert anyio.run(listed) == ("1.0", ["planets", "stars"])
