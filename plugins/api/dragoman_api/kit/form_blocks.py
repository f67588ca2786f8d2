"""Blocks of a connection's form: where the server is, how a person signs in, and TLS.

`driver.json` holds every field in full, because it is read before any code of the driver runs. `dragoman driver new`
writes these blocks into it, and `manifest_part` returns them as `driver.json` spells them. A test of the driver can
hold the file to its blocks; `dataclasses.replace` changes a field:

>>> part = manifest_part(address(5984), auth(username_password(), none()), tls())
>>> [field["name"] for field in part["form"]][:5]
['host', 'port', 'auth_method', 'username', 'password']
>>> part["auth_methods"][0]
{'value': 'username-password', 'label': 'Username & Password', 'scheme': 'basic'}
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from dragoman_api.connections import AuthScheme, Choice, FieldKind, FormField, SslMode

USERNAME = FormField(name="username", label="Username", required=True)
PASSWORD = FormField(name="password", label="Password", kind=FieldKind.SECRET)
TOKEN_URL = FormField(
    name="token_url",
    label="Token URL",
    required=True,
    help="The token endpoint, https://…: a second server that the driver then reaches, once you agree to it",
)

_MODES = {
    SslMode.DISABLED: "Disabled",
    SslMode.PREFERRED: "Preferred",
    SslMode.REQUIRED_SKIP_VERIFY: "Required (skip verify)",
    SslMode.REQUIRED: "Required",
    SslMode.VERIFY_CA: "Verify CA",
    SslMode.VERIFY_IDENTITY: "Verify Identity",
}


class AuthBlock(msgspec.Struct, frozen=True, kw_only=True):
    """One way to sign in.

    Attributes:
        value: The value of the field `auth_method`.
        label: The label that a person reads.
        scheme: How `Http` sends the credential; NONE also for a driver that signs in itself (`sign_in`).
        fields: The fields of this method; they are shown only if it is chosen.
    """

    value: str
    label: str
    scheme: AuthScheme = AuthScheme.NONE
    fields: tuple[FormField, ...] = ()


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """Fields that belong together, and the auth methods among their choices."""

    fields: tuple[FormField, ...]
    auth_methods: tuple[AuthBlock, ...] = ()


def address(port: int) -> Block:
    """Return the fields for host and port, with the usual port of the server."""
    return Block(
        fields=(
            FormField(name="host", label="Host", default="localhost", required=True),
            FormField(name="port", label="Port", kind=FieldKind.INTEGER, default=port, required=True),
        )
    )


def none() -> AuthBlock:
    """Return the method without credentials."""
    return AuthBlock(value="none", label="None")


def username_password() -> AuthBlock:
    """Return HTTP Basic: `Http` sends user name and password with every request."""
    return AuthBlock(
        value="username-password", label="Username & Password", scheme=AuthScheme.BASIC, fields=(USERNAME, PASSWORD)
    )


def api_key(scheme: AuthScheme, *, value: str = "api-key", label: str = "API Key", help: str = "") -> AuthBlock:  # noqa: A002 - the field's word
    """Return a key that `Http` sends in the Authorization header, after the word ``ApiKey`` or ``Bearer``."""
    key = FormField(name="api_key", label=label, kind=FieldKind.SECRET, required=True, help=help)
    return AuthBlock(value=value, label=label, scheme=scheme, fields=(key,))


def bearer_token(*, help: str = "") -> AuthBlock:  # noqa: A002 - the field's word
    """Return a token that a person got elsewhere, which `Http` sends after the word ``Bearer``."""
    token = FormField(name="token", label="Token", kind=FieldKind.SECRET, required=True, help=help)
    return AuthBlock(value="token", label="Token (bearer)", scheme=AuthScheme.BEARER, fields=(token,))


def session() -> AuthBlock:
    """Return a user name and a password that the driver exchanges for a token (`sign_in.SessionToken`)."""
    return AuthBlock(value="session", label="Session", fields=(USERNAME, PASSWORD))


def client_credentials(*, token_url: bool = False) -> AuthBlock:
    """Return OAuth 2.0 client credentials.

    Args:
        token_url: The form asks for the token endpoint, a second server that a person agrees to, and `Http` gets the
            token there; the manifest needs the permission ``net:sign-in``. Otherwise the token endpoint is on the
            connection's own host, and the driver gets the token (`sign_in.ClientCredentials`).
    """
    return AuthBlock(
        value="client-credentials",
        label="OAuth Client Credentials",
        scheme=AuthScheme.CLIENT_CREDENTIALS if token_url else AuthScheme.NONE,
        fields=(
            *((TOKEN_URL,) if token_url else ()),
            FormField(name="client_id", label="Client ID", required=True),
            FormField(name="client_secret", label="Client Secret", kind=FieldKind.SECRET, required=True),
            FormField(name="scope", label="Scope", help="Scopes to ask for, separated by spaces"),
        ),
    )


def auth(*methods: AuthBlock, default: str = "") -> Block:
    """Return the field `auth_method` and the fields of each method.

    A field that several methods need appears once and is shown for each of them.

    Args:
        methods: The methods, in the order of the choice.
        default: The value of the initial method; the first one if empty.

    Raises:
        ValueError: Two methods have one value, define one field differently, or none has the default's value.
    """
    values = [method.value for method in methods]
    default = default or values[0]
    if len({*values}) < len(values) or default not in values:
        raise ValueError(f"auth methods need values of their own, and {default!r} must be one of them")
    choices = tuple(Choice(value=method.value, label=method.label) for method in methods)
    chosen = FormField(
        name="auth_method", label="Auth Method", kind=FieldKind.CHOICE, default=default, choices=choices, required=True
    )
    fields: dict[str, FormField] = {}
    methods_by_field: dict[str, tuple[str, ...]] = {}
    for method in methods:
        for field in method.fields:
            if fields.setdefault(field.name, field) != field:
                raise ValueError(f"two auth methods define the field {field.name!r} differently")
            methods_by_field[field.name] = (*methods_by_field.get(field.name, ()), method.value)
    hidden = (replace(field, visible_if={"auth_method": methods_by_field[name]}) for name, field in fields.items())
    return Block(fields=(chosen, *hidden), auth_methods=methods)


def tls(*, default: SslMode = SslMode.DISABLED) -> Block:
    """Return the SSL mode, the switch that turns checks off, and the fields for CA file and client certificate.

    A file is asked for only under a mode that uses it.

    Args:
        default: The initial mode.
    """
    fields = (
        FormField(
            name="ssl_mode",
            label="SSL Mode",
            kind=FieldKind.CHOICE,
            default=default.value,
            choices=tuple(Choice(value=mode.value, label=_MODES[mode]) for mode in SslMode),
            required=True,
        ),
        FormField(
            name="skip_tls_verification",
            label="Skip TLS Verification",
            kind=FieldKind.SWITCH,
            default=False,
            advanced=True,
            help="Trust any certificate, even under Verify CA and Verify Identity",
        ),
        FormField(
            name="ca_file",
            label="CA File",
            kind=FieldKind.FILE,
            advanced=True,
            visible_if={"ssl_mode": tuple(mode.value for mode in SslMode if mode.verifies)},
            help="PEM file with the certificates to trust besides the system's",
        ),
        FormField(
            name="client_certificate",
            label="Client Certificate",
            kind=FieldKind.FILE,
            advanced=True,
            visible_if={"ssl_mode": tuple(mode.value for mode in SslMode if mode.https)},
            help="PEM file with certificate and key",
        ),
    )
    return Block(fields=fields)


def more_hosts() -> Block:
    """Return the field for further nodes of the same cluster, to which requests go if the first one fails."""
    return Block(
        fields=(
            FormField(
                name="hosts",
                label="More Hosts",
                advanced=True,
                help="Further nodes of the cluster as host:port, separated by commas; asked if the first one fails",
            ),
        )
    )


def every_request() -> Block:
    """Return the fields of what `Http` adds to every request: a path prefix and extra headers."""
    return Block(
        fields=(
            FormField(
                name="path_prefix",
                label="Path Prefix",
                advanced=True,
                help="The path before all others, such as /es, if a proxy serves the database below it",
            ),
            FormField(
                name="headers",
                label="Extra Headers",
                advanced=True,
                help="Name: value, one on each line, or separated by ; (secret ones belong into the next field)",
            ),
            FormField(
                name="secret_headers",
                label="Secret Headers",
                kind=FieldKind.SECRET,
                advanced=True,
                help="Extra headers whose values must not be shown, in the same form",
            ),
        )
    )


def manifest_part(*blocks: Block | FormField) -> dict[str, Any]:
    """Return the members `form` and `auth_methods` of `driver.json`; a field's defaults are left out.

    Args:
        blocks: Blocks and single fields of the driver's own, in the order of the form.
    """
    fields = [field for block in blocks for field in ((block,) if isinstance(block, FormField) else block.fields)]
    methods = [method for block in blocks if isinstance(block, Block) for method in block.auth_methods]
    return {
        "form": [_spelled(field) for field in fields],
        "auth_methods": [
            {"value": method.value, "label": method.label, "scheme": method.scheme.value} for method in methods
        ],
    }


def _spelled(field: FormField) -> dict[str, Any]:
    usual: dict[str, Any] = msgspec.to_builtins(FormField(name="", label=""))
    members: dict[str, Any] = msgspec.to_builtins(field)
    return {key: value for key, value in members.items() if value != usual[key]}
