"""The command `similar`: the nearest rows as a table and as JSON, and what it refuses."""

from __future__ import annotations

import pytest

from command_line import Machine
from dragoman_worker.hooks_and_deadlines import HOOKS
from wheelhouse import Driver, registry

CODE = """
from dragoman_api.columns import ColumnKind
from .memory_driver import MemoryDriver
from .memory_server import MemoryServer

class Driver(MemoryDriver):
    def __init__(self):
        server = MemoryServer(vectors={"shape": 2})
        server.kinds = {**server.kinds, "shape": ColumnKind.JSON}
        for number, row in server.objects["books"].items():
            row["shape"] = [int(number), 1]
        super().__init__(server)
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("similar")
    wheel = Driver("memory", code=CODE, hooks=[*HOOKS], capabilities=["browse", "filter", "tenants"])
    house = Machine(folder / "home")
    house("registry", "add", registry(folder / "registry", [wheel.write(folder / "wheels")]))
    house("connections", "add", "shop", "--type", "memory", "--yes")
    return house


def test_the_nearest_rows_are_a_table_and_json(machine):
    words = ("similar", "shop", "books", "4", "--filter", "stock > 1", "--columns", "id,stock", "--limit", "2")
    lines = [line.split() for line in machine(*words).out.splitlines()]
    assert lines == [["id", "stock", "_distance"], ["3", "3", "1.0"], ["2", "2", "2.0"]]
    document = machine(*words, "--json").json
    assert [(row["id"], row["_distance"]) for row in document["rows"]] == [("3", 1.0), ("2", 2.0)]


@pytest.mark.slow
def test_a_vector_is_a_list_of_numbers(machine):
    document = machine("similar", "shop", "books", "--vector", "[4, 1.0]", "--limit", "1", "--json").json
    assert [row["id"] for row in document["rows"]] == ["4"]
    assert "list of numbers" in machine("similar", "shop", "books", "--vector", "4,1", code=2).err
    words = ("similar", "shop", "books", "--vector", "[4, 1.0]", "--routing", "north")
    assert "--routing finds the row of an ID" in machine(*words, code=2).err
    assert "exactly one of them" in machine("similar", "shop", "books", code=2).err
    assert "makes no vectors of texts" in machine("similar", "shop", "books", "--text", "tea", code=1).err
    assert "shape" in machine("similar", "shop", "books", "4", "--column", "shap", code=1).err
