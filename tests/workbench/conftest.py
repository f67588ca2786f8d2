"""A workbench over a real runtime: drivers from the bundled registry, and a sample cluster."""

from __future__ import annotations

import pytest
from anyio import run

import wheelhouse
from browsing import shop, signed_in
from dragoman import Runtime
from stranger import serve_sample


@pytest.fixture(scope="session")
def sample_port():
    """Share one sample cluster."""
    with serve_sample() as port:
        yield port


@pytest.fixture(scope="session")
def prepared(tmp_path_factory, sample_port):
    """Prepare a home once: the driver is installed, and the connection saved."""
    home = tmp_path_factory.mktemp("prepared") / "home"

    async def prepare():
        async with Runtime(home, spare=False) as runtime:
            await runtime.plugins.install("elasticsearch")
            await runtime.save(shop(sample_port))

    run(prepare)
    return home


@pytest.fixture
def shop_home(home, prepared):
    """Copy the prepared home into the test's own."""
    return wheelhouse.copy(prepared, home)


@pytest.fixture
async def tab(home):
    """Return a tab of a workbench in an empty home."""
    async with signed_in(home) as tab:
        yield tab


@pytest.fixture
async def shop_tab(shop_home):
    """Return a tab with the sample cluster open."""
    async with signed_in(shop_home) as tab:
        await tab("open", connection="shop")
        yield tab
