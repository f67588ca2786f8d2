"""Imports: the rows of a file are read block by block, written like any change, and each has an outcome."""
