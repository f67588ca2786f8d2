"""Samples of databases without SQL, served on this machine: a bookshop, a library with vectors, and metrics."""
