"""Reads a registry's signed files: catalog, advisories, documents."""
