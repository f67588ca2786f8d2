"""The signed metadata of a registry folder: reads the state its timestamp names, and writes the next one."""

from __future__ import annotations

import hashlib
import re
from copy import deepcopy
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tuf.api.exceptions import RepositoryError, UnsignedMetadataError
from tuf.api.metadata import Metadata, MetaFile, Root, Snapshot, TargetFile, Targets, Timestamp
from tuf.api.serialization import DeserializationError

from dragoman_api.errors import ConfigurationError, IndexInvalidError, TrustError
from dragoman_registry.files import read_plain, write, write_below
from dragoman_registry.names import TARGET

from . import roles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from securesystemslib.signer import Key

    from .keys import Keys
    from .signers import KeyFile

DAYS = "x-dragoman-days"
"""Field of the timestamp with the lifetime in days for each renewal."""
KNOWN = "root.json"
"""Name of the copy of the first root beside the keys, which an attacker who can write to the registry cannot change."""
_FILE = re.compile(r"([1-9][0-9]{0,8})\.([\w-]+)\.json", re.ASCII)
MAX_ROLE = 32 << 20
"""Maximum size of a role's file in bytes; clients have the same limit."""


def exists(folder: Path) -> bool:
    """Check whether a folder is a signed registry."""
    return (folder / "metadata" / "timestamp.json").is_file()


