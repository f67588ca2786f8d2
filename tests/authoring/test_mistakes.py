"""Mistakes that authors make in a driver that `driver new` begins: a test of the kit or the check names each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest
from authoring.conftest import Tree

from dragoman.authoring.scaffold import scaffold
from dragoman_registry.client.installed_drivers import Store

DRIVER, MANIFEST = "driver.py", "driver.json"
METHODS = "    @hookimpl\n    async def list_objects"
LISTS = '"""List the collections."""\n'


def method(text: str) -> tuple[str, str, str]:
    """Return a change that adds a method to the driver's class."""
    return DRIVER, METHODS, f"{text}\n{METHODS}"


OVERWRITES = """    @hookimpl
    async def apply_change(self, plan):
        from dragoman_api import Outcome, OutcomeStatus
        from dragoman_api.kit.row_changes import row_of
        for planned in plan.planned:
            await self.send(planned.request)
        rows = map(row_of, plan.changes)
        return [Outcome(change=at, status=OutcomeStatus.APPLIED, id=row) for at, row in enumerate(rows)]
"""
WRONG_FOR_NULL = """    def _test(self, row, columns):
        test = super()._test(row, columns)
        return lambda value: value is not None and test(value)
"""
NUMBERS_AS_TEXTS = """    def _sort_key(self, name, kind, row):
        value = row.values.get(name)
        return None if value is None else super()._sort_key(name, kind, row) if isinstance(value, bool) else str(value)
"""
ESTIMATED = """    @hookimpl
    async def count_rows(self, request):
        return (await super().count_rows(request) + 5) // 10 * 10
"""
APPLIED_AFTER_ALL = """    async def _send(self, planned, change):
        from dragoman_api import ConnectionFailedError, Outcome, OutcomeStatus
        try:
            return await super()._send(planned, change)
        except ConnectionFailedError:
            return Outcome(change=0, status=OutcomeStatus.APPLIED, id="x")
"""
SAME_REVISION = """    async def scan_revision(self, name):
        return "1"
"""
THROUGH_FLOATS = '__import__("json").loads(reply.body, parse_int=float)'
NUMBER_AS_ID = """document[KEY] = int(document[KEY][1:])
                yield ScannedRow(key_of(name, document | {KEY: str(document[KEY])}), document)"""
SORTED_BY_CASE = """    def _sort_key(self, name, kind, row):
        value = row.values.get(name)
        return value.casefold() if isinstance(value, str) else super()._sort_key(name, kind, row)
"""

