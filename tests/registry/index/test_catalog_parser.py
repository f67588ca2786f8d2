"""What a registry's index says, read record by record: which are left out, and that each fault is one of the index."""

from __future__ import annotations

import json

import pytest

from dragoman_registry.index.catalog_parser import sound_bindings, sound_records


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"types_version":2,"types":{}}', b'{"types":[]}'])
def test_a_file_without_bindings_is_a_fault_of_the_index(data: bytes) -> None:
    found, faults = sound_bindings(data)
    assert found is None
    assert {fault.code for fault in faults} == {"index"}


def test_a_binding_that_is_no_pair_of_names_is_left_out_alone() -> None:
    types = {"demo": "dragoman-demo", "../x": "dragoman-demo", "other": "../y", "third": 7}
    found, faults = sound_bindings(json.dumps({"types_version": 1, "types": types}).encode())
    assert found == {"demo": "dragoman-demo"}
    assert [(fault.code, fault.where) for fault in faults] == [("index", "types")] * 3


@pytest.mark.parametrize("data", [b"", b"[]", b'{"catalog_version":2,"projects":[]}', b'{"projects":{}}'])
def test_a_file_without_records_is_a_fault_of_the_index(data: bytes) -> None:
    found, faults = sound_records(data)
    assert found is None
    assert {fault.code for fault in faults} == {"index"}


def test_records_that_cannot_be_read_are_left_out_each_with_a_fault_of_the_catalog() -> None:
    found, faults = sound_records(json.dumps({"projects": [7, {}], "libraries": ["x"]}).encode())
    assert found is not None
    assert (found.projects, found.libraries) == ((), ())
    assert [(fault.code, fault.where) for fault in faults] == [("index", "catalog")] * 3
    assert [fault.reason.partition(" is left out: ")[0] for fault in faults] == [
        "$.projects[0]", "$.projects[1]", "$.libraries[0]",
    ]  # fmt: skip
