"""Trust in a registry's bytes: the interface and its implementations."""

from .trust import UNSIGNED, Pinned, Publisher, SignedFile, Trust

__all__ = ["UNSIGNED", "Pinned", "Publisher", "SignedFile", "Trust"]
