"""Saved values against the rules of a driver's form: defaults, kinds, and which fields are visible."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dragoman.references import Reference
from dragoman.spellings import field_words
from dragoman_api import endpoints
from dragoman_api.connections import FieldKind, FormField, SslMode
from dragoman_api.errors import ConfigurationError
from dragoman_api.wording import quoted
from dragoman_registry.ip_addresses import MAX_HOST, canonical
from dragoman_registry.wheels.manifest import ACTED_ON, LOCAL, PERSONS_OWN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dragoman.references import Saved
    from dragoman_api.connections import FieldValue


def usual(field: FormField) -> FieldValue:
    """Return a field's default.

    A manifest cannot set a secret, a file, a remote server or skipped TLS checks.
    """
    if field.kind in (FieldKind.SECRET, FieldKind.FILE) or field.name == "skip_tls_verification":
        return None
    if field.name in PERSONS_OWN or (field.name == "host" and field.default not in LOCAL):
        return None
    return field.default


def effective(field: FormField) -> FormField:
    """Return a field as the host treats it, whatever the manifest says: its default, and whether it can be hidden."""
    return replace(field, default=usual(field), visible_if={} if field.name in ACTED_ON else field.visible_if)


def to_save(
    fields: Sequence[FormField], values: Mapping[str, Saved], *, name: str, new: bool = False
) -> dict[str, Saved]:
    """Check a connection's values, and return those that are saved.

    A driver update may change the defaults of advanced fields, but not where a connection leads, or how.

    Raises:
        ConfigurationError: Every fault at once: unknown fields, values of another kind, values outside a choice,
            empty fields.
    """
    with suppress(ValueError):  # the check says it
        values = with_url(fields, values)
    checked = check_values(fields, values, name=name, new=new)
    left_out = {field.name for field in fields if field.advanced} - values.keys() - ACTED_ON.keys()
    return {key: value for key, value in checked.items() if key not in left_out and value is not None}


def misfit(field: FormField, value: Saved) -> str:
    """Describe how a saved value does not fit its field's kind, which may have changed since; empty if it fits."""
    wants = field.kind in (FieldKind.SECRET, FieldKind.FILE)
    if value in (None, "") or (value.fits(field.kind) if isinstance(value, Reference) else not wants):
        return ""
    if isinstance(value, Reference):
        was = "file" if value.scheme == "path" else "secret"
    else:
        was = {bool: "switch", int: "integer"}.get(type(value), "text")
    return f"is saved as {was}, and the form's field is of kind {field.kind}; it was not used"


def check_values(
    fields: Sequence[FormField], values: Mapping[str, Saved], *, name: str, new: bool = False
) -> dict[str, Saved]:
    """Check a connection's values against its driver's form and fill in the defaults.

    Args:
        fields: The form.
        values: As saved or typed.
        name: The connection's name, for messages.
        new: There is no such connection yet, so the hint cannot be to edit it.

    Returns:
        A value for every visible field.

    Raises:
        ConfigurationError: Every fault at once: unknown fields, values of another kind, values outside a choice,
            empty fields.
    """
    _check_kinds(fields, name=name)
    fields_by_name = {field.name: field for field in fields}
    faults = {
        key: f"no such field (fields: {', '.join(fields_by_name)})" for key in values if key not in fields_by_name
    }
    try:
        values = with_url(fields, values)
    except ValueError as error:
        faults["host"] = str(error)
    try:
        values = with_cloud_id(fields, values)
    except ValueError as error:
        faults["cloud_id"] = str(error)
    complete = {field.name: values.get(field.name, usual(field)) for field in fields}
    result: dict[str, Saved] = {}
    again = []
    for field in visible(fields, complete):
        value, fault = complete[field.name], misfit(field, complete[field.name])
        if fault:
            again.append(_option(field))
        elif not isinstance(value, Reference):
            value, fault = _coerce(field, value)
        if fault:
            faults[field.name] = fault
        elif field.required and value in (None, ""):
            faults[field.name] = "must not be empty"
        result[field.name] = value
    if faults:
        hint = " ".join(["dragoman connections edit", name, *again])
        hint = "nothing was saved; correct it and try again" if new else hint
        reason = "; ".join(f"{field}: {fault}" for field, fault in faults.items())
        raise ConfigurationError(f"connection {name!r}: {reason}", hint=hint, details={"field": next(iter(faults))})
    return result


