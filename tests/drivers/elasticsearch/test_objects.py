"""What is listed and described: indices, columns, unions, what each column can do."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import anyio
import msgspec
import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, Rig, on_fake
from drivers.replies import Answers, reply
from msgspec.structs import replace

import dragoman_elasticsearch
from dragoman_api import ObjectsRequest, Update
from dragoman_api import Operator as Op
from dragoman_api.cells import MISSING
from dragoman_api.columns import MAX_DIMENSIONS, ColumnKind
from dragoman_api.errors import ObjectNotFoundError, QueryError
from dragoman_api.kit.exchanges import send_all
from dragoman_api.remedies import RemedyKind
from dragoman_api.testing.target import hooks_of
from dragoman_querydsl import objects
from dragoman_querydsl.columns import grid_columns as view_module
from dragoman_querydsl.columns import mapping
from dragoman_querydsl.columns.field_types import Family, Field, Gap, family_of

if TYPE_CHECKING:
    from dragoman_querydsl.columns.grid_columns import View
    from wording import Wording

TEXT = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
LONG = {"type": "long"}


def view(*mappings: dict[str, Any], caps: dict[str, Any] | None = None) -> View:
    """Read mappings of indices a, b, …; every field can do everything unless it is said."""
    indices = {chr(97 + at): {"mappings": each} for at, each in enumerate(mappings)}
    merged: dict[str, dict[str, Any]] = {}
    for each in mappings:
        for leaf in mapping._leaves(mapping._Group(indices=(), mapping=each)):
            name = leaf.spec.get("path", leaf.name)
            text = leaf.type == "text"
            merged.setdefault(leaf.name, {})[leaf.type] = {
                "searchable": leaf.type != "nested",
                "aggregatable": not text,
            }
            for sub, spec in (leaf.spec.get("fields") or {}).items():
                merged.setdefault(f"{name}.{sub}", {})[spec["type"]] = {"searchable": True, "aggregatable": True}
    answer = {"indices": list(indices), "fields": merged | (caps or {})}
    return read("x", indices, answer)


def read(name: str, indices: dict[str, Any] | None, answer: dict[str, Any]) -> View:
    known = None
    if indices is not None:
        known = msgspec.json.decode(json.dumps(indices), type=dict[str, mapping.IndexMapping])
    return mapping.read(name, known, msgspec.convert(answer, mapping.FieldCaps))


def names(found: View) -> list[str]:
    return list(found.fields)[3:]


# columns from mappings


def test_counts_of_fewer_indices_than_were_asked_for_are_an_error(wording: Wording) -> None:
    answers = Answers(reply([{"index": "a"}, {"index": "b"}]), reply({"responses": [{}]}))
    with pytest.raises(QueryError) as caught:
        answers.run(objects.list_objects())
    wording(caught.value.message)


def test_E18_the_special_columns_come_first_and_are_never_updated() -> None:
    described = view({"properties": {"A": {"type": "long"}}}).describe()
    assert [column.name for column in described.columns[:3]] == ["_id", "_index", "_score"]
    assert [column.is_key for column in described.columns] == [True, False, False, False]
    assert [column.role for column in described.columns] == ["key", "server", "server", ""]
    assert [column.written for column in described.columns] == ["insert", "never", "never", "always"]


@pytest.mark.parametrize(
    ("types", "kind"),
    [
        (["byte"], "integer"),
        (["long", "token_count"], "integer"),
        (["unsigned_long"], "unsigned"),
        (["unsigned_long", "long"], "integer"),
        (["scaled_float"], "float"),
        (["long", "double"], "float"),
        (["date"], "timestamp"),
        (["date_nanos"], "timestamp"),
        (["binary"], "binary"),
        (["object"], "json"),
        (["completion"], "other"),
        (["ip"], "text"),
        (["version"], "text"),
    ],
)
def test_the_kind_of_a_column_says_what_the_servers_types_hold(types: list[str], kind: str) -> None:
    """Indices behind one name may map a field to several types of one family."""
    family = family_of(types[0])
    assert view_module.column(Field(name="a", types=tuple(types), family=family, field="a")).kind == kind


@pytest.mark.parametrize(("gaps", "known"), [((), True), (("dynamic",), True), (("dynamic", "hidden"), False)])
def test_the_formats_of_a_date_are_known_unless_a_mapping_is_hidden(gaps: tuple[str, ...], known: bool) -> None:
    field = Field(name="d", types=("date",), family=Family.DATE, field="d", gaps=tuple(Gap(name, ()) for name in gaps))
    assert field.formats_known is known


def test_E19_objects_are_flattened_and_columns_sorted_without_regard_to_case() -> None:
    properties = {
        "b": {"type": "long"},
        "A": {"properties": {"d": {"properties": {"e": {"type": "ip"}}}, "c": {"type": "date"}}},
        "C": {"type": "boolean"},
    }
    assert names(view({"properties": properties})) == ["A.c", "A.d.e", "b", "C"]


def test_E19_an_object_without_fields_is_a_column_of_its_own() -> None:
    """Its content is stored and would be invisible otherwise."""
    found = view({"properties": {"o": {"type": "object", "enabled": False}, "p": {"properties": {}}}})
    assert names(found) == ["o", "p"]
    assert found.columns["o"].operators == ()
    assert "filter" in found.columns["o"].reasons


def test_E20_E24_nested_arrays_are_a_json_column_and_leaves(wording: Wording) -> None:
    inner = {"type": "nested", "properties": {"k": {"type": "keyword"}}}
    found = view({"properties": {"n": {"type": "nested", "properties": {"q": {"type": "long"}, "in": inner}}}})
    assert names(found) == ["n", "n.in", "n.in.k", "n.q"]
    assert found.fields["n.in.k"].nested == ("n", "n.in")
    assert (found.columns["n"].operators, found.columns["n"].sortable) == ((), False)
    assert found.columns["n.q"].sortable
    assert Op.EQ in found.columns["n.q"].operators
    wording(found.columns["n.q"].reasons["edit"])


def test_multi_fields_are_no_columns_and_keyword_counts_by_name_and_type() -> None:
    """E25: only a subfield that is named keyword and of type keyword."""
    fields = {
        "a": TEXT,
        "b": {"type": "text", "fields": {"keyword": {"type": "long"}}},
        "c": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
        "d": {"type": "text"},
    }
    found = view({"properties": fields})
    assert names(found) == ["a", "b", "c", "d"]
    assert [found.columns[name].sortable for name in "abcd"] == [True, False, False, False]
    assert found.columns["d"].reasons["sort"] == "text field without a .keyword subfield"


def test_an_alias_field_stands_for_its_target(wording: Wording) -> None:
    found = view({"properties": {"t": TEXT, "al": {"type": "alias", "path": "t"}}})
    assert (found.fields["al"].whole, found.columns["al"].type) == ("t.keyword", "text")
    wording(found.columns["al"].reasons["edit"])


def test_a_runtime_field_with_a_script_is_read_only_and_exports_lack_it(wording: Wording) -> None:
    found = view({"properties": {}, "runtime": {"r": {"type": "long", "script": {"source": "emit(1)"}}}})
    column = found.columns["r"]
    assert (column.written, column.path, column.sortable) == ("never", (), True)
    wording(column.reasons["edit"], column.reasons["export"])


@pytest.mark.parametrize("kind", ["lookup", "composite"])
def test_a_runtime_field_that_takes_its_values_from_elsewhere_is_computed_without_a_script(kind: str) -> None:
    column = view({"properties": {}, "runtime": {"r": {"type": kind}}}).columns["r"]
    assert (column.written, column.path) == ("never", ())


def test_a_runtime_field_reads_the_key_that_the_mapped_one_of_its_name_is_stored_under() -> None:
    runtime = {"runtime": {"a.b": {"type": "keyword"}, "c.d": {"type": "keyword"}}}
    found = view({"subobjects": False, "properties": {"a.b": {"type": "long"}}, **runtime})
    assert (found.fields["a.b"].keys, found.fields["c.d"].keys) == (("a.b",), ("c", "d"))


def test_a_runtime_field_without_a_script_is_a_stored_column() -> None:
    found = view({"properties": {}, "runtime": {"r": {"type": "long"}, "o.x": {"type": "keyword"}}})
    for name, keys in (("r", ("r",)), ("o.x", ("o", "x"))):
        column, field = found.columns[name], found.fields[name]
        assert (column.written, column.path, column.sortable) == ("always", ("_source", name), True)
        assert (field.keys, field.computed) == (keys, False)
        assert "runtime" in [gap.name for gap in field.gaps]


def test_a_column_says_where_its_value_stands_in_an_exported_row() -> None:
    script = {"type": "keyword", "script": {"source": "emit('x')"}}
    found = view({"properties": {"n": {"type": "long"}}, "runtime": {"r": script}}, caps={"r": {"keyword": {}}})
    assert {name: found.columns[name].path for name in ("n", "r", "_id", "_index", "_score")} == {
        "n": ("_source", "n"), "r": (), "_id": ("_id",), "_index": ("_index",), "_score": (),
    }  # fmt: skip


def test_a_runtime_field_hides_the_mapped_one_of_its_name(wording: Wording) -> None:
    script = {"script": {"source": "emit(params._source.other)"}}
    shadowed = {
        "properties": {"n": {"type": "long"}, "t": TEXT},
        "runtime": {"n": {"type": "keyword", **script}, "t": {"type": "long", **script}},
    }
    found = view(shadowed, caps={"n": {"keyword": {}}, "t": {"long": {}}})
    for name, kind in (("n", "keyword"), ("t", "long")):
        column = found.columns[name]
        assert (column.type, column.sortable, column.written, column.path) == (kind, True, "never", ())
        assert Op.GT in column.operators
        assert (found.fields[name].keyword, found.fields[name].conflict) == (None, "")
    assert [(note.code, note.column) for note in found.notes] == [("field-shadowed", "n"), ("field-shadowed", "t")]
    wording(found.notes[0].reason)
    one_of_two = view(shadowed, {"properties": {"n": {"type": "keyword"}, "t": TEXT}})
    assert one_of_two.columns["n"].reasons["filter"] == "nested or computed in one index, and not in another"
    without = view({"properties": {"n": {"type": "long"}}, "runtime": {"n": {"type": "keyword"}}})
    assert (without.columns["n"].type, without.columns["n"].path, without.notes) == ("keyword", ("_source", "n"), ())


@pytest.mark.parametrize(
    ("mappings", "conflicts"),
    [
        ([{"subobjects": False, "properties": {"m.t": LONG, "m.t.max": LONG}}], set()),
        ([{"properties": {"m": {"subobjects": False, "properties": {"t": LONG, "t.max": LONG}}}}], set()),
        ([{"properties": {"m": LONG}, "runtime": {"m.length": LONG}}], set()),
        ([{"properties": {"m": LONG}}, {"properties": {"m": {"properties": {"t": LONG}}}}], {"m"}),
        ([{"properties": {"m": {"properties": {"t": LONG}}}}, {"properties": {"m": LONG}}], {"m"}),
        ([{"subobjects": False, "properties": {"m.t": LONG}}, {"properties": {"m": LONG}}], set()),
    ],
)
def test_only_a_field_that_is_an_object_elsewhere_is_refused_and_not_one_whose_name_begins_another(
    mappings: list[dict[str, Any]], conflicts: set[str]
) -> None:
    found = view(*mappings)
    assert {name for name, field in found.fields.items() if field.conflict} == conflicts
    assert {name for name, column in found.columns.items() if "filter" in column.reasons} - {"_score"} == conflicts


def test_a_dotted_key_of_a_flattened_field_takes_what_the_server_takes() -> None:
    """No wildcard on a key, and a range needs both bounds."""
    found = view({"properties": {"f": {"type": "flattened"}}}).find("f.some.key")
    assert found is not None
    operators = found.support[0]
    assert {Op.EQ, Op.NULL, Op.BETWEEN} <= set(operators)
    assert not {Op.CONTAINS, Op.GT, Op.LE} & set(operators)


@pytest.mark.parametrize("kind", ["geo_point", "geo_shape", "integer_range", "ip_range", "completion", "binary"])
def test_what_is_called_aggregatable_and_does_not_sort(kind: str) -> None:
    column = view({"properties": {"x": {"type": kind}}}).columns["x"]
    assert not column.sortable
    assert column.operators == (Op.NULL, Op.NOT_NULL, *((Op.NEAR, Op.IN_BOX) if kind == "geo_point" else ()))
    assert set(column.reasons) == {"sort", *(op for op in Op if op not in column.operators)}


EQUAL, ORDER = {"=", "!=", "in", "not-in"}, {">", ">=", "<", "<=", "between"}
PARTS, NULLS, EMPTY = {"contains", "not-contains", "starts", "ends"}, {"null", "not-null"}, {"empty", "not-empty"}
DECLARED: dict[str, tuple[set[str], bool, str]] = {
    "keyword constant_keyword wildcard": ({*EQUAL, *ORDER, *PARTS, *NULLS, *EMPTY}, True, "text"),
    "text match_only_text search_as_you_type annotated_text": ({*EQUAL, *PARTS, *NULLS}, False, "text"),
    "byte short integer long token_count": ({*EQUAL, *ORDER, *NULLS}, True, "integer"),
    "unsigned_long": ({*EQUAL, *ORDER, *NULLS}, True, "unsigned"),
    "half_float float double scaled_float": ({*EQUAL, *ORDER, *NULLS}, True, "float"),
    "date date_nanos": ({*EQUAL, *ORDER, *NULLS}, True, "timestamp"),
    "boolean": ({*EQUAL, *NULLS}, True, "boolean"),
    "ip version": ({*EQUAL, *ORDER, *NULLS}, True, "text"),
    "binary": (NULLS, False, "binary"),
    "integer_range float_range long_range double_range date_range ip_range": (NULLS, False, "range"),
    "geo_point": ({*NULLS, "near", "in-box"}, False, "geo"),
    "geo_shape point shape": (NULLS, False, "geo"),
    "flattened": ({*EQUAL, *PARTS, *NULLS}, False, "json"),
    "object nested": (set(), False, "json"),
    "join completion dense_vector": (NULLS, False, "other"),
}


@pytest.mark.parametrize(
    ("kind", "declared"), [(kind, DECLARED[kinds]) for kinds in DECLARED for kind in kinds.split()]
)
def test_E34_every_type_declares_all_that_it_takes(kind: str, declared: tuple[set[str], bool, str]) -> None:
    found = view({"properties": {"x": {"type": kind}}})
    column = found.columns["x"]
    assert ({str(op) for op in column.operators}, column.sortable, str(column.kind)) == declared
    assert (column.multiple, column.written, column.path) == (True, "always", ("_source", "x"))


def test_E18_the_special_columns_and_the_keys_of_a_flattened_one_declare_all_that_they_take() -> None:
    properties = {
        "o": {"properties": {"f": {"type": "flattened"}}},
        "al": {"type": "alias", "path": "k"},
        "k": {"type": "keyword"},
    }
    found = view({"properties": properties})
    shown = {
        name: ({str(op) for op in column.operators}, column.sortable, str(column.kind), column.multiple, column.path)
        for name, column in found.columns.items()
    }
    assert shown["_id"] == (EQUAL, False, "text", False, ("_id",))
    assert shown["_index"] == ({*EQUAL, *PARTS}, True, "text", False, ("_index",))
    assert shown["_score"] == (set(), False, "float", False, ())
    assert shown["al"][-1] == ("_source", "k")
    for name in ("o.f.k", "o.f.k.deep"):
        field = found.find(name)
        assert field is not None
        column = view_module.column(field)
        assert ({str(op) for op in column.operators}, column.sortable, str(column.kind)) == (
            {*EQUAL, "between", *NULLS, *EMPTY}, True, "text",
        )  # fmt: skip
        assert field.keys == ("o", "f", *name.split(".")[2:])
    assert [found.find(name) for name in ("o.f.", "o.f..k", "o.g", "k.x", ".k", "")] == [None] * 6


def test_a_text_whose_whole_strings_alone_are_indexed_does_not_tell_whether_a_row_has_one() -> None:
    """`exists` asks the text, and would silently find nothing."""
    blind = {"searchable": False, "aggregatable": False}
    column = view({"properties": {"x": TEXT}}, caps={"x": {"text": blind}}).columns["x"]
    assert (Op.EQ in column.operators, Op.NULL in column.operators, column.sortable) == (True, False, True)


@pytest.mark.parametrize("values", ["integer", "float", "long", "double", "date", "ip"])
def test_a_column_of_ranges_is_one_whatever_their_ends_are(values: str) -> None:
    assert view({"properties": {"x": {"type": f"{values}_range"}}}).columns["x"].kind is ColumnKind.RANGE


@pytest.mark.parametrize(
    ("spec", "members"),
    [({"type": "geo_point"}, ("lat", "lon")), ({"type": "point"}, ("x", "y")), ({"type": "geo_shape"}, ())],
)
def test_a_point_names_the_numbers_that_it_is_an_object_of(spec: dict[str, Any], members: tuple[str, ...]) -> None:
    assert view({"properties": {"x": spec}}).columns["x"].members == members


@pytest.mark.parametrize(
    ("spec", "dimensions"),
    [
        ({"dims": 3}, 3),
        ({"dims": 3, "element_type": "byte"}, 3),
        ({"dims": MAX_DIMENSIONS}, MAX_DIMENSIONS),
        ({"dims": MAX_DIMENSIONS + 1}, 0),
        ({"dims": "3"}, 0),
        ({}, 0),
        ({"dims": 64, "element_type": "bit"}, None),
        ({"type": "long"}, None),
    ],
)
def test_a_vector_says_how_many_floats_it_has(spec: dict[str, Any], dimensions: int | None) -> None:
    """A mapping has no number of dimensions before its first document."""
    mapped = {"properties": {"x": {"type": "dense_vector", **spec}}}
    assert view(mapped).columns["x"].dimensions == dimensions


def test_what_has_neither_index_nor_doc_values_takes_no_operator() -> None:
    """`exists` on it silently finds nothing, so 'is null' would find everything."""
    blind = {"searchable": False, "aggregatable": False}
    properties = {"x": {"type": "binary"}, "y": {"type": "long", "index": False, "doc_values": False}}
    found = view({"properties": properties}, caps={"x": {"binary": blind}, "y": {"long": blind}})
    assert found.columns["x"].operators == found.columns["y"].operators == ()
    assert (
        "neither index nor doc values" in found.columns["x"].reasons["filter"] or found.columns["x"].reasons["filter"]
    )


def test_index_false_follows_the_capabilities() -> None:
    """With doc values 8.x filters it, 7.17 does not: the server says which."""
    for searchable in (True, False):
        caps = {"n": {"long": {"searchable": searchable, "aggregatable": True}}}
        column = view({"properties": {"n": {"type": "long", "index": False}}}, caps=caps).columns["n"]
        assert (Op.EQ in column.operators) is searchable
        assert Op.NULL in column.operators


def test_a_field_the_capabilities_do_not_know_can_do_nothing() -> None:
    indices = {"a": {"mappings": {"properties": {"n": {"type": "long"}}}}}
    found = read("a", indices, {"indices": ["a"], "fields": {}})
    assert (found.columns["n"].operators, found.columns["n"].sortable) == ((), False)


# several indices


def test_E17_the_union_goes_leaf_by_leaf() -> None:
    found = view(
        {"properties": {"o": {"properties": {"a": {"type": "long"}}}}},
        {"properties": {"o": {"properties": {"b": {"type": "long"}}}, "c": {"type": "date"}}},
    )
    assert names(found) == ["c", "o.a", "o.b"]
    assert [found.fields[name].partial for name in ("c", "o.a", "o.b")] == [True, True, True]


def test_E17_conflicting_types_are_mixed_and_said() -> None:
    found = view({"properties": {"x": {"type": "long"}}}, {"properties": {"x": {"type": "keyword"}}})
    assert found.columns["x"].type == "mixed"
    assert found.columns["x"].operators == (Op.NULL, Op.NOT_NULL)
    assert not found.columns["x"].sortable
    assert [(note.code, note.column, note.reason) for note in found.notes] == [
        ("type-conflict", "x", "mapped as long, keyword")
    ]


def test_mixed_types_of_one_family_keep_their_operators() -> None:
    found = view({"properties": {"x": {"type": "long"}}}, {"properties": {"x": {"type": "double"}}})
    assert found.columns["x"].type == "mixed"
    assert Op.GT in found.columns["x"].operators


def test_a_keyword_subfield_counts_only_where_every_index_has_it() -> None:
    """`must_not term x.keyword` would let every document of the other index through."""
    found = view({"properties": {"x": TEXT}}, {"properties": {"x": {"type": "text"}}})
    assert found.fields["x"].keyword is None
    assert not found.columns["x"].sortable


@pytest.mark.parametrize(
    ("one", "other", "column"),
    [
        ({"n": {"type": "nested", "properties": {"a": {"type": "long"}}}},
         {"n": {"properties": {"a": {"type": "long"}}}}, "n.a"),
        ({"n": {"type": "long"}}, {"n": {"properties": {"a": {"type": "long"}}}}, "n"),
    ],
)  # fmt: skip
def test_nested_in_one_index_and_not_in_another_is_refused(
    wording: Wording, one: dict[str, Any], other: dict[str, Any], column: str
) -> None:
    found = view({"properties": one}, {"properties": other})
    assert (found.columns[column].operators, found.columns[column].sortable) == ((), False)
    wording(found.columns[column].reasons["filter"])
    [note] = [note for note in found.notes if note.column == column]
    assert (note.code, note.reason) == ("type-conflict", found.columns[column].reasons["filter"])


def test_an_object_literal_name_stays_literal() -> None:
    found = view({"subobjects": False, "properties": {"a.b": {"type": "long"}}})
    assert found.fields["a.b"].keys == ("a.b",)


def test_more_columns_than_a_page_holds_are_cut_and_said() -> None:
    described = view({"properties": {f"f{at}": {"type": "long"} for at in range(4100)}}).describe()
    assert len(described.columns) == 4096
    assert described.notes[-1].code == "columns-cut"


def test_the_time_to_describe_a_mapping_grows_with_its_fields_and_not_with_their_square() -> None:
    def seconds(fields: int) -> float:
        one = {"properties": {f"f{at}": (TEXT if at % 2 else {"type": "long"}) for at in range(fields)}}
        began = time.process_time()
        assert len(view(*[one] * 3).describe().columns) == fields + 3
        return time.process_time() - began

    assert min(seconds(1_000) for _ in range(3)) < 30 * min(seconds(100) for _ in range(3))


def test_without_the_mapping_columns_come_from_the_capabilities() -> None:
    can = {"searchable": True, "aggregatable": True}
    caps = {
        "_id": {"_id": can},
        "o": {"object": can},
        "o.t": {"text": can},
        "o.t.keyword": {"keyword": can},
        "n": {"nested": {"searchable": False, "aggregatable": False}},
        "n.a": {"long": can},
        "deep.er.x": {"ip": can},
    }
    found = read("a*", None, {"indices": ["a1"], "fields": caps})
    assert names(found) == ["deep.er.x", "n", "n.a", "o.t"]
    assert found.fields["o.t"].keyword == "o.t.keyword"
    assert found.fields["n.a"].nested == ("n",)
    assert [note.code for note in found.notes] == ["mapping-hidden"]


def test_every_operator_that_is_missing_has_a_reason() -> None:
    kinds = ["keyword", "text", "long", "date", "boolean", "ip", "version", "flattened", "nested", "geo_point", "join"]
    for column in view({"properties": {kind: {"type": kind} for kind in kinds}}).columns.values():
        for op in Op:
            assert op in column.operators or column.reasons.get("filter") or column.reasons.get(op), (column.name, op)


# what a driver has, and has not


def test_E44_E45_what_the_service_lacks_is_not_offered() -> None:
    """No truncate, no schema edits, no transactions, and no import of the driver's own.

    The host loads files through the hooks for changes, so the driver offers no hook, capability or field for it.
    """
    folder = Path(dragoman_elasticsearch.__file__).parent
    manifest = json.loads((folder / "driver.json").read_text())
    from dragoman_elasticsearch.driver import Driver

    assert hooks_of(Driver) == set(manifest["hooks"])
    offered = [*manifest["hooks"], *manifest["capabilities"], *(field["name"] for field in manifest["form"])]
    lacked = re.compile("truncate|import|load|schema|transaction|ssh")
    assert [name for name in offered if lacked.search(name)] == []
    assert {"plan_change", "apply_change"} <= set(manifest["hooks"])


def test_E1_E4_E5_E6_E7_the_form_asks_for_what_the_service_needs() -> None:
    folder = Path(dragoman_elasticsearch.__file__).parent
    form = {each["name"]: each for each in json.loads((folder / "driver.json").read_text())["form"]}
    assert "database" not in form
    assert form["host"]["default"] == "localhost"
    assert form["port"]["default"] == 9200
    labels = [choice["label"] for choice in form["auth_method"]["choices"]]
    beyond = ["Token (bearer)", "OAuth Client Credentials"]  # last, so that the numbers people type stay
    assert labels == ["Username & Password", "API Key", "None", *beyond]
    assert form["api_key"]["visible_if"] == {"auth_method": ["api-key"]}
    assert form["skip_tls_verification"]["advanced"]
    assert form["ssl_mode"]["default"] == "disabled"


# on servers


class ObjectRules:
    @pytest.mark.timeout(1_500)  # a real server takes a while to make indices
    @pytest.mark.parametrize("many", [12, pytest.param(320, marks=pytest.mark.one_engine)])
    async def test_E15_a_long_list_comes_in_parts_each_with_its_rows_and_what_has_none_is_said(
        self, es: Rig, many: int
    ) -> None:
        """One index is hidden, one closed, one has nested documents; an alias is no object."""
        prefix = f"t{uuid4().hex[:8]}-many-"
        names = [f"{prefix}{number:03}" for number in range(many)]
        nested = {"properties": {"n": {"type": "nested", "properties": {"a": {"type": "long"}}}}}

        async def create(name: str) -> None:
            settings = {"number_of_shards": 1, "number_of_replicas": 0, "hidden": name == names[5]}
            await es.call("PUT", f"/{name}", {"settings": settings, "mappings": nested})

        await send_all(names, create, at_once=2)  # a server changes the state of its cluster one by one
        es.made += [",".join(names[start : start + 50]) for start in range(0, many, 50)]
        await es.load(names[0], [{"n": [{"a": 1}, {"a": 2}]}, {"n": []}])
        await es.load(names[-1], [{"n": [{"a": 1}]}])
        await es.call("POST", f"/{names[3]}/_close")
        await es.call("POST", "/_aliases", {"actions": [{"add": {"index": names[1], "alias": f"{prefix}alias"}}]})
        listed = [name for name in names if name != names[5]]
        rows = dict.fromkeys(listed, 0) | {names[0]: 2, names[-1]: 1, names[3]: None}

        request = ObjectsRequest(contains=prefix.upper(), limit=many // 4)
        parts = [await es.driver.list_objects(request)]
        while parts[-1].next is not None:
            parts.append(await es.driver.list_objects(replace(request, cursor=parts[-1].next)))
        assert [entry.name for part in parts for entry in part] == listed
        assert {entry.name: entry.rows for part in parts for entry in part} == rows
        assert {part.total for part in parts} == {len(listed)}
        assert all((entry.size or 0) > 0 for part in parts for entry in part if entry.name != names[3])
        assert [note.code for part in parts for note in part.notes] == ["rows-unknown"]
        [beyond] = await es.driver.list_objects(ObjectsRequest(contains=names[-1], limit=1))
        assert (beyond.name, beyond.rows) == (names[-1], 1)
        whole = await es.driver.list_objects(ObjectsRequest())
        assert {entry.name: entry.rows for entry in whole if entry.name.startswith(prefix)} == rows
        assert len(whole) == whole.total
        only_names = await es.driver.list_objects(ObjectsRequest(counts=False))
        assert [entry.name for entry in only_names] == [entry.name for entry in whole]

    async def test_E15_concrete_indices_are_listed_and_dotted_names_hidden(self, es: Rig) -> None:
        """E1: the cluster's indices are the objects; there is nothing between them."""
        first = await es.index({"n": {"type": "long"}}, [{"n": 1}, {"n": 2}], name="b")
        second = await es.index({"n": {"type": "long"}}, name="a")
        hidden = f".{first}"
        await es.call("PUT", f"/{hidden}", {"settings": {"number_of_replicas": 0}})
        es.made.append(hidden)
        listed = {each.name: each for each in await es.driver.list_objects(ObjectsRequest())}
        assert hidden not in listed
        assert all(not name.startswith(".") for name in listed)
        assert (listed[first].rows, listed[second].rows) == (2, 0)
        assert (listed[first].size or 0) > 0
        assert list(listed) == sorted(listed)

    async def test_rows_are_counted_without_the_hidden_documents_of_nested_arrays(self, es: Rig) -> None:
        properties = {"n": {"type": "nested", "properties": {"a": {"type": "long"}}}}
        name = await es.index(properties, [{"n": [{"a": 1}, {"a": 2}, {"a": 3}]}])
        assert {each.name: each.rows for each in await es.driver.list_objects(ObjectsRequest())}[name] == 1

    async def test_a_closed_index_is_listed_without_numbers(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}])
        await es.call("POST", f"/{name}/_close")
        found = {each.name: each for each in await es.driver.list_objects(ObjectsRequest())}[name]
        assert found.rows is None
        if es.version >= (7, 11):
            with pytest.raises(QueryError, match="closed"):
                await es.driver.describe_object(name)
        else:
            with pytest.raises(QueryError, match="closed"):
                await es.page(name)

    async def test_E16_aliases_are_browsable_and_not_listed(self, es: Rig) -> None:
        one = await es.index({"a": {"type": "long"}}, [{"a": 1}])
        two = await es.index({"b": {"type": "long"}}, [{"b": 2}])
        alias = f"{one}-both"
        for name in (one, two):
            await es.call("POST", "/_aliases", {"actions": [{"add": {"index": name, "alias": alias}}]})
        assert alias not in [each.name for each in await es.driver.list_objects(ObjectsRequest())]
        described = await es.driver.describe_object(alias)
        assert [column.name for column in described.columns][3:] == ["a", "b"]
        page = await es.page(alias)
        assert page.total == 2
        assert {key.object for key in page.keys} == {one, two}, "a row knows its concrete index, never the alias"

    async def test_E17_a_pattern_shows_the_union(self, es: Rig) -> None:
        one = await es.index({"a": {"type": "long"}, "x": {"type": "long"}}, [{"a": 1, "x": 1}])
        await es.call("PUT", f"/{one}-2", {"mappings": {"properties": {"x": {"type": "keyword"}}}})
        es.made.append(f"{one}-2")
        described = await es.driver.describe_object(f"{one}*")
        assert [(column.name, column.type) for column in described.columns[3:]] == [("a", "long"), ("x", "mixed")]
        assert [note.code for note in described.notes] == ["type-conflict"]

    @pytest.mark.parametrize("name", ["nosuch", "nosuch*"])
    async def test_a_missing_name_is_told(self, es: Rig, name: str) -> None:
        with pytest.raises(ObjectNotFoundError) as caught:
            await es.driver.describe_object(name)
        assert [remedy.kind for remedy in caught.value.remedies] == [RemedyKind.LIST_OBJECTS]

    @pytest.mark.parametrize("name", ["", "_search", "_nodes"])
    async def test_a_name_of_an_api_is_no_object(self, es: Rig, name: str) -> None:
        before = len(es.log)
        with pytest.raises(QueryError, match="not the name of an index"):
            await es.driver.describe_object(name)
        assert len(es.log) == before

    async def test_the_structure_is_the_servers_own_mapping(self, es: Rig) -> None:
        name = await es.index({"a": {"type": "long"}})
        described = await es.driver.describe_object(name)
        assert json.loads(described.structure)[name]["mappings"]["properties"] == {"a": {"type": "long"}}
        assert "\n  " in described.structure


