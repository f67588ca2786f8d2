"""A real nginx on the loopback, as an ordinary user runs it: below a path, and for clients with a certificate alone."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fakes.certificates import Certificates

REQUIRE = "REQUIRE_NGINX"
"""The variable that makes a missing nginx a failure."""

_CONFIGURATION = """
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
  access_log {folder}/access.log;
  client_max_body_size 100m;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {certs}/server.crt;
    ssl_certificate_key {certs}/server.key;
    ssl_protocols {protocols};
    ssl_client_certificate {certs}/ca.crt;
    ssl_verify_client on;
    location {prefix}/ {{
      proxy_pass {upstream}/;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_pass_request_headers on;
    }}
    location / {{ return 404; }}
  }}
}}
"""


def find_nginx() -> str:
    """Return the path of nginx; skip loudly without one, or fail where it is required."""
    found = os.environ.get("DRAGOMAN_NGINX") or shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if found:
        return found
    if os.environ.get(REQUIRE):
        pytest.fail(f"{REQUIRE} is set, and nginx is missing: install nginx-light")
    pytest.skip("NOT SHOWN HERE, no nginx on this machine: install nginx-light, or set DRAGOMAN_NGINX")


@dataclass
class Nginx:
    """A running nginx.

    Attributes:
        folder: Its configuration, logs and temporary files.
        port: Its port.
        prefix: The path below which it serves what is behind it.
    """

    folder: Path
    port: int
    prefix: str

    @property
    def log(self) -> list[str]:
        """The requests that it wrote down: each with its method, path and status."""
        lines = (self.folder / "access.log").read_text().splitlines()
        return [f"{line.split(chr(34))[1].rsplit(' ', 1)[0]} {line.split(chr(34))[2].split()[0]}" for line in lines]


@contextmanager
def serving(
    folder: Path, upstream: str, certs: Certificates, *, prefix: str = "/es", protocols: str = "TLSv1.2 TLSv1.3"
) -> Iterator[Nginx]:
    """Run an nginx in a folder, which passes requests below a path on to a server."""
    nginx = find_nginx()
    folder.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    configuration = folder / "nginx.conf"
    configuration.write_text(
        _CONFIGURATION.format(
            folder=folder, port=port, certs=certs.folder, prefix=prefix, upstream=upstream, protocols=protocols
        )
    )
    if os.getuid() == 0:  # its workers would be another user, who owns none of the folders
        configuration.write_text(f"user root;\n{configuration.read_text()}")
    with (folder / "log").open("wb") as log:
        command = [nginx, "-p", folder, "-c", configuration, "-e", "stderr"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait(process, port, folder)
        yield Nginx(folder, port, prefix)
    finally:
        process.terminate()
        process.wait(10)


def _wait(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    pytest.fail(f"nginx does not listen: {(folder / 'log').read_text()[-2000:]}")
