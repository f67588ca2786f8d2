"""The documentation says what the code does: generated parts are fresh, links lead somewhere, examples are real."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

import bundled_drivers
from captions import captions
from dragoman_api import ObjectsRequest
from sources import nodes_of
from stranger import serve_sample

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md"])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OURS = f"(?:dragoman(?:_api|_worker|_registry)?|{'|'.join(bundled_drivers.PACKAGES)})"
ENTRY_POINTS = {"dragoman.drivers", "dragoman.automations"}
FRAGMENTS = {*DOCS.glob("changes/+*.md")}
"""Of the changelog; no page of their own."""
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


@cache
def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@cache
def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", read(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def fenced(page: Path, language: str) -> list[str]:
    return [text for kind, text in FENCE.findall(read(page)) if kind == language]


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_generated_parts_of_the_reference_are_fresh(generate):
    stale = [path.name for path, _ in generate.stale()]
    assert not stale, f"{', '.join(stale)} differ from the code; run: python docs/generate.py"


def test_a_stale_page_is_noticed(generate, tmp_path, monkeypatch):
    page = tmp_path / "events.md"
    page.write_text(read(DOCS / "reference/events.md").replace("`page.fetched`", "`page.loaded`"), encoding="utf-8")
    monkeypatch.setattr(generate, "REFERENCE", tmp_path)
    assert [path for path, _ in generate.stale()] == [page]


def test_every_writer_of_the_generator_has_its_page(generate):
    text = "".join(read(page) for page in DOCS.rglob("*.md"))
    assert {found[2] for found in generate.BLOCK.finditer(text)} == set(generate.WRITERS)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_leads_somewhere(page):
    dead = []
    for target in LINK.findall(FENCE.sub("", read(page))):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        if not found.exists() or (anchor and anchor not in anchors(found)):
            dead.append(target)
    assert not dead


def test_every_page_can_be_reached_from_the_first_one():
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        targets = (target.partition("#")[0] for target in LINK.findall(read(page)) if "://" not in target)
        waiting += [(page.parent / target).resolve() for target in targets if target]
    assert {page for page in PAGES if page.is_relative_to(DOCS)} - FRAGMENTS <= reached


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    """The pages and the configuration from which the site is built."""
    folder = tmp_path_factory.mktemp("site")
    website().stage(folder)
    return folder


def website():
    spec = importlib.util.spec_from_file_location("website", DOCS / "website.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_site_has_every_page_and_its_links_lead_to_files_of_the_site(staged):
    pages = staged / "pages"
    assert {page.relative_to(DOCS) for page in {*DOCS.rglob("*.md")} - FRAGMENTS} <= {
        page.relative_to(pages) for page in pages.rglob("*.md")
    }
    assert (pages / "tutorial/tables.md").read_text(encoding="utf-8").count("```python") > 3
    targets = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in pages.rglob("*.md")
        for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
        if "://" not in target and not target.startswith("#")
    }
    assert len([path for path in targets if path.name.endswith(".py.txt")]) > 100
    assert [path for path in targets if not path.is_file() or not path.is_relative_to(pages)] == []


def test_the_navigation_of_the_site_has_every_page_but_those_that_only_others_need(staged):
    listed = set(re.findall(r'"([^"]+\.md)"', (staged / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[2]))
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert {page for page in pages - listed if not page.startswith("changes/")} == {"adr/dependencies.md"}
    assert [name for name in listed if not (staged / "pages" / name).is_file()] == []


def test_a_link_to_a_file_that_is_not_there_fails_the_build_of_the_site(tmp_path, monkeypatch):
    site = website()
    monkeypatch.setattr(site, "DOCS", tmp_path)
    monkeypatch.setattr(site, "ROOT", tmp_path)
    monkeypatch.setattr(site, "TABS", {})
    monkeypatch.setattr(site, "PROJECT", ())
    (tmp_path / "index.md").write_text("![a picture](images/gone.png)", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match="gone"):
        site.copy(tmp_path / "pages")


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_head_of_a_table_has_a_word(page):
    """A reader of screens says it before each cell."""
    heads = re.findall(r"^(\|.*\|)\n\|(?: :?-+:? \|)+$", FENCE.sub("", read(page)), re.MULTILINE)
    assert not [head for head in heads if "" in (cell.strip() for cell in head[1:-1].split("|"))]


@cache
def tracked() -> frozenset[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return frozenset(listed.split("\0"))


def is_named(dotted: str) -> bool:
    """Return whether a dotted name is a module, or a name that its longest part that is a module contains."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        stem = "/".join(parts[:length])
        found = [name for name in tracked() if name.endswith((f"/{stem}.py", f"/{stem}/__init__.py"))]
        if found:
            return length == len(parts) or any(re.search(rf"\b{parts[length]}\b", read(ROOT / each)) for each in found)
    return False


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_module_that_a_page_names_exists(page):
    text = FENCE.sub("", read(page))
    dotted = set(re.findall(rf"`({OURS}(?:\.[a-z_]\w*)+)", text)) - ENTRY_POINTS
    assert not [name for name in dotted if not is_named(name)]
    folders = {part for name in tracked() for part in Path(name).parts[:-1]}
    paths = {path for path in re.findall(r"`((?:\w+/)+\w+\.py)`", text) if path.split("/")[0] in folders}
    assert not [path for path in paths if path not in tracked() and not any(n.endswith(f"/{path}") for n in tracked())]


