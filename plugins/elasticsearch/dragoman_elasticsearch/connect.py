"""Which server answers, whether this driver supports it, and what its version can do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dragoman_api import AuthenticationError, Health, Profile, Server, replies
from dragoman_api.connections import AuthScheme, SslMode
from dragoman_api.errors import ConfigurationError, ServerNotSupportedError
from dragoman_api.json_text import decode
from dragoman_api.kit.exchanges import Exchange, ask, get
from dragoman_api.remedies import Remedy, RemedyKind

from . import protocol
from .protocol import NAMES_PRODUCT, Features

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from dragoman_api.replies import Reply

TAGLINE = "You Know, for Search"
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?", re.ASCII)
OLDEST, NEWEST = 7, 9
"""Major versions that were tried."""

_SUPPORTED = "Elasticsearch 7.x, 8.x and 9.x"


def secured(profile: Profile) -> bool:
    """Return whether the server has users: then it may hide indices from this one."""
    return profile.auth_scheme is not AuthScheme.NONE or bool(profile.client_certificate)


def check_key(profile: Profile) -> None:
    """Refuse a malformed API key before it is sent; never change it (E10).

    Raises:
        ConfigurationError: It holds a colon, so it is `id:api_key` in clear and not the base64 of it.
    """
    key = profile.secrets.get("api_key")
    if profile.auth_scheme is AuthScheme.API_KEY and ":" in key:
        raise ConfigurationError(
            "the API key contains a ':', so it is id:api_key in clear text instead of its base64; it was not sent",
            hint="encode it and save the result: printf %s 'ID:API_KEY' | base64",
        )


def identify(profile: Profile) -> Exchange[tuple[Server, Features]]:
    """Check that a supported product and version answers to the credentials (E3).

    Raises:
        AuthenticationError: 401.
        ConnectionFailedError: The answer redirects, or the server takes no more requests.
        ServerNotSupportedError: Another product or version.
    """
    reply = yield from ask(get("/"))
    if error := replies.turned_away(reply, profile):
        raise error
    if reply.status == 403:
        return (yield from _limited())
    version, number, flavor = _product(reply)
    if version[0] > NEWEST and profile.options.get("untested_versions") is not True:
        remedy = Remedy(RemedyKind.EDIT_FIELD, {"field": "untested_versions", "value": True})
        raise _refusal(f"Elasticsearch {number}", hint="turn on Untested Versions to try it anyway", remedies=[remedy])
    notes = _version_notes(version, flavor)
    return Server("Elasticsearch", number, notes), Features(version, oss=flavor == "oss")


def _product(reply: Reply) -> tuple[tuple[int, int, int], str, str]:
    """Return the version, its text and the flavour of the build, by the answer to `GET /`.

    Raises:
        ServerNotSupportedError: Another product answered.
    """
    info = _read_info(protocol.check(reply))
    version = info.get("version")
    version = version if isinstance(version, dict) else {}
    number, flavor = str(version.get("number") or ""), str(version.get("build_flavor") or "")
    # Check this first: a server that calls itself OpenSearch may send Elastic's header too.
    if product := str(version.get("distribution") or ""):
        raise _refusal(f"{product} {number}")
    match = _VERSION.match(number)
    if match is None:
        raise _refusal("a server without a version")
    release = (int(match[1]), int(match[2]), int(match[3] or 0))
    genuine = _header(reply) if release >= NAMES_PRODUCT else info.get("tagline") == TAGLINE
    if not genuine:
        raise _refusal(f"a server that calls itself {number} and is not Elasticsearch")
    return release, number, flavor


def _read_info(body: bytes) -> dict[str, Any]:
    try:
        info = decode(body, object)
    except ValueError:
        info = None
    if isinstance(info, dict):
        return info
    raise _refusal("something that answers no JSON")


def _header(reply: Reply) -> bool:
    return reply.headers.get("X-Elastic-Product") == "Elasticsearch"


def _refusal(
    subject: str, *, hint: str = "check Host and Port of the connection", remedies: Iterable[Remedy] = ()
) -> ServerNotSupportedError:
    text = f"{subject} answered; this driver works with {_SUPPORTED}"
    return ServerNotSupportedError(text, hint=hint, remedies=remedies)


def _version_notes(version: tuple[int, int, int], flavor: str) -> list[str]:
    number = ".".join(map(str, version))
    if version[0] < OLDEST:
        raise _refusal(f"Elasticsearch {number}")
    if version[0] > NEWEST:
        return [f"Elasticsearch {number} is newer than this driver and untested"]
    return [f"{flavor} build: untested"] if flavor == "serverless" else []


def _limited() -> Exchange[tuple[Server, Features]]:
    # A key without the cluster privilege `monitor` may still read; any valid credential gets 200 here.
    reply = yield from ask(get("/_security/_authenticate"))
    if reply.status == 401:
        protocol.check(reply)
    if reply.status != 200:
        raise _refusal(f"a server that says 403 to GET / and {reply.status} to GET /_security/_authenticate")
    # 401 and 403 never carry the product header; every other answer does from 7.14 on.
    features = Features(NAMES_PRODUCT if _header(reply) else Features().version, hidden=True)
    note = "the credentials lack the cluster privilege monitor: version unknown, the features of "
    return Server("Elasticsearch", "", [f"{note}{'.'.join(map(str, features.version[:2]))} are used"]), features


def credentials_rejected(error: AuthenticationError, profile: Profile) -> AuthenticationError:
    """Build the error for rejected credentials; it suggests HTTPS, which 8.x serves by default (E39)."""
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
        hint = f"{hint}; 8.x serves HTTPS, and '{profile.name}' uses plain HTTP"
        https: dict[str, str | int | bool] = {"field": "ssl_mode", "value": str(SslMode.VERIFY_IDENTITY)}
        remedies.append(Remedy(RemedyKind.EDIT_FIELD, https))
    return AuthenticationError(message, hint=hint, remedies=remedies, details=error.details)


def ping() -> Exchange[Health]:
    """Check the connection with a request that needs its credentials; 403 counts as alive.

    Raises:
        AuthenticationError: 401.
        ServerNotSupportedError: Another product answered, such as a proxy with a page of its own.
    """
    reply = yield from ask(get("/"))
    if reply.status != 403:
        _product(reply)
    return Health(ok=True)
