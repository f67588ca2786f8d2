"""Requests of a connection as curl commands: secrets are shell variables, TLS is as the SSL mode says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Self

import msgspec

from dragoman.sandbox.reach.route import HttpProxy
from dragoman_api.connections import AuthScheme, SslMode
from dragoman_api.endpoints import headers
from dragoman_api.wording import shell_word

if TYPE_CHECKING:
    from dragoman.sandbox.reach.route import Route
    from dragoman_api.changes import HttpRequest
    from dragoman_api.connections import Profile

LONGEST = 100_000
"""Maximum bytes of a body in the command itself; Linux takes 128 KiB per argument, so a longer one is piped in."""

_GLOBBED = re.compile(r"[\[\]{}]")
_DOTTED = re.compile(r"/(\.|%2e){1,2}(/|\?|$)", re.IGNORECASE)


class CurlCommands(msgspec.Struct, frozen=True, kw_only=True):
    """The commands of one connection.

    Attributes:
        address: Scheme, host, port and path prefix.
        options: Options of every command, quoted.
        variables: The shell variables that they read, with what each holds.
        notes: Where curl cannot do as dragoman does.
    """

    address: str
    options: tuple[str, ...] = ()
    variables: dict[str, str]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, profile: Profile, *, ca_file: str = "", via: Route | None = None) -> Self:
        """Build the commands of a connection; no secret of the profile gets into them.

        Args:
            profile: The connection.
            ca_file: The path of its CA file, if it has one.
            via: What is between this machine and its server.
        """
        prefix = re.sub(r"[^A-Z0-9]", "_", profile.name.upper())
        prefix = f"_{prefix}" if prefix[:1].isdigit() else prefix
        options, variables = _credentials(profile, prefix)
        for name, value in headers(str(profile.options.get("headers") or "")).items():
            options.append(f"-H {shell_word(f'{name}: {value}')}")
        for name in headers(profile.secrets.get("secret_headers")):
            variable = f"{prefix}_{re.sub('[^A-Z0-9]', '_', name.upper())}"
            options.append(f'-H {shell_word(f"{name}: ")}"${variable}"')
            variables[variable] = f"the value of the header {name}"
        notes = []
        if isinstance(via, HttpProxy):
            # CONNECT for plain HTTP, too, and whatever no_proxy says: both as dragoman does.
            options.append(f"--proxy {shell_word(f'http://{via.address}')} --proxytunnel --noproxy ''")
            if via.user:
                user, password = f"{prefix}_PROXY_USER", f"{prefix}_PROXY_PASSWORD"
                options.append(f'--proxy-user "${user}:${password}"')
                variables |= {user: "the user name for the proxy", password: "the password for the proxy"}
        elif via is not None:
            notes.append(f"curl cannot use {via}: paste the commands there, after {via.command}")
        if profile.ssl_mode.https:
            checked = profile.ssl_mode.verifies and not profile.skip_tls_verification
            options += ([f"--cacert {shell_word(ca_file)}"] if ca_file else []) if checked else ["-k"]
            if checked and profile.ssl_mode is SslMode.VERIFY_CA:
                notes.append("curl also checks that the certificate names the host, which Verify CA does not")
            if checked and ca_file:
                notes.append("curl trusts the CA file alone, without the system's certificates")
            if checked and profile.pinned_certificate:
                notes.append("curl does not know the pinned certificate: save it to a file, and add --cacert FILE")
            if profile.client_certificate:
                options.append(f"--cert {shell_word(profile.client_certificate)}")
            if profile.client_certificate and profile.secrets.get("client_key_password"):
                name = f"{prefix}_KEY_PASSWORD"
                options.append(f'--pass "${name}"')
                variables[name] = "the password of the client certificate's key"
        return cls(address=profile.base_url, options=tuple(options), variables=variables, notes=tuple(notes))

    def command(self, request: HttpRequest) -> str:
        r"""Return a request as a command that can be pasted.

        >>> from dragoman_api.changes import HttpRequest
        >>> CurlCommands(address="http://h:1", variables={}).command(HttpRequest("POST", "/a", "it's"))
        'curl -X POST http://h:1/a -H \'Content-Type: application/json\' --data-raw \'it\'"\'"\'s\''
        """
        url = f"{self.address}{request.path}"
        words = [
            "curl",
            "-I" if request.method == "HEAD" else f"-X {shell_word(request.method)}",
            shell_word(url),
            *self.options,
        ]
        words += ["-g"] if _GLOBBED.search(url) else []
        words += ["--path-as-is"] if _DOTTED.search(request.path) else []
        if request.body is None:
            return " ".join(words)
        words.append(f"-H {shell_word(f'Content-Type: {request.content_type}')}")
        if "\0" in request.body:  # an argument cannot hold one, the text that printf reads can
            text = request.body.replace("\\", "\\\\").replace("\0", "\\0000")
            return f"printf %b {shell_word(text)} | {' '.join(words)} --data-binary @-"
        if len(request.body.encode(errors="replace")) > LONGEST:
            return f"printf %s {shell_word(request.body)} | {' '.join(words)} --data-binary @-"
        return " ".join([*words, f"--data-raw {shell_word(request.body)}"])


def _credentials(profile: Profile, prefix: str) -> tuple[list[str], dict[str, str]]:
    """Return the options that authorize a request, and the variables in them."""
    if profile.auth_scheme is AuthScheme.NONE:
        return [], {}
    if profile.auth_scheme is AuthScheme.BASIC:
        if not profile.options.get("username"):
            return [], {}
        user, password = f"{prefix}_USER", f"{prefix}_PASSWORD"
        return [f'-u "${user}:${password}"'], {user: "the user name", password: "the password"}
    if profile.auth_scheme is AuthScheme.CLIENT_CREDENTIALS:
        token = f"{prefix}_TOKEN"
        return [f'-H "Authorization: Bearer ${token}"'], {token: "a token of the token endpoint"}
    key = f"{prefix}_API_KEY"
    return [f'-H "Authorization: {profile.auth_scheme.value} ${key}"'], {key: "the API key"}
