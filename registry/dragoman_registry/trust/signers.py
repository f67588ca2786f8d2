"""Private keys as signers: PEM files, which may be encrypted, and references to keys in hardware.

A key is opened when it first signs, and its secret is asked for once. Each is Ed25519, which every host can verify.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import parse_qs, urlsplit

from securesystemslib.exceptions import UnsupportedLibraryError
from securesystemslib.signer import (
    KEY_TYPE_ED25519,
    SIGNER_FOR_URI_SCHEME,
    CryptoSigner,
    HSMSigner,
    Signature,
    Signer,
    SSlibKey,
    VaultSigner,
)

from dragoman_api.errors import ConfigurationError
from dragoman_registry.files import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PRIVATE, PUBLIC, REFERENCE = ".pem", ".pub", ".uri"
SHORTEST = 12
"""Minimum length of a new key's passphrase in characters."""
LONGEST = 1023
"""Maximum length of a passphrase in bytes, beyond which no key file can be encrypted or opened."""
MAX_FILE = 1 << 20
"""Bytes of a key's file."""
TOKEN = HSMSigner.SCHEME
MODULE = "PYKCS11LIB"
"""Variable with the path of the PKCS#11 module, as securesystemslib calls it."""
Secret = Literal["passphrase", "pin"]
_ENCRYPTED = re.compile(rb"^(?:-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: *4, *ENCRYPTED)", re.MULTILINE)


class Ask(Protocol):
    """Asks for what opens a key."""

    def __call__(self, secret: Secret, key: str, *, new: bool) -> str:
        """Return the passphrase of a key file, or the PIN of a token; `new` is a passphrase to choose."""


def _ask_nobody(secret: Secret, key: str, *, new: bool) -> str:
    raise ConfigurationError(f"{key} needs its {secret}", hint=f"--{secret} env:NAME", code="key-locked")


@dataclass
class Unlocking:
    """How keys are opened; each secret is asked for once.

    Attributes:
        ask: Asks for a secret.
        encrypts: Whether each new key is encrypted; if not, only one in a folder that has an encrypted one.
    """

    ask: Ask = _ask_nobody
    encrypts: bool = False
    _passphrases: list[str] = field(default_factory=list, repr=False)
    _pins: dict[str, str] = field(default_factory=dict, repr=False)

    def open(self, path: Path) -> Ed25519PrivateKey:
        """Decrypt a key file, with a passphrase that opened another one if it fits.

        Raises:
            ConfigurationError: The passphrase is wrong, or nobody can be asked (code ``key-locked``).
        """
        data = private_bytes(path)
        for passphrase in self._passphrases:
            try:
                return _load(path, data, passphrase)
            except ValueError:
                continue
        passphrase = self.ask("passphrase", str(path), new=False)
        try:
            key = _load(path, data, passphrase)
        except ValueError as error:
            raise ConfigurationError(f"the passphrase does not open {path}", code="key-locked") from error
        self._passphrases.append(passphrase)
        return key

    def encrypt(self, path: Path, signer: CryptoSigner) -> bytes:
        """Return the bytes of a new key's file. Raises ConfigurationError if the passphrase is too short."""
        from cryptography.hazmat.primitives import serialization

        if not self.encrypts and not any(map(_seems_encrypted, path.parent.glob(f"*{PRIVATE}"))):
            return signer.private_bytes
        if not self._passphrases:
            passphrase = self.ask("passphrase", str(path), new=True)
            if len(passphrase) < SHORTEST:
                text = f"the passphrase is shorter than {SHORTEST} characters"
                raise ConfigurationError(text, hint="choose a longer one", code="key-locked")
            try:
                _encoded(passphrase)
            except ValueError as error:
                text = f"the passphrase cannot be used: {error}"
                raise ConfigurationError(text, hint="choose another one", code="key-locked") from None
            self._passphrases.append(passphrase)
        encryption = serialization.BestAvailableEncryption(_encoded(self._passphrases[-1]))
        return serialization.load_pem_private_key(signer.private_bytes, None).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        )

    def pin(self, token: str) -> str:
        """Return the PIN of a token. Raises ConfigurationError if nobody can be asked."""
        if token not in self._pins:
            self._pins[token] = self.ask("pin", token, new=False)
        return self._pins[token]

    def forget_pin(self, token: str) -> None:
        """Forget a PIN that may be wrong: tried again and again, it locks the token."""
        self._pins.pop(token, None)


