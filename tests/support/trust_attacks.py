"""Thefts and tricks against a signed registry, tried by a client that installs for real, from a disk and over HTTP.

`ATTACKS` is the list, `attempt` runs one, `table` writes what came of all of them for the page about trust; run as a
program it writes that page anew.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import wheelhouse
from dragoman.plugins.combined_catalog import offer_for_type
from dragoman_api.errors import DragomanError, WheelRejectedError
from dragoman_registry.files import write
from dragoman_registry.index.registry_reader import Memory, Registry
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.mirror import mirror
from dragoman_registry.sources import open_source
from dragoman_registry.trust.keys import Keys, beside, own_key
from dragoman_registry.trust.tuf_client import TufTrust
from dragoman_registry.trust.tuf_repository import Repository
from forging import forge
from installing import Place

PAGE = Path(__file__).parents[2] / "docs/explanation/trust.md"
BLOCK = re.compile(r"(<!-- begin attacks -->\n).*(<!-- end attacks -->)", re.DOTALL)
NOW = datetime.now(UTC).replace(microsecond=0)
WHEEL = "wheels/dragoman-demo/dragoman_demo-{version}-py3-none-any.whl"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@contextmanager
def served(root: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def driver(folder: Path, version: str = "1.0.0", name: str = "demo", **changes: object) -> Path:
    return wheelhouse.Driver(name, version, **changes).write(folder / f"wheels-{len(changes)}")


@cache
def template() -> Path:
    """Make a registry with two publishers, once: acme has 1.0.0 of demo there, other has other."""
    folder = Path(tempfile.mkdtemp(prefix="dragoman-trust-"))
    root = folder / "registry"
    publish.init(root, now=NOW)
    for name, project in (("acme", "demo"), ("other", "other")):
        key = own_key(folder / f"{name}.pem").with_suffix(".pub")
        publish.add_publisher(root, name, key=key, projects=[f"dragoman-{project}"], types=[project])
        publish.build([driver(folder, name=project)], to=root, sign=folder / f"{name}.pem")
    return folder


class Case:
    """A registry to be attacked, and a client that knows its root.

    Attributes:
        root: The registry.
        good: Digest of what acme published.
    """

    def __init__(self, folder: Path, *, http: bool) -> None:
        self.folder, self.root = folder, folder / "registry"
        wheelhouse.copy(template(), folder)
        self.pin = Repository(self.root, Keys(beside(self.root))).root_digest
        self.context = served(self.root) if http else nullcontext(str(self.root))
        self.location = ""
        self.place = Place(folder)

    def client(self, **options: object) -> Registry:
        trust = TufTrust(
            open_source(self.location), where="team", cache=self.folder / "cache", root=self.pin, **options
        )
        return Registry("team", self.location, trust=trust)

    def install(self, version: str | None = None, **options: object) -> str:
        """Install as opening a connection does: binding, release, manifest, wheel. Give the active version."""
        self.place.registry = self.client(**options)
        project = self.place.registry.types()["demo"]
        assert project == "dragoman-demo", project
        return self.place.install(project, pinned=version).version

    def key(self, name: str) -> Path:
        return self.folder / f"{name}.pem"

    def release(self, version: str, **changes: object) -> None:
        publish.build([driver(self.folder, version, **changes)], to=self.root, sign=self.key("acme"))

    def evil(self, version: str = "9.9.9", name: str = "demo", **changes: object) -> tuple[Path, dict[str, bytes]]:
        """Return an unwanted wheel and the files that accompany it."""
        wheel = driver(self.folder, version, name, summary="evil", **changes)
        report = publish.inspect(wheel)
        path = WHEEL.format(version=version).replace("demo", name)
        return wheel, {path: wheel.read_bytes(), f"{path}.driver.json": report.manifest_data}

    def catalog(self) -> dict:
        return json.loads((self.root / "targets/catalog").read_bytes())

    def listed(self, wheel: Path, *, like: str = "1.0.0") -> bytes:
        """Return a catalog that lists a wheel."""
        catalog, report = self.catalog(), publish.inspect(wheel)
        [project] = [each for each in catalog["projects"] if each["plugin"] == "demo"]
        [entry] = [each for each in project["releases"] if each["version"] == like]
        version = wheel.name.split("-")[1]
        file = entry["wheels"][0] | {"file": wheel.name, "size": report.size, "sha256": report.sha256}
        file["metadata_sha256"] = wheelhouse.hashlib.sha256(report.metadata).hexdigest()
        new = entry | {"version": version, "wheels": [file]}
        new["manifest_sha256"] = wheelhouse.hashlib.sha256(report.manifest_data).hexdigest()
        project["releases"] = [new, *(each for each in project["releases"] if each["version"] != version)]
        return json.dumps(catalog).encode()


@dataclass(frozen=True)
class Attack:
    """What an attacker holds and does, and what must come of it: an error's code, or the version that is installed."""

    name: str
    holds: str
    does: str
    ends: str
    run: Callable[[Case], str | None]


