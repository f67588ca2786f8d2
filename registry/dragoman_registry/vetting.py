"""Checking a manifest that comes in: types, single values, and what several values say together."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

from dragoman_api.forms import FieldKind, FormField

from .manifest import Manifest
from .validation import Fault, load

if TYPE_CHECKING:
    from collections.abc import Iterator


def check_manifest(data: bytes) -> tuple[Manifest | None, list[Fault]]:
    """Read a manifest that comes in.

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
        # Which of two values counts is nobody's rule, and a person may be shown the other one.
        faults += [Fault("manifest", f"the key {key!r} is there twice in one object") for key in twice]
        faults += [Fault("manifest", reason) for reason in (*_values(raw), *_hidden(raw))]
    if manifest is not None:
        faults += [Fault("manifest", reason) for reason in _relations(manifest)]
    return (None if faults else manifest), faults


_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_ENTRY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_DOCS = re.compile(r"(https?://[!-~]+|[A-Za-z0-9][A-Za-z0-9._-]*)?")
_MODULE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_HOST = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?"
_PERMISSION = re.compile(
    rf"net:connection|secrets:connection|native-code|net:host={_HOST}(,{_HOST})*"
    r"|fs:read=[a-z][a-z0-9_]*|memory=[1-9][0-9]{0,5}MiB|cpu=[1-9][0-9]{0,3}s"
)
_RESERVED_FIELDS = frozenset({"name", "type", "types", "plugin", "version"})  # keys of a saved connection itself


def _specifier(value: str) -> str | None:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return None if value and SpecifierSet(value) else "a version range is needed, for example ~=1.0"
    except InvalidSpecifier:
        return f"{value!r} is no version range"


def _licence(value: str) -> str | None:
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    try:
        canonicalize_license_expression(value)
    except InvalidLicenseExpression:
        return f"{value!r} is no SPDX licence expression"
    return None


def _permission(value: str) -> str | None:
    if value == "subprocess":
        return "subprocess is never granted"
    return None if _PERMISSION.fullmatch(value) else f"{value!r} is no known permission"


def _hook(value: str) -> str | None:
    from dragoman_api.hookspecs import DriverSpec

    return None if not value.startswith("_") and hasattr(DriverSpec, value) else f"there is no hook {value!r}"


_CHECKS = {
    "id": lambda value: None if _ID.fullmatch(value) else f"{value!r} is not of the form letters-and-digits",
    "label": lambda value: None if value.strip() and value.isprintable() else "a printable label is needed",
    "host_api": _specifier,
    "entry": lambda value: None if _ENTRY.fullmatch(value) else f"{value!r} is not of the form package.module:Class",
    "licence": _licence,
    # Python reads other alphabets' letters as the ones they resemble, so ASCII is all there is.
    "import_names": lambda value: None if _MODULE.fullmatch(value) else f"{value!r} is no module name",
    "docs": lambda value: None if _DOCS.fullmatch(value) else f"{value!r} is no web address, and no name of a file",
    "hooks": _hook,
    "permissions": _permission,
}


def _values(raw: dict[str, object]) -> Iterator[str]:
    """Check single values on the raw document, so that one wrong type elsewhere hides none of them."""
    for key, judge in _CHECKS.items():
        value = raw.get(key)
        entries = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, entry in entries:
            if isinstance(entry, str) and (reason := judge(entry)):
                yield f"$.{key}{'' if index is None else f'[{index}]'}: {reason}"


def _hidden(raw: object) -> Iterator[str]:
    """Find text that is shown otherwise than it is written: controls, invisible characters, changes of direction."""
    todo = [("$", raw)]
    while todo:
        at, value = todo.pop()
        if isinstance(value, str) and not value.isprintable():
            yield f"{at}: {value[:80]!r} has characters that cannot be seen"
        elif isinstance(value, list):
            todo += [(f"{at}[{index}]", entry) for index, entry in enumerate(value)]
        elif isinstance(value, dict):
            todo += [(f"{at}.{key!a}", key) for key in value if not key.isprintable()]
            todo += [(f"{at}.{key}", entry) for key, entry in value.items() if key.isprintable()]


