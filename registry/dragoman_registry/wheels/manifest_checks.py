"""Checks an incoming manifest: types, single values, and relations between values."""

from __future__ import annotations

import ipaddress
import json
import re
from collections import Counter
from typing import TYPE_CHECKING

from dragoman_api.connections import AuthScheme, FieldKind, FormField, SslMode
from dragoman_api.wording import quoted
from dragoman_registry.ip_addresses import MAX_HOST, Nearness, canonical, is_literal, is_metadata, nearness
from dragoman_registry.names import is_field_name
from dragoman_registry.validation import Fault, load

from .manifest import ACTED_ON, LOCAL, MANIFEST_VERSION, MAX_LABEL, MAX_TEXT, PERSONS_OWN, Manifest
from .packaging_parsers import Unreadable, is_licence, parse_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def check_manifest(data: bytes) -> tuple[Manifest | None, list[Fault]]:
    """Read and check an incoming manifest.

    Returns:
        The manifest, or None with every fault (code ``manifest``) and its path inside the JSON.
    """
    manifest, faults = load(Manifest, data, code="manifest")
    twice: list[str] = []

    def note(pairs: list[tuple[str, object]]) -> dict[str, object]:
        twice.extend(_twice([key for key, _ in pairs]))
        return dict(pairs)

    try:
        raw = json.loads(data, object_pairs_hook=note)
    except (ValueError, RecursionError):
        raw = None
    if isinstance(raw, dict):
        version = raw.get("manifest_version")
        if isinstance(version, int) and version > MANIFEST_VERSION:
            reason = (
                f"$.manifest_version is {version}, and this dragoman knows {MANIFEST_VERSION}: a newer one reads it"
            )
            return None, [Fault("manifest", reason)]
        # No rule says which of two equal keys counts, and a person may be shown the other value.
        reasons = (*(f"the key {key!r} appears twice in one object" for key in twice), *_values(raw), *_hidden(raw))
        faults += [Fault("manifest", _short(reason)) for reason in reasons]
    if manifest is not None:
        faults += [Fault("manifest", _short(reason)) for reason in _relations(manifest)]
    return (None if faults else manifest), faults


_MOST_PERMISSIONS = 32
"""Maximum permissions, and hosts in one of them: a person is asked about all of them at once."""

_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_ENTRY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_DOCS = re.compile(r"(https?://[!-~]+|[A-Za-z0-9][A-Za-z0-9._-]*)?")
_PAGE = re.compile(r"https://([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}(/[!-\[\]-~]*)?")
_REQUEST = re.compile(r"([A-Z]+ )?(/[!-~]*)")
_MODULE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_HOST = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?"
_PERMISSION = re.compile(
    rf"net:connection|net:sign-in|secrets:connection|native-code|net:host={_HOST}(,{_HOST})*"
    r"|fs:read=[a-z][a-z0-9_]*|memory=[1-9][0-9]{0,5}MiB|cpu=[1-9][0-9]{0,3}s"
)
_CLIENT_FIELDS = {"token_url": FieldKind.TEXT, "client_id": FieldKind.TEXT, "client_secret": FieldKind.SECRET}


def _short(reason: str) -> str:
    return reason if len(reason) <= 500 else f"{reason[:500]}…"


def _specifier(value: str) -> str | None:
    try:
        return None if value and parse_range(value) else "a version range is required, for example ~=1.0"
    except Unreadable as error:
        return str(error)


def _licence(value: str) -> str | None:
    return None if is_licence(value) else f"{value[:200]!r} is not an SPDX licence expression"


def _permission(value: str) -> str | None:
    if value == "subprocess":
        return "subprocess is never granted"
    if not _PERMISSION.fullmatch(value):
        return f"{value!r} is not a known permission"
    kind, _, hosts = value.partition("=")
    return next(filter(None, map(_host, hosts.split(","))), None) if kind == "net:host" else None


def _host(value: str) -> str | None:
    """Return why a manifest may not name a host, or None; a name is checked again when it is resolved."""
    host, _, port = value.partition(":")
    if len(host) > MAX_HOST:
        return f"{host[:80]}… is not a host: it has {len(host)} characters; {MAX_HOST} are possible"
    if port and not 1 <= int(port) <= 65535:
        return f"{value}: {port} is not a TCP port"
    if (usual := canonical(host)) != host:
        return f"{host} is another spelling of {usual}; use {usual}"
    if not is_literal(host):
        return None
    address = ipaddress.ip_address(host)
    if address.is_multicast or nearness(address) is Nearness.LINK_LOCAL or is_metadata(address):
        return f"{host} is never granted: a cloud may hand out credentials there"
    return None


