"""Trust by signed metadata: The Update Framework's client over our own sources."""

from __future__ import annotations

import hashlib
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from tuf.api.exceptions import (
    BadVersionNumberError,
    DownloadError,
    DownloadHTTPError,
    ExpiredMetadataError,
    RepositoryError,
    UnsignedMetadataError,
)
from tuf.api.metadata import Metadata, Snapshot, Targets
from tuf.ngclient import FetcherInterface, Updater, UpdaterConfig

from dragoman_api.errors import IndexInvalidError, RegistryError, TrustError
from dragoman_registry.files import locked, remedy, write
from dragoman_registry.sources import is_missing, iter_chunks, read

from .roles import PUBLISHER, delegated, projects_of, publisher_roles, served_name
from .trust import UNSIGNED, Publisher, SignedFile, agreed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from dragoman_registry.sources import Source

MAX_ROOT = 512_000
"""Maximum size of a root in bytes."""
MAX_ROTATIONS = 256
"""Maximum number of root versions to look at."""
LIMITS = UpdaterConfig(
    root_max_length=MAX_ROOT, max_root_rotations=MAX_ROTATIONS, snapshot_max_length=8 << 20, targets_max_length=32 << 20
)

T = TypeVar("T")


class TufTrust:
    """Accepts the files that the holders of a registry's keys signed, starting from one root."""

    def __init__(
        self,
        source: Source,
        *,
        where: str,
        cache: Path,
        root: str = "",
        first_use: bool = False,
        allow_stale: bool = False,
        on_stale: Callable[[str], None] | None = None,
    ) -> None:
        """Set the starting point; the constructor reads no file.

        Args:
            source: The registry's files.
            where: Its location, for messages.
            cache: A dedicated folder for verified metadata; safe for several processes.
            root: SHA-256 of the root metadata to start from; empty for the cached one.
            first_use: Trust and cache the registry's root if none is given or cached.
            allow_stale: Accept expired metadata; its signatures and versions are still checked.
            on_stale: Called when expired metadata was accepted.
        """
        self._source, self._where, self._cache = source, where, cache
        self._root, self._first_use = root, first_use
        self._allow_stale, self._on_stale = allow_stale, on_stale
        self._updater: Updater | None = None

    def admit(self, file: SignedFile) -> SignedFile:
        """Return a file with the size and digest that its publisher or the registry signed.

        Raises:
            TrustError: The file is unsigned, or the metadata is invalid (code ``registry-stale`` if it expired).
            RegistryError: The registry cannot be reached, or the cache cannot be written.
        """
        info = self._ask(lambda updater: updater.get_targetinfo(file.path))
        if info is None or "sha256" not in info.hashes:
            text = f"{file.path} of {self._where} is not signed by its publisher"
            raise TrustError(text, hint="tell its operator: dragoman registry verify FOLDER", code=UNSIGNED)
        digest = info.hashes["sha256"]
        vouched = SignedFile(path=served_name(file.path, digest), size=info.length, sha256=digest)
        return agreed(file, vouched, self._where)

    def publishers(self) -> Mapping[str, Publisher]:
        """Map each project to its publisher. Raises as `admit`."""
        targets = self._ask(lambda _: Metadata[Targets].from_file(str(self._cache / "targets.json"))).signed
        return {
            project: Publisher(name=role.name.removeprefix(PUBLISHER), keys=tuple(role.keyids))
            for role in publisher_roles(targets)
            for project in projects_of(role)
        }

    def verified(self) -> Mapping[str, bytes]:
        """Return the verified metadata of every role that signs targets, by name, and the root. Raises as `admit`."""

        def question(updater: Updater) -> dict[str, bytes]:
            targets = Metadata[Targets].from_file(str(self._cache / "targets.json")).signed
            snapshot = Metadata[Snapshot].from_file(str(self._cache / "snapshot.json")).signed
            role_names = ["root", "targets"]
            for name, role in delegated(targets).items():
                if f"{name}.json" in snapshot.meta and role.paths:
                    updater.get_targetinfo(role.paths[0].replace("*", "-"))  # this verifies the role, found or not
                    role_names.append(name)
            return {name: (self._cache / f"{name}.json").read_bytes() for name in role_names}

        return self._ask(question)

    def pin(self) -> str:
        """Read and verify the metadata now, and return the digest of the starting root. Raises as `admit`."""
        self._ask(lambda _: None)
        return self._root

    def _ask(self, question: Callable[[Updater], T]) -> T:
        # The framework's cache is not safe for several processes, nor one updater for several threads.
        with self._explained(), locked(self._cache / ".lock"):
            try:
                self._updater = self._updater or self._refreshed(ever=False)
                return question(self._updater)
            except ExpiredMetadataError as error:
                if not self._allow_stale:
                    raise
                if self._on_stale is not None:
                    self._on_stale(str(error))
                self._updater = self._refreshed(ever=True)
                return question(self._updater)

    def _refreshed(self, *, ever: bool) -> Updater:
        fetcher = _Fetcher(self._source)
        updater = Updater(str(self._cache), "metadata", fetcher=fetcher, config=LIMITS, bootstrap=self._bootstrap())
        if ever:
            # The framework has no public way to set the time; everything except the date is verified as usual.
            updater._trusted_set.reference_time = datetime.min.replace(tzinfo=UTC)  # noqa: SLF001
        updater.refresh()
        return updater

    def _bootstrap(self) -> bytes:
        """Find the starting root: in the cache, or in the registry under any version number."""
        pinned_file = self._cache / "pinned.root.json"
        if pinned_file.is_file():
            data = pinned_file.read_bytes()
            if not self._root or hashlib.sha256(data).hexdigest() == self._root:
                self._root = hashlib.sha256(data).hexdigest()
                return data
        if not self._root and not self._first_use:
            hint = "dragoman registry add LOCATION --root SHA256; ask its operator for the digest"
            raise TrustError(f"no root is known for {self._where}", hint=hint, code="root-unknown")
        digests = []
        for version in range(1, MAX_ROTATIONS):
            try:
                data = read(self._source, f"metadata/{version}.root.json", limit=MAX_ROOT)
            except RegistryError as error:
                if not is_missing(error) or (version == 1 and not isinstance(error, IndexInvalidError)):
                    raise
                if version == 1:
                    hint = "make a signed one: dragoman registry build WHEELS --to FOLDER"
                    text = f"{self._where} is not signed, and unsigned drivers are not installed: {error.message}"
                    raise TrustError(text, hint=hint, code=UNSIGNED) from error
                break
            digest = hashlib.sha256(data).hexdigest()
            digests.append(digest)
            if digest == (self._root or digest):
                self._root = digest
                write(pinned_file, data)
                return data
        hint = "ask its operator for the root's digest; another registry may have taken its place"
        others = list(dict.fromkeys(digests))
        suffix = f" and {len(others) - 1} later ones" if len(others) > 1 else ""
        text = f"{self._where} does not begin with the root {self._root}; it has {others[0]}{suffix}"
        raise TrustError(text, hint=hint, code="root-mismatch", details={"expected": self._root, "actual": digests[0]})

    @contextmanager
    def _explained(self) -> Iterator[None]:
        where = self._where
        try:
            yield
        except ExpiredMetadataError as error:
            now = datetime.now(UTC)
            text = f"the signatures of {where} have expired, and this machine's clock says {now:%Y-%m-%d %H:%M} UTC"
            hint = "ask its operator to renew them: dragoman registry sign FOLDER; installed drivers go on working"
            details = {"location": where}
            raise TrustError(f"{text}: {error}", hint=hint, code="registry-stale", details=details) from error
        except BadVersionNumberError as error:
            hint = "it may be an old copy; compare it with the operator's own"
            text = f"{where} is older than it was before: {error}"
            raise TrustError(text, hint=hint, code="rollback") from error
        except UnsignedMetadataError as error:
            hint = "tell its operator; nothing was installed"
            raise TrustError(f"a signature of {where} is not valid: {error}", hint=hint) from error
        except (DownloadError, RepositoryError, ValueError) as error:
            if isinstance(error.__cause__, RegistryError) and not isinstance(error.__cause__, IndexInvalidError):
                raise error.__cause__ from error  # a file without which nothing can be judged
            hint = "tell its operator; nothing was installed"
            raise TrustError(f"the signed metadata of {where} is not valid: {error}", hint=hint) from error
        except OSError as error:
            hint = remedy(error, self._cache)
            text = f"the verified metadata of {where} cannot be stored: {error.strerror or error}"
            raise RegistryError(text, hint=hint, code="trust-cache") from error


class _Fetcher(FetcherInterface):
    """Passes a source's metadata to the framework, which enforces the size limits itself."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def _fetch(self, url: str) -> Iterator[bytes]:
        with closing(iter_chunks(self._source, url)) as chunks:
            try:
                yield from chunks
            except RegistryError as error:
                if not is_missing(error):
                    raise
                raise DownloadHTTPError(error.message, 404) from error
