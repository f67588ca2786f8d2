"""Finding drivers from a shell: words, filters, order, narrow terminals; and everything that is known of one."""

from __future__ import annotations

import json

import pytest

import marketplace
import wheelhouse
from bundled_drivers import MANIFESTS
from command_line import Machine
from dragoman_registry.publisher import publish
from forging import forge
from slow_cases import mostly_slow
from terminal import Terminal


@pytest.fixture(scope="session")
def offered(tmp_path_factory):
    """Publish a handful of drivers."""
    return marketplace.sample(tmp_path_factory.mktemp("offered"))


@pytest.fixture(scope="session")
def added(offered, tmp_path_factory):
    """Make a home that knows their registry."""
    house = Machine(tmp_path_factory.mktemp("browsing"))
    house("registry", "add", offered, "--name", "market")
    return house


@pytest.fixture
def known(added, tmp_path):
    """Return a copy of that home."""
    wheelhouse.copy(added.home, tmp_path / "known")
    return Machine(tmp_path / "known")


def drivers(*others, capability="browse"):
    """Name the bundled drivers with a capability, and others, in order."""
    return sorted([*others, *(name for name in MANIFESTS if capability in MANIFESTS[name]["capabilities"])])


def ids(house, *words):
    return [one["id"] for one in house("plugins", "browse", *words, "--json").json["plugins"]]


def test_words_match_id_label_types_and_summary_and_all_of_them_must(known):
    assert ids(known) == drivers("files", "meili", "redis")
    assert ids(known, "Parquet") == ["files"]
    assert ids(known, "meilisearch") == ["meili"]
    assert ids(known, "one", "column", "HASH") == ["redis"]
    assert ids(known, "redis", "parquet") == []
    assert ids(known, "arrow") == ["files"], "a type is a name as well"
    assert ids(known, "vectors", "--capability", "filter", "--compatible") == ["weaviate"]


def test_the_best_match_comes_first(known):
    """An id before its beginning, that before a name, and a summary last."""
    assert ids(known, "files")[0] == "files"
    assert ids(known, "edit") == drivers("meili", capability="edit")
    assert ids(known, "search")[:2] == ["elasticsearch", "meili"]
    assert ids(known, "documents", "meili")[0] == "meili"


def test_filters_combine(known):
    assert ids(known, "--capability", "console") == drivers("redis", capability="console")
    assert ids(known, "--capability", "edit", "--type", "meilisearch") == ["meili"]
    assert ids(known, "--capability", "edit", "--type", "parquet") == []
    assert "tenants" in known("plugins", "browse", "--capability", "fly", code=2).err


def test_what_no_version_of_fits_is_listed_as_such_and_left_out_on_request(known, offered, tmp_path):
    wheelhouse.copy(offered.parent, tmp_path / "copy")
    root = tmp_path / "copy" / "registry"
    for version in ("1.2.0", "1.1.0"):
        publish.mark(root, project="meili", version=version, status="quarantined", reason="steals")
    known("registry", "remove", "market")
    known("registry", "add", root, "--name", "other")
    [meili] = [one for one in known("plugins", "browse", "--json").json["plugins"] if one["id"] == "meili"]
    assert (meili["state"], meili["version"]) == ("incompatible", "1.2.0")
    assert "meili" not in ids(known, "--compatible")


@pytest.mark.slow
def test_an_installed_driver_says_so_and_whether_there_is_a_newer_one(empty):
    empty("plugins", "install", "demo", "--version", "1.0.0")
    states = {one["id"]: (one["state"], one["version"]) for one in empty("plugins", "browse", "--json").json["plugins"]}
    assert states["demo"] == ("update", "1.1.0")
    empty("plugins", "pin", "demo")
    assert "installed" in empty("plugins", "browse", "demo").out.splitlines()[1].split()
    empty("registry", "remove", "team")
    assert "demo" in ids(empty), "what is installed is listed wherever it came from"


def test_a_limit_keeps_the_best_and_says_how_many_more_there_are(known):
    done = known("plugins", "browse", "--limit", "2")
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == drivers("files", "meili", "redis")[:2]
    assert f"… {len(MANIFESTS) + 1} more" in done.err
    assert "at least" not in known("plugins", "browse", "--limit", "0", code=2).out


