"""The registries' offers combined with installed drivers: search, and details of one driver. Blocks."""

from __future__ import annotations

from functools import cache, partial
from operator import itemgetter
from typing import TYPE_CHECKING

from dragoman_api.errors import RegistryError
from dragoman_api.events import RegistryRecordHidden
from dragoman_registry.index import search_summaries
from dragoman_registry.index.release_documents import read_documents
from dragoman_registry.validation import Unreadable
from dragoman_registry.wheels.manifest import describe_reach, plain_permissions

from .combined_catalog import find_offer
from .driver_views import DriverDetails, DriverListing, DriverVersion, listing_of, versions_of
from .registries import BUNDLED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dragoman_registry.client.generation import Generation
    from dragoman_registry.client.installed_drivers import Store
    from dragoman_registry.client.resolver import Resolution
    from dragoman_registry.index.registry_reader import Registry
    from dragoman_registry.index.search_summaries import Candidate, Summary

    from .combined_catalog import Offer

    Pick = Callable[[tuple[Candidate, ...]], Candidate | None]

_reach = cache(describe_reach)


def search(
    store: Store,
    registries: Sequence[Registry],
    words: str = "",
    *,
    type: str | None = None,  # noqa: A002 - the field's word
    capability: str | None = None,
    compatible: bool = False,
    on_hidden: Callable[[RegistryRecordHidden], None] = lambda _: None,
) -> tuple[list[DriverListing], dict[str, RegistryError]]:
    """Find offered or installed drivers, the best match first, equal matches by id.

    An unreadable record does not hide others: `on_hidden` receives it, and an unfiltered list ends with it.

    Returns:
        Listings, and the failures by name of registry: one that cannot be read does not hide the others.

    Raises:
        RegistryError: None could be read; the error is that of the first.
    """
    installed = {generation.plugin: generation for generation in store.installed()}
    terms, pick, matches = words.lower().split(), _picker(), list[tuple[int, str, DriverListing]]()

    def keep(rank: int, listing: DriverListing) -> None:
        if capability in (None, *listing.capabilities) and not (compatible and listing.state == "incompatible"):
            matches.append((-rank, listing.id, listing))

    def hide(registry: str, name: str, reason: str) -> None:
        on_hidden(RegistryRecordHidden(registry=registry, record=name, reason=reason))
        if type is None and capability is None and not compatible and all(word in name for word in terms):
            matches.append((0, name, _unreadable(registry, name, reason)))

    seen, failures = set[str](), dict[str, RegistryError]()
    for registry in registries:
        try:
            rows = search_summaries.read(registry, on_fault=partial(hide, registry.name))
        except RegistryError as error:
            failures[registry.name] = error
            continue
        for driver in rows:
            # The first registry that has a driver is the one it comes from, whether it matches or not.
            if (type is None or type in driver.types) and driver.plugin not in seen and (rank := _rank(terms, driver)):
                try:
                    keep(rank, _listing(registry.name, driver, installed.get(driver.plugin), pick))
                except Unreadable as error:
                    hide(registry.name, driver.plugin, str(error))
        seen.update(driver.plugin for driver in rows)
    if failures and len(failures) == len(registries):
        raise next(iter(failures.values()))
    for plugin in installed.keys() - seen:
        listing = listing_of(installed[plugin])
        if (type is None or type in listing.types) and (rank := _rank(terms, listing)):
            keep(rank, listing)
    return [listing for *_, listing in sorted(matches, key=itemgetter(0, 1))], failures


def _picker() -> Pick:
    from dragoman_registry.wheels.host_environment import Host

    return search_summaries.fitting(Host.here())


def _rank(words: Sequence[str], driver: Summary | DriverListing) -> int:
    """Return a score for how well words match, 0 if a word is missing: id, its beginning, a name, then the summary."""
    if not words:
        return 1
    names = f"{driver.plugin}\n{driver.label}\n{' '.join(driver.types)}".lower()
    text = f"{names}\n{driver.summary.lower()}"
    if not all(word in text for word in words):
        return 0
    plugin = driver.plugin
    return sum(8 if plugin == word else 4 if plugin.startswith(word) else 2 if word in names else 1 for word in words)


def _listing(registry: str, driver: Summary, generation: Generation | None, pick: Pick) -> DriverListing:
    compatible = pick(driver.candidates)
    candidate = compatible or (driver.candidates[0] if driver.candidates else None)
    state, version = "available" if compatible else "incompatible", candidate.version if candidate else driver.newest
    if generation is not None:
        newer = compatible is not None and compatible.version != generation.version and generation.pin is None
        state = "update" if newer and generation.state == "installed" else generation.state
        version = version if state == "update" else generation.version
    return DriverListing(
        id=driver.plugin,
        label=driver.label,
        types=driver.types,
        version=version,
        state=state,
        reaches=_reach(candidate.permissions if candidate else ()),
        summary=driver.summary,
        registry=registry,
        size=candidate.size if candidate else 0,
        capabilities=driver.capabilities,
        excluded_surfaces=driver.excluded_surfaces,
    )


def _unreadable(registry: str, name: str, reason: str) -> DriverListing:
    return DriverListing(
        id=name, label="", types=(), version="", state="unreadable", reaches="", summary=reason, registry=registry
    )


def describe(
    store: Store, registries: Sequence[Registry], plugin: str, resolve: Callable[[Offer], Resolution]
) -> DriverDetails:
    """Return everything known about a driver; for one that is only installed, the locally known details.

    Raises:
        PluginNotFoundError: No registry has it and it is not installed.
    """
    generation = store.active(plugin)
    try:
        offer = find_offer(registries, plugin)
    except RegistryError:
        if generation is None:
            raise
        return _describe_installed(store, generation)
    choice, project = resolve(offer), offer.project
    release = choice.release or project.releases[0]
    manifest = offer.registry.manifest(release)
    documents = read_documents(release, offer.registry.document)
    return DriverDetails(
        listing=_listing(offer.registry.name, search_summaries.summarise(project), generation, _picker()),
        versions=versions_of(project.releases, installed=generation.version if generation else None),
        permissions=plain_permissions(manifest.permissions),
        manifest=manifest,
        publisher=_publisher(offer),
        readme=documents.readme,
        changelog=documents.changelog,
        report=documents.report,
        skipped=tuple(f"{entry.version} skipped: {entry.reason}" for entry in choice.skipped),
    )


def _describe_installed(store: Store, generation: Generation) -> DriverDetails:
    versions = dict.fromkeys(entry.version for entry in store.generations(generation.plugin))
    vouched = "no one: it runs from its author's working tree" if generation.linked else "checked when it was installed"
    return DriverDetails(
        listing=listing_of(generation),
        versions=tuple(DriverVersion(version=version, installed=version == generation.version) for version in versions),
        permissions=plain_permissions(generation.manifest.permissions),
        manifest=generation.manifest,
        publisher=vouched,
    )


def _publisher(offer: Offer) -> str:
    """Return the party that vouches for a driver's bytes."""
    if offer.registry.name == BUNDLED:
        return "came with dragoman, which holds each of its files to a digest"
    publisher = offer.registry.publisher(offer.project.project)
    if publisher is None:
        return "no one: the registry names no publisher, so it cannot be installed"
    return f"{publisher.name}, by the key {' or '.join(key[:16] for key in publisher.keys)}"
