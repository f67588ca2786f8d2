"""Two users of one machine: neither reaches the workbench of the other, by its files, its processes or its port."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys

import pytest
from anyio.to_thread import run_sync

from browsing import signed_in
from dragoman_workbench.messages.routes import ROUTES

OTHER = 65534
pytestmark = [
    pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv acts as the other user"),
]
ATTEMPT = """
import http.client, json, os, sys
folder, process, port, routes = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
assert os.getuid() == {uid}, os.getuid()
told = {{}}

def attempt(name, work):
    try:
        told[name] = str(work())
    except Exception as error:
        told[name] = type(error).__name__

def ask(method, path, **headers):
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    line.request(method, path, b"{{}}" if method == "POST" else None, headers)
    answer = line.getresponse()
    return answer.status, answer.read().decode()

attempt("folder", lambda: os.listdir(folder))
attempt("entry", lambda: open(os.path.join(folder, f"open-{{process}}.html")).read())
for name in ("environ", "mem"):
    attempt(name, lambda: open(f"/proc/{{process}}/{{name}}", "rb").read(9))
attempt("fd", lambda: os.listdir(f"/proc/{{process}}/fd"))
attempt("cwd", lambda: os.readlink(f"/proc/{{process}}/cwd"))
attempt("arguments", lambda: open(f"/proc/{{process}}/cmdline").read())
own = f"http://127.0.0.1:{{port}}"
posts = {{"Content-Type": "application/json", "Origin": own}}
told["routes"] = {{
    f"{{route}} {{number}}": ask("POST", f"/api/{{route}}", **posts, **more)
    for route in routes
    for number, more in enumerate(({{}}, {{"Dragoman-Secret": "guess"}}, {{"Dragoman-Secret": "0" * 43}}))
}}
told["events"] = ask("GET", "/api/events")
told["download"] = ask("GET", "/download/guess")
told["page"] = ask("GET", "/")
print(json.dumps(told))
"""


async def as_another_user(*arguments: str) -> dict:
    """Run the attempt as another user."""
    program = shutil.which("python3", path="/usr/bin:/bin") or sys.executable  # the other cannot enter our own
    act = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", program, "-I", "-c"]
    command = [*act, ATTEMPT.format(uid=OTHER), *arguments]
    done = await run_sync(lambda: subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=120))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
async def test_another_user_gets_neither_the_token_nor_an_answer(shop_home):
    for folder in (shop_home, *shop_home.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)  # the way there is open; the workbench's own folder is not
    async with signed_in(shop_home, connection="shop") as tab:
        await tab("open", connection="shop")
        path = tab.place.file.path
        token = tab.place.address().partition("token=")[2]
        port = tab.place.url.rpartition(":")[2]
        told = await as_another_user(str(path.parent), str(os.getpid()), port, json.dumps(sorted(ROUTES)))
        refused = {"folder", "entry", "environ", "mem", "fd", "cwd"}
        assert {name: told[name] for name in refused} == dict.fromkeys(refused, "PermissionError")
        text = json.dumps(told)
        assert token not in text
        assert tab.secret not in text
        answers = told["routes"]
        assert len(answers) == 3 * len(ROUTES)
        assert all(json.loads(body).keys() == {"error"} for _, body in answers.values())
        for name, (status, body) in answers.items():
            expected = "bad-request" if name.startswith("enter ") else "no-secret"
            assert (status, json.loads(body)["error"]["code"]) == (400 if expected == "bad-request" else 401, expected)
        assert [told[name][0] for name in ("events", "download")] == [401, 404]
        assert "shop" not in told["page"][1]


async def test_every_file_of_the_workbench_is_its_users_alone(shop_home):
    umask = os.umask(0)
    try:
        async with signed_in(shop_home) as tab:
            await tab("preferences/set", key="a", value="1")
            await tab("open", connection="shop")
            await tab("console/execute", connection="shop", text="GET /")
            found = [tab.place.file.path.parent, *tab.place.file.path.parent.rglob("*")]
            assert {each.name for each in found} >= {tab.place.file.path.name, "preferences.json"}
            for each in found:
                about = each.lstat()
                assert about.st_uid == os.geteuid(), each
                assert stat.S_IMODE(about.st_mode) & 0o077 == 0, each
    finally:
        os.umask(umask)
