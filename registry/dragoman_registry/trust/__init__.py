"""Who vouches for the bytes of a registry: a seam, and what stands behind it."""

from .seam import UNSIGNED, Pinned, Publisher, Target, Trust, TrustedPath

__all__ = ["UNSIGNED", "Pinned", "Publisher", "Target", "Trust", "TrustedPath"]
