"""Copies from a search engine into a vector database and back, as a stranger types them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from uuid import NAMESPACE_DNS, uuid5

import pytest
from anyio.from_thread import start_blocking_portal

from clusters import cluster_of, send
from dragoman_sample.fakes.weaviate import FakeWeaviate
from stranger import stranger

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

ROWS = 6_500
MAPPING = {"n": {"type": "long"}, "place": {"type": "geo_point"}, "ship": {"properties": {"city": {"type": "keyword"}}}}


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple]:
    with (
        cluster_of("8.19.21") as search,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(FakeWeaviate()) as vectors,
    ):
        send(search, "PUT", "/orders", {"mappings": {"properties": MAPPING}})
        lines = "".join(
            f'{{"index":{{"_id":"{at}"}}}}\n{{"n":{at},"place":{{"lat":1,"lon":2}},"ship":{{"city":"x"}}}}\n'
            for at in range(ROWS)
        )
        send(search, "POST", "/orders/_bulk?refresh=true", lines)
        yield search, vectors


@pytest.fixture(scope="module")
def machine(servers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("copier")
    shell = stranger(folder / "home", cwd=folder)
    for name, kind, server in zip(("shop", "lab"), ("elasticsearch", "weaviate"), servers, strict=True):
        shell(f"dragoman connections add {name} --type {kind} --port {server.port} --auth none --yes")
    return shell


@pytest.fixture
def shell(machine, servers, tmp_path):
    """Yield a shell in a folder of its own; the collection goes in the end."""
    yield machine.beside(cwd=tmp_path)
    servers[1].behave()
    send(servers[1], "DELETE", "/v1/schema/Orders")


def test_a_copy_is_shown_refused_without_consent_and_made_with_it(shell):
    copy = "dragoman copy shop orders lab Orders --create --filter 'n < 3'"
    shown = shell(f"{copy} --dry-run")
    for part in ("Orders does not exist; the columns, after a look at the first 3 rows:", "nothing was sent",
                 "place (geo_point)", "→ place (text), as its JSON text", "→ ship_city (text), under another name",
                 "ids: ids there are UUIDs, and these are not"):  # fmt: skip
        assert part in shown.err, shown.err
    plan = shell(f"{copy} --dry-run --json").out.splitlines()
    assert [column["name"] for column in json.loads(plan[0])["columns"]] == ["n", "place", "ship_city"]
    assert json.loads(plan[1])["path"] == "/v1/schema"
    refused = shell(copy, code=None)
    assert (refused.code != 0, "Cannot ask: not a terminal" in refused.err) == (True, True)
    hint = "--map place=place --map ship.city=ship_city --ids derive"
    assert hint in refused.err
    done = shell(f"{copy} {hint} --json")
    assert done.json["counts"]["applied"] == 3
    back = shell("dragoman copy lab Orders shop back --create --yes --json")
    assert (back.json["counts"]["applied"], back.json["rejected"]) == (3, None)
    assert [*shell.cwd.iterdir()] == []


@pytest.mark.parametrize(("path", "after"), [("/v1/batch/objects", 1), ("", 14)], ids=["loses-batches", "is-gone"])
def test_a_target_that_dies_in_the_middle_counts_what_was_written_and_the_rest_follows(shell, servers, path, after):
    servers[1].misbehave("drop", on=path, after=after)
    died = shell("dragoman copy shop orders lab Orders --create --yes", code=None)
    assert died.code in (1, 3, 4), died
    applied = int(re.search(r"applied ([\d,]+)", died.err)[1].replace(",", ""))
    assert applied < ROWS
    servers[1].behave()
    done = shell("dragoman copy shop orders lab Orders --yes --on-conflict skip --json")
    assert (done.json["rows"], done.json["complete"]) == (ROWS, True)
    assert done.json["counts"]["applied"] + done.json["counts"]["skipped"] == ROWS
    assert done.json["counts"]["skipped"] >= applied
    last = str(uuid5(NAMESPACE_DNS, str(ROWS - 1)))
    assert json.loads(send(servers[1], "GET", f"/v1/objects/Orders/{last}"))["properties"]["n"] == ROWS - 1


def test_options_that_fit_no_copy_are_refused(shell):
    assert "--create makes" in shell("dragoman copy shop orders lab Orders --type n=text", code=2).err
    assert (
        "no column 'nothing'" in shell("dragoman copy shop orders lab Orders --create --map nothing=x", code=None).err
    )
    assert "a copy keeps ids and types" in shell("dragoman copy shop orders shop new --create --ids new", code=None).err
