"""The signed metadata of a registry folder: what its timestamp names, and what is made of it next."""

from __future__ import annotations

import hashlib
from copy import deepcopy
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tuf.api.exceptions import RepositoryError
from tuf.api.metadata import Metadata, MetaFile, Root, Snapshot, TargetFile, Targets, Timestamp
from tuf.api.serialization import DeserializationError

from dragoman_api.errors import ConfigurationError, IndexInvalidError, TrustError
from dragoman_registry.files import write

from . import roles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from securesystemslib.signer import CryptoSigner, Key

    from .keys import Keys

DAYS = "x-dragoman-days"
"""Field of the timestamp that says for how long it is renewed each time."""
KNOWN = "root.json"
"""Name of the first root, kept with the keys: whoever changes the folder cannot change it there."""


def exists(folder: Path) -> bool:
    """Tell whether a folder is a signed registry."""
    return (folder / "metadata" / "timestamp.json").is_file()


class Ledger:
    """Reads the metadata of a registry, and writes what follows in an order in which a crash does no harm.

    Whoever makes a registry trusts the root in their own folder of keys; every other role is verified from there.

    Attributes:
        keys: What can sign here.
        targets: Delegations, and the binding of database types.
        days: For how many days the registry's own statements hold.
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
        """Read and verify the state the timestamp names, or begin a new one.

        Args:
            folder: The registry.
            keys: What can sign.
            now: The time of what is signed.
            new_days: Make new keys and a first state, whose statements hold for so many days; `commit` writes it.
            original: The verified root of the registry this is a mirror of: the key of its targets is taken over.

        Raises:
            IndexInvalidError: A file is missing or malformed.
            TrustError: A signature is not in order.
        """
        self.keys, self._folder = keys, folder / "metadata"
        self._now = (now or datetime.now(UTC)).astimezone(UTC)
        self._changed: set[str] = set()
        self._new: set[str] = set()
        self._old_root: Metadata[Root] | None = None
        self._roles: dict[str, Metadata[Targets]] = {}
        self.days = new_days or roles.YEAR
        upstream: Metadata[Root] | None = Metadata.from_bytes(original) if original is not None else None
        if new_days is not None:
            self._begin(upstream.signed if upstream else None)
            return
        self._root = self._walk()
        self._timestamp: Metadata[Timestamp] = self._read("timestamp", None, Timestamp)
        self._snapshot: Metadata[Snapshot] = self._read("snapshot", self._timestamp.signed.snapshot_meta, Snapshot)
        self._roles["targets"] = self._read("targets", self._snapshot.signed.meta["targets.json"], Targets)
        self.days = int(self._timestamp.signed.unrecognized_fields.get(DAYS, roles.YEAR))
        if upstream is not None and upstream.signed.roles["targets"] != self._root.signed.roles["targets"]:
            self._old_root = deepcopy(self._root)
            roles.take_over(self._root.signed, upstream.signed, "targets")

    def _begin(self, upstream: Root | None) -> None:
        own = ("snapshot", "timestamp") if upstream else ("targets", "snapshot", "timestamp")
        made: dict[str, list[Key]] = {}
        made |= {role: [self.keys.new(role).public_key] for role in own}
        made["root"] = [self.keys.new(f"root-{number}").public_key for number in range(1, roles.ROOT_KEYS + 1)]
        self._root = Metadata(roles.new_root(made, self._expiry("root")))
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
        """Give the digest by which people add the registry: that of its newest root."""
        return hashlib.sha256((self._folder / f"{self._root.signed.version}.root.json").read_bytes()).hexdigest()

    @property
    def targets(self) -> Targets:
        """Give delegations and type bindings."""
        return self._roles["targets"].signed

    # reading ----------------------------------------------------------------------------------------------------------

    def role(self, name: str) -> Metadata[Targets]:
        """Give the accepted state of a role; an empty one where nothing was accepted yet. Raises as the constructor."""
        if name not in self._roles:
            meta = self._snapshot.signed.meta.get(f"{name}.json")
            if meta is None:
                self._new.add(name)
                self._roles[name] = Metadata(Targets(expires=self._expiry(name)))
            else:
                self._roles[name] = self._read(name, meta, Targets)
        return self._roles[name]

    def names(self) -> list[str]:
        """Give every role that signs targets."""
        return ["targets", *roles.delegated(self.targets)]

    def everything(self) -> Iterator[tuple[str, Metadata[Any]]]:
        """Give the metadata that the timestamp names, itself included, by role."""
        for name in ("root", *self.names(), "snapshot", "timestamp"):
            if name not in self._new:
                yield name, self._metadata(name)

    def verified(self, name: str, metadata: Metadata[Any]) -> bool:
        """Tell whether metadata is signed with the keys that a role has now."""
        try:
            self._authority(name).verify_delegate(name, metadata.signed_bytes, metadata.signatures)
        except (RepositoryError, ValueError):
            return False
        return True

    def signed(self, role: str, path: str) -> TargetFile | None:
        """Give what a role says of a target."""
        return self.role(role).signed.targets.get(path)

    def pending(self) -> dict[str, Metadata[Targets]]:
        """Give what publishers have signed and nobody accepted yet, by role: the newest of each, not verified."""
        waiting, newest = {}, self._newest()
        for role in roles.publisher_roles(self.targets):
            meta = self._snapshot.signed.meta.get(f"{role.name}.json")
            if newest.get(role.name, 0) > (meta.version if meta else 0):
                path = self._folder / f"{newest[role.name]}.{role.name}.json"
                waiting[role.name] = self._parse(path, Targets)
        return waiting

    def _newest(self) -> dict[str, int]:
        """Give the highest version that lies here of each role, accepted or not."""
        newest: dict[str, int] = {}
        for file in self._folder.iterdir():
            version, _, role = file.stem.partition(".")
            if version.isdecimal():
                newest[role] = max(newest.get(role, 0), int(version))
        return newest

    def problems(self, name: str, metadata: Metadata[Targets]) -> Iterator[tuple[str, str]]:
        """Say what speaks against accepting what a publisher signed, as (code, reason)."""
        role = roles.delegated(self.targets)[name]
        if not self.verified(name, metadata):
            yield "signature", f"It is not signed with a key of {name}."
        if metadata.signed.is_expired(self._now):
            yield "expired", f"It expired on {metadata.signed.expires:%Y-%m-%d}."
        for path in metadata.signed.targets:
            if not role.is_delegated_path(path):
                yield "delegation", f"{path} is not theirs to publish."
        for path, before in self.role(name).signed.targets.items():
            if metadata.signed.targets.get(path) != before:
                yield "immutable", f"{path} is published with other bytes, or taken out; raise the version."

    # changing ---------------------------------------------------------------------------------------------------------

    def can_sign(self, *names: str) -> bool:
        """Tell whether enough keys of every role are here."""
        needed = {name: self._authority(name).get_delegated_role(name).threshold for name in names}
        return all(len(self._signers(name)) >= threshold for name, threshold in needed.items())

    def expect(self, *names: str) -> None:
        """Raise ConfigurationError where the keys of a role are not here."""
        lacking = [name for name in names if not self.can_sign(name)]
        if lacking:
            text = f"the keys of {', '.join(lacking)} are not in {self.keys.folder}"
            raise ConfigurationError(text, hint="name the folder they lie in: --keys DIR", code="key-missing")

    def expect_publisher(self, name: str) -> None:
        """Raise ConfigurationError where a publisher's key is not here."""
        if not self.can_sign(name):
            who = name.removeprefix(roles.PUBLISHER)
            raise ConfigurationError(f"the key of the publisher {who} is needed", hint="--sign KEY", code="key-missing")

    def vouch(self, role: str, path: str, data: bytes) -> str:
        """Let one of the registry's own roles say what a target is; give its digest."""
        target, there = TargetFile.from_data(path, data, ["sha256"]), self.role(role).signed.targets
        if there.get(path) != target:
            there[path] = target
            self._changed.add(role)
        return str(target.hashes["sha256"])

    def submit(self, name: str, files: Mapping[str, bytes]) -> bool:
        """Sign further targets in a publisher's role; they wait there until they are accepted.

        Returns:
            Whether anything waits: False where all of it is signed already.

        Raises:
            ConfigurationError: The publisher's key is not here.
        """
        waiting = self.pending().get(name)
        sound = waiting is not None and not list(self.problems(name, waiting))
        metadata = deepcopy(waiting if sound and waiting else self.role(name))
        made = {path: TargetFile.from_data(path, data, ["sha256"]) for path, data in files.items()}
        if all(metadata.signed.targets.get(path) == target for path, target in made.items()):
            return metadata.signed.targets != self.role(name).signed.targets
        metadata.signed.targets.update(made)
        self.write_publisher(name, metadata)
        return True

    def write_publisher(self, name: str, metadata: Metadata[Targets]) -> None:
        """Sign a publisher's role anew, with the next version number. Raises ConfigurationError without their key."""
        self.expect_publisher(name)
        metadata.signed.version = self._newest().get(name, 0) + 1
        metadata.signed.expires = self._expiry(name)
        self._write(name, metadata)

    def adopt(self, name: str, metadata: Metadata[Targets]) -> None:
        """Accept what a publisher signed, exactly as it lies there."""
        data = (self._folder / f"{metadata.signed.version}.{name}.json").read_bytes()
        self._roles[name] = metadata
        self._note(name, metadata, data)
        self._changed.add("snapshot")

    def copy(self, name: str, data: bytes) -> None:
        """Take over what another registry's role signed, byte for byte."""
        metadata: Metadata[Targets] = Metadata.from_bytes(data)
        meta = _meta(metadata.signed.version, data)
        if self._snapshot.signed.meta.get(f"{name}.json") != meta:
            write(self._folder / f"{meta.version}.{name}.json", data)
            self._snapshot.signed.meta[f"{name}.json"] = meta
            self._changed.add("snapshot")
        self._roles[name] = metadata

    def delegate(self, name: str, key: Key, paths: list[str]) -> None:
        """Let a key sign paths in a role of its own, in place of the keys it had."""
        roles.delegate(self.targets, name, key, paths)
        self._changed.add("targets")
        if name in roles.DELEGATED:
            self.role(name)
            self._changed.add(name)

    def extend(self, name: str, paths: list[str]) -> None:
        """Let a role of the registry's owner sign further paths; it is made, with a key, when it is not there."""
        known = roles.delegated(self.targets).get(name)
        key = self.targets.get_key(known.keyids[0]) if known else self.keys.new(name).public_key
        self.delegate(name, key, [*(known.paths or [] if known else []), *paths])

    def resign(self, name: str) -> None:
        """Sign what was accepted of a publisher anew. Raises as `submit`."""
        self.write_publisher(name, deepcopy(self.role(name)))

    def rotate(self, name: str) -> None:
        """Replace the keys of a role by new ones; the old ones stay in the folder and open nothing any more."""
        if name in roles.DELEGATED:
            self.delegate(name, self.keys.new(name).public_key, list(roles.DELEGATED[name]))
            return
        if name not in self._root.signed.roles:
            hint = "one of: root, targets, index, advisories, snapshot, timestamp"
            raise ConfigurationError(f"{name!r} is no role whose key is the registry's", hint=hint)
        self._old_root = self._old_root or deepcopy(self._root)
        root, count = self._root.signed, roles.ROOT_KEYS if name == "root" else 1
        for keyid in list(root.roles[name].keyids):
            root.revoke_key(keyid, name)
        for number in range(1, count + 1):
            root.add_key(self.keys.new(f"{name}-{number}" if count > 1 else name).public_key, name)
        self._changed |= {name, "snapshot"} if name != "root" else set()

    def renew(self, *, days: int | None = None) -> list[str]:
        """Let what the keys here can sign hold anew, if less than half of its time is left; give the roles' names.

        The root needs its keys out of their drawer: it is renewed where enough of them are here.
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
        """Write what changed: roles, snapshot, and the timestamp last, which makes all of it count at once.

        A new root follows even later: what the timestamp names is signed with the old keys too where they are here.

        Raises:
            ConfigurationError: Keys are missing; nothing was written.
        """
        if not self._changed and self._old_root is None:
            return False
        self.expect(*(self._changed - {"root"} | {"snapshot", "timestamp"}))
        if "root" in self._new:
            write(self.keys.folder / KNOWN, self._write("root", self._root))
        for name in sorted(self._changed & set(self.names())):
            self._advance(name, self.role(name))
            self._note(name, self.role(name), self._write(name, self.role(name)))
        self._advance("snapshot", self._snapshot)
        data = self._write("snapshot", self._snapshot)
        self._timestamp.signed.snapshot_meta = _meta(self._snapshot.signed.version, data)
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
        # With its digest here, a role's owner cannot put other bytes in the place of what was accepted.
        self._snapshot.signed.meta[f"{name}.json"] = _meta(metadata.signed.version, data)

    def _authority(self, name: str) -> Root | Targets:
        return self._root.signed if name in self._root.signed.roles else self.targets

    def _signers(self, name: str) -> list[CryptoSigner]:
        keyids = self._authority(name).get_delegated_role(name).keyids
        return [signer for keyid, signer in self.keys.signers().items() if keyid in keyids]

    def _write(self, name: str, metadata: Metadata[Any]) -> bytes:
        signers = self._signers(name)
        if self._old_root is not None and name in self._old_root.signed.roles:
            before = self._old_root.signed.roles[name].keyids
            signers += [s for k, s in self.keys.signers().items() if k in before and s not in signers]
        metadata.signatures.clear()
        for signer in signers:
            metadata.sign(signer, append=True)
        if name == "root":
            (self._old_root or metadata).signed.verify_delegate("root", metadata.signed_bytes, metadata.signatures)
        data = metadata.to_bytes()
        prefix = "" if name == "timestamp" else f"{metadata.signed.version}."
        write(self._folder / f"{prefix}{name}.json", data)
        return data

    def _read(self, name: str, meta: MetaFile | None, kind: type[Any]) -> Metadata[Any]:
        path = self._folder / (f"{meta.version}.{name}.json" if meta else f"{name}.json")
        metadata = self._parse(path, kind)
        if name.startswith(roles.PUBLISHER) and meta and _meta(meta.version, path.read_bytes()) == meta:
            return metadata  # signed when it was accepted; the key may have been replaced since
        if not self.verified(name, metadata):
            hint = "restore it from a copy, or have it signed by the holder of its key"
            raise TrustError(f"{path} is not signed with the keys of {name}", hint=hint)
        return metadata

    def _parse(self, path: Path, kind: type[Any]) -> Metadata[Any]:
        try:
            metadata: Metadata[Any] = Metadata.from_bytes(path.read_bytes())
        except FileNotFoundError as error:
            raise IndexInvalidError(f"{path} is missing from the registry", details={"path": str(path)}) from error
        except DeserializationError as error:
            raise IndexInvalidError(f"{path} is not valid: {error}", details={"path": str(path)}) from error
        if not isinstance(metadata.signed, kind):
            raise IndexInvalidError(f"{path} is no {kind.__name__.lower()}", details={"path": str(path)})
        return metadata

    def _walk(self) -> Metadata[Root]:
        """Follow the roots from the first, or from the one that lies with the keys, each signed by the one before."""
        path = self._folder / "1.root.json"
        root = self._parse(path, Root)
        known = self.keys.folder / KNOWN
        if known.is_file() and known.read_bytes() != path.read_bytes():
            text = f"{path} is not the root that was made with the keys in {self.keys.folder}"
            raise TrustError(text, hint="somebody changed the folder; restore it from a copy", code="root-mismatch")
        while (path := self._folder / f"{root.signed.version + 1}.root.json").is_file():
            following = self._parse(path, Root)
            for authority in (root, following):
                try:
                    authority.signed.verify_delegate("root", following.signed_bytes, following.signatures)
                except (RepositoryError, ValueError) as error:
                    raise TrustError(f"{path} is not signed with the keys of the root before it") from error
            root = following
        return root


def _meta(version: int, data: bytes) -> MetaFile:
    return MetaFile(version, len(data), {"sha256": hashlib.sha256(data).hexdigest()})
