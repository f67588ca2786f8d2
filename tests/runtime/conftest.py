"""Real wheels in a real registry, and a runtime over a home of its own."""

from __future__ import annotations

import pytest

import wheelhouse
from dragoman.connections import SavedConnection
from dragoman.runtime import Runtime


@pytest.fixture
def registry(tmp_path):
    """Publish drivers and give the registry's folder."""

    def publish(*drivers):
        (tmp_path / "wheels").mkdir(exist_ok=True)
        paths = [driver.write(tmp_path / "wheels") for driver in drivers]
        return wheelhouse.registry(tmp_path / "registry", paths)

    return publish


@pytest.fixture
def make_runtime(registry):
    """Make a runtime that knows a registry with these drivers, and a connection to each."""

    def make(*drivers, **options):
        folder = registry(*(drivers or (wheelhouse.Driver(),)))
        runtime = Runtime(spare=False, **options)
        runtime.registries.add(str(folder))
        for driver in drivers or (wheelhouse.Driver(),):
            name = driver.manifest["id"]
            runtime.connections.save(SavedConnection(name=name, type=name, values={}))
        runtime.seen = []
        runtime.add_sink(runtime.seen.append)
        return runtime

    return make
