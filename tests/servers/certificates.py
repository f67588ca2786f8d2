"""Certificates for TLS tests, made by the openssl command: two authorities, a right name and a wrong one."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from servers.faults import EngineError

if TYPE_CHECKING:
    from pathlib import Path

SERVER_NAMES = {"localhost": "DNS:localhost,IP:127.0.0.1", "other-name": "DNS:other.example"}
"""The server certificates, and whom each one speaks for."""

_DAYS = "30"
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def make_certificates(folder: Path) -> None:
    """Write an authority (`ca`), one that signed nothing (`stranger`), and the server certificates signed by `ca`.

    Each is a pair of PEM files, NAME.crt and NAME.key.
    """
    for name in ("ca", "stranger"):
        _openssl(
            folder,
            *("req", "-x509", *_NEW_KEY, "-days", _DAYS, "-subj", f"/CN=Test authority {name}"),
            *("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign"),
            *("-keyout", f"{name}.key", "-out", f"{name}.crt"),
        )
    for name, speaks_for in SERVER_NAMES.items():
        (folder / f"{name}.ext").write_text(
            f"subjectAltName={speaks_for}\nextendedKeyUsage=serverAuth,clientAuth\nbasicConstraints=CA:FALSE\n"
            "keyUsage=digitalSignature,keyEncipherment\n"
        )
        _openssl(folder, "req", *_NEW_KEY, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        _openssl(
            folder,
            *("x509", "-req", "-days", _DAYS, "-in", f"{name}.csr", "-extfile", f"{name}.ext"),
            *("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out", f"{name}.crt"),
        )


def _openssl(folder: Path, *arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EngineError("openssl", f"`openssl {arguments[0]}` ended with {done.returncode}", tail=done.stderr)