def _twice(names: list[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _relations(manifest: Manifest) -> Iterator[str]:
    """Check what several values say together."""
    for key in ("types", "import_names", "hooks"):
        if not getattr(manifest, key):
            yield f"$.{key}: at least one is needed"
    if manifest.entry.partition(".")[0].partition(":")[0] not in manifest.import_names:
        yield f"$.entry: {manifest.entry!r} lies outside the import names"
    for key, names in {
        "types": [entry.name for entry in manifest.types],
        "form": [entry.name for entry in manifest.form],
        "permissions": list(manifest.permissions),
        "dependencies": [entry.file for entry in manifest.dependencies],
    }.items():
        yield from (f"$.{key}: {name!r} is there twice" for name in _twice(names))
    for index, kind in enumerate(manifest.types):
        if not _ID.fullmatch(kind.name):
            yield f"$.types[{index}].name: {kind.name!r} is not of the form letters-and-digits"
    for index, dependency in enumerate(manifest.dependencies):
        if not re.fullmatch(r"[0-9a-f]{64}", dependency.sha256):
            yield f"$.dependencies[{index}].sha256: {dependency.sha256!r} is no SHA-256 digest"
    yield from _form(manifest)


def _form(manifest: Manifest) -> Iterator[str]:
    fields = {entry.name: entry for entry in manifest.form}
    for name, kind in (("host", FieldKind.TEXT), ("port", FieldKind.INTEGER)):
        # The broker compares both with what the driver asks for: without them there is nothing to reach.
        if name not in fields or fields[name].kind is not kind:
            yield f"$.form: a field {name!r} of kind {kind.value!r} is needed"
    granted = {name.removeprefix("fs:read=") for name in manifest.permissions if name.startswith("fs:read=")}
    for name in sorted(granted | {"ca_file", "client_certificate"} & fields.keys()):
        if name not in fields or fields[name].kind is not FieldKind.FILE:
            yield f"$.form: {name!r} has to be a field of kind 'file', since what it names is read"
    for index, entry in enumerate(manifest.form):
        at = f"$.form[{index}]"
        if not _NAME.fullmatch(entry.name) or entry.name in _RESERVED_FIELDS:
            yield f"{at}.name: {entry.name!r} is no name a field may have"
        if bool(entry.choices) != (entry.kind is FieldKind.CHOICE):
            yield f"{at}.choices: exactly a field of kind 'choice' has choices"
        yield from (f"{at}.default: {reason}" for reason in _default(entry))
        for other, allowed in entry.visible_if.items():
            if other not in fields:
                yield f"{at}.visible_if: there is no field {other!r}"
            elif fields[other].kind is FieldKind.CHOICE:
                known = {choice.value for choice in fields[other].choices}
                strange = [value for value in allowed if value not in known]
                yield from (f"{at}.visible_if.{other}: {value!r} is no choice" for value in strange)
    offered = [choice.value for choice in fields["auth_method"].choices] if "auth_method" in fields else []
    if sorted(offered) != sorted(entry.value for entry in manifest.auth_methods):
        yield "$.auth_methods: they are not the choices of the field 'auth_method'"


def _default(entry: FormField) -> Iterator[str]:
    if entry.default is None:
        return
    if entry.kind is FieldKind.SECRET:
        yield "a secret has no default"
    elif entry.kind is FieldKind.FILE:
        yield "a person chooses a file; it has no default"  # or a manifest could choose one of theirs
    elif entry.kind is FieldKind.CHOICE and entry.default not in {choice.value for choice in entry.choices}:
        yield f"{entry.default!r} is no choice"
    wanted = {FieldKind.INTEGER: int, FieldKind.SWITCH: bool}.get(entry.kind, str)
    if type(entry.default) is not wanted:
        yield f"{entry.default!r} does not fit kind {entry.kind.value!r}"
