"""Trust in a registry's bytes: the interface and its implementations."""

from .interface import UNSIGNED, Pinned, Publisher, SignedFile, Trust, TrustedPath

__all__ = ["UNSIGNED", "Pinned", "Publisher", "SignedFile", "Trust", "TrustedPath"]
