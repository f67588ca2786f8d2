"""The marketplace: search, details, install, update, roll back, pin, remove, verify."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio.to_thread import run_sync
from msgspec.structs import replace

from dragoman_api.errors import PluginNotFoundError
from dragoman_api.events import RegistryFailed
from dragoman_workbench.messages.base import Done, answer_of
from dragoman_workbench.messages.connections import (
    Browsed,
    DriverPage,
    DriverSummary,
    Installed,
    Report,
    UpdateOffer,
    Updates,
    Verification,
    VersionSummary,
)
from dragoman_workbench.surfaces import DESKTOP, check_surface, surface, why_not_here

if TYPE_CHECKING:
    from dragoman import DriverListing, Runtime
    from dragoman_api.events import Event
    from dragoman_workbench.messages.base import Empty
    from dragoman_workbench.messages.connections import BrowseAsked, DriverNamed


SHOWN = 500
"""Drivers that one answer lists."""


def summary(listing: DriverListing) -> DriverSummary:
    """Return a driver as a list shows it."""
    unavailable_here = why_not_here(listing.id, listing.excluded_surfaces)
    return replace(answer_of(DriverSummary, listing), unavailable_here=unavailable_here)


class MarketplaceRoutes:
    """Routes about drivers."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._plugins = runtime, runtime.plugins
        self._failures: dict[str, str] = {}
        runtime.add_sink(self._note)

    def _note(self, event: Event) -> None:
        if isinstance(event, RegistryFailed):
            self._failures[event.registry] = event.reason

    async def browse(self, request: BrowseAsked) -> Browsed:
        """Find drivers."""
        self._failures.clear()
        listings = await self._plugins.browse(
            request.words,
            type=request.type or None,
            capability=request.capability or None,
            compatible=request.compatible,
        )
        drivers = [summary(listing) for listing in listings[:SHOWN]]
        return Browsed(drivers=drivers, omitted=max(0, len(listings) - SHOWN), failures=dict(self._failures))

    async def show(self, request: DriverNamed) -> DriverPage:
        """Return everything known about a driver."""
        details = await self._plugins.show(request.id)
        rollback_versions, pin = await self._rollback_versions(request.id)
        manifest, report = details.manifest, details.report
        types = {kind.name for kind in manifest.types}
        saved, _ = await run_sync(self._runtime.connections.sifted)
        return DriverPage(
            driver=summary(details.listing),
            versions=[answer_of(VersionSummary, release) for release in details.versions],
            permissions=[*details.permissions],
            publisher=details.publisher,
            readme=details.readme,
            changelog=details.changelog,
            report=None if report is None else replace(answer_of(Report, report), summary=str(report)),
            skipped=[*details.skipped],
            hooks=[*manifest.hooks],
            server_versions=[*manifest.server_versions],
            licence=manifest.licence,
            rollback_versions=rollback_versions,
            pin=pin,
            used_by=[connection.name for connection in saved if connection.type in types],
        )

    async def _rollback_versions(self, plugin: str) -> tuple[list[str], str]:
        try:
            installations = await self._plugins.why(plugin)
        except PluginNotFoundError:
            return [], ""
        return [*dict.fromkeys(installation.version for installation in installations)], installations[0].pin or ""

    async def install(self, request: DriverNamed) -> Installed:
        """Install a driver; the button is the consent, except to wider permissions."""
        await self._check_here(request.id)
        installation = await self._plugins.install(request.id, version=request.version)
        return Installed(id=installation.plugin, version=installation.version)

    async def _check_here(self, plugin: str) -> None:
        """Refuse code of a driver that excludes the surface that asks (P6)."""
        if surface.get() != DESKTOP:
            check_surface(plugin, (await self._plugins.show(plugin)).listing.excluded_surfaces)

    async def updates(self, _: Empty) -> Updates:
        """Return what could be updated."""
        return await self._updates(None, dry_run=True)

    async def update(self, request: DriverNamed) -> Updates:
        """Update one driver."""
        await self._check_here(request.id)
        return await self._updates(request.id, dry_run=False)

    async def _updates(self, plugin: str | None, *, dry_run: bool) -> Updates:
        updates = await self._plugins.update(plugin, dry_run=dry_run)
        excluded: dict[str, tuple[str, ...]] = {}
        if updates and surface.get() != DESKTOP:
            excluded = {listing.id: listing.excluded_surfaces for listing in await self._plugins.browse()}
        return Updates(
            updates=[
                UpdateOffer(
                    id=update.plugin,
                    before=update.before,
                    version=update.version,
                    permissions=[*update.permissions],
                    publisher=update.publisher,
                    state=update.state,
                    reason=update.reason,
                    unavailable_here=why_not_here(update.plugin, excluded.get(update.plugin, ())),
                )
                for update in updates
            ]
        )

    async def rollback(self, request: DriverNamed) -> Installed:
        """Go back to an earlier version."""
        await self._check_here(request.id)
        installation = await self._plugins.rollback(request.id, version=request.version)
        return Installed(id=installation.plugin, version=installation.version)

    async def pin(self, request: DriverNamed) -> Done:
        """Pin or unpin a driver."""
        await self._plugins.pin(request.id, request.version)
        return Done()

    async def enable(self, request: DriverNamed) -> Done:
        """Enable a driver."""
        await self._plugins.enable(request.id)
        return Done()

    async def disable(self, request: DriverNamed) -> Done:
        """Disable a driver."""
        await self._plugins.disable(request.id)
        return Done()

    async def remove(self, request: DriverNamed) -> Done:
        """Uninstall a driver."""
        await self._plugins.remove(request.id)
        return Done()

    async def verify(self, request: DriverNamed) -> Verification:
        """Compare a driver's files with what was installed."""
        checks = await self._plugins.verify(request.id)
        return Verification(faults=[str(fault) for _, faults in checks for fault in faults])

    async def repair(self, request: DriverNamed) -> Installed:
        """Fetch a damaged driver again."""
        await self._check_here(request.id)
        installation = await self._plugins.repair(request.id)
        return Installed(id=installation.plugin, version=installation.version)
