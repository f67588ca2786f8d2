"""Change files: what a line may be, and how all that is wrong is told at once."""

from __future__ import annotations

import io
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.changes import files as changefiles
from dragoman.changes.files import ChangeFile, halves, read_line, write_line
from dragoman_api.cells import Json
from dragoman_api.changes import Delete, Insert, Update
from dragoman_api.errors import ConfigurationError
from dragoman_api.grid import RowKey

UPDATE = '{"op":"update","object":"books","id":"17","set":{"price":12.5}}'


@pytest.mark.parametrize("document", ['{"a":1,"a":2}', '{"o":{"a":1,"a":2}}', '"text"', "no JSON", '{"a":\n1}'])
def test_a_document_that_a_line_cannot_hold_as_it_is_comes_back_as_its_text(document):
    change = Insert("b", document=document)
    assert read_line(write_line(change)) == change


@pytest.mark.parametrize(
    ("line", "change"),
    [
        (UPDATE, Update(RowKey("books", "17"), {"price": 12.5})),
        ('{"op":"delete","object":"b","id":17}', Delete(RowKey("b", "17"))),
        ('{"op":"delete","object":"b","id":"1","routing":"r","guard":{"seq_no":3,"primary_term":1}}',
         Delete(RowKey("b", "1", "r", {"seq_no": 3, "primary_term": 1}))),
        ('{"op":"insert","object":"b","set":{"a":"x"}}', Insert("b", {"a": "x"})),
        ('{"op":"update","object":"b","id":"1","set":{"a":"x","c":null}}',
         Update(RowKey("b", "1"), {"a": "x", "c": None})),
        ('{"op":"insert","object":"b","id":"1","set":{"a":1},"replace":true,"tenant":"t"}',
         Insert("b", {"a": 1}, "1", replace=True, tenant="t")),
        ('{"op":"insert","object":"b","document":{"a": 1.10,"b":1e400}}',
         Insert("b", document='{"a": 1.10,"b":1e400}')),
        ('{"op":"insert","object":"b","document":"{\\n}"}', Insert("b", document="{\n}")),
        ('{"op":"insert","object":"b","document":"{\\"a\\":1 /* b */}"}', Insert("b", document='{"a":1 /* b */}')),
        ('{"op":"insert","object":"b","document":"\\"a\\""}', Insert("b", document='"a"')),
    ],
)  # fmt: skip
def test_a_line_is_a_change(line, change):
    assert read_line(line.encode()) == change
    written = write_line(change)
    assert (read_line(written), written.count(b"\n")) == (change, 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("165.0", 165.0), ("1.10", Decimal("1.10")), ("-0", Decimal("-0")), ("0", 0), ("-0.0", -0.0),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("null", None), ("true", True), ('"ä"', "ä"), ('["a", 1.10]', Json('["a", 1.10]')), ("{}", Json("{}")),
    ],
)  # fmt: skip
def test_values_keep_their_digits_and_bytes(text, value):
    change = read_line(f'{{"op":"update","object":"b","id":"1","set":{{"a": {text} }}}}'.encode())
    found = change.values["a"]
    assert (repr(found), type(found)) == (repr(value), type(value))
    assert f'"a":{text}' in write_line(change).decode()


