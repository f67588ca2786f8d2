"""The client of a registry: resolves, installs, stores and removes releases."""
