"""What tables leave out: counted alike by each format, said once, and never for columns that a caller named."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.exports.arrow_parquet import TableReader
from dragoman.exports.csv_lines import Csv
from dragoman.exports.formats import choose_columns, column_notes
from dragoman.exports.values import RowKeys
from dragoman_api import Column, Description
from dragoman_api.columns import ColumnKind, Note
from dragoman_api.errors import ConfigurationError
from dragoman_api.kit.page_columns import CUT, KEYS, NAMES, VALUES, columns_cut


def column(name, kind=ColumnKind.INTEGER, **more):
    return Column(name=name, type=kind, kind=kind, path=more.pop("path", ("_source", name)), **more)


COLUMNS = [
    column("_id", ColumnKind.TEXT, path=("_id",)),
    column("a"),
    column("o.x"),
    column("o.y.z"),
    column("whole", ColumnKind.JSON),
]


def lines(*sources, **outer):
    rows = ({"_id": str(at), "_source": source, **outer} for at, source in enumerate(sources))
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def by_csv(data, columns=COLUMNS, server_members=()):
    keys = RowKeys(columns, server_members=server_members)
    Csv(columns, keys=keys).convert(data)
    return keys.left_out


def by_table(data, columns=COLUMNS, server_members=()):
    keys = RowKeys(columns, server_members=server_members)
    reader = TableReader(columns, described=columns, keys=keys)
    half = data.find(b"\n", len(data) // 2) + 1
    for block in (data[:half], data[half:]):
        if block:
            reader.read(block)
    assert [note for note in reader.notes if note.code != "values-misfit"] == keys.left_out.notes()
    return keys.left_out


def by_rows(data, columns=COLUMNS):
    keys = RowKeys(columns)
    for line in data.splitlines():
        keys.add(line)
    return keys.left_out


VALUE = st.one_of(st.none(), st.integers(0, 9), st.just("text"), st.just([]))
INNER = st.dictionaries(st.sampled_from(["z", "w"]), VALUE, max_size=2)
OBJECT = st.fixed_dictionaries(
    {}, optional={"x": VALUE, "y": st.one_of(VALUE, INNER), "y.z": VALUE, "extra": VALUE, "y.extra": VALUE}
)
SOURCE = st.fixed_dictionaries(
    {},
    optional={
        "a": VALUE,
        "o": st.one_of(VALUE, OBJECT, st.lists(st.one_of(VALUE, OBJECT), max_size=2)),
        "o.x": VALUE,
        "o.y": st.one_of(VALUE, INNER),
        "whole": st.one_of(VALUE, OBJECT),
        "extra": VALUE,
        "more": st.one_of(VALUE, OBJECT),
    },
)


@pytest.mark.slow
@given(st.lists(SOURCE, min_size=1, max_size=40))
def test_each_format_counts_what_a_look_at_every_row_counts(sources):
    data = lines(*sources)
    expected = by_rows(data).notes()
    assert by_csv(data).notes() == expected
    assert by_table(data).notes() == expected


@pytest.mark.parametrize("read", [by_csv, by_table])
@pytest.mark.parametrize(
    ("source", "code", "name"),
    [
        ({"a": 1, "extra": 2}, KEYS, "extra"),
        ({"o": {"x": 1, "extra": 2}}, KEYS, "o.extra"),
        ({"o": {"y": {"z": 1, "extra": 2}}}, KEYS, "o.y.extra"),
        ({"o": [{"x": 1}, {"extra": 2}]}, KEYS, "o.extra"),
        ({"o": "text"}, KEYS, "o"),
        ({"o.x": 1, "o": {"x": 2}}, VALUES, "o.x"),
        ({"o": {"y.z": 1, "y": {"z": 2}}}, VALUES, "o.y.z"),
    ],
)
def test_many_rows_that_hold_more_than_columns_show_are_counted_one_by_one(read, source, code, name):
    left_out = read(lines(*[source, {"a": 1}] * 200))
    assert left_out.rows == {code: 200}
    assert left_out.names[code] == {name: 200}


@pytest.mark.parametrize("read", [by_csv, by_table])
def test_members_beside_the_document_are_counted_too(read):
    assert read(lines({"a": 1}, {"a": 2}, _routing="r")).names == {KEYS: {"_routing": 2}}


@pytest.mark.parametrize("read", [by_csv, by_table])
def test_members_that_the_server_adds_to_every_row_are_not_counted(read):
    data = lines({"a": 1}, {"a": 2, "created": 3}, created=1, kind="t", _routing="r")
    assert read(data, server_members=["created", "kind"]).names == {KEYS: {"_routing": 2, "created": 1}}


@pytest.mark.parametrize("read", [by_csv, by_table])
def test_rows_that_spell_new_keys_again_and_again_are_said_to_be_at_least_so_many(read):
    left_out = read(lines(*({"a": 1, f"k{at}": 1} for at in range(2 * NAMES))))
    [note] = left_out.notes()
    assert left_out.full
    assert note.reason.startswith("at least ")


def test_columns_of_objects_in_a_row_that_often_misfits_are_still_compared():
    sources = [{"a": 1, "o": {"x": "no number", "extra": 5}}, {"a": 2, "o": {"x": 3}}] * 300
    assert by_table(lines(*sources)).names == {KEYS: {"o.extra": 300}}


COMPUTED = Column(name="c", type="long", reasons={"export": "a script computes it"})
SCORE = Column(name="_score", type="_score")


def test_a_table_of_all_columns_says_which_it_lacks_and_one_of_named_columns_says_nothing():
    description = Description(object="t", columns=[*COLUMNS, COMPUTED, SCORE], notes=[*columns_cut(5000)])
    notes = column_notes(description, None)
    assert [(note.code, note.column) for note in notes] == [(CUT, None), ("columns-left-out", "c")]
    assert column_notes(description, ["a"]) == column_notes(description, []) == []


def test_a_column_that_an_export_lacks_is_refused_with_the_reason():
    with pytest.raises(ConfigurationError, match="a script computes it"):
        choose_columns(Description(object="t", columns=[*COLUMNS, COMPUTED]), ["c"])


def test_a_column_that_may_lie_beyond_the_limit_is_not_called_missing():
    description = Description(object="t", columns=COLUMNS)
    with pytest.raises(ConfigurationError, match="has no column 'b'"):
        choose_columns(description, ["b"])
    cut = Description(object="t", columns=COLUMNS, notes=[Note(code="other", reason="."), Note(code=CUT, reason="cut")])
    with pytest.raises(ConfigurationError, match="'b' is not among the 4,096 columns") as caught:
        choose_columns(cut, ["b"])
    assert caught.value.code == "column-unknown"
