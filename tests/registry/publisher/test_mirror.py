"""Mirrors and bundles keep what authors signed, begin with a root of their own, and follow the original."""

from __future__ import annotations

import re
import shutil
import zipfile
from itertools import product
from typing import TYPE_CHECKING

import pytest

import wheelhouse
from dragoman.folders import find_paths
from dragoman.plugins.registries import Registries
from dragoman_api.errors import ConfigurationError, RegistryError, TrustError
from dragoman_registry import isolation
from dragoman_registry.files import write
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.names import plain_name
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.mirror import mirror, pack
from dragoman_registry.publisher.verify import verify
from dragoman_registry.sources import open_source, read
from dragoman_registry.trust.keys import Keys, beside, own_key
from dragoman_registry.trust.tuf_client import TufTrust
from dragoman_registry.trust.tuf_repository import Repository
from dragoman_registry.wheels.archive_checks import inspect
from slow_cases import mostly_slow
from trust_attacks import Case, served, sign_as, swap

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman_registry.wheels.metadata_checks import WheelReport


@pytest.fixture
def case(tmp_path: Path) -> Case:
    one = Case(tmp_path / "case", http=False)
    one.location = str(one.root)
    library = wheelhouse.library().write(tmp_path / "w")
    needy = wheelhouse.Driver("other", "2.0.0", dependencies=[wheelhouse.dependency(library)])
    needy.requires.append("tinylib")
    publish.build([library, needy.write(tmp_path / "w")], to=one.root, sign=one.key("other"))
    return one


def copied(case: Case, location: str | None = None) -> str:
    location = location or case.location
    trust = TufTrust(open_source(location), where=location, cache=case.folder / "mirroring", root=case.pin)
    done = mirror(location, to=case.folder / "mirror", trust=trust)
    assert done.left_out == ()
    return done.root


def through(case: Case, root: str, location: str | None = None) -> None:
    """Let the client look at the mirror from now on."""
    case.location, case.pin = location or str(case.folder / "mirror"), root
    shutil.rmtree(case.folder / "cache", ignore_errors=True)


def authors(folder: Path) -> dict[str, bytes]:
    names = ("pub-", "targets", "index", "advisories")
    newest = {}
    for file in sorted((folder / "metadata").glob("*.*.json"), key=lambda file: int(file.name.split(".")[0])):
        role = file.name.split(".")[1]
        if role.startswith(names):
            newest[role] = file.read_bytes()
    return newest


@pytest.mark.slow
@pytest.mark.parametrize("http", [False, True], ids=["disk", "http"])
def test_a_mirror_keeps_the_signatures_and_installs(http: bool, case: Case):
    if http:
        with served(case.root) as url:
            root = copied(case, url)
    else:
        root = copied(case)
    assert root != case.pin
    assert authors(case.folder / "mirror") == authors(case.root)
    assert verify(case.folder / "mirror") == []
    shutil.rmtree(case.root)
    through(case, root)
    assert case.install() == "1.0.0"
    case.place.registry = case.client()
    assert len(case.place.install("other").trees) == 2
    assert (case.folder / "mirror/index.html").is_file()
    assert "PRIVATE" not in "".join(
        file.read_text(errors="replace") for file in (case.folder / "mirror").rglob("*") if file.is_file()
    )


@pytest.mark.slow
def test_a_mirror_follows_the_original_and_its_new_keys(case: Case):
    root = copied(case)
    case.release("1.1.0")
    assert copied(case) == root
    assert authors(case.folder / "mirror") == authors(case.root)
    client = Case(case.folder / "client", http=False)
    through(client, root, str(case.folder / "mirror"))
    assert client.install() == "1.1.0"
    publish.sign(case.root, rotate=["targets", "root"])
    case.release("1.2.0")
    assert copied(case) != root, "the newest root is another one, and says so"
    assert client.install() == "1.2.0", "who had added it goes on"
    assert verify(case.folder / "mirror") == []
    before = {file: file.read_bytes() for file in (case.folder / "mirror").rglob("*") if file.is_file()}
    copied(case)
    assert before == {file: file.read_bytes() for file in (case.folder / "mirror").rglob("*") if file.is_file()}


