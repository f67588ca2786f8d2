"""A registry whose names are paths or markup: a mirror leaves them out and says so, and the others go on."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import wheelhouse
from command_line import Machine
from dragoman_api.errors import ConfigurationError, DragomanError
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.mirror import Mirrored, mirror
from dragoman_registry.publisher.verify import verify
from dragoman_registry.sources import open_source
from dragoman_registry.trust.keys import Keys, beside
from dragoman_registry.trust.tuf_client import TufTrust
from dragoman_registry.trust.tuf_repository import Repository
from forging import forge
from slow_cases import mostly_slow
from trust_attacks import Case, sign_as

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OUT = "../../../PWNED"
MARKUP = 'x"><script>alert(1)</script>'


@pytest.fixture
def case(tmp_path: Path) -> Case:
    one = Case(tmp_path / "deep/deeper/case", http=False)
    one.location = str(one.root)
    return one


def copied(case: Case) -> Mirrored:
    trust = TufTrust(open_source(case.location), where="r", cache=case.folder / "mirroring", root=case.pin)
    return mirror(case.location, to=case.folder / "m/mirror", trust=trust)


def files(case: Case) -> set[str]:
    top = case.folder.parents[2]
    return {path.relative_to(top).as_posix() for path in top.rglob("*")}


def outside(case: Case, before: set[str]) -> set[str]:
    own = tuple(f"deep/deeper/case/{name}" for name in ("m", "mirroring", "registry"))
    return {path for path in files(case) - before if not path.startswith(own)}


def change(**values: object) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda catalog, project: project.update(values)


def release(**values: object) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda catalog, project: project["releases"][0].update(values)


def wheel(file: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda catalog, project: project["releases"][0]["wheels"][0].update(file=file)


def library(file: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def add(catalog: dict[str, Any], project: dict[str, Any]) -> None:
        catalog["libraries"] = [project["releases"][0]["wheels"][0] | {"file": file}]

    return add


CHANGES = {
    "project": change(project=OUT),
    "markup": change(project=MARKUP),
    "project and its releases": lambda catalog, project: (
        project.update(project=OUT), project["releases"][0].update(project=OUT)
    ),
    "plugin": change(plugin=OUT),
    "type": change(types=[{"name": OUT, "label": "x"}]),
    "label that no list has room for": change(label="A" * 101),
    "label of a type": change(types=[{"name": "demo", "label": "A" * 101}]),
    "summary": change(summary="A" * 4097),
    "permission": release(permissions=["A" * 4097]),
    "version": release(version=OUT),
    "release's project": release(project=OUT),
    "release's plugin": release(plugin=OUT),
    "wheel": wheel(f"{OUT}-1.0.0-py3-none-any.whl"),
    "hidden wheel": wheel("..-1.0.0-py3-none-any.whl"),
    "wheel of a device": wheel("aux.x-1.0.0-py3-none-any.whl"),
    "digest": lambda catalog, project: project["releases"][0]["wheels"][0].update(sha256=OUT),
    "size that no number holds": lambda catalog, project: project["releases"][0]["wheels"][0].update(size=10**40),
    "no record": lambda catalog, project: catalog["projects"].append(OUT),
    "library": library(f"{OUT}-1.0.0-py3-none-any.whl"),
    "hidden library": library("..-1-py3-none-any.whl"),
}  # fmt: skip


ALIKE = {
    "project and its releases", "plugin", "label of a type", "summary", "version", "release's project",
    "release's plugin", "hidden wheel", "hidden library",
}  # fmt: skip


@pytest.mark.parametrize("what", mostly_slow(CHANGES, fast=CHANGES.keys() - ALIKE))
def test_a_name_that_is_a_path_is_left_out_of_a_mirror_and_said(what: str, case: Case):
    catalog = case.catalog()
    [project] = [each for each in catalog["projects"] if each["plugin"] == "demo"]
    CHANGES[what](catalog, project)
    forge(case.root, {"catalog": json.dumps(catalog).encode()})
    before = files(case)
    done = copied(case)
    assert outside(case, before) == set()
    assert len(done.left_out) == 1
    assert done.left_out[0].code == "index"
    root = case.folder / "m/mirror"
    assert (root / "drivers/dragoman-other.html").is_file()
    assert (root / "drivers/dragoman-demo.html").is_file() == ("library" in what or what == "no record")
    assert {fault.code for fault in verify(root)} == {"index"}, "whoever has the mirror is told the same"
    client = Registry("m", str(root), trust=TufTrust(
        open_source(str(root)), where="m", cache=case.folder / "mirroring/2", root=done.root
    ))  # fmt: skip
    assert client.project("other").releases[0].wheels


def test_a_publishers_path_that_leads_out_is_left_out_of_a_mirror_and_of_what_is_accepted(case: Case):
    names = ["..", "..\\..\\PWNED", "\0", '"><img src=x onerror=alert(1)>', "nul.whl"]
    names += ["aux.x-1.0-py3-none-any.whl", "COM1.x-1.0-py3-none-any.whl.driver.json"]
    signed = {f"wheels/dragoman-demo/{name}": b"x" for name in names}
    signed |= {"docs/dragoman-demo/../..": b"x", "docs/dragoman-demo/1.0.0/.bashrc": b"x"}
    repository = Repository(case.root, Keys(beside(case.root), case.key("acme")))
    repository.submit("pub-acme", signed)
    with pytest.raises(DragomanError) as caught:
        wheelhouse.accept(case.root)
    assert {code for code, _ in caught.value.faults} == {"name"}
    sign_as(case, "pub-acme", signed, case.key("acme"))
    before = files(case)
    done = copied(case)
    assert outside(case, before) == set()
    assert len(done.left_out) == len(signed)
    assert (case.folder / "m/mirror/drivers/dragoman-demo.html").is_file()


def test_a_driver_with_a_wheel_that_nobody_signed_is_left_out_of_a_mirror(case: Case):
    forge(case.root, {"catalog": case.listed(case.evil()[0])})
    [fault] = copied(case).left_out
    assert (fault.code, fault.where) == ("unsigned", "wheels/dragoman-demo/dragoman_demo-9.9.9-py3-none-any.whl")
    assert (case.folder / "m/mirror/drivers/dragoman-other.html").is_file()


def test_a_library_that_was_signed_with_other_bytes_takes_nothings_place_in_a_mirror(case: Case):
    catalog = case.catalog()
    [project] = [each for each in catalog["projects"] if each["plugin"] == "demo"]
    catalog["libraries"] = [project["releases"][0]["wheels"][0] | {"sha256": "0" * 64}]
    forge(case.root, {"catalog": json.dumps(catalog).encode()})
    [fault] = copied(case).left_out
    assert (fault.code, fault.where) == ("unsigned", "wheels/dragoman-demo/dragoman_demo-1.0.0-py3-none-any.whl")
    page = case.folder / "m/mirror/targets/simple/dragoman-demo/index.html"
    assert "sha256=" + "0" * 64 not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [OUT, "a/../../x", MARKUP, "pub-..", "extra", "pub-\\x"])
def test_a_role_whose_name_is_a_path_is_no_role(name: str, case: Case):
    repository = Repository(case.root, Keys(beside(case.root)))
    repository.delegate(name, repository.keys.new("x").public_key, ["wheels/dragoman-evil/*", "../../x"])
    repository.commit()
    before = files(case)
    done = copied(case)
    assert outside(case, before) == set()
    assert [fault.code for fault in done.left_out] == ["name"]
    assert (case.folder / "m/mirror/drivers/dragoman-demo.html").is_file()


@pytest.mark.parametrize("types", [{OUT: "dragoman-other"}, {"x": OUT}, {MARKUP: MARKUP}, {"x": 5}, {"x": ["y"]}])
def test_a_type_whose_name_is_a_path_is_bound_to_nothing(types: dict[str, object], case: Case):
    bound = {"demo": "dragoman-demo", "other": "dragoman-other"}
    forge(case.root, {"types": json.dumps({"types_version": 1, "types": bound | types}).encode()})
    assert case.client().types() == bound
    assert [fault.code for fault in copied(case).left_out] == ["index"]


def test_a_link_in_the_folder_of_a_mirror_leads_nothing_out_of_it(case: Case, tmp_path: Path):
    copied(case)
    outer, wheels = tmp_path / "outer", case.folder / "m/mirror/targets/wheels/dragoman-demo"
    wheels.rename(outer)
    wheels.symlink_to(outer, target_is_directory=True)
    for file in outer.iterdir():
        file.unlink()
    with pytest.raises(DragomanError) as caught:
        copied(case)
    assert caught.value.code == "path-refused"
    assert list(outer.iterdir()) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda root, key: publish.add_publisher(root, OUT, key=key, projects=["x"]),
        lambda root, key: publish.add_publisher(root, "new", key=key, projects=[OUT]),
        lambda root, key: publish.add_publisher(root, "new", key=key, projects=[MARKUP]),
        lambda root, key: publish.add_publisher(root, "new", key=key, projects=["x"], types=[OUT]),
        lambda root, key: publish.mark(
            root, project="demo", version="1.0.0", status="deprecated", reason="old", replaced_by=MARKUP
        ),
    ],
)
def test_an_operator_cannot_bring_in_a_name_that_readers_refuse(call: Callable[..., object], case: Case):
    with pytest.raises(ConfigurationError) as caught:
        call(case.root, case.key("acme").with_suffix(".pub"))
    assert ascii(MARKUP) in caught.value.message or "pwned" in caught.value.message.lower()
    assert verify(case.root) == []


def test_every_page_has_a_policy_and_no_markup_of_strangers(case: Case, tmp_path: Path):
    """Also where records did not go through any check: they are text wherever they stand."""
    from dragoman_registry.publisher.index_records import Index
    from dragoman_registry.publisher.pages import pages

    driver = wheelhouse.Driver("evil", label=MARKUP, summary=MARKUP).write(tmp_path)
    publish.build([driver], to=case.root, sign=None)
    catalog = Registry("r", str(case.root), trust=wheelhouse.TrustedPath()).catalog()
    for number, entry in enumerate(catalog.projects):
        texts = {"project": f"{MARKUP}{number}", "yanked": MARKUP, "deprecated": MARKUP, "plugin": MARKUP}
        for key in ("project", "plugin"):
            object.__setattr__(entry, key, texts[key])
        for one in entry.releases:
            for key, value in texts.items():
                object.__setattr__(one, key, value)
            for file in one.wheels:
                object.__setattr__(file, "file", f"{MARKUP}-1-py3-none-any.whl")
                object.__setattr__(file, "requires_python", MARKUP)
                object.__setattr__(file, "sha256", MARKUP)
    count = 0
    for name, data in pages(Index.of(catalog), lambda _: None, publishers={f"{MARKUP}0": MARKUP}):
        if name.endswith(".html"):
            page, count = data.decode(), count + 1
            assert "<script>alert(1)" not in page, name
            assert re.search(r"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'", page), name
    assert count > 4


def test_the_page_of_many_drivers_is_one_of_the_registrys_files():
    from dragoman_registry.publisher.folder import belongs

    digest = "0" * 64
    for own in (
        "index.html", "all.html", "drivers/dragoman-demo.html", "targets/catalog", f"targets/{digest}.catalog",
        f"targets/wheels/demo/{digest}.demo-1-py3-none-any.whl.driver.json", f"targets/docs/demo/1/{digest}.README.md",
    ):  # fmt: skip
        assert belongs(own), own
    for stray in (
        "drivers/a.b.html", "drivers/.html", "targets/wheels/demo/.whl", "targets/wheels/../x-1-py3-none-any.whl",
        f"targets/docs/demo/{digest}.README.md", "targets/docs/demo/../README.md", "targets/simple/../index.html",
    ):  # fmt: skip
        assert not belongs(stray), stray


@pytest.mark.slow
def test_the_command_says_what_a_mirror_lacks_and_ends_with_1(case: Case, tmp_path: Path):
    catalog = case.catalog()
    [project] = [each for each in catalog["projects"] if each["plugin"] == "demo"]
    project["project"] = OUT
    forge(case.root, {"catalog": json.dumps(catalog).encode()})
    done = Machine(tmp_path / "home").process("--json", "registry", "mirror", case.root, tmp_path / "m", code=1)
    [left_out] = done.json["left_out"]
    assert "PWNED" in left_out["reason"]
    assert left_out["reason"] in done.err
    assert (tmp_path / "m/index.html").is_file()


@pytest.mark.parametrize("what", ["version", "release's project", "wheel", "digest", "permission"])
def test_one_bad_release_hides_itself_and_not_its_driver(what: str, case: Case):
    case.release("1.1.0")
    catalog = case.catalog()
    [project] = [each for each in catalog["projects"] if each["plugin"] == "demo"]
    CHANGES[what](catalog, project)
    assert [each["version"] for each in project["releases"]][1] == "1.0.0"
    forge(case.root, {"catalog": json.dumps(catalog).encode()})
    [fault] = copied(case).left_out
    assert ".releases" in fault.reason
    for read in (lambda one: one.project("demo"), lambda one: one.sifted()[0].projects[0]):
        found = read(Registry("m", str(case.root), trust=wheelhouse.TrustedPath()))
        assert [release.version for release in found.releases] == ["1.0.0"]
