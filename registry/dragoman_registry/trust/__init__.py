"""Trust in a registry's bytes: the interface and its implementations."""

from .interface import UNSIGNED, Publisher, SignedFile, Trust, TrustedPath
from .pinned import Pinned

__all__ = ["UNSIGNED", "Pinned", "Publisher", "SignedFile", "Trust", "TrustedPath"]
