"""Mistakes that authors make, one at a time in a driver that `driver new` begins: a test of the kit names each."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from authoring.conftest import Tree

from dragoman.authoring.scaffold import scaffold
from dragoman_registry.client.installed_drivers import Store

DRIVER, MANIFEST = "dragoman_orbit/driver.py", "dragoman_orbit/driver.json"
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
        "documents", [method(APPLIED_AFTER_ALL)], "lost", "UNKNOWN",
    ),
    "names of objects are not quoted": (
        "documents", [(DRIVER, "/collections/{quote(name, safe='')}/documents", "/collections/{name}/documents")],
        "test_a_name_is_never_read_as_more_than_a_name", "percent-encoded",
    ),
    "bytes become a text": (
        "keyvalue", [(DRIVER, 'key.text), value, "text', 'key.text), str(value.encode()), "text')],
        "test_an_update_changes_the_named_columns_only or test_an_insert", "b'",
    ),
}  # fmt: skip
"""The kind of driver, what is changed in it, the test that finds it, and words of the reason, or the file it names."""


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_an_author_is_found_and_said(tmp_path, mistake):
    kind, changes, found_by, word = MISTAKES[mistake]
    store = Store(tmp_path / "home")
    tree = Tree(scaffold("orbit", type="orbit", port=7700, kind=kind, into=tmp_path, registries=(), store=store))
    for file, old, new in changes:
        tree.change(file, (old, new))
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "-k", found_by]
    env = os.environ | {"PYTHONPATH": str(tree.path)}
    done = subprocess.run(words, cwd=tree.path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    reasons = [line for line in done.stdout.splitlines() if line.startswith(("E ", "dragoman_orbit/driver.py:"))]
    assert any(word in line for line in reasons), done.stdout
