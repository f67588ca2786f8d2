"""The client of a registry: resolves, installs, keeps and removes releases."""
