"""What a registry holds: index, pages, signed metadata, bundles, and what its web server answers."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import socket
import threading
import zipfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

import wheelhouse
from dragoman.plugins import driver_search
from dragoman.plugins.combined_catalog import find_offer
from dragoman_api.errors import ConfigurationError, DragomanError
from dragoman_registry import sources
from dragoman_registry.client import lockfile
from dragoman_registry.client.generation import Links
from dragoman_registry.client.installed_drivers import Store
from dragoman_registry.client.resolver import resolve
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.index.release_documents import ConformanceReport, read_documents
from dragoman_registry.publisher import catalog_merge
from dragoman_registry.publisher.inbox import Inbox
from dragoman_registry.publisher.index_records import Index
from dragoman_registry.publisher.page_rendering import markdown
from dragoman_registry.publisher.pages import pages
from dragoman_registry.sources import BundleSource, FolderSource, WebSource
from dragoman_registry.trust.keys import Keys
from dragoman_registry.trust.trust import Pinned, SignedFile
from dragoman_registry.trust.tuf_client import TufTrust
from dragoman_registry.trust.tuf_repository import Repository
from dragoman_registry.wheels.host_environment import Host
from wheelhouse import Driver

from ..child import watched
from ..grammar import hostile_text, json_of, pasted, sections, split, spoiled_json
from ..target import Bounds, Broken, Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn, SearchStrategy

HOST = Host(api="1.0.0", python="3.11.9", tags=("py3-none-any",))
WHEEL = "dragoman_demo-1.0.0-py3-none-any.whl"


@cache
def _registry() -> Path:
    """Make a signed registry with one driver, and its keys beside it."""
    folder = Path(mkdtemp(prefix="dragoman-fuzz-"))
    wheelhouse.registry(folder / "registry", [Driver().write(folder / "wheels")])
    return folder / "registry"


def _targets(name: str) -> Any:
    return json.loads((_registry() / "targets" / name).read_bytes())


# the index ------------------------------------------------------------------------------------------------------------


def _index(folder: Path) -> Callable[[bytes], object]:
    (folder / "targets").mkdir()
    registry, store = Registry("fuzz", str(folder), trust=wheelhouse.TrustedPath()), Store(folder / "data")
    locked = {"demo": lockfile.Locked(project="dragoman-demo", version="1.0.0", wheels=())}

    def run(data: bytes) -> None:
        for name, part in zip(("catalog", "types", "advisories", "browse"), split(data, 4), strict=True):
            (folder / "targets" / name).write_bytes(part)
        driver_search.search(store, [registry], "demo")
        registry.types()
        offer = find_offer([registry], "demo")
        for held in (None, locked["demo"]):
            resolve(offer.project.releases, host=HOST, locked=held)
        list(catalog_merge.releases(registry.catalog()))

    return run


def _one_spoiled(names: tuple[str, ...]) -> SearchStrategy[bytes]:
    whole = [st.just(json.dumps(_targets(name)).encode()) for name in names]
    spoiled = [json_of(_targets(name)) for name in names]
    turns = [
        sections(*(spoiled[at] if at == turn else each for at, each in enumerate(whole))) for turn in range(len(names))
    ]
    return st.one_of(*turns)


def _pages(folder: Path) -> Callable[[bytes], object]:
    (folder / "targets").mkdir()
    (folder / "targets" / "advisories").write_bytes(b'{"advisories_version": 1}')

    def run(data: bytes) -> None:
        given, manifest, report, readme = split(data, 4)
        (folder / "targets" / "catalog").write_bytes(given)
        catalog = Registry("fuzz", str(folder), trust=wheelhouse.TrustedPath()).catalog()

        def read(name: str) -> bytes | None:
            ends = {".driver.json": manifest, ".report.json": report, "README.md": readme}
            return next((part for end, part in ends.items() if name.endswith(end)), None)

        for name, page in pages(Index.of(catalog), read, publishers={}):
            if not re.fullmatch(r"(\.\./)?([A-Za-z0-9+_-][A-Za-z0-9+._-]*/){0,2}[A-Za-z0-9+._-]+", name):
                raise Broken(f"path: a page would be written to {name!r}")
            if name.endswith(".html") and b"onerror=1>" in page.lower():
                raise Broken(f"markup: {name}")
        list(catalog_merge.releases(catalog))

    return run


REPORT = {
    "api": "1.0", "python": "3.11", "system": "Linux", "sandbox": "full", "denied": ["a:1"],
    "engines": {"fake": {"passed": 3, "failed": 1, "skipped": 2}}, "hooks": ["count_rows"], "skips": {"why": 2},
    "deviations": ["x"], "failures": ["y"],
}  # fmt: skip


def _made_pages() -> SearchStrategy[bytes]:
    return sections(
        st.one_of(spoiled_json(_targets("catalog"), most=6), st.just(json.dumps(_targets("catalog")).encode())),
        st.one_of(st.just(b""), spoiled_json(wheelhouse.manifest())),
        json_of(REPORT),
        _prose(),
    )


_MARKDOWN = (
    "# h", "* a", "1. b", "> q", "```\n", "~~~", "[a](http://a.example)", "[a](javascript:alert(1))", "[a][b]",
    "[b]: http://x",
    "![i](x)", "|a|b|\n|-|-|\n|1|2|\n", "<script>alert(1)</script>", "<!--", "&lt;", "&#x6a;", "\\", "`", "*", "_",
    "**", "~~",
    "    code", "---", "<http://a.example>", "<a@b.example>", "\t", "[", "]", "(", ")", "![", "](", "- [ ] x", "$",
    "\n\n",
)  # fmt: skip


def _prose() -> SearchStrategy[bytes]:
    return pasted(_MARKDOWN, glue=("", "", " ", "\n"))


_ALLOWED = re.compile(
    r"<(/?(h[3-6]|p|ul|ol|li|blockquote|em|strong|s|code|pre|table|thead|tbody|tr|th|td|hr|br|span|a)"
    r"( (tabindex=\"0\"|href=\"(https?://|mailto:)[^\"]*\"|rel=\"[a-z ]*\"|start=\"\d+\""
    r"|style=\"text-align:\w+\"))*( /)?)>"
)


def _markdown(_: Path) -> Callable[[bytes], object]:
    def run(data: bytes) -> None:
        page = markdown(data.decode(errors="replace"))
        if odd := re.search(r"<", _ALLOWED.sub("", page)):
            raise Broken(f"markup: {page[max(0, odd.start() - 20) : odd.start() + 60]!r}")

    return run


def _report(_: Path) -> Callable[[bytes], object]:
    release = next(catalog_merge.releases(Registry("fuzz", str(_registry()), trust=wheelhouse.TrustedPath()).catalog()))

    def run(data: bytes) -> None:
        found = read_documents(release, lambda name: data if name.endswith(".report.json") else None).report
        if found is not None:
            str(found)
            json.dumps({word: found.count(word) for word in ("passed", "failed", "skipped")})
            assert isinstance(found, ConformanceReport)

    return run


# trust ----------------------------------------------------------------------------------------------------------------

_ROLES = ("1.root", "timestamp", "snapshot", "targets", "pub")


def _role_files() -> dict[str, Path]:
    folder = _registry() / "metadata"
    stamp = json.loads((folder / "timestamp.json").read_bytes())["signed"]["meta"]["snapshot.json"]["version"]
    named = json.loads((folder / f"{stamp}.snapshot.json").read_bytes())["signed"]["meta"]
    files = {
        "1.root": folder / "1.root.json",
        "timestamp": folder / "timestamp.json",
        "snapshot": folder / f"{stamp}.snapshot.json",
    }
    files["targets"] = folder / f"{named['targets.json']['version']}.targets.json"
    publisher = next(name for name in named if name.startswith("pub-"))
    return files | {"pub": folder / f"{named[publisher]['version']}.{publisher}"}


def _signing() -> Callable[[bytes], bytes]:
    """Return a function that signs metadata with every key, as a hostile publisher or operator does."""
    from securesystemslib.formats import encode_canonical

    signers = [*Keys(_registry().with_name("registry.keys")).signers().values()]

    def sign(data: bytes) -> bytes:
        try:
            signed = json.loads(data)["signed"]
            told = encode_canonical(signed).encode()
            made = [{"keyid": each.public_key.keyid, "sig": each.sign(told).signature} for each in signers]
            return json.dumps({"signatures": made, "signed": signed}).encode()
        except Exception:
            return data

    return sign


def _client(folder: Path) -> Callable[[bytes], object]:
    place, cache_ = folder / "registry", folder / "cache"
    shutil.copytree(_registry(), place)
    files, sign = {name: place / "metadata" / path.name for name, path in _role_files().items()}, _signing()

    def run(data: bytes) -> None:
        shutil.rmtree(cache_, ignore_errors=True)
        cache_.mkdir()
        for name, part in zip(_ROLES, split(data, len(_ROLES)), strict=True):
            if part:
                files[name].write_bytes(sign(part))
        trust = TufTrust(FolderSource(place), where="fuzz", cache=cache_, first_use=True)
        try:
            trust.pin()
            trust.publishers()
            trust.admit(SignedFile(path=f"wheels/dragoman-demo/{WHEEL}", size=1 << 30))
            trust.verified()
        finally:
            for name, path in _role_files().items():
                shutil.copyfile(path, files[name])

    return run


@st.composite
def _made_roles(draw: DrawFn) -> bytes:
    spoiled = draw(st.sampled_from(_ROLES))
    example = json.loads(_role_files()[spoiled].read_bytes())
    parts = dict.fromkeys(_ROLES, b"") | {spoiled: draw(json_of(example))}
    return b"\n%%\n".join(parts[name] for name in _ROLES)


def _repository(folder: Path) -> Callable[[bytes], object]:
    """Read as an operator does what a publisher put beside the accepted roles."""
    place, sign = folder / "registry", _signing()
    shutil.copytree(_registry(), place)
    shutil.copytree(_registry().with_name("registry.keys"), folder / "registry.keys")
    accepted = _role_files()["pub"].name
    version, _, rest = accepted.partition(".")
    waiting = place / "metadata" / f"{int(version) + 1}.{rest}"

    def run(data: bytes) -> None:
        waiting.write_bytes(sign(data))
        repository = Repository(place, Keys(folder / "registry.keys"))
        for name, metadata in repository.pending().items():
            for code, reason in repository.problems(name, metadata):
                f"{code} {reason}".encode()

    return run


# files of a registry, and of a home -----------------------------------------------------------------------------------


def _bundle(folder: Path) -> Callable[[bytes], object]:
    path = folder / "bundle.zip"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        source = BundleSource(path)
        for name in ("metadata/timestamp.json", "targets/catalog", "metadata/1.root.json"):
            try:
                sources.read(source, name, limit=8 << 20)
            except DragomanError:
                continue

    return run


@st.composite
def _bundles(draw: DrawFn) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in ("metadata/timestamp.json", "targets/catalog", "metadata/1.root.json"):
            info = zipfile.ZipInfo(name if draw(st.integers(0, 5)) else draw(hostile_text()) or "x")
            info.compress_type = draw(st.sampled_from((0, 8, 12, 14)))
            archive.writestr(info, draw(st.sampled_from((b"{}", bytes(9_000_000), b"x" * 300))))
    made = bytearray(out.getvalue())
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(max(0, len(made) - draw(st.sampled_from((60, 400, 40_000)))), len(made)))
        made[at : at + draw(st.sampled_from((0, 1, 2, 4)))] = draw(st.binary(max_size=8))
    return bytes(made)


LOCK = {
    "lock_version": 1,
    "plugins": {"demo": {"project": "dragoman-demo", "version": "1.0.0",
                         "wheels": [{"file": WHEEL, "sha256": "0" * 64, "size": 10}], "dependencies": []}},
}  # fmt: skip


def _lock(folder: Path) -> Callable[[bytes], object]:
    path = folder / lockfile.NAME
    releases = [*catalog_merge.releases(Registry("fuzz", str(_registry()), trust=wheelhouse.TrustedPath()).catalog())]

    def run(data: bytes) -> None:
        path.write_bytes(data)
        for plugin, locked in lockfile.read(path).items():
            resolve(releases, host=HOST, locked=locked)
            path.write_bytes(lockfile.updated(path, plugin, None))

    return run


def _pins(folder: Path) -> Callable[[bytes], object]:
    def run(data: bytes) -> None:
        (folder / "pins.json").write_bytes(data)
        pinned = Pinned(folder)
        for path in [*pinned.pins.files][:20]:
            pinned.admit(SignedFile(path=path, size=1 << 30))

    return run


def _links(folder: Path) -> Callable[[bytes], object]:
    def run(data: bytes) -> None:
        (folder / "links.json").write_bytes(data)
        Links(folder / "links.json").find("demo")

    return run


def _uploads(folder: Path) -> Callable[[bytes], object]:
    inbox = Inbox(folder / "registry")
    (inbox.folder / WHEEL).mkdir(parents=True)

    def run(data: bytes) -> None:
        (inbox.folder / WHEEL / "upload.json").write_bytes(data)
        inbox.waiting()

    return run


UPLOAD = {"file": WHEEL, "size": 3, "sha256": "0" * 64, "publisher": "a", "at": "2026-01-01T00:00:00Z"}

# what a web server answers --------------------------------------------------------------------------------------------

_HTTP = (
    "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n",
    "HTTP/1.0 301 x\r\n",
    "HTTP/1.1 302 Found\r\n", "HTTP/1.1 404 no\r\n\r\n", "HTTP/1.1 999\r\n", "HTTP/9.9 200\r\n",
    "Content-Length: 3\r\n",
    "Content-Length: -1\r\n", "Content-Length: 99999999999999999999\r\n", "Content-Length: ٣\r\n",
    "Content-Length: 3, 3\r\n",
    "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n", "0\r\n\r\n", "FFFFFFFFFFFFFFFF\r\n", "-1\r\n", "+3\r\n",
    "0x3;a=b\r\n", "3_0\r\n",
    "Location: /x\r\n", "Location: //a.example/\r\n", "Location: http://127.0.0.1:1/\r\n", "Location: http://[::1/\r\n",
    "Location: http://127.0.0.1@a.example/\r\n", "Location: http://127.0.0.1\\@a.example/\r\n",
    "Location: file:///etc/passwd\r\n",
    "Location: https://127.0.0.1/\r\n", "Location: http://127.1/\r\n", "Location: http://127.0.0.1:99999/\r\n",
    "Location: ftp://127.0.0.1/\r\n",
    "Location: http://127.0.0.1:x/\r\n", "Content-Encoding: gzip\r\n", "Set-Cookie: a=b\r\n", "X: " , " folded\r\n",
    "\r\n", "\r\n\r\n", "abc",
)  # fmt: skip


def _web(_: Path) -> Callable[[bytes], object]:
    listening = socket.create_server(("127.0.0.1", 0))
    port = watched["port"] = listening.getsockname()[1]
    answer = {"data": b""}

    def one(peer: socket.socket) -> None:
        with peer, suppress(OSError):
            peer.settimeout(2)
            peer.recv(65_536)
            peer.sendall(answer["data"])
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(65_536):
                pass

    def serve() -> None:
        while True:
            threading.Thread(target=one, args=listening.accept()[:1], daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()

    def run(data: bytes) -> None:
        answer["data"] = data
        source = WebSource(f"http://127.0.0.1:{port}/r")
        got = sources.read(source, "targets/catalog", limit=1 << 20)
        digest = hashlib.sha256(got).hexdigest()
        if not data.lstrip().startswith(b"HTTP/") or (got not in data and b"chunked" not in data.lower()):
            raise Broken(f"answer: {digest} of something else")

    return run


_RAISES = (DragomanError,)
TARGETS = (
    Target(name="index", parses="dragoman_registry.index.registry_reader:Registry", make=_index, allowed=_RAISES,
           grammar=lambda: _one_spoiled(("catalog", "types", "advisories", "browse")), bounds=Bounds(seconds=0.3,
           mb_per_kb=1)),
    Target(name="pages",
           parses="dragoman_registry.publisher.pages:pages", make=_pages, allowed=_RAISES, grammar=_made_pages,
           bounds=Bounds(seconds=1, seconds_per_kb=0.05, mb_per_kb=1)),
    Target(name="markdown",
           parses="dragoman_registry.publisher.page_rendering:markdown", make=_markdown, grammar=_prose,
           bounds=Bounds(seconds=1, seconds_per_kb=0.05)),
    Target(name="conformance", parses="dragoman_registry.index.release_documents:read_documents", make=_report,
    grammar=lambda: json_of(REPORT)),
    Target(name="trust-client", parses="dragoman_registry.trust.tuf_client:TufTrust", make=_client, allowed=_RAISES,
           grammar=_made_roles, bounds=Bounds(seconds=1)),
    Target(name="trust-accept",
           parses="dragoman_registry.trust.tuf_repository:Repository.pending", make=_repository, allowed=_RAISES,
           grammar=lambda: json_of(json.loads(_role_files()["pub"].read_bytes())), bounds=Bounds(seconds=1)),
    Target(name="bundle", parses="dragoman_registry.sources:BundleSource", make=_bundle, grammar=_bundles,
           bounds=Bounds(seconds=2, mb=64)),
    Target(name="plugins-lock",
           parses="dragoman_registry.client.lockfile:read", make=_lock, allowed=(ConfigurationError,),
           grammar=lambda: json_of(LOCK)),
    Target(name="pins", parses="dragoman_registry.trust.trust:Pinned", make=_pins, allowed=_RAISES,
           grammar=lambda: json_of({"label": "release", "root": "0" * 64, "files": {"targets/catalog": [3,
           "0" * 64]}})),
    Target(name="links", parses="dragoman_registry.client.generation:Links", make=_links, allowed=_RAISES,
           grammar=lambda: json_of({"demo": {"version": "1", "trees": ["/x"], "manifest": wheelhouse.manifest()}})),
    Target(name="inbox", parses="dragoman_registry.publisher.inbox:Inbox.waiting", make=_uploads, allowed=_RAISES,
           grammar=lambda: json_of(UPLOAD)),
    Target(name="registry-http", parses="dragoman_registry.sources:WebSource", make=_web, allowed=_RAISES,
    loopback=True,
           grammar=lambda: pasted(_HTTP, most=12, glue=("",)), bounds=Bounds(seconds=0.5)),
)  # fmt: skip
