"""Exports: turn a driver's parts into one complete file, or none."""
