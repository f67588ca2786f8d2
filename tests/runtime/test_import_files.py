"""Files to import: unpacked, cut into rows, and never read in a way that loses one without a word."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import tracemalloc
from itertools import product
from typing import Any

import msgspec
import pytest
from backports.zstd import compress as zstd

from dragoman.imports import records, sources
from dragoman.imports.batches import Places, Rejection, merged, ranges, rejected_lines
from dragoman.imports.checkpoints import (
    AppendedFile,
    Ledger,
    LoadCheckpoint,
    checkpoint_path,
    read_checkpoint,
)
from dragoman.imports.column_mapping import RowInserts
from dragoman.imports.csv_rows import SeparatedRows
from dragoman.imports.records import Record, Wishes, read_array, read_pairs, read_values
from dragoman.imports.sources import ImportSource, choose
from dragoman.spellings import Quoted
from dragoman_api.cells import Json
from dragoman_api.columns import Column, ColumnKind, Description, Role
from dragoman_api.errors import ConfigurationError
from dragoman_registry import files

PACKERS = {"gzip": gzip.compress, "bzip2": bz2.compress, "zstd": zstd}


def source(data: bytes) -> ImportSource:
    return ImportSource("", stdin=io.BytesIO(data))


def told(rows):
    return [(row.number, row.data, row.fault) for row in rows]


@pytest.fixture(params=[1, 7, sources.BLOCK], autouse=True)
def _blocks(request, monkeypatch):
    """Read in blocks of several sizes: a border may lie anywhere."""
    monkeypatch.setattr(sources, "BLOCK", request.param)


@pytest.mark.parametrize("kind", PACKERS)
def test_packed_bytes_in_several_members_are_unpacked_and_hashed_as_they_lie(kind, tmp_path):
    import hashlib

    data = b"".join(PACKERS[kind](part) for part in (b"one\n", b"", b"two\n"))
    (tmp_path / "f").write_bytes(data)
    one = ImportSource(tmp_path / "f", compression=kind)
    assert [row.data for row in read_values(one)] == [b"one", b"two"]
    assert one.compression == kind
    assert one.place == (len(data), hashlib.sha256(data).hexdigest())
    one.close()


@pytest.mark.parametrize("kind", PACKERS)
def test_a_file_that_ends_in_the_middle_of_its_packing_is_damaged(kind):
    data = PACKERS[kind](b"".join(b"%d\n" % at for at in range(5_000)))
    for part in (data[:-9], data[: len(data) // 2] + b"\x00" * 40):
        with pytest.raises(ConfigurationError, match="is damaged") as caught:
            list(read_values(source(part)))
        assert caught.value.code == "import-file-damaged"


def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path):
    (tmp_path / "a.ndjson.gz").write_bytes(b'{"n":1}\n')
    with pytest.raises(ConfigurationError, match="should be gzip by its name, but its bytes are not compressed"):
        ImportSource(tmp_path / "a.ndjson.gz", compression="gzip")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        ImportSource(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a.ndjson", ("documents", None)), ("a.jsonl.GZ", ("documents", "gzip")), ("a", ("documents", None)),
        ("a.json.bz2", ("json", "bzip2")), ("a.csv", ("csv", None)), ("a.tsv.zst", ("tsv", "zstd")),
        ("a.parquet", ("parquet", None)),
    ],
)  # fmt: skip
def test_the_ending_says_the_format(tmp_path, name, found):
    assert choose(tmp_path / name, format=None) == found


@pytest.mark.parametrize("name", ["a.xlsx", "a.csv.xz", "a.bulk", "a.parquet.gz"])
def test_an_ending_that_is_not_known_is_refused(tmp_path, name):
    with pytest.raises(ConfigurationError):
        choose(tmp_path / name, format=None)


def test_the_manifest_of_an_export_says_the_format_of_its_own_file_only(tmp_path):
    file = tmp_path / "a.ndjson"
    file.write_bytes(b"12345")
    manifest = tmp_path / "a.ndjson.manifest.json"
    manifest.write_text('{"format":"rows","bytes":5,"target":"x"}')
    assert choose(file, format=None) == ("rows", None)
    assert choose(file, format="documents") == ("documents", None)
    manifest.write_text('{"format":"rows","bytes":6}')
    assert choose(file, format=None) == ("documents", None)


def test_lines_lose_blanks_and_byte_order_marks_alone():
    data = b'\xef\xbb\xbf{"a":1}\r\n\r\n  {"b":"\\r\\n"} \n{"c":\xc2\x85}'
    assert told(read_values(source(data))) == [
        (1, b'{"a":1}', ""), (2, b'{"b":"\\r\\n"}', ""), (3, b'{"c":\xc2\x85}', ""),
    ]  # fmt: skip
    assert told(read_values(source(b""))) == []


def test_a_line_that_is_too_long_is_one_row_with_a_fault(monkeypatch):
    monkeypatch.setattr(records, "RECORD_BYTES", 10)
    found = told(read_values(source(b"short\n" + b"x" * 50 + b"\nlast")))
    assert [(number, fault) for number, _, fault in found] == [
        (1, ""), (2, "the row has 50 bytes, and a row has 10 at most"), (3, ""),
    ]  # fmt: skip


def test_bulk_lines_are_pairs_or_rows_and_a_lone_action_is_a_fault():
    lines = [b'{"index":{"_id":"1"}}', b'{"n":1}', b"", b'{ "create" : {"_id":"2"}}', b'{"n":2}', b'{"id":"u"}']
    found = told(read_pairs(source(b"\n".join([*lines, b'{"index":{}}']))))
    assert [(number, data) for number, data, _ in found] == [
        (1, lines[0] + b"\n" + lines[1]), (2, lines[3] + b"\n" + lines[4]), (3, lines[5]), (4, b'{"index":{}}'),
    ]  # fmt: skip
    assert [fault for _, _, fault in found] == ["", "", "", "the file ends before the document of this action"]


@pytest.mark.parametrize(
    "text", ['[{"a":"]}\\"["},{"b":[1,{"c":2}]},3 , "x,y"]', "[]", " [ ]", '[\n{"a":1},\n{"b":2}\n]\n']
)
def test_an_array_is_cut_into_its_elements(text):
    found = [json.loads(row.data) for row in read_array(source(text.encode()))]
    assert found == json.loads(text.removeprefix("\ufeff"))


def test_an_array_that_is_not_closed_is_damaged_and_lines_are_lines():
    rows = read_array(source(b'[{"a":1},{"b":'))
    assert next(rows).data == b'{"a":1}'
    with pytest.raises(ConfigurationError, match="not closed"):
        list(rows)
    assert [row.data for row in read_array(source(b'{"a":1}\n{"b":2}\n'))] == [b'{"a":1}', b'{"b":2}']


PRETTY = [{"a": [{"b": "}"}, [1, {"c": "\\n"}], {}], "d": {"e": {}}}, {}, {"f": []}, [{"g": 1}], {"h": 1}]


@pytest.mark.parametrize("indent", [None, 0, 2, "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_values_over_several_lines_are_one_row_each(indent, end):
    text = end.join(json.dumps(value, indent=indent).replace("\n", end) for value in PRETTY)
    rows = list(read_values(source(text.encode())))
    assert [json.loads(row.data) for row in rows] == PRETTY
    assert [(row.number, row.fault, b"\n" in row.data) for row in rows] == [(at, "", False) for at in range(1, 6)]


def test_a_value_that_is_not_closed_costs_no_row_after_it(monkeypatch):
    lines = ['{"a": 1', '{"b": 2}', "{", '  "c": {', '{"d": 3}', '{"e": "x', '{"f": 4}', "{"]
    rows = told(read_values(source("\n".join(lines).encode())))
    assert [data for _, data, fault in rows if not fault] == [b'{"b": 2}', b'{"d": 3}', b'{"e": "x', b'{"f": 4}']
    assert [data for _, data, fault in rows if fault] == [b'{"a": 1', b'{ "c": {', b"{"]
    assert [fault for *_, fault in rows if fault] == [
        "it ends in its middle, and another row begins", "it ends in its middle, and another row begins",
        "the file ends in its middle",
    ]  # fmt: skip
    monkeypatch.setattr(records, "RECORD_BYTES", 12)
    rows = told(read_values(source(b'{\n"a": [\n1,\n2,\n{"b": 3},\n{"b": 4}]\n}\n{"c":5}\n')))
    assert [(number, fault) for number, _, fault in rows] == [
        (1, "the row has 36 bytes, and a row has 12 at most"), (2, ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "values"),
    [
        (['{"a": {"b": 1}', ', "c": 2}', '{"d": 3}'], ['{"a": {"b": 1} , "c": 2}', '{"d": 3}']),
        (['{"a": [{}', ", {}", "]}"], ['{"a": [{} , {} ]}']),
        (['{"a": 1}', "2", '{"b": 3}'], ['{"a": 1}', "2", '{"b": 3}']),
        (['{"a": "{"}', "2"], ['{"a": "{"}', "2"]),
        (['{"a": {"b": 1}'], ["! the file ends in its middle"]),
        (['{"a": {"b": 1}', '{"c": 2}'], ['{"a": {"b": 1}', '{"c": 2}']),
        (['{"a": 1', '{"b":', '{"c": 2}}'], ["! it ends in its middle, and another row begins", '{"b": {"c": 2}}']),
        (
            ["{", '"a": 1', '{"b": 2}', '{"c": 3}'],
            ["! it ends in its middle, and another row begins", '{"b": 2}', '{"c": 3}'],
        ),
    ],
)
def test_a_line_that_ends_like_an_object_is_one_unless_the_next_goes_on(lines, values):
    rows = told(read_values(source("\n".join(lines).encode())))
    assert [f"! {fault}" if fault else data.decode() for _, data, fault in rows] == values


@pytest.mark.parametrize("text", ['[{"a":1}]\n{"b":2}', "[1]\n[2]", "[]x"])
def test_what_follows_an_array_is_not_passed_over(text):
    with pytest.raises(ConfigurationError, match="something follows its JSON array"):
        list(read_array(source(text.encode())))


@pytest.mark.parametrize("delimiter", [";", "|", "\t", " ", ","])
def test_fields_are_separated_as_the_caller_says(delimiter):
    text = delimiter.join(["a", "b"]) + "\n" + delimiter.join(['"x""' + delimiter + '"', "1,5;2|3"[:3]])
    rows = SeparatedRows(source(text.encode()), delimiter=delimiter)
    if delimiter != ",":
        assert (rows.names, [row.data for row in rows]) == (["a", "b"], [[f'x"{delimiter}', "1,5"]])
        assert rows.likely == ""


@pytest.mark.parametrize(("head", "likely"), [("a;b;c", ";"), ("a\tb", "\t"), ("a|b", "|"), ("a", ""), ("a;b,c", "")])
def test_a_first_line_of_one_field_shows_what_may_separate_it(head, likely):
    assert SeparatedRows(source(head.encode()), delimiter=",").likely == likely


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n", "\r"])
def test_a_delimiter_is_one_character_that_can_separate(delimiter):
    with pytest.raises(ConfigurationError, match="a delimiter is one character"):
        SeparatedRows(source(b"a"), delimiter=delimiter)


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("a,b,c", ["a", "b", "c"]),
        (',"",', [None, "", None]),
        ('"a ""b"" c","x,y","two\r\nlines"', ['a "b" c', "x,y", "two\r\nlines"]),
        ('5" pipe,b,c', ['5" pipe', "b", "c"]),
        ('a,b,"open\n\n\nclosed"', ["a", "b", "open\n\n\nclosed"]),
        ('"a","b,c",""', ["a", "b,c", ""]),
        ('"a"",""b","c","d"', ['a","b', "c", "d"]),
        ('"1",2,"true"', ["1", "2", "true"]),
        ('"""","""a""",', ['"', '"a"', None]),
    ],
)
@pytest.mark.parametrize("exact", [True, False])
def test_fields_are_cut_as_rfc_4180_says_and_null_is_no_empty_text(line, fields, exact):
    rows = SeparatedRows(source(f"x,y,z\r\n{line}\r\n1,2,3\r\n".encode()), delimiter=",", exact=exact)
    assert rows.names == ["x", "y", "z"]
    first, second = rows
    assert told([first, second]) == [(1, fields, ""), (2, ["1", "2", "3"], "")]
    assert second.plain
    if first.plain:  # then nobody looks whether a field is JSON
        assert not any(field and (field[0] in '[{"' or isinstance(field, Quoted)) for field in first.data)


def test_a_bad_line_of_a_table_is_one_row_with_its_reason():
    data = b'x\ty\n1\n"a"b\t2\n\xff\t3\n1\t"2\n'
    faults = [(row.number, row.fault[:24]) for row in SeparatedRows(source(data), delimiter="\t")]
    assert faults == [
        (1, "it has 1 fields, and the"), (2, "a quoted field is follow"), (3, "it is not UTF-8: 'utf-8'"),
        (4, "a quoted field is not cl"),
    ]  # fmt: skip
    for head in (b"", b"a,a\n1,2\n", b'"a\n'):
        with pytest.raises(ConfigurationError, match="has no line of column names"):
            SeparatedRows(source(head), delimiter=",")


@pytest.mark.timeout(20)
@pytest.mark.slow
def test_a_row_of_very_many_lines_is_read_once(monkeypatch):
    monkeypatch.setattr(sources, "BLOCK", 1 << 18)
    lines = 200_000
    data = b'a,b\n1,"' + b'""x\n' * lines + b'"\n2,3\n'
    assert told(SeparatedRows(source(data), delimiter=",")) == [(1, ["1", '"x\n' * lines], ""), (2, ["2", "3"], "")]


@pytest.mark.timeout(20)
@pytest.mark.slow
def test_a_table_may_have_very_many_columns(monkeypatch):
    monkeypatch.setattr(sources, "BLOCK", 1 << 18)
    names = [f"c{at}" for at in range(200_000)]
    assert SeparatedRows(source(",".join(names).encode()), delimiter=",").names == names
    with pytest.raises(ConfigurationError, match="the column 'c7' occurs twice"):
        SeparatedRows(source(",".join([*names, "c7"]).encode()), delimiter=",")


def test_what_is_not_utf_8_is_named_by_its_place_in_the_row():
    rows = SeparatedRows(source(b'a,b\n1,"\xc3\xa4\n""\n\xff\n\xff"\n2,3\n'), delimiter=",")
    assert [fault for _, _, fault in told(rows)] == [
        "it is not UTF-8: 'utf-8' codec can't decode byte 0xff in position 9: invalid start byte", "",
    ]  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("read", [lambda file: SeparatedRows(file, delimiter=","), lambda file: [*read_values(file)]])
def test_a_file_in_utf_16_is_refused_with_what_to_do(monkeypatch, encoding, pack, read):
    monkeypatch.setattr(sources, "BLOCK", 1 << 16)  # without a byte order mark, the second byte tells it
    with pytest.raises(ConfigurationError, match="UTF-16, and an import reads UTF-8") as caught:
        read(source(pack('{"id": 1},é\r\n2,3\r\n'.encode(encoding))))
    assert caught.value.hint.startswith("--encoding utf-16")


@pytest.mark.parametrize("data", [b"\xff\xfea\0", b"\xfe\xff\0a"])
def test_a_byte_order_mark_tells_utf_16_however_little_is_read_at_once(data):
    with pytest.raises(ConfigurationError, match="UTF-16"):
        SeparatedRows(source(data), delimiter=",")


@pytest.mark.parametrize("text", ["id,title\r1,Emma\r2,Ulysses\r", '"id","ti\rtle"\r1,Emma', "id\r1\r2"])
def test_a_table_whose_lines_end_with_cr_alone_is_refused_with_what_to_do(text):
    with pytest.raises(ConfigurationError, match=r"carriage return \(CR\) alone") as caught:
        SeparatedRows(source(text.encode()), delimiter=",")
    assert caught.value.hint.startswith("tr '\\r' '\\n' <")


def test_a_carriage_return_in_quotes_or_at_the_end_of_a_line_ends_no_other():
    assert SeparatedRows(source(b'"a\rb",c\r\n1,2\r\n'), delimiter=",").names == ["a\rb", "c"]
    assert SeparatedRows(source(b"a,c\r\r\n1,2\r\n"), delimiter=",").names[0] == "a"
    assert SeparatedRows(source(b'"a\rb\nc",d\n1,2\n'), delimiter=",").names == ["a\rb\nc", "d"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("long", [b'"%s"', b'{"a":"%s","b":[1]}', b"%s", b"[[[%s]]]"])
@pytest.mark.slow
def test_an_element_of_any_size_takes_the_memory_of_a_row(monkeypatch, long):
    monkeypatch.setattr(sources, "BLOCK", 1 << 16)
    monkeypatch.setattr(records, "RECORD_BYTES", 1 << 16)
    size = 4 << 20
    data = b'[{"n":1}, ' + long % (b"7" * size) + b' ,{"n":2}]'
    file = source(data)
    tracemalloc.start()
    rows = [(row.number, len(row.data), row.fault) for row in read_array(file)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    whole = size + len(long) - 2
    fault = f"the row has {whole:,} bytes, and a row has 65,536 at most"
    assert rows == [(1, 7, ""), (2, 1 << 16, fault), (3, 7, "")]
    assert peak < 2 << 20
    [alone] = read_array(source(b"[%s]" % (b"7" * 100_000)))
    assert alone.fault == "the row has 100,000 bytes, and a row has 65,536 at most"


@pytest.mark.parametrize(
    "text", ['[ "a\\\\" , "' + "x" * 40 + '" ,"b"]', "[1" + " " * 40 + ',\n{"a":' + " " * 40 + "2}]"]
)
def test_blanks_and_escapes_around_the_limit_change_no_element(monkeypatch, text):
    whole = [row.data for row in read_array(source(text.encode()))]
    monkeypatch.setattr(records, "RECORD_BYTES", 12)
    cut = [(row.data, row.fault) for row in read_array(source(text.encode()))]
    assert len(cut) == len(whole)
    for (data, fault), before in zip(cut, whole, strict=True):
        assert fault or json.loads(data) == json.loads(before)


def test_places_are_found_in_order():
    assert ranges([1, 2, 5, 6, 9]) == [(1, 2), (5, 6), (9, 9)]
    assert merged([(5, 6), (1, 2), (3, 4), (9, 9)]) == [(1, 6), (9, 9)]
    places = Places([(8, 9), (2, 3)])
    assert [number for number in range(12) if number in places] == [2, 3, 8, 9]


def test_a_process_without_standard_input_keeps_a_ledger_as_any_other(tmp_path, without_standard_input, monkeypatch):
    """Then its lock, or a file that grows, has the descriptor 0, which is as good as any."""
    file = tmp_path / "books.ndjson"
    file.write_bytes(b"x")
    with without_standard_input():
        ledger = Ledger(file, keeps=True, undo=None)
        ledger.reserve({}, resume=False)
        with pytest.raises(ConfigurationError, match="by another process"):
            Ledger(file, keeps=True, undo=None).reserve({}, resume=False)
        ledger.close()
    assert [path.name for path in tmp_path.iterdir()] == ["books.ndjson"]
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with without_standard_input():
        grown = AppendedFile(tmp_path / "lines", mode=0o600)
        for line in (b"a\n", b"", b"b\n"):
            grown.append(line)
            grown.sync()
        grown.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(0)
    assert ((tmp_path / "lines").read_bytes(), grown.size, synced.count(0)) == (b"a\nb\n", 4, 2)


def test_the_checkpoint_of_another_user_is_none(tmp_path):
    """It could have rows left out as done."""
    if os.geteuid():
        pytest.skip("only root can give a file away")
    file = tmp_path / "books.ndjson"
    checkpoint = LoadCheckpoint(
        identity={},
        read=5,
        doubt=[],
        waiting=[],
        bytes=0,
        sha256="",
        counts={},
        rejected=0,
        undo=0,
        undo_from=0,
        started="",
        resumed=0,
    )
    checkpoint_path(file).write_bytes(msgspec.json.encode(checkpoint))
    assert read_checkpoint(file) == checkpoint
    os.chown(checkpoint_path(file), 65534, -1)
    assert read_checkpoint(file) is None


def test_a_lock_that_its_owner_removes_at_this_moment_keeps_no_other_load_out(tmp_path, monkeypatch):
    """Else a third load would make a new one, and write the same rows."""
    taken = []
    acquire = files.take_lock

    def removed(descriptor, path, **more):
        taken.append(descriptor)
        found = acquire(descriptor, path, **more)
        if len(taken) == 1:
            (tmp_path / ".books.ndjson.import.lock").unlink()
        return found

    monkeypatch.setattr(files, "take_lock", removed)
    first, second = (Ledger(tmp_path / "books.ndjson", keeps=True, undo=None) for _ in range(2))
    first.reserve({}, resume=False)
    with pytest.raises(ConfigurationError, match="is being loaded by another process"):
        second.reserve({}, resume=False)
    second.close()
    first.close()
    assert list(tmp_path.iterdir()) == []


def test_a_rejected_line_is_json_where_it_is_json_however_large_its_numbers_are():
    lines = [b'{"n":1e400}', b'{"n":', b'"\xff"', b'{"n":1}\n[2]']
    written = rejected_lines([Rejection(Record(1, line), "failed", "full") for line in lines], [])
    data = [line.partition(b'"data":')[2] for line in written.splitlines()]
    assert data == [b'{"n":1e400}}', b'"{\\"n\\":"}', '"\\"\ufffd\\""}'.encode(), b'[{"n":1},[2]]}']


def test_a_rejected_row_of_a_table_keeps_its_id_and_the_numbers_that_json_lacks():
    values = [
        "[1]",
        float("nan"),
        float("-inf"),
        Quoted('a"b'),
        Json("[1e3]"),
        [1.5, float("inf")],
        b"\xff",
        None,
        2**70,
    ]
    rejection = Rejection(Record(3, values, "it holds NaN"), "unreadable", "it holds NaN", id="")
    [line] = rejected_lines([rejection], [f"c{at}" for at in range(len(values))]).splitlines()
    assert json.loads(line)["id"] == ""
    assert list(json.loads(line, parse_float=str)["data"].values()) == [
        "[1]", "NaN", "-inf", 'a"b', ["1e3"], ["1.5", "inf"], "/w==", None, 2**70,
    ]  # fmt: skip


USUAL = Description(
    object="books:1", object_member="_index", server_members=("_score",),
    columns=[
        Column(name="_id", type="", kind=ColumnKind.TEXT, role=Role.KEY, path=("_id",)),
        Column(name="n", type="long", kind=ColumnKind.INTEGER, path=("_source", "n")),
    ],
)  # fmt: skip


WITH_VECTORS = Description(
    object="books:1", object_member="class", server_members=("creationTimeUnix",),
    columns=[
        Column(name="uuid", type="uuid", kind=ColumnKind.TEXT, role=Role.KEY, path=("id",)),
        Column(name="n", type="int", kind=ColumnKind.INTEGER, path=("properties", "n")),
        Column(name="vector", type="vector", kind=ColumnKind.OTHER, path=("vector",)),
    ],
)  # fmt: skip
LINES = (
    '{"_index":"books:1","_id":"a","_source":{"n":1}}', ' { "_id" : "a:b" , "_source" : {"n" : [{}] } } ',
    '{"_id":"ž","_source":{"t":"€"}}', '{"_id":"","_source":{}}', '{"_id":7,"_source":{}}', '{"_source":{}}',
    '{"_id":"a","_id":"b","_source":{}}', '{"_id":"a","_source":{},"_source":{"n":1}}', '{"_id":"a"}',
    '{"_id":"a","_source":{},"_id":"b"}', '{"_index":"other","_id":"a","_source":{}}',
    '{"_index":"books:1","_index":"books:1","_id":"a","_source":{}}', '{"_source":{},"_id":"a"}',
    '{"_id":"a\\u0062","_source":{}}', '{"_id":"a\tb","_source":{}}', '{"_id":"a","_source":[]}',
    '{"_id":"a","_source":{"n":1,}}', '{"_id":"a","_source":{}}}', '{"_id":"a","_source":{}',
    '{"_id":"a","_source":7}', '{"_id":"a","_source":{},"_routing":"r"}', '{"_id":"a","_source":{},"_score":1}',
    '{"_id":"a","_source":{"_id":"b"}}', '{"_id":"a","_source":{},"colour":1}', '{"_id":"a","_source":{}} {}',
    f'{{"_id":"a","_source":{"[" * 9_999}}}', f'{{"_id":"a","_source":{{"n":{"[" * 9_999}{"]" * 9_999}}}}}',
    '{"_id":"a\udcff","_source":{}}', '{"_id":"a","_source":{"n":"\udcff"}}',
)  # fmt: skip


BESIDE = (
    '{"class":"books:1","creationTimeUnix":7,"id":"a","properties":{"n":1},"vector":[1, 2.50]}',
    '{"vector":[1],"id":"a:b","properties":{"t":":"}}', '{"id":"a","properties":{},"vector":null}',
    '{"id":"a","vector":[1],"properties":{},"vector":[2]}', '{"id":"a","id":"a","properties":{},"vector":[":"]}',
    '{"id":"a","id":"a\\u003ab","properties":{},"vector":[1]}', '{"id":"a\\u003ab","properties":{},"vector":{"a":[1]}}',
    '{"id":"a","properties":7,"vector":"x"}',
    '{"class":"other","id":"a","properties":{},"vector":"\\"x\\""}', '{"id":"a","properties":{},"vector":1e400}',
    '{"properties":{},"vector":[1]}', '{"id":"","properties":{},"vector":[1]}', '{"id":7,"properties":{}}',
    '{"id":"a","properties":{},"vector":[1],"colour":1}', '{"id":"a","properties":{},"vector":["\udcff"]}',
    '{"id":"a","properties":{},"creationTimeUnix":"\udcff"}',
    '{"id":"a","properties":{},"vector":[1],"tenant":"t"}', '{"id":"a","properties":{},"vector":[1]',
)  # fmt: skip


def filled(line: bytes, *, replace: bool, steps: int) -> Any:
    """Return what a line writes, or why it writes nothing."""
    description = USUAL if b"properties" not in line else WITH_VECTORS
    tenants = description is WITH_VECTORS
    rows, record = RowInserts(Wishes(object="books:1", replace=replace), description, tenants=tenants), Record(1, line)
    if steps > 1:
        rows._head = rows._line = None
    try:
        rows.fill(record)
    except (ValueError, RecursionError) as error:
        return type(error), str(error)
    assert isinstance(record.document, str)
    owner = record.tenant, record.routing
    return record.document, record.id, record.replace, owner, repr(record.values or {}), rows.notes


def test_a_usual_line_is_read_in_one_step_as_it_is_read_member_by_member():
    in_other_words = [
        line.replace("_id", "id").replace("_source", "properties").replace("_index", "class") for line in LINES
    ]
    for text, replace in product((*LINES, *in_other_words, *BESIDE), (True, False)):
        line = text.encode(errors="surrogateescape").strip()
        assert filled(line, replace=replace, steps=1) == filled(line, replace=replace, steps=2), text


def test_loads_that_run_at_once_keep_their_rejected_rows_apart(tmp_path):
    path = tmp_path / "Orders.rejected.ndjson"
    first, second = (AppendedFile(path, mode=0o600, shared=True) for _ in range(2))
    first.append(b"1\n")
    second.append(b"2\n")
    third = AppendedFile(path, mode=0o600, shared=True)
    third.append(b"3\n")
    first.append(b"1\n")
    names = ["Orders.rejected.ndjson", "Orders.rejected-2.ndjson", "Orders.rejected-3.ndjson"]
    assert [file.path.name for file in (first, second, third)] == names
    assert [(tmp_path / name).read_bytes() for name in names] == [b"1\n1\n", b"2\n", b"3\n"]
    for file in (first, second, third):
        file.close()
    AppendedFile(path, mode=0o600, shared=True)  # a new load replaces what an ended one left
    assert not path.exists()
    unshared = AppendedFile(tmp_path / "undo", mode=0o600)
    (tmp_path / "undo").touch()
    with pytest.raises(ConfigurationError, match="File exists"):  # an undo file never goes elsewhere
        unshared.append(b"1\n")