@pytest.mark.parametrize("columns", mostly_slow(["80", "60", "200"], fast=["60"]))
def test_no_column_is_lost_on_a_narrow_terminal(known, columns):
    code, shown = Terminal(known, "plugins", "browse", COLUMNS=columns).end()
    assert code == 0
    lines = shown.splitlines()
    assert lines[0].split() == ["ID", "LABEL", "TYPE", "VERSION", "STATE", "REACHES"]
    assert max(map(len, lines)) <= int(columns)
    assert "more column" not in shown
    if columns != "60":  # where words are broken
        for word in ("elasticsearch", "Elasticsearch", "1.0.0", "available", "connection's"):
            assert word in shown


def test_the_details_tell_everything_that_is_known(known):
    shown = known("plugins", "show", "meili").out
    for part in (
        "Meilisearch Driver", "1.2.0 (", "market", "reaches the connection's host and port",
        "is given that connection's credentials", "browse, sort, filter, edit", "79 passed, 0 failed, 27 skipped",
        "Apache-2.0", "Changelog", "- Facets as columns", "Readme", "| `host` | where the server listens",
    ):  # fmt: skip
        assert part in shown, part
    table = [line.split(maxsplit=5) for line in shown.partition("VERSION ")[2].splitlines()[1:4]]
    assert [line[0] for line in table] == ["1.2.0", "1.1.0", "1.0.0"]
    assert all(line[1] == f"{wheelhouse.NOW:%Y-%m-%d}" for line in table)
    assert [line[5:] for line in table] == [
        [], ["yanked: loses the order of facets"], ["quarantined: sends keys to a foreign host"],
    ]  # fmt: skip


def test_the_details_say_who_vouches_for_the_bytes(known):
    def vouched(name):
        [line] = [each for each in known("plugins", "show", name).out.splitlines() if each.startswith("vouched for by")]
        return line.removeprefix("vouched for by").strip()

    assert ", by the key " in vouched("meili")
    known("registry", "remove", "market")
    assert vouched("weaviate") == "came with dragoman, which holds each of its files to a digest"


def test_the_details_are_a_document_too(known):
    document = known("plugins", "show", "meili", "--json").json
    assert document["listing"]["capabilities"] == ["browse", "sort", "filter", "edit"]
    assert document["versions"][1]["reason"] == "loses the order of facets"
    assert document["report"]["engines"]["meilisearch 1.9"] == {"passed": 38, "skipped": 15}
    assert document["readme"].startswith("# Meilisearch driver")


def test_the_installed_version_is_marked_among_all(empty):
    empty("plugins", "install", "demo", "--version", "1.0.0")
    lines = empty("plugins", "show", "demo").out.partition("VERSION ")[2].splitlines()[1:3]
    assert [line.endswith("installed") for line in lines] == [False, True]


@pytest.mark.slow
def test_a_terminal_obeys_nothing_an_author_wrote(tmp_path):
    house = Machine(tmp_path / "home")
    house("registry", "add", marketplace.hostile(tmp_path / "r"), "--name", "evil")
    shown = house("plugins", "show", "evil10").out + house("plugins", "browse").out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\\u202egnp.exe" in shown
    rendered = Terminal(house, "plugins", "show", "evil5", COLUMNS="80")
    rendered.until("Readme")
    _, rest = rendered.end()
    assert "\x1b]" not in rest
    assert "\\u202e" in rest


@pytest.mark.slow
def test_a_readme_is_rendered_on_a_terminal(known):
    screen = Terminal(known, "plugins", "show", "meili", COLUMNS="100")
    screen.until("Readme")
    _, shown = screen.end()
    assert "**before**" not in shown
    assert "before" in shown
    assert "notes on ranking (docs/ranking.md)" in shown


def test_damaged_rows_are_an_error_that_names_the_registry(known, offered, tmp_path):
    wheelhouse.copy(offered.parent, tmp_path / "copy")
    root = tmp_path / "copy" / "registry"
    known("registry", "remove", "market")
    known("registry", "add", root, "--name", "other")
    for rows in (root / "targets").glob("*browse"):
        rows.write_bytes(json.dumps({"drivers": []}).encode())
    done = known("plugins", "browse", "--events", tmp_path / "events")
    assert "elasticsearch" in done.out, "the bundled registry still answers"
    [failed] = [
        json.loads(line) for line in (tmp_path / "events").read_text().splitlines() if "registry.failed" in line
    ]
    assert failed["registry"] == "other"