ATTACKS: list[Attack] = []
SAFE = {
    "1.0.0": "the version acme signed is installed",
    "1.1.0": "the newest version acme signed is installed",
    "1.0.0 of second": "the driver of the second is installed, and the first is named as left out",
}


def attack(holds: str, does: str, ends: str) -> Callable[[Callable[[Case], str | None]], Callable[[Case], str | None]]:
    def keep(run: Callable[[Case], str | None]) -> Callable[[Case], str | None]:
        ATTACKS.append(Attack(run.__name__, holds, does, ends, run))
        return run

    return keep


@attack("the web server", "replays the whole folder in an older state, to a client that saw a newer one", "rollback")
def replay(case: Case) -> str | None:
    old = shutil.copytree(case.root, case.folder / "old")
    case.release("1.1.0")
    assert case.install() == "1.1.0"
    swap(case.root, old)
    return case.install()


@attack("the web server", "serves an old state until its signatures expire: clients see no update", "registry-stale")
def freeze(case: Case) -> str | None:
    publish.sign(case.root, days=7, now=NOW - timedelta(days=30))
    return case.install()


@attack("the web server", "puts an old role beside a new snapshot", "trust-failed")
def mix_and_match(case: Case) -> str | None:
    case.release("1.1.0")
    (case.root / "metadata/1.pub-acme.json").replace(case.root / "metadata/2.pub-acme.json")
    return case.install()


@attack("the web server", "serves the old snapshot under the new timestamp", "trust-failed")
def mixed_snapshot(case: Case) -> str | None:
    snapshots = sorted((case.root / "metadata").glob("*.snapshot.json"), key=lambda file: int(file.name.split(".")[0]))
    shutil.copy(snapshots[-2], snapshots[-1])
    return case.install()


@attack("the web server", "sends a timestamp that does not end", "trust-failed")
def endless_timestamp(case: Case) -> str | None:
    with (case.root / "metadata/timestamp.json").open("ab") as file:
        file.write(b" " * (1 << 20))
    return case.install()


@attack("the web server", "sends a role that does not end", "trust-failed")
def endless_role(case: Case) -> str | None:
    with (case.root / "metadata/1.pub-acme.json").open("ab") as file:
        file.write(b" " * (1 << 20))
    return case.install()


@attack("the web server", "sends a wheel that does not end", "integrity-failed")
def endless_wheel(case: Case) -> str | None:
    with (case.root / "targets" / WHEEL.format(version="1.0.0")).open("ab") as file:
        file.write(bytes(1 << 20))
    return case.install()


@attack("the web server", "serves another registry, signed throughout with keys of its own", "root-mismatch")
def another_registry(case: Case) -> str | None:
    publish.build([case.evil()[0]], to=case.folder / "theirs")
    swap(case.root, case.folder / "theirs")
    return case.install()


@attack("the web server", "removes the signatures", "not-signed")
def unsigned(case: Case) -> str | None:
    shutil.rmtree(case.root / "metadata")
    return case.install()


