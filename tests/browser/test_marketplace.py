"""The pages of a registry in a real Chromium: found, filtered, read and copied from; by mouse, keyboard and phone."""

from __future__ import annotations

import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import audit
from browser.chromium import DOWN, ENTER, SPACE, TAB

import captions
import marketplace
import wheelhouse
from marketplace import HOSTILE
from stranger import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from browser.chromium import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LABELS = ".drivers h2 a"
MEILI = "drivers/dragoman-meili.html"
FOCUSED = "const e = document.activeElement; return e.id || e.innerText || e.value || e.tagName"


def type_into(browser: Browser, selector: str, text: str) -> None:
    browser.run("const e = document.querySelector(arguments[0]); e.value = ''; e.focus()", selector)
    browser.keys(text)


def keep(browser: Browser, name: str) -> None:
    """Save a picture where somebody wants to look at them."""
    if folder := os.environ.get("PICTURES"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        browser.picture(Path(folder) / f"{name}.png")


@pytest.fixture
def web(sample: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(sample))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_the_catalog_lists_every_driver_and_words_narrow_it(browser: Browser, sample: Path):
    browser.open(sample / "index.html")
    keep(browser, "catalog")
    everything = [
        "Elasticsearch Driver",
        "Folder of Parquet Files",
        "Meilisearch Driver",
        "Redis Driver",
        "Weaviate Driver",
    ]
    assert browser.texts(LABELS) == everything
    type_into(browser, "#words", "search")
    assert browser.texts(LABELS) == ["Elasticsearch Driver", "Meilisearch Driver"]
    assert browser.texts("#count") == ["2 of 5 drivers"]
    browser.keys(" cluster")
    assert browser.texts(LABELS) == ["Elasticsearch Driver"]
    browser.keys(" nothing")
    assert browser.texts(LABELS) == []
    assert browser.texts("#count") == ["No driver is like that."]
    type_into(browser, "#words", "REDIS")
    assert browser.texts(LABELS) == ["Redis Driver"]
    assert browser.complaints() == []


def test_the_picture_of_the_readme_shows_the_drivers_that_there_are(browser: Browser):
    browser.open(ROOT / "runtime/dragoman/bundled/index.html")
    shown = [" ".join(text.split()) for text in browser.texts(".drivers h2")]
    assert captions.captions(ROOT / "docs/images/marketplace.webp") == shown


def test_the_best_match_comes_first(browser: Browser, sample: Path):
    browser.open(sample / "index.html")
    type_into(browser, "#words", "files")
    assert browser.texts(LABELS)[0] == "Folder of Parquet Files"
    type_into(browser, "#words", "edit")
    assert "Meilisearch Driver" in browser.texts(LABELS)


def test_filters_combine_and_are_kept_in_the_address(browser: Browser, sample: Path):
    browser.open(sample / "index.html")
    browser.click("input[value=sort]")
    browser.click("input[value=edit]")
    assert browser.texts(LABELS) == ["Elasticsearch Driver", "Meilisearch Driver", "Weaviate Driver"]
    type_into(browser, "#words", "documents")
    assert browser.texts(LABELS) == ["Meilisearch Driver"]
    address = browser.run("return location.href")
    type_into(browser, "#type", "weav")
    assert browser.texts(LABELS) == []
    browser.open(address)
    assert browser.texts(LABELS) == ["Meilisearch Driver"]
    assert browser.run("return document.querySelector('input[value=sort]').checked")


def test_drivers_that_do_not_work_with_an_api_are_filtered_out(browser: Browser, large: Path):
    browser.open(large / "index.html")
    counts = {}
    browser.run("document.querySelector('#api').focus()")
    for version in browser.run("return [...document.querySelectorAll('#api option')].map((e) => e.value)"):
        if version:
            browser.keys("\ue015")  # the arrow down
        counts[version] = browser.texts("#count")[0]
    assert counts == {"": "10,000 drivers", "1.0": "6,666 of 10,000 drivers", "1.1": "10,000 drivers"}


def test_everything_works_by_keyboard_alone(browser: Browser, sample: Path):
    browser.open(sample / "index.html")
    browser.keys(TAB)
    assert browser.run(FOCUSED) == "Skip to the drivers"
    browser.keys(TAB)
    assert browser.run(FOCUSED) == "words"
    browser.keys("meili", TAB, TAB)
    assert browser.run(FOCUSED) == "api"
    browser.keys(TAB, SPACE)
    assert browser.run("return document.activeElement.checked")
    browser.run("document.querySelector('#type').focus()")
    browser.keys(TAB, DOWN)  # a choice without a mouse
    assert browser.run("return document.querySelector('#api').value") == "1.0"
    while browser.run("return document.activeElement.tagName") != "A":
        browser.keys(TAB)
    browser.keys(ENTER)
    assert browser.texts("h1") == ["Meilisearch Driver"]
    browser.keys(TAB, TAB)
    assert browser.run(FOCUSED) == "← All drivers"
    browser.keys(ENTER)
    assert browser.texts("h1") == ["Drivers"]


def test_focus_is_always_to_be_seen(browser: Browser, sample: Path):
    seen = (
        "const s = getComputedStyle(document.activeElement.closest('.chips label') || document.activeElement);"
        "return parseFloat(s.outlineWidth) >= 2 && s.outlineStyle !== 'none'"
    )
    for page, least in (("index.html", 17), (MEILI, 10)):
        browser.open(sample / page)
        stops = 0
        while stops < 40:
            browser.keys(TAB)
            if browser.run("return document.activeElement === document.body"):  # the end of the page
                break
            assert browser.run(seen), browser.run(FOCUSED)
            stops += 1
        assert least <= stops < 40, page


@pytest.mark.parametrize("width", [320, 360, 412])
def test_a_phone_needs_no_sideways_scrolling(browser: Browser, sample: Path, hostile: Path, width: int):
    browser.resize(width, 740)
    for page in (sample / "index.html", sample / MEILI, hostile / "index.html", *(hostile / "drivers").iterdir()):
        browser.open(page)
        keep(browser, f"phone-{width}-{page.stem}")
        assert browser.run("return document.documentElement.scrollWidth") <= width, page.name
    assert browser.run("return visualViewport.scale") == 1


def test_what_can_be_touched_on_a_phone_is_large_enough(browser: Browser, sample: Path):
    browser.resize(360, 740)
    browser.open(sample / "index.html")
    heights = browser.run(
        "return [...document.querySelectorAll('input[type=search], select, .chips label, button')]"
        ".filter((e) => e.offsetParent).map((e) => e.getBoundingClientRect().height)"
    )
    assert min(heights) >= 24


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_texts_can_be_read_and_fields_have_names(
    browser: Browser, sample: Path, hostile: Path, tmp_path: Path, dark: bool
):
    (tmp_path / "targets").mkdir()
    whole = marketplace.front(tmp_path, marketplace.catalog(60)) / "all.html"
    for page in (sample / "index.html", sample / MEILI, hostile / "drivers/dragoman-evil3.html", whole):
        browser.resize(1200, 850, dark=dark)
        browser.open(page)
        keep(browser, f"{'dark' if dark else 'light'}-{page.stem}")
        browser.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
        assert browser.run(audit.FAULTS) == [], page.name
    background = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(20, 24, 27)") is dark


def test_the_audit_finds_what_it_looks_for(browser: Browser, tmp_path: Path):
    (tmp_path / "bad.html").write_text(
        "<html><body><h1>A</h1><h3>C</h3><input><img src=x><a href=#></a><p style='color:#999;background:#fff'>pale</p>"
        "<p id=a>1</p><p id=a>2</p><pre style='overflow:auto;width:9em'>a text that is far wider than its box is</pre>"
    )
    browser.open(tmp_path / "bad.html")
    found = " ".join(browser.run(audit.FAULTS))
    for word in (
        "language",
        "title",
        "skips",
        "INPUT has no name",
        "picture",
        "A has no name",
        "contrast",
        "twice",
        "scrolls",
    ):
        assert word in found, word


def test_nothing_an_author_wrote_is_executed_or_loaded(browser: Browser, hostile: Path):
    for page in (hostile / "index.html", *sorted((hostile / "drivers").iterdir())):
        browser.open(page)
        assert browser.run("return window.owned === undefined && document.title.includes('dragoman')"), page.name
        for event in ("mouseover", "focus", "click"):  # what an attribute would wait for
            told = "for (const e of document.querySelectorAll('main *')) e.dispatchEvent(new Event(arguments[0]))"
            browser.run(told, event)
        assert browser.run("return window.owned === undefined"), page.name
        assert browser.run("return document.scripts.length") == (2 if page.name == "index.html" else 1)
        assert (
            browser.run(
                "return document.querySelectorAll('img, svg, iframe, base, form[action], style ~ style').length"
            )
            == 0
        )
        leads = browser.run("return [...document.links].map((e) => e.protocol)")
        assert set(leads) <= {"file:", "https:"}
        assert [url for url in browser.requests() if url != page.as_uri()] == []
        assert browser.complaints() == []


def test_what_an_author_wrote_is_shown_as_it_was_written(browser: Browser, hostile: Path):
    for number, text in enumerate(HOSTILE):
        browser.open(hostile / f"drivers/dragoman-evil{number}.html")
        [notice] = browser.texts(".notice")
        shown = "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text)
        assert notice == f"Version 1.0.0 is deprecated: {shown}"


def test_the_policy_stops_a_script_even_if_one_got_in(browser: Browser, sample: Path, tmp_path: Path):
    for page in ("index.html", MEILI):
        spoilt = tmp_path / "spoilt.html"
        more = "<script>window.owned=1</script><img src=x onerror=window.owned=1><p style='color:red'>x</p>"
        spoilt.write_text((sample / page).read_text().replace("</main>", f"{more}</main>"))
        browser.open(spoilt)
        assert browser.run("return window.owned === undefined")
        assert any("Content Security Policy" in complaint for complaint in browser.complaints())


def test_a_driver_is_installed_by_a_command_to_copy(browser: Browser, sample: Path):
    browser.command("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.open(sample / MEILI)
    keep(browser, "driver")
    browser.click(".command button")
    assert (
        browser.run(
            "const button = document.querySelector('.command button');"
            "return new Promise((done) => setTimeout(() => done(button.innerText), 200))"
        )
        == "Copied"
    )
    assert browser.run("return navigator.clipboard.readText()") == "dragoman plugins install meili"


def test_a_driver_page_tells_what_a_person_wants_to_know(browser: Browser, sample: Path):
    browser.open(sample / MEILI)
    [shown] = browser.texts("main")
    for part in (
        "Reaches the connection's host and port", "Is given that connection's credentials", "Meilisearch driver",
        "yanked: loses the order of facets", "quarantined: sends keys to a foreign host", "Facets as columns",
        "79 passed, 0 failed, 27 skipped · sandbox full", f"{wheelhouse.NOW:%Y-%m-%d}", "Apache-2.0",
    ):  # fmt: skip
        assert part in shown, part
    links = browser.run("return [...document.links].map((e) => e.getAttribute('href'))")
    wheels = [link for link in links if link.endswith(".whl")]
    assert [Path(link).name.split("-")[1] for link in wheels] == ["1.2.0", "1.1.0"], (
        "a quarantined wheel is not offered"
    )
    for link in wheels:
        assert (sample / "drivers" / link).resolve().is_file()


def test_it_works_without_script(browser: Browser, sample: Path, large: Path):
    browser.open(sample / "index.html")
    assert browser.is_shown(".finder")
    browser.resize(1200, 850, script=False)
    try:
        browser.open(sample / "index.html")
        keep(browser, "without-script")
        assert not browser.is_shown(".finder"), "what only script can do is not offered"
        assert all(browser.is_shown(f".drivers li:nth-child({at}) a") for at in range(1, 6))
        browser.open(large / "index.html")
        assert browser.is_shown("#more a[href='all.html']")
        browser.open(sample / MEILI)
        assert browser.is_shown(".command code")
        assert not browser.is_shown(".command button")
    finally:
        browser.resize(1200, 850)
    assert (large / "all.html").read_text().count("<li>") == 10_000


def test_the_list_without_script_is_the_list_that_script_makes(browser: Browser, sample: Path):
    browser.open(sample / "index.html")
    before = browser.run("return document.querySelector('#drivers').innerHTML.replaceAll('\\n', '')")
    type_into(browser, "#words", "x")
    browser.keys("\ue003")
    assert browser.texts("#count") == ["5 drivers"]
    assert browser.run("return document.querySelector('#drivers').innerHTML.replaceAll('\\n', '')") == before


def test_ten_thousand_drivers_are_searched_while_typing(browser: Browser, large: Path):
    browser.open(large / "index.html")
    assert len(browser.texts(LABELS)) == 50
    browser.click("#more button")
    assert len(browser.texts(LABELS)) == 100
    assert browser.run(FOCUSED) == "Store 50 Driver"
    type_into(browser, "#words", "store009999")
    assert browser.texts(LABELS) == ["Store 9,999 Driver"]
    took = browser.run(
        "const e = document.querySelector('#words'), began = performance.now(); for (const text of arguments[0]) {"
        "e.value = text; e.dispatchEvent(new Event('input', {bubbles: true})); } return performance.now() - began",
        ["s", "st", "sto", "stor", "store", "store ", "store v", "store ve", "store vectors", ""],
    )
    assert took / 10 < 1000, "ms for one letter"


def test_over_a_web_server_it_asks_for_nothing_but_itself(browser: Browser, web: str):
    browser.open(web)
    assert browser.texts("#use") == [f"dragoman registry add {web}"]
    browser.click(f".drivers a[href='{MEILI}']")
    assert browser.texts("h1") == ["Meilisearch Driver"]
    assert [url for url in browser.requests() if not url.startswith(web)] == []
    assert {url for url in browser.requests() if "favicon" not in url} == set()


def test_from_a_folder_it_names_the_folder(browser: Browser, sample: Path, tmp_path: Path):
    place = tmp_path / "it's a stick"
    place.symlink_to(sample)
    browser.open(place / "index.html")
    [command] = browser.texts("#use")
    assert command == f"dragoman registry add '{tmp_path}/it'\\''s a stick/'"
    assert [url for url in browser.requests() if not url.startswith("file:")] == []
