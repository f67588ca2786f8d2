"""What strangers write is text in every view: a driver, a registry and a person whose every text is an attack."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from workbench.browser import corpus
from workbench.browser.conftest import address_of, browsing, read_address, serving
from workbench.browser.test_flows import command
from workbench.browser.walking import Hands, pill, write_filter

import wheelhouse
from dragoman_registry.publisher import publish

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Route

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(240)]

COLLECT = "() => { window.hits = []; window.attacked = (which) => window.hits.push(which) }"
FOREIGN = (
    "iframe, img, base, object, embed, video, audio, meta[http-equiv], form form, svg animate, [onerror], [onload]"
)


def test_every_attempt_is_real_where_nothing_protects(chromium: Browser) -> None:
    assert len(corpus.ATTEMPTS) >= 40
    tab = chromium.new_page()
    asked: set[int] = set()

    def catch(route: Route) -> None:
        asked.add(int(route.request.url.rpartition("/")[2]))
        route.abort()

    tab.route("**://attacker.invalid/**", catch)
    tab.route("http://unprotected.invalid/", lambda route: route.fulfill(body="<!doctype html><body>"))
    tab.goto("http://unprotected.invalid/")
    tab.evaluate(COLLECT)
    for way, text in corpus.ATTEMPTS:
        tab.evaluate(corpus.UNPROTECTED, [way, text])
    hits = set(tab.evaluate("window.hits")) | asked
    harmless = [text for number, (_, text) in enumerate(corpus.ATTEMPTS) if number not in hits]
    tab.close()
    assert not harmless


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a connection whose driver is hostile, and comes with a hostile readme and changelog."""
    folder = tmp_path_factory.mktemp("hostile")
    driver = wheelhouse.Driver(
        code=corpus.driver_code(),
        hooks=corpus.HOOKS,
        capabilities=["browse", "filter", "edit", "console"],
        summary=corpus.TEXTS[0],
        server_versions=corpus.TEXTS[:3],
    )
    readme = "\n\n".join([*corpus.TEXTS, *corpus.MARKDOWN])
    driver.readme = readme
    path = driver.write(folder)
    publish.build(
        [path],
        to=folder / "registry",
        now=wheelhouse.NOW,
        beside={path.name: {"CHANGELOG.md": readme.encode()}},
    )
    home = folder / "home"
    command(home, "registry", "add", folder / "registry")
    command(home, "plugins", "install", "demo", "--yes")
    command(home, "connections", "add", "bad", "--type", "demo", "--host", "127.0.0.1", "--port", 9, "--yes")
    return home


@pytest.fixture(scope="module")
def place(hostile: Path) -> Iterator[Path]:
    """The file that leads into a workbench with the hostile connection."""
    with serving(hostile) as file:
        yield file


@pytest.fixture
def bad(chromium: Browser, place: Path) -> Iterator[Page]:
    """A tab with the hostile connection open. The test fails if an attempt succeeds."""
    with browsing(chromium, read_address(place)) as page:
        asked: list[str] = []
        page.on("request", lambda request: "attacker.invalid" in request.url and asked.append(request.url))
        page.evaluate(COLLECT)
        go(page, "#/connection/bad")
        page.locator(".facts").wait_for()
        yield page
        assert not asked
        unharmed(page)


def go(page: Page, place: str) -> None:
    """Go to a view."""
    page.evaluate("place => { location.hash = place }", place)


def unharmed(page: Page) -> None:
    """Assert that no attempt has run, and that none became an element."""
    page.wait_for_timeout(300)
    assert page.evaluate("window.hits") == []
    assert page.locator(FOREIGN).count() == 0
    assert page.locator("body style, body script, body link").count() == 0
    assert page.evaluate("[...document.links].every(({ protocol }) => /^https?:$/.test(protocol))")
    assert page.locator(".shell").is_visible()


def shown(page: Page) -> str:
    """The text of the page."""
    text: str = page.locator("body").inner_text()
    return text


def plain(text: str) -> str:
    """A text without what Markdown takes out of it: space, and the quotes of code."""
    return " ".join(text.replace("`", "").split())


def test_objects_and_what_the_server_says_of_itself(bad: Page) -> None:
    bad.locator(".object").nth(len(corpus.TEXTS)).wait_for()
    text = shown(bad)
    assert all(" ".join(one.split()) in " ".join(text.split()) for one in corpus.TEXTS)
    bad.locator(".badge.warn", has_text="warning").click()
    bad.get_by_role("dialog", name="Warnings").wait_for()
    unharmed(bad)
    bad.keyboard.press("Escape")
    bad.locator(".object").nth(5).click()
    bad.get_by_text("refused-by-server").or_(bad.locator(".error-box, .banner.bad, [role=alert]")).first.wait_for()


