"""Exports in parts: one folder of files that several tasks, processes or machines write."""
