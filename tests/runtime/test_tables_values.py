"""Blocks of rows become Arrow columns whose values are the stored ones: as plain Python finds them, one by one."""

from __future__ import annotations

import base64
import json
import random
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

from dragoman.exports import arrow_parquet
from dragoman.exports import values as values_module
from dragoman.exports.arrow_parquet import TableReader
from dragoman_api.arrow.schema import without_leaves
from dragoman_api.columns import Column, ColumnKind
from dragoman_api.errors import ExportError
from slow_cases import mostly_slow

K = ColumnKind
INSTANT = pa.timestamp("ns", tz="UTC")


def column(name, kind, *, path=None, **more):
    return Column(name=name, type=kind.value, kind=kind, path=("_source", name) if path is None else path, **more)


def reader(*columns, described=None, **more):
    return TableReader(columns, described=described or columns, **more)


def rows(*documents):
    """Lines of an export; texts are JSON already."""
    texts = [each if isinstance(each, str) else json.dumps(each) for each in documents]
    return b"".join(b'{"_id":"%d","_source":%s}\n' % (at, text.encode()) for at, text in enumerate(texts))


def misfits(batch):
    return [None if each is None else json.loads(each, parse_float=str, parse_int=str) for each in values(batch, -1)]


def values(batch, at=0):
    found = batch.column(batch.num_columns + at if at < 0 else at)
    if found.type == INSTANT:
        found = found.cast(pa.int64())
    if found.type == pa.list_(INSTANT):
        found = found.cast(pa.list_(pa.int64()))
    return found.to_pylist()


def read(kind, *texts, **more):
    """Read one column of JSON texts: its type, its values, and the misfits as JSON."""
    found = reader(column("v", kind, **more))
    batch = found.read(rows(*(f'{{"v":{text}}}' for text in texts)))
    return batch.schema.field("v").type, values(batch), [each and each["v"] for each in misfits(batch)]


