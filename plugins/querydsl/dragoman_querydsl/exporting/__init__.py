"""Exports of whole objects as a stream of lines."""
