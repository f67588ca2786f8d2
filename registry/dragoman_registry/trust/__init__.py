"""Trust in a registry's bytes: the interface and its implementations."""
