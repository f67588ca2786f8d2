"""The pages of a registry: what an author wrote is text, nothing comes from elsewhere, only what changed is written."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import marketplace
import wheelhouse
from dragoman_api.errors import ConfigurationError, IndexInvalidError
from dragoman_api.installation import add_command
from dragoman_registry.client.resolver import resolve
from dragoman_registry.index import search_summaries
from dragoman_registry.index.catalog import Catalog, Project, Release
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.index.release_documents import read_documents
from dragoman_registry.index.search_summaries import standing
from dragoman_registry.publisher import page_rendering, publish
from dragoman_registry.publisher.index_records import Index
from dragoman_registry.publisher.page_rendering import address, clean, embedded, markdown
from dragoman_registry.publisher.pages import pages
from dragoman_registry.publisher.verify import verify
from dragoman_registry.wheels.host_environment import Host
from dragoman_registry.wheels.wheel_file import WheelFile
from marketplace import HOSTILE

if TYPE_CHECKING:
    from pathlib import Path

OWN = {
    "html", "head", "meta", "title", "style", "body", "script", "template", "div", "header", "footer", "main", "nav",
    "aside", "section", "form", "label", "input", "select", "option", "datalist", "fieldset", "legend", "button",
    "details", "summary", "span", "a", "p", "h1", "h2", "h3", "ol", "ul", "li",
}  # fmt: skip
PROSE = {
    "p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "a", "span", "strong", "em", "s", "code", "pre", "blockquote", "hr",
    "br", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
PLAIN = {"href", "rel", "tabindex", "start"}


class Parsed(HTMLParser):
    """What a browser makes of a page: its elements with their attributes, and the text between them."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {}
        self._open = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data: str) -> None:
        self.inside.setdefault(self._open, []).append(data)

    @property
    def text(self) -> str:
        return "".join(part for tag, parts in self.inside.items() if tag not in ("script", "style") for part in parts)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return marketplace.sample(tmp_path)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    return marketplace.hostile(tmp_path)


def people(root: Path) -> list[Path]:
    return [root / "index.html", *sorted((root / "drivers").iterdir())]


def test_the_front_page_and_a_page_per_driver_are_written_with_the_registry(sample: Path):
    names = {path.stem.removeprefix("dragoman-") for path in people(sample)}
    assert names == {"index", "elasticsearch", "files", "meili", "redis", "weaviate"}
    assert not (sample / "all.html").exists()
    front = Parsed((sample / "index.html").read_text())
    for label in ("Elasticsearch Driver", "Meilisearch Driver", "Folder of Parquet Files"):
        assert label in front.text
    for tag, attributes in front.elements:
        if tag == "a" and (link := attributes["href"]) and "#" not in link:
            assert (sample / link).is_file()
    assert verify(sample) == []


def test_a_page_allows_its_own_script_and_style_and_nothing_else(sample: Path):
    for path in people(sample):
        found = Parsed(path.read_text())
        [policy] = [a["content"] for t, a in found.elements if a.get("http-equiv") == "Content-Security-Policy"]
        rules = dict(rule.strip().split(" ", 1) for rule in (policy or "").split(";"))
        code = re.findall(r"<script>(.*?)</script>", path.read_text(), re.DOTALL)
        [style] = re.findall(r"<style>(.*?)</style>", path.read_text(), re.DOTALL)
        for source, name in ((code[0], "script-src"), (style, "style-src")):
            digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
            assert rules[name] == f"'sha256-{digest}'"
        assert len(code) == 1
        assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
        assert not [a for _, a in found.elements if "src" in a or "style" in a]
        assert "url(" not in style
        assert "@import" not in style


@pytest.mark.slow
def test_what_a_hostile_author_wrote_is_text_on_every_page(hostile: Path):
    for path in people(hostile):
        source = path.read_text()
        found = Parsed(source)
        assert {tag for tag, _ in found.elements} <= OWN | PROSE, path.name
        for tag, attributes in found.elements:
            assert not [name for name in attributes if name.startswith("on")], path.name
            link = attributes.get("href") or ""
            assert tag != "a" or not link or re.match(r"https://ok\.example|(\.\./|#|drivers/|index)", link), link
        assert clean(source) == source, "something hidden or reordering got through"
        assert "evil.example/track" not in "".join(str(a) for _, a in found.elements)
    for number, text in enumerate(HOSTILE):
        page = Parsed((hostile / f"drivers/dragoman-evil{number}.html").read_text())
        assert clean(text) in page.text, "it is shown as it was written"


