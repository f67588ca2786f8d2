"""The rehearsal of docs/how-to/release.md: keys of a release are replaced, lost and stolen, and hosts follow.

The keys lie in the folder of a release, encrypted, with the registry that each release continues.
"""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from dragoman_api.errors import ConfigurationError, TrustError
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.verify import verify
from dragoman_registry.sources import open_source
from dragoman_registry.trust.keys import Keys
from dragoman_registry.trust.signers import Unlocking, unlocked_by
from dragoman_registry.trust.tuf_client import TufTrust
from dragoman_registry.trust.tuf_repository import Repository
from trust_attacks import NOW, driver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROLES = ["root", "targets", "index", "advisories", "snapshot", "timestamp"]


class Rehearsal:
    """A folder of keys with its registry, and a host that has its first root."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.keys, self.registry = folder, folder / "DIR", folder / "DIR/registry"
        self.release("1.0.0")
        self.pin = Repository(self.registry, Keys(self.keys)).root_digest

    def release(self, version: str) -> None:
        publish.build([driver(self.folder, version)], to=self.registry, keys=self.keys, now=NOW)

    def sign(self, *roles: str, years: int = 0) -> list[str]:
        later = NOW + timedelta(days=365 * years)
        return publish.sign(self.registry, keys=self.keys, rotate=roles, now=later)

    def versions(self, host: str = "host") -> list[str]:
        """What a host sees that followed until now; a new name is a new host, which knows the first root."""
        cache = self.folder / host
        trust = TufTrust(open_source(str(self.registry)), where="release", cache=cache, root=self.pin)
        registry = Registry("release", str(self.registry), trust=trust)
        return [release.version for release in registry.releases("demo")]

    def key_files(self, role: str) -> list[Path]:
        return sorted(self.keys.glob(f"{role}-*.pem"))


@pytest.fixture
def rehearsal(tmp_path: Path) -> Iterator[Rehearsal]:
    with unlocked_by(Unlocking(lambda *_, **__: "correct horse battery", encrypts=True)):
        made = Rehearsal(tmp_path)
        assert made.versions() == ["1.0.0"]
        yield made


@pytest.mark.slow
def test_every_key_of_a_release_is_replaced_and_hosts_with_the_first_root_follow(rehearsal: Rehearsal):
    for number, role in enumerate(ROLES, 1):
        old = rehearsal.key_files(role)
        rehearsal.sign(role)
        for path in old:
            path.unlink()
        rehearsal.release(f"1.{number}.0")
        assert rehearsal.versions()[0] == f"1.{number}.0", role
        assert rehearsal.versions(f"host-{role}")[0] == f"1.{number}.0", role
    assert verify(rehearsal.registry, keys=rehearsal.keys) == []


def test_a_lost_root_key_is_replaced_by_the_two_others_and_a_second_one_is_not(rehearsal: Rehearsal):
    rehearsal.key_files("root")[0].unlink()
    rehearsal.key_files("targets")[0].unlink()
    rehearsal.sign("root", "targets")
    rehearsal.release("1.1.0")
    assert rehearsal.versions()[0] == rehearsal.versions("new host")[0] == "1.1.0"
    valid = Repository(rehearsal.registry, Keys(rehearsal.keys))._root.signed.roles["root"].keyids
    for path in [path for path in rehearsal.key_files("root") if path.stem[-8:] in {k[:8] for k in valid}][:2]:
        path.unlink()
    before = {path: path.read_bytes() for path in rehearsal.keys.rglob("*.*") if path.is_file()}
    for role in ("root", "timestamp"):
        with pytest.raises(ConfigurationError, match="the keys of root are not in") as caught:
            rehearsal.sign(role)
        assert caught.value.code == "key-missing"
    after = {path: path.read_bytes() for path in rehearsal.keys.rglob("*.*") if path.is_file()}
    assert {path: data for path, data in after.items() if path.suffix != ".lock"} == before
    assert rehearsal.versions()[0] == "1.1.0"


def test_expired_metadata_is_refused_until_it_is_signed_again(rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch):
    publish.sign(rehearsal.registry, keys=rehearsal.keys, days=1, now=NOW - timedelta(days=4))
    with pytest.raises(TrustError) as caught:
        rehearsal.versions("new host")
    assert caught.value.code == "registry-stale"
    assert {fault.code for fault in verify(rehearsal.registry, keys=rehearsal.keys)} == {"expired"}
    assert {"snapshot", "timestamp"} <= set(rehearsal.sign())
    assert rehearsal.versions("new host") == ["1.0.0"]
    assert {"root", "targets"} <= set(rehearsal.sign(years=2))


@pytest.mark.parametrize("role", ["root", "targets"])
def test_what_a_thief_signs_with_a_replaced_key_is_refused(role: str, rehearsal: Rehearsal):
    thief, site = rehearsal.folder / "thief", rehearsal.registry
    shutil.copytree(rehearsal.keys, thief, ignore=shutil.ignore_patterns("registry"))
    rehearsal.sign(role)
    assert rehearsal.versions() == ["1.0.0"]
    newest = Repository(site, Keys(rehearsal.keys))
    stolen = {keyid: key for keyid, key in Keys(thief).signers().items() if key.path.name.startswith(role)}
    assert not stolen.keys() & set(newest._authority(role).get_delegated_role(role).keyids)
    number = newest._metadata(role).signed.version
    own = site / f"metadata/{number}.{role}.json"
    document = json.loads(own.read_bytes())
    forged = newest._metadata(role)
    forged.signatures.clear()
    forged.signed.version += role == "root"
    for signer in stolen.values():
        forged.sign(signer, append=True)
    target = site / f"metadata/{forged.signed.version}.{role}.json"
    target.write_bytes(forged.to_bytes())
    assert json.loads(target.read_bytes())["signatures"] != document["signatures"]
    for host in ("host", "new host"):
        if role == "targets" and host == "host":
            continue  # it has the signed bytes, and asks for no others
        with pytest.raises(TrustError):
            rehearsal.versions(host)
    with pytest.raises(TrustError):
        rehearsal.release("1.1.0")