def with_cloud_id(fields: Sequence[FormField], values: Mapping[str, Saved]) -> Mapping[str, Saved]:
    """Return the values with the host and port that a Cloud ID means, and with an SSL mode that is not Disabled.

    Raises:
        ValueError: The Cloud ID is malformed, or another host or port was entered besides.
    """
    fields_by_name = {field.name: field for field in fields}
    text = values.get("cloud_id")
    if "cloud_id" not in fields_by_name or not isinstance(text, str) or not text.strip():
        return values
    host, port = endpoints.cloud_id(text)
    implied: dict[str, Saved] = {"host": host, "port": port}
    for name in ("host", "port"):
        entered = values.get(name)
        spelled = canonical(str(entered)) if name == "host" else str(entered)
        if entered not in (None, "", usual(fields_by_name[name])) and spelled != str(implied[name]):
            raise ValueError(f"means {host}:{port}, but {name} is {_cut(quoted(entered))}; enter one of them")
    if values.get("ssl_mode") in (None, "", SslMode.DISABLED):
        implied["ssl_mode"] = SslMode.VERIFY_IDENTITY.value  # the service speaks HTTPS only
    return {**values, **{name: value for name, value in implied.items() if name in fields_by_name}}


_ADDRESS = re.compile(r"[^\s:/@\[\]]+:[0-9]{1,5}|https?://.*", re.IGNORECASE)
"""A host that was entered with its port, or as a URL."""


def with_url(fields: Sequence[FormField], values: Mapping[str, Saved]) -> Mapping[str, Saved]:
    """Return the values with what a URL, or ``HOST:PORT``, that was entered as the host means.

    It means a host, a port, an SSL mode and a path prefix. A port that is the form's default may not have been entered.

    Raises:
        ValueError: It is more than an address, or another port, SSL mode or path prefix was entered besides.
    """
    fields_by_name = {field.name: field for field in fields}
    text = values.get("host")
    if (
        not isinstance(text, str)
        or not _ADDRESS.fullmatch(text.strip())
        or not {"host", "port"} <= fields_by_name.keys()
    ):
        return values
    scheme, _, rest = text.strip().rpartition("://")
    try:
        url = urlsplit(f"//{rest}")
        port = url.port
    except ValueError:
        raise ValueError("is no URL that can be read; enter a name or an address, and the port as Port") from None
    if "@" in url.netloc or url.query or url.fragment or not url.hostname:
        raise ValueError("is more than an address; enter http://HOST:PORT/PATH, and credentials in their own fields")
    implied: dict[str, Saved] = {"host": url.hostname}
    if scheme and port is None and values.get("port") in (None, ""):
        port = 443 if scheme.lower() == "https" else 80
    if port is not None:
        implied["port"] = port
    if scheme.lower() == "http":
        implied["ssl_mode"] = SslMode.DISABLED.value
    elif scheme and values.get("ssl_mode") in (None, "", SslMode.DISABLED):
        values = {**values, "ssl_mode": None}
        implied["ssl_mode"] = SslMode.VERIFY_IDENTITY.value
    if url.path.strip("/"):
        if "path_prefix" not in fields_by_name:
            raise ValueError(f"has the path {_cut(quoted(url.path))}, and this form has no Path Prefix")
        implied["path_prefix"] = url.path.rstrip("/")
    for name in ("port", "ssl_mode", "path_prefix") if scheme else ("port",):
        entered = values.get(name)
        usually = name in fields_by_name and entered in (None, "", usual(fields_by_name[name]))
        if (
            name in implied
            and name in fields_by_name
            and not usually
            and str(entered).strip("/") != str(implied[name]).strip("/")
        ):
            raise ValueError(f"means {name} {implied[name]}, but {name} is {_cut(quoted(entered))}; enter one of them")
    return {**values, **{name: value for name, value in implied.items() if name in fields_by_name}}