def test_a_mirrors_operator_cannot_sign_in_an_authors_place(case: Case):
    through(case, copied(case))
    _, files = case.evil()
    with pytest.raises(ConfigurationError, match=r"\bindex\b") as caught:
        publish.mark(case.folder / "mirror", project="demo", version="1.0.0", status="yanked", reason="mine")
    assert caught.value.code == "key-missing"
    case.root = case.folder / "mirror"
    for path, data in files.items():
        write(case.root / "targets" / path, data)
    sign_as(case, "pub-acme", files, own_key(case.folder / "operator.pem"))
    registry = case.client()
    with pytest.raises(TrustError):
        registry.manifest(registry.releases("demo")[0])


def left_out(case: Case) -> dict[str, str]:
    """Mirror, and map the code and place of each left-out file to the reason."""
    trust = TufTrust(open_source(case.location), where="o", cache=case.folder / "mirroring", root=case.pin)
    done = mirror(case.location, to=case.folder / "mirror", trust=trust)
    assert (case.folder / "mirror/drivers/dragoman-demo.html").is_file()
    return {f"{fault.code} {fault.where.rpartition('/')[2]}": fault.reason for fault in done.left_out}


LIBRARY = "tinylib/tinylib-1.0.0-py3-none-any.whl"
OTHER = "dragoman-other/dragoman_other-2.0.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("file", "damage"),
    mostly_slow(
        product((LIBRARY, OTHER, f"{OTHER}.driver.json"), ("missing", "cut", "a folder")),
        fast=[(LIBRARY, "missing"), (OTHER, "cut"), (f"{OTHER}.driver.json", "a folder")],
    ),
)
def test_a_file_that_is_missing_or_damaged_leaves_its_release_out_alone(file: str, damage: str, case: Case):
    [*places] = (case.root / "targets/wheels").glob(f"{file.replace('/', '/*')}")
    data = {place: place.read_bytes() for place in places}
    assert data
    for place in places:
        place.unlink()
        if damage == "cut":
            place.write_bytes(data[place][:-1])
        elif damage == "a folder":
            place.mkdir()
    name = file.partition("/")[2]
    done = left_out(case)
    assert done.keys() == {f"not-copied {name}", f"incomplete {name}"}
    assert done[f"incomplete {name}"].startswith("other 2.0.0 ")
    assert not (case.folder / "mirror/targets/wheels" / file).exists()
    assert "2.0.0" not in (case.folder / "mirror/index.html").read_text(encoding="utf-8")
    for place in places:
        place.rmdir() if damage == "a folder" else place.unlink(missing_ok=True)
        place.write_bytes(data[place])
    copied(case)
    assert verify(case.folder / "mirror") == []