@pytest.mark.slow
def test_the_rows_for_the_script_end_where_they_should(hostile: Path):
    source = (hostile / "index.html").read_text()
    [data] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', source, re.DOTALL)
    assert not set("<>&") & set(data)
    labels = {row[2] for row in json.loads(data)["drivers"]}
    assert {clean("".join(c if c.isprintable() else "?" for c in text))[:100] for text in HOSTILE} == labels


@given(st.lists(st.sampled_from([*HOSTILE, "<", ">", "&", "\u2028", "\\", '"', "]]>", "<!--"]) | st.text(), max_size=4))
def test_embedded_json_is_the_value_and_never_markup(texts: list[str]):
    texts = [clean(text) for text in texts]
    assert json.loads(embedded(texts)) == texts
    assert not set("<>&\u2028\u2029") & set(embedded(texts))


PIECES = [
    "[",
    "]",
    "(",
    ")",
    "javascript:x",
    "<script>",
    "](",
    "![",
    "`",
    "```",
    "|",
    "\n",
    "# ",
    "> ",
    "- ",
    "&#106;",
    "*",
    "a",
]


@given(st.lists(st.sampled_from([*PIECES, *HOSTILE]) | st.text(max_size=5), max_size=40).map("".join))
def test_no_markdown_becomes_more_than_prose(source: str):
    found = Parsed(markdown(source))
    for tag, attributes in found.elements:
        assert tag in PROSE
        assert set(attributes) <= PLAIN
        assert not attributes.get("href") or address(attributes["href"] or "")


def test_markdown_keeps_what_is_harmless():
    made = markdown(
        "# T\n\na **b** [c](https://x.example/?a=1&b=2) [d](docs/e.md) ![f](g.png) [m](mailto:a@b.example)\n"
    )
    assert "<h3>T</h3>" in made
    assert "<strong>b</strong>" in made
    assert 'href="https://x.example/?a=1&amp;b=2" rel="noopener noreferrer nofollow ugc">c</a>' in made
    assert "<span>d</span> [picture: f]" in made
    assert 'href="mailto:a@b.example"' in made
    assert markdown("```sh\n$ <x>\n```") == '<pre tabindex="0"><code>$ &lt;x&gt;\n</code></pre>\n'


NO_ADDRESSES = [
    "javascript:x", "//evil.example", "data:x", "file:///x", "/x", "x", "", "https://", " https://x", "java\nscript:x",
    "https://x\u202e.example", "vbscript:x", "HTTPS:x", "ftp://x",
]  # fmt: skip


@pytest.mark.parametrize("url", NO_ADDRESSES)
def test_only_the_web_and_mail_are_addresses(url: str):
    assert address(url) is None


@pytest.mark.parametrize(
    "bomb", ["[" * 60_000, "![" * 30_000, "|" * 60_000, "[a](" * 15_000], ids=["links", "pictures", "bars", "both"]
)
def test_a_text_that_would_take_minutes_to_parse_is_shown_as_it_is(bomb: str):
    assert markdown(bomb) == f'<pre tabindex="0">{bomb}</pre>'


def test_a_huge_readme_is_cut_and_the_whole_of_it_is_a_link_away(tmp_path: Path):
    driver = wheelhouse.Driver()
    driver.readme = "# Long\n\n" + "very " * 30_000
    root = wheelhouse.registry(tmp_path / "r", [driver.write(tmp_path)])
    page = root / "drivers/dragoman-demo.html"
    assert page.stat().st_size < 120_000
    [link] = re.findall(r'href="([^"]+)">The whole text', page.read_text())
    assert (page.parent / link).read_text().count("very") == 30_000


def snapshot(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(root)): (path.stat().st_ino, path.read_bytes())
        for folder in ("drivers", "targets/simple") for path in sorted((root / folder).rglob("*")) if path.is_file()
    }  # fmt: skip


def test_publishing_one_wheel_writes_the_pages_of_one_driver(tmp_path: Path, sample: Path):
    before = snapshot(sample)
    publish.build([wheelhouse.Driver("redis", "1.1.0", label="Redis Driver").write(tmp_path / "new")], to=sample)
    changed = {name for name, found in snapshot(sample).items() if before.get(name) != found}
    assert changed == {
        "drivers/dragoman-redis.html", "targets/simple/dragoman-redis/index.html",
        "targets/simple/dragoman-redis/index.v1+json",
    }  # fmt: skip
    assert verify(sample) == []