def _hook(value: str) -> str | None:
    from dragoman_api.hookspecs import DriverSpec

    return None if not value.startswith("_") and hasattr(DriverSpec, value) else f"there is no hook {value!r}"


_CHECKS = {
    "label": lambda value: None if value.strip() and is_visible(value) else "a printable label is required",
    "host_api": _specifier,
    "entry": lambda value: None if _ENTRY.fullmatch(value) else f"{value!r} is not of the form package.module:Class",
    "licence": _licence,
    # Python normalises look-alike letters in identifiers, so allow ASCII only.
    "import_names": lambda value: None if _MODULE.fullmatch(value) else f"{value!r} is not a module name",
    "docs": lambda value: None if _DOCS.fullmatch(value) else f"{value!r} is neither a web address nor a file name",
    "hooks": _hook,
    "permissions": _permission,
}


def _values(raw: dict[str, object]) -> Iterator[str]:
    """Check single values in the raw document, so that a wrong type elsewhere hides no fault."""
    for key, judge in _CHECKS.items():
        value = raw.get(key)
        entries = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, entry in entries:
            if isinstance(entry, str) and len(entry) <= MAX_TEXT and (reason := judge(entry)):
                yield f"$.{key}{'' if index is None else f'[{index}]'}: {reason}"


def _hidden(raw: object) -> Iterator[str]:
    """Find values that cannot be shown as written: controls, invisible characters, changes of direction, too long."""
    todo = [("$", raw)]
    while todo:
        at, value = todo.pop()
        if isinstance(value, str | list | dict) and len(value) > MAX_TEXT:
            yield f"{at}: it has {len(value)} characters or entries; {MAX_TEXT} are allowed"
        elif isinstance(value, str) and not is_visible(value):
            yield f"{at}: {value[:80]!r} has invisible characters"
        elif isinstance(value, list):
            todo += [(f"{at}[{index}]", entry) for index, entry in enumerate(value)]
        elif isinstance(value, dict):
            todo += [(f"{at}.{key!a}", key) for key in value if not key.isprintable()]
            todo += [(f"{at}.{key}", entry) for key, entry in value.items() if key.isprintable()]


def is_visible(text: str) -> bool:
    """Check whether every character of a text is visible; some letters and symbols are blank in every font."""
    return text.isprintable() and not _BLANK.search(text)


