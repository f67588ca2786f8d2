"""The sandboxed plugin registry: index, choice of release, wheel checks, store, installer, publishing."""
