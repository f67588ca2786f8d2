"""Names that strangers give: what each may look like, and that no name leads a file out of its folder."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman_api.errors import ConfigurationError, RegistryError
from dragoman_registry import files, names
from dragoman_registry.files import add_name, below, replacing, sync_tree, write_below
from dragoman_registry.validation import load

KINDS = [value for value in vars(names).values() if isinstance(value, names.Kind)]
NO_NAMES = [
    "", ".", "..", "../x", "../../PWNED", "/etc/passwd", "a/../b", "a//b", "C:x", "C:\\x", "a\\b", "..\\..\\x", "a\0b",
    "a\n", "\n", "a b", "a ", " a", "a.", "-", "-rf", "a-", "--a", "con", "nul", "com1", "lpt9", "aux", "x&y", "x'y",
    'x"><script>alert(1)<', "<b>", "\ufb01", "\u0430", "a\u202eb", "\u200b", "a" * 1000, "9" * 5000, "\ud800", "%2e%2e",
    "~", "$HOME", "a;b",
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        (f"a/b/{'0' * 64}.x.whl", "a/b/x.whl"), (f"{'f' * 64}.x", "x"), (f"a/{'0' * 64}", f"a/{'0' * 64}"),
        (f"a/{'0' * 63}.x", f"a/{'0' * 63}.x"), (f"{'0' * 64}.d/x.whl", f"{'0' * 64}.d/x.whl"), ("x.whl", "x.whl"),
    ],
)  # fmt: skip
def test_a_digest_is_taken_off_the_beginning_of_a_files_name_alone(path: str, plain: str):
    assert names.plain_name(path) == plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    project: names.ProjectName
    version: names.ReleaseVersion
    file: names.WheelName
    types: dict[names.TypeName, names.PluginId]


SOUND = {"project": "dragoman-demo", "version": "1!1.0rc1.post2.dev3+local.7", "types": {"a-b": "c"}}
SOUND["file"] = "dragoman_demo-1.0-1x-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"


@pytest.mark.parametrize("text", NO_NAMES, ids=lambda text: ascii(text[:20]))
def test_what_could_be_a_path_or_markup_is_no_name(text: str):
    for kind in KINDS:
        assert not kind.fits(text), kind.word
        with pytest.raises(ConfigurationError) as caught:
            kind.check(text)
        assert caught.value.message.startswith(ascii(text[:80]))
        assert kind.word in caught.value.message
        assert len(caught.value.message) < 700
        assert caught.value.hint


@pytest.mark.parametrize(
    ("label", "scripts"),
    [
        ("We\u0430viate", "CYRILLIC and LATIN"), ("\u039fpenSearch", "GREEK and LATIN"),
        ("\uff25lasticsearch", "FULLWIDTH and LATIN"), ("\U0001d404lasticsearch", "LATIN and MATHEMATICAL"),
        ("W\u1d07aviate", ""), ("D\u00e9j\u00e0 vu \u2013 2.0", ""),
        ("\u0411\u0430\u0437\u0430", ""), ("\u6771\u4eac DB", ""),
        ("\u30c7\u30fc\u30bf\u6771 X", ""), ("\u3072\u3089 DB", ""), ("\ud55c\uae00 DB", ""), ("\u3105 DB", ""),
        ("Data \u20ac\u2122", ""), ("", ""),
    ],
)  # fmt: skip
def test_a_label_whose_letters_may_look_like_others_is_marked_and_its_name_stands_beside_it(label, scripts):
    assert names.marked(label) == (f"{label} [letters of {scripts}]" if scripts else label)
    assert names.called(label, "dragoman-x").endswith(" (dragoman-x)")


def test_ordinary_names_are_names():
    assert load(Named, msgspec.json.encode(SOUND), code="x") == (
        msgspec.json.decode(msgspec.json.encode(SOUND), type=Named),
        [],
    )
    for target in (
        "catalog", "wheels/a-b/a_b-1.0-py3-none-any.whl", "wheels/a/a-1-py3-none-any.whl.driver.json",
        "docs/com/1.0/README.md", "docs/console/1!2/CHANGELOG.md",
    ):  # fmt: skip
        assert names.TARGET.fits(target), target


@pytest.mark.parametrize(
    ("kind", "begins", "ends", "most"),
    [
        (names.PROJECT, "", "", 100),
        (names.PLUGIN, "", "", 64),
        (names.TYPE, "", "", 64),
        (names.PUBLISHER, "", "", 64),
        (names.ROLE, "pub-", "", 68),
        (names.VERSION, "", "", 64),
        (names.WHEEL, "", "-1-py3-none-any.whl", 160),
    ],
    ids=lambda value: getattr(value, "word", ""),
)
def test_a_name_is_as_long_as_published_names_may_be_and_no_longer(kind, begins, ends, most):
    """A smaller bound would refuse what is published; a larger one makes names that a disk cannot hold."""
    letter = "1" if kind is names.VERSION else "a"
    for length in (most, most + 1):
        text = begins + letter * (length - len(begins + ends)) + ends
        assert kind.fits(text) == (length == most)


@pytest.mark.parametrize("text", [text for text in NO_NAMES if "\ud800" not in text], ids=lambda text: ascii(text[:20]))
def test_both_readers_of_files_hold_a_value_to_its_kind(text: str):
    for key in ("project", "version", "file"):
        data = msgspec.json.encode(SOUND | {key: text})
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(data, type=Named)
        value, faults = load(Named, data, code="x")
        assert value is None
        assert faults[0].reason.startswith(f"$.{key}: ")
    for types in ({text: "x"}, {"x": text}):
        data = msgspec.json.encode(SOUND | {"types": types})
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(data, type=Named)
        assert load(Named, data, code="x")[1]


PATHS = [
    "wheels/../../x", "..", "../x", "/x", "//x", "a/", "", "a\\b", "C:/x", "C:x", "a\0", "nul", "a/CON.txt", "com1.whl",
    "a.", "a ", "a:b", "x" * 300, "a/\u202eb", "\ud800", "lpt¹", "a/./b", "?", "*",
]  # fmt: skip


@pytest.mark.parametrize("name", PATHS, ids=lambda text: ascii(text[:20]))
def test_nothing_is_written_under_a_name_that_leads_out_or_that_not_every_system_has(name: str, tmp_path: Path):
    (tmp_path / "in").mkdir()
    with pytest.raises(RegistryError) as caught:
        write_below(tmp_path / "in", name, b"x")
    assert caught.value.code == "path-refused"
    assert [path.name for path in tmp_path.rglob("*")] == ["in"]


@given(
    st.lists(
        st.sampled_from(["..", ".", "", "/", "\\", "C:", "\0", "nul", "a", "b.whl", "~", " "]) | st.text(max_size=4),
        max_size=5,
    )
)
@example(["a", "/", "..", "/", "..", "/", "b.whl"])
def test_whatever_the_name_the_file_lies_below_the_folder_or_nowhere(parts: list[str]):
    root = Path("some/folder").absolute()
    try:
        found = below(root, "".join(parts))
    except RegistryError:
        return
    assert Path(os.path.normpath(found)).is_relative_to(root)
    assert found != root


def test_a_link_below_a_folder_leads_no_file_out_of_it(tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "in/wheels").symlink_to(tmp_path / "out", target_is_directory=True)
    (tmp_path / "in/file").symlink_to(tmp_path / "out/file")
    with pytest.raises(RegistryError) as caught:
        write_below(tmp_path / "in", "wheels/x", b"x")
    assert caught.value.code == "path-refused"
    write_below(tmp_path / "in", "file", b"x")
    assert not list((tmp_path / "out").iterdir()), "a file that is a link is replaced, and what it named stays"


@pytest.mark.parametrize("links", [True, False])
def test_a_file_has_a_further_name_with_its_bytes_whether_or_not_the_disk_has_hard_links(links, tmp_path, monkeypatch):
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError(1, "not here")))
    (tmp_path / "a").write_bytes(b"new")
    (tmp_path / "b").write_bytes(b"damaged")
    for _ in range(2):
        add_name(tmp_path / "a", tmp_path / "b")
        assert (tmp_path / "b").read_bytes() == b"new"
        assert (tmp_path / "b").samefile(tmp_path / "a") == links
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_file_is_never_written_through_what_another_user_put_beside_it(tmp_path):
    """The folder of an export may be shared; what is foreseen can be there already, as a link or readable by others."""
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"theirs")
    (tmp_path / f".mine.{os.getpid()}.tmp").symlink_to(theirs)
    names = set()
    for _ in range(3):
        with replacing(tmp_path / "mine", mode=0o600) as file:
            file.write(b"secret")
            names.add(file.name)
    assert len(names) == 3
    assert theirs.read_bytes() == b"theirs"
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o600


def test_a_tree_is_synced_whole_and_each_folder_after_what_it_holds(tmp_path, monkeypatch):
    paths = [tmp_path / name for name in ("a/one", "a/two", "three", "four")]
    (tmp_path / "a").mkdir()
    for path in paths:
        path.touch()
    synced = []
    monkeypatch.setattr(files, "sync", synced.append)
    sync_tree(tmp_path)
    assert sorted(synced) == sorted([*paths, tmp_path / "a", tmp_path])
    assert all(synced.index(path) < synced.index(path.parent) for path in [*paths, tmp_path / "a"])
