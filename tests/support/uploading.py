"""A served registry and uploads to it: well-formed ones as by twine and uv, and malformed ones."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
import resource
import socket
import subprocess
import time
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from anyio.from_thread import start_blocking_portal

import wheelhouse
from command_line import Machine
from dragoman_registry.publisher import inbox
from dragoman_registry.publisher.inbox import Inbox
from dragoman_registry.publisher.serve import serving

TOKENS = {"alice": "alice-has-this-token", "bob": "bob-has-another-token"}


@contextmanager
def served(root, **options):
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serving(root, **options)) as url:
        yield url


def ask(url, path, *, method="GET", body=None, **headers):
    """Send a request exactly as it is written, and return status, reason, headers and body."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.reason, answer.headers, answer.read()
    finally:
        connection.close()


def basic(user="__token__", token=TOKENS["alice"]):
    return "Basic " + base64.b64encode(f"{user}:{token}".encode()).decode()


def form(wheel, *more, **changes):
    """Write the form that twine and uv post; a field that is None is left out."""
    data = wheel.read_bytes()
    fields = {
        ":action": "file_upload",
        "protocol_version": "1",
        "filetype": "bdist_wheel",
        "name": "dragoman-demo",
        "sha256_digest": hashlib.sha256(data).hexdigest(),
        "blake2_256_digest": hashlib.blake2b(data, digest_size=32).hexdigest(),
        "file": wheel.name,
    } | {key.replace("action", ":action"): value for key, value in changes.items()}
    file = fields.pop("file")
    parts = [(f'name="{key}"', value.encode()) for key, value in fields.items() if value is not None]
    parts += [(f'name="content"; filename="{file}"', data)] if file else []
    parts += more
    written = b"".join(
        b"--edge\r\nContent-Disposition: form-data; " + head.encode() + b"\r\n\r\n" + value + b"\r\n"
        for head, value in parts
    )
    return written + b"--edge--\r\n"


def post(url, body, *, authorization=None, **headers):
    told = {"Content_Type": "multipart/form-data; boundary=edge", "Authorization": authorization or basic(), **headers}
    status, reason, _, said = ask(url, "/upload", method="POST", body=body, **told)
    return status, reason, said.decode()


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def left(root):
    """Return what lies in the inbox, drafts included."""
    return files(Inbox(root).folder)


def wheel(folder, version="1.1.0", **changes):
    return wheelhouse.Driver(version=version, **changes).write(folder)


def open_upload(url, body, *, length=None, authorization=None, expect=False):
    """Begin an upload by hand."""
    parts = urlsplit(url)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=30)
    head = (
        f"POST /upload HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: {authorization or basic()}\r\n"
        f"Content-Type: multipart/form-data; boundary=edge\r\nContent-Length: {length or len(body)}\r\n"
    )
    connection.sendall((head + ("Expect: 100-continue\r\n" if expect else "") + "\r\n").encode())
    return connection


def eventually(check):
    end = time.monotonic() + 30
    while not check():
        assert time.monotonic() < end
        time.sleep(0.02)


@contextmanager
def command(root, tmp_path, *more, limit=None):
    """Run the server as a person does, and yield the process and what it said first."""
    token = tmp_path / "token"
    token.write_text(TOKENS["alice"] + "\n")
    machine = Machine(tmp_path / "home")
    words = machine.words("registry", "serve", root, "--json", "--upload", "--token", f"alice=file:{token}", *more)
    limited = None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    with subprocess.Popen(
        words, env=machine.variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limited
    ) as process:
        try:
            lines = ""
            while not lines.endswith("}\n"):
                line = process.stdout.readline()
                assert line, process.stderr.read()
                lines += line
            yield process, json.loads(lines)
        finally:
            process.kill()


def judge_for_ever(*args: Any) -> Any:
    """Judge as a server does, but never end with version 6.6.6."""
    if "6.6.6" in str(args):
        re.fullmatch(r"(a|a)*b", "a" * 60)  # holds the interpreter's lock, as all expressions do
    return inbox.judge(*args)
