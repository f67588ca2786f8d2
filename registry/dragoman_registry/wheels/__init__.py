"""Wheels, as publishers and hosts check them: contents, metadata, and every check."""
