"""What the registries offer beside what is installed: searching it, and everything known of one driver. Blocks."""

from __future__ import annotations

from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING

from dragoman_api.errors import RegistryError
from dragoman_registry import summaries
from dragoman_registry.documents import read_documents

from .listings import Details, Listing, Version, describe_reach, listing_of, plain_permissions, versions_of
from .offers import find_offer
from .registries import BUNDLED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dragoman_registry.choice import Choice
    from dragoman_registry.generation import Generation
    from dragoman_registry.index import Registry
    from dragoman_registry.store import Store
    from dragoman_registry.summaries import Candidate, Summary

    from .offers import Offer

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
) -> tuple[list[Listing], dict[str, RegistryError]]:
    """Find drivers, offered or installed: the best match first, and by id where words do not tell.

    Returns:
        Listings, and the failures by name of registry: one that cannot be read does not hide the others.

    Raises:
        RegistryError: None could be read; the error is that of the first.
    """
    installed = {generation.plugin: generation for generation in store.installed()}
    wanted, pick, found = words.lower().split(), _picker(), list[tuple[int, str, Listing]]()

    def keep(rank: int, listing: Listing) -> None:
        if capability in (None, *listing.capabilities) and not (compatible and listing.state == "incompatible"):
            found.append((-rank, listing.id, listing))

    seen, failures = set[str](), dict[str, RegistryError]()
    for registry in registries:
        try:
            rows = summaries.read(registry)
        except RegistryError as error:
            failures[registry.name] = error
            continue
        for one in rows:
            # The first registry that has a driver is the one it comes from, whether it matches or not.
            if (type is None or type in one.types) and one.plugin not in seen and (rank := _rank(wanted, one)):
                keep(rank, _listing(registry.name, one, installed.get(one.plugin), pick))
        seen.update(one.plugin for one in rows)
    if failures and len(failures) == len(registries):
        raise next(iter(failures.values()))
    for plugin in installed.keys() - seen:
        listing = listing_of(installed[plugin])
        if (type is None or type in listing.types) and (rank := _rank(wanted, listing)):
            keep(rank, listing)
    return [listing for *_, listing in sorted(found, key=itemgetter(0, 1))], failures


def _picker() -> Pick:
    from dragoman_registry.wheels import Host

    return summaries.fitting(Host.here())


def _rank(words: Sequence[str], one: Summary | Listing) -> int:
    """Say how well words match, 0 if one of them is nowhere: the id itself, its beginning, a name, then the summary."""
    if not words:
        return 1
    names = f"{one.plugin}\n{one.label}\n{' '.join(one.types)}".lower()
    text = f"{names}\n{one.summary.lower()}"
    if not all(word in text for word in words):
        return 0
    plugin = one.plugin
    return sum(8 if plugin == word else 4 if plugin.startswith(word) else 2 if word in names else 1 for word in words)


def _listing(registry: str, one: Summary, generation: Generation | None, pick: Pick) -> Listing:
    fit = pick(one.candidates)
    shown = fit or (one.candidates[0] if one.candidates else None)
    state, version = "available" if fit else "incompatible", shown.version if shown else one.newest
    if generation is not None:
        newer = fit is not None and fit.version != generation.version and generation.pin is None
        state = "update" if newer and generation.state == "installed" else generation.state
        version = version if state == "update" else generation.version
    return Listing(
        id=one.plugin,
        label=one.label,
        types=one.types,
        version=version,
        state=state,
        reaches=_reach(shown.permissions if shown else ()),
        summary=one.summary,
        registry=registry,
        size=shown.size if shown else 0,
        capabilities=one.capabilities,
        excluded_surfaces=one.excluded_surfaces,
    )


def describe(store: Store, registries: Sequence[Registry], plugin: str, choose: Callable[[Offer], Choice]) -> Details:
    """Give everything known of a driver; what is only installed is described as far as it is known here.

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
    choice, project = choose(offer), offer.project
    release = choice.release or project.releases[0]
    manifest = offer.registry.manifest(release)
    found = read_documents(release, offer.registry.document)
    return Details(
        listing=_listing(offer.registry.name, summaries.summarise(project), generation, _picker()),
        versions=versions_of(project.releases, installed=generation.version if generation else None),
        permissions=plain_permissions(manifest.permissions),
        manifest=manifest,
        publisher=_publisher(offer),
        readme=found.readme,
        changelog=found.changelog,
        report=found.report,
        skipped=tuple(f"{entry.version} skipped: {entry.reason}" for entry in choice.skipped),
    )


def _describe_installed(store: Store, generation: Generation) -> Details:
    kept = dict.fromkeys(entry.version for entry in store.generations(generation.plugin))
    vouched = "nobody: it runs from its author's working tree" if generation.linked else "checked when it was installed"
    return Details(
        listing=listing_of(generation),
        versions=tuple(Version(version=version, installed=version == generation.version) for version in kept),
        permissions=plain_permissions(generation.manifest.permissions),
        manifest=generation.manifest,
        publisher=vouched,
    )


def _publisher(offer: Offer) -> str:
    """Say who vouches for the bytes of a driver."""
    if offer.registry.name == BUNDLED:
        return "came with dragoman, which holds each of its files to a digest"
    publisher = offer.registry.publisher(offer.project.project)
    if publisher is None:
        return "nobody: the registry names no publisher, so it cannot be installed"
    return f"{publisher.name}, by the key {' or '.join(key[:16] for key in publisher.keys)}"
