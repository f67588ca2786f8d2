"""Tools for authors of drivers: a scaffold, checks, conformance in the sandbox, publishing, developer mode."""
