"""Saved connections, and what becomes of one before a driver receives it."""