class TestObjectsOnFake(ObjectRules, OnFake):
    pass


class TestObjectsOnServer(ObjectRules, OnServer):
    async def test_a_runtime_field_without_a_script_shows_and_changes_what_is_stored(self, es: Rig) -> None:
        if es.version < (7, 12):
            pytest.skip("runtime fields come with 7.11")
        name = await es.index(mapping={"dynamic": "runtime"}, documents=[{"a": 1, "o": {"b": "x"}}, {"a": "text"}])
        page = await es.page(name, columns=["_id", "a", "o.b"])
        assert sorted(map(tuple, page.cells)) == [("0", 1, "x"), ("1", "text", MISSING)]
        assert [note.code for note in page.notes] == []
        keys = {row[0]: key for row, key in zip(page.cells, page.keys, strict=True)}
        assert (await es.apply(Update(keys["0"], {"o.b": "new"})))[0].status == "applied"
        assert json.loads(await es.source(name, "0")) == {"a": 1, "o": {"b": "new"}}


async def test_a_server_that_answers_no_json_is_told() -> None:
    async with on_fake("8.19.21") as es:
        assert es.fake is not None
        es.fake.misbehave("garbage", on="/_cat")
        with pytest.raises(QueryError, match="JSON"):
            await es.driver.list_objects(ObjectsRequest())