_UNLOCKING: ContextVar[Unlocking] = ContextVar("_UNLOCKING")


def unlocking() -> Unlocking:
    """Return how keys are opened here; by default nobody is asked."""
    way = _UNLOCKING.get(None)
    if way is None:
        _UNLOCKING.set(way := Unlocking())
    return way


@contextmanager
def unlocked_by(way: Unlocking) -> Iterator[None]:
    """Open keys in a way of one's own: whoever can ask a person is far above what signs."""
    token = _UNLOCKING.set(way)
    try:
        yield
    finally:
        _UNLOCKING.reset(token)


class KeyFile(Signer):
    """The key in a file, opened when it first signs.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path, signer: CryptoSigner | None = None) -> None:
        """Read a file, or take the `signer` that was written there.

        Raises:
            ConfigurationError: The file is missing, not a key, or readable by others; or it is encrypted or refers to
                hardware, and its public key is not beside it.
        """
        check_cryptography()
        self.path = path
        self._signer: Signer | None = signer
        if signer is None and path.suffix != REFERENCE and not is_encrypted(path):
            self._signer = signer = CryptoSigner(_plain_key(path))
        self._public_key: SSlibKey = signer.public_key if signer else read_public(path.with_suffix(PUBLIC))

    @property
    def public_key(self) -> SSlibKey:
        """Its public key, which is known before it is opened."""
        return self._public_key

    def unlock(self) -> Signer:
        """Open the key.

        Raises:
            ConfigurationError: It does not open, or is not that of the public key.
        """
        if self._signer is not None:
            return self._signer
        if self.path.suffix == REFERENCE:
            self._signer = _hardware(self.path, self._public_key)
            return self._signer
        signer = CryptoSigner(unlocking().open(self.path))
        if signer.public_key.keyid != self._public_key.keyid:
            raise no_key(self.path, f"{self.path.with_suffix(PUBLIC).name} is the public key of another one")
        self._signer = signer
        return signer

    def sign(self, payload: bytes) -> Signature:
        """Sign bytes. Raises ConfigurationError if the key cannot be used."""
        signer = self.unlock()
        if isinstance(signer, CryptoSigner):
            return signer.sign(payload)
        try:
            signature = signer.sign(payload)
            self._public_key.verify_signature(signature, payload)
        except ConfigurationError:
            raise
        except Exception as error:
            raise _out_of_reach(self.path, error) from error
        return signature

    @classmethod
    def from_priv_key_uri(cls, priv_key_uri: str, public_key: object, secrets_handler: object = None) -> KeyFile:
        """Refuse: the library's own classes make what a URI names."""
        raise NotImplementedError(priv_key_uri)