class Repository:
    """Reads the metadata of a registry, and writes new metadata in an order that survives a crash.

    The operator trusts the root in their own folder of keys; every other role is verified from that root.

    Attributes:
        targets: Delegations, and the binding of database types.
        days: Lifetime in days of the registry's own metadata.
    """

    def __init__(
        self,
        folder: Path,
        keys: Keys,
        *,
        now: datetime | None = None,
        new_days: int | None = None,
        original: bytes | None = None,
    ) -> None:
        """Read and verify the state that the timestamp names, or start a new one.

        Args:
            folder: The registry.
            keys: The available keys.
            now: The time of signing.
            new_days: Make new keys and a first state with this lifetime in days; `commit` writes it.
            original: For a mirror, the verified root of the original, whose targets key the mirror takes over.

        Raises:
            IndexInvalidError: A file is missing or malformed.
            TrustError: A signature is invalid.
        """
        self.keys, self._folder = keys, folder / "metadata"
        self._now = (now or datetime.now(UTC)).astimezone(UTC)
        self._changed: set[str] = set()
        self._new: set[str] = set()
        self._lies: dict[str, int] = {}
        self._old_root: Metadata[Root] | None = None
        self._roles, self.days = dict[str, Metadata[Targets]](), new_days or roles.YEAR
        upstream: Metadata[Root] | None = Metadata.from_bytes(original) if original is not None else None
        if new_days is not None:
            self._begin(upstream.signed if upstream else None)
            return
        self._root = read_roots(self._folder, self.keys.folder / KNOWN)
        self._timestamp: Metadata[Timestamp] = self._read("timestamp", None, Timestamp)
        self._snapshot: Metadata[Snapshot] = self._read("snapshot", self._timestamp.signed.snapshot_meta, Snapshot)
        self._roles["targets"] = self._read("targets", self._snapshot.signed.meta["targets.json"], Targets)
        self.days = int(self._timestamp.signed.unrecognized_fields.get(DAYS, roles.YEAR))
        if upstream is not None and upstream.signed.roles["targets"] != self._root.signed.roles["targets"]:
            self._old_root = deepcopy(self._root)
            roles.take_over(self._root.signed, upstream.signed, "targets")

    def _begin(self, upstream: Root | None) -> None:
        own = ("snapshot", "timestamp") if upstream else ("targets", "snapshot", "timestamp")
        keys_by_role: dict[str, list[Key]] = {}
        keys_by_role |= {role: [self.keys.new(role).public_key] for role in own}
        keys_by_role["root"] = [self.keys.new(f"root-{number}").public_key for number in range(1, roles.ROOT_KEYS + 1)]
        self._root = Metadata(roles.new_root(keys_by_role, self._expiry("root")))
        self._timestamp = Metadata(Timestamp(expires=self._expiry("timestamp")))
        self._snapshot = Metadata(Snapshot(expires=self._expiry("snapshot")))
        self._new = {"root", "targets", "snapshot", "timestamp"}
        if upstream is not None:
            roles.take_over(self._root.signed, upstream, "targets")
            return
        targets = Targets(expires=self._expiry("targets"))
        for role, paths in roles.DELEGATED.items():
            roles.delegate(targets, role, self.keys.new(role).public_key, list(paths))
        self._roles["targets"] = Metadata(targets)
        self._changed = {"targets"}

    @property
    def root_digest(self) -> str:
        """The digest of the newest root, by which users add the registry."""
        path = self._folder / f"{self._root.signed.version}.root.json"
        return hashlib.sha256(read_plain(path, limit=MAX_ROLE)).hexdigest()

    @property
    def targets(self) -> Targets:
        """The delegations and type bindings."""
        return self._roles["targets"].signed

    # reading ----------------------------------------------------------------------------------------------------------

    def role(self, name: str) -> Metadata[Targets]:
        """Return the accepted state of a role, or an empty one if there is none yet. Raises as the constructor."""
        if name not in self._roles:
            meta = self._snapshot.signed.meta.get(f"{name}.json")
            if meta is None:
                self._new.add(name)
                self._roles[name] = Metadata(Targets(expires=self._expiry(name)))
            else:
                self._roles[name] = self._read(name, meta, Targets)
        return self._roles[name]

    def names(self) -> list[str]:
        """List every role that signs targets."""
        return ["targets", *roles.delegated(self.targets)]

    def everything(self) -> Iterator[tuple[str, Metadata[Any]]]:
        """Return the metadata that the timestamp names, and the timestamp itself, by role."""
        for name in ("root", *self.names(), "snapshot", "timestamp"):
            metadata = self._metadata(name)
            if name not in self._new:  # a new role has no metadata on disk yet
                yield name, metadata

    def verified(self, name: str, metadata: Metadata[Any]) -> bool:
        """Check whether metadata is signed with a role's current keys."""
        try:
            self._authority(name).verify_delegate(name, metadata.signed_bytes, metadata.signatures)
        except (RepositoryError, ValueError):
            return False
        return True

    def signed(self, role: str, path: str) -> TargetFile | None:
        """Return a role's entry for a target, or None."""
        return self.role(role).signed.targets.get(path)

    def pending(self) -> dict[str, Metadata[Targets]]:
        """Return the newest readable submission of each publisher's role that awaits acceptance, not verified."""
        return {name: sound for name, sound, _ in self._submissions() if sound is not None}

    def unreadable(self) -> dict[str, str]:
        """Map each submitted metadata file that cannot be read to the reason."""
        return {path: reason for *_, faults in self._submissions() for path, reason in faults.items()}

    def _submissions(self) -> Iterator[tuple[str, Metadata[Targets] | None, dict[str, str]]]:
        """Find each publisher's submissions since the last acceptance: the newest readable one, and faulty files."""
        versions = versions_in(self._folder)
        for role in roles.publisher_roles(self.targets):
            meta, faults = self._snapshot.signed.meta.get(f"{role.name}.json"), dict[str, str]()
            sound: Metadata[Targets] | None = None
            for version in sorted(versions.get(role.name, ()), reverse=True):
                if sound is not None or version <= (meta.version if meta else 0):
                    break
                path = self._folder / f"{version}.{role.name}.json"
                try:
                    sound, self._lies[role.name] = parse_metadata(path, Targets), version
                except IndexInvalidError as error:
                    faults[f"metadata/{path.name}"] = error.message
            yield role.name, sound, faults

    def problems(self, name: str, metadata: Metadata[Targets]) -> Iterator[tuple[str, str]]:
        """List the reasons not to accept a publisher's submission, as (code, reason)."""
        role = roles.delegated(self.targets)[name]
        if not self.verified(name, metadata):
            yield "signature", f"It is not signed with a key of {name}."
        if metadata.signed.version != (lies := self._lies.get(name, metadata.signed.version)):
            yield "version", f"Its file name says version {lies}, but its content says {metadata.signed.version}."
        if metadata.signed.is_expired(self._now):
            yield "expired", f"It expired on {metadata.signed.expires:%Y-%m-%d}."
        for path in metadata.signed.targets:
            if not role.is_delegated_path(path):
                yield "delegation", f"{path} belongs to another publisher."
            elif not TARGET.fits(path):
                yield "name", f"{TARGET.reason(path)}."
        for path, before in self.role(name).signed.targets.items():
            if metadata.signed.targets.get(path) != before:
                yield "immutable", f"{path} is published, and this changes or removes it; raise the version."

    # changing ---------------------------------------------------------------------------------------------------------

    def can_sign(self, *names: str) -> bool:
        """Check whether enough keys of every role are available."""
        needed = {name: self._authority(name).get_delegated_role(name).threshold for name in names}
        return all(len(self._signers(name)) >= threshold for name, threshold in needed.items())

    def expect(self, *names: str) -> None:
        """Raise ConfigurationError if the keys of a role are not available, or do not open."""
        lacking = [name for name in names if not self.can_sign(name)]
        if lacking:
            text = f"the keys of {', '.join(lacking)} are not in {self.keys.folder}"
            raise ConfigurationError(text, hint="name their folder: --keys DIR", code="key-missing")
        for signer in [signer for name in names for signer in self._signers(name)]:
            signer.unlock()  # before anything is written

    def _expect_root(self) -> None:
        """Raise ConfigurationError unless enough keys of the root that hosts have are available, and open."""
        signers, role = self._signers_of_both_roots("root"), (self._old_root or self._root).signed.roles["root"]
        if len([signer for signer in signers if signer.public_key.keyid in role.keyids]) < role.threshold:
            text = f"the keys of root are not in {self.keys.folder}: {role.threshold} must sign"
            raise ConfigurationError(text, hint="bring them there for this command", code="key-missing")
        for signer in signers:
            signer.unlock()

    def check_publisher(self, name: str) -> None:
        """Raise ConfigurationError if a publisher's key is not available, or does not open."""
        if not self.can_sign(name):
            who = name.removeprefix(roles.PUBLISHER)
            raise ConfigurationError(f"the key of the publisher {who} is needed", hint="--sign KEY", code="key-missing")
        self.expect(name)

    def vouch(self, role: str, path: str, data: bytes) -> str:
        """Record a target's size and digest in one of the registry's own roles, and return the digest."""
        target, targets = TargetFile.from_data(path, data, ["sha256"]), self.role(role).signed.targets
        if targets.get(path) != target:
            targets[path] = target
            self._changed.add(role)
        return str(target.hashes["sha256"])

    def submit(self, name: str, files: Mapping[str, bytes]) -> bool:
        """Sign further targets in a publisher's role; they wait there until accepted.

        Returns:
            Whether a submission waits: False if all the targets are accepted already.

        Raises:
            ConfigurationError: The publisher's key is not available.
        """
        waiting = self.pending().get(name)
        sound = waiting is not None and not list(self.problems(name, waiting))
        metadata = deepcopy(waiting if sound and waiting else self.role(name))
        targets = {path: TargetFile.from_data(path, data, ["sha256"]) for path, data in files.items()}
        if all(metadata.signed.targets.get(path) == target for path, target in targets.items()):
            return metadata.signed.targets != self.role(name).signed.targets
        metadata.signed.targets.update(targets)
        self.write_publisher(name, metadata)
        return True

    def write_publisher(self, name: str, metadata: Metadata[Targets]) -> None:
        """Sign a publisher's role with the next version number. Raises ConfigurationError without the key."""
        self.check_publisher(name)
        metadata.signed.version = self.next_version(name)
        metadata.signed.expires = self._expiry(name)
        self._write(name, metadata)

    def next_version(self, name: str) -> int:
        """Return the version number of a publisher's next submission."""
        return max(versions_in(self._folder).get(name, {0})) + 1

    def adopt(self, name: str, metadata: Metadata[Targets]) -> None:
        """Accept a publisher's submission, byte for byte."""
        data = read_plain(self._folder / f"{metadata.signed.version}.{name}.json", limit=MAX_ROLE)
        self._roles[name] = metadata
        self._note(name, metadata, data)
        self._changed.add("snapshot")

    def copy(self, name: str, data: bytes) -> None:
        """Copy the metadata of another registry's role, byte for byte."""
        metadata: Metadata[Targets] = Metadata.from_bytes(data)
        meta = roles.describe_file(metadata.signed.version, data)
        if self._snapshot.signed.meta.get(f"{name}.json") != meta:
            write_below(self._folder, f"{meta.version}.{name}.json", data)
            self._snapshot.signed.meta[f"{name}.json"] = meta
            self._changed.add("snapshot")
        self._roles[name] = metadata

    def delegate(self, name: str, key: Key, paths: list[str]) -> None:
        """Delegate paths to a role with one key, replacing its earlier keys."""
        roles.delegate(self.targets, name, key, paths)
        self._changed.add("targets")
        if name in roles.DELEGATED:
            self.role(name)
            self._changed.add(name)

    def extend(self, name: str, paths: list[str]) -> None:
        """Let a role of the registry's owner sign further paths; make the role and its key if missing."""
        delegation = roles.delegated(self.targets).get(name)
        key = self.targets.get_key(delegation.keyids[0]) if delegation else self.keys.new(name).public_key
        self.delegate(name, key, [*(delegation.paths or [] if delegation else []), *paths])

    def resign(self, name: str) -> None:
        """Sign a publisher's accepted metadata again. Raises as `submit`."""
        self.write_publisher(name, deepcopy(self.role(name)))

    def rotate(self, name: str, files: Sequence[Path] = ()) -> None:
        """Replace the keys of a role; the old key files stay in the folder but are no longer valid.

        Args:
            name: The role.
            files: The new keys; without any, they are made.

        Raises:
            ConfigurationError: The role is unknown, there are not as many keys as it needs, each its own, or too few
                keys of those who sign for the change are available.
        """
        if name not in {*self._root.signed.roles, *roles.DELEGATED}:
            hint = "one of: root, targets, index, advisories, snapshot, timestamp"
            raise ConfigurationError(f"{name!r} is not one of the registry's own roles", hint=hint)
        if name in roles.DELEGATED:
            self.expect("targets")
        else:
            self._expect_root()
        owners = {
            keyid: role
            for role in (*self._root.signed.roles, *self.names())
            for keyid in self._authority(role).get_delegated_role(role).keyids
        }
        new_keys = self.keys.for_role(name, roles.ROOT_KEYS if name == "root" else 1, files, owners=owners)
        if name in roles.DELEGATED:
            self.delegate(name, new_keys[0], list(roles.DELEGATED[name]))
            return
        self._old_root = self._old_root or deepcopy(self._root)
        roles.replace_keys(self._root.signed, name, new_keys)
        self._changed |= {name, "snapshot"} if name != "root" else set()

    def renew(self, *, days: int | None = None) -> list[str]:
        """Renew roles with less than half their lifetime left, if their keys are available; list their names.

        The root's keys are offline: it is renewed only if enough of them are available.
        """
        changed = days is not None and days != self.days
        self.days = days or self.days
        renewed = []
        for name in ("root", *self.names(), "snapshot", "timestamp"):
            signed = self._metadata(name).signed
            left = signed.expires - self._now
            half = roles.lifetime(name, self.days) / 2
            due = left.total_seconds() < half * 86400 or (changed and name in roles.ONLINE)
            if due and not name.startswith(roles.PUBLISHER) and self.can_sign(name):
                if name == "root":
                    self._old_root = self._old_root or deepcopy(self._root)
                self._changed.add(name)
                renewed.append(name)
        return renewed

    def commit(self) -> bool:
        """Write the changes: roles, then the snapshot, then the timestamp, which puts them all into effect at once.

        A new root is written after the timestamp, so the metadata is also signed with the old keys if available.

        Raises:
            ConfigurationError: Keys are missing, or do not open; no file was written.
        """
        if not self._changed and self._old_root is None:
            return False
        self.expect(*(self._changed - {"root"} | {"snapshot", "timestamp"}))
        if self._old_root is not None or "root" in self._new:
            self._expect_root()
        if "root" in self._new:
            write(self.keys.folder / KNOWN, self._write("root", self._root))
        for name in sorted(self._changed & set(self.names())):
            self._advance(name, self.role(name))
            self._note(name, self.role(name), self._write(name, self.role(name)))
        self._advance("snapshot", self._snapshot)
        data = self._write("snapshot", self._snapshot)
        self._timestamp.signed.snapshot_meta = roles.describe_file(self._snapshot.signed.version, data)
        self._timestamp.signed.unrecognized_fields[DAYS] = self.days
        self._advance("timestamp", self._timestamp)
        self._write("timestamp", self._timestamp)
        if self._old_root is not None:
            self._advance("root", self._root)
            self._write("root", self._root)
        self._changed, self._new, self._old_root = set(), set(), None
        return True

    # inside -----------------------------------------------------------------------------------------------------------

    def _expiry(self, role: str) -> datetime:
        return roles.expiry(self._now, roles.lifetime(role, self.days))

    def _advance(self, name: str, metadata: Metadata[Any]) -> None:
        metadata.signed.version += name not in self._new
        metadata.signed.expires = self._expiry(name)

    def _metadata(self, name: str) -> Metadata[Any]:
        own: dict[str, Metadata[Any]] = {"root": self._root, "snapshot": self._snapshot, "timestamp": self._timestamp}
        return own.get(name) or self.role(name)

    def _note(self, name: str, metadata: Metadata[Targets], data: bytes) -> None:
        # The digest keeps a role's owner from replacing the accepted bytes.
        self._snapshot.signed.meta[f"{name}.json"] = roles.describe_file(metadata.signed.version, data)

    def _authority(self, name: str) -> Root | Targets:
        return self._root.signed if name in self._root.signed.roles else self.targets

    def _signers(self, name: str) -> list[KeyFile]:
        keyids = self._authority(name).get_delegated_role(name).keyids
        return [signer for keyid, signer in self.keys.signers().items() if keyid in keyids]

    def _signers_of_both_roots(self, name: str) -> list[KeyFile]:
        """Return the signers of a role, and those it had before its root changed."""
        signers = self._signers(name)
        if self._old_root is not None and name in self._old_root.signed.roles:
            before = self._old_root.signed.roles[name].keyids
            signers += [s for k, s in self.keys.signers().items() if k in before and s not in signers]
        return signers

    def _write(self, name: str, metadata: Metadata[Any]) -> bytes:
        metadata.signatures.clear()
        for signer in self._signers_of_both_roots(name):
            try:
                metadata.sign(signer, append=True)
            except UnsignedMetadataError as error:
                raise (error.__cause__ if isinstance(error.__cause__, ConfigurationError) else error) from None
        if name == "root":
            (self._old_root or metadata).signed.verify_delegate("root", metadata.signed_bytes, metadata.signatures)
        data = metadata.to_bytes()
        prefix = "" if name == "timestamp" else f"{metadata.signed.version}."
        write_below(self._folder, f"{prefix}{name}.json", data)
        return data

    def _read(self, name: str, meta: MetaFile | None, kind: type[Any]) -> Metadata[Any]:
        path = self._folder / (f"{meta.version}.{name}.json" if meta else f"{name}.json")
        metadata = parse_metadata(path, kind)
        submitted = name.startswith(roles.PUBLISHER)
        if submitted and meta and roles.describe_file(meta.version, read_plain(path, limit=MAX_ROLE)) == meta:
            return metadata  # verified on acceptance; the key may have changed since
        if not self.verified(name, metadata):
            hint = "restore it from a copy, or ask the holder of the key to sign it"
            raise TrustError(f"{path} is not signed with the keys of {name}", hint=hint)
        return metadata


