"""The marketplace in the page: search, details, install, pin, roll back, verify, remove; consent reaches the page."""

from __future__ import annotations

from types import SimpleNamespace

import anyio
import pytest

import wheelhouse
from browsing import Asked, Recorder, signed_in
from bundled_drivers import MANIFESTS
from dragoman import Runtime, SavedConnection
from dragoman_workbench.messages.base import Empty
from dragoman_workbench.messages.connections import BrowseAsked, DriverNamed
from dragoman_workbench.routes.marketplace import MarketplaceRoutes


@pytest.fixture
async def market(home, tmp_path):
    """Return a home whose registry has two versions of a driver, the newer with more permissions."""
    paths = []
    for version, permissions in (("1.0.0", ["net:connection"]), ("1.1.0", ["net:connection", "net:host=example.org"])):
        (tmp_path / version).mkdir()
        driver = wheelhouse.Driver("demo", version=version, permissions=permissions)
        paths.append(driver.write(tmp_path / version))
    folder = await anyio.to_thread.run_sync(lambda: wheelhouse.registry(tmp_path / "registry", paths))

    def add():
        Runtime(home, spare=False).registries.add(str(folder))

    await anyio.to_thread.run_sync(add)
    return home


async def test_drivers_are_searched(tab):
    found = (await tab("plugins/browse", words="weaviate"))["drivers"]
    assert [each["id"] for each in found] == ["weaviate"]
    [one] = (await tab("plugins/browse", type="elasticsearch"))["drivers"]
    assert one["id"] == "elasticsearch"
    assert (await tab("plugins/browse", words="nothing-of-that-name"))["drivers"] == []


@pytest.mark.parametrize(
    ("route", "request_", "asked"),
    [
        (
            "browse",
            BrowseAsked(words="a b", type="t", capability="c", compatible=True),
            ("browse", ("a b",), {"type": "t", "capability": "c", "compatible": True}),
        ),
        ("browse", BrowseAsked(), ("browse", ("",), {"type": None, "capability": None, "compatible": False})),
        ("install", DriverNamed(id="demo", version="1.0"), ("install", ("demo",), {"version": "1.0"})),
        ("updates", Empty(), ("update", (None,), {"dry_run": True})),
        ("update", DriverNamed(id="demo"), ("update", ("demo",), {"dry_run": False})),
        ("rollback", DriverNamed(id="demo", version="1.0"), ("rollback", ("demo",), {"version": "1.0"})),
        ("pin", DriverNamed(id="demo", version="1.0"), ("pin", ("demo", "1.0"), {})),
        ("pin", DriverNamed(id="demo"), ("pin", ("demo", None), {})),
        ("verify", DriverNamed(id="demo"), ("verify", ("demo",), {})),
        ("repair", DriverNamed(id="demo"), ("repair", ("demo",), {})),
    ],
)
async def test_every_part_of_a_request_reaches_the_drivers(route, request_, asked):
    room = MarketplaceRoutes(SimpleNamespace(plugins=Recorder(), add_sink=lambda _: None))
    with pytest.raises(Asked) as caught:
        await getattr(room, route)(request_)
    assert caught.value.args == asked


async def test_a_list_names_how_many_drivers_it_leaves_out_and_a_check_every_fault(tab, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.routes.marketplace.SHOWN", 1)
    browsed = await tab("plugins/browse")
    assert (len(browsed["drivers"]), browsed["omitted"]) == (1, len(MANIFESTS) - 1)

    async def verify(_):
        return [("1.0", ["a", "b"]), ("2.0", ["c"])]

    monkeypatch.setattr(tab.place.runtime.plugins, "verify", verify)
    assert (await tab("plugins/verify", id="demo"))["faults"] == ["a", "b", "c"]


async def test_the_version_that_a_rollback_leads_to_is_told(tab, monkeypatch):
    async def rollback(plugin, *, version):
        return SimpleNamespace(plugin=plugin, version="1.0.0")

    monkeypatch.setattr(tab.place.runtime.plugins, "rollback", rollback)
    rolled = await tab("plugins/rollback", id="weaviate")
    assert (rolled["id"], rolled["version"]) == ("weaviate", "1.0.0")


async def test_a_driver_is_shown_before_it_is_installed(tab):
    page = await tab("plugins/show", id="weaviate")
    assert page["driver"]["state"] == "available"
    assert page["publisher"]
    assert page["permissions"]
    assert page["readme"].startswith("#")
    assert page["rollback_versions"] == []
    assert (await tab.failure("plugins/show", id="nothing"))["code"] == "plugin-not-found"


async def test_the_life_of_a_driver(shop_home):
    async with Runtime(shop_home, spare=False) as runtime:  # a connection of another driver
        values = {"host": "127.0.0.1", "port": 9, "auth_method": "none"}
        await runtime.save(SavedConnection(name="library", type="weaviate", values=values))
    async with signed_in(shop_home) as tab:
        page = await tab("plugins/show", id="elasticsearch")
        assert page["used_by"] == ["shop"]
        [version] = page["rollback_versions"]
        assert (await tab("plugins/verify", id="elasticsearch"))["faults"] == []
        await tab("plugins/pin", id="elasticsearch", version=version)
        assert (await tab("plugins/show", id="elasticsearch"))["pin"] == version
        await tab("plugins/pin", id="elasticsearch")
        await tab("plugins/disable", id="elasticsearch")
        failure = await tab.failure("open", connection="shop")
        assert failure["remedy"] == {"action": "enable", "label": "Enable it", "target": "elasticsearch"}
        await tab("plugins/enable", id="elasticsearch")
        await tab("plugins/remove", id="elasticsearch")
        assert (await tab("plugins/show", id="elasticsearch"))["driver"]["state"] == "available"
        assert (await tab("open", connection="shop"))["product"] == "Elasticsearch"


@pytest.mark.slow
@pytest.mark.parametrize("yes", [True, False])
async def test_wider_permissions_are_asked_about_in_the_page(market, yes):
    async with signed_in(market) as tab, anyio.create_task_group() as tasks:
        await tasks.start(tab.listen)
        await tab("plugins/install", id="demo", version="1.0.0")
        await tab("plugins/pin", id="demo")
        [offer] = [each for each in (await tab("plugins/updates"))["updates"] if each["id"] == "demo"]
        assert (offer["before"], offer["version"], len(offer["permissions"])) == ("1.0.0", "1.1.0", 1)
        ended = []

        async def update():
            ended.append(await tab.send("plugins/update", {"id": "demo"}))

        tasks.start_soon(update)
        question = (await tab.told("question"))["question"]
        assert question["subject"] == "permissions"
        await tab("questions/answer", id=question["id"], yes=yes)
        with anyio.fail_after(30):
            while not ended:
                await anyio.sleep(0.01)
        assert ended[0][0] == (200 if yes else 422)
        active = (await tab("plugins/show", id="demo"))["rollback_versions"][0]
        assert active == ("1.1.0" if yes else "1.0.0")
        if yes:
            assert (await tab("plugins/rollback", id="demo"))["version"] == "1.0.0"
        tasks.cancel_scope.cancel()


async def test_a_registry_that_cannot_be_read_is_told_and_hides_no_other(market, tmp_path):
    (tmp_path / "registry").rename(tmp_path / "gone")
    async with signed_in(market) as tab:
        found = await tab("plugins/browse")
        assert {each["id"] for each in found["drivers"]} == MANIFESTS.keys()
        assert list(found["failures"]) == ["registry"]
        (tmp_path / "gone").rename(tmp_path / "registry")
        assert (await tab("plugins/browse"))["failures"] == {}
