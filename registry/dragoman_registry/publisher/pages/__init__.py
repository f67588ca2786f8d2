"""The pages of a registry: for pip and uv, and for people."""

from .site import pages as pages
