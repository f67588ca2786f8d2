"""Servers that look like the real ones on the wire, for tests and demonstrations."""