@attack("another publisher's key, and the online keys", "signs a wheel of acme's project", "not-signed")
def wrong_delegation(case: Case) -> str | None:
    wheel, files = case.evil()
    forge(case.root, {"catalog": case.listed(wheel)})
    for path, data in files.items():
        write(case.root / "targets" / path, data)
    sign_as(case, "pub-other", files, case.key("other"))
    return case.install("9.9.9")


@attack("the online keys", "makes a role for acme with a key of their own", "trust-failed")
def forged_publisher(case: Case) -> str | None:
    wheel, files = case.evil()
    forge(case.root, {"catalog": case.listed(wheel)})
    for path, data in files.items():
        write(case.root / "targets" / path, data)
    sign_as(case, "pub-acme", files, own_key(case.folder / "thief.pem"))
    return case.install("9.9.9")


@attack("a key of acme's that the operator replaced, and the online keys", "signs a new version", "trust-failed")
def revoked_key(case: Case) -> str | None:
    new = own_key(case.folder / "new.pem")
    publish.add_publisher(case.root, "acme", key=new.with_suffix(".pub"), projects=["dragoman-demo"])
    publish.sign(case.root, sign=new)
    wheelhouse.accept(case.root)
    assert case.install() == "1.0.0"
    wheel, files = case.evil()
    forge(case.root, {"catalog": case.listed(wheel)})
    for path, data in files.items():
        write(case.root / "targets" / path, data)
    sign_as(case, "pub-acme", files, case.key("acme"))
    return case.install("9.9.9")


@attack("acme's key, and the online keys", "signs a version that also serves another project's type", "wheel-rejected")
def taken_type(case: Case) -> str | None:
    served = [{"name": name, "label": name} for name in ("demo", "other")]
    wheel, files = case.evil(types=served)
    forge(case.root, {"catalog": case.listed(wheel)})
    for path, data in files.items():
        write(case.root / "targets" / path, data)
    sign_as(case, "pub-acme", files, case.key("acme"))
    return case.install("9.9.9")


@attack("nothing; the client's clock is five years ahead", "waits", "registry-stale")
def clock_ahead(case: Case) -> str | None:
    publish.sign(case.root, days=364, now=NOW - timedelta(days=5 * 365))
    return case.install()


@attack("nothing; the client's clock is two years behind", "waits", "1.0.0")
def clock_behind(case: Case) -> str | None:
    publish.sign(case.root, days=366, now=NOW + timedelta(days=2 * 365))
    return case.install()


@attack("the online keys", "lists a version that acme never signed", "not-signed")
def stolen_index_adds(case: Case) -> str | None:
    wheel, files = case.evil()
    forge(case.root, {"catalog": case.listed(wheel)})
    for path, data in files.items():
        write(case.root / "targets" / path, data)
    return case.install("9.9.9")


@attack("the online keys", "lists other bytes for a version that acme signed", "trust-failed")
def stolen_index_changes(case: Case) -> str | None:
    wheel, files = case.evil("1.0.0")
    forge(case.root, {"catalog": case.listed(wheel)})
    for path, data in files.items():
        write(case.root / "targets" / path, data)
    return case.install()


@attack("the online keys", "says that a version asks for fewer permissions than its author declared", "wheel-rejected")
def stolen_index_lies(case: Case) -> str | None:
    catalog = case.catalog()
    for project in catalog["projects"]:
        project["releases"][0]["permissions"] = []
    forge(case.root, {"catalog": json.dumps(catalog).encode()})
    return case.install()


@attack("the index, snapshot and timestamp keys", "offers a quarantined version again", "release-incompatible")
def stolen_index_unquarantines(case: Case) -> str | None:
    before = (case.root / "targets/catalog").read_bytes()
    publish.mark(case.root, project="demo", version="1.0.0", status="quarantined", reason="steals")
    forge(case.root, {"catalog": before})
    return case.install()


