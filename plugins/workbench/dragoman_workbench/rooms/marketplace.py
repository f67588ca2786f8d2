"""The marketplace: search, details, install, update, roll back, pin, remove, verify."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from dragoman_api.errors import PluginNotFoundError
from dragoman_api.events import RegistryFailed
from dragoman_workbench.messages import (
    Browsed,
    Done,
    DriverPage,
    DriverSummary,
    Installed,
    Report,
    UpdateOffer,
    Updates,
    Verified,
    VersionSummary,
)
from dragoman_workbench.surfaces import DESKTOP, check_surface, surface, why_not_here

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from dragoman import DriverListing, Runtime
    from dragoman_api.events import Event
    from dragoman_workbench.messages import BrowseAsked, DriverNamed, Empty, Message


SHOWN = 500
"""Drivers that one answer lists."""


def summary(listing: DriverListing) -> DriverSummary:
    """Return a driver as a list shows it."""
    return DriverSummary(
        id=listing.id,
        label=listing.label,
        types=[*listing.types],
        version=listing.version,
        state=listing.state,
        reaches=listing.reaches,
        summary=listing.summary,
        registry=listing.registry,
        size=listing.size,
        capabilities=[*listing.capabilities],
        unavailable_here=why_not_here(listing.id, listing.excluded_surfaces),
    )


class MarketplaceRoom:
    """Routes about drivers."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._plugins = runtime, runtime.plugins
        self._failures: dict[str, str] = {}
        runtime.add_sink(self._note)

    def _note(self, event: Event) -> None:
        if isinstance(event, RegistryFailed):
            self._failures[event.registry] = event.reason

    @property
    def routes(self) -> Mapping[str, Callable[[Any], Awaitable[Message]]]:
        """The routes by name."""
        return {
            "plugins/browse": self.browse,
            "plugins/show": self.show,
            "plugins/install": self.install,
            "plugins/updates": self.updates,
            "plugins/update": self.update,
            "plugins/rollback": self.rollback,
            "plugins/pin": self.pin,
            "plugins/enable": self.enable,
            "plugins/disable": self.disable,
            "plugins/remove": self.remove,
            "plugins/verify": self.verify,
            "plugins/repair": self.repair,
        }

    async def browse(self, asked: BrowseAsked) -> Browsed:
        """Find drivers."""
        self._failures.clear()
        found = await self._plugins.browse(
            asked.words,
            type=asked.type or None,
            capability=asked.capability or None,
            compatible=asked.compatible,
        )
        shown = [summary(each) for each in found[:SHOWN]]
        return Browsed(drivers=shown, more=max(0, len(found) - SHOWN), failures=dict(self._failures))

    async def show(self, asked: DriverNamed) -> DriverPage:
        """Return everything known about a driver."""
        about = await self._plugins.show(asked.id)
        kept, pin = await self._kept(asked.id)
        manifest, report = about.manifest, about.report
        types = {kind.name for kind in manifest.types}
        saved, _ = await run_sync(self._runtime.connections.sifted)
        return DriverPage(
            driver=summary(about.listing),
            versions=[
                VersionSummary(
                    version=each.version,
                    state=each.state,
                    reason=each.reason,
                    uploaded=each.uploaded,
                    size=each.size,
                    host_api=each.host_api,
                    installed=each.installed,
                )
                for each in about.versions
            ],
            permissions=[*about.permissions],
            publisher=about.publisher,
            readme=about.readme,
            changelog=about.changelog,
            report=None
            if report is None
            else Report(
                summary=str(report),
                sandbox=report.sandbox,
                engines=report.engines,
                skips=report.skips,
                deviations=[*report.deviations],
                failures=[*report.failures],
            ),
            skipped=[*about.skipped],
            hooks=[*manifest.hooks],
            server_versions=[*manifest.server_versions],
            licence=manifest.licence,
            docs=manifest.docs,
            kept=kept,
            pin=pin,
            used_by=[each.name for each in saved if each.type in types],
        )

    async def _kept(self, plugin: str) -> tuple[list[str], str]:
        try:
            kept = await self._plugins.why(plugin)
        except PluginNotFoundError:
            return [], ""
        return [*dict.fromkeys(each.version for each in kept)], kept[0].pin or ""

    async def install(self, asked: DriverNamed) -> Installed:
        """Install a driver; the button is the consent, except to wider permissions."""
        await self._expect_here(asked.id)
        made = await self._plugins.install(asked.id, version=asked.version)
        return Installed(id=made.plugin, version=made.version)

    async def _expect_here(self, plugin: str) -> None:
        """Refuse code of a driver that excludes the surface that asks (P6)."""
        if surface.get() != DESKTOP:
            check_surface(plugin, (await self._plugins.show(plugin)).listing.excluded_surfaces)

    async def updates(self, _: Empty) -> Updates:
        """Return what could be updated."""
        return await self._updates(None, dry_run=True)

    async def update(self, asked: DriverNamed) -> Updates:
        """Update one driver."""
        await self._expect_here(asked.id)
        return await self._updates(asked.id, dry_run=False)

    async def _updates(self, plugin: str | None, *, dry_run: bool) -> Updates:
        found = await self._plugins.update(plugin, dry_run=dry_run)
        excluded: dict[str, tuple[str, ...]] = {}
        if found and surface.get() != DESKTOP:
            excluded = {each.id: each.excluded_surfaces for each in await self._plugins.browse()}
        return Updates(
            updates=[
                UpdateOffer(
                    id=each.plugin,
                    before=each.before,
                    version=each.version,
                    permissions=[*each.permissions],
                    publisher=each.publisher,
                    state=each.state,
                    reason=each.reason,
                    unavailable_here=why_not_here(each.plugin, excluded.get(each.plugin, ())),
                )
                for each in found
            ]
        )

    async def rollback(self, asked: DriverNamed) -> Installed:
        """Go back to an earlier version."""
        await self._expect_here(asked.id)
        made = await self._plugins.rollback(asked.id, version=asked.version)
        return Installed(id=made.plugin, version=made.version)

    async def pin(self, asked: DriverNamed) -> Done:
        """Pin or unpin a driver."""
        await self._plugins.pin(asked.id, asked.version)
        return Done()

    async def enable(self, asked: DriverNamed) -> Done:
        """Enable a driver."""
        await self._plugins.enable(asked.id)
        return Done()

    async def disable(self, asked: DriverNamed) -> Done:
        """Disable a driver."""
        await self._plugins.disable(asked.id)
        return Done()

    async def remove(self, asked: DriverNamed) -> Done:
        """Uninstall a driver."""
        await self._plugins.remove(asked.id)
        return Done()

    async def verify(self, asked: DriverNamed) -> Verified:
        """Compare a driver's files with what was installed."""
        found = await self._plugins.verify(asked.id)
        return Verified(faults=[str(fault) for _, faults in found for fault in faults])

    async def repair(self, asked: DriverNamed) -> Installed:
        """Fetch a damaged driver again."""
        await self._expect_here(asked.id)
        made = await self._plugins.repair(asked.id)
        return Installed(id=made.plugin, version=made.version)
