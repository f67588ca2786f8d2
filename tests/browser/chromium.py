"""A headless Chromium, driven by the WebDriver protocol as the W3C describes it: a page, its elements, its requests."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

if TYPE_CHECKING:
    from pathlib import Path

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--force-color-profile=srgb", "--lang=en",
]  # fmt: skip
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
TAB, ENTER, SPACE, DOWN, SHIFT = "\ue004", "\ue007", " ", "\ue015", "\ue008"
PROGRAMS = [next(filter(None, map(shutil.which, names)), None) for names in (
    ("chromium", "chromium-browser", "google-chrome"), ("chromedriver",)
)]  # fmt: skip


class Browser:
    """One session of Chromium with a profile of its own; close it."""

    def __init__(self, profile: Path) -> None:
        chromium, driver = PROGRAMS
        assert chromium
        assert driver
        self._process = subprocess.Popen(
            [driver, "--port=0", "--allowed-ips=127.0.0.1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._open = build_opener(ProxyHandler({})).open
        assert self._process.stdout
        found = next(
            filter(None, (re.search(r"successfully on port (\d+)", line) for line in self._process.stdout)), None
        )
        assert found, "chromedriver did not start"
        self._root = f"http://127.0.0.1:{found[1]}"
        try:
            self._start(chromium, profile)
        except BaseException:
            self.close()
            raise

    def _start(self, chromium: str, profile: Path) -> None:
        options = {"binary": chromium, "args": [*FLAGS, f"--user-data-dir={profile}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"}}
        made = self._send("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._root += f"/session/{made['sessionId']}"

    def _send(self, method: str, path: str, body: object = None) -> Any:
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = Request(self._root + path, data, {"Content-Type": "application/json"}, method=method)
        with self._open(request, timeout=50) as response:
            return json.load(response)["value"]

    def close(self) -> None:
        """End the session, the browser and the driver."""
        try:
            if "/session/" in self._root:
                self._send("DELETE", "")
        finally:
            self._process.terminate()
            self._process.wait(20)
            if self._process.stdout:
                self._process.stdout.close()

    def open(self, where: Path | str) -> None:
        """Open a page."""
        url = where if isinstance(where, str) else f"file://{quote(str(where))}"
        self.forget()  # and a fragment alone would not load it anew
        self._send("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: object) -> Any:
        """Run script in the page; its `return` is the result, a promise is waited for."""
        return self._send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def command(self, name: str, **parameters: object) -> Any:
        """Send a command of the DevTools protocol."""
        return self._send("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def resize(self, width: int, height: int, *, dark: bool = False, script: bool = True) -> None:
        """Set the size of the page, exactly, and how it is to look."""
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])
        self.command("Emulation.setScriptExecutionDisabled", value=not script)

    def is_shown(self, selector: str) -> bool:
        """Tell whether an element is rendered; needs no script in the page."""
        root = self.command("DOM.getDocument")["root"]["nodeId"]
        found = self.command("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        try:
            return bool(found and self.command("DOM.getBoxModel", nodeId=found))
        except HTTPError as error:  # it has no box
            error.close()
            return False

    def keys(self, *keys: str) -> None:
        """Press keys one after the other, as a person does who has no mouse."""
        actions = [{"type": kind, "value": key} for text in keys for key in text for kind in ("keyDown", "keyUp")]
        self._send("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def click(self, selector: str) -> None:
        """Click an element."""
        found = self._send("POST", "/element", {"using": "css selector", "value": selector})
        self._send("POST", f"/element/{found[ELEMENT]}/click")

    def texts(self, selector: str) -> list[str]:
        """Return the text of each element as it is rendered."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)", selector)

    def requests(self) -> list[str]:
        """Return the address of every request since the last call."""
        found = []
        for entry in self._send("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def complaints(self) -> list[str]:
        """Return what the page wrote to the console since the last call: errors, refusals of the policy."""
        return [entry["message"] for entry in self._send("POST", "/se/log", {"type": "browser"})]

    def forget(self) -> None:
        """Leave the page, and forget what was requested and complained about."""
        self._send("POST", "/url", {"url": "about:blank"})
        self.requests()
        self.complaints()

    def picture(self, path: Path) -> None:
        """Save what is seen."""
        path.write_bytes(base64.b64decode(self._send("GET", "/screenshot")))