@attack("the online keys", "hides a new version: clients stay where they are", "1.0.0")
def stolen_index_hides(case: Case) -> str | None:
    before = (case.root / "targets/catalog").read_bytes()
    case.release("1.1.0")
    forge(case.root, {"catalog": before})
    return case.install()


@attack("the advisories key and the online keys", "withholds a good version", "release-incompatible")
def stolen_advisories(case: Case) -> str | None:
    held = {"advisories_version": 1, "quarantined": {"dragoman-demo": {"1.0.0": "a lie"}}}
    forge(case.root, {"advisories": json.dumps(held).encode()})
    return case.install()


@attack("the snapshot and timestamp keys", "signs an old state again, for a client that saw a newer one", "rollback")
def stolen_timestamp(case: Case) -> str | None:
    case.release("1.1.0")
    assert case.install() == "1.1.0"
    repository = Repository(case.root, Keys(beside(case.root)))
    repository.copy("pub-acme", (case.root / "metadata/1.pub-acme.json").read_bytes())
    repository.commit()
    return case.install()


@attack("acme's key", "signs a bad new version, which the operator does not accept", "release-incompatible")
def stolen_publisher_waits(case: Case) -> str | None:
    hidden = beside(case.root).rename(case.folder / "away")
    publish.build([case.evil()[0]], to=case.root, sign=case.key("acme"))
    hidden.rename(beside(case.root))
    return case.install("9.9.9")


@attack("acme's key", "replaces the bytes of a version; the operator's accept refuses it", "1.0.0")
def stolen_publisher_replaces(case: Case) -> str | None:
    _, files = case.evil("1.0.0")
    folder = case.root / "targets"
    before = {path: (folder / path).read_bytes() for path in files}
    Repository(case.root, Keys(case.folder / "none", case.key("acme"))).submit("pub-acme", files)
    with pytest.raises(WheelRejectedError) as caught:
        wheelhouse.accept(case.root)
    assert {code for code, _ in caught.value.faults} == {"immutable"}
    assert before == {path: (folder / path).read_bytes() for path in files}
    return case.install()


@attack("acme's key, and the web server", "replaces the accepted role with another", "trust-failed")
def stolen_publisher_swaps(case: Case) -> str | None:
    _, files = case.evil("1.0.0")
    for path, data in files.items():
        write(case.root / "targets" / path, data)
    Repository(case.root, Keys(case.folder / "none", case.key("acme"))).submit("pub-acme", files)
    (case.root / "metadata/2.pub-acme.json").replace(case.root / "metadata/1.pub-acme.json")
    return case.install()


@attack("acme's key; the operator accepts, notices, and quarantines", "signs a bad version", "1.0.0")
def stolen_publisher_is_quarantined(case: Case) -> str | None:
    publish.build([case.evil()[0]], to=case.root, sign=case.key("acme"))
    publish.mark(case.root, project="demo", version="9.9.9", status="quarantined", reason="stolen key")
    return case.install()


@attack(
    "the targets key and the online keys; the operator rotates it",
    "binds acme's type to another project",
    "trust-failed",
)
def stolen_targets_after_rotation(case: Case) -> str | None:
    thief = shutil.copytree(beside(case.root), case.folder / "thief.keys")
    publish.sign(case.root, rotate=["targets"])
    assert case.install() == "1.0.0"
    kept = Keys(thief).signers()
    repository = Repository(case.root, Keys(beside(case.root)))
    keyids = repository._root.signed.roles["targets"].keyids
    types = {"types_version": 1, "types": {"demo": "dragoman-other", "other": "dragoman-other"}}
    repository.vouch("targets", "types", json.dumps(types).encode())
    signers = repository.keys.signers()
    [old] = [s for s in kept.values() if s.public_key.keyid not in signers] or [next(iter(kept.values()))]
    repository._signers = lambda name: [old] if name == "targets" else Repository._signers(repository, name)
    for keyid in keyids:
        signers.pop(keyid)
    repository.expect = lambda *_: None
    repository.commit()
    return case.install()