def test_only_pages_that_are_out_of_date_are_made():
    catalog = marketplace.catalog(120)
    index = Index.of(catalog)
    made = dict(pages(index, lambda name: None, publishers={}))
    assert "../all.html" in made
    assert made["../index.html"].count(b"<li>") == 51, "fifty, and the one that is copied"
    assert made["../all.html"].count(b"<li>") == 120
    again = dict(pages(index, made.get, publishers={}, changed=()))
    assert set(again) == {"../all.html", "../index.html", "simple/index.html", "simple/index.v1+json"}
    other = Catalog(projects=(*catalog.projects[:7], marketplace.project(7, releases=3), *catalog.projects[8:]))
    more = set(dict(pages(Index.of(other), made.get, publishers={}, changed=()))) - set(again)
    assert {name for name in more if name.startswith("../")} == {"../drivers/dragoman-store000007.html"}
    taken = {"dragoman-store000009": "somebody"}
    assert "../drivers/dragoman-store000009.html" in dict(pages(index, made.get, publishers=taken, changed=()))


def test_a_page_that_was_damaged_is_made_again(tmp_path: Path, sample: Path):
    page = sample / "drivers/dragoman-meili.html"
    whole = page.read_bytes()
    page.write_bytes(whole[:-200])
    (sample / "drivers/dragoman-files.html").unlink()
    assert {fault.where for fault in verify(sample)} == {f"../drivers/dragoman-{n}.html" for n in ("meili", "files")}
    publish.build([wheelhouse.Driver("eight").write(tmp_path / "new")], to=sample)
    assert page.read_bytes() == whole
    assert verify(sample) == []


def test_marks_are_told_on_the_page_with_their_reasons(sample: Path):
    held_against: set[str] = set()
    page = Parsed((sample / "drivers/dragoman-meili.html").read_text())
    for release in Registry("r", str(sample), trust=wheelhouse.TrustedPath()).releases("meili"):
        if held := standing(release):
            held_against.add(held[0])
            assert ": ".join(held) in page.text
    assert held_against == {"yanked", "quarantined"}
    wheels = [a["href"] for t, a in page.elements if t == "a" and (a["href"] or "").endswith(".whl")]
    assert len(wheels) == 2, "nothing leads to what is quarantined"
    publish.mark(sample, project="meili", version="1.2.0", status="quarantined", reason="too")
    publish.mark(sample, project="meili", version="1.1.0", status="quarantined", reason="three")
    text = Parsed((sample / "drivers/dragoman-meili.html").read_text()).text
    assert re.search(r"1\.2\.0\b.{1,9}\bquarantined:\stoo\b", text)
    assert "1.2.0 withdrawn" in Parsed((sample / "index.html").read_text()).text


def test_permissions_types_and_the_report_are_told_in_plain_words(sample: Path):
    meili = Parsed((sample / "drivers/dragoman-meili.html").read_text()).text
    for part in (
        "Is given that connection's credentials", "Meilisearch (meilisearch)", "79 passed, 0 failed, 27 skipped",
        "meilisearch 1.9", "dragoman plugins install meili", "Facets as columns",
    ):  # fmt: skip
        assert part in meili
    files = Parsed((sample / "drivers/dragoman-files.html").read_text()).text
    for part in ("Reaches files.example.org", "phone", "No conformance report"):
        assert part in files


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"engines": 5}', b'{"failures": [1]}', b"[" * 100_000, b"\xff"])
def test_a_report_that_cannot_be_read_is_none(data: bytes):
    [release] = marketplace.project(1, releases=1).releases
    assert read_documents(release, lambda name: data if name.endswith("report.json") else None).report is None


@pytest.mark.parametrize(
    "data", [b"", b'{"id": "\xff"}', b'{"id": ' + b"[" * 100_000, b'{"id": ' + b"9" * 5_000 + b"}"]
)
def test_a_manifest_that_cannot_be_read_takes_no_page_with_it(sample: Path, data: bytes):
    [sidecar] = (sample / "targets/wheels/dragoman-files").glob("dragoman_files-*.driver.json")
    sidecar.write_bytes(data)
    publish.mark(sample, project="files", version=sidecar.name.split("-")[1], status="deprecated", reason="old")
    assert "deprecated: old" in Parsed((sample / "drivers/dragoman-files.html").read_text()).text


# the index for browsing ---------------------------------------------------------------------------------------------


def releases() -> tuple[Release, ...]:
    """Return every combination of the values that decide whether a release fits, newest first."""
    found = []
    mixtures = product(("~=1.0", ">=2"), (">=3.9", ">=99"), ("py3-none-any", "cp311-cp311-win32"), (None, "x"))
    for number, (api, python, tag, yanked) in enumerate(mixtures):
        for version in (f"1.{number}.0", f"1.{number}.1a1"):
            digest = hashlib.sha256(version.encode()).hexdigest()
            wheel = WheelFile(file=f"dragoman_x-{version}-{tag}.whl", size=1, sha256=digest, requires_python=python)
            library = WheelFile(file=f"lib-1-{tag}.whl", size=1, sha256=digest)
            found.append(
                Release(
                    plugin="x",
                    project="dragoman-x",
                    version=version,
                    host_api=api,
                    permissions=(),
                    manifest_sha256=digest,
                    wheels=(wheel,),
                    dependencies=(library,) if number % 2 else (),
                    yanked=yanked,
                )
            )
    return tuple(sorted(found, key=lambda one: int(one.version.split(".")[1]), reverse=True))