class TokenSigner(HSMSigner):
    """An Ed25519 key in a PKCS#11 token; the library's own class signs with ECDSA alone."""

    def __init__(self, uri: str, public_key: SSlibKey | None = None) -> None:
        """Use the key that ``hsm:[KEYID][?label=LABEL]`` names. Raises ValueError for another URI."""
        parts = urlsplit(uri)
        [self.token_label] = parse_qs(parts.query).get("label", [None])
        self.hsm_keyid = int(parts.path or self.SCHEME_KEYID)
        self._public_key = public_key or self._read_public()

    def sign(self, payload: bytes) -> Signature:
        """Sign bytes in the token."""
        from pkcs11 import Mechanism

        with self._session() as key:
            return Signature(self.public_key.keyid, key.sign(payload, mechanism=Mechanism.EDDSA).hex())

    def check(self) -> None:
        """Find the key, without signing: a person may have to touch the token for each signature."""
        with self._session():
            pass

    @contextmanager
    def _session(self) -> Iterator[Any]:
        """Open the token, and yield the private key."""
        from pkcs11 import KeyType, ObjectClass

        name = f"the token {self.token_label or ''}".strip()
        try:
            with self._find_token(self.token_label).open(user_pin=unlocking().pin(name)) as session:
                yield session.get_key(ObjectClass.PRIVATE_KEY, KeyType.EC_EDWARDS, id=self._id())
        except Exception:
            unlocking().forget_pin(name)
            raise

    def _read_public(self) -> SSlibKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from pkcs11 import Attribute, KeyType, ObjectClass

        with self._find_token(self.token_label).open() as session:
            key = session.get_key(ObjectClass.PUBLIC_KEY, KeyType.EC_EDWARDS, id=self._id())
            point = bytes(key[Attribute.EC_POINT])[-32:]  # without the head of an octet string
        return SSlibKey.from_crypto(Ed25519PublicKey.from_public_bytes(point))

    def _id(self) -> bytes:
        from pkcs11.util import biginteger

        return bytes(biginteger(self.hsm_keyid))


def imported(path: Path, uri: str) -> tuple[str, SSlibKey]:
    """Return the whole URI of a key in hardware, as a reference needs it, and its public key.

    Args:
        path: The file that the reference is for, used in messages.
        uri: ``hsm:[KEYID][?label=LABEL]`` for a PKCS#11 token, or ``hv:NAME`` for the newest key of a name in a Vault.

    Raises:
        ConfigurationError: The scheme has no Ed25519 keys here, or the key is out of reach.
    """
    check_cryptography()
    scheme, _, rest = uri.partition(":")
    name, _, version = rest.partition("/")  # of a key in a Vault
    try:
        if scheme == TOKEN:
            return uri, TokenSigner(uri).public_key
        if scheme == VaultSigner.SCHEME:
            newest, key = VaultSigner.import_(name)
            if not version or newest == uri:
                return newest, key
            uri = f"another version than {newest}"
    except Exception as error:  # the module of a vendor raises what it likes
        raise _out_of_reach(path, error, scheme=scheme) from error
    hint = f"{TOKEN}:2?label=TOKEN, or write {path} and {path.with_suffix(PUBLIC).name} yourself"
    raise ConfigurationError(f"the public key of {uri} cannot be read", hint=hint)


def _hardware(path: Path, public_key: SSlibKey) -> Signer:
    """Make the signer that a reference names."""
    try:
        uri = _read(path, forbidden=0o022, fault="change the reference").decode().strip()
    except ValueError as error:
        raise no_key(path, error) from error
    scheme = uri.partition(":")[0]
    if scheme not in SIGNER_FOR_URI_SCHEME or scheme == CryptoSigner.SCHEME:
        schemes = ", ".join(sorted(SIGNER_FOR_URI_SCHEME.keys() - {CryptoSigner.SCHEME}))
        raise no_key(path, f"{scheme!r} is none of the schemes {schemes}")
    try:
        if scheme != TOKEN:
            return Signer.from_priv_key_uri(uri, public_key, lambda secret: unlocking().pin(f"{secret} of {path}"))
        token = TokenSigner(uri, public_key)
        token.check()
    except ConfigurationError:
        raise
    except Exception as error:  # the module of a vendor raises what it likes
        raise _out_of_reach(path, error, scheme=scheme) from error
    return token


