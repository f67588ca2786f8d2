"""A home that 1.0.0 left behind opens, goes on and ends; files of a newer version are refused and stay as they are.

`state-1.0.0.tar.xz` is what it wrote: a saved connection with a query, a registry that is trusted and gone, a driver
that is pinned at 1.0.0 after 1.1.0, an export and a load that were killed midway. It is not made anew.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

import wheelhouse
from command_line import Machine
from dragoman_api.errors import DragomanError, IndexInvalidError
from dragoman_api.installation import upgrade_command
from dragoman_dask.folder_target import FolderTarget
from dragoman_dask.target import PLAN
from dragoman_registry.index import search_summaries
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.wheels.manifest_checks import check_manifest
from unpacking import unpack

STATE = Path(__file__).with_name("state-1.0.0.tar.xz")
PLACE = "ROOT"
"""What stands in the archive for the folder that it was written in."""


@pytest.fixture
def left(tmp_path):
    """Unpack the home and what lay beside it."""
    unpack(STATE, tmp_path)
    config = tmp_path / "home/config/config.toml"
    config.write_text(config.read_text().replace(PLACE, str(tmp_path)))
    return Machine(tmp_path / "home", cwd=tmp_path)


def contents(folder: Path, file: Path) -> dict[str, bytes]:
    """Return what may not change: all but caches, and what the state remembers of registries if it is another file."""
    names = [path for path in folder.rglob("*") if path.is_file() and "cache" not in path.parts]
    return {
        str(path): path.read_bytes()
        for path in names
        if path == file or not (path.name.startswith("state.db") or path.name.endswith(".lock"))
    }


def test_what_1_0_saved_and_installed_is_there_and_works(left):
    assert left("objects", "shop", "--json").json["objects"][0]["name"] == "books"
    assert [row["id"] for row in left("page", "shop", "@dear", "--json").json["rows"]] == ["2", "1", "3"]
    [driver] = left("plugins", "list", "--json").json["plugins"]
    assert (driver["id"], driver["version"], driver["pin"], driver["state"]) == ("demo", "1.0.0", "1.0.0", "installed")
    assert left("plugins", "rollback", "demo", "--json").json["rolled_back"]["version"] == "1.1.0"
    assert left("count", "shop", "books", "--json").json == {"count": 3}


def test_an_export_that_1_0_began_is_ended(left, tmp_path):
    safe = json.loads((tmp_path / ".tape.ndjson.checkpoint").read_bytes())["rows"]
    assert 0 < safe < 100
    ended = left("export", "shop", "tape", "-o", "tape.ndjson", "--resume", "--json")
    lines = (tmp_path / "tape.ndjson").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [str(number) for number in range(100)]
    assert (ended.json["rows"], ended.json["resumed"]) == (100, 1)
    assert not (tmp_path / ".tape.ndjson.checkpoint").exists()


def test_a_load_that_1_0_began_is_ended(left, tmp_path):
    ended = left("import", "shop", "books", "rows.ndjson", "--batch", "10", "--resume", "--json", code=4)
    counts = ended.json["counts"]
    assert (counts["applied"], counts["refused"], ended.json["resumed"]) == (39, 1, 1)
    assert not (tmp_path / ".rows.ndjson.import").exists()


def raised(path: Path, member: str) -> None:
    """Write the version of a later format into a file, with a member that this one does not know."""
    document = json.loads(path.read_bytes()) | {member: 7, "later": True}
    path.write_bytes(msgspec.json.encode(document))


def newer_state(folder: Path) -> Path:
    file = folder / "home/data/state.db"
    with closing(sqlite3.connect(file)) as state:
        state.execute("PRAGMA user_version = 7")
    return file


def newer(name: str, member: str):
    def write(folder: Path) -> Path:
        raised(folder / name, member)
        return folder / name

    return write


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "lines"),
    [
        (newer_state, ["plugins list", "page shop books", "plugins gc", "plugins remove demo --yes", "plugins sync"]),
        (newer("home/data/plugins.lock", "lock_version"), ["plugins sync", "plugins rollback demo"]),
        (newer(".tape.ndjson.checkpoint", "version"), ["export shop tape -o tape.ndjson --resume",
                                                       "export shop tape -o tape.ndjson"]),
        (newer(".rows.ndjson.import", "version"), ["import shop books rows.ndjson --batch 10 --resume",
                                                   "import shop books rows.ndjson --batch 10"]),
    ],
    ids=["state", "lock", "export", "load"],
)  # fmt: skip
def test_a_file_of_a_newer_version_is_refused_and_nothing_is_lost(left, tmp_path, write, lines):
    file = write(tmp_path)
    before = contents(tmp_path, file)
    for line in lines:
        ended = left("dragoman " + line + " --json", code=None)
        failure = json.loads(ended.err.strip().splitlines()[-1])["error"]
        assert failure["code"] == "state-newer", ended
        assert re.search(rf"{re.escape(file.name)} was written by a newer dragoman: its format has version 7, "
                         "and this one knows 1; nothing was changed", failure["message"])  # fmt: skip
        assert failure["hint"] == upgrade_command()
        assert contents(tmp_path, file) == before, line


def test_the_plan_of_an_export_in_parts_of_a_newer_version_is_refused(tmp_path):
    target = FolderTarget(tmp_path)
    plan = tmp_path / PLAN
    plan.write_bytes(b'{"version": 7, "later": true}')
    plan.chmod(0o600)
    with pytest.raises(DragomanError, match=rf"{re.escape(str(plan))} was written by a newer dragoman") as caught:
        target.open(resume=True)
    assert (caught.value.code, caught.value.hint) == ("state-newer", upgrade_command())
    assert plan.read_bytes() == b'{"version": 7, "later": true}'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("catalog", lambda registry: registry.catalog()),
        ("catalog", lambda registry: registry.sifted()),
        ("catalog", lambda registry: registry.project("demo")),
        ("catalog", lambda registry: registry.releases("demo")),
        ("types", lambda registry: registry.types()),
        ("advisories", lambda registry: registry.advisories()),
        ("browse", search_summaries.read),
        ("browse", lambda registry: search_summaries.read(registry, on_fault=lambda name, reason: None)),
    ],
)
def test_an_index_of_a_newer_version_is_refused(tmp_path, name, read):
    team = wheelhouse.registry(tmp_path / "team", [wheelhouse.Driver().write(tmp_path / "wheels")])
    registry = Registry("team", str(team), trust=wheelhouse.TrustedPath())
    read(registry)
    raised(team / "targets" / name, f"{name}_version")
    with pytest.raises(IndexInvalidError, match=rf"targets/{name} was written by a newer dragoman") as caught:
        read(registry)
    assert (caught.value.code, caught.value.hint) == ("state-newer", upgrade_command())


def test_a_manifest_of_a_newer_version_is_refused_for_that_alone():
    document = wheelhouse.manifest() | {"manifest_version": 2, "later": [1]}
    manifest, faults = check_manifest(msgspec.json.encode(document))
    assert manifest is None
    assert [fault.reason for fault in faults] == [
        "$.manifest_version is 2, and this dragoman knows 1: a newer one reads it"
    ]