@attack("one of the three root keys, and the web server", "serves a root with keys of their own", "trust-failed")
def one_root_key(case: Case) -> str | None:
    repository = Repository(case.root, Keys(beside(case.root)))
    stolen = min(repository._root.signed.roles["root"].keyids)
    repository.rotate("targets")
    repository.commit()
    path = case.root / "metadata/2.root.json"
    root = json.loads(path.read_bytes())
    root["signatures"] = [each for each in root["signatures"] if each["keyid"] == stolen]
    path.write_text(json.dumps(root))
    return case.install()


MARKUP = '"><script>alert(1)</script>'


def mirrored(case: Case, left_out: int) -> str | None:
    """Copy the registry, look for files outside of the copy and for markup in it, and install from it."""
    top = case.folder.parent
    trust = TufTrust(open_source(case.location), where="team", cache=case.folder / "cache-2", root=case.pin)
    before, target = set(top.rglob("*")), case.folder / "copy" / "mirror"
    done = mirror(case.location, to=target, trust=trust)
    own = (case.folder / "copy", case.folder / "cache-2")
    assert not [
        path for path in set(top.rglob("*")) - before if not path.is_relative_to(own[0]) | path.is_relative_to(own[1])
    ]
    assert len(done.left_out) == left_out, done.left_out
    for page in target.rglob("*.html"):
        assert "<script>alert" not in page.read_text(), page
        assert "Content-Security-Policy" in page.read_text(), page
    assert case.install() == "1.0.0"
    case.location, case.pin, case.place = str(target), done.root, Place(case.folder / "other")
    shutil.rmtree(case.folder / "cache")
    return case.install()


@attack("the online keys", "uses paths and markup as names of drivers; clients and mirrors leave them out", "1.0.0")
def names_are_paths(case: Case) -> str | None:
    catalog = case.catalog()
    [other] = [project for project in catalog["projects"] if project["plugin"] == "other"]
    bad = [other | change for change in ({"project": "../../x"}, {"plugin": MARKUP}, {"project": "..\\x"})]
    forge(case.root, {"catalog": json.dumps(catalog | {"projects": [*bad, *catalog["projects"]]}).encode()})
    return mirrored(case, len(bad))


@attack("the online keys", "lists acme's wheel under a name that is a path", "index-invalid")
def wheel_is_a_path(case: Case) -> str | None:
    catalog = case.catalog()
    for project in catalog["projects"]:
        project["releases"][0]["wheels"][0]["file"] = "../../x-1.0.0-py3-none-any.whl"
    forge(case.root, {"catalog": json.dumps(catalog).encode()})
    return case.install()


@attack(
    "acme's key, and the online keys", "signs for paths that lead out of the folder; a mirror leaves them out", "1.0.0"
)
def targets_are_paths(case: Case) -> str | None:
    paths = ["wheels/dragoman-demo/..", "wheels/dragoman-demo/..\\x", "docs/dragoman-demo/../.."]
    sign_as(case, "pub-acme", dict.fromkeys(paths, b"x"), case.key("acme"))
    return mirrored(case, len(paths))


@attack(
    "the targets key and the online keys",
    "uses paths as names of a role and of a database type; both are left out",
    "1.0.0",
)
def roles_are_paths(case: Case) -> str | None:
    repository = Repository(case.root, Keys(beside(case.root)))
    repository.delegate("../../x", repository.keys.new("x").public_key, ["wheels/x/*"])
    repository.commit()
    types = {"demo": "dragoman-demo", "../../x": "dragoman-other"}
    forge(case.root, {"types": json.dumps({"types_version": 1, "types": types}).encode()})
    return mirrored(case, 2)