def _out_of_reach(path: Path, error: Exception, *, scheme: str = TOKEN) -> ConfigurationError:
    """Say why a key in hardware cannot be used."""
    if isinstance(error, UnsupportedLibraryError | ImportError):
        from dragoman_api.installation import packages_missing

        extra = "vault" if scheme == VaultSigner.SCHEME else scheme
        return packages_missing(f"{path} needs packages for its hardware: {error}", f"securesystemslib[{extra}]")
    reasons = {"PinIncorrect": "the PIN is wrong", "PinLocked": "the token has locked itself", "NoSuchKey": "the token"
               " has no such Ed25519 key", "UnverifiedSignatureError": "it is not the key of its .pub"}  # fmt: skip
    reason = reasons.get(type(error).__name__) or str(error) or type(error).__name__
    hint = f"see docs/how-to/release.md, or move {quote(str(path))} away, to sign with other keys"
    return ConfigurationError(f"the key of {path} is out of reach: {reason}", hint=hint, code="key-locked")


def private_bytes(path: Path) -> bytes:
    """Read a key's file. Raises ConfigurationError if it is missing, not a plain file, or readable by others."""
    return _read(path, forbidden=0o077, fault="read the key")


def _read(path: Path, *, forbidden: int, fault: str) -> bytes:
    try:
        with open_plain(path) as file:  # a pipe among the keys would be waited for without end
            if os.fstat(file.fileno()).st_mode & forbidden:
                hint = f"chmod 600 {quote(str(path))}"
                raise ConfigurationError(f"others can {fault} {path}", hint=hint, code="key-exposed")
            return file.read(MAX_FILE)
    except OSError as error:
        raise no_key(path, error) from error


def is_encrypted(path: Path) -> bool:
    """Check whether a key's file is encrypted. Raises as `private_bytes`."""
    return _ENCRYPTED.search(private_bytes(path)) is not None


def _seems_encrypted(path: Path) -> bool:
    """Check whether a file beside a new key is an encrypted key; it may be anybody's, such as a certificate."""
    with suppress(OSError), open_plain(path) as file:
        return _ENCRYPTED.search(file.read(MAX_FILE)) is not None
    return False


def _plain_key(path: Path) -> Ed25519PrivateKey:
    try:
        return _load(path, private_bytes(path), None)
    except ValueError as error:
        raise no_key(path, error) from error


def _load(path: Path, data: bytes, passphrase: str | None) -> Ed25519PrivateKey:
    """Parse a key. Raises ValueError unless the passphrase opens it, ConfigurationError if it is of another kind."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(data, None if passphrase is None else _encoded(passphrase) or b"\0")
    except (TypeError, UnsupportedAlgorithm) as error:
        raise no_key(path, error) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise no_key(path, "it is not Ed25519")
    return key


def _encoded(passphrase: str) -> bytes:
    """Encode a passphrase. Raises ValueError, which holds nothing of it."""
    try:
        data = passphrase.encode()
    except UnicodeEncodeError:
        raise ValueError("it is not text in UTF-8") from None
    if len(data) > LONGEST:
        raise ValueError(f"it is longer than {LONGEST:,} bytes")
    return data


def read_public(path: Path) -> SSlibKey:
    """Read a public key. Raises ConfigurationError if the file is not one, or not of an Ed25519 key."""
    check_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        with open_plain(path) as file:
            key = SSlibKey.from_crypto(load_pem_public_key(file.read(MAX_FILE)))
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise no_key(path, error) from error
    if key.keytype != KEY_TYPE_ED25519:
        raise no_key(path, f"it is {key.keytype}, and hosts verify Ed25519 alone")
    return key


def no_key(path: Path, reason: object) -> ConfigurationError:
    """Return the error for a file that is not a key."""
    cause = getattr(reason, "strerror", None) or reason
    return ConfigurationError(f"{path} cannot be used as a key: {cause}", hint="make one: dragoman driver key FILE")


def public_bytes(key: SSlibKey) -> bytes:
    """Return the PEM file of a public key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    keyval: dict[str, Any] = key.keyval
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(keyval["public"]))
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def check_cryptography() -> None:
    """Raise ConfigurationError if the signing library is not installed."""
    try:
        import cryptography  # noqa: F401
    except ModuleNotFoundError as error:
        text = "signing needs the package cryptography, which is not installed"
        from dragoman_api.installation import packages_missing

        raise packages_missing(text, "dragoman[publish]") from error
