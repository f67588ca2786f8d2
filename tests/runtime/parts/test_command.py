"""The command `export --parts` finds the wheel that does it, or says how to get it."""

from __future__ import annotations

import json

import pytest

from dragoman.cli import export
from dragoman_api.installation import add_command


@pytest.mark.parametrize("words", ["--parts 2", "--parts 2 --cluster local", "--parts 1 --format csv"])
def test_without_its_wheel_the_command_says_how_to_get_it(dragoman, open_memory, monkeypatch, tmp_path, words):
    open_memory()
    monkeypatch.setattr(export, "PACKAGE", "dragoman_dask_that_is_missing")
    ended = dragoman("export", "memory", "books", "-o", str(tmp_path / "books"), *words.split(), code=2)
    assert "error[extra-missing]: exports in parts, into stores and on clusters need dragoman-dask" in ended.err
    assert f"try: {add_command('dragoman-dask')}\n" in ended.err
    assert not (tmp_path / "books").exists()


def test_a_missing_wheel_is_told_before_the_connection_is_opened(dragoman, monkeypatch, tmp_path):
    monkeypatch.setattr(export, "PACKAGE", "dragoman_dask_that_is_missing")
    ended = dragoman("export", "nowhere", "books", "-o", str(tmp_path / "books"), "--parts", "2", code=2)
    assert "error[extra-missing]" in ended.err


@pytest.mark.parametrize("output", [["-o", "s3://bucket/books"], ["--output=s3a://bucket/books"]])
def test_for_a_store_the_command_says_all_that_it_needs_at_once(dragoman, monkeypatch, output):
    monkeypatch.setattr(export, "PACKAGE", "dragoman_dask_that_is_missing")
    ended = dragoman("export", "nowhere", "books", "--parts", "2", *output, code=2)
    assert f"try: {add_command('dragoman-dask[s3]')}\n" in ended.err


def test_a_single_file_needs_no_wheel_and_is_no_url(dragoman, open_memory, monkeypatch, tmp_path):
    open_memory()
    monkeypatch.setattr(export, "PACKAGE", "dragoman_dask_that_is_missing")
    dragoman("export", "memory", "books", "-o", str(tmp_path / "books.ndjson"))
    assert (tmp_path / "books.ndjson").stat().st_size > 0
    ended = dragoman("export", "memory", "books", "-o", "s3://bucket/books.ndjson", code=2)
    assert "a single file cannot be a URL; add --parts 1" in ended.err


def test_with_its_wheel_the_parts_are_in_the_folder(dragoman, open_memory, tmp_path):
    open_memory()
    ended = dragoman("export", "memory", "books", "-o", str(tmp_path / "books"), "--parts", "2", "--json")
    manifest = json.loads((tmp_path / "books" / "manifest.json").read_text())
    assert ended.json == manifest
    assert [part["file"] for part in manifest["parts"]] == ["part-00000.ndjson", "part-00001.ndjson"]
