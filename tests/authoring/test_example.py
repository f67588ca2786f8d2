"""The third driver: written from the tutorial and the reference alone, and as good as the first two."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from authoring.conftest import Tree, serving

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[1] / "examples/dragoman-couch"


@pytest.fixture(scope="module")
def couch(tmp_path_factory):
    return Tree(shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("example") / "dragoman-couch"))


def test_the_example_has_no_fault_and_conforms_in_the_sandbox(couch, type_in, tmp_path):
    done = type_in("driver", "publish", couch.path, "--to", tmp_path / "team")
    assert done.out.startswith("published couch 0.1.0 (sha256 ")
    report = json.loads(couch["report.json"].read_text())
    assert report["hooks"] == [
        "complete_console", "export_rows", "hold_snapshot", "preview_read", "read_status", "similar_rows",
        "split_export", "summarize_column",
    ]  # fmt: skip
    assert (report["failures"], report["deviations"]) == ([], [])
    assert not [why for why in report["skips"] if why.startswith("the target")]  # nothing was kept from the kit
    assert report["engines"]["fake"]["passed"] >= 40


def test_a_person_browses_filters_edits_and_asks_with_it(couch, type_in, tmp_path):
    """Published, installed on open, and used through the host: filter, dry run, guarded update, console."""
    if not couch["report.json"].exists():
        type_in("driver", "test", couch.path)
    type_in("driver", "publish", couch.path, "--to", tmp_path / "team")
    type_in("registry", "add", tmp_path / "team")
    with serving(couch) as port:
        form = ("--type", "couchdb", "--host", "127.0.0.1", "--port", port, "--auth-method", "none")
        assert "connected: CouchDB 3.3.3" in type_in("connections", "add", "shelf", *form, "--yes").out
        found = type_in("page", "shelf", "books", "--filter", "price > 11", "--filter", "stock in 1,2", "--json")
        rows = found.json["rows"]
        assert rows
        assert all(row["price"] > 11 and row["stock"] in (1, 2) for row in rows)
        dry = type_in("update", "shelf", "books", "book-01", "--set", "price=5", "--dry-run").out
        request, body = dry.splitlines()[:2]
        assert request == "PUT /books/book-01"
        assert (json.loads(body)["price"], json.loads(body)["_rev"][:2]) == (5, "1-")
        type_in("update", "shelf", "books", "book-01", "--set", "price=5")
        told = type_in("console", "shelf", "GET /books/book-01", "--json").json
        assert '"price": 5' in json.dumps(told)
        assert "2-" in json.dumps(told)
