"""One Chromium for all of these tests; where there is none they are skipped, and say so."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from browser.chromium import PROGRAMS, Browser

import marketplace
from dragoman_registry.publisher import publish

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if not all(PROGRAMS):
        missing = "no Chromium with its chromedriver here; try: apt-get install -y chromium chromium-driver"
        if os.environ.get("REQUIRE_BROWSER"):
            pytest.fail(missing)
        pytest.skip(missing)
    started = Browser(tmp_path_factory.mktemp("profile"))
    try:
        yield started
    finally:
        started.close()


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    chromium.resize(1200, 850)
    return chromium


def unsynced(build: object, folder: Path) -> Path:
    """Make a registry without waiting for the disk: it is thrown away."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        return build(folder)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unsynced(marketplace.sample, tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unsynced(marketplace.hostile, tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of 10,000 invented drivers."""
    root = tmp_path_factory.mktemp("large")
    publish.init(root / "registry")
    return marketplace.front(root / "registry", marketplace.catalog(10_000))