MISTAKES = {
    "an unguarded update overwrites": (
        "documents", [method(OVERWRITES)], "test_a_change_without_a_guard_spares_a_row_that_changed_since",
        "changed since its Update was planned",
    ),
    "a page skips rows": (
        "documents",
        [(DRIVER, "LISTED = 100", "LISTED = 3"), (DRIVER, 'page["documents"]:', 'page["documents"][bool(after) :]:')],
        "test_pages_tile_the_rows", "pages of",
    ),
    "an operator is wrong for null": (
        "documents", [method(WRONG_FOR_NULL)], "test_an_exact_filter_loses_nothing", "misses",
    ),
    "numbers come in the order of texts": (
        "documents", [method(NUMBERS_AS_TEXTS)], "test_a_sort_orders_the_rows", "mass is not in order",
    ),
    "a revision never changes": (
        "documents", [method(SAME_REVISION), (MANIFEST, '"export"]', '"export", "revisions"]')],
        "test_each_further_capability_is_shown_by_a_call", "revisions make no difference",
    ),
    "a count is estimated": (
        "documents", [method(ESTIMATED)], "test_the_total_of_a_page_and_the_count_are_the_rows",
        "count_rows returns 10",
    ),
    "a capability is claimed and absent": (
        "documents", [(MANIFEST, '"export"]', '"export", "time-range"]')],
        "test_each_further_capability_is_shown_by_a_call", "no object has a time column",
    ),
    "an option is not in the manifest": (
        "documents", [(DRIVER, "self.http = http\n", 'self.http = http\n        profile.options["path"]\n')],
        "test_objects_are_listed_once_each", "KeyError: 'path'",
    ),
    "an exception of a library": (
        "documents", [(DRIVER, LISTS, f'{LISTS}        int("many")\n')],
        "test_objects_are_listed_once_each", "driver.py",
    ),
    "times without a zone": (
        "timeseries", [(DRIVER, 'TIME: sample["time"], **values', 'TIME: sample["time"][:-1], **values')],
        "test_the_time_column_is_described_and_holds_instants", "no instant",
    ),
    "a lost answer is taken for applied": (
        "documents", [method(APPLIED_AFTER_ALL)], "test_a_change_whose_answer_is_lost_is_unknown", "UNKNOWN",
    ),
    "names of objects are not quoted": (
        "documents", [(DRIVER, "/collections/{quote(name, safe='')}/documents", "/collections/{name}/documents")],
        "test_a_name_is_never_read_as_more_than_a_name", "percent-encoded",
    ),
    "bytes become a text": (
        "keyvalue", [(DRIVER, 'key.text), value, "text', 'key.text), str(value.encode()), "text')],
        "test_an_update_changes_the_named_columns_only", "b'",
    ),
    "a call blocks the event loop": (
        "documents", [(DRIVER, LISTS, f'{LISTS}        __import__("time").sleep(0.01)\n')],
        "test_objects_are_listed_once_each", "driver.py",
    ),
    "digits are lost": (
        "documents", [(DRIVER, "self.read(reply, Any)", THROUGH_FLOATS)], "test_a_whole_number_keeps_every_digit",
        "is stored as 1.23",
    ),
    "the id of a row is a number, and a text in its key": (
        "documents", [(DRIVER, "yield ScannedRow(key_of(name, document), document)", NUMBER_AS_ID)],
        "test_cells_match_columns_and_keys_match_rows", "the key of a row is '1', and its key columns hold [1]",
    ),
    "texts are sorted whatever their case": (
        "documents", [method(SORTED_BY_CASE)], "test_a_sort_orders_the_rows", "name is not in order: texts are",
    ),
}  # fmt: skip
"""The kind of driver, what is changed in it, the test that finds it, and words of the reason, or the file it names."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["documents", "keyvalue", "timeseries"])
def test_a_mistake_of_an_author_is_found_and_said(tmp_path, kind):
    """One run of pytest holds the drivers of one kind, whose fake is the same."""
    store, drivers, tests = Store(tmp_path / "home"), {}, []
    for mistake, (its_kind, changes, found_by, word) in MISTAKES.items():
        if its_kind != kind:
            continue
        name = f"orbit{len(drivers)}"
        tree = Tree(scaffold(name, type=name, port=7700, kind=kind, into=tmp_path, registries=(), store=store))
        for file, old, new in changes:
            tree.change(f"dragoman_{name}/{file}", (old, new))
        tests.append(f"{tree.path.name}/tests/test_conformance.py::TestOnFake::{found_by}")
        drivers[f"dragoman-{name}"] = (mistake, word)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "--import-mode=importlib"]
    paths = [*map(str, map(tmp_path.joinpath, drivers)), str(tmp_path / "dragoman-orbit0/tests")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    words += ["--rootdir=.", "--junitxml=results.xml", *tests]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    reasons: dict[str, str] = {}
    for case in ET.parse(tmp_path / "results.xml").iter("testcase"):
        reasons[case.attrib["classname"].partition(".")[0]] = "".join(failure.text or "" for failure in case)
    for driver, (mistake, word) in drivers.items():
        said = [line for line in reasons[driver].splitlines() if line.startswith("E ") or "/driver.py:" in line]
        assert any(word in line for line in said), (mistake, reasons[driver])


@pytest.mark.slow
def test_a_mistake_that_needs_no_server_is_found_with_its_line(tmp_path):
    """A heavy import where a connection waits for it, a secret in an error and in the log, a wheel that is missing."""
    store, tokens = Store(tmp_path / "home"), ("bearer",)
    tree = Tree(scaffold("orbit", type="orbit", port=7700, auth=tokens, into=tmp_path, registries=(), store=store))
    tree["dragoman_orbit/heavy.py"].write_text(
        "from time import process_time\nend = process_time() + 0.4\nwhile process_time() < end:\n    pass\n"
    )
    opening, raising = (
        "        print('opens', profile.secrets.values)",
        "        raise ValueError(str(profile.secrets.values))",
    )
    tree.driver(
        ("from typing import Any\n", "from typing import Any\nfrom . import heavy\n"),
        ("        self.http = http\n", f"{opening}\n{raising}\n"),
    )
    lines = ["", *tree.code.read_text().splitlines()]
    reasons = [f"{fault.code}: {fault.reason}" for fault in tree.check().faults]
    slow, *shown = sorted(reasons)
    assert re.fullmatch(rf"import-time: .* at dragoman_orbit/driver.py:{lines.index('from . import heavy')}: .*", slow)
    showing = "secret-shown: During connect, a secret of the connection is in"
    error = f"{showing} its ValueError (dragoman_orbit/driver.py:{lines.index(raising)})."
    assert shown == [f"{showing} a line of its log, \"opens {{'api_key': '***'}}\".", error]
    tree["dragoman_orbit/heavy.py"].write_text("import numpy_that_is_not_there\n")
    [fault] = tree.check().faults
    assert "No module named 'numpy_that_is_not_there' (dragoman_orbit/heavy.py:1). List" in fault.reason
