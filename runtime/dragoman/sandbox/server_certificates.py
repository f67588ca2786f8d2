"""The certificates that a connection's servers show, met by the host itself.

TLS ends in the driver's process, which checks them. What a person is shown and pins must not be a driver's word, so the
host meets the server once more: over the same route, with nothing but a handshake.
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from msgspec.structs import replace

from dragoman_api import tls
from dragoman_api.connections import Profile, SslMode
from dragoman_api.endpoints import endpoint_name
from dragoman_registry.ip_addresses import canonical

from .reach.address_resolver import AddressResolver, connect
from .reach.route import RouteConnector

if TYPE_CHECKING:
    from .launch import Launch
_SECONDS = 10.0


class MetCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """The certificate that a server showed.

    Attributes:
        profile: The connection as if this server were its only one.
        certificate: The certificate, as DER.
        trusted: The connection accepts it as it is saved.
        names: Its subject and its dates, as one text for a person.
        obstacle: Why it would be refused even if it were pinned, in OpenSSL's words; empty if it would not.
    """

    profile: Profile
    certificate: bytes
    trusted: bool
    names: str
    obstacle: str

    @property
    def server(self) -> str:
        """The server's host and port."""
        return endpoint_name(self.profile.host, self.profile.port)

    @property
    def fingerprint(self) -> str:
        """The certificate's SHA-256 fingerprint."""
        return tls.fingerprint(self.certificate)

    @property
    def pin(self) -> dict[str, str]:
        """The certificate as `Profile.pinned` has it."""
        return {self.server: b64encode(self.certificate).decode()}

    def __str__(self) -> str:
        return f"{self.names}SHA-256 {self.fingerprint}"


async def meet(launch: Launch) -> list[MetCertificate]:
    """Return the certificates of a connection's servers, each over the route that the driver's process would use.

    Servers that cannot be reached or complete no handshake are left out. No client certificate and no credentials are
    sent.

    Args:
        launch: The connection, with its profile.
    """
    profile, connector = launch.profile, launch.connector()
    assert profile is not None
    resolver = AddressResolver(launch.approved, remembered=launch.remembered)
    certificates: list[MetCertificate] = []
    try:
        token = profile.token_endpoint
        own = [replace(profile, host=host, port=port, client_certificate="") for host, port in profile.endpoints]
        for server_profile in [*own, *([token] if token else [])]:
            if server_profile.ssl_mode.verifies and not server_profile.skip_tls_verification:
                with suppress(OSError):  # TimeoutError and ssl.SSLError are ones
                    certificates.append(await _Server(server_profile, connector, resolver).meet())
    finally:
        if connector is not None:
            await connector.close()
    return certificates


class _Server(msgspec.Struct, frozen=True):
    profile: Profile
    connector: RouteConnector | None
    resolver: AddressResolver

    async def meet(self) -> MetCertificate:
        """Shake hands as the driver would, then without a check, then as if the certificate were pinned."""
        trusted, obstacle, details = True, "", dict[str, Any]()
        try:
            await self._shake(self.profile)
        except ssl.SSLCertVerificationError:
            trusted = False
        unchecked = await self._shake(replace(self.profile, ssl_mode=SslMode.REQUIRED_SKIP_VERIFY))
        certificate = unchecked.getpeercert(binary_form=True) or b""
        pins = {endpoint_name(self.profile.host, self.profile.port): b64encode(certificate).decode()}
        pinned = replace(self.profile, pinned=pins)
        try:
            details = (await self._shake(pinned)).getpeercert() or {}
        except ssl.SSLCertVerificationError as error:
            obstacle = error.verify_message
            with suppress(ssl.SSLCertVerificationError):
                details = (await self._shake(replace(pinned, ssl_mode=SslMode.VERIFY_CA))).getpeercert() or {}
        return MetCertificate(
            profile=self.profile, certificate=certificate, trusted=trusted, names=_names(details), obstacle=obstacle
        )

    async def _shake(self, profile: Profile) -> ssl.SSLObject:
        """Complete a handshake, and end the connection. Raises OSError."""
        context = tls.context(profile)
        with anyio.fail_after(_SECONDS):
            sock = await self._connect()
            transport, _ = await asyncio.get_running_loop().create_connection(
                asyncio.Protocol, sock=sock, ssl=context, server_hostname=profile.host
            )
        try:
            ssl_object: ssl.SSLObject = transport.get_extra_info("ssl_object")
            return ssl_object
        finally:
            transport.abort()

    async def _connect(self) -> Any:
        host, port = self.profile.host, self.profile.port
        if self.connector is not None:
            return await self.connector.connect(canonical(host), port)
        return await connect(self.resolver, host, port)


def _names(details: dict[str, Any]) -> str:
    """Return subject and dates of a certificate as a text that ends in a separator; empty if they are not known.

    Args:
        details: The dictionary that `ssl.SSLObject.getpeercert` returns.
    """
    if not details:
        return ""
    subject = ", ".join(f"{key} {value}" for part in details.get("subject", ()) for key, value in part)[:_TEXT]
    dates = " to ".join(_day(str(details[key])) for key in ("notBefore", "notAfter"))
    return f"subject {subject.translate(_FLAT) or '(empty)'}; valid {dates}; "


_TEXT = 200
_FLAT = dict.fromkeys((*range(32), *range(127, 160), 8232, 8233), "?")


def _day(text: str) -> str:
    """Return the day of a date as OpenSSL spells it.

    >>> _day("Jun  1 12:00:00 2027 GMT")
    '2027-06-01'
    """
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(text), UTC).date().isoformat()
