"""Where trust in a configured registry begins, and what the host does when its signatures end."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import wheelhouse
from dragoman.folders import find_paths
from dragoman.plugins import registries as module
from dragoman.plugins.combined_catalog import read_offers
from dragoman.plugins.install_steps import PluginInstaller
from dragoman.plugins.registries import BUNDLED, Registries, Signed
from dragoman_api.errors import IntegrityError, TrustError
from dragoman_registry.client.generation import Origin
from dragoman_registry.publisher import publish
from dragoman_registry.trust.keys import Keys, beside
from dragoman_registry.trust.trust import Pinned, Publisher
from dragoman_registry.trust.tuf_repository import Repository
from trust_attacks import NOW, served

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def team(tmp_path: Path) -> Path:
    return wheelhouse.registry(tmp_path / "team", [wheelhouse.Driver().write(tmp_path / "wheels")])


@pytest.fixture
def registries() -> Registries:
    return Registries(find_paths())


def digest(team: Path) -> str:
    return Repository(team, Keys(beside(team))).root_digest


def test_the_root_of_a_folder_is_taken_shown_and_kept(team: Path, registries: Registries):
    entry = registries.add(str(team))
    assert entry.root == digest(team)
    assert f'root = "{entry.root}"' in find_paths().settings.read_text()
    assert registries.open()[0].types() == {"demo": "dragoman-demo"}


def test_an_address_on_the_web_needs_its_root(team: Path, registries: Registries):
    with served(team) as url:
        with pytest.raises(TrustError) as caught:
            registries.add(url, name="web")
        assert caught.value.code == "root-unknown"
        assert "--root SHA256" in caught.value.hint
        for spelled in (url.replace("http", "HTTP"), f" {url}", url.replace("http", "ht\ttp")):
            with pytest.raises(TrustError) as caught:
                registries.add(spelled, name="web")
            assert caught.value.code == "root-unknown"
        with pytest.raises(TrustError) as caught:
            registries.add(url, name="web", root="0" * 64)
        assert caught.value.code == "root-mismatch"
        assert [entry.name for entry in registries.list()][:-1] == []
        assert registries.add(url, name="web", root=digest(team)).root == digest(team)
        assert registries.open()[0].types() == {"demo": "dragoman-demo"}


def test_an_entry_somebody_wrote_for_the_web_without_a_root_is_not_read(team: Path, registries: Registries):
    with served(team) as url:
        find_paths().config.mkdir(parents=True)
        find_paths().settings.write_text(f'[[registries]]\nname = "web"\nlocation = "{url}"\n')
        with pytest.raises(TrustError) as caught:
            registries.open()[0].types()
    assert caught.value.code == "root-unknown"


def test_every_registry_that_the_host_opens_is_signed_or_pinned(team: Path, registries: Registries):
    registries.add(str(team))
    kinds = {registry.name: type(registry._trust) for registry in registries.open()}
    assert kinds == {"team": Signed, BUNDLED: Pinned}


def test_a_registry_that_nobody_signed_is_not_added(tmp_path: Path, registries: Registries):
    (tmp_path / "old/targets").mkdir(parents=True)
    (tmp_path / "old/targets/catalog").write_text('{"catalog_version": 1}')
    with pytest.raises(TrustError) as caught:
        registries.add(str(tmp_path / "old"))
    assert caught.value.code == "not-signed"
    assert caught.value.hint.endswith("dragoman registry build WHEELS --to FOLDER")


def test_expired_signatures_are_accepted_by_policy_alone_and_each_time_noted(team: Path, registries: Registries):
    registries.add(str(team))
    publish.sign(team, days=7, now=NOW - timedelta(days=30))
    with pytest.raises(TrustError) as caught:
        registries.open()[0].catalog()
    assert caught.value.code == "registry-stale"
    log = find_paths().state / "audit.ndjson"
    assert not log.exists()
    settings = find_paths().settings
    settings.write_text("allow_stale = true\n" + settings.read_text())
    assert registries.open()[0].types() == {"demo": "dragoman-demo"}
    [line] = map(json.loads, log.read_text().splitlines())
    assert (line["registry"], line["accepted"]) == ("team", "expired signatures")


def test_bundled_drivers_need_no_framework_and_a_changed_file_is_named(registries: Registries, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tuf", "securesystemslib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tuf", None)
    [bundled] = registries.open()
    [release] = bundled.releases("elasticsearch")
    assert bundled.manifest(release).id == "elasticsearch"
    wheel = release.wheels[0]
    assert bundled.admitted(wheel, release).sha256 == wheel.sha256
    pins = bundled._trust.pins
    path = f"{wheel.path}.driver.json"
    pins.files[path] = (pins.files[path][0], "0" * 64)
    with pytest.raises(TrustError, match=r"driver\.json"):
        bundled.manifest(release)
    pins.files["types"] = (pins.files["types"][0], "0" * 64)
    with pytest.raises(IntegrityError, match="targets/types was changed"):
        bundled.types()


def test_config_is_read_as_often_for_many_registries_as_for_one(monkeypatch: pytest.MonkeyPatch):
    paths, read, counts = find_paths(), module.read_settings, []
    paths.settings.parent.mkdir(parents=True, exist_ok=True)

    def counted(each):
        counts[-1] += 1
        return read(each)

    monkeypatch.setattr(module, "read_settings", counted)
    for number in (1, 40):
        entries = (f'[[registries]]\nname = "r{n}"\nlocation = "/none/{n}"\n' for n in range(number))
        paths.settings.write_text("".join(entries))
        counts.append(0)
        _, failures = read_offers(Registries(paths).open())
        assert len(failures) == number
    assert counts[0] == counts[1]


ACME = Publisher(name="acme", keys=("k1",))
SIGNED = Origin(asked="by name", publisher="acme", keys=("k1", "k2"))


def installed_by(origin: Origin, *, trusted: bool = True, linked: bool = False) -> SimpleNamespace:
    """Return what is asked of an installed driver."""
    return SimpleNamespace(origin=origin, trusted=trusted, linked=linked)


def installer(*generations: SimpleNamespace) -> PluginInstaller:
    """Return an installer into a store with some drivers."""
    store = SimpleNamespace(installed=lambda: [*generations])
    return PluginInstaller(store, cache=None, hooks=None, emit=None, policy="auto", confirm=None)  # type: ignore[arg-type]


def offer_of(publisher: Publisher | None) -> SimpleNamespace:
    """Return an offer whose signer is known; None if the host vouches for it."""
    registry = SimpleNamespace(publisher={"dragoman-demo": publisher}.get)
    return SimpleNamespace(registry=registry, project=SimpleNamespace(project="dragoman-demo"))


@pytest.mark.parametrize(
    ("publisher", "origin", "same"),
    [
        (ACME, SIGNED, True),
        (Publisher(name="acme", keys=("k2", "k1")), SIGNED, True),
        (Publisher(name="acme", keys=("k1", "k3")), SIGNED, False),  # one of several keys is new
        (Publisher(name="acme", keys=("k3",)), SIGNED, False),
        (Publisher(name="mallory", keys=("k1",)), SIGNED, False),
        (ACME, Origin(asked="by name", publisher="acme"), False),
        (ACME, Origin(asked="by name"), False),
        (ACME, Origin(asked="by name", publisher="mallory", keys=("k1",)), False),
    ],
)
def test_a_publisher_is_its_name_and_all_of_its_keys(publisher: Publisher, origin: Origin, same: bool):
    other = installed_by(Origin(asked="by name", publisher="other", keys=("k9",)))
    offer = offer_of(publisher)
    assert installer(other, installed_by(origin)).knows(offer) is same
    said = installer().new_publisher(installed_by(origin), offer)
    assert said == ("" if same else f"{publisher.name} (key {', '.join(publisher.keys)})")


def test_only_what_a_person_trusted_makes_its_publisher_known():
    offer = offer_of(ACME)
    for generation in (installed_by(SIGNED, trusted=False), installed_by(SIGNED, linked=True)):
        assert not installer(generation).knows(offer)
        assert installer(generation, installed_by(SIGNED)).knows(offer)
    assert not installer().knows(offer)
    assert not installer(installed_by(SIGNED), installed_by(Origin(asked="by name"))).knows(offer_of(None))
    assert installer().new_publisher(installed_by(SIGNED), offer_of(None)) == ""
    assert installer().new_publisher(installed_by(Origin()), offer) == ""  # no signer was recorded
