"""Tools of publishers and operators: build, sign, accept, serve, mirror and verify a registry, and build its pages."""