BAD = {
    "a range of 5,000 digits": lambda row: row[8][0].__setitem__(1, f"~=1.{'0' * 5_000}"),
    "a range of 200,000 clauses": lambda row: row[8][0].__setitem__(2, [",".join([">=3"] * 200_000)]),
    "a range that is none": lambda row: row[8][0].__setitem__(2, ["soon"]),
    "tags that multiply out": lambda row: row[8][0].__setitem__(3, [["-".join([".".join("a" * 999)] * 3)]]),
    "a number for its label": lambda row: row.__setitem__(2, int("9" * 4_000)),
    "a size beyond all disks": lambda row: row[8][0].__setitem__(4, int("2" * 40)),
    "a size below nothing": lambda row: row[8][0].__setitem__(4, -1),
    "half of its columns": lambda row: row.__delitem__(slice(4, None)),
}


@pytest.mark.parametrize("spoil", BAD.values(), ids=BAD)
@pytest.mark.slow
def test_one_bad_record_hides_itself_and_says_so_and_takes_no_other_with_it(spoil, known, offered, tmp_path):
    wheelhouse.copy(offered.parent, tmp_path / "copy")
    root = tmp_path / "copy" / "registry"
    rows = json.loads((root / "targets/browse").read_bytes())
    spoil(next(row for row in rows["drivers"] if row[0] == "meili"))
    forge(root, {"browse": json.dumps(rows).encode()})
    known("registry", "remove", "market")
    known("registry", "add", root, "--name", "other")
    done = known("plugins", "browse", "--json")
    assert [one["id"] for one in done.json["plugins"]] == [*drivers("files", "redis"), "meili"]
    meili = done.json["plugins"][-1]
    assert (meili["state"], meili["registry"], meili["types"]) == ("unreadable", "other", [])
    assert meili["summary"] in done.err
    assert "meili of registry other was left out: " in done.err
    assert len(meili["summary"]) < 300
    assert ids(known, "--compatible") == drivers("files", "redis")
    assert ids(known, "redis") == ["redis"]
    assert known("plugins", "show", "redis", "--json").json["listing"]["id"] == "redis"


@pytest.mark.parametrize(
    "said", [7, {"1.0.0": None}, {"1.0.0": ["x"]}, int("9" * 4_000)], ids=lambda said: str(said)[:9]
)
def test_an_advisory_that_cannot_be_read_holds_back_every_version_of_its_project_alone(said, known, offered, tmp_path):
    wheelhouse.copy(offered.parent, tmp_path / "copy")
    root = tmp_path / "copy" / "registry"
    advisories = {"quarantined": {"dragoman-redis": said, "dragoman-meili": {"1.1.0": "steals"}}}
    forge(root, {"advisories": json.dumps(advisories).encode()})
    known("registry", "remove", "market")
    known("registry", "add", root, "--name", "other")
    found = {one["id"]: (one["state"], one["version"]) for one in known("plugins", "browse", "--json").json["plugins"]}
    assert found["redis"] == ("incompatible", "1.0.0")
    assert found["meili"] == ("available", "1.2.0")
    said = known("plugins", "install", "redis", code=1).err
    assert "error[release-incompatible]: " in said
    assert " 1.0.0 skipped: its advisory cannot be read: " in said


@pytest.mark.slow
def test_a_registry_with_one_bad_record_is_added_and_searched_all_the_same_and_doctor_names_the_record(
    known, offered, tmp_path
):
    wheelhouse.copy(offered.parent, tmp_path / "copy")
    root = tmp_path / "copy" / "registry"
    catalog = json.loads((root / "targets/catalog").read_bytes())
    meili = next(one for one in catalog["projects"] if one["plugin"] == "meili")
    meili["releases"][0]["host_api"] = f"~=1.{'0' * 5_000}"
    forge(root, {"catalog": json.dumps(catalog).encode()})
    known("registry", "remove", "market")
    known("registry", "add", root, "--name", "other")
    assert known("plugins", "show", "redis", "--json").json["listing"]["id"] == "redis"
    assert known("plugins", "show", "meili", "--json").json["listing"]["version"] == "1.1.0"
    told = [one for one in known("doctor", "--json").json["findings"] if "other" in one["subject"]]
    assert [one["state"] for one in told] == ["ok", "warning"]
    assert "left out" in str(told[1])
