"""Versity's S3 gateway, built from its published Go module: an S3 server whose objects are files."""

from __future__ import annotations

from servers.versitygw.catalog import ENGINES

__all__ = ["ENGINES"]