@attack("the online keys", "puts markup into every text of the catalog; the pages show it as text", "1.0.0")
def texts_are_markup(case: Case) -> str | None:
    catalog = case.catalog()
    for project in catalog["projects"]:
        project |= {"label": MARKUP, "summary": MARKUP, "capabilities": [MARKUP], "excluded_surfaces": [MARKUP]}
        for release in project["releases"]:
            release |= {"deprecated": MARKUP, "replaced_by": MARKUP}
            release["wheels"][0] |= {"uploaded": MARKUP, "summary": MARKUP}
    forge(case.root, {"catalog": json.dumps(catalog).encode()})
    return mirrored(case, 0)


def second_of_two(case: Case, kind: str, *, seen: bool) -> str:
    """Break the signatures of the first registry, and open a type that the second has too: give what is installed."""
    memory = Memory(case.folder / "cache/claims.json")
    first = Registry("team", case.location, trust=case.client()._trust, memory=memory)
    if seen:
        first.types()
    theirs = [driver(case.folder, "1.0.0", name=name, summary="evil") for name in ("demo", "fresh")]
    publish.build(theirs, to=case.folder / "second")
    (case.root / "metadata/timestamp.json").write_bytes(b"{}")
    registries = [
        Registry("team", case.location, trust=case.client()._trust, memory=memory),
        Registry("second", str(case.folder / "second"), trust=wheelhouse.TrustedPath()),
    ]
    offer = offer_for_type(registries, kind)
    assert offer is not None
    return f"{offer.project.releases[0].version} of {offer.registry.name}"


FIRST = "the web server of the first of two registries"


@attack(FIRST, "breaks its signatures: a type that it claims would come from the second", "trust-failed")
def first_of_two(case: Case) -> str | None:
    return second_of_two(case, "demo", seen=True)


@attack(FIRST, "breaks its signatures before this machine ever trusted it: it may claim any type", "trust-failed")
def first_never_seen(case: Case) -> str | None:
    return second_of_two(case, "fresh", seen=False)


@attack(FIRST, "breaks its signatures: a type that only the second claims is opened", "1.0.0 of second")
def not_of_the_first(case: Case) -> str | None:
    return second_of_two(case, "fresh", seen=True)


def swap(root: Path, other: Path) -> None:
    """Serve one folder in place of another."""
    shutil.rmtree(root)
    shutil.copytree(other, root)


def sign_as(case: Case, role: str, files: dict[str, bytes], key: Path) -> None:
    """Sign files in a publisher's role with any key, and have the online keys name it."""
    repository = Repository(case.root, Keys(beside(case.root)))
    metadata = repository.role(role)
    for path, data in files.items():
        repository.vouch(role, path, data)
    repository._changed.discard(role)
    metadata.signed.version += 1
    metadata.signatures.clear()
    metadata.sign(Keys(case.folder / "none", key).signers().popitem()[1])
    data = metadata.to_bytes()
    write(case.root / f"metadata/{metadata.signed.version}.{role}.json", data)
    repository._note(role, metadata, data)
    repository._changed.add("snapshot")
    repository.commit()


def attempt(one: Attack, folder: Path, *, http: bool) -> str:
    """Run an attack; return the code of the error it ends with, or the version that is installed."""
    case = Case(folder, http=http)
    with case.context as case.location:
        try:
            ended = str(one.run(case))
        except DragomanError as error:
            ended = error.code
    for generation in case.place.store.generations("demo"):
        assert not case.place.store.verify(generation), generation
        assert '"evil"' not in (generation.trees[0] / "dragoman_demo/driver.json").read_text(), (
            "other code was installed"
        )
    return ended


def table() -> str:
    """Write what came of every attack."""
    lines = ["| the attacker holds | and | result |", "| --- | --- | --- |"]
    with tempfile.TemporaryDirectory() as temporary:
        for one in ATTACKS:
            ends = {attempt(one, Path(temporary) / f"{one.name}-{http}", http=http) for http in (False, True)}
            lines.append(
                f"| {one.holds} | {one.does} | {' or '.join(SAFE.get(end) or f'refused: `{end}`' for end in ends)} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(BLOCK.sub(lambda found: found[1] + "\n" + table() + "\n" + found[2], PAGE.read_text()))