def test_columns_values_keys_and_notes(bad: Page) -> None:
    go(bad, address_of("fine", connection="bad"))
    bad.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)').first.wait_for()
    assert corpus.TEXTS[0] in shown(bad)
    bad.get_by_role("button", name="Side pane").click()
    for number in (2, 5, 9):
        bad.locator(f'[role=row][aria-rowindex="{number}"] .cell:visible').nth(1).click()
    bad.get_by_role("tab", name="Row").click()
    unharmed(bad)
    bad.get_by_role("button", name="Columns").click()
    bad.get_by_role("complementary", name="Columns").wait_for()
    unharmed(bad)
    bad.get_by_role("button", name="Columns").click()
    bad.locator("[role=columnheader]").nth(1).click(button="right")
    bad.get_by_role("menu").wait_for()
    bad.keyboard.press("Escape")


def test_rows_as_documents_refused_cells_and_the_palette(bad: Page) -> None:
    go(bad, address_of("fine", connection="bad"))
    cells = bad.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)')
    cells.nth(1).click()
    bad.keyboard.press("Shift+Enter")
    bad.locator(".row-editor .cm-line").nth(2).wait_for()
    unharmed(bad)
    bad.keyboard.press("Control+a")
    Hands(bad).paste(json.dumps(dict.fromkeys(corpus.TEXTS, 1), ensure_ascii=False))
    bad.locator(".row-faults").get_by_text("more").wait_for()
    unharmed(bad)
    bad.keyboard.press("Escape")
    bad.locator(".toast", has_text="dropped").wait_for()
    bad.keyboard.press("End")
    Hands(bad).paste("\t".join(" ".join(text.split()) for text in corpus.TEXTS))
    bad.get_by_role("dialog").get_by_text("there is no such column").first.wait_for()
    unharmed(bad)
    bad.keyboard.press("Escape")
    bad.keyboard.press("Control+k")
    bad.get_by_role("option").nth(20).wait_for()
    unharmed(bad)


def test_filters_what_explains_them_and_their_names(bad: Page) -> None:
    go(bad, address_of("fine", connection="bad"))
    bad.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)').first.wait_for()
    write_filter(bad, "")
    for _ in range(2):  # the first column, its first operator
        bad.keyboard.press("ArrowDown")
        bad.keyboard.press("Enter")
    Hands(bad).paste(corpus.TEXTS[0])
    bad.locator(".meaning .badge").first.wait_for()
    unharmed(bad)
    bad.keyboard.press("Enter")
    pill(bad, 1).hover()
    bad.get_by_role("tooltip").wait_for()
    unharmed(bad)
    bad.get_by_role("button", name="Saved", exact=True).click()
    bad.get_by_role("menuitem", name="Save these rows").click()
    dialog = bad.get_by_role("dialog")
    for name in (corpus.TEXTS[0], corpus.TEXTS[4]):
        Hands(bad).paste_into(dialog.get_by_role("textbox"), name)
        dialog.get_by_role("alert").wait_for()
        assert dialog.get_by_role("button", name="Save").is_disabled()
        unharmed(bad)
        bad.keyboard.press("Control+a")
        bad.keyboard.press("Delete")
    Hands(bad).write(dialog.get_by_role("textbox"), "hostile")
    with bad.expect_response("**/api/queries/save"):
        dialog.get_by_role("button", name="Save").click()
    bad.get_by_role("button", name="Saved", exact=True).click()
    bad.get_by_role("menuitem", name="hostile").wait_for()
    unharmed(bad)
    bad.keyboard.press("Escape")
    pill(bad, 1).get_by_role("button").first.click()
    bad.keyboard.press("Control+a")
    Hands(bad).type("fail")
    bad.locator(".meaning.refused, .filter [role=alert]").first.wait_for()


def test_requests_of_changes_and_what_became_of_them(bad: Page) -> None:
    go(bad, address_of("fine", connection="bad"))
    bad.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)').first.wait_for()
    bad.locator('[role=row][aria-rowindex="2"] .cell:visible').nth(1).click()
    bad.keyboard.press("F2")
    Hands(bad).paste(corpus.TEXTS[1])
    bad.keyboard.press("Enter")
    bad.get_by_role("region", name="Changes").get_by_role("button", name="Review").click()
    bad.locator(".request").first.wait_for()
    unharmed(bad)
    bad.get_by_role("button", name="Send 1 request").click()
    bad.locator(".badge", has_text="failed").wait_for()


SIGNS = str.maketrans({"\n": "↵", "\r": "␍", "\t": "⇥"})
DRAWN = [text.translate(SIGNS) for text in corpus.TEXTS[:50]]
"""What a chart shows of the texts that name its groups: signs for what breaks a line, and 50 groups at most."""