def parse_metadata(path: Path, kind: type[Any]) -> Metadata[Any]:
    """Parse a file of metadata, without verifying its signatures.

    Raises:
        IndexInvalidError: It is missing, unreadable, malformed, or of another kind.
    """
    details = {"path": str(path)}
    try:
        metadata: Metadata[Any] = Metadata.from_bytes(read_plain(path, limit=MAX_ROLE))
    except FileNotFoundError as error:
        raise IndexInvalidError(f"{path} is missing from the registry", details=details) from error
    except OSError as error:
        raise IndexInvalidError(f"{path} cannot be read: {error.strerror or error}", details=details) from error
    except DeserializationError as error:
        raise IndexInvalidError(f"{path} is not valid: {error}", details=details) from error
    if not isinstance(metadata.signed, kind):
        raise IndexInvalidError(f"{path} is not {kind.__name__.lower()} metadata", details=details)
    return metadata


def read_roots(folder: Path, first_root: Path) -> Metadata[Root]:
    """Follow the chain of roots, each signed by the previous one, and return the last.

    Args:
        folder: The folder of metadata.
        first_root: The copy of the first root beside the keys; the first root must match it.

    Raises:
        IndexInvalidError: A root is missing, unreadable, malformed, or of another kind.
        TrustError: The first root is another one, or a later one is not signed by its predecessor.
    """
    path = folder / "1.root.json"
    root = parse_metadata(path, Root)
    if first_root.is_file() and first_root.read_bytes() != read_plain(path, limit=MAX_ROLE):
        text = f"{path} is not the root that was made with the keys in {first_root.parent}"
        raise TrustError(text, hint="the folder was changed; restore it from a copy", code="root-mismatch")
    while (path := folder / f"{root.signed.version + 1}.root.json").is_file():
        following = parse_metadata(path, Root)
        for authority in (root, following):
            try:
                authority.signed.verify_delegate("root", following.signed_bytes, following.signatures)
            except (RepositoryError, ValueError) as error:
                raise TrustError(f"{path} is not signed with the keys of the previous root") from error
        root = following
    return root


def versions_in(folder: Path) -> dict[str, set[int]]:
    """Map each role to the versions of its metadata on disk, accepted or not."""
    versions: dict[str, set[int]] = {}
    for file in folder.iterdir():
        if match := _FILE.fullmatch(file.name):
            versions.setdefault(match[2], set()).add(int(match[1]))
    return versions