@pytest.mark.parametrize("api", ["1.0", "1.5", "2.1", "0.9"])
@pytest.mark.parametrize("python", ["3.8.1", "3.11.2", "99.1"])
@pytest.mark.parametrize("tags", [("py3-none-any",), ("cp311-cp311-win32", "py3-none-any")])
def test_a_row_names_the_release_that_would_be_installed(api: str, python: str, tags: tuple[str, ...]):
    host = Host(api=api, python=python, tags=tags)
    pick, all_ = search_summaries.fitting(host), releases()
    for start in range(len(all_)):
        offered = all_[start:]
        project = Project(plugin="x", project="dragoman-x", label="X", summary="", types=(), releases=offered)
        chosen, picked = resolve(offered, host=host).release, pick(search_summaries.summarise(project).candidates)
        assert (picked and picked.version) == (chosen and chosen.version)


def test_a_row_is_short_however_many_releases_there_are():
    many, one = (search_summaries.summarise(marketplace.project(1, releases=count)) for count in (9, 1))
    assert [candidate.version for candidate in many.candidates] == ["9.0.0"]
    assert len(many.candidates) == len(one.candidates)


def test_rows_are_read_as_they_were_written_and_without_what_is_quarantined(sample: Path):
    registry = Registry("r", str(sample), trust=wheelhouse.TrustedPath())
    rows = {one.plugin: one for one in search_summaries.read(registry)}
    assert rows == {project.plugin: search_summaries.summarise(project) for project in registry.catalog().projects}
    advisories = json.loads((sample / "targets/advisories").read_bytes())
    advisories["quarantined"]["dragoman-redis"] = {"1.0.0": "said by the advisories alone"}
    (sample / "targets/advisories").write_text(json.dumps(advisories))
    [redis] = [one for one in search_summaries.read(registry) if one.plugin == "redis"]
    assert redis.candidates == ()


@pytest.mark.parametrize("data", [b"", b"{}", b'{"browse_version": 2, "drivers": []}', b'{"drivers": [[1]]}'])
def test_damaged_rows_are_named(sample: Path, data: bytes):
    (sample / "targets/browse").write_bytes(data)
    with pytest.raises(IndexInvalidError, match="targets/browse"):
        search_summaries.read(Registry("r", str(sample), trust=wheelhouse.TrustedPath()))


def test_where_the_engine_of_the_pages_is_missing_the_extra_that_brings_it_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    page_rendering._environment.cache_clear()
    with pytest.raises(ConfigurationError, match="Jinja2") as caught:
        dict(pages(Index.of(Catalog()), lambda name: None, publishers={}))
    assert (caught.value.code, caught.value.hint) == ("extra-missing", add_command("dragoman[publish]"))


def test_a_template_that_names_what_it_is_not_given_fails_and_leaves_nothing_blank():
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError):
        page_rendering.fill("simple.html", title="x")


@pytest.mark.parametrize("at", [0, 1])
def test_a_row_whose_name_is_none_is_not_shown_as_a_driver(sample: Path, at: int):
    rows = json.loads((sample / "targets/browse").read_bytes())
    rows["drivers"][0][at] = "<b>../x</b>"
    (sample / "targets/browse").write_text(json.dumps(rows))
    with pytest.raises(IndexInvalidError):
        search_summaries.read(Registry("r", str(sample), trust=wheelhouse.TrustedPath()))


@given(st.lists(st.text("|<&'\"a\n\u202e"), min_size=7, max_size=7))
def test_a_row_of_a_list_holds_each_text_in_its_place(texts: list[str]):
    file, label, version, summary, types, can, reaches = texts
    row = page_rendering.list_row(
        file=file, label=label, version=version, summary=summary, types=types, can=can, reaches=reaches
    )
    assert text_by_place(row) == [clean(text) for text in (label, version, summary, types, can, reaches)]


def text_by_place(row: str) -> list[str]:
    """Return the texts of the elements that a script finds by their place."""
    texts: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            texts.extend([""] * ("data-at" in dict(attributes)))

        def handle_data(self, text: str) -> None:
            if texts:
                texts[-1] += text

    reader = Reader()
    reader.feed(row)
    reader.close()
    return [text.removesuffix(" ") if place == 0 else text for place, text in enumerate(texts)]
