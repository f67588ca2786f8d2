"""Certificates for TLS tests, made by the openssl command when the tests run."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

_NEWEST = ssl.TLSVersion.TLSv1_3
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True)
class Certificates:
    """A folder with NAME.crt (certificate), NAME.key and NAME.pem (both) for each name."""

    folder: Path

    def text(self, name: str) -> str:
        return (self.folder / f"{name}.crt").read_text()

    def pem(self, name: str) -> str:
        return str(self.folder / f"{name}.pem")

    def server(self, name: str, *, clients: str = "", newest: ssl.TLSVersion = _NEWEST) -> ssl.SSLContext:
        """Return a server's context; `clients` names the CA whose clients alone may enter."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.maximum_version = newest
        context.load_cert_chain(self.pem(name))
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self.text(clients))
        return context


def make(folder: Path) -> Certificates:
    """Write two authorities and what they signed."""
    for name in ("ca", "stranger"):
        _authority(folder, name)
    _leaf(folder, "good", "DNS:localhost,IP:127.0.0.1")
    _leaf(folder, "misnamed", "DNS:other.example")
    _leaf(folder, "expired", "DNS:localhost,IP:127.0.0.1", days="-1")
    _leaf(folder, "client", "DNS:client")
    _leaf(folder, "foreign", "DNS:client", signer="stranger")
    _self_signed(folder)
    for key in folder.glob("*.key"):
        key.with_suffix(".pem").write_text(key.with_suffix(".crt").read_text() + key.read_text())
    _openssl(folder, "ec", "-in", "client.key", "-out", "locked.key", "-aes128", "-passout", "pass:word")
    (folder / "locked.pem").write_text((folder / "client.crt").read_text() + (folder / "locked.key").read_text())
    return Certificates(folder)


def chained(folder: Path, name: str, *, signer: str) -> None:
    """Write a certificate that another one has signed, and both of them before its key."""
    _leaf(folder, name, "DNS:localhost,IP:127.0.0.1", signer=signer)
    parts = [f"{name}.crt", f"{signer}.crt", f"{name}.key"]
    (folder / f"{name}.pem").write_text("".join((folder / part).read_text() for part in parts))


def _authority(folder: Path, name: str) -> None:
    usage = ("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
    _openssl(
        folder, "req", "-x509", *_KEY, "-subj", f"/CN={name}", *usage, "-keyout", f"{name}.key", "-out", f"{name}.crt"
    )


def _self_signed(folder: Path) -> None:
    names = ("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    _openssl(folder, "req", "-x509", *_KEY, "-subj", "/CN=self", *names, "-keyout", "self.key", "-out", "self.crt")


def _leaf(folder: Path, name: str, names: str, *, signer: str = "ca", days: str = "2") -> None:
    (folder / "ext").write_text(f"subjectAltName={names}\n")
    _openssl(folder, "req", *_KEY, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", "csr")
    by = ("-CA", f"{signer}.crt", "-CAkey", f"{signer}.key", "-CAcreateserial")
    _openssl(folder, "x509", "-req", "-in", "csr", "-days", days, *by, "-extfile", "ext", "-out", f"{name}.crt")


def _openssl(folder: Path, *arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