def _check_kinds(fields: Sequence[FormField], *, name: str) -> None:
    """Refuse a form installed before kinds were checked: a text such as "no" would count as true."""
    if wrong := [field.name for field in fields if ACTED_ON.get(field.name, field.kind) is not field.kind]:
        reason = f"connection {name!r}: its driver's form has another kind of {', '.join(wrong)} than the host acts on"
        raise ConfigurationError(reason, hint="dragoman plugins update")


def visible(fields: Sequence[FormField], values: Mapping[str, Saved]) -> list[FormField]:
    """Return the fields that a form shows for these values; fields that the host acts on are never hidden."""
    texts = {key: value for key, value in values.items() if not isinstance(value, Reference)}
    return [field for field in fields if field.name in ACTED_ON or field.visible(texts)]


def _option(field: FormField) -> str:
    """Return the command-line option that sets a field again."""
    if field.kind is FieldKind.SWITCH:
        return " ".join(field_words(field.name, value=True))
    example = {FieldKind.SECRET: "env:NAME", FieldKind.FILE: "PATH", FieldKind.INTEGER: "NUMBER"}
    value = field.choices[0].value if field.choices else example.get(field.kind, "TEXT")
    return " ".join(map(quote, field_words(field.name, value=value)))


_SHOWN = 80
"""Characters of a value that a message shows."""
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def _coerce(field: FormField, value: FieldValue) -> tuple[FieldValue, str]:
    if value is None:
        return None, ""
    match field.kind:
        case FieldKind.INTEGER:
            try:
                number = int("" if isinstance(value, bool) else value)
            except ValueError:
                return value, f"{_cut(quoted(value))} is not a whole number"
            in_range = field.name != "port" or 1 <= number <= 65535
            return number, "" if in_range else f"{_cut(str(number))} is not a TCP port"
        case FieldKind.SWITCH:
            text = str(value).lower()
            if text in _TRUE or text in _FALSE:
                return text in _TRUE, ""
            return value, f"{_cut(quoted(value))} is neither true nor false"
        case FieldKind.CHOICE:
            allowed = [choice.value for choice in field.choices]
            fault = f"{_cut(quoted(value))} is not one of {', '.join(allowed)}"
            return str(value), "" if str(value) in allowed else fault
        case _:
            return str(value), _unusable(field.name, str(value))


_READERS: Mapping[str, Callable[[str], object]] = {
    "path_prefix": endpoints.path_prefix,
    "headers": endpoints.headers,
    "hosts": lambda text: endpoints.more_hosts(text, 1),
    "token_url": lambda text: text and endpoints.token_url(text),
}
"""Texts that `dragoman_api.http` acts on, by the field's name, and what reads them."""


def _unusable(field: str, text: str) -> str:
    """Describe why a text cannot be the value of a field that dragoman acts on; empty if it can."""
    if field == "host":
        return _overlong(text)
    try:
        _READERS.get(field, str)(text)
    except ValueError as error:
        return str(error)
    return ""


def _overlong(host: str) -> str:
    """Describe a host name that is too long, as written or as looked up; empty if its length is fine."""
    name = host.strip("[]").removesuffix(".")
    if len(name) > MAX_HOST:
        return f"has {len(name):,} characters; a host has {MAX_HOST} at most"
    if (size := len(canonical(name))) > MAX_HOST:
        return f"has {size:,} characters as names are looked up; a host has {MAX_HOST} at most"
    return ""


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
