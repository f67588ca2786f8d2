"""The pages of a registry: for pip and uv, and for people."""
