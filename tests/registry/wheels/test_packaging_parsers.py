"""Text of strangers about versions is measured before any parser sees it, and what is too much is one kind of error."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING

import packaging.markers
import packaging.requirements
import packaging.specifiers
import packaging.tags
import packaging.utils
import packaging.version
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_registry.validation import decode, load
from dragoman_registry.wheels.packaging_parsers import (
    MAX_REQUIREMENT,
    Unreadable,
    holds,
    is_licence,
    is_wheel_of,
    needed,
    parse_headers,
    parse_metadata,
    parse_range,
    parse_requirement,
    parse_tags,
    parse_version,
    parse_wheel_name,
    project_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = (
    "demo", "two-words", "Demo", "two_words", "two__words", "1.0.0", "1.0", "1.0.0rc1", "1.0.00", "01.0", "1.0+x",
    "py3-none-any", "py2.py3-none-any", "1-py3-none-any", "py3-none", "cp311-abi3-manylinux_2_17_x86_64", "py3-none-",
)  # fmt: skip
PARSERS = [parse_version, parse_range, parse_requirement, parse_tags, parse_wheel_name]

MUCH = {
    "5,000 digits": "9" * 5_000,
    "200,000 clauses": ",".join(["!=1"] * 200_000),
    "100,000 parentheses": "x; " + "(" * 100_000,
    "a marker of 34 kB": "x; " + 'extra == "x" and ' * 2_000 + 'extra == "x" or python_version > "3"',
    "a wheel of 5,000 digits": f"x-{'9' * 5_000}-py3-none-any.whl",
    "a megabyte of spaces": " " * 1_000_000,
}


TAGS = f"{'.'.join('a' * 60)}-{'.'.join('b' * 50)}-c"


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *(pytest.param(parse, text, id=f"{parse.__name__}-{name}") for name, text in MUCH.items() for parse in PARSERS),
        pytest.param(parse_tags, TAGS, id="tags that multiply out"),
        pytest.param(parse_wheel_name, f"x-1-{TAGS}.whl", id="a name whose tags multiply out"),
    ],
)
def test_what_is_too_much_is_refused_before_a_parser_sees_it(
    parse: Callable[[str], object], text: str, monkeypatch: pytest.MonkeyPatch
):
    def never(*_: object, **__: object) -> None:
        raise AssertionError("it came as far as packaging")

    for module, names in {
        packaging.version: ["Version"],
        packaging.specifiers: ["SpecifierSet"],
        packaging.requirements: ["Requirement"],
        packaging.tags: ["parse_tag"],
        packaging.utils: ["parse_wheel_filename"],
    }.items():
        for name in names:
            monkeypatch.setattr(module, name, never)
    with pytest.raises(Unreadable) as refused:
        parse(text)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("parse", PARSERS)
@given(text=st.text(st.sampled_from("a1.-_ ()[],;=<>!~*\"'@+|&#\n\\\u0661"), max_size=60))
def test_any_text_is_read_or_unreadable(parse: Callable[[str], object], text: str):
    with suppress(Unreadable):
        parse(text)


@pytest.mark.parametrize("text", ["===soon", ">=1,===1.0", "~=1"])
def test_a_range_that_cannot_be_compared_with_versions_is_none(text: str):
    with pytest.raises(Unreadable, match=re.escape(repr(text))):
        parse_range(text)


def test_the_version_in_the_name_of_a_wheel_can_be_read_by_itself():
    with pytest.raises(Unreadable):
        parse_wheel_name(f"x-1+{'a' * 200}-py3-none-any.whl")


def test_ordinary_texts_are_read():
    assert str(parse_version("1.0rc1")) == "1.0rc1"
    assert holds(">=3.11,<4,!=3.12.*", "3.11.9")
    assert holds("", "5.0b1")
    assert parse_requirement('x[a,b]~=1.0; os_name == "nt"').extras == {"a", "b"}
    assert parse_tags("py2.py3-none-any") == {"py2-none-any", "py3-none-any"}
    name = parse_wheel_name("Tiny_Lib-1.0-py3-none-any.whl")
    assert (name.project, name.version, name.tags, name.canonical) == ("tiny-lib", "1.0", {"py3-none-any"}, False)
    assert project_name("Tiny._Lib") == "tiny-lib"
    assert is_licence("MIT OR (Apache-2.0 AND BSD-3-Clause)")
    assert not is_licence("(" * 100_000 + "MIT" + ")" * 100_000)


@pytest.mark.parametrize(
    ("marker", "expected"),
    [
        ('extra == "x"', False),
        ("'x' == extra", False),
        ('extra == "x" or extra == "y"', False),
        ('extra == "x" and python_version > "3"', False),
        ('(extra == "x" or os_name == "nt") and extra == "y"', False),
        ('extra == "x" or python_version > "3"', True),
        ('extra == "x" and extra == "y" or os_name == "nt"', True),
        ('os_name == "nt" and (extra == "x" or sys_platform == "win32")', True),
        ('extra != "x"', True),
        ('extra == ""', True),
        ('extra in "x"', True),
        ('os_name == "extra"', True),
        ('os_name == " or "', True),
        ('extra == " or "', False),
    ],
)
def test_a_requirement_of_an_extra_is_told_by_what_its_marker_means(marker: str, expected: bool):
    assert needed(parse_requirement(f"left-pad; {marker}")) is expected


ITEMS = st.sampled_from(['extra == "x"', "extra == 'y'", 'os_name == "nt"', 'python_version > "3"', 'extra != "x"'])
MARKERS = st.recursive(
    ITEMS,
    lambda inner: st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map("".join) | inner.map("({})".format),
    max_leaves=8,
)


@given(marker=MARKERS)
def test_what_holds_without_an_extra_anywhere_is_always_needed(marker: str):
    requirement = parse_requirement(f"x; {marker}")
    assert requirement.marker is not None
    places = [
        {"os_name": name, "python_version": version, "extra": ""}
        for name in ("nt", "posix")
        for version in ("2.7", "3.11")
    ]
    assert needed(requirement) is any(requirement.marker.evaluate(place) for place in places)


def test_a_marker_at_the_bound_is_read():
    clause = 'extra == "x" or '
    text = "x; " + clause * 200 + 'extra == "y"'
    assert len(text) < MAX_REQUIREMENT
    assert not needed(parse_requirement(text))
    assert needed(parse_requirement("x; " + "(" * 32 + 'os_name == "nt"' + ")" * 32))


HEAD = "Metadata-Version: 2.1\nName: x\nVersion: 1\n"


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    "more",
    [
        "".join(f"a{n}: b\n" for n in range(100_000)),
        "Content-Type: multipart/mixed; boundary=x\n",
        "CONTENT-TRANSFER-ENCODING: base64\n",
        f"Requires-Dist: {MUCH['a marker of 34 kB']}\n",
        f"Requires-Dist: x; {'(' * 32}os_name == 'nt'{')' * 32}\n" * 1_990,
        f"requires-python: {MUCH['200,000 clauses']}\n",
        "Requires-Dist: x; os_name == '\\x22\\x27'\n",
        "License-Expression: " + "(" * 10_000 + "\n",
    ],
)
def test_metadata_that_is_too_much_is_a_fault(more: str, strict: bool):
    found, faults = parse_metadata(HEAD + more, strict=strict)
    assert found is None
    assert faults
    assert all(len(fault) < 500 for fault in faults)


@pytest.mark.parametrize("header", ["Name", "Version", "Requires-Python"])
def test_a_header_that_is_used_has_one_value_also_where_others_are_not_checked(header: str):
    value = {"Name": "x", "Version": "1", "Requires-Python": ">=3.11"}[header]
    twice = "".join(f"{each}: {found}\n" for each, found in (("Requires-Python", ">=3.11"), (header, value)))
    _, faults = parse_metadata(HEAD + twice, strict=False)
    assert header.lower() in faults[0]


def test_headers_are_read_without_what_is_behind_them():
    found = parse_headers("Wheel-Version: 1.0\nwheel-version: 2.0\n\nWheel-Version: 3.0\n")
    assert found.get_all("WHEEL-VERSION") == ["1.0", "2.0"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"a": ' + b"[" * 100_000,
        b'{"a": ' + b"9" * 5_000 + b"}",
        b'{"a": "\xff"}',
        b"9" * 5_000,
    ],
    ids=["empty", "cut", "deep", "deeper", "digits", "bytes", "number"],
)
def test_json_that_cannot_be_read_is_one_kind_of_error(data: bytes):
    with pytest.raises(Unreadable):
        decode(data, dict[str, int])
    value, faults = load(dict[str, int], data, code="index")
    assert value is None
    assert [fault.code for fault in faults] == ["index"]


def test_a_wheel_of_a_release_is_told_without_a_parser_as_with_one():
    """Every name of three parts, and every release, of the words that could tell them apart."""
    agreed = 0
    for stem, version, tags in product(NAMES, repeat=3):
        file = f"{stem}-{version}-{tags}.whl"
        try:
            parts = parse_wheel_name(file)
        except Unreadable:
            parts = None
        for project, number in (("demo", "1.0.0"), ("two-words", "1.0"), ("demo", "1.0.0rc1"), ("demo", "1.0.00")):
            expected = parts is not None and (parts.project, parts.version) == (project, number)
            try:
                found = is_wheel_of(file, project=project, version=number)
            except Unreadable:
                found = False
            assert found == expected, (file, project, number)
            agreed += found
    assert agreed > 20
