"""Previews of files to import: the first rows, and types that lose nothing of what was looked at."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from dragoman import preview_import
from dragoman.imports import proposals
from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.imports.new_objects import ColumnProposal


def proposed(tmp_path: Path, *fields: str, **arguments: object) -> ColumnProposal:
    file = tmp_path / "o.csv"
    file.write_text("n,k\n" + "".join(f"{field},\n" for field in fields))
    proposal = preview_import(file, object="o", **arguments).proposal
    assert proposal is not None
    return proposal.columns[0]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (["1", "-20", "0"], "integer"), (["007", "1"], "text"), (["9223372036854775807"], "integer"),
        (["9223372036854775808"], "text"), (["1", "1.5", "-2e3"], "float"), (["0.123456789012345678901"], "text"),
        (["+1"], "text"), (["1e999"], "text"), (["true", "FALSE"], "boolean"), (["true", "1"], "text"),
        (["2024-01-02T03:04:05Z", "2024-01-02T03:04:05.5+02:00"], "timestamp"), (["2024-01-02"], "date"),
        (["2024-02-30"], "text"), (["2024-01-02T03:04:05Z", "2024-01"], "text"), (["2024-01-02T03:04"], "timestamp"),
        ([" 1"], "text"), (["", ""], "text"), (['"1"', "2"], "integer"),
    ],
)  # fmt: skip
def test_a_type_is_proposed_only_if_it_keeps_every_value(tmp_path: Path, fields: list[str], kind: str) -> None:
    column = proposed(tmp_path, *fields)
    assert (column.type, column.source, column.misfits) == (kind, "rows", ())


def test_a_type_that_nearly_fits_is_named_with_what_does_not(tmp_path: Path) -> None:
    column = proposed(tmp_path, *map(str, range(30)), "n/a", "-")
    assert (column.type, column.nearly, column.misfits, column.values) == ("text", "integer", ("n/a", "-"), 32)
    chosen = proposed(tmp_path, "1", "n/a", types={"n": "integer"})
    assert (chosen.type, chosen.source, chosen.misfits) == ("integer", "caller", ("n/a",))
    assert proposed(tmp_path, "1", "x", "y").nearly is None


def test_only_the_first_rows_are_looked_at_and_how_many_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposals, "LOOKED_AT", 3)
    file = tmp_path / "o.csv"
    for rows, whole in ((["1", "2", "3"], True), (["1", "2", "3", "x"], False)):
        file.write_text("\n".join(["n", *rows]))
        proposal = preview_import(file, object="o").proposal
        assert proposal is not None
        assert (proposal.rows, proposal.whole, proposal.columns[0].type) == (3, whole, "integer")


def test_new_names_and_wrong_ones_are_seen_before_an_object_is_made(tmp_path: Path) -> None:
    file = tmp_path / "o.csv"
    file.write_text("a,b\n1,2\n")
    proposal = preview_import(file, object="o", renamed={"a": "c", "b": ""}, types={"c": "text"}).proposal
    assert proposal is not None
    assert [(column.column, column.name, str(column.type)) for column in proposal.columns] == [("a", "c", "text")]
    for arguments, code in (
        ({"types": {"x": "text"}}, "column-unknown"), ({"types": {"a": "geo"}}, "value-invalid"),
        ({"renamed": {"x": "y"}}, "column-unknown"), ({"id": "x"}, "column-unknown"),
        ({"renamed": {"a": "b"}}, "columns-collide"),
    ):  # fmt: skip
        with pytest.raises(ConfigurationError) as refused:
            preview_import(file, object="o", **arguments)
        assert refused.value.code == code


def test_a_preview_shows_the_first_rows_of_every_format_and_cuts_long_ones(tmp_path: Path) -> None:
    table = tmp_path / "o.csv.gz"
    table.write_bytes(gzip.compress("a;b\nx;{}\n;\n1\n".format("y" * 600).encode()))
    preview = preview_import(table)
    assert (preview.format, preview.compression, preview.likely, preview.names) == ("csv", "gzip", ";", ["a;b"])
    preview = preview_import(table, delimiter=";", rows=2)
    assert (preview.whole, [row.fields for row in preview.rows]) == (False, [["x", "y" * 500 + "…"], [None, None]])
    assert preview_import(table, delimiter=";").rows[2].fault == "it has 1 fields, and the file has 2 columns"
    lines = tmp_path / "o.ndjson"
    lines.write_text('{"a": 1}\n' + '{"a": "%s"}\n' % ("z" * 3_000))
    preview = preview_import(lines, object="o")
    assert (preview.proposal, preview.names, preview.rows[0].text) == (None, [], '{"a": 1}')
    assert len(preview.rows[1].text) == 2_001


def test_a_preview_names_the_members_of_documents_that_can_be_their_ids(tmp_path: Path) -> None:
    file = tmp_path / "o.ndjson"
    rows = [{"_id": "a", "n": 1, "sku": "x", "on": True, "price": 1.5}, {"_id": "b", "n": 2, "price": 2, "sku": None}]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + "no document\n")
    assert preview_import(file).ids == ["_id", "n"]
    assert preview_import(file, format="rows").ids == []
    table = tmp_path / "o.csv"
    table.write_text("a,b\n1,\n")
    assert preview_import(table).ids == ["a", "b"]


def test_parquet_says_its_types_itself(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    file = tmp_path / "o.parquet"
    columns = {"n": [1, 2], "price": [1.5, None], "tags": [["a"], []], "at": pa.array([0, 1], pa.timestamp("ms"))}
    pq.write_table(pa.table(columns), file)
    preview = preview_import(file, object="o")
    assert preview.proposal is not None
    assert [(str(column.type), column.repeated, column.source) for column in preview.proposal.columns] == [
        ("integer", False, "file"), ("float", False, "file"), ("text", True, "file"), ("timestamp", False, "file"),
    ]  # fmt: skip
    assert (preview.proposal.guessed, preview.rows[0].fields[1]) == ([], "1.5")
    pq.write_table(pa.table({"who": [{"a": 1}]}), file)
    with pytest.raises(ConfigurationError, match="'who' holds objects"):
        preview_import(file, object="o")
    assert preview_import(file, object="o", renamed={"who": ""}).proposal is not None


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "windows-1252", "iso-8859-15"])
def test_a_file_in_another_encoding_is_read_if_that_is_said(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "o.csv"
    file.write_bytes("größe,n\n€,ä\n".replace("€", "ß").encode(encoding))
    preview = preview_import(file, encoding=encoding)
    assert (preview.names, preview.rows[0].fields) == (["größe", "n"], ["ß", "ä"])


def test_an_encoding_that_is_none_or_does_not_fit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "o.csv"
    file.write_bytes(b"a\n\x81\n")
    with pytest.raises(ConfigurationError, match="another encoding"):
        preview_import(file, encoding="windows-1252")
    with pytest.raises(ConfigurationError, match="unknown encoding"):
        preview_import(file, encoding="rot13")


def test_rows_that_are_not_utf_8_name_the_encoding_that_the_table_seems_to_have(tmp_path: Path) -> None:
    file = tmp_path / "o.csv"
    rows = "".join(f"{at},ok\n" for at in range(100))
    file.write_bytes(f"n,name\n{rows}100,Müller\n".encode("windows-1252"))
    assert preview_import(file).likely_encoding == preview_import(file, object="o").likely_encoding == "windows-1252"
    preview = preview_import(file, encoding="windows-1252", rows=200)
    assert (preview.likely_encoding, preview.rows[100].fields) == ("", ["100", "Müller"])
    file.write_text(f"n,name\n{rows}100,Müller\n101,ok,one too many\n")
    assert preview_import(file).likely_encoding == ""


@pytest.mark.parametrize(
    ("name", "text"), [("a.ndjson", '{"n": 1}\n{"n": "Müller"}\n'), ("a.json", '[{"n": "Müller"}]')]
)
def test_documents_that_are_no_utf_8_have_a_likely_encoding(tmp_path, name, text):
    file = tmp_path / name
    file.write_bytes(text.encode("windows-1252"))
    assert preview_import(file).likely_encoding == "windows-1252"
    assert "Müller" in preview_import(file, encoding="windows-1252").rows[-1].text
    assert preview_import(file, encoding="windows-1252").likely_encoding == ""
    file.write_text(text)
    assert preview_import(file).likely_encoding == ""
