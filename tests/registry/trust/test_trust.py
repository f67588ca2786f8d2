"""Signed registries: keys and roles, what waits and what is accepted, rotation, expiry, and which root is trusted."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from tuf.api.metadata import Snapshot

import trust_attacks
import wheelhouse
from dragoman_api.errors import (
    ConfigurationError,
    IndexInvalidError,
    IntegrityError,
    RegistryError,
    TrustError,
    WheelRejectedError,
)
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.verify import verify
from dragoman_registry.sources import open_source
from dragoman_registry.trust.keys import Keys, beside, new_key, own_key
from dragoman_registry.trust.roles import roles_of
from dragoman_registry.trust.signers import KeyFile, read_public
from dragoman_registry.trust.trust import Pinned
from dragoman_registry.trust.tuf_client import TufTrust
from dragoman_registry.trust.tuf_repository import Repository, parse_metadata, read_roots
from forging import forge
from trust_attacks import NOW, Case, driver

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def case(tmp_path: Path) -> Case:
    one = Case(tmp_path / "case", http=False)
    one.location = str(one.root)
    return one


@pytest.fixture
def team(tmp_path: Path) -> Path:
    return wheelhouse.registry(tmp_path / "team", [wheelhouse.Driver().write(tmp_path / "w")])


def client(folder: Path, cache: Path, **options: object) -> Registry:
    trust = TufTrust(open_source(str(folder)), where=str(folder), cache=cache, **({"first_use": True} | options))
    return Registry("team", str(folder), trust=trust)


def codes(error: pytest.ExceptionInfo[WheelRejectedError]) -> set[str]:
    return {code for code, _ in error.value.faults}


# keys -----------------------------------------------------------------------------------------------------------------


def test_keys_lie_beside_the_registry_for_their_owner_only(team: Path):
    keys = beside(team)
    assert keys.name == "team.keys"
    assert stat.S_IMODE(keys.stat().st_mode) == 0o700
    private = list(keys.glob("*.pem"))
    assert {file.name.rpartition("-")[0] for file in private} == {
        "root-1", "root-2", "root-3", "targets", "snapshot", "timestamp", "index", "advisories", "pub-owner",
    }  # fmt: skip
    assert {stat.S_IMODE(file.stat().st_mode) for file in private} == {0o600}
    assert b"PRIVATE" not in b"".join(file.read_bytes() for file in team.rglob("*") if file.is_file())


def test_keys_inside_the_folder_are_refused(tmp_path: Path):
    with pytest.raises(ConfigurationError, match=re.escape(str(tmp_path / "r"))) as caught:
        publish.init(tmp_path / "r", keys=tmp_path / "r/keys")
    assert "--keys" in caught.value.hint
    assert not list((tmp_path / "r").rglob("*.pem"))


def test_a_key_that_strayed_into_the_folder_is_a_fault(team: Path):
    shutil.copy(next(beside(team).glob("index*.pem")), team / "targets")
    assert {fault.code for fault in verify(team)} == {"private-key"}


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o610, 0o604, 0o602, 0o601], ids=oct)
def test_a_key_that_is_open_to_others_is_not_used(mode: int, tmp_path: Path):
    key = own_key(tmp_path / "me.pem")
    key.chmod(mode)
    with pytest.raises(ConfigurationError) as caught:
        KeyFile(key)
    assert (caught.value.code, caught.value.hint) == ("key-exposed", f"chmod 600 {key}")


def test_a_new_key_takes_the_place_of_nothing_not_even_of_a_public_key(tmp_path: Path):
    made = own_key(tmp_path / "ada.v1", new=True)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {*before} == {"ada.v1", "ada.pub", ".ada.v1.lock"}
    (tmp_path / "link").symlink_to("nothing")
    for name, taken in (("ada.v1", made), ("ada.v2", tmp_path / "ada.pub"), ("link", tmp_path / "link")):
        with pytest.raises(ConfigurationError) as caught:
            own_key(tmp_path / name, new=True)
        assert caught.value.message.startswith(f"{taken} ")
    with pytest.raises(ConfigurationError) as caught:
        own_key(tmp_path / "eve.pub", new=True)
    assert caught.value.hint == f"dragoman driver key {tmp_path / 'eve.pem'}"
    (tmp_path / "link").unlink()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.suffix != ".lock"} == {
        name: content for name, content in before.items() if not name.endswith(".lock")
    }


@pytest.mark.parametrize("content", [b"", b"secret", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_a_file_that_is_no_key_is_named(content: bytes, tmp_path: Path):
    path = tmp_path / "me.pem"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(ConfigurationError, match=r"me\.pem"):
        KeyFile(path)


def test_without_the_signing_library_every_use_of_a_key_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    own_key(tmp_path / "me.pem")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for use in (new_key, lambda: KeyFile(tmp_path / "me.pem"), lambda: read_public(tmp_path / "me.pub")):
        with pytest.raises(ConfigurationError) as caught:
            use()
        assert caught.value.code == "extra-missing"


@pytest.mark.parametrize("spoil", ["missing", "folder", "text", "other"])
def test_a_signed_file_that_cannot_be_read_is_named(spoil: str, team: Path):
    path = max((team / "metadata").glob("*.snapshot.json"))
    path.unlink()
    if spoil == "folder":
        path.mkdir()
    elif spoil != "missing":
        path.write_bytes(b"{" if spoil == "text" else max((team / "metadata").glob("*.root.json")).read_bytes())
    with pytest.raises(IndexInvalidError) as caught:
        parse_metadata(path, Snapshot)
    assert caught.value.details == {"path": str(path)}


def test_the_root_needs_two_of_three_and_no_role_can_do_anothers_work(team: Path):
    repository = Repository(team, Keys(beside(team)))
    root = repository._root.signed
    assert (root.roles["root"].threshold, len(root.roles["root"].keyids)) == (2, 3)
    every = [*root.roles.values(), *repository.targets.delegations.roles.values()]
    keyids = [keyid for role in every for keyid in role.keyids]
    assert len(keyids) == len(set(keyids)) == 9
    assert {role.name: role.paths for role in repository.targets.delegations.roles.values()} == {
        "pub-owner": ["wheels/dragoman-demo/*", "docs/dragoman-demo/*/*"],
        "advisories": ["advisories"],
        "index": ["catalog", "browse"],
    }
    assert all(role.terminating for role in repository.targets.delegations.roles.values())


def test_without_the_keys_nothing_is_changed_and_the_folder_of_keys_is_named(case: Case):
    beside(case.root).rename(case.folder / "away")
    before = {file: file.read_bytes() for file in case.root.rglob("*") if file.is_file()}
    for work in (
        lambda: publish.mark(case.root, project="demo", version="1.0.0", status="yanked", reason="old"),
        lambda: wheelhouse.accept(case.root),
        lambda: publish.build([driver(case.folder, "2.0.0")], to=case.root),
    ):
        with pytest.raises(ConfigurationError) as caught:
            work()
        assert caught.value.code == "key-missing"
        assert "--keys" in caught.value.hint or "--sign" in caught.value.hint
    assert before == {file: file.read_bytes() for file in case.root.rglob("*") if file.is_file()}


# publishers -----------------------------------------------------------------------------------------------------------


def test_what_an_author_signs_waits_until_it_is_accepted(case: Case):
    keys = beside(case.root).rename(case.folder / "away")
    before = case.client().catalog()
    publish.build([driver(case.folder, "1.1.0")], to=case.root, sign=case.key("acme"))
    assert case.client().catalog() == before
    assert "1.1.0" not in (case.root / "targets/simple/dragoman-demo/index.html").read_text()
    assert verify(case.root) == []
    [release] = wheelhouse.accept(case.root, keys=keys)
    assert (release.plugin, release.version) == ("demo", "1.1.0")
    assert wheelhouse.accept(case.root, keys=keys) == []
    assert case.install() == "1.1.0"
    assert verify(case.root) == []


def test_an_upload_that_its_author_signed_is_taken_in(case: Case):
    keys, wheel = beside(case.root).rename(case.folder / "away"), driver(case.folder, "1.1.0")
    publish.build([wheel], to=case.root, sign=case.key("acme"))
    place = case.root / "targets" / trust_attacks.WHEEL.format(version="1.1.0")
    for file in place.parent.glob("*-1.1.0-*"):
        file.unlink()
    with pytest.raises(WheelRejectedError) as caught:
        wheelhouse.accept(case.root, keys=keys)
    assert "not-a-wheel" in codes(caught)
    wheelhouse.accept(case.root, keys=keys, uploads=[wheel])
    assert case.install() == "1.1.0"


def test_the_fault_of_one_publisher_does_not_hold_up_another(case: Case):
    keys = beside(case.root).rename(case.folder / "away")
    repository = Repository(case.root, Keys(keys, case.key("other")))
    repository.submit("pub-other", {"wheels/dragoman-demo/x": b"mine"})
    publish.build([driver(case.folder, "1.1.0")], to=case.root, sign=case.key("acme"))
    with pytest.raises(WheelRejectedError) as caught:
        wheelhouse.accept(case.root, keys=keys)
    assert codes(caught) == {"delegation"}
    role = case.root / "metadata/1.pub-acme.json"
    shutil.copy(role, role.with_name("9.pub-other.json"))
    with pytest.raises(WheelRejectedError) as caught:
        wheelhouse.accept(case.root, keys=keys)
    assert "signature" in codes(caught)
    role.with_name("9.pub-other.json").unlink()
    assert case.install() == "1.1.0"
    publish.build([driver(case.folder, "1.1.0", "other")], to=case.root, sign=case.key("other"))
    assert [release.plugin for release in wheelhouse.accept(case.root, keys=keys)] == ["other"]


def test_a_project_or_a_type_that_nobody_was_given_cannot_be_published(case: Case):
    wheel = wheelhouse.Driver("demo", "1.1.0", types=[{"name": "oracle", "label": "X"}]).write(case.folder / "x")
    with pytest.raises(WheelRejectedError, match="add-publisher") as caught:
        publish.build([wheel], to=case.root, sign=case.key("acme"))
    assert codes(caught) == {"type-not-bound"}
    with pytest.raises(WheelRejectedError, match="add-publisher") as caught:
        publish.build([driver(case.folder, name="third")], to=case.root, sign=case.key("acme"))
    assert codes(caught) == {"no-publisher", "type-not-bound"}
    public = case.key("acme").with_suffix(".pub")
    publish.add_publisher(case.root, "acme", key=public, projects=["dragoman_third"], types=["third"])
    publish.build([driver(case.folder, name="third")], to=case.root, sign=case.key("acme"))
    assert case.client().publisher("dragoman-third").name == "acme"
    assert case.install() == "1.0.0", "what they had stays theirs"


def test_a_project_of_one_publisher_cannot_be_given_to_another(case: Case):
    public = own_key(case.folder / "x.pem").with_suffix(".pub")
    with pytest.raises(ConfigurationError, match=r"dragoman-demo.*acme"):
        publish.add_publisher(case.root, "squatter", key=public, projects=["Dragoman.Demo"])
    with pytest.raises(ConfigurationError, match=r"'\.\./x'"):
        publish.add_publisher(case.root, "../x", key=public, projects=["x"])


def test_a_type_is_taken_from_the_project_that_serves_it_only_when_that_is_said(case: Case):
    public = own_key(case.folder / "x.pem").with_suffix(".pub")
    with pytest.raises(ConfigurationError, match=r"'demo'.*dragoman-demo") as caught:
        publish.add_publisher(case.root, "late", key=public, projects=["Dragoman.Late"], types=["late", "demo"])
    assert caught.value.hint.startswith("--rebind")
    assert "'late'" not in caught.value.message, "no other project serves it"
    assert case.client().types()["demo"] == "dragoman-demo"
    publish.add_publisher(case.root, "acme", key=case.key("acme").with_suffix(".pub"), projects=[], types=["demo"])
    publish.add_publisher(
        case.root, "late", key=public, projects=["dragoman-late"], types=["late", "demo"], rebind=True
    )
    assert {case.client().types()[kind] for kind in ("late", "demo")} == {"dragoman-late"}


def test_a_publisher_gets_another_key_and_signs_anew_what_was_accepted(case: Case):
    case.release("1.1.0")
    new = own_key(case.folder / "new.pem")
    publish.add_publisher(case.root, "acme", key=new.with_suffix(".pub"), projects=[])
    [fault] = verify(case.root)
    assert (fault.code, fault.where) == ("signature", "metadata/pub-acme")
    with pytest.raises(TrustError):
        case.install()
    assert publish.sign(case.root, sign=new) == ["pub-acme"]
    wheelhouse.accept(case.root)
    assert verify(case.root) == []
    assert case.install() == "1.1.0"
    publish.build([driver(case.folder, "1.2.0")], to=case.root, sign=new)
    assert case.install() == "1.2.0"


def test_another_publishers_key_cannot_sign(case: Case):
    with pytest.raises(ConfigurationError, match="acme") as caught:
        publish.build([driver(case.folder, "1.1.0")], to=case.root, sign=case.key("other"))
    assert caught.value.code == "key-missing"
    assert caught.value.hint.startswith("--sign")


def test_two_publishers_at_once_both_arrive(case: Case):
    def work(name: str) -> None:
        for minor in range(1, 4):
            publish.build(
                [driver(case.folder, f"1.{minor}.0", name)],
                to=case.root,
                sign=case.key({"demo": "acme"}.get(name, name)),
            )

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, ["demo", "other"]))
    versions = {project.plugin: len(project.releases) for project in case.client().catalog().projects}
    assert versions == {"demo": 4, "other": 4}
    assert verify(case.root) == []


def test_a_library_is_vouched_for_by_the_author_whose_manifest_names_it(case: Case):
    """It has no signature of its own; a catalog that names other bytes, and the bytes themselves, change nothing."""
    library = wheelhouse.library().write(case.folder / "w")
    needy = wheelhouse.Driver("other", "2.0.0", dependencies=[wheelhouse.dependency(library)])
    needy.requires.append("tinylib")
    publish.build([library, needy.write(case.folder / "w")], to=case.root, sign=case.key("other"))
    evil = wheelhouse.library(code="VALUE = 'evil'\n").write(case.folder / "evil")
    good, bad = (wheelhouse.dependency(path)["sha256"] for path in (library, evil))
    catalog = (case.root / "targets/catalog").read_text().replace(good, bad)
    catalog = catalog.replace(f'"size": {library.stat().st_size}', f'"size": {evil.stat().st_size}')
    forge(case.root, {"catalog": catalog.encode()})
    (case.root / "targets/wheels/tinylib" / library.name).write_bytes(evil.read_bytes())
    case.place.registry = case.client()
    with pytest.raises(TrustError, match=r"tinylib-1\.0\.0"):
        case.place.install("other")
    assert case.place.store.active("other") is None


# time -----------------------------------------------------------------------------------------------------------------


def test_a_folder_ends_after_a_year_and_is_renewed(case: Case):
    publish.sign(case.root, now=NOW - timedelta(days=364), days=365)
    assert case.install() == "1.0.0"
    publish.sign(case.root, now=NOW - timedelta(days=366), days=364)
    with pytest.raises(TrustError) as caught:
        case.install()
    assert caught.value.code == "registry-stale"
    assert "registry sign" in caught.value.hint
    assert {fault.code for fault in verify(case.root)} == {"expired"}
    assert set(publish.sign(case.root)) >= {"timestamp", "snapshot", "index"}
    assert case.install() == "1.0.0"
    assert publish.sign(case.root) == []


def test_what_is_installed_goes_on_when_everything_has_expired(case: Case):
    case.install()
    publish.sign(case.root, days=7, now=NOW - timedelta(days=30))
    assert case.place.store.active("demo").version == "1.0.0"


def test_expired_signatures_are_accepted_where_policy_says_so_and_that_is_told(case: Case):
    told: list[str] = []
    publish.sign(case.root, days=7, now=NOW - timedelta(days=30))
    assert case.install(allow_stale=True, on_stale=told.append) == "1.0.0"
    assert told
    (case.root / "metadata/1.pub-acme.json").write_bytes((case.root / "metadata/1.pub-other.json").read_bytes())
    shutil.rmtree(case.folder / "cache")
    registry = case.client(allow_stale=True)
    with pytest.raises(TrustError):
        registry.manifest(registry.releases("demo")[0])


# rotation -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["root", "targets", "index", "advisories", "snapshot", "timestamp"])
def test_a_role_gets_new_keys_and_clients_follow_by_themselves(role: str, case: Case):
    assert case.install() == "1.0.0"
    before = set(Keys(beside(case.root)).signers())
    old = Repository(case.root, Keys(beside(case.root)))
    old_keys = old._authority(role).get_delegated_role(role).keyids
    publish.sign(case.root, rotate=[role])
    new = Repository(case.root, Keys(beside(case.root)))
    new_keys = new._authority(role).get_delegated_role(role).keyids
    assert not set(old_keys) & set(new_keys)
    assert set(new_keys).isdisjoint(before)
    case.release("1.1.0")
    assert case.install() == "1.1.0"
    assert verify(case.root) == []
    fresh = client(case.root, case.folder / "fresh", root=case.pin)
    assert [release.version for release in fresh.releases("demo")] == ["1.1.0", "1.0.0"]


def test_a_newer_root_may_be_the_one_to_start_from(case: Case):
    publish.sign(case.root, rotate=["root"])
    newest = Repository(case.root, Keys(beside(case.root))).root_digest
    assert newest != case.pin
    assert client(case.root, case.folder / "fresh", root=newest, first_use=False).types()


@pytest.mark.parametrize("signed_by", [(2, 0), (0, 3), (1, 3), (2, 1), (0, 0)])
def test_a_root_is_followed_only_with_enough_keys_of_its_predecessor_and_of_its_own(
    signed_by: tuple[int, int], case: Case
):
    """An operator who signs on top of a forged root would hand the registry over to its forger."""
    keys = Keys(beside(case.root))
    old = set(Repository(case.root, keys)._root.signed.roles["root"].keyids)
    publish.sign(case.root, rotate=["root"])
    path = case.root / "metadata/2.root.json"
    whole, root = path.read_bytes(), json.loads(path.read_bytes())
    both = [[each for each in root["signatures"] if (each["keyid"] in old) is before] for before in (True, False)]
    assert [len(each) for each in both] == [3, 3]
    assert Repository(case.root, keys)._root.signed.version == 2
    root["signatures"] = [each for some, count in zip(both, signed_by, strict=True) for each in some[:count]]
    path.write_text(json.dumps(root))
    with pytest.raises(TrustError, match=r"2\.root\.json is not signed with the keys of the previous root"):
        Repository(case.root, keys)
    with pytest.raises(TrustError):
        publish.build([driver(case.folder, "1.1.0")], to=case.root, sign=case.key("acme"))
    root["signatures"] = both[0][:2] + both[1][:2]
    path.write_text(json.dumps(root))
    assert Repository(case.root, keys)._root.signed.version == 2
    path.write_bytes(whole)
    assert verify(case.root) == []


def test_an_unknown_role_cannot_be_rotated(case: Case):
    with pytest.raises(ConfigurationError, match="'pub-acme'") as caught:
        publish.sign(case.root, rotate=["pub-acme"])
    own = {"root", "targets", "index", "advisories", "snapshot", "timestamp"}
    assert own <= set(re.findall(r"\w+", caught.value.hint))


# where trust begins ---------------------------------------------------------------------------------------------------


def test_without_a_root_there_is_no_trust(team: Path, tmp_path: Path):
    with pytest.raises(TrustError) as caught:
        client(team, tmp_path / "cache", first_use=False).types()
    assert caught.value.code == "root-unknown"


def test_the_first_root_met_is_kept(team: Path, tmp_path: Path):
    client(team, tmp_path / "cache").types()
    shutil.rmtree(team)
    shutil.rmtree(beside(team))
    wheelhouse.registry(team, [wheelhouse.Driver().write(tmp_path / "w")])
    with pytest.raises(TrustError):
        client(team, tmp_path / "cache").types()


def test_a_registry_that_does_not_begin_with_the_root_beside_its_keys_is_refused(team: Path, tmp_path: Path):
    (tmp_path / "first.json").write_bytes(b"{}")
    with pytest.raises(TrustError) as caught:
        read_roots(team / "metadata", tmp_path / "first.json")
    assert caught.value.code == "root-mismatch"


def test_a_spoilt_cache_mends_itself(case: Case):
    case.install()
    for file in (case.folder / "cache").rglob("*.json"):
        if file.name != "pinned.root.json":
            file.write_bytes(b"{")
    assert case.install() == "1.0.0"


REFRESH = """
import sys
from pathlib import Path
from dragoman_registry.sources import open_source
from dragoman_registry.trust.tuf_client import TufTrust
while not Path(sys.argv[3]).exists():
    pass
