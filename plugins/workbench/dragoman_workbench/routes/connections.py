"""Saved connections: the list, the form from the manifest, test, save, remove. Secrets are never sent back."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec
from anyio.to_thread import run_sync
from msgspec.structs import replace

from dragoman import Reference, SavedConnection
from dragoman_api.errors import ConfigurationError
from dragoman_workbench.messages.base import Done, answer_of
from dragoman_workbench.messages.connections import (
    ConnectionList,
    ConnectionSummary,
    Form,
    HiddenConnection,
    InputField,
    KnownReference,
    Tested,
    TypeList,
    TypeOffer,
)

from .marketplace import summary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman import Runtime
    from dragoman_api.connections import FieldValue, FormField
    from dragoman_workbench.messages.base import Empty
    from dragoman_workbench.messages.connections import FieldEntry, FormAsked, Named, SaveConnection, TestConnection
    from dragoman_workbench.open_connections import OpenConnections
    from dragoman_workbench.samples import Samples
    from dragoman_workbench.surfaces import SurfaceRules

    Saved = FieldValue | Reference

STORED = Reference("stored")
_FITTING = {"secret": ("env", "file", "command", "keyring"), "file": ("path",)}
"""Schemes of the references that a kind of field may take over from a saved connection."""


class ConnectionRoutes:
    """Routes about saved connections."""

    def __init__(self, runtime: Runtime, connections: OpenConnections, rules: SurfaceRules, samples: Samples) -> None:
        self._runtime, self._open, self._rules, self._samples = runtime, connections, rules, samples
        self._saved = runtime.connections

    async def connections(self, _: Empty) -> ConnectionList:
        """List the saved connections."""
        connections, hidden = await run_sync(self._saved.sifted)
        exposures = await run_sync(self._saved.exposures)
        return ConnectionList(
            connections=[self._summary(connection) for connection in connections],
            hidden=[HiddenConnection(name=name, reason=error.message) for name, error in hidden.items()],
            warnings=[f"{exposure.reason}; {exposure.remedy}" for exposure in exposures],
            samples_offered=self._samples.offered,
            samples_ended=self._samples.ended,
        )

    def _summary(self, saved: SavedConnection) -> ConnectionSummary:
        values, sample = saved.values, self._samples.connections.get(saved.name)
        address = ":".join(str(values[key]) for key in ("host", "port") if values.get(key) is not None)
        return ConnectionSummary(
            name=saved.name,
            type=saved.type,
            address=address + (f" through {saved.via}" if saved.via else ""),
            acts=[reference.act for reference in saved.references.values()],
            open=saved.name in self._open.names(),
            production=self._runtime.settings.guards.of(saved.name).production,
            sample=sample.holds if sample and sample.saved == saved else "",
        )

    async def types(self, _: Empty) -> TypeList:
        """List the types of all registries and of installed drivers."""
        offers: dict[str, TypeOffer] = {}
        for listing in await self._runtime.plugins.browse():
            for kind in listing.types:
                offers.setdefault(kind, TypeOffer(type=kind, driver=summary(listing)))
        return TypeList(types=[offers[kind] for kind in sorted(offers)])

    async def form(self, request: FormAsked) -> Form:
        """Return a form, with the saved values but without secrets."""
        saved = await run_sync(self._saved.get, request.name) if request.name else None
        kind = saved.type if saved else request.type
        listing = await self._runtime.plugins.for_type(kind)
        values = saved.values if saved else {}
        references = await run_sync(self._saved_references)
        return Form(
            type=kind,
            revision=_revision(saved) if saved else "",
            name=request.name,
            driver=summary(listing),
            installed=listing.state not in ("available", "incompatible", "unreadable"),
            fields=[_field(field, values, references) for field in await self._runtime.plugins.form(kind)],
        )

    def _saved_references(self) -> dict[str, Reference]:
        """Return the references of saved connections, which the page may choose among, by id."""
        return {
            f"{saved.name}/{key}": value
            for saved in self._saved.sifted()[0]
            for key, value in saved.values.items()
            if isinstance(value, Reference) and value.scheme != "stored"
        }

    async def save(self, request: SaveConnection) -> Done:
        """Save a connection; one that is edited is closed, so that it opens with its new values."""
        if request.replace not in ("", request.name):
            raise ConfigurationError("a connection keeps its name", hint="save it as a new one, and remove the old one")
        connection, secrets, before = await self._entered(request)
        await self._runtime.save(connection, secrets=secrets, before=before)
        if request.accept_address:
            await run_sync(self._saved.reached.forget, request.name)
        await self._open.close(request.name)
        return Done()

    async def test(self, request: TestConnection) -> Tested:
        """Connect with what was entered; nothing is saved."""
        connection, secrets, _ = await self._entered(request)
        try:
            async with self._runtime.open(connection, secrets=secrets) as session:
                if session.can("ping") and not (health := await session.ping()).ok:
                    raise ConfigurationError(health.reason, code=health.code or "connection-failed")
                return Tested(
                    product=session.server.product,
                    version=session.server.version,
                    sandbox=session.sandbox,
                    warnings=[*session.warnings, *session.server.notes],
                )
        finally:
            if not request.replace:  # an address of a trial is no address of a saved connection
                await run_sync(self._saved.reached.forget, request.name)

    async def remove(self, request: Named) -> Done:
        """Close and remove a connection and its stored secrets."""
        await self._open.close(request.name)
        await run_sync(self._saved.remove, request.name)
        return Done()

    async def add_samples(self, _: Empty) -> Done:
        """Serve the samples, and add connections to them."""
        await self._samples.add()
        return Done()

    async def remove_samples(self, _: Empty) -> Done:
        """Close and remove the connections to the samples, and end their servers."""
        for name in await run_sync(self._samples.unchanged):
            await self._open.close(name)
        await self._samples.remove()
        return Done()

    async def _entered(self, request: SaveConnection) -> tuple[SavedConnection, dict[str, str], SavedConnection | None]:
        """Return the connection that was entered, the typed secrets by field, and the connection to replace.

        Raises:
            ConfigurationError: An entry is not of its field's kind, or names a reference that no connection holds.
        """
        await self._rules.check_type(request.type)
        form = {field.name: field for field in await self._runtime.plugins.form(request.type)}
        saved = await run_sync(self._saved.get, request.replace) if request.replace else None
        if saved is None:
            await run_sync(self._saved.check_name, request.name)
        elif request.revision and request.revision != _revision(saved):
            reason = f"connection {saved.name!r} was changed elsewhere since this form was opened; nothing was saved"
            raise ConfigurationError(reason, hint="open the form again, which shows it as it is now")
        references = await run_sync(self._saved_references)
        values: dict[str, Saved] = {}
        secrets: dict[str, str] = {}
        for name, entry in request.fields.items():
            if (field := form.get(name)) is None:
                raise ConfigurationError(f"the form has no field {name[:80]!r}", details={"field": name[:80]})
            value = _value(field, entry, (saved.values if saved else {}).get(name), references)
            if entry.kind == "secret" and isinstance(entry.value, str):
                secrets[name] = entry.value
            if value not in (None, ""):
                values[name] = value
        if saved is not None and any(values.get(key) is STORED and key not in secrets for key in values):
            for key in [key for key in values if values[key] is STORED and key not in secrets]:
                values[key] = saved.values[key]
        # The page shows what is between this machine and the host; only the command line changes it.
        connection = SavedConnection(name=request.name, type=request.type, values=values)
        if saved is not None:
            connection = replace(connection, via=saved.via, pinned=saved.pinned, sign_in_at=saved.sign_in_at)
        return connection, secrets, saved


def _revision(saved: SavedConnection) -> str:
    """Digest what the form shows of a connection; what a person consents to meanwhile does not count."""
    values = {key: saved.values[key] for key in sorted(saved.values)}
    return sha256(msgspec.json.encode([saved.type, values])).hexdigest()


def _value(field: FormField, entry: FieldEntry, saved: Saved, references: Mapping[str, Reference]) -> Saved:
    wants = field.kind in ("secret", "file")
    text = entry.value if isinstance(entry.value, str) else ""
    match entry.kind:
        case "value" if not wants or entry.value in (None, ""):
            return entry.value
        case "keep" if isinstance(saved, Reference) and saved.fits(field.kind):
            return saved
        case "secret" if field.kind == "secret" and text:
            return STORED
        case "reference" if text in references and references[text].scheme in _FITTING.get(field.kind, ()):
            return references[text]
        case "path" if field.kind == "file" and os.path.isabs(text):  # noqa: PTH117 - it may be none
            return Reference("path", text)
    requirement = {"secret": "a typed secret or a known reference", "file": "an absolute path"}.get(
        field.kind, "a value"
    )
    reason = f"{field.name}: wants {requirement}; other references are made on the command line"
    hint = "dragoman connections edit NAME" if wants else ""
    raise ConfigurationError(reason, hint=hint, details={"field": field.name})


def _field(field: FormField, values: Mapping[str, Saved], references: Mapping[str, Reference]) -> InputField:
    value = values.get(field.name, field.default)
    reference = value if isinstance(value, Reference) else None
    return replace(
        answer_of(InputField, field),
        value=None if reference or field.kind == "secret" else _text(value),
        always=not field.visible_if,
        saved=reference.act if reference else "",
        references=[
            KnownReference(id=name, act=f"{candidate.act}, as {name} does")
            for name, candidate in references.items()
            if candidate.scheme in _FITTING.get(field.kind, ())
        ],
    )


def _text(value: Saved) -> bool | str | None:
    return value if value is None or isinstance(value, bool) else str(value)