def test_an_index_that_keeps_an_object_unmapped_stores_its_fields_all_the_same() -> None:
    one = {"properties": {"o": {"properties": {"a": {"type": "keyword"}}}}}
    for other, stored in (({"type": "object", "enabled": False}, True), ({"type": "object"}, False)):
        found = view(one, {"properties": {"o": other}}).fields["o.a"]
        assert ("dynamic" in [gap.name for gap in found.gaps]) is stored


def test_every_index_that_the_capabilities_name_has_the_type_where_mappings_are_hidden() -> None:
    caps = {
        "x": {"long": {"indices": ["a"]}, "keyword": {"indices": ["b", "c"]}},
        "y": {"long": {"indices": ["a"]}, "ip": {"indices": ["b"]}},
    }
    found = read("x", None, {"indices": ["a", "b", "c"], "fields": caps})
    assert (found.fields["x"].partial, found.fields["y"].partial) == (False, True)


def test_a_field_without_capabilities_is_an_object_where_mappings_are_hidden() -> None:
    found = read("x", None, {"indices": ["a"], "fields": {"o": {}, "o.k": {"keyword": {}}}})
    assert {name: each.types for name, each in found.fields.items() if name[0] == "o"}["o.k"] == ("keyword",)
    assert found.hidden


def test_settings_that_may_not_be_read_hide_what_the_index_changes() -> None:
    mapping_ = {"a": {"mappings": {"properties": {"k": {"type": "keyword"}}}}}
    caps = {"indices": ["a"], "fields": {"k": {"keyword": {"searchable": True, "aggregatable": True}}}}
    refused = reply({"error": {"type": "security_exception", "reason": "no"}, "status": 403}, 403)
    found = Answers(reply(mapping_), reply(caps), refused).run(objects.view("a"))
    assert [gap.name for gap in found.fields["k"].gaps] == ["hidden"]
    broken = reply({"error": {"type": "x_exception", "reason": "no"}, "status": 400}, 400)
    with pytest.raises(QueryError):
        Answers(reply(mapping_), reply(caps), broken).run(objects.view("a"))