def test_answers_and_errors_of_the_console(bad: Page) -> None:
    go(bad, "#/connection/bad/console")
    bad.locator(".cm-content").wait_for()
    bad.keyboard.press("Control+a")
    Hands(bad).paste("\n".join(corpus.TEXTS).replace("${", "$${"))
    bad.get_by_role("button", name="Run", exact=True).click()
    bad.locator(".answer").first.wait_for()
    unharmed(bad)
    names = bad.locator(".group-name")
    names.nth(len(corpus.TEXTS) - 1).wait_for()
    assert [" ".join(text.split()) for text in names.all_inner_texts()] == [" ".join(one.split()) for one in DRAWN]
    bad.locator(".answer-chart-line").get_by_role("button").first.click()
    bad.get_by_role("menuitemcheckbox").nth(30).click()
    unharmed(bad)
    for name in ("Text", "Grid", "Tree", "Chart"):
        for tab in bad.locator(".answer").get_by_role("tab", name=name).all():
            tab.click()
            unharmed(bad)
    panels = bad.locator(".answer-panel-line > strong")
    panels.nth(7).wait_for()
    bad.get_by_role("slider").first.press("End")
    unharmed(bad)
    bad.get_by_role("button", name="History").click()
    bad.get_by_role("option").first.wait_for()
    chosen = bad.get_by_role("region", name="The text that is chosen")
    assert all(plain(text) in plain(chosen.inner_text()) for text in corpus.TEXTS[:20])
    unharmed(bad)
    bad.keyboard.press("Escape")
    bad.locator(".cm-content").click()
    bad.keyboard.press("Control+a")
    Hands(bad).type("fail")
    bad.get_by_role("button", name="Run", exact=True).click()
    bad.locator(".answers [role=alert]").first.wait_for()


def test_a_readme_a_changelog_and_a_definition(bad: Page) -> None:
    go(bad, "#/drivers/demo")
    bad.locator(".tab-panel").wait_for()
    for name in ("Readme", "Changelog"):
        bad.get_by_role("tab", name=name).click()
        panel = bad.locator(".tab-panel .markdown")
        panel.wait_for()
        told = plain(panel.inner_text())
        assert all(plain(one) in told for one in corpus.TEXTS), name
        assert panel.locator("a, img, [href], [src], [style]").count() == 0
        for address in ("javascript:attacked", "//attacker.invalid/", "data:text/html"):
            assert address in told
        unharmed(bad)
    for name in ("Versions", "Permissions", "Report"):
        bad.get_by_role("tab", name=name).click()
        unharmed(bad)
    go(bad, "#/drivers")
    bad.locator(".card", has_text="demo").wait_for()
    unharmed(bad)
    go(bad, "#/connection/bad/structure/fine")
    bad.locator("table").first.wait_for()
    bad.get_by_role("treeitem").first.wait_for()


def test_a_readme_that_no_parser_is_quick_with_stays_text(bad: Page) -> None:
    """The parser of Markdown takes minutes for some texts; it runs apart from the page, and is ended."""
    slow = "> - " * 20_000

    def answer(route: Route) -> None:
        real = route.fetch()
        route.fulfill(response=real, json={**real.json(), "readme": slow, "changelog": "# It *changed*"})

    bad.route("**/api/plugins/show", answer)
    go(bad, "#/drivers/demo")
    bad.locator("pre.prose").wait_for()
    frames = bad.evaluate("""new Promise((done) => {
      const began = performance.now();
      let [most, last] = [0, began];
      const next = (now) => {
        [most, last] = [Math.max(most, now - last), now];
        now - began < 2000 ? requestAnimationFrame(next) : done(most);
      };
      requestAnimationFrame(next);
    })""")
    assert frames < 2_000  # milliseconds between two frames; the parser would hold the page for a minute
    bad.get_by_text("Shown as it is written: it takes too long to format.").wait_for()
    assert bad.locator("pre.prose").inner_text().startswith("> - > - ")
    bad.get_by_role("tab", name="Changelog").click()
    bad.locator(".markdown h2 em", has_text="changed").wait_for()


def test_addresses_of_views(bad: Page) -> None:
    for view in ("connection/%s", "connection/bad/rows/%s", "drivers/%s", "new/%s", "%s"):
        for text in (corpus.TEXTS[0], corpus.TEXTS[4], "__proto__", "constructor"):
            go(bad, "#/" + view.replace("%s", quote(text, safe="")))
            bad.wait_for_timeout(100)
            unharmed(bad)
            go(bad, address_of(text, connection="bad"))
            bad.wait_for_timeout(100)
            unharmed(bad)
