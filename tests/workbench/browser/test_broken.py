"""What breaks while a person works: the line to the workbench, the driver's process, the workbench itself."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from workbench.browser.conftest import Cluster, browsing, read_address, running, serving, show
from workbench.browser.slow_line import SlowLine
from workbench.browser.test_flows import SAVE, command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(300)]

LOST = "connection to the workbench lost"


@pytest.fixture
def own(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """The file that leads into a workbench of the test's own."""
    command(tmp_path / "home", *SAVE, "--port", cluster.port)
    with serving(tmp_path / "home") as file:
        yield file


@pytest.fixture
def line(own: Path) -> Iterator[SlowLine]:
    """A line to that workbench, as `ssh -L` makes one."""
    port = urlsplit(read_address(own)).port
    assert port
    line = SlowLine(port)
    yield line
    line.close()


def through(line: SlowLine, own: Path) -> str:
    """The address of the workbench at the near end of the line."""
    found = urlsplit(read_address(own))
    return found._replace(netloc=f"127.0.0.1:{line.port}").geturl()


def begin(page: Page) -> None:
    """Open the connection and show rows."""
    page.get_by_role("link", name="shop").first.click()
    page.locator(".facts").wait_for()
    show(page, "orders")


def test_a_line_that_breaks_is_said_and_what_happened_meanwhile_is_learnt(
    chromium: Browser, own: Path, line: SlowLine
) -> None:
    with browsing(chromium, through(line, own)) as page:
        begin(page)
        page.locator('[role=row][aria-rowindex="2"] .cell:visible').nth(2).click()
        line.cut()
        page.get_by_text(LOST).wait_for()
        page.get_by_role("button", name="Refresh", exact=True).click()
        page.get_by_role("alert").get_by_text("The workbench's server does not answer").wait_for()
        with browsing(chromium, read_address(own)) as other:
            other.get_by_role("link", name="shop").first.click()
            other.locator(".facts").wait_for()
            other.get_by_role("button", name="More", exact=True).click()
            other.get_by_role("menuitem", name="Close shop").click()
            other.get_by_role("heading", name="Connections").wait_for()
        line.mend()
        page.get_by_text(LOST).wait_for(state="detached")
        page.get_by_text("This connection was closed").wait_for()
        show(page, "books")  # which opens it again
        assert page.get_by_role("alert").count() == 0


def test_a_lid_that_was_closed_is_noticed_when_it_opens(chromium: Browser, own: Path, line: SlowLine) -> None:
    """Nothing breaks, but nothing arrives: the stream counts as lost when its beats stay away."""
    with browsing(chromium, "about:blank", wait=False) as page:
        page.clock.install()
        page.goto(through(line, own))
        begin(page)
        page.clock.fast_forward(30_000)
        assert page.get_by_text(LOST).count() == 0
        line.allow(0)
        page.clock.fast_forward(60_000)
        page.get_by_text(LOST).wait_for()
        line.cut()  # as networks do with what was asleep for long
        line.allow(None)
        line.mend()
        for _ in range(20):
            page.clock.fast_forward(1_000)
            page.wait_for_timeout(100)
            if not page.get_by_text(LOST).count():
                break
        assert page.get_by_text(LOST).count() == 0
        show(page, "books")


def children(process: int) -> list[int]:
    """The processes that a process has started and that live."""
    found = Path(f"/proc/{process}/task").glob("*/children")
    return [int(one) for file in found for one in file.read_text().split()]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the driver's process by /proc")
def test_a_driver_that_is_killed_is_said_and_the_next_request_starts_it_again(chromium: Browser, own: Path) -> None:
    with browsing(chromium, read_address(own)) as page:
        begin(page)
        workbench = int(own.stem.removeprefix("open-"))
        drivers = children(workbench)
        assert drivers
        for one in drivers:
            os.kill(one, signal.SIGKILL)
        page.locator(".toast.bad", has_text="The driver of shop ended").wait_for()
        assert "The next request starts it again" in page.locator(".toast.bad").inner_text()
        page.get_by_role("button", name="Refresh", exact=True).click()
        page.locator('[role=row][aria-rowindex="2"] [role=gridcell]:not(.loading)').first.wait_for()
        show(page, "books")
        assert page.get_by_role("alert").count() == 0
        assert not set(children(workbench)) & set(drivers)


def test_a_workbench_that_ends_is_said_and_what_is_shown_stays(chromium: Browser, own: Path) -> None:
    with browsing(chromium, read_address(own)) as page:
        begin(page)
        text = page.locator(".cell").first.inner_text()
        os.kill(int(own.stem.removeprefix("open-")), signal.SIGTERM)
        page.get_by_text("the workbench has ended").wait_for()
        assert page.locator(".cell").first.inner_text() == text


def test_a_server_that_dies_and_comes_back_is_said_once_each_and_the_first_message_goes(
    chromium: Browser, tmp_path: Path
) -> None:
    words = ("-m", "dragoman", "sample", "shop", "--json", "--port")
    with ExitStack() as stack:
        with running(*words, 0) as served:
            port = served["samples"][0]["port"]
            command(tmp_path / "home", *SAVE, "--port", port)
            page = stack.enter_context(
                browsing(chromium, read_address(stack.enter_context(serving(tmp_path / "home"))))
            )
            begin(page)
        header, toasts = page.get_by_role("banner"), page.locator(".toast")
        header.get_by_text("no answer").wait_for(timeout=20_000)
        assert toasts.count() == 1
        assert "shop does not answer" in toasts.inner_text()
        page.wait_for_timeout(12_000)  # another check fails
        assert toasts.count() == 1
        with running(*words, port):
            page.get_by_text("shop answers again.").wait_for(timeout=20_000)
            header.get_by_text("no answer").wait_for(state="detached", timeout=5_000)
            assert toasts.all_inner_texts() == ["shop answers again."]
