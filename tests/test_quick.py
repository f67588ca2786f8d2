"""`make quick`: which checks and tests belong to a touched file."""

from __future__ import annotations

import pytest
from tests.quick import ROOT, files_that_hold, module_of


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("runtime/dragoman/exports/target_files.py", "dragoman.exports.target_files"),
        ("runtime/dragoman_worker/wire.py", "dragoman_worker.wire"),
        ("plugins/api/dragoman_api/kit/__init__.py", "dragoman_api.kit"),
        ("plugins/weaviate/dragoman_weaviate/graphql.py", "dragoman_weaviate.graphql"),
        ("plugins/bundle.py", None),
        ("tests/test_quick.py", None),
    ],
)
def test_a_file_belongs_to_a_module_of_its_package_or_to_none(file, module):
    assert (ROOT / file).exists()
    assert module_of(file) == module


def test_the_tests_of_a_module_are_those_of_the_table_without_whole_stories():
    tests = files_that_hold("dragoman_querydsl.grid.clauses")
    assert "tests/drivers/elasticsearch/grid/test_filters.py" in tests
    assert not [test for test in tests if "system" in test or "architecture" in test]


def test_a_module_that_no_table_lists_has_the_tests_that_import_it():
    assert "tests/worker/test_process_output.py" in files_that_hold("dragoman.sandbox.bare_process")
