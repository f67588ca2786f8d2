"""Several indices behind one name: each of them counts, whichever comes first, and however few of them differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.test_objects import LONG, TEXT, names, read, view
from drivers.replies import Answers, reply

from dragoman_api import Operator as Op
from dragoman_api.errors import DragomanError
from dragoman_querydsl import objects

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman_querydsl.columns.grid_columns import View

SCRIPT = {"type": "long", "script": {"source": "emit(1)"}}
DATE = {"type": "date"}
INNER = {"properties": {"a": LONG}}
VECTOR = {"type": "dense_vector"}
ALIAS = {"type": "alias", "path": "x"}
OTHER = {"properties": {"other": LONG}}
"""A mapping that lacks what the others have."""


def mapped(**properties: Any) -> dict[str, Any]:
    return {"properties": properties}


def causes(found: View, name: str) -> dict[str, tuple[Any, ...]]:
    return {gap.name: tuple(sorted(gap.details, key=str)) for gap in found.fields[name].gaps}


UNIONS: dict[str, tuple[list[dict[str, Any]], Callable[[View], Any], Any]] = {
    "keyword of one": (
        [mapped(x=TEXT), mapped(x={"type": "text"})],
        lambda found: (found.fields["x"].keyword, found.columns["x"].sortable),
        (None, False),
    ),
    "another subfield of that name": (
        [mapped(x=TEXT), mapped(x={"type": "text", "fields": {"keyword": LONG}})],
        lambda found: (found.fields["x"].keyword, found.columns["x"].sortable),
        (None, False),
    ),
    "keyword of all": (
        [mapped(x=TEXT), mapped(x=TEXT, y=LONG)],
        lambda found: found.fields["x"].keyword,
        "x.keyword",
    ),
    "three types": (
        [mapped(x=LONG), mapped(x={"type": "keyword"}), mapped(x={"type": "ip"})],
        lambda found: ({*found.fields["x"].types}, found.columns["x"].operators, len(found.notes)),
        ({"long", "keyword", "ip"}, (Op.NULL, Op.NOT_NULL), 1),
    ),
    "formats": (
        [mapped(x=DATE | {"format": each}) for each in ("yyyy", "dd.MM.yyyy", "epoch_second||yyyy")],
        lambda found: (sorted(found.fields["x"].formats), causes(found, "x")["format"]),
        (["dd.MM.yyyy", "epoch_second||yyyy", "yyyy"], ("dd.MM.yyyy", "epoch_second||yyyy", "yyyy")),
    ),
    "limits": (
        [mapped(x={"type": "keyword", "ignore_above": each}) for each in (3, 9, 5)],
        lambda found: causes(found, "x")["ignore_above"],
        (3, 5, 9),
    ),
    "limits of subfields": (
        [
            mapped(x={"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": each}}})
            for each in (3, 9)
        ],
        lambda found: causes(found, "x")["ignore_above"],
        (3, 9),
    ),
    "nulls of one": (
        [mapped(x={"type": "keyword", "null_value": "none"}), mapped(x={"type": "keyword"})],
        lambda found: causes(found, "x"),
        {"null_value": ("none",)},
    ),
    "copies of two fields in one": (
        [
            mapped(x=LONG, y={"type": "keyword", "copy_to": ["z", "x"]}, z=LONG, w={"type": "ip", "copy_to": "x"}),
            mapped(x=LONG),
        ],
        lambda found: (causes(found, "x")["copy_to"], causes(found, "z")["copy_to"]),
        (("y, w",), ("y",)),
    ),
    "malformed in one, coerced in one": (
        [
            mapped(x=LONG | {"ignore_malformed": "true"}),
            mapped(x=LONG | {"coerce": "false"}),
            mapped(x=LONG | {"coerce": False}),
        ],
        lambda found: causes(found, "x"),
        {"ignore_malformed": (True,), "coerce": (True,)},
    ),
    "coerced nowhere": (
        [mapped(x=LONG | {"coerce": "false"}), mapped(x=LONG | {"coerce": False})],
        lambda found: causes(found, "x"),
        {},
    ),
    "dimensions": (
        [mapped(x=VECTOR | {"dims": 3}), mapped(x=VECTOR | {"dims": 4})],
        lambda found: found.columns["x"].dimensions,
        0,
    ),
    "dimensions of one": (
        [mapped(x=VECTOR | {"dims": 3}), mapped(x=VECTOR)],
        lambda found: found.columns["x"].dimensions,
        0,
    ),
    "a vector of bits in one": (
        [mapped(x=VECTOR | {"dims": 8}), mapped(x=VECTOR | {"dims": 8, "element_type": "bit"})],
        lambda found: found.columns["x"].dimensions,
        None,
    ),
    "nested in one": (
        [mapped(x=INNER | {"type": "nested"}), mapped(x=INNER)],
        lambda found: found.columns["x.a"].reasons["filter"],
        "nested or computed in one index, and not in another",
    ),
    "computed in one": (
        [mapped(x=LONG), {"runtime": {"x": SCRIPT}}],
        lambda found: found.columns["x"].reasons["filter"],
        "nested or computed in one index, and not in another",
    ),
    "an object below an object in one": (
        [mapped(x={"properties": {"y": {"properties": {"z": LONG}}}}), mapped(x={"properties": {"y": LONG}})],
        lambda found: ([name for name, each in found.fields.items() if each.conflict]),
        ["x.y"],
    ),
    "runtime beside an object": (
        [mapped(x=LONG), {"runtime": {"x.y": {"type": "long"}}}],
        lambda found: [name for name, each in found.fields.items() if each.conflict],
        [],
    ),
    "a field of one": (
        [mapped(x=LONG), OTHER],
        lambda found: (found.fields["x"].partial, causes(found, "x")),
        (True, {"coerce": (True,)}),
    ),
    "a field that one of two others stores unmapped": (
        [mapped(x=LONG), OTHER, OTHER | {"dynamic": "false"}],
        lambda found: causes(found, "x"),
        {"coerce": (True,), "dynamic": (True,)},
    ),
    "below an object that takes what its mapping refuses": (
        [mapped(x=INNER), {"dynamic": False, "properties": {"x": {"dynamic": "strict", "properties": {"b": LONG}}}}],
        lambda found: causes(found, "x.a"),
        {"coerce": (True,)},
    ),
    "below an object of a mapping that takes none": (
        [mapped(x=INNER), {"dynamic": False, "properties": {"x": {"properties": {"b": LONG}}}}],
        lambda found: causes(found, "x.a"),
        {"coerce": (True,), "dynamic": (True,)},
    ),
    "below an object that is off": (
        [mapped(x={"properties": {"y": INNER}}), mapped(x={"type": "object", "enabled": "false"})],
        lambda found: causes(found, "x.y.a"),
        {"coerce": (True,), "dynamic": (True,)},
    ),
    "alias in two of three": (
        [mapped(x=LONG, al=ALIAS), mapped(x=LONG, al=ALIAS, y=LONG), mapped(x=LONG)],
        lambda found: (bool(found.fields["al"].within), "the alias" in found.columns["al"].reasons["sort"]),
        (True, True),
    ),
    "alias in all": (
        [mapped(x=LONG, al=ALIAS), mapped(x=LONG, al=ALIAS, y=LONG)],
        lambda found: (found.fields["al"].within, found.fields["al"].field, found.columns["al"].sortable),
        ((), "x", True),
    ),
    "alias of two fields": (
        [mapped(x=LONG, y=LONG, al=ALIAS), mapped(x=LONG, y=LONG, al=ALIAS | {"path": "y"})],
        lambda found: (found.columns["al"].type, found.columns["al"].sortable),
        ("alias", False),
    ),
    "array of one": (
        [mapped(x=INNER | {"type": "nested"}), OTHER],
        lambda found: (found.fields["x.a"].arrayless, found.columns["x.a"].sortable),
        (True, False),
    ),
    "inner array of one": (
        [
            mapped(x={"type": "nested", "properties": {"y": INNER | {"type": "nested"}}}),
            mapped(x={"type": "nested", "properties": {"z": LONG}}),
        ],
        lambda found: (found.fields["x.y.a"].arrayless, found.fields["x.z"].arrayless),
        (True, False),
    ),
    "left out in one": (
        [mapped(x=LONG) | {"_source": {"excludes": ["x"]}}, mapped(x=LONG)],
        lambda found: (found.pruned, found.excluded, found.columns["x"].path),
        ("_source.excludes: x", {"x": "_source.excludes: x"}, ("_source", "x")),
    ),
    "left out in each by other words": (
        [
            mapped(x=LONG, y=LONG) | {"_source": {"excludes": ["x"]}},
            mapped(x=LONG, y=LONG) | {"_source": {"includes": ["y"]}},
        ],
        lambda found: (sorted(found.excluded["x"].split("; ")), "y" in found.excluded, found.columns["x"].path),
        (["_source.excludes: x", "_source.includes: y"], False, ()),
    ),
    "documents of one kept": (
        [mapped(x=LONG) | {"_source": {"enabled": False}}, mapped(x=LONG)],
        lambda found: found.columns["x"].path,
        ("_source", "x"),
    ),
    "documents kept by none": (
        [mapped(x=LONG) | {"_source": {"enabled": False}}, mapped(x=LONG) | {"_source": {"mode": "disabled"}}],
        lambda found: (found.columns["x"].path, "export" in found.columns["x"].reasons),
        ((), False),
    ),
    "rebuilt in one": (
        [mapped(x=LONG) | {"_source": {"mode": "synthetic"}}, mapped(x=LONG)],
        lambda found: (found.synthetic, [note.code for note in found.document_notes()]),
        (True, ["documents-rebuilt"]),
    ),
    "routing of one": (
        [mapped(x=LONG) | {"_routing": {"required": True}}, mapped(x=LONG)],
        lambda found: found.routed,
        False,
    ),
    "routing of all": (
        [mapped(x=LONG) | {"_routing": {"required": True}}, mapped(x=LONG) | {"_routing": {"required": "true"}}],
        lambda found: found.routed,
        True,
    ),
}


@pytest.mark.parametrize("case", UNIONS)
def test_E17_what_is_said_of_a_union_holds_whichever_index_comes_first(case: str) -> None:
    """Each index counts, wherever it stands, and one more that is alike changes nothing."""
    mappings, told, expected = UNIONS[case]
    for order in (mappings, mappings[::-1], [*mappings, mappings[0]], [*mappings[1:], *mappings]):
        assert told(view(*order)) == expected


def test_E17_an_alias_counts_for_every_index_of_each_mapping_that_has_it() -> None:
    with_alias, without = mapped(x=LONG, al=ALIAS), mapped(x=LONG)
    found = view(with_alias, without, with_alias, with_alias | {"dynamic": "strict"})
    assert {*found.fields["al"].within} == {"a", "c", "d"}


@pytest.mark.parametrize(
    ("capabilities", "filters", "sorts", "null"),
    [
        ([(True, True), (True, True)], True, True, True),
        ([(True, True), (False, True)], False, True, True),
        ([(True, False), (True, True)], True, False, True),
        ([(False, True), (True, False)], False, False, False),
        ([(True, False)], True, False, True),
        ([(False, True)], False, True, True),
        ([(False, False)], False, False, False),
    ],
)
def test_a_column_can_do_what_it_can_in_every_index(
    capabilities: list[tuple[bool, bool]], *, filters: bool, sorts: bool, null: bool
) -> None:
    kinds = ("long", "integer")
    caps = {
        kind: {"searchable": searchable, "aggregatable": aggregatable}
        for kind, (searchable, aggregatable) in zip(kinds, capabilities, strict=False)
    }
    column = view(*(mapped(x={"type": kind}) for kind in caps), caps={"x": caps}).columns["x"]
    assert (Op.EQ in column.operators, column.sortable, Op.NULL in column.operators) == (filters, sorts, null)


SETTINGS = {
    "ignore_above": ({"index.mapping.ignore_above": "3"}, {"type": "keyword"}, {"ignore_above": (3,)}),
    "of a wildcard": ({"index.mapping.ignore_above": "3"}, {"type": "wildcard"}, {"ignore_above": (3,)}),
    "ignore_malformed": (
        {"index.mapping.ignore_malformed": "true"},
        {"type": "boolean"},
        {"ignore_malformed": (True,), "boolean": ("boolean",)},
    ),
    "coerce": ({"index.mapping.coerce": "false"}, LONG, {"coerce": (True,)}),
    "mode": ({"index.mode": "logsdb"}, {"type": "keyword"}, {"ignore_above": (8191,)}),
    "mode, numbers": (
        {"index.mode": "logsdb"},
        LONG,
        {"ignore_malformed": (True,), "coerce": (True,)},
    ),
    "mode, and a setting": (
        {"index.mode": "logsdb", "index.mapping.ignore_above": "9"},
        {"type": "keyword"},
        {"ignore_above": (9,)},
    ),
    "the mapping's own": (
        {"index.mapping.ignore_above": "3", "index.mapping.coerce": "true"},
        LONG | {"coerce": False},
        {},
    ),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_of_one_of_two_indices_with_one_mapping_count(case: str) -> None:
    """The mappings are alike to the byte; the setting that changes what they mean is not."""
    settings, spec, expected = SETTINGS[case]
    mappings, answer = {"mappings": mapped(x=spec)}, {"indices": ["a", "b"], "fields": {"x": {spec["type"]: {}}}}
    for first, second in ((settings, {}), ({}, settings)):
        given = {"a": {"settings": first}, "b": {"settings": second}}
        script = Answers(reply({"a": mappings, "b": mappings}), reply(answer), reply(given))
        union = script.run(objects.view("a,b"))
        assert causes(union, "x") == expected
        rebuilt = ["documents-rebuilt"] if settings.get("index.mode") == "logsdb" else []
        assert [note.code for note in union.rebuilt_notes()] == rebuilt


def test_a_mapping_that_keeps_documents_wins_over_the_mode_of_its_index() -> None:
    mappings = reply({"a": {"mappings": mapped(x=LONG) | {"_source": {"mode": "stored"}}}})
    fields = reply({"indices": ["a"], "fields": {"x": {"long": {}}}})
    script = Answers(mappings, fields, reply({"a": {"settings": {"index.mode": "logsdb"}}}))
    assert script.run(objects.view("a")).rebuilt_notes() == []


@pytest.mark.parametrize(
    ("one", "two", "apart"),
    [
        ({}, {"settings": "true"}, ("v", "w")),
        ({"settings": "true"}, {}, ("v", "w")),
        ({"defaults": "true"}, {"settings": "false"}, ("v", "w")),
        ({"settings": "false", "defaults": "true"}, {"defaults": "false"}, ()),
        ({"defaults": True}, {}, ("v", "w")),
        ({}, {}, ()),
    ],
)
def test_vectors_are_apart_where_one_of_the_indices_keeps_them_so(
    one: dict[str, Any], two: dict[str, Any], apart: tuple[str, ...]
) -> None:
    """By its own setting or, where it has none, by its default; of the indexed ones."""
    properties = {
        "v": VECTOR | {"dims": 3}, "w": {"type": "sparse_vector"}, "off": VECTOR | {"dims": 3, "index": False},
        "text_off": VECTOR | {"dims": 3, "index": "false"}, "n": LONG,
    }  # fmt: skip
    name = "index.mapping.exclude_source_vectors"
    given = [{where: {name: value} for where, value in each.items()} for each in (one, two)]
    mappings = reply({index: {"mappings": mapped(**properties)} for index in "ab"})
    caps = reply({"indices": ["a", "b"], "fields": {}})
    found = Answers(mappings, caps, reply(dict(zip("ab", given, strict=True)))).run(objects.view("a,b"))
    assert found.vectors_apart == apart
    assert [note.code for note in found.document_notes()] == ["documents-rebuilt"] * bool(apart)


@pytest.mark.parametrize(
    ("source", "left_out"),
    [
        ({"excludes": ["o"]}, {"o.a", "o.p.b"}),
        ({"excludes": ["o.p"]}, {"o.p.b"}),
        ({"excludes": ["*.a", "k"]}, {"o.a", "k"}),
        ({"includes": ["o"]}, {"k"}),
        ({"includes": ["k", "o.p.*"]}, {"o.a"}),
        ({"includes": ["o"], "excludes": ["o.p"]}, {"o.p.b", "k"}),
        ({"includes": [], "excludes": []}, set()),
    ],
)
def test_what_documents_leave_out_is_told_by_patterns_of_a_field_and_of_what_holds_it(
    source: dict[str, list[str]], left_out: set[str]
) -> None:
    inner = {"a": LONG, "p": {"properties": {"b": LONG}}}
    found = view(mapped(o={"properties": inner}, k=LONG) | {"_source": source, "runtime": {"r": SCRIPT}})
    assert {*found.excluded} == left_out
    assert [note.code for note in found.document_notes()] == ["columns-left-out"] * bool(left_out)
    assert {name for name in names(found) if not found.columns[name].path} == left_out | {"r"}
    assert {name for name in names(found) if "export" in found.columns[name].reasons} == left_out | {"r"}


def test_a_revision_changes_with_every_index_and_every_capability() -> None:
    """The mapping of the second of two; where mappings are hidden, one flag of one type of one field."""
    plain = mapped(x=LONG)
    unions = [
        view(plain),
        view(plain, plain),
        view(plain, mapped(x={"type": "integer"})),
        view(mapped(x={"type": "integer"}), plain),
    ]
    can = {"searchable": True, "aggregatable": True}
    fields: list[dict[str, Any]] = [
        {"x": {"long": can}, "y": {"long": can}},
        {"x": {"long": can}, "y": {"long": can | {"aggregatable": False}}},
        {"x": {"long": can}, "y": {"long": can | {"searchable": False}}},
        {"x": {"long": can}, "y": {"integer": can}},
        {"x": {"long": can}, "y": {"long": can | {"indices": ["a"]}, "integer": can | {"indices": ["b"]}}},
        {"x": {"long": can}, "y": {"long": can | {"indices": ["b"]}, "integer": can | {"indices": ["a"]}}},
    ]
    hidden = [read("x", None, {"indices": ["a", "b"], "fields": each}) for each in fields]
    hidden.append(read("x", None, {"indices": ["a", "c"], "fields": fields[0]}))
    assert len({each.revision for each in (*unions, *hidden)}) == len(unions) + len(hidden)
    again = [read("x", None, {"indices": ["a", "b"], "fields": fields[0]}), view(plain)]
    assert [each.revision for each in again] == [hidden[0].revision, unions[0].revision]


@pytest.mark.parametrize("status", [403, 404, 401, 500, 503, 400])
@pytest.mark.parametrize("hidden", [True, False])
def test_only_a_refusal_or_a_missing_name_says_that_an_object_is_gone(status: int, *, hidden: bool) -> None:
    """Any other failure is one, else a busy server would make a view stale."""
    caps = {"indices": ["a"], "fields": {"x": {"long": {}}}}
    found = read("a", None if hidden else {"a": {"mappings": mapped(x=LONG)}}, caps)
    answers = [Answers(reply("", status)) for _ in range(2)]
    exchanges = (objects.current_revision(found), objects.identity("a"))
    for script, exchange in zip(answers, exchanges, strict=True):
        if status in (403, 404):
            assert script.run(exchange) == ""
        else:
            with pytest.raises(DragomanError):
                script.run(exchange)
    good = Answers(reply(caps if hidden else {"a": {"mappings": mapped(x=LONG)}}))
    assert good.run(objects.current_revision(found)) == found.revision


@pytest.mark.parametrize(
    ("mapping_status", "capabilities_status", "settings_status", "told"),
    [
        (200, 200, 200, []),
        (403, 200, 200, ["hidden"]),
        (200, 200, 403, ["hidden"]),
        (403, 403, 200, None),
        (401, 200, 200, None),
        (500, 200, 200, None),
        (404, 200, 200, None),
        (200, 403, 200, None),
        (200, 503, 200, None),
        (200, 200, 401, None),
        (200, 200, 404, None),
        (200, 200, 500, None),
    ],
)
def test_only_a_403_hides_a_part_of_a_view_and_any_other_failure_is_one(
    mapping_status: int, capabilities_status: int, settings_status: int, told: list[str] | None
) -> None:
    answers = [
        reply({"a": {"mappings": mapped(x={"type": "keyword"})}} if mapping_status == 200 else "", mapping_status),
        reply(
            {"indices": ["a"], "fields": {"x": {"keyword": {}}}} if capabilities_status == 200 else "",
            capabilities_status,
        ),
        reply({"a": {}} if settings_status == 200 else "", settings_status),
    ]
    script = Answers(*answers)
    if told is None:
        with pytest.raises(DragomanError):
            script.run(objects.view("a"))
        assert script.replies == []
    else:
        assert [*causes(script.run(objects.view("a")), "x")] == told
