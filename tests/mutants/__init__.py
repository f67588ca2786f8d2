"""Mutation testing: change one thing in a module, and see whether a test that holds the module turns red."""
