"""The folder of a new driver: small, complete, and passing its own tests."""

from __future__ import annotations

import json
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from dragoman.folders import installed_version
from dragoman.plugins.combined_catalog import offer_for_type, read_offers
from dragoman_api.connections import AuthScheme
from dragoman_api.errors import ConfigurationError, RegistryError
from dragoman_api.kit import form_blocks
from dragoman_registry.names import PLUGIN

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dragoman_registry.client.installed_drivers import Store
    from dragoman_registry.index.registry_reader import Registry

_OURS = ("api", "worker", "registry")  # dragoman_api and the others are modules of the host

AUTH_METHODS = {
    method.value: method
    for method in (
        form_blocks.none(),
        form_blocks.username_password(),
        form_blocks.api_key(AuthScheme.API_KEY),
        form_blocks.api_key(AuthScheme.BEARER, value="bearer", label="Token"),
    )
}
"""Auth methods that need no code in a driver, by the value of the form's field."""

_PLACES = {
    "__init__.py": "{package}/__init__.py",
    "driver.py": "{package}/driver.py",
    "driver.json": "{package}/driver.json",
    "fake.py": "tests/fake.py",
    "test_conformance.py": "tests/test_conformance.py",
    "gitignore": ".gitignore",
    "ci.yml": ".github/workflows/driver.yml",
}

_DOCUMENT_HOOKS = [
    "connect", "ping", "list_objects", "describe_object", "compile_filter", "fetch_page", "fetch_cell",
    "count_rows", "summarize_column", "export_rows", "plan_change", "apply_change", "parse_console",
    "execute_console",
]  # fmt: skip

KINDS: dict[str, dict[str, object]] = {
    "tables": {
        "objects": "tables",
        "sample": "planets",
        "rows": 8,
        "summary": "pages through, counts and exports their rows",
        "hooks": ["connect", "list_objects", "describe_object", "fetch_page", "count_rows", "export_rows"],
        "capabilities": ["browse", "export"],
    },
    "documents": {
        "objects": "collections",
        "sample": "planets",
        "rows": 8,
        "summary": "filters, sorts, edits and exports their documents, and has a console",
        "hooks": _DOCUMENT_HOOKS,
        "capabilities": ["browse", "sort", "filter", "edit", "drop", "console", "export"],
        "console_example": "GET /collections",
    },
    "timeseries": {
        "objects": "metrics",
        "sample": "load",
        "rows": 24,
        "summary": "reads ranges of time from their samples, filters, sorts and exports them, and has a console",
        "hooks": [
            "connect", "ping", "list_objects", "describe_object", "compile_filter", "fetch_page", "fetch_cell",
            "count_rows", "summarize_column", "export_rows", "parse_console", "execute_console",
        ],
        "capabilities": ["browse", "sort", "filter", "time-range", "console", "export"],
        "console_example": "GET /metrics",
    },
}  # fmt: skip
KINDS["keyvalue"] = KINDS["documents"] | {
    "objects": "buckets",
    "sample": "settings",
    "rows": 9,
    "summary": "filters, sorts, edits and exports their keys and values, and has a console",
    "console_example": "GET /buckets",
}
KINDS["vectors"] = KINDS["documents"] | {
    "sample": "articles",
    "rows": 12,
    "summary": "finds similar records, filters, sorts, edits and exports them, and has a console",
    "hooks": [*_DOCUMENT_HOOKS, "similar_rows"],
}
"""What a new driver is for: tables that are only read, or a store of documents, keys, samples or vectors."""


def scaffold(
    name: str,
    *,
    type: str,  # noqa: A002 - the field's word
    port: int,
    kind: str = "tables",
    auth: Sequence[str] = (),
    tls: bool = False,
    into: Path,
    registries: Sequence[Registry],
    store: Store,
) -> Path:
    """Write the folder of a new driver. Blocks.

    Args:
        name: The plugin's id; the folder and the distribution are called ``dragoman-NAME``.
        type: The database type it serves.
        port: The usual port of its servers.
        kind: What it is for, one of `KINDS`.
        auth: The auth methods of its form, from `AUTH_METHODS`; none for a form without credentials.
        tls: Its form offers TLS.
        into: The parent folder.
        registries: Registries whose types are taken.
        store: The store whose types are taken too.

    Returns:
        The folder.

    Raises:
        ConfigurationError: A name cannot be used or is taken, the folder exists, or two auth methods use one field.
    """
    for field, identifier in (("name", name), ("type", type)):
        if not PLUGIN.fits(identifier) or (field == "name" and identifier in _OURS):
            hint = "use lower-case letters, digits and single hyphens, starting with a letter: my-database"
            raise ConfigurationError(f"{identifier!r} is not a valid {field} for a driver", hint=hint)
    if (conflict := _taken(name, type, registries, store)) is not None:
        raise ConfigurationError(
            conflict, hint="choose another --type or NAME; dragoman plugins browse lists the existing ones"
        )
    try:
        form = _form(port, auth, tls=tls)
    except ValueError as error:
        raise ConfigurationError(f"the form cannot be made: {error}", hint="choose one of them") from error
    folder = into / f"dragoman-{name}"
    if folder.exists():
        raise ConfigurationError(f"{folder} already exists", hint="choose another NAME, or continue in that folder")
    package = f"dragoman_{name.replace('-', '_')}"
    api = ".".join(installed_version("dragoman-api").split(".")[:2])
    label = type.replace("-", " ").title()
    values = {"name": name, "type": type, "port": port, "package": package, "label": label, "api": api}
    values |= form
    values |= {word: text if isinstance(text, str) else json.dumps(text) for word, text in KINDS[kind].items()}
    example = KINDS[kind].get("console_example")
    values["console"] = f'\n  "console_example": "{example}",' if example else ""
    template = files(__package__).joinpath("template")
    sources = {source.name: source for source in template.iterdir() if source.is_file()}
    sources |= {source.name: source for source in template.joinpath(kind).iterdir()}
    for source in sources.values():
        file_name = source.name.removesuffix(".in")
        file = folder / _PLACES.get(file_name, file_name).format(package=package)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(Template(source.read_text(encoding="utf-8")).safe_substitute(values), encoding="utf-8")
    return folder


def _form(port: int, auth: Sequence[str], *, tls: bool) -> dict[str, str]:
    """Return the form and the auth methods as the manifest spells them, one entry per line."""
    blocks = [form_blocks.address(port)]
    blocks += [form_blocks.auth(*(AUTH_METHODS[value] for value in auth))] if auth else []
    blocks += [form_blocks.tls()] if tls else []
    return {name: _lines(entries) for name, entries in form_blocks.manifest_part(*blocks).items()}


def _lines(entries: Sequence[object]) -> str:
    lines = ",\n    ".join(json.dumps(entry) for entry in entries)
    return f"[\n    {lines}\n  ]" if entries else "[]"


def _taken(name: str, kind: str, registries: Sequence[Registry], store: Store) -> str | None:
    for identifier in (kind, name):
        if (installed := store.active(identifier)) is not None:
            return f"{identifier!r} is taken by the installed driver {installed.plugin}"
    try:
        if (offer := offer_for_type(registries, kind)) is not None:
            return f"the type {kind!r} is served by {offer.project.project} of the registry {offer.registry.name!r}"
        if name in {offer.project.plugin for offer in read_offers(registries)[0]}:
            return f"a driver called {name!r} is in a configured registry"
    except RegistryError:
        pass  # an unreadable registry does not block a new driver; publishing checks again
    return None