def _twice(names: list[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _relations(manifest: Manifest) -> Iterator[str]:
    """Check the relations between values."""
    for key in ("types", "import_names", "hooks"):
        if not getattr(manifest, key):
            yield f"$.{key}: at least one is required"
    if manifest.entry.partition(".")[0].partition(":")[0] not in manifest.import_names:
        yield f"$.entry: {manifest.entry!r} is not among import_names"
    for key, names in {
        "types": [entry.name for entry in manifest.types],
        "form": [entry.name for entry in manifest.form],
        "permissions": list(manifest.permissions),
        "dependencies": [entry.file for entry in manifest.dependencies],
    }.items():
        yield from (f"$.{key}: {name!r} appears twice" for name in _twice(names))
    if manifest.console_example and "console" not in manifest.capabilities:
        yield "$.console_example: there is no console, because $.capabilities does not name it"
    yield from _pages(manifest)
    yield from _asked(manifest)
    yield from _form(manifest)


def _pages(manifest: Manifest) -> Iterator[str]:
    """Find pages on requests that are no plain https addresses, and requests that no console sends."""
    if manifest.console_docs and "console" not in manifest.capabilities:
        yield "$.console_docs: there is no console, because $.capabilities does not name it"
    for at, page in enumerate(manifest.console_docs):
        if not _PAGE.fullmatch(page.url):
            yield f"$.console_docs[{at}].url: {page.url[:200]!r} is not an https address of a named host without a port"
        for number, request in enumerate(page.requests):
            if not _REQUEST.fullmatch(request) or "**" in request.removesuffix("/**"):
                yield f"$.console_docs[{at}].requests[{number}]: {request[:200]!r} is not of the form GET /*/_search"


def _asked(manifest: Manifest) -> Iterator[str]:
    """Find labels and permission lists that a question or form cannot show completely."""
    labels = {"$": manifest.label}
    labels |= {f"$.types[{at}]": kind.label for at, kind in enumerate(manifest.types)}
    labels |= {f"$.auth_methods[{at}]": method.label for at, method in enumerate(manifest.auth_methods)}
    for at, field in enumerate(manifest.form):
        labels[f"$.form[{at}]"] = field.label
        labels |= {f"$.form[{at}].choices[{number}]": choice.label for number, choice in enumerate(field.choices)}
    for place, label in labels.items():
        if not label.strip() or len(label) > MAX_LABEL:
            yield f"{place}.label: it has {len(label)} characters; a label has 1 to {MAX_LABEL} and is not blank"
    count = max([len(manifest.permissions), *(permission.count(",") + 1 for permission in manifest.permissions)])
    if count > _MOST_PERMISSIONS:
        yield f"$.permissions: {count} are too many to ask about; {_MOST_PERMISSIONS} are allowed"


def _form(manifest: Manifest) -> Iterator[str]:
    fields = {entry.name: entry for entry in manifest.form}
    for name, kind in (("host", FieldKind.TEXT), ("port", FieldKind.INTEGER)):
        # The broker compares the driver's requests with these fields; without them it can allow no connection.
        if name not in fields or fields[name].kind is not kind:
            yield f"$.form: a field {name!r} of kind {kind.value!r} is required"
    for name in ACTED_ON.keys() & fields.keys():
        if fields[name].kind is not ACTED_ON[name]:
            yield f"$.form: {name!r} has to be a field of kind {ACTED_ON[name].value!r}, because the host uses it"
        if fields[name].visible_if:
            yield f"$.form: {name!r} must always be shown, because the host uses it"
    if "ssl_mode" in fields and (modes := {choice.value for choice in fields["ssl_mode"].choices} - {*SslMode}):
        yield f"$.form: 'ssl_mode' cannot offer {', '.join(sorted(modes))}; allowed are {', '.join(SslMode)}"
    granted = {name.removeprefix("fs:read=") for name in manifest.permissions if name.startswith("fs:read=")}
    for name in sorted(granted | {"ca_file", "client_certificate"} & fields.keys()):
        if name not in fields or fields[name].kind is not FieldKind.FILE:
            yield f"$.form: {name!r} has to be a field of kind 'file', because the driver reads that file"
    for index, entry in enumerate(manifest.form):
        at = f"$.form[{index}]"
        if not is_field_name(entry.name):
            yield f"{at}.name: {entry.name!r} is not a valid field name"
        if bool(entry.choices) != (entry.kind is FieldKind.CHOICE):
            yield f"{at}.choices: a field of kind 'choice' has choices, and no other field has"
        yield from (f"{at}.default: {reason}" for reason in _default(entry))
        for other, allowed in entry.visible_if.items():
            if other not in fields:
                yield f"{at}.visible_if: there is no field {other!r}"
            elif fields[other].kind is FieldKind.CHOICE:
                choices = {choice.value for choice in fields[other].choices}
                strange = [value for value in allowed if value not in choices]
                yield from (f"{at}.visible_if.{other}: {value!r} is not one of its choices" for value in strange)
    yield from _client(manifest, fields)
    offered = [choice.value for choice in fields["auth_method"].choices] if "auth_method" in fields else []
    if sorted(offered) != sorted(entry.value for entry in manifest.auth_methods):
        yield "$.auth_methods: they must be the choices of the field 'auth_method'"


def _client(manifest: Manifest, fields: Mapping[str, FormField]) -> Iterator[str]:
    """Find what OAuth client credentials lack, with which the driver's process reaches a second server."""
    if not any(entry.scheme is AuthScheme.CLIENT_CREDENTIALS for entry in manifest.auth_methods):
        return
    if "net:sign-in" not in manifest.permissions:
        yield "$.permissions: 'net:sign-in' is required, because an auth method has the scheme 'client-credentials'"
    for name, kind in _CLIENT_FIELDS.items():
        if name not in fields or fields[name].kind is not kind:
            yield f"$.form: a field {name!r} of kind {kind.value!r} is required by the scheme 'client-credentials'"


def _default(entry: FormField) -> Iterator[str]:
    if entry.default is None:
        return
    if entry.kind is FieldKind.SECRET:
        yield "a secret cannot have a default"
    elif entry.kind is FieldKind.FILE:
        yield "a person chooses a file, so it cannot have a default"  # or a manifest could name a private file
    elif entry.name in PERSONS_OWN:
        yield f"{entry.name!r} cannot have a default, because a person chooses which servers are reached"
    elif entry.name == "host" and entry.default not in LOCAL:
        yield f"a default host must be {' or '.join(LOCAL)}; a person chooses any other"
    elif entry.name == "skip_tls_verification" and entry.default is True:
        yield "the default must verify TLS certificates; a person may change it"
    elif entry.kind is FieldKind.CHOICE and entry.default not in {choice.value for choice in entry.choices}:
        yield f"{quoted(entry.default)} is not one of its choices"
    expected_type = {FieldKind.INTEGER: int, FieldKind.SWITCH: bool}.get(entry.kind, str)
    if type(entry.default) is not expected_type:
        yield f"{quoted(entry.default)} does not fit kind {entry.kind.value!r}"