# one column ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "texts", "arrow", "expected"),
    [
        (K.INTEGER, ["1", "null", str(2**63 - 1), str(-(2**63))], pa.int64(), [1, None, 2**63 - 1, -(2**63)]),
        (K.UNSIGNED, ["1", str(2**64 - 1)], pa.uint64(), [1, 2**64 - 1]),
        (K.FLOAT, ["1", "2.50", str(2**53), "1e22"], pa.float64(), [1.0, 2.5, 2.0**53, 1e22]),
        (K.FLOAT, ["0.1234567890123456", "0.1"], pa.float64(), [0.1234567890123456, 0.1]),
        (K.BOOLEAN, ["true", "false", "null"], pa.bool_(), [True, False, None]),
        (K.TEXT, ['"ä\\n\\u00e4"', '""', "null"], pa.string(), ["ä\nä", "", None]),
        (K.JSON, ['[{"a":1.10}]', "null", '{"a": 1e400}'], pa.string(), ['[{"a":1.10}]', None, '{"a": 1e400}']),
        (K.OTHER, ['"1.2.3.4"', "[1]"], pa.string(), ['"1.2.3.4"', "[1]"]),
        (K.RANGE, ['{"gte":1}'], pa.string(), ['{"gte":1}']),
        (K.DATE, ['"2024-02-29"', "null"], pa.date32(), [date(2024, 2, 29), None]),
        (K.TIME, ['"23:59"', '"00:00:01.5"'], pa.time64("ns"), [time(23, 59), time(0, 0, 1, 500_000)]),
        (K.BINARY, ['"AP8="', '""'], pa.binary(), [b"\0\xff", b""]),
        (K.DECIMAL, ['"1.10"', "-20", "3e2"], pa.decimal128(38, 18), [Decimal("1.10"), Decimal(-20), Decimal(300)]),
        (
            K.TIMESTAMP,
            ['"2024-02-29"', '"2024-02-29T12:00:00+02:00"', '"1969-12-31T23:59:59.5Z"', '"2024-02-29T00:00:00.1234567"',
             '"2024-02-29 01:00"'],
            INSTANT,
            [1709164800 * 10**9, 1709200800 * 10**9, -500_000_000, 1709164800_123456700, 1709168400 * 10**9],
        ),
    ],
)  # fmt: skip
def test_what_fits_has_the_type_of_the_description_and_every_digit(kind, texts, arrow, expected):
    assert read(kind, *texts) == (arrow, expected, [None] * len(texts))


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (K.INTEGER, "1", ['"n/a"', "1.5", "1.0", str(2**63), "1" * 30, "1" * 5000, "true", "[1]", "{}"]),
        (K.UNSIGNED, "1", ["-1", str(2**64), '"1"']),
        (K.FLOAT, "1.5", ["0.12345678901234567890123", "1e400", "-1e400", "1e-400", str(2**53 + 1), '"1"', "1" * 400]),
        (K.BOOLEAN, "true", ['"yes"', "1", "[true]"]),
        (K.TEXT, '"a"', ["1", "true", '["a","b"]', "[]", '{"a":"b"}']),
        (K.TIMESTAMP, '"2024-01-01"', ["1700000000000", '"yesterday"', '"2024-13-01"', '"9999-12-31T00:00:00Z"',
                                       '"2024-01-01T00:00:00.1234567891Z"', '"2024-01-01T00:00:60Z"', '"2024"']),
        (K.DATE, '"2024-01-01"', ['"2024-02-30"', '"2024-01-01T00:00:00Z"', "1"]),
        (K.TIME, '"10:00"', ['"24:01"', '"10"', "1"]),
        (K.BINARY, '"AP8="', ['"AP8"', '"?"', '"AP9="', "1"]),
        (K.DECIMAL, '"1.5"', ['"NaN"', "1e400", "1" * 21, "1" * 500, "0.1234567890123456789", "[1]"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("many", [1, 40])
def test_what_does_not_fit_is_null_and_stands_as_stored_beside_the_rest(kind, good, bad, many):
    """In few rows, and in most of them, where the decoder changes."""
    [arrow, [fits], _] = read(kind, good)
    for text in bad:
        texts = [good] * 40 + [text] * many + [good]
        [type_, found, aside] = read(kind, *texts)
        stored = json.loads(text, parse_float=str, parse_int=str)
        assert type_ == arrow
        assert found == [fits] * 40 + [None] * many + [fits], text
        assert aside == [None] * 40 + [stored] * many + [None], text


def test_a_signed_zero_keeps_its_sign():
    [_, found, aside] = read(K.FLOAT, "-0", "0", "-0.0")
    assert (str(found), aside) == ("[-0.0, 0.0, -0.0]", [None] * 3)


def test_a_misfit_is_the_very_text_that_is_stored():
    found = reader(column("a", K.INTEGER), column("b", K.FLOAT))
    batch = found.read(rows('{"b": 1.10000000000000000001, "a" : {"x":  1e5}}'))
    assert values(batch, -1) == ['{"a":{"x":  1e5},"b":1.10000000000000000001}']


def test_repeated_values_are_lists_and_a_single_one_is_a_list_of_one():
    texts = ['["a",null]', '"b"', "[]", "null", '["c",1]', '[["d"]]']
    assert read(K.TEXT, *texts, repeated=True) == (
        pa.list_(pa.string()), [["a", None], ["b"], [], None, None, None], [None] * 4 + [["c", "1"], [["d"]]],
    )  # fmt: skip
    assert read(K.INTEGER, f"[1,{2**63}]", "[2]", repeated=True)[1] == [None, [2]]


def test_lists_of_instants_and_floats_are_as_exact_as_single_ones():
    [type_, found, aside] = read(K.FLOAT, "[0.1,1e400]", "[0.5,0.12345678901234567890123]", "[null,1]", repeated=True)
    assert (type_, found) == (pa.list_(pa.float64()), [None, None, [None, 1.0]])
    assert aside == [["0.1", "1e400"], ["0.5", "0.12345678901234567890123"], None]
    [type_, found, aside] = read(K.TIMESTAMP, '["2024-01-01","1970-01-01T00:00:00Z"]', '["x"]', repeated=True)
    assert type_ == pa.list_(INSTANT)
    assert found == [[1_704_067_200 * 10**9, 0], None]


# objects, points, vectors -------------------------------------------------------------------------------------------

NESTED = (
    column("items", K.JSON),
    column("items.price", K.FLOAT, arrays=("items",)),
    column("items.product.name", K.TEXT, arrays=("items",)),
    column("items.parts", K.JSON, arrays=("items",)),
    column("items.parts.n", K.INTEGER, arrays=("items", "items.parts")),
)


def test_a_nested_array_is_a_list_of_objects_with_its_leaves():
    found = reader(NESTED[0], described=NESTED)
    part = pa.struct([("n", pa.int64())])
    assert found.schema.field("items").type == pa.list_(
        pa.struct([("price", pa.float64()), ("product", pa.struct([("name", pa.string())])), ("parts", pa.list_(part))])
    )
    one = {"price": 1.5, "product": {"name": "x"}, "parts": [{"n": 1}, {"n": None}]}
    arrays = [[one, {"price": None}, None], one, None, []]
    batch = found.read(rows(*({"items": items} for items in arrays), {}))
    rest = {"price": None, "product": None, "parts": None}
    assert values(batch) == [[one, rest, None], [one], None, [], None]
    assert misfits(batch) == [None] * 5


@pytest.mark.parametrize(
    "text",
    ['[{"price":1,"other":2}]', '[{"price":"1"}]', "[1]", '[{"price":0.12345678901234567890123}]', '[{"product":[{}]}]',
     '[{"product.name":"x"}]', '[{"parts":[{"n":9223372036854775808}]}]', '[{"parts":{"n":1}}]'],
)  # fmt: skip
def test_an_array_that_its_description_does_not_hold_whole_stands_aside_whole(text):
    batch = reader(NESTED[0], described=NESTED).read(rows(f'{{"items":{text}}}', '{"items":[{"price":2}]}'))
    assert [each if each is None else len(each) for each in values(batch)] == [None, 1]
    assert misfits(batch) == [{"items": json.loads(text, parse_float=str, parse_int=str)}, None]


def test_a_leaf_of_an_array_is_a_list_when_it_is_named():
    found = reader(NESTED[1], NESTED[4], described=NESTED)
    items = [{"price": 1, "parts": [{"n": 1}, {}]}, {}], {"price": 2}, [{"price": "x"}]
    batch = found.read(rows(*({"items": each} for each in items), {}))
    assert values(batch) == [[1.0, None], [2.0], None, None]
    assert values(batch, 1) == [[[1, None], None], [None], [None], None]
    assert misfits(batch) == [None, None, {"items.price": ["x"]}, None]


LEAVES = (NESTED[1], NESTED[2], NESTED[4], column("z", K.INTEGER))


def test_the_leaves_of_arrays_are_decoded_as_they_lie():
    found = reader(*LEAVES, described=NESTED)
    one = {"price": 1, "product": {"name": "x"}, "parts": [{"n": 1}, {"n": 2}]}
    items = [None, [], [one, {"price": 2.5}, None, {"parts": [], "product": None}, {"parts": [{"n": 6}]}], [one]]
    lines = rows(*({"items": each, "z": at} for at, each in enumerate(items)), {})
    assert found._decoder.decode(lines)[1] == [], "no row is read value by value"
    batch = found.read(lines)
    assert values(batch) == [None, [], [1.0, 2.5, None, None, None], [1.0], None]
    assert values(batch, 1) == [None, [], ["x", None, None, None, None], ["x"], None]
    assert values(batch, 2) == [None, [], [[1, 2], None, None, [], [6]], [[1, 2]], None]
    assert values(batch, 3) == [0, 1, 2, 3, None]


@pytest.mark.slow
def test_the_leaves_of_arrays_are_the_same_decoded_and_one_by_one():
    chosen = random.Random(7)

    def some(*made):
        return chosen.choice(made)()

    def part():
        return some(dict, lambda: {"n": some(lambda: 1, lambda: None, lambda: 2**53 + 1, lambda: 1.5, lambda: "x")})

    def parts():
        return some(lambda: None, list, part, lambda: [part(), part()], lambda: [None, part()])

    def item():
        price = some(lambda: 1, lambda: 0.5, lambda: "1.5", lambda: None, lambda: 1e300, lambda: [1])
        product = some(lambda: None, dict, lambda: {"name": some(lambda: "x", lambda: 1, lambda: None)})
        made = {"price": price, "product": product, "parts": parts(), "parts.n": 5, "product.name": "literal"}
        return {name: each for name, each in made.items() if chosen.random() < (0.1 if "." in name else 0.8)}

    def items():
        return some(lambda: None, list, item, lambda: [item() for _ in range(3)], lambda: [item(), None, [item()]])

    for _ in range(300):
        lines = rows(*({"items": items(), "z": 1} for _ in range(3)))
        slow = reader(*LEAVES, described=NESTED)
        slow._decoder = None
        assert reader(*LEAVES, described=NESTED).read(lines).equals(slow.read(lines)), lines


def test_the_leaves_of_an_array_are_in_its_column():
    assert [each.name for each in without_leaves(NESTED)] == ["items"]
    assert [each.name for each in without_leaves(NESTED[1:])] == [each.name for each in NESTED[1:]]


def test_a_point_is_an_object_of_two_floats():
    point = column("at", K.GEO, members=("lat", "lon"))
    bad = ['{"lat":1}', '{"lat":1,"lon":null}', '{"lat":1,"lon":2,"z":3}', '"1,2"', "[1,2]", '{"lat":1e400,"lon":1}']
    batch = reader(point).read(rows(*(f'{{"at":{text}}}' for text in ['{"lon":2.5,"lat":1}', "null", *bad])))
    assert batch.schema.field("at").type == pa.struct([("lat", pa.float64()), ("lon", pa.float64())])
    assert values(batch) == [{"lat": 1.0, "lon": 2.5}] + [None] * 7
    assert [each and each["at"] for each in misfits(batch)] == [None, None] + [
        json.loads(text, parse_float=str, parse_int=str) for text in bad
    ]


def test_a_point_without_one_of_its_numbers_stands_aside_even_alone():
    batch = reader(column("at", K.GEO, members=("lat", "lon"))).read(rows('{"at":{"lat":1,"lon":null}}', "{}"))
    assert values(batch) == [None, None]
    assert misfits(batch) == [{"at": {"lat": "1", "lon": None}}, None]


@pytest.mark.parametrize(("size", "arrow"), [(3, pa.list_(pa.float32(), 3)), (0, pa.list_(pa.float32()))])
def test_a_vector_is_32_bit_floats_that_give_their_numbers_back(size, arrow):
    vector = column("v", K.OTHER, dimensions=size)
    good = ["[0.1,-2,3e2]", "[0.10000000149011612,0.0023064255,-0.009327292]", "[1.1754944e-38,0.0,16777216]", "null"]
    bad = ["[0.1,0.2,0.123456789012]", "[1,2,1e300]", "[1,null,3]", '"x"', "[1,2,16777217]"]
    batch = reader(vector).read(rows(*(f'{{"v":{text}}}' for text in good + bad)))
    assert batch.schema.field("v").type == arrow
    numbers = [None if text == "null" else json.loads(text) for text in good]
    narrow = [None if each is None else pa.array(each, pa.float32()).to_pylist() for each in numbers]
    assert values(batch) == narrow + [None] * len(bad)
    batch = reader(vector).read(rows('{"v":[1,2]}', '{"v":[1,2,3]}'))
    assert values(batch) == ([None, [1, 2, 3]] if size else [[1, 2], [1, 2, 3]])


@pytest.mark.parametrize("size", [3, 0])
def test_a_vector_that_is_none_stands_aside_and_blanks_in_one_do_not_matter(size):
    vector = column("v", K.OTHER, dimensions=size)
    good = ["[ 0.5 ,\\t1,-0]".replace("\\t", "\t"), "null", "[1e-5,1E5,0.0]"]
    bad = ["[1,2,[3]]", '["1","2","3"]', '["1,2",3]', "[1,2,1e-400]", "[1,2,0.1000000000000000055511]", "[[1,2,3]]",
           "{}", "[1,true,2]"]  # fmt: skip
    batch = reader(vector).read(rows(*(f'{{"v":{text}}}' for text in good + bad)))
    assert str(values(batch)[:3]) == str([[0.5, 1.0, -0.0], None, pa.array([1e-5, 1e5, 0], pa.float32()).to_pylist()])
    assert values(batch)[3:] == [None] * len(bad)
    assert [each and each["v"] for each in misfits(batch)[3:]] == [
        json.loads(text, parse_float=str, parse_int=str) for text in bad
    ]
    batch = reader(vector).read(rows('{"v":[]}', '{"v":[1,2,3,4]}', '{"v":[1,2]}', "{}", '{"v":[1,2,3]}'))
    batch.validate(full=True)
    assert values(batch) == ([None] * 4 + [[1, 2, 3]] if size else [[], [1, 2, 3, 4], [1, 2], None, [1, 2, 3]])
    assert [each and "v" in each for each in misfits(batch)] == ([True] * 3 if size else [None] * 3) + [None] * 2


@pytest.mark.parametrize("text", ["{}", '"1"', '"1,2"', "12", "true", "[[1]]"])
@pytest.mark.parametrize("size", [1, 2, 0])
def test_what_is_no_vector_stands_aside_also_where_no_other_row_is_beside_it(text, size):
    batch = reader(column("v", K.OTHER, dimensions=size)).read(rows(f'{{"v":{text}}}'))
    assert values(batch) == [None]
    assert [each["v"] for each in misfits(batch)] == [json.loads(text, parse_float=str, parse_int=str)]


def test_named_vectors_are_an_object_of_lists():
    texts = ['{"a":[0.5,1],"b":[1]}', '{"b":[2]}', "null", '{"a":[1],"c":[1]}', '{"a":[1e300]}', "[1]"]
    named = column("v", K.JSON, dimensions=0, members=("a", "b"))
    batch = reader(named).read(rows(*(f'{{"v":{text}}}' for text in texts)))
    assert batch.schema.field("v").type == pa.struct([("a", pa.list_(pa.float32())), ("b", pa.list_(pa.float32()))])
    assert values(batch) == [{"a": [0.5, 1.0], "b": [1.0]}, {"a": None, "b": [2.0]}, None, None, None, None]
    assert [each and each["v"] for each in misfits(batch)] == [None] * 3 + [
        json.loads(text, parse_float=str, parse_int=str) for text in texts[3:]
    ]


@pytest.mark.parametrize("many", [1, 30])
def test_floats_among_zeros_and_long_digits_are_each_compared(many):
    texts = ["0", "0.0", "-0", "0.1234567890123456", "9007199254740992", "1.7976931348623157e308"] * many
    bad = ["1e-400", "9007199254740993", "0.12345678901234567890", "1.7976931348623159e309"]
    [_, found, aside] = read(K.FLOAT, *texts, *bad, *texts)
    whole = [float(text) for text in texts]
    assert str(found) == str([*whole, *[None] * len(bad), *whole])
    assert aside == [None] * len(texts) + bad + [None] * len(texts)


def test_a_table_takes_its_memory_from_the_system():
    """Arrow's own pool asks for huge pages, which are slow the first time."""
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    batch = reader(column("t", K.TEXT), column("f", K.FLOAT)).read(
        rows(*({"t": "x" * 99, "f": 1.5} for _ in range(999)))
    )
    assert batch.nbytes > 99_000
    assert pool.backend_name == "system" or pool.bytes_allocated() - before < 5_000


# where values stand -------------------------------------------------------------------------------------------------


def test_a_name_is_found_as_one_key_before_it_is_a_path_and_arrays_that_no_one_declared_stand_aside():
    columns = column("a.b.c", K.INTEGER), column("a.d", K.TEXT), column("_id", K.TEXT, path=("_id",))
    documents = [
        '{"a":{"b":{"c":1},"d":"x"}}', '{"a.b.c":2}', '{"a.b":{"c":3}}', '{"a":{"b.c":4}}', '{"a":null}', '{"a":5}',
        '{"a":[{"b":{"c":6}},{"d":"y"}]}', '{"a":{"b":{"c":7}},"a.b.c":8,"a":{"d":"z"}}',
    ]  # fmt: skip
    batch = reader(*columns).read(rows(*documents))
    assert values(batch, 0) == [1, 2, 3, 4, None, None, None, 8]
    assert values(batch, 1) == ["x", None, None, None, None, None, None, "z"]
    assert values(batch, 2) == [str(at) for at in range(8)]
    assert misfits(batch) == [None] * 6 + [{"a.b.c": ["6", None], "a.d": [None, "y"]}, None]


def test_columns_that_no_decoder_takes_are_read_one_by_one():
    columns = column("a", K.TEXT), column("a.b", K.INTEGER), column('q"', K.INTEGER), column("x..y", K.INTEGER)
    batch = reader(*columns).read(rows({"a": "x"}, {"a": {"b": 1}}, {'q"': 2, "x..y": 3}))
    expected = ["x", None, None], [None, 1, None], [None, None, 2], [None, None, 3]
    assert tuple(values(batch, at) for at in range(4)) == expected
    assert misfits(batch) == [None, {"a": {"b": "1"}}, None]


def test_a_column_that_is_called_as_the_misfits_keeps_its_name():
    found = reader(column("_misfits", K.TEXT))
    assert found.schema.names == ["_misfits", "__misfits"]


def test_misfits_are_counted_for_each_column():
    found = reader(column("a", K.INTEGER), column("b", K.TEXT))
    found.read(rows({"a": "x", "b": 1}, {"a": "y"}))
    found.read(rows({"a": 1.5}))
    told = {note.column: (note.code, note.reason.split(" ")[0]) for note in found.notes}
    assert told == {"a": ("values-misfit", "3"), "b": ("values-misfit", "1")}
    assert "int64" in found.notes[0].reason


def test_strict_refuses_the_first_misfit_and_names_it():
    found = reader(column("a", K.INTEGER), strict=True)
    found.read(rows({"a": 1}, {"a": 2}))
    with pytest.raises(ExportError, match="row 4 holds \"x\" in the column 'a'") as caught:
        found.read(rows({"a": 1}, {"a": "x"}))
    assert (caught.value.code, caught.value.details) == ("values-misfit", {"column": "a", "row": 4})


def test_strict_names_the_first_row_of_all_columns():
    found = reader(column("a", K.INTEGER), column("b", K.TEXT), strict=True)
    with pytest.raises(ExportError, match="row 2 holds 7 in the column 'b'"):
        found.read(rows({"a": 1, "b": "x"}, {"b": 7}, {"a": "y"}, {"a": "z"}))


def test_a_line_that_is_no_object_is_an_error():
    with pytest.raises(ExportError, match="cannot be read"):
        reader(column("a", K.INTEGER)).read(b"[]\n")


def test_rows_that_fit_are_not_read_one_by_one(monkeypatch):
    """The compiled decoder takes them, and a rare misfit concerns its own row only."""
    asked = []
    real = arrow_parquet.ValueReader.read
    monkeypatch.setattr(arrow_parquet.ValueReader, "read", lambda self, line: asked.append(line) or real(self, line))
    found = reader(column("a.b", K.INTEGER), column("f", K.FLOAT), column("t", K.TIMESTAMP))
    good = '{"a":{"b":12345678901234567},"f":0.1234567890123456,"t":"2024-01-01"}'
    found.read(rows(*[good] * 100))
    assert asked == []
    found.read(rows(*[good] * 50, '{"a":{"b":"x"}}', *[good] * 50))
    assert len(asked) == 1
    key, number = column("id", K.TEXT, path=("_id",)), column("n", K.INTEGER)
    for members in (["class", "since"], ["class", "since", "_id"]):
        asked.clear()
        found = reader(key, number, keys=values_module.RowKeys([key, number], server_members=members))
        line = b'{"_id":"1","class":"A","since":5,"_source":{"n":1,"since":6}}\n'
        assert values(found.read(line * 100), 1) == [1] * 100
        assert asked == []
        assert ["since" in note.reason for note in found.notes] == [True]  # the one in the document


# what a server can make it cost --------------------------------------------------------------------------------------


def test_misfits_in_ever_other_columns_change_the_decoder_a_few_times_only(monkeypatch):
    made = []
    real = arrow_parquet.RowDecoder
    monkeypatch.setattr(arrow_parquet, "RowDecoder", lambda *args, **more: made.append(1) or real(*args, **more))
    columns = [column(f"c{at}", K.INTEGER) for at in range(120)]
    found = reader(*columns)
    in_one = found.read(rows(*({f"c{at}": f"text {at}"} for at in range(120))))
    assert misfits(in_one) == [{f"c{at}": f"text {at}"} for at in range(120)]
    for at in range(120):
        assert misfits(found.read(rows({f"c{at}": True}))) == [{f"c{at}": True}]
    assert len(made) <= arrow_parquet._CHANGES + 1


def test_a_block_after_another_may_each_change_the_decoder_up_to_a_limit(monkeypatch):
    made = []
    real = arrow_parquet.RowDecoder
    monkeypatch.setattr(arrow_parquet, "RowDecoder", lambda *args, **more: made.append(1) or real(*args, **more))
    found = reader(*(column(f"c{at}", K.INTEGER) for at in range(100)))
    for at in range(100):
        assert misfits(found.read(rows({f"c{at}": True}))) == [{f"c{at}": True}]
        assert misfits(found.read(rows({f"c{at}": at}))) == [None]
    assert len(made) <= arrow_parquet._CHANGES + 1


@pytest.mark.parametrize("wary", [False, True])
def test_an_object_with_many_columns_is_read_once_for_all_of_them(monkeypatch, wary):
    read_objects = []
    real = values_module._members
    monkeypatch.setattr(values_module, "_members", lambda text: read_objects.append(1) or real(text))
    found = reader(*(column(f"a.c{at}", K.INTEGER) for at in range(200)))
    good, bad = {"a": {f"c{at}": at for at in range(200)}}, {"a": {f"c{at}": f"{at}" for at in range(200)}}
    for _ in range(2 if wary else 1):
        read_objects.clear()
        assert misfits(found.read(rows(bad, good)))[1] is None
    assert len(read_objects) < 20


def test_two_values_on_one_line_are_an_error_and_shift_no_row():
    lines = b'{"_source":{"f":1}} {"_source":{"f":0.12345678901234567890123}}\n'
    with pytest.raises(ExportError, match="cannot be read"):
        reader(column("f", K.FLOAT)).read(lines)
    with pytest.raises(ExportError, match="cannot be read"):
        reader(column("f", K.FLOAT)).read(b'{"_source":\n{"f":1}}\n')


# everything at once -------------------------------------------------------------------------------------------------

COLUMNS = (
    column("_id", K.TEXT, path=("_id",)), column("long", K.INTEGER), column("ulong", K.UNSIGNED),
    column("double", K.FLOAT), column("flag", K.BOOLEAN), column("word", K.TEXT), column("at", K.TIMESTAMP),
    column("user.name", K.TEXT), column("user.age.years", K.INTEGER), column("user.score", K.FLOAT),
    column("any", K.JSON), column("blob", K.BINARY), column("words", K.TEXT, repeated=True),
    column("several", K.TEXT, multiple=True, many="array"), column("some", K.FLOAT, multiple=True, many="value"),
    column("days", K.TIMESTAMP, multiple=True, many="value"), column("counts", K.INTEGER, multiple=True, many="array"),
    column("user.tags", K.TEXT, multiple=True, many="array"), column("may", K.TEXT, multiple=True),
)  # fmt: skip
TEXTS = ['"a"', '"2024-01-01"', '"2024-01-01T10:00:00.123456789+01:00"', '"2024-01-01T00:00:00Z"', '"AP8="',
         '"12"', '""', '"9999-12-31T00:00:00Z"', '"\\u00e4 e-5"', '"3e-4a-1"']  # fmt: skip
NUMBERS = ["0", "-0", "1", "-1", "12", str(2**53), str(2**53 + 1), str(2**63 - 1), str(2**63), str(2**64 - 1),
           str(2**64), "1.5", "2.50", "0.1", "0.30000000000000004", "0.3000000000000000444", "1e5", "1E22", "1e23",
           "1e400", "1e-400", "5e-324", "1e-7", "-0.0", "1" * 25]  # fmt: skip
OTHERS = ["true", "false", "null", "[]", "{}", '["a","b"]', "[1, 2]", '{"x":1}', '[{"name":"n"}]', '["a",null]']


def random_value(dice, depth=0):
    if depth < 2 and dice.random() < 0.1:
        return f"[{', '.join(random_value(dice, depth + 1) for _ in range(dice.randint(0, 2)))}]"
    return dice.choice(dice.choice([TEXTS, NUMBERS, OTHERS]))


FITTING = {
    "long": NUMBERS[:5], "ulong": ["0", "1"], "double": ["0.1", "1.5", "-1"], "flag": ["true"], "word": TEXTS,
    "at": TEXTS[1:4], "any": OTHERS, "blob": ['""', '"AP8="'], "words": ['["a"]', "[]"], "name": TEXTS, "years": ["1"],
    "score": ["1.5"], "several": ['["a"]', '["a","b"]', '"a"', "[]"], "some": ["1.5", "[1.5]", "[0.1,null]"],
    "days": ['"2024-01-01"', '["2024-01-01"]', '["2024-01-01T00:00:00Z","2024-01-01"]'], "counts": ["[1]", "[1,2]"],
    "tags": ['"a"', '["a","b"]', "[]"], "may": ['"a"'],
}  # fmt: skip


def random_document(dice, odd):
    def value(name):
        return random_value(dice) if dice.random() < odd else dice.choice(FITTING[name])

    def members(names):
        return ",".join(f'"{name}":{value(name)}' for name in names if dice.random() < 0.8)

    age = f'"age":{{{members(["years"])}}}'
    user = ",".join(filter(None, [members(["name", "score", "tags"]), age if dice.random() < 0.7 else ""]))
    if dice.random() < odd:
        user = ",".join(filter(None, [user, f'"age.years":{random_value(dice)}']))
    user = f'"user":{{{user}}}'
    if dice.random() < odd:
        any_value = random_value(dice)
        user = dice.choice([f'"user":{any_value}', f'"user.name":{any_value}', f'{user},"user.score":2',
                            f'"user":[{{"name":{any_value}}}]'])  # fmt: skip
    own = members(
        [
            "long",
            "ulong",
            "double",
            "flag",
            "word",
            "at",
            "any",
            "blob",
            "words",
            "several",
            "some",
            "days",
            "counts",
            "may",
        ]
    )
    return f"{{{','.join(filter(None, [own, user]))}}}"


class Number(str):
    __slots__ = ()


def find(value, parts):
    """Find a path in a document; a key that holds dots wins, and an array gives one entry for each element."""
    if not parts:
        return value
    if isinstance(value, list):
        return [find(each, parts) if isinstance(each, dict | list) else None for each in value]
    if not isinstance(value, dict):
        return None
    for end in range(len(parts), 0, -1):
        name = ".".join(parts[:end])
        if end == len(parts) and name in value:
            return value[name]
        if isinstance(value.get(name), dict | list) and (found := find(value[name], parts[end:])) is not None:
            return found
    return None


def evaluate(kind, value):
    """Return what a value is in its column; raise ValueError if it does not fit."""
    number, text = isinstance(value, Number), isinstance(value, str) and not isinstance(value, Number)
    whole = number and value.lstrip("-").isdigit()
    if kind is K.INTEGER and whole and -(2**63) <= int(value) < 2**63:
        return int(value)
    if kind is K.UNSIGNED and whole and 0 <= int(value) < 2**64:
        return int(value)
    if kind is K.FLOAT and number and Decimal(value) in (Decimal(repr(float(value))), Decimal(float(value))):
        return float(value)
    if kind is K.BOOLEAN and isinstance(value, bool):
        return value
    if kind is K.TEXT and text:
        return str(value)
    if kind is K.BINARY and text and base64.b64encode(base64.b64decode(value, validate=True)).decode() == value:
        return base64.b64decode(value)
    if kind is K.TIMESTAMP and text and value[:2] == "20":
        head, fraction = (value[:19] + value[29:], int(value[20:29])) if "." in value else (value, 0)
        moment = datetime.fromisoformat(head)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return int(moment.timestamp()) * 10**9 + fraction
    if kind is K.JSON:
        return value
    raise ValueError


@pytest.mark.parametrize("seed", mostly_slow(range(40), fast=range(16)))
@pytest.mark.slow
def test_random_documents_are_in_the_table_as_python_finds_them(seed):
    dice = random.Random(seed)
    odd = dice.choice([0, 0.001, 0.01, 0.1, 0.5])
    found = reader(*COLUMNS)
    for size in (1, 50, dice.randint(1, 300)):
        documents = [random_document(dice, odd) for _ in range(size)]
        batch = found.read(rows(*documents))
        batch.validate(full=True)
        aside = [
            {} if each is None else json.loads(each, parse_float=Number, parse_int=Number)
            for each in values(batch, -1)
        ]  # fmt: skip
        for number, each in enumerate(COLUMNS[1:], 1):
            got = values(batch, number)
            for at, document in enumerate(documents):
                stored = find(json.loads(document, parse_float=Number, parse_int=Number), each.name.split("."))
                whole, lists = stored, each.repeated or each.many in ("array", "value")
                if lists and stored is not None and not isinstance(stored, list):
                    stored = [stored]
                one = each.many == ("array" if stored is not whole else "value") and len(stored or ()) == 1
                try:
                    expected = None if stored is None else (
                        [None if item is None else evaluate(each.kind, item) for item in stored] if lists
                        else evaluate(each.kind, stored)
                    )  # fmt: skip
                    fits = True
                except (ValueError, OverflowError):
                    expected, fits = None, False
                about = f"{each.name} of {document}"
                if each.kind is K.JSON and got[at] is not None:
                    got[at] = json.loads(got[at], parse_float=Number, parse_int=Number)
                assert repr(got[at]) == repr(expected), about
                held = aside[at].get(each.name)
                if each.repeated and held is not None and not isinstance(held, list):
                    held = [held]
                wanted = (whole if each.many else stored) if one or not fits else None
                assert held == wanted, about


@pytest.mark.parametrize("kind", [K.TEXT, K.INTEGER, K.UNSIGNED, K.FLOAT, K.BOOLEAN, K.TIMESTAMP, K.BINARY, K.DECIMAL])
@pytest.mark.parametrize("many", ["array", "value"])
def test_one_value_and_a_list_of_one_are_told_apart(kind, many):
    """One of them is what a list of one stands for; the other is beside it, as it is stored."""
    text = {K.BOOLEAN: "true", K.TIMESTAMP: '"2024-01-01"', K.BINARY: '"AP8="', K.TEXT: '"[1]"'}.get(kind, "12")
    [type_, [one, listed, two, empty, null], aside] = read(
        kind, text, f"[{text}]", f"[{text},{text}]", "[]", "null", multiple=True, many=many
    )  # fmt: skip
    assert pa.types.is_list(type_)
    assert one == listed == two[:1]
    assert (len(two), empty, null) == (2, [], None)
    stored = json.loads(text, parse_int=str)
    assert aside == ([stored, None] if many == "array" else [None, [stored]]) + [None] * 3


def test_what_is_beside_a_list_is_no_misfit():
    found = reader(column("v", K.TEXT, multiple=True, many="array"), strict=True)
    assert misfits(found.read(rows('{"v":"a"}', '{"v":["a"]}'))) == [{"v": "a"}, None]
    assert (found.misfits, found.notes) == ([0], [])
    with pytest.raises(ExportError, match="row 4 holds 1 in the column 'v'"):
        found.read(rows('{"v":"a"}', '{"v":1}'))


def test_a_point_that_stands_alone_keeps_the_order_of_its_members():
    found = reader(column("at", K.GEO, members=("lat", "lon"), multiple=True, many="array"))
    batch = found.read(rows('{"at":{"lon":1.50,"lat":2}}', '{"at":[{"lon":1.5,"lat":2}]}', '{"at":[1.5,2]}'))
    assert values(batch) == [[{"lat": 2.0, "lon": 1.5}]] * 2 + [None]
    assert values(batch, -1) == ['{"at":{"lon":1.50,"lat":2}}', None, '{"at":[1.5,2]}']


def test_arrays_on_the_way_to_a_list_change_the_decoder_once():
    found = reader(column("o.v", K.TEXT, multiple=True, many="array"), column("w", K.TEXT))
    batch = found.read(rows(*['{"o":[{"v":"a"},{"v":"b"},{}],"w":"x"}'] * 100))
    assert values(batch) == [["a", "b", None]] * 100
    assert (values(batch, 1), misfits(batch)) == (["x"] * 100, [None] * 100)
    assert found._decoder.decode(rows('{"o":[{"v":"a"}],"w":"x"}'))[1] == []


@pytest.mark.parametrize("kind", [K.INTEGER, K.UNSIGNED, K.BOOLEAN])
def test_pandas_keeps_what_stands_beside_a_missing_value(kind, tmp_path):
    """Of a table, of some of its columns, and of a Parquet file."""
    pandas = pytest.importorskip("pandas")
    from pyarrow import parquet

    stored = [True, None, False] if kind is K.BOOLEAN else [2**53 + 1, None, 2**53]
    found = reader(column("v", kind), column("w", K.TEXT))
    table = pa.Table.from_batches([found.read(rows(*({"v": each, "w": "x"} for each in stored)))])
    parquet.write_table(table, tmp_path / "t.parquet")
    read_back = pandas.read_parquet(tmp_path / "t.parquet")
    for frame in (table.to_pandas(), table.select(["v"]).to_pandas(), table.slice(0, 2).to_pandas(), read_back):
        assert [None if each is pandas.NA else each for each in frame["v"]] == stored[: len(frame)]
        assert frame.index.tolist() == [*range(len(frame))]


def test_columns_beyond_the_first_fifty_that_do_not_fit_are_one_note():
    names = [f"c{at}" for at in range(53)]
    found = reader(*(column(name, K.INTEGER) for name in names))
    found.read(rows(dict.fromkeys(names, "x")))
    assert [note.column for note in found.notes] == [*names[:50], None]
    assert found.notes[-1].reason == "values of 3 more columns do not fit their types"
