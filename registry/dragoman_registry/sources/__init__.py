"""Reads a registry's files from a folder, a web server or a bundle."""