def test_a_text_that_looks_like_an_array_stays_a_text():
    [value] = read_line(b'{"op":"update","object":"b","id":"1","set":{"a":"[1]"}}').values.values()
    assert value == Json('"[1]"')
    [value] = read_line(b'{"op":"update","object":"b","id":"1","set":{"a":"[draft] ..."}}').values.values()
    assert (value, type(value)) == ("[draft] ...", str)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nonsense", "JSON is malformed"),
        ("[1]", "Expected `object`"),
        ('{"object":"b","id":"1"}', "missing required field `op`"),
        ('{"op":"upsert","object":"b"}', "'upsert'"),
        ('{"op":"drop","object":"b"}', "'drop'"),
        ('{"op":"update","object":"b","set":{"a":1}}', "missing required field `id`"),
        ('{"op":"update","object":"b","id":"","set":{"a":1}}', "length >= 1"),
        ('{"op":"update","object":"b","id":"1","set":{}}', "length >= 1"),
        ('{"op":"update","object":"b","id":"1","sett":{"a":1}}', "unknown field `sett`"),
        ('{"op":"update","object":"b","id":"1","set":{"a":1,"a":2}}', "'a' occurs twice"),
        ('{"op":"insert","object":"b"}', "either `set` or `document`"),
        ('{"op":"insert","object":"b","set":{"a":1},"document":{}}', "either `set` or `document`"),
        ('{"op":"insert","object":"b","id":"1","set":{"a":1},"guard":{"seq_no":1}}', "only with `replace`"),
        ('{"op":"delete","object":"b","id":"\\ud800"}', "truncated"),
        ('{"op":"delete","object":"b","id":"1","guard":{"seq_no":1.5}}', "at `$.guard"),
    ],
)
def test_a_bad_line_is_named_with_its_fault(line, reason, tmp_path):
    file = tmp_path / "c.ndjson"
    file.write_text(f"\n{UPDATE}\n{line}\n")
    with closing(ChangeFile(file)) as changes, pytest.raises(ConfigurationError) as caught:
        changes.check()
    assert caught.value.code == "change-file-invalid"
    [fault] = caught.value.message.splitlines()[1:]
    assert fault.startswith(f"{file}:3: ")
    assert reason in fault


def test_all_bad_lines_are_told_at_once(tmp_path):
    file = tmp_path / "c.ndjson"
    file.write_bytes(b"x\n" + UPDATE.encode() + b"\n\xff\n" + b'{"op":"delete"}\n' * 200)
    with closing(ChangeFile(file)) as changes, pytest.raises(ConfigurationError) as caught:
        changes.check()
    lines = caught.value.message.splitlines()
    assert lines[0] == "202 bad lines; nothing was applied"
    assert [line.split(":")[1] for line in lines[1:4]] == ["1", "3", "4"]
    assert lines[-1] == "… and 102 more"


def test_byte_order_marks_carriage_returns_empty_lines_and_a_missing_end_do_no_harm(tmp_path):
    file = tmp_path / "c.ndjson"
    file.write_bytes(b"\xef\xbb\xbf" + UPDATE.encode() + b"\r\n\r\n  \n" + UPDATE.encode())
    with closing(ChangeFile(file)) as changes:
        changes.check()
        assert (changes.lines, changes.objects, changes.kinds) == (2, {"books": 1}, {("books", "update"): 2})
        assert [line for line, _ in changes.read(changes.chunks[0])] == [1, 4]


def test_a_line_of_any_length_is_read_in_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(changefiles, "LINE_BYTES", 200)
    source = io.BytesIO(b"x" * 201 + b"\n" + b"y" * 5_000 + b"\n" + UPDATE.encode() + b"\n" + b"z" * 1_000)
    with closing(ChangeFile(Path("-"), stdin=source)) as changes, pytest.raises(ConfigurationError) as caught:
        changes.check()
    assert [line.split(": ")[0] for line in caught.value.message.splitlines()[1:]] == ["-:1", "-:2", "-:4"]
    assert changes.lines == 1


def test_more_lines_than_can_be_kept_are_refused(monkeypatch):
    monkeypatch.setattr(changefiles, "MAX_LINES", 3)
    with pytest.raises(ConfigurationError, match="more than 3 changes"):
        ChangeFile(Path("-"), stdin=io.BytesIO(f"{UPDATE}\n".encode() * 4))


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        ChangeFile(tmp_path / name)


@given(st.lists(st.integers(0, 9), max_size=60))
def test_changes_of_one_row_stay_together_and_in_order(ids):
    text = "".join(f'{{"op":"update","object":"b","id":"{each}","set":{{"a":{at}}}}}\n' for at, each in enumerate(ids))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changefiles, "CHUNK_LINES", 4)
        with closing(ChangeFile(Path("-"), stdin=io.BytesIO(text.encode()))) as changes:
            parts = [changes.read(places) for places in changes.chunks]
    parts += [part for lines in parts for part in halves(lines, 3)]
    for part in parts:
        assert [line for line, _ in part] == sorted(line for line, _ in part)
    rows = [{change.key.id for _, change in part} for part in parts[: len(changes.chunks)]]
    assert sum(map(len, rows)) == len(set(ids))