def test_a_wheel_that_is_no_archive_leaves_its_release_out(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    broken = tmp_path / OTHER.partition("/")[2]
    broken.write_bytes(b"no archive")

    def look(apart: object, path: Path, **options: bool) -> WheelReport:
        return inspect(broken if path.name == broken.name else path, **options)

    monkeypatch.setattr("dragoman_registry.publisher.mirror.inspect_apart", look)
    assert left_out(case).keys() == {f"not-a-wheel {broken.name}", f"incomplete {broken.name}"}
    assert not [*(case.folder / "mirror").rglob(f"{broken.name}.metadata")]


@pytest.mark.slow
def test_a_wheel_that_cannot_be_looked_at_within_bounds_leaves_its_release_out(
    case: Case, monkeypatch: pytest.MonkeyPatch
):
    copied(case)
    case.release("1.1.0")
    with monkeypatch.context() as patch:
        patch.setattr(isolation, "SECONDS", 0.0)
        name = "dragoman_demo-1.1.0-py3-none-any.whl"
        assert left_out(case).keys() == {f"work-ended {name}", f"incomplete {name}"}
        assert {fault.code for fault in verify(case.root)} == {"work-ended"}
    copied(case)
    assert verify(case.folder / "mirror") == []


def test_an_original_that_is_not_in_order_is_not_mirrored(case: Case):
    copied(case)
    assert verify(case.folder / "mirror") == []
    (case.root / "metadata/1.pub-acme.json").write_bytes((case.root / "metadata/2.pub-other.json").read_bytes())
    shutil.rmtree(case.folder / "mirroring")
    with pytest.raises(TrustError):
        copied(case)
    assert verify(case.folder / "mirror") == []


def test_a_folder_with_other_things_does_not_become_a_mirror(case: Case):
    (case.folder / "mirror").mkdir()
    (case.folder / "mirror/note").write_text("mine")
    with pytest.raises(ConfigurationError, match=re.escape(str(case.folder / "mirror"))):
        copied(case)
    assert [path.name for path in (case.folder / "mirror").iterdir()] == ["note"]


def test_a_bundle_is_added_as_it_is_and_follows_the_next_one(case: Case, tmp_path: Path):
    """One file across the air gap: authors' signatures, a root that is shown, no network."""
    root, bundle = copied(case), tmp_path / "stick/team.zip"
    bundle.parent.mkdir()
    pack(case.folder / "mirror", bundle)
    shutil.move(case.root, case.folder / "gone")
    registries = Registries(find_paths())
    assert registries.add(str(bundle)).root == root
    registry = registries.open()[0]
    assert registry.types() == {"demo": "dragoman-demo", "other": "dragoman-other"}
    case.place.registry = registry
    assert case.place.install("demo").version == "1.0.0"
    shutil.move(case.folder / "gone", case.root)
    case.release("1.1.0")
    copied(case)
    pack(case.folder / "mirror", bundle)
    case.place.registry = registries.open()[0]
    assert case.place.install("demo").version == "1.1.0"


def test_what_lies_in_the_folder_of_a_mirror_by_mistake_is_not_packed(case: Case, tmp_path: Path):
    copied(case)
    bundle, mirrored = tmp_path / "team.zip", case.folder / "mirror"
    own = {path.relative_to(mirrored).as_posix() for path in mirrored.rglob("*") if path.is_file()}
    for folder in ("", "metadata/", "targets/", "targets/wheels/dragoman-demo/"):
        (mirrored / f"{folder}root-0f3a.pem").write_text("PRIVATE KEY")
    pack(mirrored, bundle)
    with zipfile.ZipFile(bundle) as archive:
        assert set(archive.namelist()) == {name for name in own if plain_name(name) == name}


def test_a_bundle_holds_a_target_once_and_answers_both_of_its_names(case: Case, tmp_path: Path):
    copied(case)
    bundle, mirrored = tmp_path / "team.zip", case.folder / "mirror"
    pack(mirrored, bundle)
    both = [path for path in (mirrored / "targets").rglob("*") if path.is_file() and plain_name(path.name) != path.name]
    assert {path.name.partition(".")[2] for path in both} >= {"catalog", "types", "browse", "advisories", "README.md"}
    assert len(both) > 10
    for path in both:
        name = path.relative_to(mirrored).as_posix()
        assert path.samefile(path.with_name(plain_name(path.name))) or path.parent.name == "targets", "one file"
        for asked in (name, plain_name(name)):
            assert read(open_source(str(bundle)), asked, limit=1 << 20) == path.read_bytes()


def test_a_bundle_that_was_cut_or_is_none_is_named(case: Case, tmp_path: Path):
    copied(case)
    bundle = tmp_path / "team.zip"
    pack(case.folder / "mirror", bundle)
    whole = bundle.read_bytes()
    for data in (whole[: len(whole) // 2], b"", b"PK\5\6"):
        bundle.write_bytes(data)
        with pytest.raises(RegistryError, match=r"team\.zip"):
            Registry("r", str(bundle), trust=TufTrust(
                open_source(str(bundle)), where=str(bundle), cache=tmp_path / "c", first_use=True
            )).types()  # fmt: skip
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.writestr("metadata/x.json", "{}")
    with pytest.raises(TrustError) as caught:
        Registries(find_paths()).add(str(bundle))
    assert caught.value.code == "not-signed"


@pytest.mark.slow
def test_a_mirror_in_place_of_the_original_is_another_registry(case: Case):
    copied(case)
    swap(case.root, case.folder / "mirror")
    with pytest.raises(TrustError) as caught:
        case.install()
    assert caught.value.code == "root-mismatch"
    assert Repository(case.root, Keys(beside(case.folder / "mirror"))).root_digest in caught.value.message
