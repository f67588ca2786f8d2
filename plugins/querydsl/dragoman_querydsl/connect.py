"""Which server answers: what the products of the family have in common."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api import AuthenticationError, Health
from dragoman_api.connections import AuthScheme, SslMode
from dragoman_api.errors import ServerNotSupportedError
from dragoman_api.json_text import decode
from dragoman_api.kit.exchanges import Exchange, ask, get
from dragoman_api.remedies import Remedy, RemedyKind

from . import protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dragoman_api import Profile
    from dragoman_api.replies import Reply

Release = tuple[int, int, int]
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?", re.ASCII)


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says of itself.

    Attributes:
        number: The version as it is written.
        release: The version; None if that is not one.
        distribution: The product, as servers that are not Elasticsearch call it.
        flavor: The flavour of the build.
        tagline: The sentence by which old servers show their product.
    """

    number: str
    release: Release | None
    distribution: str
    flavor: str
    tagline: str


def read_identity(reply: Reply) -> Identity | None:
    """Read the answer to `GET /`; None if it is no JSON object.

    Raises:
        DragomanError: It is an error, see `protocol.exception`.
    """
    try:
        answer = decode(protocol.check(reply), object)
    except ValueError:
        return None
    if not isinstance(answer, dict):
        return None
    version: Any = answer.get("version")
    version = version if isinstance(version, dict) else {}
    number = str(version.get("number") or "")
    match = _VERSION.match(number)
    return Identity(
        number=number,
        release=(int(match[1]), int(match[2]), int(match[3] or 0)) if match else None,
        distribution=str(version.get("distribution") or ""),
        flavor=str(version.get("build_flavor") or ""),
        tagline=str(answer.get("tagline") or ""),
    )


def refusal(
    subject: str,
    *,
    supported: str,
    hint: str = "check Host and Port of the connection",
    remedies: Iterable[Remedy] = (),
) -> ServerNotSupportedError:
    """Build the error for a server that a driver does not support.

    Args:
        subject: The server.
        supported: What the driver supports.
        hint: What a person may do.
        remedies: The same as data.
    """
    text = f"{subject} answered; this driver works with {supported}"
    return ServerNotSupportedError(text, hint=hint, remedies=remedies)


def another_driver(subject: str, *, supported: str, kind: str) -> ServerNotSupportedError:
    """Build the error for a server of a relative, which has a driver of its own.

    Args:
        subject: The server.
        supported: What the driver supports.
        kind: The database type of the relative.
    """
    text = f"save a connection of the type {kind}: that driver works with it"
    return refusal(subject, supported=supported, hint="", remedies=[Remedy(RemedyKind.ADVICE, {"text": text})])


def try_untested(subject: str, *, supported: str) -> ServerNotSupportedError:
    """Build the error for a version that is newer than a driver, which a switch of the form takes nevertheless."""
    remedy = Remedy(RemedyKind.EDIT_FIELD, {"field": "untested_versions", "value": True})
    hint = "turn on Untested Versions to try it anyway"
    return refusal(subject, supported=supported, hint=hint, remedies=[remedy])


def secured(profile: Profile) -> bool:
    """Return whether the server has users: then it may hide indices from this one."""
    return profile.auth_scheme is not AuthScheme.NONE or bool(profile.client_certificate)


def credentials_rejected(error: AuthenticationError, profile: Profile, *, https: str) -> AuthenticationError:
    """Build the error for rejected credentials.

    Args:
        error: What the server answered.
        profile: The connection.
        https: Which of its servers serve HTTPS, said of a connection without it.
    """
    if error.details.get("sent") is False:  # the token endpoint rejected the client; the server was not asked
        return error
    credential_names = {AuthScheme.NONE: "Auth Method None", AuthScheme.BASIC: "the user name or the password"}
    credential_names[AuthScheme.BEARER] = "the token"
    credential_names[AuthScheme.CLIENT_CREDENTIALS] = "the token of the token endpoint"
    message = (
        f"{credential_names.get(profile.auth_scheme, 'the API key')} was rejected by {profile.where} (401): "
        f"{error.message.removeprefix(error.prefix)}"
    )
    hint, remedies = "check Auth Method and credentials", [Remedy(RemedyKind.EDIT_FIELD, {"field": "auth_method"})]
    if not profile.ssl_mode.https:
        hint = f"{hint}; {https}, and '{profile.name}' uses plain HTTP"
        values: dict[str, str | int | bool] = {"field": "ssl_mode", "value": str(SslMode.VERIFY_IDENTITY)}
        remedies.append(Remedy(RemedyKind.EDIT_FIELD, values))
    return AuthenticationError(message, hint=hint, remedies=remedies, details=error.details)


def ping(check_product: Callable[[Reply], object]) -> Exchange[Health]:
    """Check the connection with a request that needs its credentials; 403 counts as alive.

    Raises:
        AuthenticationError: 401.
        ServerNotSupportedError: Another product answered, such as a proxy with a page of its own.
    """
    reply = yield from ask(get("/"))
    if reply.status != 403:
        check_product(reply)
    return Health(ok=True)
