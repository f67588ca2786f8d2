"""Private keys: files in a folder beside a registry, looked up by key identifier, not by file name."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError
from dragoman_registry.files import exclusively, write

if TYPE_CHECKING:
    from pathlib import Path

    from securesystemslib.signer import CryptoSigner, Key

PRIVATE, PUBLIC = ".pem", ".pub"


def beside(registry: Path) -> Path:
    """Return the default folder for a registry's keys: beside the registry, never inside it."""
    registry = registry.absolute()
    return registry.with_name(f"{registry.name}.keys")


class Keys:
    """A folder of private keys; a missing folder holds no keys."""

    def __init__(self, folder: Path, *further: Path) -> None:
        """Use the keys in a folder and in `further` files."""
        self.folder, self._further = folder, further
        self._signers: dict[str, CryptoSigner] | None = None

    def signers(self) -> dict[str, CryptoSigner]:
        """Return the signers by key identifier. Raises ConfigurationError for a file that is not a key."""
        if self._signers is None:
            paths = [*sorted(self.folder.glob(f"*{PRIVATE}")), *self._further]
            self._signers = {signer.public_key.keyid: signer for signer in map(read_private, paths)}
        return self._signers

    def new(self, name: str) -> CryptoSigner:
        """Make a key and write it, readable only by its owner."""
        signer = new_key()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.keep(self.folder / f"{name}-{signer.public_key.keyid[:8]}{PRIVATE}", signer)
        self.signers()[signer.public_key.keyid] = signer
        return signer

    @staticmethod
    def keep(path: Path, signer: CryptoSigner) -> None:
        """Write a private key, and its public key beside it."""
        write(path, signer.private_bytes, mode=0o600)
        write(path.with_suffix(PUBLIC), _public_bytes(signer))


def own_key(path: Path, *, new: bool = False) -> Path:
    """Return the file of a person's own key; make the key if the file is missing.

    Raises:
        ConfigurationError: It has the suffix of public keys; or `new` is set, and the file exists.
    """
    public = path.with_suffix(PUBLIC)
    if path == public:
        hint = f"dragoman driver key {quote(str(path.with_suffix(PRIVATE)))}"
        raise ConfigurationError(f"{path} is the name of a public key", hint=hint)
    if new or not path.exists():
        with exclusively(path):
            for file in (path, public) if new else ():
                if os.path.lexists(file):
                    raise ConfigurationError(f"{file} already exists", hint="dragoman driver key ANOTHER-FILE")
            if not path.exists():
                Keys.keep(path, new_key())
    return path


def new_key() -> CryptoSigner:
    """Make an Ed25519 key.

    Raises:
        ConfigurationError: The signing library is not installed.
    """
    _check_cryptography()
    from securesystemslib.signer import CryptoSigner

    return CryptoSigner.generate_ed25519()


def read_private(path: Path) -> CryptoSigner:
    """Read a private key.

    Raises:
        ConfigurationError: The file is missing, not a key, or readable by others.
    """
    _check_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from securesystemslib.signer import CryptoSigner

    try:
        if path.stat().st_mode & 0o077:
            raise ConfigurationError(
                f"others can read the key {path}", hint=f"chmod 600 {quote(str(path))}", code="key-exposed"
            )
        key = load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise _no_key(path, error) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key(path, "it is not Ed25519")
    return CryptoSigner(key)


def read_public(path: Path) -> Key:
    """Read an author's public key. Raises ConfigurationError if the file is not one."""
    _check_cryptography()
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from securesystemslib.signer import SSlibKey

    try:
        return SSlibKey.from_crypto(load_pem_public_key(path.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise _no_key(path, error) from error


def _no_key(path: Path, reason: object) -> ConfigurationError:
    cause = getattr(reason, "strerror", None) or reason
    return ConfigurationError(f"{path} cannot be used as a key: {cause}", hint="make one: dragoman driver key FILE")


def _public_bytes(signer: CryptoSigner) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

    public = load_pem_private_key(signer.private_bytes, None).public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _check_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ModuleNotFoundError as error:
        text = "signing needs the package cryptography, which is not installed"
        from dragoman_api.installation import packages_missing

        raise packages_missing(text, "dragoman[publish]") from error
