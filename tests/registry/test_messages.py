"""The words of errors and faults, one line each in `messages.txt`; the other tests compare codes and values.

`DRAGOMAN_GOLDEN=write` writes the file anew. The words about wheels stand in docs/reference/hostile-wheels.md, those
about manifests in `manifest_messages.txt`.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

import wheelhouse
from dragoman_api.errors import DragomanError
from dragoman_api.installation import upgrade_command
from dragoman_registry import names
from dragoman_registry.client import lockfile
from dragoman_registry.client.generation import Links
from dragoman_registry.client.install_decision import Inputs, decide
from dragoman_registry.client.resolver import Resolution, SkippedRelease, resolve
from dragoman_registry.files import below
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.inbox import Inbox
from dragoman_registry.publisher.verify import verify
from dragoman_registry.sources import BundleSource, open_source, read
from dragoman_registry.trust.keys import Keys, beside, own_key
from dragoman_registry.trust.signers import KeyFile, read_public
from dragoman_registry.trust.trust import Pinned
from dragoman_registry.trust.tuf_client import TufTrust
from dragoman_registry.trust.tuf_repository import Repository
from dragoman_registry.wheels.host_environment import Host
from dragoman_registry.wheels.manifest import decode
from installing import Place
from trust_attacks import NOW, Case, driver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


FOREIGN = re.compile(
    r"(Input (data|should) |file is not a database|Failed to deserialize|File is not a zip|New timestamp version"
    r"|timestamp\.json is expired)[^|]*(?=$| \|)"
)
"""What msgspec, pydantic, SQLite, zipfile and The Update Framework say."""


def plain(text: str, folder: Path) -> str:
    """Replace what differs from run to run, and what libraries say."""
    text = ascii(text.replace(f"{folder}/home", "HOME").replace(str(folder), "FOLDER").replace("\n", " "))[1:-1]
    text = re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", text)
    text = FOREIGN.sub("...", re.sub(r"\d+ (bytes|were)", r"N \1", text))
    return re.sub(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?( UTC|Z|\+00:00)?)?", "DATE", text)


def said(work: Callable[[], object]) -> Iterator[str]:
    with pytest.raises(DragomanError) as caught:
        work()
    error = caught.value
    faults = getattr(error, "faults", ())
    yield from (f"{code} | {reason}" for code, reason in faults)
    if not faults:
        yield f"{error.code} | {error.message}" + (f" | try: {error.hint}" if error.hint else "")


def of_files(folder: Path) -> Iterator[Callable[[], object]]:
    (folder / "in").mkdir()
    (folder / "in/link").symlink_to(folder, target_is_directory=True)
    for name in ("link/x", "../x", "a?b", "nul", "x" * 256):
        yield lambda name=name: below(folder / "in", name)
    for kind in (names.PROJECT, names.PLUGIN, names.TYPE, names.PUBLISHER, names.ROLE, names.VERSION):
        yield lambda kind=kind: kind.check("../x")
    for kind in (names.WHEEL, names.DIGEST, names.TARGET):
        yield lambda kind=kind: kind.check("../x")


def of_sources(folder: Path) -> Iterator[Callable[[], object]]:
    (folder / "there/deep").mkdir(parents=True)
    (folder / "there/file").write_bytes(bytes(100))
    (folder / "broken.zip").write_bytes(b"not a zip")
    for location in ("ftp://example.org", "http://me:secret@127.0.0.1:9/", f"{folder}/gone"):
        yield lambda location=location: read(open_source(location), "x", limit=9)
    for path in ("../x", "gone", "file"):
        yield lambda path=path: read(open_source(str(folder / "there")), path, limit=9)
    yield lambda: read(BundleSource(folder / "broken.zip"), "x", limit=9)
    yield lambda: read(BundleSource(folder / "gone.zip"), "x", limit=9)


def of_keys(folder: Path) -> Iterator[Callable[[], object]]:
    exposed = own_key(folder / "exposed.pem")
    exposed.chmod(0o644)
    yield lambda: KeyFile(exposed)
    yield lambda: KeyFile(folder / "gone.pem")
    yield lambda: read_public(folder / "gone.pub")
    yield lambda: own_key(exposed, new=True)
    yield lambda: own_key(folder / "mine.pub")


def of_publishing(folder: Path) -> Iterator[Callable[[], object]]:
    case = Case(folder / "case", http=False)
    root, public = case.root, own_key(folder / "new.pem").with_suffix(".pub")
    (folder / "other").mkdir()
    (folder / "other/note").write_text("mine")
    (folder / "unsigned/targets/wheels").mkdir(parents=True)
    yield lambda: publish.init(folder / "other")
    yield lambda: publish.init(folder / "new", keys=folder / "new/keys")
    yield lambda: publish.mark(root, project="demo", version="1.0.0", status="yanked")
    yield lambda: publish.mark(root, project="demo", version="9.9", status="yanked", reason="x")
    yield lambda: publish.add_publisher(root, "eve", key=public, projects=[])
    yield lambda: publish.add_publisher(root, "eve", key=public, projects=["dragoman-demo"])
    yield lambda: publish.add_publisher(root, "eve", key=public, projects=["x"], types=["demo"])
    yield lambda: publish.sign(root, rotate=["pub-acme"])
    yield lambda: publish.build([driver(folder, "1.1.0")], to=root, sign=case.key("other"))
    yield lambda: publish.build([driver(folder, summary="other")], to=root, sign=case.key("acme"))
    yield lambda: publish.build([driver(folder, name="third")], to=root, sign=case.key("acme"))
    taken = wheelhouse.Driver("other", "2.0.0", types=[{"name": "demo", "label": "Demo"}]).write(folder / "taken")
    yield lambda: publish.build([taken], to=root, sign=case.key("other"))
    library = wheelhouse.dependency(wheelhouse.library().write(folder / "library"))
    needy = wheelhouse.Driver("demo", "2.0.0", dependencies=[library]).write(folder / "needy")
    yield lambda: publish.build([needy], to=root, sign=case.key("acme"))
    yield lambda: publish.published(folder / "unsigned")
    yield lambda: Inbox(root).drop("x-1-py3-none-any.whl")
    submission = Repository(root, Keys(beside(root), case.key("other")))
    submission.submit("pub-other", {"wheels/dragoman-demo/x": b"x", "wheels/dragoman-other/..": b"x"})
    yield lambda: wheelhouse.accept(root)
    beside(root).rename(folder / "away")
    yield lambda: wheelhouse.accept(root)


def of_trust(folder: Path) -> Iterator[Callable[[], object]]:
    case = Case(folder / "case", http=False)
    case.location = str(case.root)

    def client(where: Path, **options: object) -> Registry:
        cache = folder / "cache" / str(len(options)) / where.name
        return Registry(
            "r", str(where), trust=TufTrust(open_source(str(where)), where=str(where), cache=cache, **options)
        )

    (folder / "empty").mkdir()
    yield lambda: client(case.root).types()
    yield lambda: client(case.root, root="0" * 64).types()
    yield lambda: client(folder / "empty", first_use=True).types()
    yield lambda: Registry("r", str(folder), trust=Pinned(folder)).types()
    (folder / "pins.json").write_text('{"label": "release", "root": "", "files": {}}')
    yield lambda: Registry("r", str(folder), trust=Pinned(folder)).types()
    (folder / "cache/1").mkdir(parents=True, exist_ok=True)
    (folder / "cache/1/file").write_text("in the way")
    shutil.copytree(case.root, folder / "file")
    yield lambda: client(folder / "file", first_use=True).types()
    yield lambda: case.client().project("nothing")
    shutil.copytree(case.root, folder / "before")
    case.release("1.1.0")
    case.client().types()
    case.location = str(folder / "before")
    yield lambda: case.client().types()
    case.location = str(case.root)
    publish.sign(case.root, days=7, now=NOW - timedelta(days=30))
    yield lambda: case.client().types()
    (case.root / "metadata/timestamp.json").write_bytes(b"{")
    yield lambda: case.client().types()
    yield lambda: Repository(case.root, Keys(beside(case.root)))


def of_index(folder: Path) -> Iterator[Callable[[], object]]:
    root = wheelhouse.registry(folder / "team", [wheelhouse.Driver().write(folder)])
    registry, catalog = Registry("team", str(root), trust=wheelhouse.TrustedPath()), root / "targets/catalog"
    [release] = registry.releases("demo")
    (root / f"targets/{release.wheels[0].path}.driver.json").write_bytes(b"{}")
    yield lambda: registry.manifest(release)
    for changes in (
        {"wheels": []}, {"host_api": "soon"}, {"project": "x"}, {"permissions": ["A" * 4097]}, {"version": "2.0.0"},
    ):  # fmt: skip
        value = json.loads(catalog.read_bytes())
        value["projects"][0]["releases"][0] |= changes
        (folder / "wrong").mkdir(exist_ok=True)
        shutil.copytree(root / "targets", folder / "wrong/targets", dirs_exist_ok=True)
        (folder / "wrong/targets/catalog").write_text(json.dumps(value))
        yield lambda: Registry("wrong", str(folder / "wrong"), trust=wheelhouse.TrustedPath()).catalog()
    (folder / "wrong/targets/types").write_text('{"types_version": 1, "types": ["x"]}')
    yield lambda: Registry("wrong", str(folder / "wrong"), trust=wheelhouse.TrustedPath()).types()


def of_state(folder: Path) -> Iterator[Callable[[], object]]:
    place = Place(folder, [wheelhouse.Driver(version=version).write(folder / "w") for version in ("1.0.0", "2.0.0")])
    store, file = place.store, folder / "home/state.db"
    yield lambda: store.remove("demo")
    old = place.install(pinned="1.0.0")
    yield lambda: store.rollback("demo")
    yield lambda: store.rollback("demo", version="9.9")
    squatter = wheelhouse.Driver("squat", types=[{"name": "demo", "label": "Demo"}]).write(folder / "w2")
    other = Place(folder / "other", [squatter])
    other.store = store
    yield lambda: other.install("squat")
    place.install()
    (old.trees[0] / "dragoman_demo/driver.py").chmod(0o644)
    (old.trees[0] / "dragoman_demo/driver.py").write_text("evil")
    yield lambda: store.rollback("demo")
    manifest = decode(json.dumps(wheelhouse.manifest("linked")).encode())
    links = Links(folder / "links.json")
    links.add(manifest, version="1.0.0", trees=[folder / "gone"])
    yield lambda: links.find("linked")
    yield lambda: links.remove("demo")
    (folder / "links.json").write_text("{")
    yield lambda: links.list()
    store.lock_file.write_text("{")
    yield lambda: lockfile.read(store.lock_file)
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE generations SET manifest = '{'")
        database.commit()
        yield lambda: store.active("demo")
        database.execute("PRAGMA user_version = 99")
        yield lambda: store.active("demo")
    file.write_bytes(b"not a database")
    yield lambda: store.active("demo")
    wheel = folder / "registry/targets/wheels/dragoman-demo/dragoman_demo-2.0.0-py3-none-any.whl"
    store.lock_file.unlink()
    file.unlink()
    remove(folder / "home/store")
    data = wheel.read_bytes()
    for spoilt in (data[:-1], data + b"x", data[:-1] + b"x"):
        wheel.write_bytes(spoilt)
        remove(folder / "home")
        yield lambda: place.install()


def remove(folder: Path) -> None:
    """Remove a folder with its read-only trees."""
    for each in (folder, *folder.rglob("*")):
        if each.is_dir():
            each.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def of_decisions() -> Iterator[str]:
    """The reasons of a choice and of a decision, which no error carries alone."""
    place = Host(api="1.4", python="3.11.9", tags=("py3-none-any",))
    from dragoman_registry.index.catalog import Release
    from dragoman_registry.wheels.wheel_file import WheelFile

    wheel = WheelFile(file="dragoman_demo-1.0.0-py3-none-any.whl", size=1, sha256="0" * 64)
    fields = {"plugin": "demo", "project": "dragoman-demo", "host_api": "~=1.0", "manifest_sha256": "0" * 64}
    release = Release(version="1.0.0", permissions=("net:connection",), wheels=(wheel,), **fields)
    locked = lockfile.lock_release(release)
    foreign = replace(wheel, file="dragoman_demo-1.0.0-cp311-cp311-win_amd64.whl")
    for other, options in (
        (replace(release, host_api="~=2.0"), {}),
        (replace(release, version="2.0rc1"), {}),
        (replace(release, version="2.0"), {"pinned": "1.0"}),
        (replace(release, version="2.0"), {"locked": locked}),
        (replace(release, wheels=(replace(wheel, sha256="1" * 64),)), {"locked": locked}),
        (replace(release, wheels=(replace(wheel, requires_python=">=4"),)), {}),
        (replace(release, wheels=(foreign,)), {}),
    ):
        [skipped] = resolve([other], host=place, **options).skipped
        yield f"{skipped.code} | {skipped.reason}"
    yield from said(lambda: Resolution(release=None).expect("demo"))
    fitting = Resolution(release=release)
    greedy = Resolution(release=replace(release, permissions=("net:host=example.org",)))
    misfit = Resolution(release=None, skipped=(SkippedRelease("1.0.0", "host-api", "too new"),))
    other_bytes = Resolution(release=None, skipped=(SkippedRelease("1.0.0", "lock-mismatch", "its files differ"),))
    new = Inputs(type="demo", plugin="demo", choice=fitting)
    old = Inputs(type="demo", plugin="demo", installed="1.0.0")
    for inputs in (
        Inputs(type="demo"), new, old, replace(old, disabled=True), replace(old, damaged="x", choice=fitting),
        replace(old, compatible=False, choice=fitting), replace(old, quarantined="steals"),
        replace(old, quarantined="steals", safe="1.0.1"), replace(new, choice=misfit),
        replace(new, choice=other_bytes),
        replace(new, choice=Resolution(release=None)), replace(new, choice=None, unreachable="http://r"),
        replace(new, expired="/team"), replace(new, choice=greedy), replace(new, new_publisher="eve"),
        replace(new, sandbox="partial: no Landlock"), replace(old, sandbox="partial", policy="require"),
        replace(new, excluded_surfaces=("phone",), surface="phone"),
    ):  # fmt: skip
        decision = decide(inputs)
        yield f"{decision.outcome} | {decision.reason}" + (f" | try: {decision.action}" if decision.action else "")


def of_verify(folder: Path) -> Iterator[str]:
    root = wheelhouse.registry(folder / "team", [wheelhouse.Driver().write(folder)])
    publish.sign(root, days=7, now=NOW - timedelta(days=30))
    shutil.copy(next(beside(root).glob("index*.pem")), root / "targets/key.pem")
    wheels = root / "targets/wheels/dragoman-demo"
    (wheels / "dragoman_demo-7.0.0-py3-none-any.whl").write_bytes(b"x")
    (wheels / "dragoman_demo-1.0.0-py3-none-any.whl.metadata").write_bytes(b"x")
    (wheels / "dragoman_demo-1.0.0-py3-none-any.whl.driver.json").write_bytes(b"{}")
    (root / "drivers/dragoman-demo.html").write_bytes(b"x")
    (root / "index.html").unlink()
    (root / ".unfinished").write_text('["targets/wheels/dragoman-demo/dragoman_demo-7.0.0-py3-none-any.whl"]')
    yield from dict.fromkeys(f"{fault.code} | {fault}" for fault in verify(root))


@pytest.mark.slow
def test_the_words_of_every_error(tmp_path: Path, golden: Callable[[str, list[str]], None]):
    lines: list[str] = []
    for part in (of_files, of_sources, of_keys, of_publishing, of_trust, of_index, of_state):
        folder = tmp_path / part.__name__
        folder.mkdir()
        lines += [f"# {part.__name__.replace('_', ' ')}"]
        lines += dict.fromkeys(plain(line, folder) for work in part(folder) for line in said(work))
    lines += ["# of decisions", *of_decisions()]
    (tmp_path / "verify").mkdir()
    lines += ["# of verify", *(plain(line, tmp_path / "verify") for line in of_verify(tmp_path / "verify"))]
    golden("messages.txt", [line.replace(upgrade_command(), "UPGRADE") for line in lines])