for _ in range(25):
    TufTrust(open_source(sys.argv[1]), where="r", cache=Path(sys.argv[2]), first_use=True).pin()
"""


@pytest.mark.slow
def test_many_processes_share_one_cache(team: Path, tmp_path: Path):
    command = [sys.executable, "-c", REFRESH, str(team), str(tmp_path / "cache"), str(tmp_path / "go")]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    (tmp_path / "go").touch()
    assert [one.communicate(timeout=55)[1] for one in running] == [""] * 4


def test_a_cache_that_cannot_be_written_is_named(team: Path, tmp_path: Path):
    (tmp_path / "cache").write_text("in the way")
    with pytest.raises(RegistryError) as caught:
        client(team, tmp_path / "cache").types()
    assert caught.value.code == "trust-cache"


# every file in turn ---------------------------------------------------------------------------------------------------


def test_a_byte_flipped_in_any_file_is_refused_or_does_no_harm(case: Case):
    good = case.install()
    [generation] = case.place.store.generations("demo")
    trees, refused = generation.trees, set()
    for file in sorted(path for path in case.root.rglob("*") if path.is_file()):
        data = file.read_bytes()
        file.write_bytes(data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :])
        shutil.rmtree(case.folder / "cache")
        shutil.rmtree(case.folder / "home/store/trees", ignore_errors=True)
        registry = case.client()
        try:
            project = registry.types()["demo"]
            [release] = registry.releases(project)
            manifest, wheel = registry.manifest(release), release.wheels[0]
            promised, content = registry.admitted(wheel, release), b"".join(registry.chunks(wheel))
            assert (release.version, manifest.id) == (good, "demo")
            if trust_attacks.wheelhouse.hashlib.sha256(content).hexdigest() != promised.sha256:
                raise IntegrityError("the wheel")  # as the installer does, whose own test that is
            assert promised.sha256 == generation.locked.wheels[0].sha256
        except RegistryError:
            refused.add(file.relative_to(case.root).as_posix())
        file.write_bytes(data)
    assert trees
    assert {"metadata/timestamp.json", "metadata/1.pub-acme.json", "metadata/1.root.json"} <= refused
    assert {path.rpartition(".")[2] for path in refused if path.startswith("targets/") and path.count("/") == 1} == {
        "catalog", "types", "advisories",
    }  # fmt: skip
    assert "targets/" + trust_attacks.WHEEL.format(version="1.0.0") in refused
    assert not [path for path in refused if "dragoman-other" in path or path.endswith(".html")]


@pytest.mark.slow
def test_a_byte_flipped_in_any_signed_file_is_found_by_verify(case: Case):
    assert verify(case.root) == []
    for file in sorted(path for path in case.root.rglob("*") if path.is_file()):
        name, data = file.relative_to(case.root).as_posix(), file.read_bytes()
        if name.startswith("metadata/") and name not in current(case.root):
            continue
        at = len(data) // 3
        file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert verify(case.root) or is_superseded(case.root, name), name
        file.write_bytes(data)


def current(root: Path) -> set[str]:
    repository = Repository(root, Keys(beside(root)))
    every = {name: metadata.signed.version for name, metadata in repository.everything()}
    return {f"metadata/{version}.{name}.json" for name, version in every.items()} | {"metadata/timestamp.json"}


def is_superseded(root: Path, name: str) -> bool:
    digest = name.removeprefix("targets/").partition(".")[0]
    repository = Repository(root, Keys(beside(root)))
    signed = {t.hashes["sha256"] for role in repository.names() for t in repository.role(role).signed.targets.values()}
    return len(digest) == 64 and digest not in signed


# the drivers that come with the host ----------------------------------------------------------------------------------


def test_a_process_that_reads_the_bundled_drivers_while_they_are_replaced_finds_the_old_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    place, states = runpy.run_path(str(wheelhouse.ROOT / "plugins/bundle.py"))["replace"], []

    def looking(work):
        def step(*paths, **options):
            states.append({path.name: path.read_text() for path in folder.iterdir()})
            done = work(*paths, **options)
            states.append({path.name: path.read_text() for path in folder.iterdir()})
            return done

        return step

    folder, old, new = tmp_path / "bundled", tmp_path / "old", tmp_path / "new"
    for draft in (old, new):
        draft.mkdir()
        for name in ("pins.json", "wheel"):
            (draft / name).write_text(draft.name)
    place(old, folder)
    for name in ("rmtree", "copytree", "move"):
        monkeypatch.setattr(shutil, name, looking(getattr(shutil, name)))
    place(new, folder)
    assert [state for state in states if state not in [{"pins.json": n, "wheel": n} for n in ("old", "new")]] == []
    assert [path.read_text() for path in folder.iterdir()] == ["new", "new"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundled", "new", "old"]


def test_the_bundled_drivers_are_pinned_and_a_changed_file_is_named(tmp_path: Path):
    pin = runpy.run_path(str(wheelhouse.ROOT / "plugins/bundle.py"))["pin"]
    folder = wheelhouse.registry(tmp_path / "bundled", [wheelhouse.Driver().write(tmp_path / "w")])
    publish.sign(folder, days=7, now=NOW - timedelta(days=5 * 365))  # it ended years ago
    pin(folder, label="development", root="0" * 64)
    registry = Registry("bundled", str(folder), trust=Pinned(folder))
    [release] = registry.releases("demo")
    assert registry.types() == {"demo": "dragoman-demo"}
    assert registry.manifest(release).id == "demo"
    assert registry.document("docs/dragoman-demo/1.0.0/README.md")
    assert registry.document("docs/dragoman-demo/1.0.0/CHANGELOG.md") is None
    reads = {
        "types": registry.types, "advisories": registry.catalog, "catalog": registry.catalog,
        f"{release.wheels[0].path}.driver.json": lambda: registry.manifest(release),
    }  # fmt: skip
    for name, read in reads.items():
        file = folder / "targets" / name
        data = file.read_bytes()
        file.write_bytes(data[:-1] + b" ")
        with pytest.raises(IntegrityError) as caught:
            read()
        assert str(file) in caught.value.message
        file.write_bytes(data)
    for damage in (b"{", b'{"\xb2":1}', b'{"label":"\xb2"}', b'{"a":' * 5_000):
        (folder / "pins.json").write_bytes(damage)
        with pytest.raises(TrustError, match=r"pins\.json"):
            Registry("bundled", str(folder), trust=Pinned(folder)).types()
    (folder / "pins.json").unlink()
    with pytest.raises(TrustError, match=r"pins\.json"):
        Registry("bundled", str(folder), trust=Pinned(folder)).types()


def test_the_framework_is_loaded_only_to_verify_signatures():
    modules = "dragoman_registry.index.registry_reader, dragoman.plugins.registries"
    program = f"import sys; import {modules}; print('tuf' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50)
    assert done.stdout.strip() == "False"


def test_the_owner_publishes_alone_without_a_question(tmp_path: Path):
    root = tmp_path / "mine"
    publish.build([driver(tmp_path)], to=root)
    publish.build([driver(tmp_path, "1.1.0"), driver(tmp_path, name="other")], to=root)
    repository = Repository(root, Keys(beside(root)))
    assert roles_of(repository.targets)["dragoman-other"] == "pub-owner"
    assert client(root, tmp_path / "cache").types() == {"demo": "dragoman-demo", "other": "dragoman-other"}
