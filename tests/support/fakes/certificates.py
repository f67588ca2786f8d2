"""Certificates for servers on loopback, made by the openssl command."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

CURVE = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1"
"""Keys that are made in no time, which those of RSA are not."""


@dataclass(frozen=True)
class Certificates:
    """A certificate authority, a server certificate, and a client certificate, as files in one folder."""

    folder: Path

    @property
    def ca(self) -> Path:
        """Return the authority's certificate; for a self-signed server its own."""
        return self.folder / "ca.crt"

    @property
    def client(self) -> tuple[Path, Path]:
        """Return certificate and key of a client."""
        return self.folder / "client.crt", self.folder / "client.key"

    def server_context(self, *, require_client: bool = False) -> ssl.SSLContext:
        """Return the server's side of TLS."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "server.crt", self.folder / "server.key")
        if require_client:
            context.load_verify_locations(self.ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def make_certificates(folder: Path, *names: str) -> Certificates:
    """Make an authority and certificates for these host names and addresses (`localhost` and 127.0.0.1 if none).

    It blocks for a tenth of a second: call it from a synchronous, session-wide fixture.

    Raises:
        FileNotFoundError: if there is no openssl command.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = names or ("localhost", "127.0.0.1")
    listed = ",".join(f"{'IP' if name[0].isdigit() else 'DNS'}:{name}" for name in names)
    _openssl(
        folder, f"req -x509 {CURVE} -nodes -days 3650 -subj /CN=test-authority "
        "-addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign "
        "-keyout ca.key -out ca.crt",
    )  # fmt: skip
    _signed(folder, "server", names[0], f"subjectAltName={listed}\nextendedKeyUsage=serverAuth\n")
    _signed(folder, "client", "test-client", "extendedKeyUsage=clientAuth\n")
    return Certificates(folder)


def _signed(folder: Path, name: str, subject: str, extensions: str) -> None:
    (folder / f"{name}.ext").write_text(f"{extensions}basicConstraints=CA:FALSE\n")
    _openssl(folder, f"req {CURVE} -nodes -subj /CN={subject} -keyout {name}.key -out {name}.csr")
    signing = f"x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650"
    _openssl(folder, f"{signing} -extfile {name}.ext -out {name}.crt")


def _openssl(folder: Path, arguments: str) -> None:
    subprocess.run(["openssl", *arguments.split()], cwd=folder, check=True, capture_output=True, timeout=60)
