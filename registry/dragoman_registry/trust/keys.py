"""The folder of private keys beside a registry, looked up by key identifier, not by file name."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError
from dragoman_registry.files import exclusively, write

from .signers import (
    PRIVATE,
    PUBLIC,
    REFERENCE,
    KeyFile,
    check_cryptography,
    imported,
    public_bytes,
    unlocking,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from securesystemslib.signer import CryptoSigner, SSlibKey


def beside(registry: Path) -> Path:
    """Return the default folder for a registry's keys: beside the registry, never inside it."""
    registry = registry.absolute()
    return registry.with_name(f"{registry.name}.keys")


class Keys:
    """A folder of private keys; a missing folder holds no keys."""

    def __init__(self, folder: Path, *further: Path) -> None:
        """Use the keys in a folder and in `further` files."""
        self.folder, self._further = folder, further
        self._signers: dict[str, KeyFile] | None = None

    def signers(self) -> dict[str, KeyFile]:
        """Return the signers by key identifier. Raises ConfigurationError for a file that is not a key."""
        if self._signers is None:
            paths = [path for end in (PRIVATE, REFERENCE) for path in sorted(self.folder.glob(f"*{end}"))]
            self._signers = {signer.public_key.keyid: signer for signer in map(KeyFile, [*paths, *self._further])}
        return self._signers

    def new(self, name: str) -> KeyFile:
        """Make a key and write it, readable only by its owner."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = new_key()
        signer = _keep(self.folder / f"{name}-{key.public_key.keyid[:8]}{PRIVATE}", key)
        self.signers()[signer.public_key.keyid] = signer
        return signer

    def for_role(self, role: str, count: int, files: Sequence[Path], *, owners: Mapping[str, str]) -> list[SSlibKey]:
        """Return the public keys that a role gets: those of files, or new ones if there are no files.

        Args:
            role: The role.
            count: How many keys it has.
            files: Further files of keys.
            owners: Maps the identifier of each key in use to its role.

        Raises:
            ConfigurationError: There are not as many keys, or one of them belongs to a role already.
        """
        if not files:
            names = [f"{role}-{number}" if count > 1 else role for number in range(1, count + 1)]
            return [self.new(name).public_key for name in names]
        if len(files) != count:
            hint = " ".join([f"--rotate {role}", *["--key FILE"] * count])
            raise ConfigurationError(f"{role} needs new keys: {count}, not {len(files)}", hint=hint)
        signers: dict[str, KeyFile] = {}
        for path in files:
            signer = KeyFile(path)
            keyid = signer.public_key.keyid
            if owner := role if keyid in signers else owners.get(keyid):
                raise ConfigurationError(f"{path} is a key of {owner} already", hint="dragoman driver key ANOTHER-FILE")
            signers[keyid] = signer
        self.signers().update(signers)
        return [signer.public_key for signer in signers.values()]


def own_key(path: Path, *, new: bool = False, hardware: str = "") -> Path:
    """Return the file of a person's own key; make the key if the file is missing.

    Args:
        path: The file.
        new: The file must not exist.
        hardware: The URI of a key in hardware, to which the file will refer.

    Raises:
        ConfigurationError: It has the suffix of public keys, or another one than a reference needs; `new` is set, and
            the file exists; or the hardware is out of reach.
    """
    public, suffix = path.with_suffix(PUBLIC), REFERENCE if hardware else PRIVATE
    if path == public or (path.suffix == REFERENCE) != bool(hardware):
        name = quote(str(path.with_suffix(suffix)))
        hint = f"dragoman driver key {name}{f' --hardware {quote(hardware)}' if hardware else ''}"
        reason = "of a public key" if path == public else f"of a key {'file' if hardware else 'in hardware'}"
        raise ConfigurationError(f"{path} is the name {reason}", hint=hint)
    if new or not path.exists():
        with exclusively(path):
            for file in (path, public) if new else ():
                if os.path.lexists(file):
                    raise ConfigurationError(f"{file} already exists", hint="dragoman driver key ANOTHER-FILE")
            if hardware:
                uri, key = imported(path, hardware)
                write(path, f"{uri}\n".encode(), mode=0o600)
                write(public, public_bytes(key))
            elif not path.exists():
                _keep(path, new_key())
    return path


def new_key() -> CryptoSigner:
    """Make an Ed25519 key.

    Raises:
        ConfigurationError: The signing library is not installed.
    """
    check_cryptography()
    from securesystemslib.signer import CryptoSigner

    return CryptoSigner.generate_ed25519()


def _keep(path: Path, key: CryptoSigner) -> KeyFile:
    """Write a private key, encrypted if its folder's keys are, and its public key beside it."""
    write(path, unlocking().encrypt(path, key), mode=0o600)
    write(path.with_suffix(PUBLIC), public_bytes(key.public_key))
    return KeyFile(path, key)