@pytest.mark.parametrize("package", ["dragoman", "dragoman_registry"])
def test_the_page_of_the_architecture_names_the_modules_of_a_package(package):
    text = read(DOCS / "explanation/architecture.md").partition(f"| in `{package}` |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in text.splitlines()[2:]]
    assert len(cells) > 5
    missing = [name for cell in cells for name in re.findall(r"`([\w.]+)`", cell) if not is_named(f"{package}.{name}")]
    assert not missing


def test_the_glossary_has_at_most_60_terms_in_order_and_one_line_for_each():
    text = read(DOCS / "explanation/glossary.md").partition("\n- ")[2]
    terms = [re.fullmatch(r"(?:- )?\*\*(.+)\*\*: [A-Z`].*\.", line) for line in text.splitlines()]
    assert all(terms)
    names = [term[1] for term in terms if term]
    assert names == sorted(set(names))
    assert len(names) <= 60


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_python_examples_parse_and_import_what_exists(page):
    for text in fenced(page, "python"):
        typed = [line[4:] for line in text.splitlines() if line.startswith((">>>", "..."))]
        source = "\n".join(typed) or text
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dragoman"):
                module = importlib.import_module(node.module)
                missing = [name.name for name in node.names if not hasattr(module, name.name)]
                assert not missing, f"{node.module} has no {', '.join(missing)}"


def shell_lines() -> list[tuple[str, list[str]]]:
    """Return the words of every `dragoman` command that a page shows as typed, with the page's name."""
    found = []
    for page, name in zip(PAGES, NAMES, strict=True):
        for text in fenced(page, "console"):
            for line in re.findall(r"^\$ (.*)$", text, re.MULTILINE):
                commands = re.split(r" \| | && |; | &$", line)
                typed = [shlex.split(re.sub(r" > [\w.]+$", "", part)) for part in commands]
                found += [(name, words[1:]) for words in typed if words[:1] == ["dragoman"]]
    return found


@pytest.mark.parametrize(("name", "words"), shell_lines())
def test_console_examples_parse_as_the_command_line_does(name, words):
    import click

    from dragoman.cli.app import cli
    from dragoman.cli.options import Options

    command = cli
    while isinstance(command, click.Group):
        context = click.Context(command)
        _, rest, _ = command.make_parser(context).parse_args(words)
        command, words = command.get_command(context, rest[0]), rest[1:]
        assert command is not None, f"{name}: there is no command {rest[0]!r}"
    command.make_context("example", words, obj=Options())


def drivers() -> list[dict[str, str]]:
    """Return name, version and label of each driver in this tree."""
    import json
    import tomllib

    found = []
    for project in sorted(ROOT.glob("plugins/*/dragoman_*/driver.json")):
        about = tomllib.loads(read(project.parents[1] / "pyproject.toml"))["project"]
        found.append(
            {"project": about["name"], "version": about["version"], "label": json.loads(read(project))["label"]}
        )
    return found


def test_the_picture_of_the_marketplace_shows_the_drivers_that_there_are():
    """The picture holds the names of what it shows; `make pictures` takes it anew."""
    shown = [f"{each['label']} {each['version']}" for each in drivers()]
    assert captions(DOCS / "images/marketplace.webp") == shown


def test_each_picture_is_small_and_shown():
    """A page with several loads fast; `make pictures` takes them anew."""
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    shown = {name for page in pages for name in re.findall(r"\]\([^)]*images/([^)]+)\)", read(page))}
    sizes = {picture.name: picture.stat().st_size for picture in (DOCS / "images").iterdir()}
    assert sizes.keys() == shown
    assert {name: size for name, size in sizes.items() if size > 120_000} == {}


def test_the_size_of_a_driver_in_the_readme_is_about_right():
    name, size = re.search(r"Download (\w+) Driver [\d.]+ \(\w+, (\d+) kB\)", read(ROOT / "README.md")).groups()
    catalog = json.loads(read(ROOT / "runtime/dragoman/bundled/targets/catalog"))
    [release] = next(entry for entry in catalog["projects"] if entry["plugin"] == name.lower())["releases"]
    wheels = [*release["wheels"], *release["dependencies"]]
    assert int(size) == pytest.approx(sum(wheel["size"] for wheel in wheels) / 1000, rel=0.15)


PROBE = [
    "make", "--no-print-directory", "-s", "--eval", "probe: ; @$(call patiently,doing it,sleep 2.5; (exit 3))", "probe",
]  # fmt: skip


@pytest.mark.slow
def test_setting_up_says_every_few_seconds_that_it_still_runs_and_keeps_the_exit_code():
    done = subprocess.run([*PROBE, "TICK=1"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout.splitlines() == ["  doing it: 1 s so far", "  doing it: 2 s so far"]
    assert (done.returncode, "Error 3" in done.stderr) == (2, True)  # make ends with 2 whatever failed


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("stop", [None, signal.SIGINT, signal.SIGTERM])
def test_what_says_that_setting_up_still_runs_ends_with_it(stop):
    heeded = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    run = subprocess.Popen([*PROBE, "TICK=7"], cwd=ROOT, process_group=0, **pipes)
    signal.signal(signal.SIGINT, heeded)
    if stop:
        time.sleep(1.0)
        os.killpg(run.pid, stop)
    run.communicate(timeout=30)
    deadline = time.monotonic() + 2.0
    while (left := alive_in(run.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []


def alive_in(group: int) -> list[str]:
    """Return the names of the processes of a group that are no zombies."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = entry.read_text().rpartition(")")
            state, _, its = rest.split()[:3]
            if int(its) == group and state != "Z":
                found.append(name.partition("(")[2])
    return found


CLAIM = re.compile(r"^\| (.+?) \| \[(\S+)\]\(\.\./(tests/\S+\.py)\) `(test_\w+)` \|$", re.MULTILINE)
EXPLANATIONS = (
    "is somebody else's code with one credential",
    "talks to the driver, inside the sandbox",
    "It accepts the first root of a folder on this machine",
    "counts as your own",
    "dragoman sends data only to your databases",
    "publishes what an author signed",
    "It has no TLS",
    "It does not say whether code is good",
    "Inspect a driver of an unknown author",
    "signs it with the operator's own key",
    "You are then its author",
    "It needs the advisories and online keys",
    "This does not disable copies",
)
"""Sentences that explain, advise, or belong to the claim beside them."""


def test_every_claim_about_security_names_a_test_that_exists():
    page = (DOCS / "SECURITY.md").read_text(encoding="utf-8")
    claims = CLAIM.findall(page)
    assert len(claims) == len(re.findall(r"^\| .* `test_\w+` \|$", page, re.MULTILINE)) > 50
    prose = " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", page.partition("## What holds each claim")[0]).split())
    for claim, shown, path, test in claims:
        assert claim in prose, f"the page does not say {claim!r}"
        assert path == f"tests/{shown}.py"
        names = {getattr(node, "name", "") for node in nodes_of(ROOT / path)}
        assert test in names, f"{path} has no {test}"


def test_every_sentence_about_security_that_claims_something_has_a_test():
    page = (DOCS / "SECURITY.md").read_text(encoding="utf-8")
    text = page.partition("## Attackers and defences")[2].partition("## What holds each claim")[0]
    known = [claim for claim, *_ in CLAIM.findall(page)]
    paragraphs = re.split(r"\n\n|\n(?=- )", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text))
    bare: list[str] = []
    for paragraph in paragraphs:
        if paragraph.startswith(("#", "|", "- *Not prevented")):
            continue
        claimed = " ".join(paragraph.partition("*Not prevented:*")[0].split()).removeprefix("- ").strip(" -")
        sentences = re.split(r"(?<=[.:]) (?=[A-Z`*])", claimed)
        bare += [text for text in sentences if text and not any(part in text for part in (*known, *EXPLANATIONS))]
    assert bare == []


def test_decision_records_are_numbered_without_gaps_and_short():
    records = sorted((DOCS / "adr").glob("[0-9]*.md"))
    assert [int(record.name[:4]) for record in records] == list(range(1, len(records) + 1))
    for record in records:
        lines = read(record).splitlines()
        assert len(lines) <= 60, f"{record.name} has {len(lines)} lines"
        assert lines[0].startswith(f"# {int(record.name[:4])}. ")
        for heading in ("## Context", "## Decision", "## Consequences"):
            assert heading in lines, f"{record.name} lacks {heading!r}"


def test_every_direct_dependency_has_its_reason():
    import tomllib

    text = read(DOCS / "adr/dependencies.md")
    for project in (ROOT / "pyproject.toml", ROOT / "plugins/api/pyproject.toml"):
        table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
        extras = [item for extra in table.get("optional-dependencies", {}).values() for item in extra]
        for requirement in table["dependencies"] + extras:
            name = re.match(r"[A-Za-z0-9.-]+", requirement)[0]
            if name == table["name"]:
                continue  # an extra that takes in another
            assert re.search(rf"^\| `{name}` \|", text, re.MULTILINE), f"{name} has no reason in adr/dependencies.md"


def test_every_rule_of_the_second_driver_is_named_by_a_test_of_it():
    files = [*(ROOT / "tests/drivers/weaviate").rglob("test_*.py"), ROOT / "tests/system/test_weaviate.py"]
    named = {int(number) for path in files for number in re.findall(r"\bW(\d+)\b", read(path))}
    assert {*range(1, 41)} - named == set()


@pytest.fixture(scope="module")
def guide(tmp_path_factory):
    """The project that the guide for driver authors tells to write, and its wheel."""
    project, page = tmp_path_factory.mktemp("guide"), DOCS / "how-to/write-a-driver.md"
    package = project / "dragoman_demo"
    package.mkdir()
    (package / "__init__.py").touch()
    for language, path in (
        ("python", package / "driver.py"),
        ("json", package / "driver.json"),
        ("toml", project / "pyproject.toml"),
    ):
        [text] = fenced(page, language)
        path.write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=project, check=True)
    [wheel] = (project / "dist").glob("*.whl")
    return project, wheel


def test_a_registry_accepts_the_driver_of_the_guide(guide, tmp_path):
    from dragoman_registry.publisher import publish

    [release] = publish.build([guide[1]], to=tmp_path / "team")
    assert (release.plugin, release.version) == ("demo", "0.1.0")


async def test_the_driver_of_the_guide_browses_a_real_server(guide, monkeypatch):
    from aiohttp import web
    from aiohttp.test_utils import TestServer

    from dragoman_api import Http, PageRequest, Profile

    tables = {"books": [{"title": "Emma", "year": 1815}, {"title": "Persuasion"}]}
    answers = {"/version": {"number": "1.2"}, "/tables": [*tables], "/tables/books": tables["books"]}

    async def answer(request: web.Request) -> web.Response:
        return web.json_response(answers[request.path])

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    monkeypatch.syspath_prepend(guide[0])
    driver = importlib.import_module("dragoman_demo.driver").Driver()
    for name in [name for name in sys.modules if name.startswith("dragoman_demo")]:
        del sys.modules[name]  # no other test may find it imported
    async with TestServer(app) as server:
        profile = Profile(name="mine", type="demo", host=server.host, port=server.port)
        async with Http(profile) as http:
            assert (await driver.connect(profile, http)).version == "1.2"
            assert [found.name for found in await driver.list_objects(ObjectsRequest())] == ["books"]
            page = await driver.fetch_page(PageRequest(object="books", offset=1, limit=1))
    assert [row.to_dict() for row in page.rows] == [{"title": "Persuasion", "year": None}]
    assert page.total == 2


@pytest.fixture(scope="module")
def sample_port():
    with serve_sample() as port:
        yield port


@pytest.mark.slow
@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "tutorial/first-page.md"], ids=lambda page: page.name)
def test_the_example_of_the_front_page_runs(page, sample_port, home):
    """P3: from a saved connection whose driver is missing to printed rows."""
    from dragoman.connections.saved_connections import Connections, SavedConnection
    from dragoman.folders import find_paths

    values = {"host": "127.0.0.1", "port": sample_port}
    Connections(find_paths()).save(SavedConnection(name="shop", type="elasticsearch", values=values))
    source, *others = fenced(page, "python")
    done = subprocess.run([sys.executable, "-c", source], cwd=home, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    totals = [float(line.split()[1]) for line in done.stdout.splitlines() if not line.startswith("100 of")]
    assert len(totals) == 100
    assert totals == sorted(totals, reverse=True)
    assert min(totals) >= 100
    for other in others:
        code = f"{other}\nprint(orders.shape[0])"
        done = subprocess.run([sys.executable, "-c", code], cwd=home, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "12003\n"), done.stderr