def test_indices_that_may_be_read_are_listed_where_listing_all_is_refused() -> None:
    counted = {"hits": {"total": {"value": 3, "relation": "eq"}, "hits": []}, "status": 200}
    answers = Answers(
        reply("", 403), reply({"indices": ["b", ".hidden", "a"], "fields": {}}), reply({"responses": [counted] * 2})
    )
    found = answers.run(objects.list_objects())
    assert [(each.name, each.rows, each.size) for each in found.objects] == [("a", 3, None), ("b", 3, None)]
    assert [note.code for note in found.notes] == ["objects-hidden"]
    assert (answers.asked[1].method, answers.asked[1].path) == ("GET", "/*/_field_caps?fields=_id")


def test_a_name_that_stands_for_other_indices_than_before_is_told_by_their_ids() -> None:
    def asked(**ids: str) -> str:
        settings = {index: {"settings": {"index.uuid": id_}} for index, id_ in ids.items()}
        return Answers(reply(settings)).run(objects.identity("x"))

    assert asked(a="1", b="2") == asked(b="2", a="1") != ""
    assert len({asked(a="1"), asked(a="2"), asked(b="1"), asked(a="1", b="2")}) == 4
    assert Answers(reply({}, 403)).run(objects.identity("x")) == ""


async def test_the_requests_for_columns_are_sent_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits here until all of them are under way; one after another, the first would wait in vain."""
    async with on_fake("8.19.21") as es:
        name = await es.index({"t": {"type": "keyword"}})
        http, waiting, all_sent = es.driver._exchanges.http, set[str](), anyio.Event()
        request = http.request

        async def wait_for_all(method: str, path: str, **more: Any) -> Any:
            waiting.add(path.partition("?")[0].split("/")[2])
            if waiting == {"_mapping", "_field_caps", "_settings"}:
                all_sent.set()
            with anyio.fail_after(5):
                await all_sent.wait()
            return await request(method, path, **more)

        monkeypatch.setattr(http, "request", wait_for_all)
        found = await es.driver.describe_object(name)
        assert [column.name for column in found.columns] == ["_id", "_index", "_score", "t"]
