"""The marketplace in the page: search, details, install, pin, roll back, verify, remove; consent reaches the page."""

from __future__ import annotations

import anyio
import pytest

import wheelhouse
from browsing import signed_in
from dragoman import Runtime


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


async def test_a_driver_is_shown_before_it_is_installed(tab):
    page = await tab("plugins/show", id="weaviate")
    assert page["driver"]["state"] == "available"
    assert page["publisher"]
    assert page["permissions"]
    assert page["readme"].startswith("#")
    assert page["kept"] == []
    assert (await tab.failure("plugins/show", id="nothing"))["code"] == "plugin-not-found"


async def test_the_life_of_a_driver(shop_home):
    async with signed_in(shop_home) as tab:
        page = await tab("plugins/show", id="elasticsearch")
        assert page["used_by"] == ["shop"]
        [version] = page["kept"]
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
        assert question["about"] == "permissions"
        await tab("questions/answer", id=question["id"], yes=yes)
        with anyio.fail_after(30):
            while not ended:
                await anyio.sleep(0.01)
        assert ended[0][0] == (200 if yes else 422)
        active = (await tab("plugins/show", id="demo"))["kept"][0]
        assert active == ("1.1.0" if yes else "1.0.0")
        if yes:
            assert (await tab("plugins/rollback", id="demo"))["version"] == "1.0.0"
        tasks.cancel_scope.cancel()


async def test_a_registry_that_cannot_be_read_is_told_and_hides_no_other(market, tmp_path):
    (tmp_path / "registry").rename(tmp_path / "gone")
    async with signed_in(market) as tab:
        found = await tab("plugins/browse")
        assert {each["id"] for each in found["drivers"]} == {"elasticsearch", "weaviate"}
        assert list(found["failures"]) == ["registry"]
